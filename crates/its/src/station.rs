//! The machine of an ITS station: frames, commands and time go in; frames, events and a deadline come out.
//!
//! **After each input, take every frame from [`Station::poll_transmit`] and every event from [`Station::poll_event`], then
//! read [`Station::poll_timeout`], before the next input.**
//!
//! It joins the layers: the link's frames, the router of GeoNetworking, BTP, the messages.

use std::collections::VecDeque;

use bytes::Bytes;
use viaduct_etsi::pdu_header;
use viaduct_units::{Mono, Now, Tai};

use crate::{
    Counters, DropReason, Ego, Received, SendError, SendRequest, StationSettings, btp,
    geonet::{GnAddress, GnRequest, LongPositionVector, Mib, Outcome, Router, mib::LocalGnAddrConfMethod},
    limits::{EVENTS_MAX, PAYLOAD_OCTETS_MAX},
    receive::{BeaconReceived, LinkPacket},
};

/// What happened to a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message was received. Its packet may have been taken to be forwarded too.
    Received(Box<Received>),
    /// A packet for others was taken to be forwarded.
    Relayed,
    /// A beacon was received.
    Beacon(BeaconReceived),
    /// Somebody asked where this station is, or answered where another one is.
    LocationService,
    /// A frame was dropped.
    Dropped(DropReason),
}

/// An ITS station on one link.
#[derive(Debug)]
pub struct Station {
    router: Router,
    /// Events that wait to be taken, at most [`EVENTS_MAX`].
    events: VecDeque<Event>,
}

impl Station {
    /// A station that does not know where it is. The seed decides the jitter of its beacons.
    ///
    /// Its protocol constants are the standard's; its address is the caller's and stays.
    #[must_use]
    pub fn new(settings: StationSettings, seed: u64) -> Self {
        let mib = Mib { local_gn_addr_conf_method: LocalGnAddrConfMethod::Managed, ..Mib::default() };
        Self::with_mib(settings, mib, seed)
    }

    /// A station with protocol constants of its own.
    #[must_use]
    pub fn with_mib(settings: StationSettings, mib: Mib, seed: u64) -> Self {
        Self { router: Router::new(settings, mib, seed), events: VecDeque::new() }
    }

    /// Begins the sequence numbers of its packets where the time says instead of at 0, which the standard asks for (EN 302 636-4-1,
    /// 8.3): a station that is started again would else repeat numbers that its neighbours remember (for 20 s by default), who would
    /// take its first packets for duplicates. The numbers come round after 65 s.
    #[must_use]
    pub fn with_sequence_of(mut self, time: Tai) -> Self {
        self.router.start_sequence(time);
        self
    }

    /// Own GeoNetworking address. It changes where the station makes it itself and meets somebody who has the same.
    #[must_use]
    pub const fn address(&self) -> GnAddress {
        self.router.address()
    }

    /// What the station has counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.router.counters
    }

    /// Packets that were taken to be sent and wait: for a neighbour, for their turn, for the location of their destination.
    #[must_use]
    pub fn held_packets(&self) -> usize {
        self.router.held()
    }

    /// Stations that the location table holds.
    #[must_use]
    pub fn known_stations(&self) -> usize {
        self.router.table().len()
    }

    /// Stations that the location table had to forget before their time.
    #[must_use]
    pub const fn evicted_stations(&self) -> u64 {
        self.router.table().evicted()
    }

    /// Where a station was last, and whether it was heard directly; `None` where it has not been heard of lately.
    #[must_use]
    pub fn location_of(&self, now: Now, address: GnAddress) -> Option<(LongPositionVector, bool)> {
        self.router.table().get(now.mono, address).map(|entry| (entry.position_vector, entry.neighbour))
    }

    /// Tells the station where it is. The first time starts the beacon service.
    pub fn set_ego(&mut self, now: Now, ego: Ego) {
        self.router.set_ego(now.mono, ego);
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Why it was not sent; what the station has sent and holds is as it was before.
    pub fn send(&mut self, now: Now, request: &SendRequest) -> Result<(), SendError> {
        self.router.send(now.mono, gn_request(request)?, request.destination, request.repetition)?;
        self.router.counters.sent += 1;
        Ok(())
    }

    /// Takes in one frame as it was on the wire, Ethernet header included. It becomes exactly one event.
    pub fn handle_frame(&mut self, now: Now, frame: &Bytes) {
        self.router.counters.received += 1;
        let event = self.event_of(now, frame).unwrap_or_else(Event::Dropped);
        if self.events.len() >= EVENTS_MAX {
            self.router.counters.count_drop(DropReason::EventQueueFull);
            return;
        }
        self.count(&event);
        self.events.push_back(event);
    }

    /// Does what is due; before the deadline of [`Self::poll_timeout`] it does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        self.router.handle_timeout(now.mono);
    }

    /// The next frame for the wire, Ethernet header included: for everybody, or for the link address of one neighbour.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.router.poll_transmit()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.router.poll_timeout()
    }

    fn event_of(&mut self, now: Now, frame: &Bytes) -> Result<Event, DropReason> {
        let packet = LinkPacket::parse(now.tai, frame, self.router.acceptance())?;
        Ok(match self.router.handle(now, &packet.link, &packet.packet)? {
            Outcome::Deliver => Event::Received(Box::new(packet.decode()?)),
            Outcome::Relayed => Event::Relayed,
            Outcome::Beacon => Event::Beacon(packet.beacon()),
            Outcome::LocationService => Event::LocationService,
        })
    }

    fn count(&mut self, event: &Event) {
        let counters = &mut self.router.counters;
        match event {
            Event::Received(_) => counters.delivered += 1,
            Event::Relayed => counters.relayed += 1,
            Event::Beacon(_) => counters.beacons += 1,
            Event::LocationService => counters.location_service += 1,
            Event::Dropped(reason) => counters.count_drop(*reason),
        }
    }
}

/// The request in GeoNetworking's terms, if the payload can be sent as what it says (BTP-Data.request).
fn gn_request(request: &SendRequest) -> Result<GnRequest, SendError> {
    let payload_length = payload_length(request)?;
    let header = request.btp.header(request.kind.btp_port());
    let mut payload = Vec::with_capacity(payload_length.into());
    header.write(&mut payload);
    payload.extend_from_slice(&request.payload);
    Ok(GnRequest {
        next_header: header.next_header(),
        class: request.traffic_class,
        lifetime: request.lifetime,
        payload,
        payload_length,
    })
}

/// Octets of the BTP packet, if the payload is the message that the request says.
fn payload_length(request: &SendRequest) -> Result<u16, SendError> {
    let found = pdu_header(&request.payload).map(|header| header.message_id);
    if found != Some(request.kind.message_id()) {
        return Err(SendError::WrongMessage { expected: request.kind.label(), found });
    }
    let octets = request.payload.len();
    if octets > PAYLOAD_OCTETS_MAX {
        return Err(SendError::TooLong { octets });
    }
    u16::try_from(octets + btp::HEADER_OCTETS).map_err(|_| SendError::TooLong { octets })
}
