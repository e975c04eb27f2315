//! Packets sent one at a time at a fixed rate.

use std::time::Duration;

use crate::error::BenchError;
use crate::sys;

/// Time after which a packet counts as lost.
pub(super) const TIMEOUT: Duration = Duration::from_millis(500);

/// Calls a function for each of `packets` packets, `rate_hz` per second, with the packet's index and number. A call
/// that takes longer than a period delays the next one.
pub(super) fn each(
    packets: usize,
    rate_hz: u32,
    mut send: impl FnMut(usize, u16) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let period = Duration::from_secs(1) / rate_hz.max(1);
    let mut due = sys::monotonic();
    for (index, number) in (0..packets).zip((0..=u16::MAX).cycle()) {
        due = sys::monotonic().max(due + period);
        sys::sleep_until(due);
        send(index, number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_packets_and_keeps_the_rate() {
        let (start, mut numbers) = (sys::monotonic(), Vec::new());
        each(3, 1000, |index, number| {
            numbers.push((index, number));
            Ok(())
        })
        .unwrap();
        assert_eq!(numbers, [(0, 0), (1, 1), (2, 2)]);
        assert!(sys::monotonic() - start >= Duration::from_millis(3));
    }
}
