//! The huge pages that the kernel provided: it may silently provide none.

use std::ops::Range;

/// Returns the number of bytes of a range of this process's memory that are in huge pages now, or 0 if the system does
/// not report it. The range must not share a mapping with other memory.
pub(super) fn bytes_in(range: Range<usize>) -> usize {
    std::fs::read_to_string("/proc/self/smaps").map_or(0, |smaps| bytes_of(&smaps, range))
}

/// Sums `AnonHugePages` of the mappings within a range, proc_pid_smaps(5).
fn bytes_of(smaps: &str, range: Range<usize>) -> usize {
    let mut inside = false;
    let mut bytes = 0;
    for line in smaps.lines() {
        if let Some(mapping) = mapping_of(line) {
            inside = range.start <= mapping.start && mapping.end <= range.end;
        } else if let Some(kib) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            bytes += kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1024;
        }
    }
    bytes
}

/// Parses the range of a mapping's first line, `7f1200000000-7f1200400000 rw-p ...`.
fn mapping_of(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
        200000-400000 rw-p 00000000 00:00 0 \n\
        Size:               2048 kB\n\
        AnonHugePages:      2048 kB\n\
        400000-a00000 rw-p 00000000 00:00 0    [anon: x]\n\
        Size:               6144 kB\n\
        AnonHugePages:      4096 kB\n\
        VmFlags: rd wr mr mw me ac sd hg \n\
        a00000-a01000 ---p 00000000 00:00 0 \n\
        AnonHugePages:         0 kB\n";

    #[test]
    fn only_the_mappings_of_the_range_count() {
        assert_eq!(bytes_of(SMAPS, 0x40_0000..0xA0_0000), 4 << 20);
        assert_eq!(bytes_of(SMAPS, 0x20_0000..0xA0_0000), 6 << 20);
        assert_eq!(bytes_of(SMAPS, 0x50_0000..0xA0_0000), 0);
    }
}
