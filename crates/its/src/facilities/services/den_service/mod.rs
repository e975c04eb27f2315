//! DEN service: events that applications report and receive (EN 302 637-3 V1.3.1, TS 103 831 V2.3.1; clauses 6.1 and
//! 8).
//!
//! A machine in virtual time: [`DenService::trigger`], [`DenService::update`] and [`DenService::terminate`] are the
//! commands of applications. The output is DENMs to send, repeated if the report requests it.

mod event;
mod originating;
mod receiving;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_etsi::denm_ts103831_v231::encode;
use viaduct_units::{Mono, Now, Position, Rng, StationId, StationType, Tai};

pub use self::{
    event::{DEFAULT_DESTINATION_RADIUS, DenmHead, EventReport},
    receiving::{FORWARDING_INTERVAL_MIN, ReceivedDenm},
};
use self::{
    originating::{Audience, OriginatingTable},
    receiving::ReceivingTable,
};
use crate::{
    facilities::denm::{self, ActionId, DEFAULT_VALIDITY, DenmInput, Termination},
    geonet::Area,
    limits::{DEN_ORIGINATED_MAX, DEN_TRANSMITS_MAX, PAYLOAD_OCTETS_MAX},
};

/// Accepted difference between two clocks. A DENM with times further ahead is dropped: its event would never end. The
/// value is not from the standard.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Settings of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenSettings {
    /// Identifier of the station, which is in the action id of its events.
    pub station_id: StationId,
    /// `StationType` (TS 102 894-2): 5 is a passenger car.
    pub station_type: StationType,
    /// `true` to forward the DENMs of other stations after their originator has fallen silent (keep-alive forwarding,
    /// 6.1.4.2; optional).
    pub keep_alive_forwarding: bool,
}

/// Reason why a command was rejected. The application is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DenError {
    /// The event had ended before it was reported.
    #[error("the event's validity has ended")]
    Expired,
    /// No event with that action id is active, neither of this station nor of others.
    #[error("no event has that action id")]
    UnknownAction,
    /// The event has been terminated.
    #[error("the event has been terminated")]
    Terminated,
    /// Too many events are active at the same time.
    #[error("{DEN_ORIGINATED_MAX} events are active, which is the limit")]
    TableFull,
    /// A container of the report breaks a constraint of the message, or the message is too large for a packet.
    #[error("the event does not fit a DENM: a container is invalid, or the message is too large for a packet")]
    Unencodable,
}

/// Reason why a received DENM is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenDrop {
    /// Its validity has ended.
    Expired,
    /// It was detected or generated more than [`CLOCK_TOLERANCE`] ahead of the receiver's clock.
    InFuture,
    /// It is older than the newest DENM of the event.
    Outdated,
    /// It repeats the newest DENM of the event.
    Repeated,
    /// It ends an unknown event.
    UnknownTerminated,
    /// It is the latest DENM of an event of this station.
    OwnEvent,
}

impl DenDrop {
    /// Every reason.
    pub const ALL: [Self; 6] =
        [Self::Expired, Self::InFuture, Self::Outdated, Self::Repeated, Self::UnknownTerminated, Self::OwnEvent];

    /// Returns the reason as metrics and JSON contain it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Expired => "denm_expired",
            Self::InFuture => "denm_in_future",
            Self::Outdated => "denm_outdated",
            Self::Repeated => "denm_repeated",
            Self::UnknownTerminated => "denm_unknown_terminated",
            Self::OwnEvent => "denm_own_event",
        }
    }
}

/// Meaning of a received DENM for applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenIndication {
    /// A new event.
    New,
    /// A change of a known event.
    Updated,
    /// The end of an event, sent by its originator.
    Cancelled,
    /// The end of an event, sent by another station: the event does not exist.
    Negated,
}

/// A DENM of this station.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnDenm {
    /// Content of the DENM.
    pub input: DenmInput,
    /// Destination area.
    pub destination: Area,
    /// `true` for a repetition.
    pub repeated: bool,
}

impl OwnDenm {
    /// Returns the end of the event's validity.
    #[must_use]
    pub fn valid_until(&self) -> Tai {
        self.input.detection.plus(self.input.validity.unwrap_or(DEFAULT_VALIDITY))
    }
}

/// A received DENM that is forwarded unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardedDenm {
    /// Its management container.
    pub head: DenmHead,
    /// The message in UPER, as it was received.
    pub payload: Bytes,
    /// Destination area.
    pub destination: Area,
}

/// A DENM to send.
#[derive(Clone, Debug, PartialEq)]
pub enum DenTransmit {
    /// A DENM of this station.
    Own(Box<OwnDenm>),
    /// A DENM of another station.
    Forwarded(Box<ForwardedDenm>),
}

impl DenTransmit {
    /// Returns the end of the event's validity.
    #[must_use]
    pub fn valid_until(&self) -> Tai {
        match self {
            Self::Own(own) => own.valid_until(),
            Self::Forwarded(denm) => denm.head.valid_until(),
        }
    }
}

/// Counters of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DenCounters {
    /// DENMs of this station for sending, including repetitions.
    pub sent: u64,
    /// Forwarded DENMs of other stations.
    pub forwarded: u64,
    /// DENMs of other stations that were not forwarded because of the limits per second:
    /// [`crate::limits::DEN_FORWARDS_MAX`] in total and [`crate::limits::DEN_FORWARDS_OF_STATION_MAX`] of one
    /// originator.
    pub forwards_limited: u64,
    /// DENMs that were dropped because the queue of DENMs to send was full.
    pub transmits_lost: u64,
    /// Received DENMs of a new, changed or ended event.
    pub indicated: u64,
    /// Events of other stations that were evicted in favour of another station's event.
    pub evicted: u64,
    /// Ends of events that were evicted in favour of a new event before all their repetitions had been sent.
    pub ends_evicted: u64,
    dropped: [u64; DenDrop::ALL.len()],
}

impl DenCounters {
    /// Returns the number of received DENMs that were dropped for that reason.
    #[must_use]
    pub fn dropped(&self, reason: DenDrop) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }
}

/// The DEN service of one station.
#[derive(Debug)]
pub struct DenService {
    settings: DenSettings,
    /// Position of the station, for forwarding; `None` until it is set.
    position: Option<Position>,
    /// Number of the next event.
    sequence_number: u16,
    originating: OriginatingTable,
    receiving: ReceivingTable,
    /// At most [`DEN_TRANSMITS_MAX`].
    transmits: VecDeque<DenTransmit>,
    random: Rng,
    counters: DenCounters,
}

impl DenService {
    /// Creates a service without events. The seed decides the random part of `T_Forwarding` and the first sequence
    /// number, so that a restarted station does not use the action id of an old event.
    #[must_use]
    pub fn new(settings: DenSettings, seed: u64) -> Self {
        let mut random = Rng::new(seed);
        Self {
            settings,
            position: None,
            sequence_number: u16::try_from(random.next_u64() >> 48).unwrap_or(0),
            originating: OriginatingTable::default(),
            receiving: ReceivingTable::new(settings.keep_alive_forwarding),
            transmits: VecDeque::new(),
            random,
            counters: DenCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> DenCounters {
        DenCounters {
            forwards_limited: self.receiving.forwards_limited(),
            evicted: self.receiving.evicted(),
            ends_evicted: self.originating.ends_evicted(),
            ..self.counters
        }
    }

    /// Deletes the events of other stations. DENMs that wait to be sent remain.
    pub fn forget_received(&mut self) {
        self.receiving.forget();
    }

    /// Returns `true` if DENMs wait to be taken.
    #[must_use]
    pub fn has_transmits(&self) -> bool {
        !self.transmits.is_empty()
    }

    /// Sets the position of the station.
    pub const fn set_position(&mut self, position: Position) {
        self.position = Some(position);
    }

    /// Sends the DENM of a new event, with the repetition of the report (`AppDENM_trigger`, 8.2.1.1).
    ///
    /// # Errors
    /// Returns an error if the report is rejected.
    pub fn trigger(&mut self, now: Now, report: EventReport) -> Result<ActionId, DenError> {
        let action_id = self.unused_action_id();
        self.send_report(now, action_id, None, now.tai, report)?;
        Ok(action_id)
    }

    /// Sends a change of an event of this station (`AppDENM_update`, 8.2.1.2). The destination includes the area of the
    /// report before.
    ///
    /// # Errors
    /// Returns an error if the report is rejected.
    pub fn update(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), DenError> {
        let before = self.originating.active(action_id)?.input.reference;
        self.send_report(now, action_id, None, later(now.tai, before), report)
    }

    /// Sends the end of an event: a cancellation of an event of this station, or a negation of an event of another
    /// station (`AppDENM_termination`, 8.2.1.3). Only the time and the repetition of the report are used. The
    /// destination includes the areas of all reports of the event, up to the largest permitted area. The validity of
    /// the end is the remaining validity of the event.
    ///
    /// # Errors
    /// Returns an error if the report is rejected.
    pub fn terminate(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<Termination, DenError> {
        if action_id.originating_station == self.settings.station_id {
            self.cancel(now, action_id, report)?;
            return Ok(Termination::IsCancellation);
        }
        self.negate(now, action_id, report)?;
        Ok(Termination::IsNegation)
    }

    /// Returns `true` if an event of this station is active and valid.
    #[must_use]
    pub fn originates(&self, now: Mono, action_id: ActionId) -> bool {
        self.originating.is_active(now, action_id)
    }

    /// Returns `true` if an event of another station is known and has not ended.
    #[must_use]
    pub fn lasts(&self, action_id: ActionId) -> bool {
        self.receiving.active(action_id).is_ok()
    }

    /// Handles a received DENM (8.4.1).
    ///
    /// # Errors
    /// Returns the reason why the DENM is dropped; the reason is counted.
    pub fn handle_received(&mut self, now: Now, received: &ReceivedDenm<'_>) -> Result<DenIndication, DenDrop> {
        let head = received.head;
        let indication = if head.action_id.originating_station != self.settings.station_id {
            self.receiving.receive(now, received, &mut self.random)
        } else if head.termination == Some(Termination::IsNegation) {
            self.own_event_negated(now, head)
        } else {
            Err(DenDrop::OwnEvent)
        };
        match indication {
            Ok(_) => self.counters.indicated += 1,
            Err(reason) => self.count_drop(reason),
        }
        indication
    }

    /// Handles the actions that are due: repetitions, forwarding, and ends of validities.
    pub fn handle_timeout(&mut self, now: Now) {
        let mut due = Vec::new();
        self.originating.handle_timeout(now, |denm| {
            due.push(DenTransmit::Own(Box::new(OwnDenm { repeated: true, ..denm.clone() })));
        });
        self.receiving.handle_timeout(now, self.position, &mut self.random, |denm| {
            due.push(DenTransmit::Forwarded(Box::new(denm.clone())));
        });
        due.into_iter().for_each(|transmit| self.transmit(transmit));
    }

    /// Returns the next DENM to send, or `None` if there is none.
    pub fn poll_transmit(&mut self) -> Option<DenTransmit> {
        self.transmits.pop_front()
    }

    /// Returns the time at which [`Self::handle_timeout`] is to be called, or `None` if nothing is pending.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        [self.originating.poll_timeout(), self.receiving.poll_timeout()].into_iter().flatten().min()
    }

    fn cancel(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), DenError> {
        let event = self.originating.active(action_id)?;
        let (report, reference) = (report.ending_own(event), later(now.tai, event.input.reference));
        self.send_report(now, action_id, Some(Termination::IsCancellation), reference, report)
    }

    /// Sends a negation, which has the reference time of the negated DENM.
    fn negate(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), DenError> {
        let (head, destination) = self.receiving.active(action_id)?;
        let report = report.ending_received(&head, destination);
        self.send_report(now, action_id, Some(Termination::IsNegation), head.reference, report)?;
        self.receiving.end(action_id);
        Ok(())
    }

    fn send_report(
        &mut self,
        now: Now,
        action_id: ActionId,
        end: Option<Termination>,
        reference: Tai,
        report: EventReport,
    ) -> Result<(), DenError> {
        let (audience, destination) = self.audience(action_id, end, &report);
        let repetition = report.repetition;
        let from = (self.settings.station_id, self.settings.station_type);
        let mut denm = OwnDenm { input: report.denm(from, action_id, end, reference), destination, repeated: false };
        if denm.valid_until() <= now.tai {
            return Err(DenError::Expired);
        }
        if let Some(repetition) = repetition {
            denm.input.transmission_interval = originating::kept_interval(now, repetition, denm.valid_until());
        }
        // A report that cannot be encoded must not change the tables.
        if !encode(&denm::build(&denm.input)).is_ok_and(|octets| octets.len() <= PAYLOAD_OCTETS_MAX) {
            return Err(DenError::Unencodable);
        }
        self.originating.put(now, denm.clone(), audience, repetition)?;
        self.transmit(DenTransmit::Own(Box::new(denm)));
        Ok(())
    }

    /// Returns the audience of an event and the destination of this DENM. A change includes the area of the report
    /// before, the end the areas of all reports.
    fn audience(&self, action_id: ActionId, end: Option<Termination>, report: &EventReport) -> (Audience, Area) {
        let asked = report.destination();
        match (self.originating.audience(action_id), end) {
            (None, _) => (Audience { asked, all: asked }, asked),
            (Some(before), None) => {
                let destination = asked.extended_to(before.asked);
                (Audience { asked, all: destination.enclosing(before.all) }, destination)
            }
            (Some(before), Some(_)) => (before, before.all.permitted_or(before.asked)),
        }
    }

    /// Handles the negation of an event of this station by another station. The application decides on the consequence.
    fn own_event_negated(&mut self, now: Now, head: &DenmHead) -> Result<DenIndication, DenDrop> {
        receiving::check_times(now, head)?;
        self.originating.negated(head)?;
        Ok(DenIndication::Negated)
    }

    /// Returns an action id that no event of this station has (6.1.2.1). The table is far smaller than the range of
    /// sequence numbers, so there is one.
    fn unused_action_id(&mut self) -> ActionId {
        loop {
            let action_id =
                ActionId { originating_station: self.settings.station_id, sequence_number: self.sequence_number };
            self.sequence_number = self.sequence_number.wrapping_add(1);
            if !self.originating.contains(action_id) {
                return action_id;
            }
        }
    }

    fn transmit(&mut self, transmit: DenTransmit) {
        if self.transmits.len() >= DEN_TRANSMITS_MAX {
            self.counters.transmits_lost += 1;
            return;
        }
        match &transmit {
            DenTransmit::Own(_) => self.counters.sent += 1,
            DenTransmit::Forwarded(_) => self.counters.forwarded += 1,
        }
        self.transmits.push_back(transmit);
    }

    fn count_drop(&mut self, reason: DenDrop) {
        if let Some(count) = self.counters.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}

/// Returns a reference time later than the one before: it counts milliseconds, and clocks may step (6.1.2.2).
fn later(now: Tai, before: Tai) -> Tai {
    now.max(before.plus(Duration::from_millis(1)))
}
