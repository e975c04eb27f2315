//! Originating message table: the events of this station (EN 302 637-3, 8.2; TS 103 831, 8.2).

use std::{collections::BTreeMap, time::Duration};

use viaduct_units::{Mono, Now, Tai};

use super::{DenDrop, DenError, DenmHead, OwnDenm};
use crate::{
    Repetition,
    facilities::{denm::ActionId, services::schedule::LATE_MAX},
    geonet::Area,
    limits::DEN_ORIGINATED_MAX,
};

/// Shortest repetition interval; a shorter one is raised to it. The value is not from the standard: it limits the rate
/// of one event.
pub(super) const REPETITION_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// `T_Repetition` and `T_RepetitionDuration`.
#[derive(Clone, Copy, Debug)]
struct Repeating {
    interval: Duration,
    next: Mono,
    /// Time after which no repetition is sent.
    until: Mono,
}

/// Destination areas of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Audience {
    /// Area of the last report.
    pub(super) asked: Area,
    /// Area that contains the areas of all reports.
    pub(super) all: Area,
}

/// One event.
#[derive(Debug)]
struct Originated {
    denm: OwnDenm,
    audience: Audience,
    /// `T_O_Validity`.
    expires: Mono,
    repeating: Option<Repeating>,
    /// Time of the last report.
    reported_at: Mono,
    /// `true` if another station has negated the event since the last report.
    negated: bool,
}

/// Events of this station, at most [`DEN_ORIGINATED_MAX`]. Ended events, and negations of other stations' events, stay
/// as long as there is room.
#[derive(Debug, Default)]
pub(super) struct OriginatingTable {
    events: BTreeMap<ActionId, Originated>,
    /// Ends of events that were evicted in favour of a new event before all their repetitions had been sent.
    ends_evicted: u64,
}

impl OriginatingTable {
    /// Returns the number of ends that were evicted before all their repetitions had been sent.
    pub(super) const fn ends_evicted(&self) -> u64 {
        self.ends_evicted
    }

    pub(super) fn contains(&self, action_id: ActionId) -> bool {
        self.events.contains_key(&action_id)
    }

    /// Returns `true` if the event has not ended and is valid.
    pub(super) fn is_active(&self, now: Mono, action_id: ActionId) -> bool {
        let reported_at = |event: &Originated| event.denm.input.termination.is_none() && event.expires > now;
        self.events.get(&action_id).is_some_and(reported_at)
    }

    /// Returns the last DENM of the event if it has not ended.
    pub(super) fn active(&self, action_id: ActionId) -> Result<&OwnDenm, DenError> {
        let event = self.events.get(&action_id).ok_or(DenError::UnknownAction)?;
        if event.denm.input.termination.is_some() {
            return Err(DenError::Terminated);
        }
        Ok(&event.denm)
    }

    /// Returns the audience of the event.
    pub(super) fn audience(&self, action_id: ActionId) -> Option<Audience> {
        self.events.get(&action_id).map(|event| event.audience)
    }

    /// Handles a negation of an event of this station. It is reported once, until the next report of the event.
    pub(super) fn negated(&mut self, head: &DenmHead) -> Result<(), DenDrop> {
        let lasting = |event: &&mut Originated| event.denm.input.termination.is_none();
        let event = self.events.get_mut(&head.action_id).filter(lasting).ok_or(DenDrop::UnknownTerminated)?;
        // A negation has the reference time of the negated DENM, in whole milliseconds.
        if head.reference.timestamp_its() < event.denm.input.reference.timestamp_its() {
            return Err(DenDrop::Outdated);
        }
        if event.negated {
            return Err(DenDrop::Repeated);
        }
        event.negated = true;
        Ok(())
    }

    /// Inserts or replaces an event.
    pub(super) fn put(
        &mut self,
        now: Now,
        denm: OwnDenm,
        audience: Audience,
        repetition: Option<Repetition>,
    ) -> Result<(), DenError> {
        let action_id = denm.input.action_id;
        self.forget_expired(now.mono);
        if self.events.len() >= DEN_ORIGINATED_MAX && !self.contains(action_id) {
            self.make_room()?;
        }
        let expires = mono_of(now, denm.valid_until());
        let repeating = repetition.and_then(|repetition| repeating(now.mono, repetition, expires));
        let event = Originated { denm, audience, expires, repeating, reported_at: now.mono, negated: false };
        self.events.insert(action_id, event);
        Ok(())
    }

    fn forget_expired(&mut self, now: Mono) {
        self.events.retain(|_, event| event.expires > now);
    }

    /// Evicts an ended event: the one with the oldest last report, or, if all of them are still repeated, the one whose
    /// repetition ends first. Active events stay.
    fn make_room(&mut self) -> Result<(), DenError> {
        let ended = self.events.iter().filter(|(_, event)| event.denm.input.termination.is_some());
        let rank = |event: &Originated| (event.repeating.map(|repeating| repeating.until), event.reported_at);
        let (first, repeated) = ended
            .min_by_key(|(_, event)| rank(event))
            .map(|(action_id, event)| (*action_id, event.repeating.is_some()))
            .ok_or(DenError::TableFull)?;
        self.ends_evicted += u64::from(repeated);
        self.events.remove(&first);
        Ok(())
    }

    /// Removes events whose validity has ended, and passes each DENM whose repetition is due to `repeat`. The last
    /// repetition may be a little late.
    pub(super) fn handle_timeout(&mut self, now: Now, mut repeat: impl FnMut(&OwnDenm)) {
        self.forget_expired(now.mono);
        for event in self.events.values_mut() {
            if event.repeating.is_some_and(|repeating| repeating.next <= now.mono) {
                if event.repeating.is_some_and(|repeating| now.mono <= repeating.until.plus(LATE_MAX)) {
                    repeat(&event.denm);
                }
                event.repeating = event.repeating.and_then(|repeating| repeating.after(now.mono));
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        let due =
            |event: &Originated| event.repeating.map_or(event.expires, |repeating| repeating.next.min(event.expires));
        self.events.values().map(due).min()
    }
}

impl Repeating {
    /// Returns the next repetition on the grid of the first, or `None` after the last. Missed ones are skipped.
    fn after(self, now: Mono) -> Option<Self> {
        let next = self.next.plus(self.interval);
        let next = if next > now { next } else { now.plus(self.interval) };
        (next <= self.until).then_some(Self { next, ..self })
    }
}

/// Returns the repetition interval of an event that is valid until `valid_until`, as its DENM contains it, or `None` if
/// it is not repeated.
pub(super) fn kept_interval(now: Now, repetition: Repetition, valid_until: Tai) -> Option<Duration> {
    repeating(now.mono, repetition, mono_of(now, valid_until)).map(|repeating| repeating.interval)
}

/// Limits the interval and the duration to the validity (8.2.1.5). A DENM that is sent when the validity ends would
/// arrive too late.
fn repeating(now: Mono, repetition: Repetition, expires: Mono) -> Option<Repeating> {
    let interval = repetition.interval.max(REPETITION_INTERVAL_MIN);
    let valid = expires.since(now).saturating_sub(LATE_MAX);
    let until = now.plus(repetition.duration.min(valid));
    Repeating { interval, next: now, until }.after(now)
}

/// Returns the monotonic time of `moment`, or the current one if `moment` is in the past.
pub(super) fn mono_of(now: Now, moment: Tai) -> Mono {
    now.mono.plus(moment.since(now.tai))
}
