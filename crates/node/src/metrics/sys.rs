//! Figures of the process, read from `/proc` (proc(5)), under the names that Prometheus clients use.

use super::family::{Families, Kind};

/// Clock ticks per second in `/proc` (USER_HZ). It is 100 on every architecture of Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Adds the figures of the process. A figure that cannot be read is omitted.
pub(super) fn record(families: &mut Families) {
    let mut add = |name, kind, help, value: Option<f64>| {
        if let Some(value) = value {
            families.number(name, kind, help, Vec::new(), value);
        }
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let system = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = cpu_seconds(&stat);
    let start = start_seconds(&stat, &system);
    let help = "CPU time of the process, user and system.";
    let kind = Kind::Counter;
    add("process_cpu_seconds_total", kind, help, cpu);
    add("process_start_time_seconds", Kind::Gauge, "Start of the process since the Unix epoch.", start);
    let resident = kibibytes(&status, "VmRSS:").map(|kib| kib * 1024.0);
    add("process_resident_memory_bytes", Kind::Gauge, "Resident memory of the process.", resident);
    let size = kibibytes(&status, "VmSize:").map(|kib| kib * 1024.0);
    add("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory of the process.", size);
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    add("process_open_fds", Kind::Gauge, "Open file descriptors.", open);
    add("process_max_fds", Kind::Gauge, "Highest number of open file descriptors.", descriptors_max(&limits));
}

/// Returns a field of `/proc/self/stat` by its number in proc(5). The name of the program, field 2, may have spaces.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(number - 3)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS_PER_SECOND)
}

fn start_seconds(stat: &str, system: &str) -> Option<f64> {
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + field(stat, 22)? / TICKS_PER_SECOND)
}

fn kibibytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn descriptors_max(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_brackets_is_skipped() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 3 0 1000 1 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(start_seconds(stat, "cpu 1\nbtime 100\n"), Some(110.0));
        assert_eq!([cpu_seconds(""), start_seconds(stat, "")], [None, None]);
    }

    #[test]
    fn this_process_has_all_figures() {
        let mut families = Families::default();
        record(&mut families);
        assert_eq!(families.to_string().matches("# TYPE process_").count(), 6);
    }
}
