//! Cyclone DDS measured by its own tool: `ddsperf ping` here, `ddsperf pong` in a second process. The tool prints
//! only a summary per second.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::job::{Answer, Cores, Job, Measure, Policy, Summary};

/// Loopback device, the largest UDP datagrams, and the largest socket buffers that the kernel grants.
const CONFIG: &str = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>\
    <AllowMulticast>false</AllowMulticast><MaxMessageSize>65500B</MaxMessageSize></General>\
    <Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>\
    <Internal><SocketReceiveBufferSize max=\"10MB\"/></Internal></Domain></CycloneDDS>";

/// Largest size, in octets, that is sent at the job's rate. Larger pings at a fixed rate overtake their pongs, which
/// delays both, so each of those follows the previous pong at once.
const LARGEST_WITH_A_PERIOD: usize = 256 << 10;

/// Minimum duration of a run in seconds: the tool prints once per second.
const SHORTEST_S: u64 = 3;

/// Runs a job.
pub fn run(job: &Job) -> Result<Answer> {
    if job.measure == Measure::OneWay {
        return Ok(Answer::unsupported("ddsperf measures round trips only"));
    }
    if !job.is_filled_ahead() {
        return Ok(Answer::unsupported("ddsperf fills its message once, before the first ping"));
    }
    let seconds = (job.samples as u64 * job.period_ns).div_ceil(1_000_000_000).max(SHORTEST_S - 1) + 1;
    let mut pong = start(job, &["-D".to_owned(), (seconds + 2).to_string(), "pong".to_owned()])?;
    std::thread::sleep(Duration::from_millis(300));
    let rate =
        (job.size <= LARGEST_WITH_A_PERIOD).then(|| format!("{}Hz", (1_000_000_000 / job.period_ns.max(1)).max(1)));
    let mut ping = vec!["-D".to_owned(), seconds.to_string(), "ping".to_owned()];
    ping.extend(rate.clone());
    ping.extend(["size".to_owned(), job.size.to_string()]);
    let printed = output(start(job, &ping)?);
    pong.kill()?;
    pong.wait()?;
    let printed = printed?;
    eprint!("{printed}");
    let pings =
        if rate.is_some() { "pings at the job's rate" } else { "each ping immediately after the previous pong" };
    summary(&printed, pings).map(Answer::Summary)
}

fn start(job: &Job, arguments: &[String]) -> Result<Child> {
    let (program, before) = placed(job, arguments.iter().any(|argument| argument == "ping"));
    let mut command = Command::new(program);
    command.args(before).args(arguments).env("CYCLONEDDS_URI", CONFIG);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// Returns the program that starts `ddsperf` on its cores and with its policy, and the arguments.
fn placed(job: &Job, is_ping: bool) -> (&'static str, Vec<String>) {
    let mut words: Vec<String> = Vec::new();
    let last = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
    match job.cores {
        Cores::Free => {}
        Cores::Cross if !is_ping => words.extend(["taskset".into(), "-c".into(), last.saturating_sub(1).to_string()]),
        Cores::Same | Cores::Cross => words.extend(["taskset".into(), "-c".into(), last.to_string()]),
    }
    if job.policy == Policy::Fifo {
        let priority = if is_ping { "50" } else { "60" };
        words.extend(["chrt".into(), "-f".into(), priority.into()]);
    }
    words.push("ddsperf".into());
    ("env", words)
}

fn output(mut child: Child) -> Result<String> {
    let mut printed = String::new();
    child.stdout.take().context("ddsperf has no output")?.read_to_string(&mut printed)?;
    child.wait()?;
    Ok(printed)
}

/// Parses the summaries of all seconds. The first is the warm-up if there are several.
fn summary(printed: &str, pings: &str) -> Result<Summary> {
    let seconds: Vec<Second> = printed.lines().filter_map(Second::read).collect();
    let counted = if seconds.len() > 1 { &seconds[1..] } else { &seconds[..] };
    let n: u64 = counted.iter().map(|second| second.count).sum();
    ensure!(n > 0, "ddsperf printed no round trips");
    let mean_of = |value: fn(&Second) -> f64| {
        counted.iter().map(|second| value(second) * second.count as f64).sum::<f64>() / n as f64
    };
    let values = json!({
        "min": counted.iter().map(|second| second.min).fold(f64::INFINITY, f64::min),
        "p50": mean_of(|second| second.p50),
        "p99": mean_of(|second| second.p99),
        "max": counted.iter().map(|second| second.max).fold(0.0, f64::max),
    });
    let lost = printed.lines().filter(|line| line.contains("ping timed out")).count() as u64;
    let note = format!(
        "round trips, {pings}; ddsperf prints a summary per second: p50 and p99 are their means weighted by count"
    );
    Ok(Summary { summary_us: values, n, lost, note })
}

/// Summary of one second, in microseconds.
struct Second {
    min: f64,
    p50: f64,
    p99: f64,
    max: f64,
    count: u64,
}

impl Second {
    /// Parses `... size 1048576 mean 1684.4us min 927.4us 50% 1578.3us 90% 2347.7us 99% 3567.2us max 4463.9us cnt 510`.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
        let micros = |name: &str| after(name)?.strip_suffix("us")?.parse().ok();
        Some(Self {
            min: micros("min")?,
            p50: micros("50%")?,
            p99: micros("99%")?,
            max: micros("max")?,
            count: after("cnt")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
[7] 1.000  vm:6 size 1024 mean 90.0us min 9.0us 50% 90.0us 90% 95.0us 99% 99.0us max 999.0us cnt 9
[7] 2.000  vm:6 size 1024 mean 20.0us min 10.0us 50% 20.0us 90% 30.0us 99% 40.0us max 50.0us cnt 300
[7] 2.000  rss:18.3MB vcsw:6623 ivcsw:2004 ddsperf:17%+36%
[7] ping timed out (total 1 times) ... sending new ping
[7] 3.000  vm:6 size 1024 mean 24.0us min 12.0us 50% 24.0us 90% 30.0us 99% 48.0us max 60.0us cnt 100
";

    #[test]
    fn joins_the_seconds_after_the_first_by_their_counts() {
        let Summary { summary_us, n, lost, .. } = summary(PRINTED, "").unwrap();
        assert_eq!(summary_us, json!({"min": 10.0, "p50": 21.0, "p99": 42.0, "max": 60.0}));
        assert_eq!((n, lost), (400, 1));
    }

    #[test]
    fn output_without_round_trips_is_an_error() {
        assert!(summary("[7] 1.000  rss:18.3MB vcsw:6623 ivcsw:2004", "").is_err());
    }
}
