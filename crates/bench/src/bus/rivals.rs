//! Runs the competitors' programs through the same cases, by lines of JSON.
//! A program is started once. It prints its name and version in one line, reads jobs from its standard input, one per
//! line, and answers each with one line. The end of its input ends it.
//!
//! ```text
//! -> {"rival":"iceoryx2.event","version":"0.10.0","mode":"two processes, event","placements":["same","cross","free"]}
//! <- {"size":1048576,"samples":200,"warm_up":20,"period_ns":1000000,"fill":"loan","cores":"same","policy":"fifo",
//!     "measure":"one_way","subscribers":1}
//! -> {"latencies_ns":[...],"lateness_ns":[...],"lost":0,"page_faults":0,"note":""}
//!    or {"summary_us":{"min":..,"p50":..,"p99":..,"max":..},"n":..,"lost":..}
//!    or {"unsupported":"why"}, or {"error":"what"}
//! ```
//! A program that is missing, crashes or hangs is listed as a note; the bench itself still succeeds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::case::{Case, Cores, Fill, Measure, Mode, Policy};
use super::outcome::{Counts, Outcome, SummaryUs};
use super::writer::WARM_UP_PERIOD;
use crate::floor::WARM_UP;
use crate::process::Process;

/// Time limit for a program's first line: some start a server.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit of a job in addition to eight times its messages' periods.
const SLACK: Duration = Duration::from_secs(10);
/// Number of restarts of a crashed program.
const RESTARTS: usize = 2;

/// Program of the competitors in Rust, selected by name.
const RUST_PROGRAM: &str = "bin/viaduct-rivals";

/// A competitor's program.
struct Entry {
    /// Name of its rows.
    name: &'static str,
    /// Path below the competitors' folder.
    program: &'static str,
    arguments: &'static [&'static str],
    measure: Measure,
}

const fn one_way(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Entry {
    Entry { name, program, arguments, measure: Measure::OneWay }
}

/// All competitors.
const ENTRIES: &[Entry] = &[
    one_way("crossbeam", RUST_PROGRAM, &["crossbeam"]),
    one_way("kanal", RUST_PROGRAM, &["kanal"]),
    one_way("flume", RUST_PROGRAM, &["flume"]),
    one_way("thingbuf", RUST_PROGRAM, &["thingbuf"]),
    one_way("tokio_broadcast", RUST_PROGRAM, &["tokio_broadcast"]),
    one_way("iceoryx2.event", RUST_PROGRAM, &["iceoryx2.event"]),
    one_way("iceoryx2.polling", RUST_PROGRAM, &["iceoryx2.polling"]),
    one_way("cyclonedds.one_way", "bin/cyclonedds", &[]),
    Entry { measure: Measure::Rtt, ..one_way("cyclonedds.ddsperf", RUST_PROGRAM, &["cyclonedds.ddsperf"]) },
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
    /// Mode in words.
    #[serde(default)]
    mode: String,
    #[serde(default)]
    placements: Vec<Cores>,
}

/// A job as JSON.
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

/// An answer as JSON.
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
        if outcome.has_samples() { outcome } else { Outcome::refused("no message arrived") }
    }
}

/// A running program.
pub(super) struct Rival {
    hello: Hello,
    entry: &'static Entry,
    program: PathBuf,
    /// `None` after a crash.
    process: Option<Process>,
    /// Remaining restarts.
    restarts: usize,
}

/// Starts every program below the folder. A program that is missing or does not start becomes a note.
pub(super) fn start(folder: &Path, notes: &mut Vec<String>) -> Vec<Rival> {
    if !folder.is_dir() {
        notes.push(format!(
            "rivals: not run: the folder `{}` does not exist; `make bench-bus` builds it",
            folder.display()
        ));
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
            return Err(format!("the program `{}` does not exist; `make bench-bus` builds it", program.display()));
        }
        let (process, hello) = start_program(program, entry.arguments)?;
        Ok(Self { hello, entry, program: program.to_owned(), process: Some(process), restarts: RESTARTS })
    }

    /// Returns the name of the competitor's rows.
    pub(super) fn name(&self) -> &str {
        &self.hello.rival
    }

    pub(super) fn version(&self) -> &str {
        &self.hello.version
    }

    /// Returns the competitor's mode in words.
    pub(super) fn how(&self) -> &str {
        &self.hello.mode
    }

    /// Returns the kind of latency that it measures.
    pub(super) fn measure_of(&self) -> Measure {
        self.entry.measure
    }

    /// Returns the executor of its subscriber, from its mode.
    pub(super) fn mode(&self) -> Mode {
        let mode_has = |words: &str| self.hello.mode.contains(words);
        match () {
            () if mode_has("two processes") => Mode::Process,
            () if mode_has("pool") => Mode::Pool,
            () => Mode::Thread,
        }
    }

    /// Returns `true` if it supports the placement.
    pub(super) fn supports(&self, cores: Cores) -> bool {
        self.hello.placements.is_empty() || self.hello.placements.contains(&cores)
    }

    /// Runs one round of a case. A program that crashes is restarted for the next round, a limited number of times.
    pub(super) fn measure(&mut self, case: &Case, samples: usize) -> Outcome {
        let nominal = WARM_UP_PERIOD * 20 + case.period() * u32::try_from(samples).unwrap_or(u32::MAX);
        let answer = self.running().and_then(|process| ask(process, &Job::new(case, samples), SLACK + nominal * 8));
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
            self.restarts = self.restarts.checked_sub(1).ok_or("it failed too often")?;
            self.process = Some(start_program(&self.program, self.entry.arguments)?.0);
        }
        self.process.as_mut().ok_or_else(|| "it is not running".to_owned())
    }
}

/// Starts a program and waits for its first line.
fn start_program(program: &Path, arguments: &[&str]) -> Result<(Process, Hello), String> {
    let program = std::path::absolute(program).map_err(|cause| cause.to_string())?;
    let mut process = Process::spawn(Command::new(program).args(arguments))?;
    let line = process.next_line(START_TIMEOUT)?;
    let hello = serde_json::from_str(&line).map_err(|problem| format!("invalid first line: {problem}"))?;
    Ok((process, hello))
}

fn ask(process: &mut Process, job: &Job, timeout: Duration) -> Result<Answer, String> {
    process.send(job)?;
    let answer = process.next_line(timeout)?;
    serde_json::from_str(&answer).map_err(|problem| format!("its answer: {problem}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    use super::*;

    /// Writes a competitor as a shell script and returns its path.
    fn fake(folder: &Path, body: &str) -> PathBuf {
        let program = folder.join("rival");
        std::fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// Returns its entry.
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
    fn runs_jobs_of_a_rival() {
        let answers = r#"read job; echo "$job" > "$0.job"; echo '{"latencies_ns":[7000,5000],"lateness_ns":[1,2],"lost":1,"page_faults":3,"note":"hot"}'
            read job; echo '{"summary_us":{"min":1,"p50":2.5,"p99":3,"max":4},"n":9,"lost":2}'
            read job; echo '{"unsupported":"no loans"}'
            read job; echo '{"error":"out of memory"}'
            read job; echo '{"latencies_ns":[]}'"#;
        let (folder, rival) = started(&format!("{HELLO}\n{answers}"));
        let mut rival = rival.unwrap();
        assert_eq!((rival.name(), rival.version(), rival.how()), ("fake", "1.2", "two processes, event"));
        assert_eq!(rival.mode(), Mode::Process);
        assert!(rival.supports(Cores::Same) && !rival.supports(Cores::Free));
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
        assert_eq!([why(), why(), why()], ["no loans", "out of memory", "no message arrived"]);
        assert_eq!(why(), "it ended");
        // After a restart it answers again; then it crashes until its restarts are used up.
        assert_eq!(rival.measure(&case, 2).latencies, [7000, 5000]);
        let whys: Vec<Option<String>> = (0..12).map(|_| rival.measure(&case, 2).refused).collect();
        assert_eq!(whys.iter().flatten().filter(|why| *why == "it ended").count(), RESTARTS);
        assert_eq!(whys.last().unwrap().as_deref(), Some("it failed too often"));
    }

    #[test]
    fn reports_the_reason_if_a_rival_does_not_start() {
        let (_folder, broken) = started("echo 'no such thing' >&2; exit 3");
        assert_eq!(broken.err().unwrap(), "it ended: no such thing");
        let (_folder, rambling) = started("echo hello; cat");
        assert!(rambling.err().unwrap().starts_with("invalid first line: "));
        let mut notes = Vec::new();
        assert!(start(Path::new("nowhere"), &mut notes).is_empty());
        assert_eq!(notes, ["rivals: not run: the folder `nowhere` does not exist; `make bench-bus` builds it"]);
        let empty = tempfile::tempdir().unwrap();
        assert!(start(empty.path(), &mut notes).is_empty());
        assert_eq!(notes.len(), 1 + ENTRIES.len());
        assert!(notes[1].starts_with("crossbeam: not run: the program `"), "{notes:?}");
    }

    #[test]
    fn kills_a_hanging_rival_with_its_process_group() {
        let (folder, rival) = started(&format!("sleep 600 & echo $! > \"$0.pid\"\n{HELLO}\nsleep 600"));
        let mut process = rival.unwrap().process.unwrap();
        let job = Job::new(&Case::base(64, 1000), 1);
        let why = ask(&mut process, &job, Duration::from_millis(50)).unwrap_err();
        assert_eq!(why, "no answer within 0 s; killed");
        drop(process);
        let helper = std::fs::read_to_string(folder.path().join("rival.pid")).unwrap();
        let runs = || {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", helper.trim())).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        // The kernel ends the process asynchronously.
        let deadline = Instant::now() + Duration::from_secs(10);
        while runs() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!runs());
    }
}
