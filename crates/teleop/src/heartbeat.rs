//! Heartbeats: the round trip, the loss and the clock of the peer.

use std::time::Duration;

use viaduct_units::Mono;

use crate::{
    clock::PeerClock,
    micros,
    round_trip::RoundTrip,
    wire::{Echo, Timing},
};

/// The quality of the link, as measured by heartbeats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkQuality {
    /// `true` if a heartbeat has arrived recently.
    pub up: bool,
    /// Smoothed round trip, or `None` before the first measurement.
    pub round_trip: Option<Duration>,
    /// Share of lost heartbeats on the way to this end, 0 to 1, of the last 128.
    pub loss_in: f64,
    /// Share of lost heartbeats on the way to the peer, 0 to 1, of the last 128.
    pub loss_out: f64,
    /// Clock of the peer minus own clock, or `None` before the first measurement.
    pub clock_offset: Option<ClockOffset>,
}

/// The difference between two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Clock of the peer minus own clock in microseconds, modulo 2^32.
    pub micros: u32,
    /// Largest error.
    pub uncertainty: Duration,
}

/// The heartbeats of one end.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    interval: Duration,
    timeout: Duration,
    /// Time of the next heartbeat.
    due: Mono,
    sequence: u32,
    /// Latest heartbeat of the peer, and its arrival.
    latest: Option<Latest>,
    /// Bit of each of the last heartbeats of the peer, the latest first: `true` if it has arrived.
    arrived: u128,
    /// Number of heartbeats of the peer that `arrived` covers, at most 128.
    expected: u32,
    loss_out: f64,
    round_trip: RoundTrip,
    pub(crate) clock: PeerClock,
    /// Time of sending of the latest own heartbeat that the peer has echoed.
    echoed: Option<Mono>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    epoch: u32,
    sequence: u32,
    sent_us: u32,
    arrival: Mono,
}

impl Heartbeats {
    pub(crate) fn new(interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            timeout,
            due: Mono::default(),
            sequence: 0,
            latest: None,
            arrived: 0,
            expected: 0,
            loss_out: 0.0,
            round_trip: RoundTrip::default(),
            clock: PeerClock::default(),
            echoed: None,
        }
    }

    /// Processes the numbers and times of a heartbeat of the peer. Returns `false` if a later one has arrived before.
    pub(crate) fn handle(&mut self, now: Mono, own_epoch: u32, peer_epoch: u32, timing: &Timing) -> bool {
        let ahead = match self.latest.filter(|latest| latest.epoch == peer_epoch) {
            Some(latest) => timing.sequence.wrapping_sub(latest.sequence).cast_signed(),
            None => {
                (self.arrived, self.expected) = (0, 0);
                1
            }
        };
        let Ok(ahead @ 1..) = u32::try_from(ahead) else {
            self.arrived |= 1_u128.checked_shl(ahead.unsigned_abs()).unwrap_or(0);
            return false;
        };
        self.arrived = self.arrived.checked_shl(ahead).unwrap_or(0) | 1;
        self.expected = self.expected.saturating_add(ahead).min(128);
        let (sequence, sent_us) = (timing.sequence, timing.sent_us);
        self.latest = Some(Latest { epoch: peer_epoch, sequence, sent_us, arrival: now });
        self.loss_out = 1.0 - f64::from(timing.arrived_of_128) / 128.0;
        if let Some(echo) = timing.echo.filter(|echo| echo.epoch == own_epoch) {
            self.measure(now, sent_us, &echo);
        }
        true
    }

    fn measure(&mut self, now: Mono, sent_us: u32, echo: &Echo) {
        let since_sent = micros::of_clock(now).wrapping_sub(echo.sent_us);
        let Some(round_trip_us) = since_sent.checked_sub(echo.hold_us) else { return };
        let round_trip = micros::duration(round_trip_us);
        self.round_trip.measure(now, round_trip);
        self.clock.measure(now, sent_us, round_trip);
        self.echoed = Some(Mono(now.0.saturating_sub(micros::duration(since_sent))));
    }

    /// Returns `true` if a heartbeat is due.
    pub(crate) fn is_due(&self, now: Mono) -> bool {
        self.due <= now
    }

    /// Returns the time of the next heartbeat.
    pub(crate) const fn due(&self) -> Mono {
        self.due
    }

    /// Makes the next heartbeat due at once.
    pub(crate) const fn hurry(&mut self, now: Mono) {
        self.due = now;
    }

    /// Returns the numbers and times of the next heartbeat.
    pub(crate) fn next(&mut self, now: Mono) -> Timing {
        self.sequence = self.sequence.wrapping_add(1);
        // The schedule does not drift, and does not catch up after a pause.
        self.due = self.due.plus(self.interval);
        if self.due <= now {
            self.due = now.plus(self.interval);
        }
        let echo = self.latest.map(|latest| Echo {
            epoch: latest.epoch,
            sent_us: latest.sent_us,
            hold_us: micros::of_duration(now.since(latest.arrival)).min(u32::MAX - 1),
        });
        let lost = self.expected.saturating_sub(self.arrived.count_ones());
        let arrived_of_128 = u8::try_from(128_u32.saturating_sub(lost)).unwrap_or(0);
        Timing { sequence: self.sequence, sent_us: micros::of_clock(now), echo, arrived_of_128 }
    }

    /// Returns the time of the latest arrival.
    pub(crate) fn arrival(&self) -> Option<Mono> {
        self.latest.map(|latest| latest.arrival)
    }

    /// Returns `true` if a heartbeat has arrived recently.
    pub(crate) fn is_up(&self, now: Mono) -> bool {
        self.arrival().is_some_and(|arrival| now.since(arrival) <= self.timeout)
    }

    /// Returns the time at which the link counts as lost if no heartbeat arrives, or `None` if it is lost already.
    pub(crate) fn lost_at(&self, now: Mono) -> Option<Mono> {
        self.arrival().filter(|_| self.is_up(now)).map(|arrival| arrival.plus(self.timeout + Duration::from_nanos(1)))
    }

    /// Returns the time of sending of the latest own heartbeat that the peer has echoed.
    pub(crate) const fn echoed(&self) -> Option<Mono> {
        self.echoed
    }

    /// Forgets the peer, which has restarted: its clock may have another origin.
    pub(crate) fn restart(&mut self) {
        (self.latest, self.arrived, self.expected, self.loss_out) = (None, 0, 0, 0.0);
        (self.round_trip, self.clock, self.echoed) = (RoundTrip::default(), PeerClock::default(), None);
    }

    /// Returns the quality of the link.
    pub(crate) fn quality(&self, now: Mono) -> LinkQuality {
        let lost = self.expected.saturating_sub(self.arrived.count_ones());
        LinkQuality {
            up: self.is_up(now),
            round_trip: self.round_trip.smoothed(),
            loss_in: f64::from(lost) / f64::from(self.expected.max(1)),
            loss_out: self.loss_out,
            clock_offset: self.clock.offset(now).map(|(micros, uncertainty)| ClockOffset { micros, uncertainty }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn two_ends_measure_the_round_trip_and_the_loss() {
        let (mut a, mut b) = (Heartbeats::new(20 * MS, 300 * MS), Heartbeats::new(20 * MS, 300 * MS));
        for number in 0..200_u32 {
            let sent = Mono(20 * MS * number);
            let to_b = a.next(sent);
            // Every tenth heartbeat of `a` is lost. The way takes 5 ms.
            if number % 10 != 0 {
                assert!(b.handle(sent.plus(5 * MS), 2, 1, &to_b));
            }
            let to_a = b.next(sent.plus(7 * MS));
            assert!(a.handle(sent.plus(12 * MS), 1, 2, &to_a));
        }
        let now = Mono(20 * MS * 200);
        let quality = a.quality(now);
        assert!(quality.up && quality.round_trip == Some(10 * MS), "{quality:?}");
        assert!((quality.loss_out - 0.1).abs() < 0.02 && quality.loss_in == 0.0, "{quality:?}");
        assert!(!a.is_up(now.plus(300 * MS)));
    }

    #[test]
    fn an_older_heartbeat_is_refused() {
        let (mut a, mut b) = (Heartbeats::new(20 * MS, 300 * MS), Heartbeats::new(20 * MS, 300 * MS));
        let (first, second) = (a.next(Mono(MS)), a.next(Mono(2 * MS)));
        assert!(b.handle(Mono(3 * MS), 2, 1, &second));
        assert!(!b.handle(Mono(4 * MS), 2, 1, &first) && !b.handle(Mono(4 * MS), 2, 1, &second));
        assert!(b.quality(Mono(4 * MS)).loss_in == 0.0);
        assert!(b.handle(Mono(5 * MS), 2, 9, &first), "another epoch counts from the beginning");
    }
}
