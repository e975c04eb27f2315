//! A received message as one line of JSON.
//!
//! ```json
//! {"frame":7,"time":"2024-09-11T13:30:34.092870Z",
//!  "geonet":{"version":1,"type":"gbc","sequence_number":12,"remaining_hops":9,"maximum_hops":10,"traffic_class":1,
//!            "lifetime_s":60.0,
//!            "source":{"time":"...","latitude_deg":45.0,"longitude_deg":7.5,"speed_mps":0.0,"heading_deg":270.5},
//!            "area":{"latitude_deg":45.0,"longitude_deg":7.5,"circle":{"radius_m":500.0}}},
//!  "direction":"received","type":"denm"}
//! ```
//!
//! The members from `direction` on are those of `V2xMessage`. An area has the same form as in a send request.

use anyhow::Context as _;
use serde::Serialize;
use viaduct_components::v2x::received_message;
use viaduct_its::geonet::LongPositionVector;
use viaduct_its::{Destination, Received};
use viaduct_messages::viaduct::its::AccessLayer;
use viaduct_units::Degrees;
use viaduct_v2x_json::{AreaText, timestamp_text, write_message};

/// Members in front of those of the message.
#[derive(Serialize)]
struct Head {
    /// Number of the frame in the capture, from 1; absent for a frame that is not from a capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<u64>,
    /// Time of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    geonet: Geonet,
}

/// The headers of GeoNetworking.
#[derive(Serialize)]
struct Geonet {
    version: u8,
    r#type: &'static str,
    /// Absent for a single-hop packet, which has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<u16>,
    remaining_hops: u8,
    maximum_hops: u8,
    traffic_class: u8,
    lifetime_s: f64,
    source: Source,
    /// Area of a GBC or GAC packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<AreaText>,
    /// Address of the destination of a GUC packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
}

/// Position vector of the station that sent the packet first; its address is the member `geonet_address`.
#[derive(Serialize)]
struct Source {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    latitude_deg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longitude_deg: Option<f64>,
    speed_mps: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading_deg: Option<f64>,
}

/// Returns a message as one line of JSON, with the number and time of its frame if it is from a capture.
pub(super) fn json_line(packet: &Received, frame: Option<u64>) -> anyhow::Result<Vec<u8>> {
    let mut message = Vec::new();
    write_message(&received_message(packet, "", AccessLayer::Replay, 0), Some(&packet.message), &mut message);
    let time = frame.map(|_| timestamp_text(packet.reception));
    let mut line = serde_json::to_vec(&Head { frame, time, geonet: Geonet::of(packet) })?;
    // One object: the members of the head, then those of the message.
    line.pop();
    line.push(b',');
    line.extend_from_slice(message.strip_prefix(b"{").context("a message is not a JSON object")?);
    line.push(b'\n');
    Ok(line)
}

impl Geonet {
    fn of(packet: &Received) -> Self {
        let (r#type, area, destination) = match packet.destination {
            Destination::SingleHop => ("shb", None, None),
            Destination::Hops(_) => ("tsb", None, None),
            Destination::Area(area) => ("gbc", Some(area), None),
            Destination::AnyIn(area) => ("gac", Some(area), None),
            Destination::Station(address) => ("guc", None, Some(address.to_string())),
        };
        Self {
            version: packet.version,
            r#type,
            sequence_number: packet.sequence_number.map(|number| number.0),
            remaining_hops: packet.remaining_hops,
            maximum_hops: packet.maximum_hops,
            traffic_class: packet.traffic_class.0,
            lifetime_s: packet.remaining_lifetime.as_secs_f64(),
            source: Source::of(&packet.source),
            area: area.map(AreaText::from),
            destination,
        }
    }
}

impl Source {
    fn of(vector: &LongPositionVector) -> Self {
        Self {
            time: timestamp_text(vector.timestamp),
            latitude_deg: vector.position.map(|position| position.latitude.value()),
            longitude_deg: vector.position.map(|position| position.longitude.value()),
            speed_mps: vector.speed.value(),
            heading_deg: vector.heading.map(Degrees::value),
        }
    }
}
