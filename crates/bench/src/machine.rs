//! The machine on which a report was measured, and its other load.

use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The commit that was built, with `-dirty` if files of the binary differed from it; `unknown` outside a repository.
pub(crate) const COMMIT: &str = env!("VIADUCT_COMMIT");

/// The machine and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Number of cores that this process may use.
    pub cpus: usize,
    /// Name, release and version of the kernel.
    pub kernel: String,
    /// Load average of the minute before the run; 0 if unknown.
    pub load: f64,
    /// CPU steal: share of the cores' time during the run that the hypervisor gave to other guests, 0 to 1.
    pub steal: f64,
    /// CPU pressure: share of the run's time in which a runnable thread waited for a core, 0 to 1 (pressure stall
    /// information), or `None` if the kernel does not report it.
    pub psi_cpu: Option<f64>,
}

/// A measurement of the machine's state over a run.
pub(crate) struct MachineMonitor {
    load: f64,
    before: CpuTime,
    waited: Option<Duration>,
    started: Instant,
}

impl MachineMonitor {
    pub(crate) fn start() -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok();
        let load = load.and_then(|text| text.split_whitespace().next()?.parse().ok());
        Self { load: load.unwrap_or(0.0), before: CpuTime::read(), waited: waited(), started: Instant::now() }
    }

    pub(crate) fn stop(self) -> Machine {
        Machine {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel(),
            load: self.load,
            steal: CpuTime::read().stolen_since(self.before),
            psi_cpu: self.waited.zip(waited()).map(|(before, after)| {
                after.saturating_sub(before).as_secs_f64() / self.started.elapsed().as_secs_f64().max(1e-6)
            }),
        }
    }
}

/// Returns the time in which a runnable thread waited for a core since the start of the system
/// (Documentation/accounting/psi).
fn waited() -> Option<Duration> {
    parse_pressure(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

/// Parses the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS`; a line for `full` follows it.
fn parse_pressure(text: &str) -> Option<Duration> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

fn kernel() -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let parts = ["ostype", "osrelease", "version"].map(read);
    parts.map(|part| part.trim().to_owned()).join(" ").trim().to_owned()
}

/// Time of all cores since the start of the system, in ticks (proc_stat(5)).
#[derive(Clone, Copy, Default)]
struct CpuTime {
    total: u64,
    stolen: u64,
}

impl CpuTime {
    fn read() -> Self {
        fs::read_to_string("/proc/stat").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// Parses `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest time is part of user and
    /// nice.
    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        Self { total: ticks.iter().take(8).sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    fn stolen_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 { 0.0 } else { self.stolen.saturating_sub(earlier.stolen) as f64 / total as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_steal_as_a_share() {
        let before = CpuTime::parse("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2 3");
        let after = CpuTime::parse("cpu  20 0 20 140 0 0 0 20 50 50");
        assert_eq!((before.total, after.total), (100, 200));
        assert_eq!(after.stolen_since(before), 0.1);
        assert_eq!(before.stolen_since(before), 0.0);
    }

    #[test]
    fn parses_the_pressure_of_some() {
        let text = "some avg10=0.82 avg60=4.64 avg300=5.26 total=3000000\nfull avg10=0.00 total=7\n";
        assert_eq!(parse_pressure(text), Some(Duration::from_secs(3)));
        assert_eq!(parse_pressure("full total=1"), None);
    }

    #[test]
    fn unknown_times_are_zero() {
        assert_eq!(CpuTime::parse("").stolen_since(CpuTime::default()), 0.0);
    }
}
