//! Drives other people's programs through the same cases, by lines of JSON.
//!
//! A program is started once. It says who it is in one line, reads jobs from its standard input, one a line, and answers
//! each with one line; the end of its input ends it.
//!
//! ```text
//! -> {"rival":"iceoryx2.event","version":"0.10.0","mode":"two processes, event","placements":["same","cross","free"]}
//! <- {"size":1048576,"samples":200,"warm_up":20,"period_ns":1000000,"fill":"loan","cores":"same","policy":"fifo",
//!     "measure":"one_way","subscribers":1}
//! -> {"latencies_ns":[...],"lateness_ns":[...],"lost":0,"page_faults":0,"note":""}
//!    or {"summary_us":{"min":..,"p50":..,"p99":..,"max":..},"n":..,"lost":..}
//!    or {"unsupported":"why"}, or {"error":"what"}
//! ```
//!
//! A program that is missing, breaks or hangs is told in a note and never fails the bench.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::case::{Case, Cores, Fill, Measure, Mode, Policy};
use super::outcome::{Counts, Outcome, SummaryUs};
use super::writer::WARM_UP_PERIOD;
use crate::floor::WARM_UP;
use crate::sys;

/// How long a program may take until it has said who it is: some start a server of their own.
const START: Duration = Duration::from_secs(20);
/// How long a job may take beyond eight times its messages' periods.
const SLACK: Duration = Duration::from_secs(10);
/// How often a program that broke is started again.
const RESTARTS: usize = 2;
/// How long a program that is still being written is waited for, several times.
const A_MOMENT: Duration = Duration::from_millis(10);
/// How long a program may take to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// The program that has the rivals in Rust, which it takes by name.
const COLLECTION: &str = "bin/viaduct-rivals";

/// A program that can be driven, if it was built.
struct Entry {
    /// Name of its rows.
    name: &'static str,
    /// Below the rivals' folder.
    program: &'static str,
    arguments: &'static [&'static str],
    measure: Measure,
}

const fn one_way(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Entry {
    Entry { name, program, arguments, measure: Measure::OneWay }
}

/// All rivals.
const ENTRIES: &[Entry] = &[
    one_way("crossbeam", COLLECTION, &["crossbeam"]),
    one_way("kanal", COLLECTION, &["kanal"]),
    one_way("flume", COLLECTION, &["flume"]),
    one_way("thingbuf", COLLECTION, &["thingbuf"]),
    one_way("tokio_broadcast", COLLECTION, &["tokio_broadcast"]),
    one_way("iceoryx2.event", COLLECTION, &["iceoryx2.event"]),
    one_way("iceoryx2.polling", COLLECTION, &["iceoryx2.polling"]),
    one_way("cyclonedds.one_way", "bin/cyclonedds", &[]),
    Entry { measure: Measure::Rtt, ..one_way("cyclonedds.ddsperf", COLLECTION, &["cyclonedds.ddsperf"]) },
    one_way("fastcycle.model", "bin/fastcycle", &[]),
    one_way("fastcycle.model_sleep", "bin/fastcycle", &["--sleep-us", "100"]),
    one_way("ros1.inter", "bin/ros1", &["inter"]),
    one_way("ros1.nodelet", "bin/ros1", &["nodelet"]),
];

/// A program's first line.
#[derive(Clone, Debug, Deserialize)]
struct Hello {
    rival: String,
    #[serde(default)]
    version: String,
    /// How it is used, in words.
    #[serde(default)]
    mode: String,
    #[serde(default)]
    placements: Vec<Cores>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Serialize)]
struct Job {
    size: usize,
    samples: usize,
    warm_up: usize,
    period_ns: u64,
    fill: Fill,
    cores: Cores,
    policy: Policy,
    measure: Measure,
    subscribers: usize,
}

impl Job {
    fn new(case: &Case, samples: usize) -> Self {
        Self {
            size: case.size,
            samples,
            warm_up: WARM_UP,
            period_ns: crate::floor::nanos(case.period()),
            fill: case.fill,
            cores: case.cores,
            policy: case.policy,
            measure: case.measure,
            subscribers: case.subscribers,
        }
    }
}

/// What comes back.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    latencies_ns: Option<Vec<u64>>,
    lateness_ns: Vec<u64>,
    lost: u64,
    page_faults: Option<u64>,
    note: String,
    summary_us: Option<SummaryUs>,
    n: Option<u64>,
    unsupported: Option<String>,
    error: Option<String>,
}

impl Answer {
    fn outcome(self, samples: usize) -> Outcome {
        if let Some(why) = self.unsupported.or(self.error) {
            return Outcome::refused(&why);
        }
        let counted = |page_faults| Counts { messages: samples as u64, page_faults, ..Counts::default() };
        let n = self.n;
        let outcome = Outcome {
            latencies: self.latencies_ns.unwrap_or_default(),
            lateness: self.lateness_ns,
            lost: self.lost,
            cost: self.page_faults.map(counted),
            summary: self.summary_us.map(|summary| SummaryUs { n: n.unwrap_or(summary.n), ..summary }),
            note: Some(self.note).filter(|note| !note.is_empty()),
            ..Outcome::default()
        };
        if outcome.has_samples() { outcome } else { Outcome::refused("no message came through") }
    }
}

/// A program that runs.
pub(super) struct Rival {
    hello: Hello,
    entry: &'static Entry,
    program: PathBuf,
    /// Gone once it broke.
    process: Option<Process>,
    /// How often it may be started again.
    restarts: usize,
}

/// Starts every program that is below the folder; what is not there or does not start becomes a note.
pub(super) fn start(folder: &Path, notes: &mut Vec<String>) -> Vec<Rival> {
    if !folder.is_dir() {
        notes.push(format!("rivals: not run: no folder `{}`; `make bench-bus` builds it", folder.display()));
        return Vec::new();
    }
    let mut rivals = Vec::new();
    for entry in ENTRIES {
        match Rival::start(entry, &folder.join(entry.program)) {
            Ok(rival) => rivals.push(rival),
            Err(why) => notes.push(format!("{}: not run: {why}", entry.name)),
        }
    }
    rivals
}

impl Rival {
    fn start(entry: &'static Entry, program: &Path) -> Result<Self, String> {
        if !program.is_file() {
            return Err(format!("no program `{}`; `make bench-bus` builds it", program.display()));
        }
        let (process, hello) = Process::start(program, entry.arguments)?;
        Ok(Self { hello, entry, program: program.to_owned(), process: Some(process), restarts: RESTARTS })
    }

    /// Name of its rows.
    pub(super) fn name(&self) -> &str {
        &self.hello.rival
    }

    pub(super) fn version(&self) -> &str {
        &self.hello.version
    }

    /// How it is used, in words.
    pub(super) fn how(&self) -> &str {
        &self.hello.mode
    }

    /// What it can measure.
    pub(super) fn measure_of(&self) -> Measure {
        self.entry.measure
    }

    /// Who runs its subscriber, by its own words.
    pub(super) fn mode(&self) -> Mode {
        let says = |words: &str| self.hello.mode.contains(words);
        match () {
            () if says("two processes") => Mode::Process,
            () if says("pool") => Mode::Pool,
            () => Mode::Thread,
        }
    }

    /// Whether it can have its threads there.
    pub(super) fn can_be(&self, cores: Cores) -> bool {
        self.hello.placements.is_empty() || self.hello.placements.contains(&cores)
    }

    /// One round of a case. A program that breaks over it is started again for the next one, but not forever.
    pub(super) fn measure(&mut self, case: &Case, samples: usize) -> Outcome {
        let nominal = WARM_UP_PERIOD * 20 + case.period() * u32::try_from(samples).unwrap_or(u32::MAX);
        let answer = self.running().and_then(|process| process.ask(Job::new(case, samples), SLACK + nominal * 8));
        answer.map_or_else(
            |why| {
                self.process = None;
                Outcome::refused(&why)
            },
            |answer| answer.outcome(samples),
        )
    }

    fn running(&mut self) -> Result<&mut Process, String> {
        if self.process.is_none() {
            self.restarts = self.restarts.checked_sub(1).ok_or("it broke too often")?;
            self.process = Some(Process::start(&self.program, self.entry.arguments)?.0);
        }
        self.process.as_mut().ok_or_else(|| "it does not run".to_owned())
    }
}

/// A program with its lines. It is the first of a group of processes, which ends with it.
struct Process {
    child: Child,
    /// Gone when it is to end.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The last line that it said on standard error.
    complaint: Receiver<String>,
}

impl Process {
    /// Starts a program and waits until it has said who it is.
    fn start(program: &Path, arguments: &[&str]) -> Result<(Self, Hello), String> {
        let mut process = Self::spawn(program, arguments)?;
        let line = process.next_line(START)?;
        let hello = serde_json::from_str(&line).map_err(|problem| format!("its first line: {problem}"))?;
        Ok((process, hello))
    }

    fn spawn(program: &Path, arguments: &[&str]) -> Result<Self, String> {
        let program: PathBuf = std::path::absolute(program).map_err(|cause| cause.to_string())?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = start_written(&mut command).map_err(|cause| format!("it does not start: {cause}"))?;
        let (input, lines) = (child.stdin.take(), each_line(child.stdout.take()));
        let complaint = last_line(child.stderr.take());
        Ok(Self { child, input, lines, complaint })
    }

    fn ask(&mut self, job: Job, patience: Duration) -> Result<Answer, String> {
        let mut line = serde_json::to_string(&job).map_err(|problem| problem.to_string())?;
        line.push('\n');
        let input = self.input.as_mut().ok_or("it has no input")?;
        if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
            // Nobody is there to read it.
            return Err(self.last_words("it ended"));
        }
        let answer = self.next_line(patience)?;
        serde_json::from_str(&answer).map_err(|problem| format!("its answer: {problem}"))
    }

    fn next_line(&mut self, patience: Duration) -> Result<String, String> {
        self.lines.recv_timeout(patience).map_err(|why| match why {
            RecvTimeoutError::Timeout => format!("it said nothing for {} s and was ended", patience.as_secs()),
            RecvTimeoutError::Disconnected => self.last_words("it ended"),
        })
    }

    fn last_words(&self, what: &str) -> String {
        match self.complaint.recv_timeout(Duration::from_millis(200)) {
            Ok(words) if !words.is_empty() => format!("{what}: {words}"),
            _ => what.to_owned(),
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + FAREWELL;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Also what it started itself and left behind.
        sys::kill_group(self.child.id());
        // It was killed, so this ends.
        let _ = self.child.wait();
    }
}

/// The lines of a stream, read by a thread that ends with it.
fn each_line(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = sync_channel(4);
    // Without the thread the receiver is disconnected, as if the program had ended.
    let _ = crate::floor::spawn("bench-rival", move || {
        let lines = stream.into_iter().flat_map(|stream| BufReader::new(stream).lines());
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The last line of a stream, once it has ended.
fn last_line(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, line) = sync_channel(1);
    let _ = crate::floor::spawn("bench-rival-errors", move || {
        let lines = stream.into_iter().flat_map(|stream| BufReader::new(stream).lines());
        let last = lines.map_while(Result::ok).filter(|line| !line.trim().is_empty()).last();
        // Nobody needs to hear it.
        let _ = sender.send(last.unwrap_or_default());
    });
    line
}

/// Starts a program. One that was written a moment ago may still be open in a process that is about to become another.
fn start_written(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(cause) if cause.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::sleep(A_MOMENT),
            started => return started,
        }
    }
    command.spawn()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A rival in the language of the shell.
    fn fake(folder: &Path, body: &str) -> PathBuf {
        let program = folder.join("rival");
        std::fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// An entry for it.
    static FAKE: Entry = one_way("fake", "rival", &[]);

    const HELLO: &str =
        r#"echo '{"rival":"fake","version":"1.2","mode":"two processes, event","placements":["same"]}'"#;
    fn started(body: &str) -> (tempfile::TempDir, Result<Rival, String>) {
        let folder = tempfile::tempdir().unwrap();
        let program = fake(folder.path(), body);
        let rival = Rival::start(&FAKE, &program);
        (folder, rival)
    }

    #[test]
    fn a_rival_is_asked_and_answers() {
        let answers = r#"read job; echo "$job" > "$0.job"; echo '{"latencies_ns":[7000,5000],"lateness_ns":[1,2],"lost":1,"page_faults":3,"note":"hot"}'
            read job; echo '{"summary_us":{"min":1,"p50":2.5,"p99":3,"max":4},"n":9,"lost":2}'
            read job; echo '{"unsupported":"no loans"}'
            read job; echo '{"error":"out of memory"}'
            read job; echo '{"latencies_ns":[]}'"#;
        let (folder, rival) = started(&format!("{HELLO}\n{answers}"));
        let mut rival = rival.unwrap();
        assert_eq!((rival.name(), rival.version(), rival.how()), ("fake", "1.2", "two processes, event"));
        assert_eq!(rival.mode(), Mode::Process);
        assert!(rival.can_be(Cores::Same) && !rival.can_be(Cores::Free));
        let case = Case::base(32 << 10, 1000);
        let outcome = rival.measure(&case, 2);
        assert_eq!((&outcome.latencies[..], &outcome.lateness[..]), (&[7000, 5000][..], &[1, 2][..]));
        assert_eq!((outcome.lost, outcome.cost.unwrap().page_faults, outcome.note.as_deref()), (1, 3, Some("hot")));
        let job: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(folder.path().join("rival.job")).unwrap()).unwrap();
        let asked = serde_json::json!({"size": 32768, "samples": 2, "warm_up": 20, "period_ns": 1_000_000, "fill": "loan",
            "cores": "same", "policy": "fifo", "measure": "one_way", "subscribers": 1});
        assert_eq!(job, asked);
        let summary = rival.measure(&case, 2);
        assert_eq!(summary.summary, Some(SummaryUs { n: 9, min: 1.0, p50: 2.5, p99: 3.0, max: 4.0 }));
        let mut why = || rival.measure(&case, 2).refused.unwrap();
        assert_eq!([why(), why(), why()], ["no loans", "out of memory", "no message came through"]);
        assert_eq!(why(), "it ended");
        // Started again, it answers from the start; then it breaks until nobody starts it any more.
        assert_eq!(rival.measure(&case, 2).latencies, [7000, 5000]);
        let whys: Vec<Option<String>> = (0..12).map(|_| rival.measure(&case, 2).refused).collect();
        assert_eq!(whys.iter().flatten().filter(|why| *why == "it ended").count(), RESTARTS);
        assert_eq!(whys.last().unwrap().as_deref(), Some("it broke too often"));
    }

    #[test]
    fn a_rival_that_is_not_there_or_broken_says_why() {
        let (_folder, broken) = started("echo 'no such thing' >&2; exit 3");
        assert_eq!(broken.err().unwrap(), "it ended: no such thing");
        let (_folder, rambling) = started("echo hello; cat");
        assert!(rambling.err().unwrap().starts_with("its first line: "));
        let mut notes = Vec::new();
        assert!(start(Path::new("nowhere"), &mut notes).is_empty());
        assert_eq!(notes, ["rivals: not run: no folder `nowhere`; `make bench-bus` builds it"]);
        let empty = tempfile::tempdir().unwrap();
        assert!(start(empty.path(), &mut notes).is_empty());
        assert_eq!(notes.len(), 1 + ENTRIES.len());
        assert!(notes[1].starts_with("crossbeam: not run: no program `"), "{notes:?}");
    }

    #[test]
    fn a_rival_that_hangs_is_ended_with_all_that_it_started() {
        let (folder, rival) = started(&format!("sleep 600 & echo $! > \"$0.pid\"\n{HELLO}\nsleep 600"));
        let mut process = rival.unwrap().process.unwrap();
        let job = Job::new(&Case::base(64, 1000), 1);
        let why = process.ask(job, Duration::from_millis(50)).unwrap_err();
        assert_eq!(why, "it said nothing for 0 s and was ended");
        drop(process);
        let helper = std::fs::read_to_string(folder.path().join("rival.pid")).unwrap();
        let runs = || {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", helper.trim())).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        // The kernel ends it when it gets to it.
        let deadline = Instant::now() + Duration::from_secs(10);
        while runs() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!runs());
    }
}
