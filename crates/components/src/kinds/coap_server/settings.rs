//! Settings of the resources.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::Qos;
use viaduct_messages::topic;
use viaduct_node::{Edges, SettingError};

use crate::coap;
use crate::encoding::Encoding;
use crate::mqtt::typed::InboundType;

/// Maximum number of resources in the settings.
const RESOURCES_MAX: usize = 64;
/// Maximum number of segments of a path, and their longest one in octets (RFC 7252, 5.10.1).
const SEGMENTS_MAX: usize = 16;
const SEGMENT_OCTETS_MAX: usize = 255;
/// Path of the list of resources (RFC 6690), and of the HTTP API.
pub(super) const RESERVED: &str = ".well-known";
/// Quality of service of the inputs: the latest sample is the representation of a resource.
pub(super) const LATEST: Qos = Qos::keep_last(1);
/// Quality of service of the outputs: a full queue rejects the request at once (5.03).
pub(super) const OFFERED: Qos = Qos::reliable(1024, std::time::Duration::ZERO);

/// A resource: a topic of the bus that clients read, write, or both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceSettings {
    /// Path without the leading `/`: `battery`, `robots/7/pose`. At most 16 segments of 255 octets.
    pub path: String,
    /// Topic or pattern of the bus to read. GET returns the latest sample, or 4.04 if there is none yet; an observation gets each new
    /// one, or the latest one if they come faster than the client acknowledges them. With a pattern, the name of the topic follows the path: `robots/pose/7` for
    /// the path `robots` and the topic `pose/7`.
    #[serde(default)]
    pub from: Option<String>,
    /// Topic of the bus to write. POST and PUT publish the payload and return 2.04.
    #[serde(default)]
    pub to: Option<String>,
    /// Encoding of the payloads. `json`: as for MQTT (content format 50). `protobuf`: the octets of protobuf messages, which are checked (42).
    /// `native`: the octets of messages of any type as they are (42). `primitive`: the plain text of a message of std_msgs (0).
    #[serde(default)]
    pub encoding: Encoding,
    /// Type of the messages that clients write: `protobuf: NAME`, `ros1: NAME`, `ros2: NAME`, `opaque: NAME` (only with `encoding: native`), or an input of a
    /// station (`vehicle_state`, `perceived_objects`, `event_request`). Required with `to`.
    #[serde(default)]
    pub r#type: Option<InboundType>,
    /// Time in seconds for which a representation is fresh (Max-Age), 1 to 86400. Default: 60.
    #[serde(default = "default_max_age_s")]
    #[schemars(range(min = 1, max = 86_400))]
    pub max_age_s: u32,
}

const fn default_max_age_s() -> u32 {
    60
}

impl ResourceSettings {
    /// Returns the segments of the path.
    pub(super) fn segments(&self) -> impl Iterator<Item = &str> {
        self.path.split('/')
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        check_path(&self.path).map_err(|problem| ("path", problem))?;
        if self.from.is_none() && self.to.is_none() {
            return Err(("from", "required: `from`, `to` or both".to_owned()));
        }
        if let Some(from) = &self.from {
            topic::check_pattern(from).map_err(|error| ("from", error.to_string()))?;
        }
        if self.encoding == Encoding::MqttClient {
            return Err(("encoding", "expected `json`, `protobuf`, `native` or `primitive`".to_owned()));
        }
        if !(1..=86_400).contains(&self.max_age_s) {
            return Err(("max_age_s", format!("{} is not within 1 to 86400", self.max_age_s)));
        }
        match (&self.to, &self.r#type) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(("type", "allowed only with `to`: messages that are read have a type".to_owned())),
            (Some(_), None) => {
                Err(("type", "required with `to`: the type of the messages that clients write".to_owned()))
            }
            (Some(to), Some(kind)) => {
                topic::check_name(to).map_err(|error| ("to", error.to_string()))?;
                coap::check_type(kind, self.encoding).map_err(|problem| ("type", problem))
            }
        }
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let segments: Vec<&str> = path.split('/').collect();
    if segments.len() > SEGMENTS_MAX {
        return Err(format!("{} segments; at most {SEGMENTS_MAX} are allowed", segments.len()));
    }
    if segments.first() == Some(&RESERVED) {
        return Err(format!("`{RESERVED}` is reserved (RFC 8615)"));
    }
    if segments.iter().any(|segment| segment.is_empty() || segment.len() > SEGMENT_OCTETS_MAX) {
        let expected = format!("segments of 1 to {SEGMENT_OCTETS_MAX} octets, joined by `/`, without a `/` in front");
        return Err(format!("`{path}` is not a path: {expected}"));
    }
    Ok(())
}

/// Checks the setting `resources`.
pub(super) fn check(resources: &[ResourceSettings]) -> Result<(), SettingError> {
    if resources.len() > RESOURCES_MAX {
        let problem = format!("{} resources; at most {RESOURCES_MAX} are allowed", resources.len());
        return Err(SettingError::new("resources", problem));
    }
    let mut paths = HashSet::new();
    for (index, resource) in resources.iter().enumerate() {
        let wrong = |key, problem| SettingError::new(format!("resources.{index}.{key}"), problem);
        resource.check().map_err(|(key, problem)| wrong(key, problem))?;
        if !paths.insert(&resource.path) {
            return Err(wrong("path", format!("`{}` is the path of another resource", resource.path)));
        }
    }
    Ok(())
}

/// Adds the topics of the resources.
pub(super) fn edges(resources: &[ResourceSettings], mut edges: Edges) -> Edges {
    for (index, resource) in resources.iter().enumerate() {
        if let Some(from) = &resource.from {
            // One is the representation, and one waits.
            edges = edges.reads_untyped(&from_setting(index), from, LATEST).holds(2);
        }
        if let (Some(to), Some(kind)) = (&resource.to, &resource.r#type) {
            edges = kind.publishes(edges, &format!("resources.{index}.to"), to, OFFERED);
        }
    }
    edges
}

/// Returns the setting that names the input of a resource.
pub(super) fn from_setting(index: usize) -> String {
    format!("resources.{index}.from")
}
