//! The station that sends: JSON, UPER, packet, frame, socket.

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

/// Where the station stands.
const PLACE: Position = Position::new(48.262_5, 11.667_5);

/// A station with its socket. What its socket receives from itself is thrown away.
pub(super) struct Sender {
    /// The socket's: nobody else waits in it, so that the kernel's stamps of what is sent wake nobody.
    runtime: Runtime,
    socket: FrameSocket,
    station: Station,
}

/// When a packet was where, up to the socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// The JSON is there.
    pub(super) asked: Tai,
    /// It is UPER.
    pub(super) encoded: Tai,
    /// It is a frame.
    pub(super) framed: Tai,
}

/// The runtime of a sender's socket.
pub(super) fn runtime() -> Result<Runtime, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(BenchError::system("cannot start the runtime"))
}

impl Sender {
    /// `socket` was opened inside `runtime`.
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

    /// Sends the CAM that an application has written.
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
        self.station.send(now, request).map_err(BenchError::part("the station refuses a message"))?;
        self.station.poll_transmit().ok_or_else(|| BenchError::broken("the station", "it sends no frame"))
    }

    /// When the last packet left; and clears away what has gathered on the socket.
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
    Ego { time, position: PLACE, position_accurate: true, speed: MetresPerSecond(0.0), heading: None }
}
