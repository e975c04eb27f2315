//! Events and infrastructure as GeoJSON.

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_units::Tai;
use viaduct_v2x_json::timestamp_text;

use super::geojson::{Link, MEDIA_TYPE};
use crate::map_objects::{EventProperties, Geometry, InfrastructureProperties, MapObjects};

/// A GeoJSON FeatureCollection (RFC 7946) of events.
#[derive(Serialize, ToSchema)]
pub(super) struct EventCollection {
    #[schema(pattern = "^FeatureCollection$")]
    r#type: &'static str,
    features: Vec<EventFeature>,
    /// Features in this answer.
    #[serde(rename = "numberReturned")]
    number_returned: usize,
    /// Time of the answer.
    #[serde(rename = "timeStamp")]
    #[schema(format = DateTime)]
    time_stamp: String,
    links: Vec<Link>,
}

/// An event that DENMs describe, as a GeoJSON Feature.
#[derive(Serialize, ToSchema)]
pub(super) struct EventFeature {
    #[schema(pattern = "^Feature$")]
    r#type: &'static str,
    /// Originating station and sequence number: the action id.
    #[schema(example = "1001-7")]
    id: String,
    /// Position of the event; null if no message had one.
    #[schema(required = true)]
    geometry: Option<EventPoint>,
    properties: EventProperties,
}

/// A GeoJSON Point with an altitude if it is known.
#[derive(Serialize, ToSchema)]
#[schema(as = Point)]
pub(super) struct EventPoint {
    #[schema(pattern = "^Point$")]
    r#type: &'static str,
    /// Longitude and latitude in degrees, and the altitude in metres if it is known.
    #[schema(min_items = 2, max_items = 3)]
    coordinates: Vec<f64>,
}

/// A GeoJSON FeatureCollection (RFC 7946) of lanes, stop lines, signs and zones.
#[derive(Serialize, ToSchema)]
pub(super) struct InfrastructureCollection {
    #[schema(pattern = "^FeatureCollection$")]
    r#type: &'static str,
    features: Vec<InfrastructureFeature>,
    /// Features in this answer.
    #[serde(rename = "numberReturned")]
    number_returned: usize,
    /// Time of the answer.
    #[serde(rename = "timeStamp")]
    #[schema(format = DateTime)]
    time_stamp: String,
    links: Vec<Link>,
}

/// A part of the infrastructure as a GeoJSON Feature.
#[derive(Serialize, ToSchema)]
pub(super) struct InfrastructureFeature {
    #[schema(pattern = "^Feature$")]
    r#type: &'static str,
    /// Stays the same while the object is known.
    id: String,
    geometry: Geometry,
    properties: InfrastructureProperties,
}

/// Returns the events with their state at `now`.
pub(super) fn events(objects: &MapObjects, now: Tai, uri: String) -> EventCollection {
    let features = objects.events().into_iter().map(|(id, event)| EventFeature {
        r#type: "Feature",
        id: format!("{}-{}", id.originating_station, id.sequence_number),
        geometry: event.point().map(|coordinates| EventPoint { r#type: "Point", coordinates }),
        properties: event.properties(now),
    });
    let features: Vec<EventFeature> = features.collect();
    EventCollection {
        r#type: "FeatureCollection",
        number_returned: features.len(),
        features,
        time_stamp: timestamp_text(now),
        links: vec![self_link(uri)],
    }
}

/// Returns the infrastructure with the signal states of `now`.
pub(super) fn infrastructure(objects: &MapObjects, now: Tai, uri: String) -> InfrastructureCollection {
    let features = objects.infrastructure(now).into_iter().map(|object| InfrastructureFeature {
        r#type: "Feature",
        id: object.id,
        geometry: object.geometry,
        properties: object.properties,
    });
    let features: Vec<InfrastructureFeature> = features.collect();
    InfrastructureCollection {
        r#type: "FeatureCollection",
        number_returned: features.len(),
        features,
        time_stamp: timestamp_text(now),
        links: vec![self_link(uri)],
    }
}

fn self_link(href: String) -> Link {
    Link { rel: "self", href, r#type: MEDIA_TYPE }
}
