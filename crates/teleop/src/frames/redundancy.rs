//! Number of symbols to send so that enough of them arrive.

use std::time::Duration;

/// Longest round trip for which a lost symbol is replaced on request only.
const SHORT_ROUND_TRIP: Duration = Duration::from_millis(5);
/// Highest loss that redundancy is meant for. A higher loss is left to requests.
const LOSS_MAX: f64 = 0.4;
/// Margin in standard deviations of the number of lost symbols.
const DEVIATIONS: f64 = 2.0;

/// Returns the number of symbols to send so that `needed` of them are likely to arrive.
///
/// A request costs a round trip. If that is short, redundancy costs more than it saves.
pub(super) fn symbols_to_send(needed: u32, loss: f64, round_trip: Duration) -> u32 {
    if round_trip <= SHORT_ROUND_TRIP || needed == 0 || loss <= 0.0 {
        return needed;
    }
    let loss = loss.min(LOSS_MAX);
    let needed_f = f64::from(needed);
    let lost = needed_f * loss / (1.0 - loss);
    let margin = DEVIATIONS * (needed_f * loss).sqrt() / (1.0 - loss);
    needed + (lost + margin).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_in_advance_is_for_long_round_trips_and_random_loss() {
        let near = Duration::from_micros(300);
        let far = Duration::from_millis(20);
        assert_eq!(symbols_to_send(272, 0.05, near), 272);
        assert_eq!(symbols_to_send(272, 0.0, far), 272);
        // 14.3 lost, and a margin of 7.8.
        assert_eq!(symbols_to_send(272, 0.05, far), 272 + 23);
        assert_eq!(symbols_to_send(0, 0.05, far), 0);
        assert!(symbols_to_send(100, 1.0, far) < 200);
    }
}
