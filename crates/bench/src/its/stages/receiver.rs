//! The receiving station: socket, frame, packet, message, JSON, MQTT.

use std::sync::mpsc::Sender;

use viaduct_bus::clock;
use viaduct_components::net::{FrameSocket, SocketFrame};
use viaduct_components::v2x::received_message;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::Message;
use viaduct_its::{Event, Received, Station, StationSettings};
use viaduct_messages::viaduct::its::AccessLayer;
use viaduct_mqtt::client::Client;
use viaduct_units::{Now, StationType, Tai};

use super::Observation;
use crate::its::throughput::json_text;

/// MQTT topic of the messages.
pub(super) const TOPIC: &str = "its/rx/cam";

/// A station with its socket and its connection to the broker.
pub(super) struct Receiver {
    pub(super) socket: FrameSocket,
    pub(super) station: Station,
    pub(super) access: AccessLayer,
    pub(super) client: Client,
    /// Channel for the times of each packet.
    pub(super) observations: Sender<Observation>,
}

/// Times of a packet from the receiving kernel on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Number of the CAM.
    pub(super) number: u16,
    /// Kernel's timestamp of the reception.
    pub(super) received: Tai,
    /// The station has read the frame.
    pub(super) taken: Tai,
    /// The message is decoded.
    pub(super) decoded: Tai,
    /// The JSON is written.
    pub(super) written: Tai,
}

/// Returns the protocol machine of the receiving station.
pub(super) fn station() -> Station {
    let link_address = MacAddress([2, 0, 0, 0, 0, 1]);
    Station::new(
        StationSettings { link_address, station_type: StationType::ROADSIDE_UNIT, mobile: false, beacons: false },
        1,
    )
}

impl Receiver {
    /// Receives until the socket or a channel is closed. Frames other than the bench's CAMs are skipped.
    pub(super) async fn run(mut self) {
        while let Ok(frame) = self.socket.receive().await {
            let taken = clock::tai();
            let Some((arrival, text)) = self.take(&frame, taken) else { continue };
            if self.client.publish_qos0(TOPIC, text).await.is_err()
                || self.observations.send(Observation::Arrived(arrival)).is_err()
            {
                return;
            }
        }
    }

    fn take(&mut self, frame: &SocketFrame, taken: Tai) -> Option<(Arrival, Vec<u8>)> {
        let received = frame.received?;
        let packet = self.decode(frame, received)?;
        let decoded = clock::tai();
        let message = received_message(&packet, "bench/station", self.access, 0);
        let text = json_text(&packet, &message);
        let written = clock::tai();
        let Message::Cam(cam) = &packet.message else { return None };
        let number = cam.cam.generation_delta_time.0;
        Some((Arrival { number, received, taken, decoded, written }, text))
    }

    fn decode(&mut self, frame: &SocketFrame, received: Tai) -> Option<Box<Received>> {
        self.station.handle_frame(Now { tai: received, ..clock::now() }, &frame.octets);
        match self.station.poll_event()? {
            Event::Received(packet) => Some(packet),
            Event::Relayed | Event::Beacon(_) | Event::LocationService | Event::Dropped(_) => None,
        }
    }
}
