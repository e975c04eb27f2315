//! Receiving message table: events that others say, and keep-alive forwarding of them (EN 302 637-3, 8.3 and 8.4;
//! TS 103 831, 8.3 and 8.4).

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use viaduct_units::{Mono, Now, Position, Tai};

use super::{CLOCK_TOLERANCE, DenDrop, DenIndication, DenmHead, ForwardedDenm, originating::mono_of};
use crate::{
    facilities::denm::{ActionId, Termination},
    geonet::Area,
    limits::DEN_RECEIVED_MAX,
    random::Random,
};

/// The largest random part of `T_Forwarding` (8.3.2.5).
const FORWARDING_JITTER_MAX: Duration = Duration::from_millis(150);

/// A DENM as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedDenm<'a> {
    pub(super) head: &'a DenmHead,
    pub(super) payload: &'a Bytes,
    /// Area of its packet, where it was for one.
    pub(super) destination: Option<Area>,
}

/// `T_Forwarding` of an event, and what to send when it ends.
#[derive(Debug)]
struct Forwarding {
    denm: ForwardedDenm,
    interval: Duration,
    due: Mono,
}

/// One event.
#[derive(Debug)]
struct ReceivedEvent {
    reference: Tai,
    termination: Option<Termination>,
    /// `T_R_Validity`, and `T_F_Validity` which ends together with it.
    expires: Mono,
    forwarding: Option<Forwarding>,
}

/// Events that others say, at most [`DEN_RECEIVED_MAX`].
#[derive(Debug)]
pub(super) struct ReceivingTable {
    events: BTreeMap<ActionId, ReceivedEvent>,
    /// Whether to forward (the keep-alive forwarding function is optional).
    forwarding: bool,
}

impl ReceivingTable {
    pub(super) const fn new(forwarding: bool) -> Self {
        Self { events: BTreeMap::new(), forwarding }
    }

    /// When the information that is known about an event was generated, if the event lasts.
    pub(super) fn active(&self, action_id: ActionId) -> Option<Tai> {
        self.events.get(&action_id).filter(|event| event.termination.is_none()).map(|event| event.reference)
    }

    /// Takes a DENM in (8.4.1).
    pub(super) fn receive(
        &mut self,
        now: Now,
        received: &ReceivedDenm<'_>,
        random: &mut Random,
    ) -> Result<DenIndication, DenDrop> {
        let head = received.head;
        if head.valid_until() <= now.tai {
            return Err(DenDrop::Expired);
        }
        if head.detection.max(head.reference) > now.tai.plus(CLOCK_TOLERANCE) {
            return Err(DenDrop::InFuture);
        }
        let indication = self.assess(head, now, random)?;
        if self.events.len() >= DEN_RECEIVED_MAX && !self.events.contains_key(&head.action_id) {
            return Err(DenDrop::TableFull);
        }
        let event = ReceivedEvent {
            reference: head.reference,
            termination: head.termination,
            expires: mono_of(now, head.valid_until()),
            forwarding: self.forwarding(now, received, random),
        };
        self.events.insert(head.action_id, event);
        Ok(indication)
    }

    /// What a DENM means beside what is known about its event.
    fn assess(&mut self, head: &DenmHead, now: Now, random: &mut Random) -> Result<DenIndication, DenDrop> {
        let Some(known) = self.events.get_mut(&head.action_id) else {
            return first_indication(head);
        };
        let terminates = head.termination.is_some() && known.termination.is_none();
        if head.reference < known.reference {
            return Err(DenDrop::Outdated);
        }
        // A negation carries the reference time of what it negates.
        if head.reference == known.reference && !terminates {
            if let Some(forwarding) = &mut known.forwarding {
                forwarding.restart(now.mono, random);
            }
            return Err(DenDrop::Repeated);
        }
        Ok(match head.termination {
            None => DenIndication::Updated,
            Some(Termination::IsCancellation) => DenIndication::Cancelled,
            Some(Termination::IsNegation) => DenIndication::Negated,
        })
    }

    /// An event that lasts is forwarded, where its originator says how often it speaks (8.3.2.5).
    fn forwarding(&self, now: Now, received: &ReceivedDenm<'_>, random: &mut Random) -> Option<Forwarding> {
        let ReceivedDenm { head, payload, destination } = *received;
        let interval = head.transmission_interval.filter(|_| self.forwarding && head.termination.is_none())?;
        let destination = destination.or_else(|| head.awareness_area())?;
        let denm = ForwardedDenm { head: *head, payload: payload.clone(), destination };
        let mut forwarding = Forwarding { denm, interval, due: now.mono };
        forwarding.restart(now.mono, random);
        Some(forwarding)
    }

    /// Forgets what is no longer valid, and hands each DENM that fell silent to `forward`, where the station is in its area.
    pub(super) fn handle_timeout(
        &mut self,
        now: Now,
        position: Option<Position>,
        random: &mut Random,
        mut forward: impl FnMut(&ForwardedDenm),
    ) {
        self.events.retain(|_, event| event.expires > now.mono);
        let silent = self.events.values_mut().filter_map(|event| event.forwarding.as_mut());
        for forwarding in silent.filter(|forwarding| forwarding.due <= now.mono) {
            if position.is_some_and(|position| forwarding.denm.destination.contains(position)) {
                forward(&forwarding.denm);
            }
            forwarding.restart(now.mono, random);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        let due = |event: &ReceivedEvent| {
            event.forwarding.as_ref().map_or(event.expires, |forwarding| forwarding.due.min(event.expires))
        };
        self.events.values().map(due).min()
    }
}

impl Forwarding {
    /// `T_Forwarding`: twice the originator's interval and up to 150 ms.
    fn restart(&mut self, now: Mono, random: &mut Random) {
        self.due = now.plus(self.interval.saturating_mul(2)).plus(random.up_to(FORWARDING_JITTER_MAX));
    }
}

/// The end of an event that was not known tells nothing.
const fn first_indication(head: &DenmHead) -> Result<DenIndication, DenDrop> {
    match head.termination {
        None => Ok(DenIndication::New),
        Some(_) => Err(DenDrop::UnknownTerminated),
    }
}
