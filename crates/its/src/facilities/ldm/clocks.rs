//! Detection of stations whose clock is wrong by whole seconds.
//!
//! ETSI times count TAI milliseconds since 2004 (`TimestampIts`, TS 102 894-2). Senders that ignore leap seconds are late by
//! the leap seconds since then: 5 s since 2017. The awareness messages of such a station are always too old for the map.
//!
//! The apparent age of an awareness message (CAM, CPM, VAM) is its reception time minus its generation time. A clock is
//! offset by n seconds if [`MESSAGES_MIN`] such messages in a row, each generated after the one before, have an age of about
//! n seconds. One message of another age starts the count again, so single replayed messages do not change anything. The
//! times alone do not distinguish a wrong clock from a whole recording that is replayed with a constant delay.
//!
//! The generation time of a CAM or VAM has 16 bits. So its age is between -32.768 s and 32.767 s, and a larger offset
//! is measured modulo 65.536 s.

use std::collections::BTreeMap;

use viaduct_units::{ITS_EPOCH_TAI, StationId, Tai};

use crate::limits::LDM_CLOCKS_MAX;

/// Minimum number of consistent messages in a row before an offset is accepted. The interval of a CAM is 0.1 s to 1 s.
pub(crate) const MESSAGES_MIN: u8 = 4;
/// Maximum distance below n seconds of an age that counts as n seconds: the receiver's own clock may be late.
const EARLY_MAX_MS: i64 = 150;
/// Maximum distance above n seconds of an age that counts as n seconds: generation, medium access and reception.
const LATE_MAX_MS: i64 = 350;
/// Maximum lead of a corrected time over the receiver's clock. A time with a larger lead is not corrected.
const AHEAD_MAX_MS: i64 = 500;
const MILLIS_PER_SECOND: i64 = 1000;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Clock offsets of other stations that the map corrects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockTolerance {
    /// None: the times of all messages are taken as sent.
    Off,
    /// The leap seconds since 2004, which Vanetza and many stations in the field ignore: 5 s late since 2017.
    #[default]
    LeapSeconds,
    /// Any constant offset of whole seconds, late or early.
    AnyWholeSecond,
}

impl ClockTolerance {
    fn accepts(self, offset: ClockOffset, now: Tai) -> bool {
        match self {
            Self::Off => false,
            Self::LeapSeconds => i64::from(offset.late_s) == leap_seconds(now),
            Self::AnyWholeSecond => true,
        }
    }
}

/// A constant offset of a station's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Seconds by which the clock is late; negative if it is early, never 0 in a [`ClockReport`].
    pub late_s: i32,
}

impl ClockOffset {
    /// Returns the time at which a message was generated if its sender's clock shows `sent` then.
    #[must_use]
    pub fn correct(self, sent: Tai) -> Tai {
        Tai::from_nanos(sent.nanos().saturating_add(self.nanos()))
    }

    /// Returns the time that the sender's clock shows at `time`.
    #[must_use]
    pub fn as_sent(self, time: Tai) -> Tai {
        Tai::from_nanos(time.nanos().saturating_sub(self.nanos()))
    }

    fn nanos(self) -> i64 {
        i64::from(self.late_s) * MILLIS_PER_SECOND * NANOS_PER_MILLI
    }
}

/// A station whose clock has been found to be offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReport {
    /// Identifier of the station.
    pub station_id: StationId,
    /// Offset of the station's clock.
    pub offset: ClockOffset,
    /// `true` if the map corrects the times of this station; `false` if [`ClockTolerance`] excludes the offset.
    pub corrected: bool,
}

/// The clock of one station that is offset, or may be.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Accepted offset in seconds; 0 until one is accepted.
    offset_s: i32,
    /// Offset of the last messages in seconds, and the number of these messages, up to [`MESSAGES_MIN`].
    candidate_s: i32,
    messages: u8,
    /// Generation time of the last of these messages.
    generation: Tai,
    /// Value of [`StationClocks::turn`] at that message.
    turn: u64,
}

/// The clocks of other stations: an entry for each station with an apparent offset, at most [`LDM_CLOCKS_MAX`].
#[derive(Debug)]
pub(crate) struct StationClocks {
    tolerance: ClockTolerance,
    by_station: BTreeMap<StationId, Clock>,
    /// The same stations in the order of their last messages.
    by_turn: BTreeMap<u64, StationId>,
    turn: u64,
}

impl StationClocks {
    pub(crate) const fn new(tolerance: ClockTolerance) -> Self {
        Self { tolerance, by_station: BTreeMap::new(), by_turn: BTreeMap::new(), turn: 0 }
    }

    /// Stores the generation time of a received awareness message. Returns a report if the station's offset has changed
    /// and is not 0.
    pub(crate) fn observe(&mut self, now: Tai, station_id: StationId, generation: Tai) -> Option<ClockReport> {
        let apparent = whole_seconds(age_ms(now, generation));
        let known = self.by_station.get(&station_id).copied();
        if known.is_none() && matches!(apparent, None | Some(0)) {
            return None;
        }
        let before = known.unwrap_or(Clock { offset_s: 0, candidate_s: 0, messages: 0, generation, turn: 0 });
        let clock = before.with(apparent, generation);
        self.store(station_id, clock);
        if clock.offset_s == before.offset_s || clock.offset_s == 0 {
            return None;
        }
        let offset = ClockOffset { late_s: clock.offset_s };
        Some(ClockReport { station_id, offset, corrected: self.tolerance.accepts(offset, now) })
    }

    /// Returns the offset by which the map corrects a time that the station has sent. It is 0 if the setting excludes the
    /// station's offset, or if the corrected time would be in the future.
    pub(crate) fn correction(&self, now: Tai, station_id: StationId, sent: Tai) -> ClockOffset {
        let Some(clock) = self.by_station.get(&station_id) else {
            return ClockOffset::default();
        };
        let offset = ClockOffset { late_s: clock.offset_s };
        let in_future = age_ms(now, offset.correct(sent)) < -AHEAD_MAX_MS;
        if !in_future && self.tolerance.accepts(offset, now) { offset } else { ClockOffset::default() }
    }

    /// Accepts messages that were generated before the observed ones, because a capture begins again. Offsets remain.
    pub(crate) fn begin_again(&mut self) {
        for clock in self.by_station.values_mut() {
            clock.messages = 0;
            clock.generation = Tai::from_nanos(i64::MIN);
        }
    }

    /// Stores the clock of a station, or deletes it if it is not offset. The station with the oldest last message makes room.
    fn store(&mut self, station_id: StationId, mut clock: Clock) {
        if let Some(before) = self.by_station.remove(&station_id) {
            self.by_turn.remove(&before.turn);
        }
        if clock.is_right() {
            return;
        }
        if self.by_station.len() >= LDM_CLOCKS_MAX
            && let Some((_, oldest)) = self.by_turn.pop_first()
        {
            self.by_station.remove(&oldest);
        }
        clock.turn = self.turn;
        self.turn += 1;
        self.by_turn.insert(clock.turn, station_id);
        self.by_station.insert(station_id, clock);
    }
}

impl Clock {
    /// Returns the clock after a message with that apparent offset; `None` is an age that is not about whole seconds.
    fn with(self, apparent: Option<i32>, generation: Tai) -> Self {
        let Some(apparent) = apparent else {
            return Self { messages: 0, ..self };
        };
        if apparent != self.candidate_s || self.messages == 0 && generation > self.generation {
            return Self { candidate_s: apparent, messages: 1, generation, ..self };
        }
        if generation <= self.generation {
            // The same message again, or an older one.
            return self;
        }
        let messages = self.messages.saturating_add(1).min(MESSAGES_MIN);
        let offset_s = if messages == MESSAGES_MIN { apparent } else { self.offset_s };
        Self { offset_s, candidate_s: apparent, messages, generation, ..self }
    }

    /// Returns `true` if the station has no offset, and its last message had none.
    const fn is_right(&self) -> bool {
        self.offset_s == 0 && self.candidate_s == 0
    }
}

/// Returns the leap seconds from 2004 to `now`.
fn leap_seconds(now: Tai) -> i64 {
    let tai_minus_utc = |time: Tai| time.nanos().saturating_sub(time.unix_nanos());
    (tai_minus_utc(now) - tai_minus_utc(ITS_EPOCH_TAI)) / (MILLIS_PER_SECOND * NANOS_PER_MILLI)
}

/// Returns the apparent age of a message in milliseconds: negative if it was generated after its reception.
fn age_ms(now: Tai, generation: Tai) -> i64 {
    now.nanos().saturating_sub(generation.nanos()) / NANOS_PER_MILLI
}

/// Returns the age in whole seconds, or `None` if it is not about a whole number of seconds.
fn whole_seconds(age_ms: i64) -> Option<i32> {
    let seconds = (age_ms.saturating_add(EARLY_MAX_MS)).div_euclid(MILLIS_PER_SECOND);
    let beyond = age_ms.saturating_sub(seconds.saturating_mul(MILLIS_PER_SECOND));
    i32::try_from(seconds).ok().filter(|_| beyond <= LATE_MAX_MS)
}

#[cfg(test)]
mod tests {
    use viaduct_units::TimestampIts;

    use super::*;

    const STATION: StationId = StationId(7);

    fn at(millis: i64) -> Tai {
        Tai::from_nanos(TimestampIts(650_000_000_000).tai().nanos() + millis * NANOS_PER_MILLI)
    }

    fn clocks() -> StationClocks {
        StationClocks::new(ClockTolerance::LeapSeconds)
    }

    /// Observes one message each second, with these ages. Returns the reports with their position.
    fn observe(clocks: &mut StationClocks, start_ms: i64, ages_ms: &[i64]) -> Vec<(usize, ClockReport)> {
        let mut reports = Vec::new();
        for (index, age) in ages_ms.iter().enumerate() {
            let now = start_ms + i64::try_from(index).unwrap() * 1000;
            reports.extend(clocks.observe(at(now), STATION, at(now - age)).map(|report| (index, report)));
        }
        reports
    }

    fn report(late_s: i32, corrected: bool) -> ClockReport {
        ClockReport { station_id: STATION, offset: ClockOffset { late_s }, corrected }
    }

    #[test]
    fn a_station_without_leap_seconds_is_reported_once() {
        let mut clocks = clocks();
        let found = observe(&mut clocks, 0, &[5010, 5200, 4950, 5040, 5100, 5000, 5300, 5010, 5010, 5010]);
        assert_eq!(found, [(3, report(5, true))]);
        assert_eq!(clocks.correction(at(20_000), STATION, at(14_900)).late_s, 5);
        assert_eq!(clocks.correction(at(20_000), StationId(8), at(14_900)).late_s, 0);
    }

    #[test]
    fn a_right_clock_needs_no_entry() {
        let mut clocks = clocks();
        assert_eq!(observe(&mut clocks, 0, &[20, 300, -100, 500, 800, 20]), []);
        assert!(clocks.by_station.is_empty() && clocks.by_turn.is_empty());
    }

    #[test]
    fn jitter_beyond_half_a_second_is_no_constant_offset() {
        let mut clocks = clocks();
        assert_eq!(observe(&mut clocks, 0, &[5010, 5500, 5010, 5600, 5010, 4700, 5010, 5010]), []);
    }

    /// A receiver that gets old messages of a station beside its current ones keeps the clock of the station.
    #[test]
    fn messages_of_another_age_in_between_start_again() {
        let mut clocks = clocks();
        assert_eq!(observe(&mut clocks, 0, &[5010, 5010, 5010, 10, 5010, 5010, 5010, 10]), []);
        assert!(clocks.by_station.is_empty());
    }

    #[test]
    fn a_repeated_message_counts_once() {
        let mut clocks = clocks();
        for millis in 0..20 {
            assert_eq!(clocks.observe(at(5000 + millis), STATION, at(0)), None);
        }
        assert_eq!(clocks.correction(at(5100), STATION, at(0)).late_s, 0);
    }

    #[test]
    fn a_time_is_not_corrected_into_the_future() {
        let mut clocks = clocks();
        observe(&mut clocks, 0, &[5010; 4]);
        for (age_ms, late_s) in [(5010, 5), (4500, 5), (4400, 0), (10, 0), (-100, 0), (6010, 5), (60_000, 5)] {
            assert_eq!(clocks.correction(at(10_000), STATION, at(10_000 - age_ms)).late_s, late_s, "{age_ms}");
        }
    }

    /// A message from the future, sent in the station's name, does not keep out the messages after it.
    #[test]
    fn a_forged_time_does_not_stop_the_detection() {
        let mut clocks = clocks();
        for forged in [-86_400_000, -10_000, -700] {
            clocks.observe(at(0), STATION, at(-forged));
            assert_eq!(observe(&mut clocks, 0, &[5010; 4]).len(), usize::from(forged == -86_400_000), "{forged}");
            assert_eq!(clocks.correction(at(4000), STATION, at(-1010)).late_s, 5, "{forged}");
        }
    }

    #[test]
    fn a_repeated_capture_keeps_its_offsets() {
        let mut clocks = clocks();
        observe(&mut clocks, 60_000, &[5010; 10]);
        clocks.begin_again();
        assert_eq!(clocks.correction(at(10), STATION, at(-5000)).late_s, 5);
        assert_eq!(observe(&mut clocks, 0, &[5010; 10]), []);
        assert_eq!(observe(&mut clocks, 10_000, &[7010; 10]), [(3, report(7, false))]);
    }

    #[test]
    fn an_offset_that_jumps_is_found_again() {
        let mut clocks = StationClocks::new(ClockTolerance::AnyWholeSecond);
        let ages = [vec![5010; 5], vec![7010; 5], vec![10; 5], vec![5010; 5]].concat();
        let found = observe(&mut clocks, 0, &ages);
        assert_eq!(found, [(3, report(5, true)), (8, report(7, true)), (18, report(5, true))]);
    }

    #[test]
    fn the_setting_decides_which_offsets_are_corrected() {
        use ClockTolerance::{AnyWholeSecond, LeapSeconds, Off};
        for (tolerance, age_ms, late_s, corrected) in [
            (Off, 5010, 5, false),
            (LeapSeconds, 5010, 5, true),
            (LeapSeconds, 4010, 4, false),
            (LeapSeconds, -4990, -5, false),
            (AnyWholeSecond, 4010, 4, true),
            (AnyWholeSecond, -4990, -5, true),
        ] {
            let mut clocks = StationClocks::new(tolerance);
            assert_eq!(
                observe(&mut clocks, 0, &[age_ms; 5]),
                [(3, report(late_s, corrected))],
                "{tolerance:?} {age_ms}"
            );
            let corrected_s = clocks.correction(at(4000), STATION, at(4000 - age_ms)).late_s;
            assert_eq!(corrected_s, if corrected { late_s } else { 0 }, "{tolerance:?} {age_ms}");
        }
    }

    /// Forged stations cannot grow the table, and a station that goes on sending keeps its entry.
    #[test]
    fn the_table_is_bounded() {
        let mut clocks = clocks();
        let stations = i64::try_from(LDM_CLOCKS_MAX).unwrap() * 2;
        for index in 0..stations {
            let forged = u32::try_from(1000 + index).unwrap();
            clocks.observe(at(index), StationId(forged), at(index - 5000));
            clocks.observe(at(index), STATION, at(index - 5000));
        }
        assert_eq!((clocks.by_station.len(), clocks.by_turn.len()), (LDM_CLOCKS_MAX, LDM_CLOCKS_MAX));
        assert_eq!(clocks.correction(at(stations), STATION, at(stations - 5000)).late_s, 5);
    }

    #[test]
    fn any_time_has_an_age() {
        let mut clocks = clocks();
        for now in [i64::MIN, -1, 0, i64::MAX].map(Tai::from_nanos) {
            for generation in [i64::MIN, -1, 0, i64::MAX].map(Tai::from_nanos) {
                clocks.observe(now, STATION, generation);
                let corrected = clocks.correction(now, STATION, generation).correct(generation);
                assert!(corrected >= generation);
            }
        }
    }
}
