//! Signals at one station.

use std::time::Duration;

use viaduct_units::{Metres, Mono};

use super::LossReason;
use crate::limits::ON_AIR_MAX;

/// Time from the start of a signal until a station detects that the channel is busy; within a slot of 13 us (IEEE
/// 802.11).
const SENSING: Duration = Duration::from_micros(8);

/// A frame's signal at one station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    pub(super) begins: Mono,
    pub(super) ends: Mono,
    /// Distance to the sender.
    pub(super) distance: Metres,
    pub(super) fate: Fate,
}

/// The fate of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The signal is received.
    Received,
    /// The signal is lost. The first reason counts.
    Lost(LossReason),
}

/// The signals at one station.
#[derive(Debug, Default)]
pub(super) struct Air {
    /// Signals with their numbers, at most [`ON_AIR_MAX`].
    signals: Vec<(u64, Signal)>,
    /// Number of the next signal.
    next: u64,
    /// End of the station's own transmission.
    sends_until: Mono,
    /// Time for which the channel has been busy.
    busy: Duration,
    /// Time up to which `busy` is counted.
    busy_counted_until: Mono,
}

impl Signal {
    fn overlaps(&self, other: &Self) -> bool {
        self.begins < other.ends && other.begins < self.ends
    }

    fn lose(&mut self, reason: LossReason) {
        if self.fate == Fate::Received {
            self.fate = Fate::Lost(reason);
        }
    }

    /// Marks each of two overlapping signals as lost, unless capture protects it.
    fn collide(&mut self, other: &mut Self, capture: f64) {
        if !self.overlaps(other) {
            return;
        }
        if other.distance.value() < self.distance.value() * capture {
            self.lose(LossReason::Collided);
        }
        if self.distance.value() < other.distance.value() * capture {
            other.lose(LossReason::Collided);
        }
    }
}

impl Air {
    /// Returns the total time for which the channel has been busy here.
    pub(super) const fn busy(&self) -> Duration {
        self.busy
    }

    /// Returns the time until which the channel is detected as busy, or `None` if it seems free.
    pub(super) fn busy_until(&self, now: Mono) -> Option<Mono> {
        let sensed = self.signals.iter().filter(|(_, signal)| signal.begins.plus(SENSING) <= now && now < signal.ends);
        let sensed_until = sensed.map(|(_, signal)| signal.ends).max();
        sensed_until.max(Some(self.sends_until).filter(|until| *until > now))
    }

    /// Starts an own transmission, during which nothing is received.
    pub(super) fn transmit(&mut self, now: Mono, until: Mono) {
        self.sends_until = until;
        self.count_busy(now, until);
        for (_, signal) in self.signals.iter_mut().filter(|(_, signal)| signal.ends > now) {
            signal.lose(LossReason::Sending);
        }
    }

    /// Starts a signal. Returns its number, or `None` if there are too many.
    ///
    /// A signal is lost to another one whose sender is less than `capture` times as far.
    pub(super) fn arrive(&mut self, now: Mono, mut signal: Signal, capture: Option<f64>) -> Option<u64> {
        self.signals.retain(|(_, old)| old.ends >= now);
        self.count_busy(signal.begins, signal.ends);
        if signal.begins < self.sends_until {
            signal.lose(LossReason::Sending);
        }
        if let Some(capture) = capture {
            for (_, other) in &mut self.signals {
                signal.collide(other, capture);
            }
        }
        if self.signals.len() >= ON_AIR_MAX {
            return None;
        }
        self.next += 1;
        self.signals.push((self.next, signal));
        Some(self.next)
    }

    /// Ends a signal. Returns its fate.
    pub(super) fn depart(&mut self, number: u64) -> Fate {
        let index = self.signals.iter().position(|(other, _)| *other == number);
        index.map_or(Fate::Lost(LossReason::AirFull), |index| self.signals.swap_remove(index).1.fate)
    }

    fn count_busy(&mut self, begins: Mono, ends: Mono) {
        self.busy += ends.since(begins.max(self.busy_counted_until));
        self.busy_counted_until = self.busy_counted_until.max(ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: Option<f64> = Some(2.0);

    fn us(us: u64) -> Mono {
        Mono(Duration::from_micros(us))
    }

    fn signal(begins: u64, ends: u64, distance: f64) -> Signal {
        Signal { begins: us(begins), ends: us(ends), distance: Metres(distance), fate: Fate::Received }
    }

    /// Returns the fates of signals that arrive in this order.
    fn fates(signals: &[Signal], capture: Option<f64>) -> Vec<Fate> {
        let mut air = Air::default();
        let numbers: Vec<u64> = signals.iter().filter_map(|one| air.arrive(one.begins, *one, capture)).collect();
        numbers.into_iter().map(|number| air.depart(number)).collect()
    }

    #[test]
    fn overlapping_signals_are_lost() {
        let lost = Fate::Lost(LossReason::Collided);
        assert_eq!(fates(&[signal(0, 100, 50.0), signal(99, 200, 60.0)], CAPTURE), [lost, lost]);
        assert_eq!(fates(&[signal(0, 100, 50.0), signal(99, 200, 60.0)], None), [Fate::Received; 2]);
        // `arrive` removes signals that ended before. The first signal ends when the second begins, so its fate is
        // kept.
        assert_eq!(fates(&[signal(0, 100, 50.0), signal(100, 200, 60.0)], CAPTURE), [Fate::Received; 2]);
    }

    #[test]
    fn the_much_nearer_signal_is_captured() {
        let lost = Fate::Lost(LossReason::Collided);
        assert_eq!(fates(&[signal(0, 100, 50.0), signal(50, 200, 100.0)], CAPTURE), [Fate::Received, lost]);
        assert_eq!(fates(&[signal(0, 100, 100.0), signal(50, 200, 50.0)], CAPTURE), [lost, Fate::Received]);
    }

    #[test]
    fn a_sending_station_receives_nothing() {
        let mut air = Air::default();
        let before = air.arrive(us(0), signal(0, 100, 10.0), CAPTURE).unwrap();
        air.transmit(us(50), us(150));
        assert_eq!(air.depart(before), Fate::Lost(LossReason::Sending));
        let after = air.arrive(us(140), signal(140, 240, 10.0), CAPTURE).unwrap();
        assert_eq!(air.depart(after), Fate::Lost(LossReason::Sending));
        assert_eq!(air.busy(), Duration::from_micros(240));
    }

    #[test]
    fn a_signal_is_sensed_within_a_slot_and_not_at_once() {
        let mut air = Air::default();
        air.arrive(us(0), signal(0, 100, 10.0), CAPTURE);
        assert_eq!([7, 8, 99, 100].map(|at| air.busy_until(us(at))), [None, Some(us(100)), Some(us(100)), None]);
    }

    #[test]
    fn the_air_is_bounded() {
        let mut air = Air::default();
        let taken = (0..1000).filter(|_| air.arrive(us(0), signal(0, 100, 1.0), None).is_some()).count();
        assert_eq!(taken, ON_AIR_MAX);
        air.arrive(us(101), signal(101, 200, 1.0), None);
        assert_eq!(air.signals.len(), 1);
    }
}
