//! Originating message table: events that this station says (EN 302 637-3, 8.2; TS 103 831, 8.2).

use std::{collections::BTreeMap, time::Duration};

use viaduct_units::{Mono, Now, Tai};

use super::{DenDrop, DenError, DenmHead, OwnDenm};
use crate::{
    Repetition,
    facilities::{denm::ActionId, services::schedule::LATE_MAX},
    geonet::Area,
    limits::DEN_ORIGINATED_MAX,
};

/// Shortest repetition interval that is kept to; a shorter one counts as this. Ours: it bounds what one event can send.
pub(super) const REPETITION_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// `T_Repetition` and `T_RepetitionDuration`.
#[derive(Clone, Copy, Debug)]
struct Repeating {
    interval: Duration,
    next: Mono,
    /// The last repetition is not due later.
    until: Mono,
}

/// For whom an event was said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Audience {
    /// What its last report asked for.
    pub(super) asked: Area,
    /// That, and all that was asked for before.
    pub(super) told: Area,
}

/// One event.
#[derive(Debug)]
struct Originated {
    denm: OwnDenm,
    audience: Audience,
    /// `T_O_Validity`.
    expires: Mono,
    repeating: Option<Repeating>,
    /// When it was said, or its newer state.
    said: Mono,
    /// Whether somebody has said that it is not there.
    negated: bool,
}

/// Events that this station says, at most [`DEN_ORIGINATED_MAX`]. Those that have ended, and the negations of what others say,
/// stay for as long as there is room.
#[derive(Debug, Default)]
pub(super) struct OriginatingTable {
    events: BTreeMap<ActionId, Originated>,
    /// Ends of events that made room for a new event before they had been repeated as often as was asked.
    ends_cut: u64,
}

impl OriginatingTable {
    /// Ends of events that made room for a new event before they had been repeated as often as was asked.
    pub(super) const fn ends_cut(&self) -> u64 {
        self.ends_cut
    }

    pub(super) fn contains(&self, action_id: ActionId) -> bool {
        self.events.contains_key(&action_id)
    }

    /// Whether the event lasts and is valid.
    pub(super) fn says(&self, now: Mono, action_id: ActionId) -> bool {
        let said = |event: &Originated| event.denm.input.termination.is_none() && event.expires > now;
        self.events.get(&action_id).is_some_and(said)
    }

    /// What was said last about the event, if it lasts.
    pub(super) fn active(&self, action_id: ActionId) -> Result<&OwnDenm, DenError> {
        let event = self.events.get(&action_id).ok_or(DenError::UnknownAction)?;
        if event.denm.input.termination.is_some() {
            return Err(DenError::Terminated);
        }
        Ok(&event.denm)
    }

    /// For whom the event was said so far.
    pub(super) fn audience(&self, action_id: ActionId) -> Option<Audience> {
        self.events.get(&action_id).map(|event| event.audience)
    }

    /// Somebody says that an event of this station is not there: news once, until the event is said anew.
    pub(super) fn negated(&mut self, head: &DenmHead) -> Result<(), DenDrop> {
        let lasting = |event: &&mut Originated| event.denm.input.termination.is_none();
        let event = self.events.get_mut(&head.action_id).filter(lasting).ok_or(DenDrop::UnknownTerminated)?;
        // A negation carries the reference time of what it negates, in whole milliseconds.
        if head.reference.timestamp_its() < event.denm.input.reference.timestamp_its() {
            return Err(DenDrop::Outdated);
        }
        if event.negated {
            return Err(DenDrop::Repeated);
        }
        event.negated = true;
        Ok(())
    }

    /// Puts an event in, or its newer state.
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
        let event = Originated { denm, audience, expires, repeating, said: now.mono, negated: false };
        self.events.insert(action_id, event);
        Ok(())
    }

    fn forget_expired(&mut self, now: Mono) {
        self.events.retain(|_, event| event.expires > now);
    }

    /// An event that lasts stays. Of those that have ended, the one that has been said the longest ago goes; where all of them are
    /// still repeated, the one that would be the first to be silent.
    fn make_room(&mut self) -> Result<(), DenError> {
        let ended = self.events.iter().filter(|(_, event)| event.denm.input.termination.is_some());
        let rank = |event: &Originated| (event.repeating.map(|repeating| repeating.until), event.said);
        let (first, repeated) = ended
            .min_by_key(|(_, event)| rank(event))
            .map(|(action_id, event)| (*action_id, event.repeating.is_some()))
            .ok_or(DenError::TableFull)?;
        self.ends_cut += u64::from(repeated);
        self.events.remove(&first);
        Ok(())
    }

    /// Ends what is no longer valid, and hands each DENM that is to be repeated now to `repeat`. The last repetition may wake a
    /// little late.
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
    /// The repetition after this one, on the grid of the first; missed ones are not made up for. `None` after the last.
    fn after(self, now: Mono) -> Option<Self> {
        let next = self.next.plus(self.interval);
        let next = if next > now { next } else { now.plus(self.interval) };
        (next <= self.until).then_some(Self { next, ..self })
    }
}

/// The interval at which an event that is valid until then is said again: what its DENM says of it. `None` where it is not.
pub(super) fn kept_interval(now: Now, repetition: Repetition, valid_until: Tai) -> Option<Duration> {
    repeating(now.mono, repetition, mono_of(now, valid_until)).map(|repeating| repeating.interval)
}

/// Neither the interval nor the duration goes beyond the validity (8.2.1.5), and what is said when it ends is heard too late.
fn repeating(now: Mono, repetition: Repetition, expires: Mono) -> Option<Repeating> {
    let interval = repetition.interval.max(REPETITION_INTERVAL_MIN);
    let valid = expires.since(now).saturating_sub(LATE_MAX);
    let until = now.plus(repetition.duration.min(valid));
    Repeating { interval, next: now, until }.after(now)
}

/// The reading of the monotonic clock at a moment that lies ahead; now, where it has passed.
pub(super) fn mono_of(now: Now, moment: Tai) -> Mono {
    now.mono.plus(moment.since(now.tai))
}
