//! One packet after the other, at the pace of the paper's tests.

use std::time::Duration;

use crate::error::BenchError;
use crate::sys;

/// How long a packet is waited for before it counts as lost.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Does it so many times, `rate_hz` a second, with its index and the number that its packet carries. One that takes longer
/// than a period puts the next one off.
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
    fn packets_are_numbered_and_not_faster_than_the_pace() {
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
