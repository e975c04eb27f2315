//! The sending station: JSON, UPER, packet, frame, socket.

use bytes::Bytes;
use tokio::runtime::Runtime;
use viaduct_bus::clock;
use viaduct_components::net::FrameSocket;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::{Ego, SendRequest, Station, StationSettings};
use viaduct_units::{MetresPerSecond, Position, StationType, Tai};

use super::departures;
use crate::error::BenchError;

/// Position of the station.
const POSITION: Position = Position::new(48.262_5, 11.667_5);

/// A station with its socket. Packets that the socket receives from itself are discarded.
pub(super) struct Sender {
    /// Runtime of the socket only: timestamps of sent packets wake no other task.
    runtime: Runtime,
    socket: FrameSocket,
    station: Station,
}

/// Times of a packet up to the socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// The application has passed its JSON.
    pub(super) asked: Tai,
    /// The UPER is written.
    pub(super) encoded: Tai,
    /// The frame is written.
    pub(super) framed: Tai,
}

/// Starts the runtime of a sender's socket.
pub(super) fn runtime() -> Result<Runtime, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(BenchError::system("cannot start the runtime"))
}

impl Sender {
    /// Creates a sender. `socket` must have been opened inside `runtime`.
    pub(super) fn new(runtime: Runtime, socket: FrameSocket) -> Result<Self, BenchError> {
        departures::stamp(&socket).map_err(BenchError::system("cannot get stamps of sent packets"))?;
        let settings = StationSettings {
            link_address: MacAddress([2, 0, 0, 0, 0, 2]),
            station_type: StationType::PASSENGER_CAR,
            mobile: true,
            beacons: false,
        };
        Ok(Self { runtime, socket, station: Station::new(settings, 1) })
    }

    /// Sends an application's CAM.
    pub(super) fn send(&mut self, text: &[u8]) -> Result<Departure, BenchError> {
        let asked = clock::tai();
        let request = request(text)?;
        let encoded = clock::tai();
        let frame = self.frame(&request)?;
        let framed = clock::tai();
        self.runtime.block_on(self.socket.send(&frame)).map_err(BenchError::system("cannot send a frame"))?;
        Ok(Departure { asked, encoded, framed })
    }

    fn frame(&mut self, request: &SendRequest) -> Result<Vec<u8>, BenchError> {
        let now = clock::now();
        self.station.set_ego(now, ego(now.tai));
        self.station.send(now, request).map_err(BenchError::part("the station rejects a message"))?;
        self.station.poll_transmit().ok_or_else(|| BenchError::broken("the station", "it has no frame to send"))
    }

    /// Returns the kernel's timestamp of the last packet, if any. Discards received packets.
    pub(super) fn last_departure(&self) -> Option<Tai> {
        departures::drain(&self.socket);
        departures::take(&self.socket)
    }
}

fn request(text: &[u8]) -> Result<SendRequest, BenchError> {
    let message = Message::from_json(MessageKind::Cam, text).map_err(BenchError::part("cannot read the CAM"))?;
    let payload = message.encode().map_err(BenchError::part("cannot encode the CAM"))?;
    Ok(SendRequest::single_hop(MessageKind::Cam, Bytes::from(payload)))
}

fn ego(time: Tai) -> Ego {
    Ego { time, position: POSITION, position_accurate: true, speed: MetresPerSecond(0.0), heading: None }
}
