//! The state machine of an ITS station: frames, commands and time go in; frames, events and a deadline come out.
//!
//! **After each input, take every frame from [`Station::poll_transmit`] and every event from [`Station::poll_event`], then
//! read [`Station::poll_timeout`], before the next input.**
//!
//! The station joins the layers: link frames, the GeoNetworking router, BTP and the messages.

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

/// The outcome of a received frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The frame carried a message for this station. Its packet may also be forwarded.
    Received(Box<Received>),
    /// The packet was for other stations only, and was accepted for forwarding.
    Relayed,
    /// The frame was a beacon.
    Beacon(BeaconReceived),
    /// The packet was a location request for this station or a location reply.
    LocationService,
    /// The frame was dropped.
    Dropped(DropReason),
}

/// An ITS station on one link.
///
/// The caller owns the clock and the link. It passes time and frames in, and drains frames and events after each input:
///
/// ```
/// use std::time::Duration;
/// use viaduct_its::{Ego, Event, Station, StationSettings, access::MacAddress};
/// use viaduct_units::{MetresPerSecond, Mono, Now, Position, StationType, TimestampIts};
///
/// let settings = |number| StationSettings {
///     link_address: MacAddress([2, 0, 0, 0, 0, number]),
///     station_type: StationType::PASSENGER_CAR,
///     mobile: true,
///     beacons: true,
/// };
/// let (mut sender, mut receiver) = (Station::new(settings(1), 1), Station::new(settings(2), 2));
/// let mut now = Now { mono: Mono::default(), tai: TimestampIts(650_000_000_000).tai() };
/// let ego = Ego {
///     time: now.tai,
///     position: Position::new(48.6, 11.6),
///     position_accurate: true,
///     speed: MetresPerSecond(0.0),
///     heading: None,
/// };
/// // With a position, the sender schedules its first beacon.
/// sender.set_ego(now, ego);
///
/// let mut events = Vec::new();
/// while events.is_empty() {
///     // 1. Wait for the deadline of the sender; here, time is advanced at once.
///     let deadline = sender.poll_timeout().expect("a beacon is scheduled");
///     now = now.plus(deadline.since(now.mono).max(Duration::from_millis(1)));
///     sender.handle_timeout(now);
///     // 2. Drain the frames into the link, which leads to the receiver.
///     while let Some(frame) = sender.poll_transmit() {
///         receiver.handle_frame(now, &frame.into());
///     }
///     // 3. Drain the events of the receiver.
///     while let Some(event) = receiver.poll_event() {
///         events.push(event);
///     }
/// }
/// assert!(matches!(&events[..], [Event::Beacon(beacon)] if beacon.source.address == sender.address()));
/// ```
#[derive(Debug)]
pub struct Station {
    router: Router,
    /// Events not yet returned by [`Station::poll_event`], at most [`EVENTS_MAX`].
    events: VecDeque<Event>,
}

impl Station {
    /// Returns a station without a position. The seed determines the jitter of its beacons.
    ///
    /// The protocol constants are the defaults of the standard. The address is made from `settings` and never changes.
    #[must_use]
    pub fn new(settings: StationSettings, seed: u64) -> Self {
        let mib = Mib { local_gn_addr_conf_method: LocalGnAddrConfMethod::Managed, ..Mib::default() };
        Self::with_mib(settings, mib, seed)
    }

    /// Returns a station with the given protocol constants.
    #[must_use]
    pub fn with_mib(settings: StationSettings, mib: Mib, seed: u64) -> Self {
        Self { router: Router::new(settings, mib, seed), events: VecDeque::new() }
    }

    /// Starts the sequence numbers of packets at a value derived from the time, instead of at 0 as the standard asks
    /// (EN 302 636-4-1, 8.3). Neighbours remember sequence numbers (for 20 s by default), and would drop the first
    /// packets of a restarted station as duplicates. The numbers wrap after 65 s.
    #[must_use]
    pub fn with_sequence_of(mut self, time: Tai) -> Self {
        self.router.start_sequence(time);
        self
    }

    /// Returns the station's GeoNetworking address. With automatic configuration, the station changes it if another
    /// station uses the same address.
    #[must_use]
    pub const fn address(&self) -> GnAddress {
        self.router.address()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.router.counters
    }

    /// Returns the number of packets that were accepted for sending and are waiting for a neighbour, for the end of
    /// contention, or for the location of their destination.
    #[must_use]
    pub fn held_packets(&self) -> usize {
        self.router.held()
    }

    /// Returns the number of stations in the location table.
    #[must_use]
    pub fn known_stations(&self) -> usize {
        self.router.table().len()
    }

    /// Returns the number of stations that were evicted from the location table before their entry expired.
    #[must_use]
    pub const fn evicted_stations(&self) -> u64 {
        self.router.table().evicted()
    }

    /// Returns the last position vector of a station, and `true` if the station is a neighbour (received directly).
    /// Returns `None` if the location table has no entry for it.
    #[must_use]
    pub fn location_of(&self, now: Now, address: GnAddress) -> Option<(LongPositionVector, bool)> {
        self.router.table().get(now.mono, address).map(|entry| (entry.position_vector, entry.neighbour))
    }

    /// Sets the station's position and movement. The first call starts the beacon service.
    pub fn set_ego(&mut self, now: Now, ego: Ego) {
        self.router.set_ego(now.mono, ego);
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Returns the reason why the message was not sent. The state of the station is then unchanged.
    pub fn send(&mut self, now: Now, request: &SendRequest) -> Result<(), SendError> {
        self.router.send(now.mono, gn_request(request)?, request.destination, request.repetition)?;
        self.router.counters.sent += 1;
        Ok(())
    }

    /// Processes one frame as received, Ethernet header included. It yields exactly one event.
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

    /// Does the work that is due. Does nothing before the deadline of [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Now) {
        self.router.handle_timeout(now.mono);
    }

    /// Returns the next frame to send, Ethernet header included, or `None` if there is none. The destination is
    /// broadcast or the link address of one neighbour.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.router.poll_transmit()
    }

    /// Returns the next event, or `None` if there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None` if nothing is scheduled.
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

/// Returns the GN-DATA.request of a BTP-Data.request, if the payload is a valid message of the requested kind.
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

/// Returns the length of the BTP packet in octets, if the payload is a message of the requested kind.
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
