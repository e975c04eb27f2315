//! Limits of what is sent to one peer: NSTART with a congestion control, and PROBING_RATE (RFC 7252, 4.7).

use viaduct_units::Mono;

/// The window of confirmable messages: additive increase, multiplicative decrease.
#[derive(Debug)]
pub(super) struct Window {
    size: f64,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self { size: 1.0 }
    }

    /// Returns the number of messages that may be in flight.
    pub(super) fn messages(&self, limit: usize) -> usize {
        (self.size as usize).clamp(1, limit.max(1))
    }

    /// Processes an acknowledgement. `used` is the number of messages that were in flight.
    pub(super) fn acknowledged(&mut self, used: usize, limit: usize) {
        // A window that is not used does not grow.
        if used >= self.messages(limit) && self.messages(limit) < limit {
            self.size += 1.0 / self.size;
        }
    }

    /// Processes a retransmission.
    pub(super) fn lost(&mut self) {
        self.size = (self.size / 2.0).max(1.0);
    }
}

/// Octets sent to a peer that has not answered since.
#[derive(Debug, Default)]
pub(super) struct Probing {
    octets: f64,
    at: Mono,
}

impl Probing {
    /// Admits a message of a number of octets at most at the given rate, after a burst.
    pub(super) fn admit(&mut self, now: Mono, octets: usize, rate: u32, burst: u32) -> bool {
        let passed = now.since(self.at).as_secs_f64();
        self.octets = (self.octets - passed * f64::from(rate)).max(0.0);
        self.at = now;
        let admitted = self.octets + octets as f64 <= f64::from(burst) || self.octets <= 0.0;
        if admitted {
            self.octets += octets as f64;
        }
        admitted
    }

    /// Processes a message of the peer.
    pub(super) fn answered(&mut self) {
        self.octets = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_window_grows_by_one_per_round_trip_and_is_halved_by_a_loss() {
        let mut window = Window::new();
        let mut sizes = vec![];
        for _ in 0..4 {
            let messages = window.messages(16);
            (0..messages).for_each(|_| window.acknowledged(messages, 16));
            sizes.push(window.messages(16));
        }
        assert!(
            sizes.windows(2).all(|pair| pair[1] >= pair[0] && pair[1] <= pair[0] + 1) && sizes[3] >= 4,
            "{sizes:?}"
        );
        window.lost();
        assert!(window.messages(16) <= sizes[3] / 2 + 1);
        assert_eq!(window.messages(1), 1);
        (0..10).for_each(|_| window.lost());
        assert_eq!(window.messages(16), 1);
    }

    #[test]
    fn a_silent_peer_receives_a_burst_and_then_one_octet_per_second() {
        let (mut probing, start) = (Probing::default(), Mono(Duration::from_secs(1000)));
        let sent = (0..1000).filter(|_| probing.admit(start, 100, 1, 1000)).count();
        assert_eq!(sent, 10);
        let sent = (0..1000).filter(|s| probing.admit(start.plus(Duration::from_secs(*s)), 100, 1, 1000)).count();
        assert_eq!(sent, 9);
        probing.answered();
        assert!(probing.admit(start, 100, 1, 1000));
    }
}
