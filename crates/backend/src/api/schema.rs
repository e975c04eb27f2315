//! The shapes of the answers, for the OpenAPI document. Features are written as text from the cache, so these types are
//! never filled; the tests compare the two.
#![expect(dead_code, reason = "the types are documentation")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// A GeoJSON FeatureCollection (RFC 7946) of V2X messages.
#[derive(ToSchema)]
pub(super) struct MessageCollection {
    #[schema(pattern = "^FeatureCollection$")]
    r#type: String,
    features: Vec<MessageFeature>,
    /// Features in this answer.
    #[schema(rename = "numberReturned")]
    number_returned: u32,
    /// When the answer was made.
    #[schema(rename = "timeStamp", format = DateTime)]
    time_stamp: String,
    /// `self`, and `next` where there is more.
    links: Vec<Link>,
    /// The place behind the last feature, where there is more.
    #[schema(nullable = false)]
    cursor: Option<String>,
}

/// A link of an answer (RFC 8288), relative to the server.
#[derive(ToSchema)]
pub(super) struct Link {
    /// `self` or `next`.
    rel: String,
    href: String,
    /// Media type of what the link leads to.
    r#type: String,
}

/// One V2X message as a GeoJSON Feature.
#[derive(ToSchema)]
pub(super) struct MessageFeature {
    #[schema(pattern = "^Feature$")]
    r#type: String,
    /// Sequence number in the cache: counts from 1 in the order of arrival, anew with each start of the node.
    id: u64,
    /// The reference position; null where the message has none.
    #[schema(required = true)]
    geometry: Option<Point>,
    properties: MessageProperties,
}

/// A GeoJSON Point.
#[derive(ToSchema)]
pub(super) struct Point {
    #[schema(pattern = "^Point$")]
    r#type: String,
    /// Longitude and latitude in degrees, and the altitude in metres where it is known.
    #[schema(min_items = 2, max_items = 3)]
    coordinates: Vec<f64>,
}

/// What is known of a message; what is not known is absent.
#[derive(ToSchema)]
pub(super) struct MessageProperties {
    /// `received` or `sent`.
    direction: String,
    /// Type of the message: `cam`, `cpm`, ...
    r#type: String,
    /// The standard's edition by which the message is coded.
    edition: String,
    station_id: u32,
    /// `TrafficParticipantType` of TS 102 894-2: 5 is a passenger car.
    #[schema(nullable = false)]
    station_type: Option<u32>,
    /// Address of the sender on the link.
    #[schema(nullable = false)]
    link_address: Option<String>,
    /// GeoNetworking address of the packet's source.
    #[schema(nullable = false)]
    geonet_address: Option<String>,
    /// The node and component that received or sent it.
    receiver: String,
    /// The layer below GeoNetworking.
    access: String,
    /// What is known about the packet's signature.
    security: String,
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

/// What is known of a station, as a GeoJSON Feature.
#[derive(ToSchema)]
pub(super) struct StationFeature {
    #[schema(pattern = "^Feature$")]
    r#type: String,
    /// Station ID.
    id: u32,
    /// The last position; null where none is known.
    #[schema(required = true)]
    geometry: Option<Point>,
    properties: StationProperties,
}

/// What is known of a station.
#[derive(ToSchema)]
pub(super) struct StationProperties {
    station_id: u32,
    /// `TrafficParticipantType` of TS 102 894-2, in the newest message that says it.
    #[schema(nullable = false)]
    station_type: Option<u32>,
    #[schema(format = DateTime)]
    first_seen: String,
    #[schema(format = DateTime)]
    last_seen: String,
    /// With the last position.
    #[schema(nullable = false)]
    speed_mps: Option<f64>,
    /// With the last position.
    #[schema(nullable = false)]
    heading_deg: Option<f64>,
    /// Messages by type, since the station is known.
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
