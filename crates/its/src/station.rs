//! The machine of an ITS station: frames, commands and time go in; frames, events and a deadline come out.
//!
//! **After each input, take every frame from [`Station::poll_transmit`] and every event from [`Station::poll_event`], then
//! read [`Station::poll_timeout`], before the next input.**

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_etsi::pdu_header;
use viaduct_units::{Degrees, MetresPerSecond, Mono, Now, Position, Tai};

use crate::{
    Counters, Destination, DropReason, Frame, Received, SendRequest,
    access::{ETHERTYPE_GEONETWORKING, EthernetHeader, MacAddress},
    btp,
    geonet::{
        self, GnAddress, LongPositionVector,
        mib::{ITS_GN_BEACON_SERVICE_MAX_JITTER, ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER},
    },
    limits::{EVENTS_MAX, PAYLOAD_OCTETS_MAX, TRANSMITS_MAX},
    receive::{BeaconReceived, decode_unless_own},
};

/// What a station is, for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationSettings {
    /// Address on the link; the GeoNetworking address is made from it.
    pub link_address: MacAddress,
    /// ITS-S type of the GeoNetworking address, 0 to 31: 5 is a passenger car, 15 a roadside unit.
    pub station_type: u8,
    /// Whether the station can move (`itsGnIsMobile`).
    pub mobile: bool,
    /// Whether to send beacons while nothing else is sent (EN 302 636-4-1, 10.3.6).
    pub beacons: bool,
}

/// Where the station is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ego {
    /// When it was there.
    pub time: Tai,
    /// Where it was.
    pub position: Position,
    /// Whether the 95 % confidence ellipse is within `itsGnPaiInterval` (80 m).
    pub position_accurate: bool,
    /// Speed along the heading, negative backwards.
    pub speed: MetresPerSecond,
    /// Heading of the movement.
    pub heading: Option<Degrees>,
}

/// Why a message was not sent. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The station does not know where it is, and every packet says so (`set_ego` was never called).
    #[error("the station has no position yet")]
    NoPosition,
    /// The payload does not begin with the header of the message that it is sent as.
    #[error("the payload is not a {expected}: its message id is {found:?}")]
    WrongMessage {
        /// The message it is sent as.
        expected: &'static str,
        /// `messageId` of the payload; `None` where it is too short for a header.
        found: Option<u8>,
    },
    /// The payload does not fit a packet.
    #[error("the message has {octets} octets, a packet takes {PAYLOAD_OCTETS_MAX}")]
    TooLong {
        /// Octets of the payload.
        octets: usize,
    },
    /// Multi-hop packets and repetition are not there yet.
    #[error("only single-hop broadcasts without repetition are sent")]
    Unsupported,
    /// Nobody has taken the frames before this one.
    #[error("{TRANSMITS_MAX} frames wait to be transmitted")]
    QueueFull,
}

/// What happened to a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message was received.
    Received(Box<Received>),
    /// A beacon was received.
    Beacon(BeaconReceived),
    /// A frame was dropped.
    Dropped(DropReason),
}

/// An ITS station on one link.
#[derive(Debug)]
pub struct Station {
    settings: StationSettings,
    /// Own GeoNetworking address: a packet that has it as its source is an echo.
    address: GnAddress,
    /// Where the station is; `None` until it is told.
    ego: Option<Ego>,
    /// When the next beacon is due, if nothing else is sent before.
    beacon_due: Option<Mono>,
    /// State of the generator of jitter.
    random: u64,
    /// Frames that wait to be taken, at most [`TRANSMITS_MAX`].
    transmits: VecDeque<Vec<u8>>,
    /// Events that wait to be taken, at most [`EVENTS_MAX`].
    events: VecDeque<Event>,
    counters: Counters,
}

impl Station {
    /// A station that does not know where it is. The seed decides the jitter of its beacons.
    #[must_use]
    pub fn new(settings: StationSettings, seed: u64) -> Self {
        Self {
            settings,
            address: GnAddress::new(settings.station_type, settings.link_address),
            ego: None,
            beacon_due: None,
            random: seed,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Own GeoNetworking address.
    #[must_use]
    pub const fn address(&self) -> GnAddress {
        self.address
    }

    /// What the station has counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Tells the station where it is. The first time starts the beacon service.
    pub fn set_ego(&mut self, now: Now, ego: Ego) {
        self.ego = Some(ego);
        if self.settings.beacons && self.beacon_due.is_none() {
            // The first beacon goes out at once (10.3.6.2), but for the jitter: stations may start together.
            self.beacon_due = Some(now.mono.plus(self.jitter()));
        }
    }

    /// Sends a message as a single-hop broadcast.
    ///
    /// # Errors
    /// Why it was not sent; the station is as it was before.
    pub fn send(&mut self, now: Now, request: &SendRequest) -> Result<(), SendError> {
        let source = self.source().ok_or(SendError::NoPosition)?;
        let length = payload_length(request)?;
        if request.destination != Destination::SingleHop || request.repetition.is_some() {
            return Err(SendError::Unsupported);
        }
        if self.transmits.len() >= TRANSMITS_MAX {
            return Err(SendError::QueueFull);
        }
        let mut frame = self.begin_frame();
        let asked = (request.traffic_class, request.lifetime);
        geonet::write_shb(&source, asked, self.settings.mobile, length, &mut frame);
        btp::write_btp_b(request.kind.btp_port(), &mut frame);
        frame.extend_from_slice(&request.payload);
        self.transmits.push_back(frame);
        self.counters.sent += 1;
        self.restart_beacon_timer(now.mono);
        Ok(())
    }

    /// Takes in one frame as it was on the wire, Ethernet header included. It becomes exactly one event.
    pub fn handle_frame(&mut self, now: Now, frame: &Bytes) {
        self.counters.received += 1;
        let decoded = decode_unless_own(now.tai, frame, Some(self.address));
        if self.events.len() >= EVENTS_MAX {
            self.counters.count_drop(DropReason::EventQueueFull);
            return;
        }
        let event = match decoded {
            Ok(Frame::Message(received)) => {
                self.counters.delivered += 1;
                Event::Received(received)
            }
            Ok(Frame::Beacon(beacon)) => {
                self.counters.beacons += 1;
                Event::Beacon(beacon)
            }
            Err(reason) => {
                self.counters.count_drop(reason);
                Event::Dropped(reason)
            }
        };
        self.events.push_back(event);
    }

    /// Does what is due; before the deadline of [`Self::poll_timeout`] it does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        if self.beacon_due.is_some_and(|due| due <= now.mono) {
            self.send_beacon();
            self.restart_beacon_timer(now.mono);
        }
    }

    /// The next frame for the wire.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmits.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Mono> {
        self.beacon_due
    }

    fn send_beacon(&mut self) {
        let Some(source) = self.source() else {
            return;
        };
        if self.transmits.len() >= TRANSMITS_MAX {
            self.counters.beacons_skipped += 1;
            return;
        }
        let mut frame = self.begin_frame();
        geonet::write_beacon(&source, self.settings.mobile, &mut frame);
        self.transmits.push_back(frame);
        self.counters.beacons_sent += 1;
    }

    /// Every packet that carries the own position vector puts the next beacon off (10.3.6.2).
    fn restart_beacon_timer(&mut self, now: Mono) {
        if self.beacon_due.is_some() {
            self.beacon_due = Some(now.plus(ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER + self.jitter()));
        }
    }

    /// The own position vector.
    fn source(&self) -> Option<LongPositionVector> {
        self.ego.map(|ego| LongPositionVector {
            address: self.address,
            timestamp: ego.time,
            position: Some(ego.position),
            position_accurate: ego.position_accurate,
            speed: ego.speed,
            heading: ego.heading,
        })
    }

    fn begin_frame(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(256);
        let link = EthernetHeader {
            destination: MacAddress::BROADCAST,
            source: self.settings.link_address,
            ethertype: ETHERTYPE_GEONETWORKING,
        };
        link.write(&mut frame);
        frame
    }

    /// A time up to `itsGnBeaconServiceMaxJitter`.
    fn jitter(&mut self) -> Duration {
        // SplitMix64: any seed is good, and its upper half is what we take.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let fraction = f64::from(u32::try_from(mixed >> 32).unwrap_or(0)) / f64::from(u32::MAX);
        ITS_GN_BEACON_SERVICE_MAX_JITTER.mul_f64(fraction)
    }
}

/// Octets of the BTP packet, if the payload can be sent as what the request says.
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
