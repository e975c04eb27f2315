//! Receiving message table: the events of other stations, and their keep-alive forwarding (EN 302 637-3, 8.3 and 8.4;
//! TS 103 831, 8.3 and 8.4).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use viaduct_units::{Mono, Now, Position, Rng, StationId};

use super::{CLOCK_TOLERANCE, DenDrop, DenError, DenIndication, DenmHead, ForwardedDenm, originating::mono_of};
use crate::{
    facilities::denm::{ActionId, Termination},
    geonet::Area,
    limits::{DEN_FORWARDS_MAX, DEN_FORWARDS_OF_STATION_MAX, DEN_RECEIVED_MAX, DEN_RECEIVED_OF_STATION_MAX},
    security::Security,
};

/// The largest random part of `T_Forwarding` (8.3.2.5).
const FORWARDING_JITTER_MAX: Duration = Duration::from_millis(150);

/// Shortest interval of an originator that is used for `T_Forwarding`; a shorter one is raised to it. The value is not
/// from the standard. Without it, a sender could make every station in the area transmit at any rate for a day.
pub const FORWARDING_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// In this period at most [`DEN_FORWARDS_MAX`] DENMs are forwarded, and at most [`DEN_FORWARDS_OF_STATION_MAX`] of one
/// originator, so that one originator does not displace the others.
const FORWARDS_WINDOW: Duration = Duration::from_secs(1);

/// A received DENM.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDenm<'a> {
    /// Its management container.
    pub head: &'a DenmHead,
    /// Its UPER encoding.
    pub payload: &'a Bytes,
    /// Destination area of its packet, or `None` if it had none.
    pub destination: Option<Area>,
    /// Security of its packet.
    pub security: Security,
}

/// `T_Forwarding` of an event, and the DENM that is sent when it expires.
#[derive(Debug)]
struct Forwarding {
    denm: ForwardedDenm,
    /// Interval of the originator, at least [`FORWARDING_INTERVAL_MIN`].
    interval: Duration,
    due: Mono,
}

/// One event.
#[derive(Debug)]
struct ReceivedEvent {
    /// Newest DENM of the event.
    head: DenmHead,
    /// Destination area of its packet, or `None` if it had none.
    destination: Option<Area>,
    /// `true` if its originator, another station or this one has sent its end.
    ended: bool,
    /// Time of the last reception.
    received_at: Mono,
    /// `T_R_Validity`, and `T_F_Validity`, which ends at the same time.
    expires: Mono,
    forwarding: Option<Forwarding>,
}

/// Events of other stations, at most [`DEN_RECEIVED_MAX`].
#[derive(Debug)]
pub(super) struct ReceivingTable {
    events: BTreeMap<ActionId, ReceivedEvent>,
    /// `true` if DENMs are forwarded (the keep-alive forwarding function is optional).
    forwarding: bool,
    /// Times and originators of the last forwarded DENMs, at most [`DEN_FORWARDS_MAX`], the oldest first.
    forwards: VecDeque<(Mono, StationId)>,
    /// DENMs that were not forwarded because of the limits per second.
    forwards_limited: u64,
    /// Evicted events.
    evicted: u64,
}

impl ReceivingTable {
    pub(super) const fn new(forwarding: bool) -> Self {
        Self { events: BTreeMap::new(), forwarding, forwards: VecDeque::new(), forwards_limited: 0, evicted: 0 }
    }

    /// Returns the number of DENMs that were not forwarded because of the limits per second.
    pub(super) const fn forwards_limited(&self) -> u64 {
        self.forwards_limited
    }

    /// Returns the number of evicted events.
    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Deletes all events.
    pub(super) fn forget(&mut self) {
        self.events.clear();
    }

    /// Returns the newest DENM of an event and the area of its packet, if the event has not ended.
    pub(super) fn active(&self, action_id: ActionId) -> Result<(DenmHead, Option<Area>), DenError> {
        let event = self.events.get(&action_id).ok_or(DenError::UnknownAction)?;
        if event.ended { Err(DenError::Terminated) } else { Ok((event.head, event.destination)) }
    }

    /// Ends an event that this station negates, which also ends its forwarding (6.1.4.2).
    pub(super) fn end(&mut self, action_id: ActionId) {
        if let Some(event) = self.events.get_mut(&action_id) {
            event.ended = true;
            event.forwarding = None;
        }
    }

    /// Handles a received DENM (8.4.1).
    pub(super) fn receive(
        &mut self,
        now: Now,
        received: &ReceivedDenm<'_>,
        random: &mut Rng,
    ) -> Result<DenIndication, DenDrop> {
        let head = received.head;
        check_times(now, head)?;
        let indication = self.assess(head, now, random)?;
        if !self.events.contains_key(&head.action_id) {
            self.make_room(now.mono, head.action_id.originating_station);
        }
        let event = ReceivedEvent {
            head: *head,
            destination: received.destination,
            ended: head.termination.is_some(),
            received_at: now.mono,
            expires: self.expires(now, head),
            forwarding: self.forwarding(now, received, random),
        };
        self.events.insert(head.action_id, event);
        Ok(indication)
    }

    /// Returns the time of `T_R_Validity`. The end of an event is kept as long as any of its DENMs is valid, so that a
    /// late one does not revive the event.
    fn expires(&self, now: Now, head: &DenmHead) -> Mono {
        let expires = mono_of(now, head.valid_until());
        let known = self.events.get(&head.action_id).filter(|_| head.termination.is_some());
        known.map_or(expires, |known| known.expires.max(expires))
    }

    /// Makes room for an event of the station. Expired events are removed first. Then the event with the oldest last
    /// reception is evicted. It is an event of the same station if that station has reached its quota, else an event of
    /// the station with the most events. So neither one station nor many forged stations displace the events of others.
    fn make_room(&mut self, now: Mono, station: StationId) {
        if self.has_room_for(station) {
            return;
        }
        self.forget_expired(now);
        if self.has_room_for(station) {
            return;
        }
        let full = self.events.len() >= DEN_RECEIVED_MAX;
        let from = if full { self.busiest().unwrap_or(station) } else { station };
        let oldest = self.of_station(from).min_by_key(|(_, event)| event.received_at).map(|(action_id, _)| *action_id);
        if let Some(oldest) = oldest {
            self.events.remove(&oldest);
            self.evicted += 1;
        }
    }

    fn has_room_for(&self, station: StationId) -> bool {
        self.events.len() < DEN_RECEIVED_MAX && self.of_station(station).count() < DEN_RECEIVED_OF_STATION_MAX
    }

    fn forget_expired(&mut self, now: Mono) {
        self.events.retain(|_, event| event.expires > now);
    }

    fn of_station(&self, station: StationId) -> impl Iterator<Item = (&ActionId, &ReceivedEvent)> {
        let id = |sequence_number| ActionId { originating_station: station, sequence_number };
        self.events.range(id(0)..=id(u16::MAX))
    }

    /// Returns the station with the most events; among several, the one with the oldest last reception.
    fn busiest(&self) -> Option<StationId> {
        let mut stations: BTreeMap<StationId, (usize, Reverse<Mono>)> = BTreeMap::new();
        for (action_id, event) in &self.events {
            let (count, Reverse(received_at)) =
                stations.entry(action_id.originating_station).or_insert((0, Reverse(event.received_at)));
            *count += 1;
            *received_at = event.received_at.max(*received_at);
        }
        stations.into_iter().max_by_key(|(_, weight)| *weight).map(|(station, _)| station)
    }

    /// Compares a DENM with the known state of its event. Returns its meaning.
    fn assess(&mut self, head: &DenmHead, now: Now, random: &mut Rng) -> Result<DenIndication, DenDrop> {
        let Some(known) = self.events.get_mut(&head.action_id) else {
            return first_indication(head);
        };
        let terminates = head.termination.is_some() && !known.ended;
        if head.reference < known.head.reference {
            return Err(DenDrop::Outdated);
        }
        // A negation has the reference time of the negated DENM.
        if head.reference == known.head.reference && !terminates {
            known.received_at = now.mono;
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

    /// Returns the forwarding of an active event if its originator has sent a transmission interval (8.3.2.5). A DENM of an
    /// unverified packet is not forwarded, because the own packets are unsecured: receivers could not see that it was signed.
    fn forwarding(&self, now: Now, received: &ReceivedDenm<'_>, random: &mut Rng) -> Option<Forwarding> {
        let ReceivedDenm { head, payload, destination, security } = *received;
        let may_forward = self.forwarding && head.termination.is_none() && security == Security::Unsecured;
        let interval = head.transmission_interval.filter(|_| may_forward)?;
        let destination = destination.or_else(|| head.awareness_area())?;
        let denm = ForwardedDenm { head: *head, payload: payload.clone(), destination };
        let interval = interval.max(FORWARDING_INTERVAL_MIN);
        let mut forwarding = Forwarding { denm, interval, due: now.mono };
        forwarding.restart(now.mono, random);
        Some(forwarding)
    }

    /// Removes expired events, and passes each DENM whose `T_Forwarding` has expired to `forward` if the station is in
    /// its area, in the order of their timers. DENMs beyond the limits per second wait for another `T_Forwarding`.
    pub(super) fn handle_timeout(
        &mut self,
        now: Now,
        position: Option<Position>,
        random: &mut Rng,
        mut forward: impl FnMut(&ForwardedDenm),
    ) {
        self.forget_expired(now.mono);
        let waiting = self.events.values_mut().filter_map(|event| event.forwarding.as_mut());
        let mut silent: Vec<&mut Forwarding> = waiting.filter(|forwarding| forwarding.due <= now.mono).collect();
        silent.sort_by_key(|forwarding| forwarding.due);
        for forwarding in silent {
            if position.is_some_and(|position| forwarding.denm.destination.contains(position)) {
                if has_room(&mut self.forwards, now.mono, forwarding.denm.head.action_id.originating_station) {
                    forward(&forwarding.denm);
                } else {
                    self.forwards_limited += 1;
                }
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
    /// Sets `T_Forwarding` to twice the originator's interval plus a random time of up to 150 ms.
    fn restart(&mut self, now: Mono, random: &mut Rng) {
        self.due = now.plus(self.interval.saturating_mul(2)).plus(random.duration_up_to(FORWARDING_JITTER_MAX));
    }
}

/// Returns `true` if one more DENM of that originator may be forwarded, and counts it as forwarded.
fn has_room(forwards: &mut VecDeque<(Mono, StationId)>, now: Mono, station: StationId) -> bool {
    forwards.retain(|(sent, _)| now.since(*sent) < FORWARDS_WINDOW);
    let of_station = forwards.iter().filter(|(_, originator)| *originator == station).count();
    let room = forwards.len() < DEN_FORWARDS_MAX && of_station < DEN_FORWARDS_OF_STATION_MAX;
    if room {
        forwards.push_back((now, station));
    }
    room
}

/// Rejects a DENM whose validity has ended or whose times are further ahead than [`CLOCK_TOLERANCE`].
pub(super) fn check_times(now: Now, head: &DenmHead) -> Result<(), DenDrop> {
    if head.valid_until() <= now.tai {
        return Err(DenDrop::Expired);
    }
    if head.detection.max(head.reference) > now.tai.plus(CLOCK_TOLERANCE) {
        return Err(DenDrop::InFuture);
    }
    Ok(())
}

/// Returns the meaning of the first DENM of an event. The end of an unknown event is dropped.
const fn first_indication(head: &DenmHead) -> Result<DenIndication, DenDrop> {
    match head.termination {
        None => Ok(DenIndication::New),
        Some(_) => Err(DenDrop::UnknownTerminated),
    }
}
