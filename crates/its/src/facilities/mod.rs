//! The facilities layer of a station: its services and the local dynamic map behind one machine.
//!
//! | module | holds |
//! |---|---|
//! | `message_kind` | the table of the nine messages: identifiers, port, traffic class, lifetime, codec |
//! | `messages` | the content of each message in SI units |
//! | `services` | the services, one machine each: [`ca_service`], [`cp_service`], [`den_service`], [`va_service`] |
//! | [`ldm`] | the local dynamic map |
//!
//! **After each input, take every request from [`Facilities::poll_transmit`] and every event from
//! [`Facilities::poll_event`], then read [`Facilities::poll_timeout`], before the next input.** Pass the requests to
//! [`crate::Station::send`], and each packet of [`crate::Event::Received`] to [`Facilities::handle_received`].

mod message_kind;
mod messages;
mod services;

pub mod ldm;
#[cfg(test)]
mod tests;

pub use self::{
    message_kind::{Message, MessageKind},
    messages::{ConfidenceEllipse, Offset, Outline, PathPoint, PredictedPoint, Shape, Summary, cam, cpm, denm, vam},
    services::{STATE_AGE_MAX, VehicleState, ca_service, cp_service, den_service, va_service},
};
pub(crate) use message_kind::kind_of;

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_etsi::denm_ts103831_v231::Denm;
use viaduct_units::{Mono, Now};

use self::{
    ca_service::{CaService, CaSettings},
    cp_service::{CpService, CpSettings, PerceivedObject},
    den_service::{
        DenDrop, DenError, DenIndication, DenService, DenSettings, DenTransmit, DenmHead, EventReport, OwnDenm,
        ReceivedDenm,
    },
    denm::{ActionId, Termination},
    ldm::{
        ClockReport, ClockTolerance, LdmEvent, LdmKey, LdmSubject, LocalDynamicMap, Sender, StationClocks,
        is_withdrawal, objects_of,
    },
    va_service::{ReceivedVam, VaService, VaSettings},
};
use crate::{
    Destination, Received, SendRequest,
    geonet::{Lifetime, TrafficClass, mib::ITS_GN_MAX_PACKET_LIFETIME},
    limits::{FACILITIES_EVENTS_MAX, FACILITIES_TRANSMITS_MAX},
    security::Security,
};

/// Shortest lifetime other than 0 (EN 302 636-4-1, 9.6.4): a packet with the lifetime 0 is not forwarded.
const PACKET_LIFETIME_MIN: Duration = Duration::from_millis(50);

/// Settings of the services of a station. A service that is `None` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FacilitiesSettings {
    /// Cooperative awareness.
    pub ca: Option<CaSettings>,
    /// Collective perception.
    pub cp: Option<CpSettings>,
    /// Environmental notification.
    pub den: Option<DenSettings>,
    /// Awareness of a vulnerable road user.
    pub va: Option<VaSettings>,
    /// Clock offsets of other stations that the local dynamic map corrects.
    pub clock_tolerance: ClockTolerance,
}

/// Reason why an event was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The station has no DEN service.
    #[error("the station has no DEN service")]
    ServiceOff,
    /// The DEN service rejects the event.
    #[error(transparent)]
    Den(#[from] DenError),
}

/// Events for applications.
#[derive(Clone, Debug, PartialEq)]
pub enum FacilitiesEvent {
    /// The local dynamic map has changed.
    Map(LdmEvent),
    /// A DENM of a new, changed or ended event was received, in a packet with this security.
    Denm(DenIndication, Box<DenmHead>, Security),
    /// A received DENM was dropped.
    DenmDropped(DenDrop, ActionId),
    /// The clock of a station has been found to be offset. Reported once for a station and an offset.
    ClockOffset(ClockReport),
}

/// Counters of the layer; each service has its own counters too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FacilitiesCounters {
    /// Messages for sending.
    pub sent: u64,
    /// Messages that could not be encoded because one of their containers is invalid.
    pub unencodable: u64,
    /// Messages that were dropped because the queue of messages to send was full.
    pub transmits_lost: u64,
    /// Events that were dropped because the queue of events was full.
    pub events_lost: u64,
}

/// The services and the local dynamic map of one station.
#[derive(Debug)]
pub struct Facilities {
    ca: Option<CaService>,
    cp: Option<CpService>,
    den: Option<DenService>,
    va: Option<VaService>,
    ldm: LocalDynamicMap,
    /// Clocks of the stations whose messages are in the map.
    clocks: StationClocks,
    /// At most [`FACILITIES_TRANSMITS_MAX`].
    transmits: VecDeque<SendRequest>,
    /// At most [`FACILITIES_EVENTS_MAX`]; the oldest is dropped first. Changes of the map are queued in the map.
    events: VecDeque<FacilitiesEvent>,
    /// Time since which DENMs have waited in their service for room in `transmits`; `None` if none waits.
    denms_wait_since: Option<Mono>,
    counters: FacilitiesCounters,
}

impl Facilities {
    /// Creates a layer without a position. The seed decides the random values of the services.
    #[must_use]
    pub fn new(settings: FacilitiesSettings, seed: u64) -> Self {
        Self {
            ca: settings.ca.map(CaService::new),
            cp: settings.cp.map(CpService::new),
            den: settings.den.map(|den| DenService::new(den, seed)),
            va: settings.va.map(|va| VaService::new(va, seed)),
            ldm: LocalDynamicMap::new(),
            clocks: StationClocks::new(settings.clock_tolerance),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            denms_wait_since: None,
            counters: FacilitiesCounters::default(),
        }
    }

    /// Returns the counters of the layer.
    #[must_use]
    pub const fn counters(&self) -> FacilitiesCounters {
        self.counters
    }

    /// Returns the map for queries.
    #[must_use]
    pub const fn ldm(&self) -> &LocalDynamicMap {
        &self.ldm
    }

    /// Returns the map for setting its area.
    pub const fn ldm_mut(&mut self) -> &mut LocalDynamicMap {
        &mut self.ldm
    }

    /// Returns the CA service for setting optional containers, or `None` if it is off.
    pub const fn ca_mut(&mut self) -> Option<&mut CaService> {
        self.ca.as_mut()
    }

    /// Returns the CP service for setting sensors and regions, or `None` if it is off.
    pub const fn cp_mut(&mut self) -> Option<&mut CpService> {
        self.cp.as_mut()
    }

    /// Returns the DEN service, or `None` if it is off.
    #[must_use]
    pub const fn den(&self) -> Option<&DenService> {
        self.den.as_ref()
    }

    /// Returns the VA service for setting its role, or `None` if it is off.
    pub const fn va_mut(&mut self) -> Option<&mut VaService> {
        self.va.as_mut()
    }

    /// Sets the movement of the station.
    pub fn set_vehicle(&mut self, now: Now, state: &VehicleState) {
        if let Some(ca) = &mut self.ca {
            ca.set_vehicle(now, state);
        }
        if let Some(cp) = &mut self.cp {
            cp.set_vehicle(now, state);
        }
        if let Some(va) = &mut self.va {
            va.set_vehicle(now, state);
        }
        if let Some((den, position)) = self.den.as_mut().zip(state.position) {
            den.set_position(position);
        }
    }

    /// Sets all objects that the station perceives now. Has no effect without CP service.
    pub fn set_objects(&mut self, objects: Vec<PerceivedObject>) {
        if let Some(cp) = &mut self.cp {
            cp.set_objects(objects);
        }
    }

    /// Sets the minimum interval between messages on a busy channel, for CAM (`T_GenCam_DCC`), CPM and VAM.
    pub fn set_t_gen_dcc(&mut self, interval: Duration) {
        if let Some(ca) = &mut self.ca {
            ca.set_t_gen_cam_dcc(interval);
        }
        if let Some(cp) = &mut self.cp {
            cp.set_t_gen_cpm(interval);
        }
        if let Some(va) = &mut self.va {
            va.set_t_gen_vam(interval);
        }
    }

    /// Sends the DENM of a new event. If the queue is full, the DENM waits until requests have been taken from it.
    ///
    /// # Errors
    /// Returns an error if the station has no DEN service, or the service rejects the report.
    pub fn trigger_event(&mut self, now: Now, report: EventReport) -> Result<ActionId, EventError> {
        let action_id = self.den.as_mut().ok_or(EventError::ServiceOff)?.trigger(now, report)?;
        self.send_denms(now);
        Ok(action_id)
    }

    /// Sends a change of an event of this station.
    ///
    /// # Errors
    /// Returns an error if the station has no DEN service, or the service rejects the report.
    pub fn update_event(&mut self, now: Now, action_id: ActionId, report: EventReport) -> Result<(), EventError> {
        self.den.as_mut().ok_or(EventError::ServiceOff)?.update(now, action_id, report)?;
        self.send_denms(now);
        Ok(())
    }

    /// Sends the end of an event.
    ///
    /// # Errors
    /// Returns an error if the station has no DEN service, or the service rejects the report.
    pub fn terminate_event(
        &mut self,
        now: Now,
        action_id: ActionId,
        report: EventReport,
    ) -> Result<Termination, EventError> {
        let termination = self.den.as_mut().ok_or(EventError::ServiceOff)?.terminate(now, action_id, report)?;
        self.send_denms(now);
        Ok(termination)
    }

    /// Passes a received message to the services and the map.
    pub fn handle_received(&mut self, now: Now, received: &Received) {
        self.observe_clock(now, received);
        match &received.message {
            Message::Denm(denm) => self.handle_denm(now, denm, received),
            Message::Vam(vam) => {
                if let Some(va) = &mut self.va {
                    va.handle_received(now, &ReceivedVam::from(&**vam));
                }
                self.record_received(now, &received.message, &received.payload, received.security);
            }
            _ => self.record_received(now, &received.message, &received.payload, received.security),
        }
    }

    /// Compares the sender's clock with the reception time. Only CAM, CPM and VAM are sent as soon as they are
    /// generated: DENMs and IVIMs are repeated, and the times of the other messages are UTC.
    fn observe_clock(&mut self, now: Now, received: &Received) {
        if !matches!(received.kind, MessageKind::Cam | MessageKind::Cpm | MessageKind::Vam) {
            return;
        }
        let Some(generation) = received.summary.generation else {
            return;
        };
        if let Some(report) = self.clocks.observe(now.tai, received.summary.station_id, generation) {
            self.queue_event(FacilitiesEvent::ClockOffset(report));
        }
    }

    /// Deletes the events, map objects and road users received from other stations, and leaves any VAM cluster. Own
    /// events and messages continue.
    pub fn forget_received(&mut self) {
        if let Some(den) = &mut self.den {
            den.forget_received();
        }
        if let Some(va) = &mut self.va {
            va.forget_received();
        }
        self.ldm.forget_received();
        self.clocks.begin_again();
    }

    /// Handles the actions that are due in the services and in the map.
    pub fn handle_timeout(&mut self, now: Now) {
        if let Some((input, _)) = self.ca.as_mut().and_then(|ca| ca.handle_timeout(now)) {
            self.broadcast(now, &Message::Cam(Box::new(cam::build(&input))));
        }
        if let Some((content, _)) = self.va.as_mut().and_then(|va| va.handle_timeout(now)) {
            self.broadcast(now, &Message::Vam(Box::new(vam::build(&content.input()))));
        }
        for input in self.cp.as_mut().map(|cp| cp.handle_timeout(now)).unwrap_or_default() {
            self.broadcast(now, &Message::Cpm(Box::new(cpm::build(&input))));
        }
        if let Some(den) = &mut self.den {
            den.handle_timeout(now);
        }
        self.send_denms(now);
        self.ldm.handle_timeout(now);
    }

    /// Returns the next message for the station to send, or `None` if there is none.
    pub fn poll_transmit(&mut self) -> Option<SendRequest> {
        self.transmits.pop_front()
    }

    /// Returns the next event, or `None` if there is none.
    pub fn poll_event(&mut self) -> Option<FacilitiesEvent> {
        self.events.pop_front().or_else(|| self.ldm.poll_event().map(FacilitiesEvent::Map))
    }

    /// Returns the time at which [`Self::handle_timeout`] is to be called, or `None` if nothing is pending.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let services = [
            self.ca.as_ref().and_then(CaService::poll_timeout),
            self.cp.as_ref().and_then(CpService::poll_timeout),
            self.den.as_ref().and_then(DenService::poll_timeout),
            self.va.as_ref().and_then(VaService::poll_timeout),
            self.ldm.poll_timeout(),
            self.denms_wait_since,
        ];
        services.into_iter().flatten().min()
    }

    /// Passes a received DENM to its service and the map. The map contains an event until its end.
    fn handle_denm(&mut self, now: Now, denm: &Denm, received: &Received) {
        let head = DenmHead::from(denm);
        let Some(den) = &mut self.den else {
            self.record_event(now, &head, received);
            return;
        };
        let area = match received.destination {
            Destination::Area(area) => Some(area),
            _ => None,
        };
        let Received { payload, security, .. } = received;
        let received_denm = ReceivedDenm { head: &head, payload, destination: area, security: *security };
        let indication = den.handle_received(now, &received_denm);
        let lasts = den.lasts(head.action_id);
        match indication {
            Ok(indication) => {
                self.record_event(now, &head, received);
                self.queue_event(FacilitiesEvent::Denm(indication, Box::new(head), received.security));
            }
            Err(reason) => {
                if reason == DenDrop::Repeated && lasts {
                    self.record_repeated(now, &head, received);
                }
                self.queue_event(FacilitiesEvent::DenmDropped(reason, head.action_id));
            }
        }
    }

    /// Marks a repeated event in the map as recently received, so that it is evicted later, or inserts it again if it
    /// was evicted.
    fn record_repeated(&mut self, now: Now, head: &DenmHead, received: &Received) {
        if !self.ldm.touch(event_key(head.action_id)) {
            self.record_event(now, head, received);
        }
    }

    fn record_event(&mut self, now: Now, head: &DenmHead, received: &Received) {
        if head.termination.is_none() {
            self.record_received(now, &received.message, &received.payload, received.security);
        } else if !self.is_own(event_key(head.action_id)) {
            // The application decides on the negation of an own event.
            self.ldm.withdraw(event_key(head.action_id));
        }
    }

    fn is_own(&self, key: LdmKey) -> bool {
        self.ldm.get(&key).is_some_and(|known| known.own)
    }

    fn record_received(&mut self, now: Now, message: &Message, payload: &Bytes, security: Security) {
        let sender = Sender::Other { clocks: &self.clocks, security };
        for object in objects_of(now, message, payload, sender) {
            if is_withdrawal(message) && !self.is_own(object.key) {
                self.ldm.withdraw(object.key);
            } else {
                // The map rejects and counts the withdrawal of an own object by another station.
                self.ldm.insert(now, object);
            }
        }
    }

    fn record_own(&mut self, now: Now, message: &Message, payload: &Bytes) {
        for object in objects_of(now, message, payload, Sender::Own) {
            if is_withdrawal(message) {
                self.ldm.withdraw(object.key);
            } else {
                self.ldm.insert(now, object);
            }
        }
    }

    /// Sends a message to the stations in range.
    fn broadcast(&mut self, now: Now, message: &Message) {
        if let Some(payload) = self.encode(message) {
            self.record_own(now, message, &payload);
            self.transmit(SendRequest::single_hop(message.kind(), payload));
        }
    }

    /// Queues DENMs while there is room. The others wait in their service, so that no event loses all its repetitions.
    fn send_denms(&mut self, now: Now) {
        while self.transmits.len() < FACILITIES_TRANSMITS_MAX {
            let Some(transmit) = self.den.as_mut().and_then(DenService::poll_transmit) else {
                break;
            };
            self.send_denm(now, transmit);
        }
        self.denms_wait_since = self.den.as_ref().filter(|den| den.has_transmits()).map(|_| now.mono);
    }

    /// Queues a DENM. A DENM whose event has ended while it waited is dropped.
    fn send_denm(&mut self, now: Now, transmit: DenTransmit) {
        let left = transmit.valid_until().since(now.tai);
        if left.is_zero() {
            self.counters.transmits_lost += 1;
            return;
        }
        match transmit {
            DenTransmit::Own(own) => self.send_own_denm(now, &own, left),
            DenTransmit::Forwarded(denm) => {
                let request = denm_request(Destination::Area(denm.destination), denm.payload, left);
                // Forwarded DENMs have a lower priority than own ones (TS 103 175).
                self.transmit(SendRequest { traffic_class: TrafficClass::DP3, ..request });
            }
        }
    }

    fn send_own_denm(&mut self, now: Now, own: &OwnDenm, left: Duration) {
        let message = Message::Denm(Box::new(denm::build(&own.input)));
        let Some(payload) = self.encode(&message) else {
            return;
        };
        if own.input.termination.is_none() {
            self.record_own(now, &message, &payload);
        } else {
            self.ldm.withdraw(event_key(own.input.action_id));
        }
        let request = denm_request(Destination::Area(own.destination), payload, left);
        // The first DENM of an event has the highest priority (TS 103 175).
        let traffic_class = if own.repeated { TrafficClass::DP1 } else { TrafficClass::DP0 };
        self.transmit(SendRequest { traffic_class, ..request });
    }

    fn encode(&mut self, message: &Message) -> Option<Bytes> {
        let encoded = message.encode().ok().map(Bytes::from);
        if encoded.is_none() {
            self.counters.unencodable += 1;
        }
        encoded
    }

    fn transmit(&mut self, request: SendRequest) {
        if self.transmits.len() >= FACILITIES_TRANSMITS_MAX {
            self.counters.transmits_lost += 1;
            return;
        }
        self.counters.sent += 1;
        self.transmits.push_back(request);
    }

    fn queue_event(&mut self, event: FacilitiesEvent) {
        if self.events.len() >= FACILITIES_EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_lost += 1;
        }
        self.events.push_back(event);
    }
}

/// Returns the request for a DENM. The packet's lifetime is the validity of the event, within the limits of a packet.
fn denm_request(destination: Destination, payload: Bytes, left: Duration) -> SendRequest {
    let lifetime = Lifetime::from_duration(left.clamp(PACKET_LIFETIME_MIN, ITS_GN_MAX_PACKET_LIFETIME.duration()));
    SendRequest { lifetime, ..SendRequest::to(destination, MessageKind::Denm, payload) }
}

const fn event_key(action_id: ActionId) -> LdmKey {
    let subject = LdmSubject::Event(action_id.sequence_number);
    LdmKey { kind: MessageKind::Denm, station_id: action_id.originating_station, subject }
}
