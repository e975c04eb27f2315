//! Types of the answers, for the OpenAPI document. Features are written as text from the cache, so these types are never
//! instantiated; tests compare the two.
#![expect(dead_code, reason = "the types are documentation")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

use super::geojson::Link;

/// A GeoJSON FeatureCollection (RFC 7946) of V2X messages.
#[derive(ToSchema)]
pub(super) struct MessageCollection {
    #[schema(pattern = "^FeatureCollection$")]
    r#type: String,
    features: Vec<MessageFeature>,
    /// Features in this answer.
    #[schema(rename = "numberReturned")]
    number_returned: u32,
    /// Time of the answer.
    #[schema(rename = "timeStamp", format = DateTime)]
    time_stamp: String,
    /// `self`, and `next` if there is another page.
    links: Vec<Link>,
    /// Place of the last feature; absent on the last page.
    #[schema(nullable = false)]
    cursor: Option<String>,
}

/// One V2X message as a GeoJSON Feature.
#[derive(ToSchema)]
pub(super) struct MessageFeature {
    #[schema(pattern = "^Feature$")]
    r#type: String,
    /// Sequence number in the cache: counts from 1 in the order of arrival, and restarts with the node.
    id: u64,
    /// Reference position of the message, of a DENM that of the event; null if the message has none.
    #[schema(required = true)]
    geometry: Option<Point>,
    properties: MessageProperties,
}

/// A GeoJSON Point.
#[derive(ToSchema)]
pub(super) struct Point {
    #[schema(pattern = "^Point$")]
    r#type: String,
    /// Longitude and latitude in degrees, and the altitude in metres if it is known.
    #[schema(min_items = 2, max_items = 3)]
    coordinates: Vec<f64>,
}

/// Properties of a message; unknown ones are absent.
#[derive(ToSchema)]
pub(super) struct MessageProperties {
    /// `received` or `sent`.
    direction: String,
    /// Type of the message: `cam`, `cpm` or another one.
    r#type: String,
    /// Edition of the standard that defines the encoding of the message.
    edition: String,
    station_id: u32,
    /// `TrafficParticipantType` of TS 102 894-2: 5 is a passenger car.
    #[schema(nullable = false)]
    station_type: Option<u32>,
    /// Address of the sender on the link: six octets in hexadecimal, separated by hyphens.
    #[schema(nullable = false, example = "02-00-00-00-03-fc")]
    link_address: Option<String>,
    /// GeoNetworking address of the packet's source: eight octets in hexadecimal, separated by hyphens.
    #[schema(nullable = false, example = "14-00-02-00-00-00-03-fc")]
    geonet_address: Option<String>,
    /// Node and component that received or sent the message.
    #[schema(nullable = false)]
    receiver: Option<String>,
    /// The layer below GeoNetworking.
    access: String,
    /// Security of the packet: `unsecured`, or `unverified` if it was signed and nothing was verified.
    security: String,
    /// Digest of the certificate that a signed packet names as its signer's: 16 hexadecimal digits.
    #[schema(nullable = false, example = "0d3a1d0ddf3f5b7d")]
    signer_digest: Option<String>,
    #[schema(format = DateTime, nullable = false)]
    reception_time: Option<String>,
    #[schema(format = DateTime, nullable = false)]
    generation_time: Option<String>,
    /// Speed over ground in metres per second.
    #[schema(nullable = false)]
    speed_mps: Option<f64>,
    /// Heading in degrees clockwise from north, 0 up to 360.
    #[schema(nullable = false)]
    heading_deg: Option<f64>,
    /// The decoded ETSI message with ASN.1 names and raw integers.
    #[schema(nullable = false)]
    message: Option<serde_json::Value>,
}

/// A station as a GeoJSON Feature.
#[derive(ToSchema)]
pub(super) struct StationFeature {
    #[schema(pattern = "^Feature$")]
    r#type: String,
    /// Station id.
    id: u32,
    /// Newest position of the station itself; null if none is known.
    #[schema(required = true)]
    geometry: Option<Point>,
    properties: StationProperties,
}

/// Properties of a station.
#[derive(ToSchema)]
pub(super) struct StationProperties {
    station_id: u32,
    /// `TrafficParticipantType` of TS 102 894-2, from the newest message that has one.
    #[schema(nullable = false)]
    station_type: Option<u32>,
    #[schema(format = DateTime)]
    first_seen: String,
    #[schema(format = DateTime)]
    last_seen: String,
    /// Speed over ground in metres per second, from the message with the newest position.
    #[schema(nullable = false)]
    speed_mps: Option<f64>,
    /// Heading in degrees clockwise from north, from the message with the newest position.
    #[schema(nullable = false)]
    heading_deg: Option<f64>,
    /// Messages by type, since the first one of the station.
    messages: BTreeMap<String, u64>,
    /// The newest message of each type.
    latest: BTreeMap<String, MessageProperties>,
}

/// The road network: a GeoJSON FeatureCollection of LineStrings with a `name`.
#[derive(ToSchema)]
pub(super) struct RoadMap {
    #[schema(pattern = "^FeatureCollection$")]
    r#type: String,
    features: Vec<serde_json::Value>,
}
