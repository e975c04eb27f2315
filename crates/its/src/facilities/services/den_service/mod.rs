//! DEN service: events that applications say and hear of (EN 302 637-3 V1.3.1, TS 103 831 V2.3.1; clauses 6.1 and 8).
//!
//! A machine in virtual time: [`DenService::trigger`], [`DenService::update`] and [`DenService::terminate`] are the commands of
//! applications; DENMs to send come out, again and again where repetition was asked for.

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
    receiving::FORWARDING_INTERVAL_MIN,
};
use self::{
    originating::{Audience, OriginatingTable},
    receiving::{ReceivedDenm, ReceivingTable},
};
use crate::{
    facilities::denm::{self, ActionId, DEFAULT_VALIDITY, DenmInput, Termination},
    geonet::Area,
    limits::{DEN_ORIGINATED_MAX, DEN_TRANSMITS_MAX, PAYLOAD_OCTETS_MAX},
};

/// How far clocks may be apart. What lies further ahead is not believed: it would never end. Ours.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Settings of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenSettings {
    /// Identifier of the station, which is in the action id of its events.
    pub station_id: StationId,
    /// `StationType` (TS 102 894-2): 5 is a passenger car.
    pub station_type: StationType,
    /// Whether to send on what others said and no longer say (keep-alive forwarding, 6.1.4.2; optional).
    pub keep_alive_forwarding: bool,
}

/// Why a command was not obeyed. The application is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DenError {
    /// The event was over before it was reported.
    #[error("the event's validity has ended")]
    Expired,
    /// No event of that action id lasts, of this station or of others.
    #[error("no event has that action id")]
    UnknownAction,
    /// The event has been terminated.
    #[error("the event has been terminated")]
    Terminated,
    /// Too many events last at once.
    #[error("{DEN_ORIGINATED_MAX} events are being said")]
    TableFull,
    /// A container of the report breaks a constraint of the message, or the message is too large for a packet.
    #[error("no packet can say the event")]
    Unencodable,
}

/// Why a received DENM goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenDrop {
    /// Its validity has ended.
    Expired,
    /// It was detected or generated more than [`CLOCK_TOLERANCE`] ahead of the own clock.
    InFuture,
    /// It is older than what is known about the event.
    Outdated,
    /// It repeats what is known.
    Repeated,
    /// It ends an event that was not known.
    UnknownTerminated,
    /// It says what this station said itself.
    OwnEvent,
}

impl DenDrop {
    /// Every reason.
    pub const ALL: [Self; 6] =
        [Self::Expired, Self::InFuture, Self::Outdated, Self::Repeated, Self::UnknownTerminated, Self::OwnEvent];

    /// The reason as metrics and JSON have it.
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

/// What a received DENM means to applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenIndication {
    /// An event that was not known.
    New,
    /// An event that is known has changed.
    Updated,
    /// Who said the event says that it has ended.
    Cancelled,
    /// Somebody says that the event is not there.
    Negated,
}

/// A DENM of this station.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnDenm {
    /// What it says.
    pub input: DenmInput,
    /// Who should receive it.
    pub destination: Area,
    /// Whether it has been said before.
    pub repeated: bool,
}

impl OwnDenm {
    /// When its validity ends.
    #[must_use]
    pub fn valid_until(&self) -> Tai {
        self.input.detection.plus(self.input.validity.unwrap_or(DEFAULT_VALIDITY))
    }
}

/// A received DENM that is sent on, octet for octet.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardedDenm {
    /// Its management container.
    pub head: DenmHead,
    /// The message in UPER, as it was received.
    pub payload: Bytes,
    /// Who should receive it.
    pub destination: Area,
}

/// A DENM to send.
#[derive(Clone, Debug, PartialEq)]
pub enum DenTransmit {
    /// One of this station.
    Own(Box<OwnDenm>),
    /// One of another station.
    Forwarded(Box<ForwardedDenm>),
}

impl DenTransmit {
    /// When the validity of its event ends.
    #[must_use]
    pub fn valid_until(&self) -> Tai {
        match self {
            Self::Own(own) => own.valid_until(),
            Self::Forwarded(denm) => denm.head.valid_until(),
        }
    }
}

/// What the service has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DenCounters {
    /// DENMs of this station that were handed out, repetitions included.
    pub sent: u64,
    /// DENMs of others that were handed out.
    pub forwarded: u64,
    /// DENMs of others that were due to be sent on, beyond [`crate::limits::DEN_FORWARDS_MAX`] a second, or
    /// [`crate::limits::DEN_FORWARDS_OF_STATION_MAX`] of one originator.
    pub forwards_refused: u64,
    /// DENMs that were due while nobody had taken those before them.
    pub transmits_lost: u64,
    /// Received DENMs that told something.
    pub indicated: u64,
    /// Events of others that were forgotten to make room for those of somebody else.
    pub evicted: u64,
    /// Ends of events that made room for a new event before they had been repeated as often as was asked.
    pub ends_cut: u64,
    dropped: [u64; DenDrop::ALL.len()],
}

impl DenCounters {
    /// Received DENMs that were dropped for that reason.
    #[must_use]
    pub fn dropped(&self, reason: DenDrop) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }
}

/// The DEN service of one station.
#[derive(Debug)]
pub struct DenService {
    settings: DenSettings,
    /// Where the station is; forwarding needs it.
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
    /// A service that knows of no event. The seed decides the first sequence number, so that a restarted station does not
    /// speak of an old event, and the random part of `T_Forwarding`.
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

    /// What the service has counted.
    #[must_use]
    pub const fn counters(&self) -> DenCounters {
        DenCounters {
            forwards_refused: self.receiving.forwards_refused(),
            evicted: self.receiving.evicted(),
            ends_cut: self.originating.ends_cut(),
            ..self.counters
        }
    }

    /// Forgets the events of other stations. What was to be said of them is still said.
    pub fn forget_heard(&mut self) {
        self.receiving.forget();
    }

    /// Whether DENMs wait to be taken.
    #[must_use]
    pub fn has_transmits(&self) -> bool {
        !self.transmits.is_empty()
    }

    /// Tells where the station is.
    pub const fn set_position(&mut self, position: Position) {
        self.position = Some(position);
    }

    /// `AppDENM_trigger`: says a new event, at once and as often as the report asks (8.2.1.1).
    ///
    /// # Errors
    /// Why it is not said.
    pub fn trigger(&mut self, now: Now, report: EventReport) -> Result<ActionId, DenError> {
        let action_id = self.unused_action_id();
        self.say(now, action_id, None, now.tai, report)?;
        Ok(action_id)
    }

    /// `AppDENM_update`: says that an event of this station has changed (8.2.1.2), to those of the report before too.
    ///
    /// # Errors
    /// Why it is not said.
    pub fn update(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), DenError> {
        let before = self.originating.active(action_id)?.input.reference;
        self.say(now, action_id, None, later(now.tai, before), report)
    }

    /// `AppDENM_termination`: says that an event has ended. One of this station is cancelled, one of another station negated
    /// (8.2.1.3). Of the report, time and repetition count; who was told of the event, as far as an area may reach, hears of its end
    /// as long as it was valid.
    ///
    /// # Errors
    /// Why it is not said.
    pub fn terminate(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<Termination, DenError> {
        if action_id.originating_station == self.settings.station_id {
            self.cancel(now, action_id, report)?;
            return Ok(Termination::IsCancellation);
        }
        self.negate(now, action_id, report)?;
        Ok(Termination::IsNegation)
    }

    /// Whether an event of this station is said still.
    #[must_use]
    pub fn originates(&self, now: Mono, action_id: ActionId) -> bool {
        self.originating.says(now, action_id)
    }

    /// Whether an event of another station is known and has not ended.
    #[must_use]
    pub fn lasts(&self, action_id: ActionId) -> bool {
        self.receiving.active(action_id).is_ok()
    }

    /// Takes in a DENM that was received: its management container, its octets, and the area that its packet was for (8.4.1).
    ///
    /// # Errors
    /// Why it tells nothing; it is counted.
    pub fn handle_received(
        &mut self,
        now: Now,
        head: &DenmHead,
        payload: &Bytes,
        destination: Option<Area>,
    ) -> Result<DenIndication, DenDrop> {
        let indication = if head.action_id.originating_station != self.settings.station_id {
            self.receiving.receive(now, &ReceivedDenm { head, payload, destination }, &mut self.random)
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

    /// Does what is due: repetitions, forwarding, and the end of validities.
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

    /// The next DENM to send.
    pub fn poll_transmit(&mut self) -> Option<DenTransmit> {
        self.transmits.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        [self.originating.poll_timeout(), self.receiving.poll_timeout()].into_iter().flatten().min()
    }

    fn cancel(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), DenError> {
        let event = self.originating.active(action_id)?;
        let (report, reference) = (report.ending_own(event), later(now.tai, event.input.reference));
        self.say(now, action_id, Some(Termination::IsCancellation), reference, report)
    }

    /// A negation keeps the reference time of what it negates.
    fn negate(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), DenError> {
        let (head, destination) = self.receiving.active(action_id)?;
        let report = report.ending_heard(&head, destination);
        self.say(now, action_id, Some(Termination::IsNegation), head.reference, report)?;
        self.receiving.end(action_id);
        Ok(())
    }

    fn say(
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
        // What cannot be said must not count as said.
        if !encode(&denm::build(&denm.input)).is_ok_and(|octets| octets.len() <= PAYLOAD_OCTETS_MAX) {
            return Err(DenError::Unencodable);
        }
        self.originating.put(now, denm.clone(), audience, repetition)?;
        self.transmit(DenTransmit::Own(Box::new(denm)));
        Ok(())
    }

    /// For whom an event is said, and the area of this DENM: a change goes to those of the report before too, the end to all who were told.
    fn audience(&self, action_id: ActionId, end: Option<Termination>, report: &EventReport) -> (Audience, Area) {
        let asked = report.destination();
        match (self.originating.audience(action_id), end) {
            (None, _) => (Audience { asked, told: asked }, asked),
            (Some(before), None) => {
                let destination = asked.extended_to(before.asked);
                (Audience { asked, told: destination.enclosing(before.told) }, destination)
            }
            (Some(before), Some(_)) => (before, before.told.permitted_or(before.asked)),
        }
    }

    /// Others may say that an event of this station is not there; the application decides what it makes of that.
    fn own_event_negated(&mut self, now: Now, head: &DenmHead) -> Result<DenIndication, DenDrop> {
        receiving::check_times(now, head)?;
        self.originating.negated(head)?;
        Ok(DenIndication::Negated)
    }

    /// An action id that no event of this station has (6.1.2.1); the table is far smaller than the range of the number.
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

/// A reference time after the one before: it is counted in milliseconds, and clocks may step (6.1.2.2).
fn later(now: Tai, before: Tai) -> Tai {
    now.max(before.plus(Duration::from_millis(1)))
}
