//! Settings of the kind `api`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_messages::topic;

use crate::cache::CacheLimits;

/// The HTTP API with its cache, and the dashboard.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiSettings {
    /// Address and port to listen on. Default `127.0.0.1:8080`: this machine only.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Topics of V2X messages, names or patterns. Default `its/rx/*`, and `its/tx/*` where something publishes it.
    pub topics: Vec<String>,
    /// What is kept to be asked for.
    pub cache: CacheSettings,
    /// The road network that the dashboard draws. Default: none.
    pub map: Option<MapSource>,
    /// Streams of `/v1/live`.
    pub live: LiveSettings,
    /// Origins (`https://host:port`) whose web pages may use the API; `*` allows all. Default: none but the API's own.
    pub cors_origins: Vec<String>,
}

/// Where a road network comes from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapSource {
    /// The town that the kind `fleet` drives in by default.
    Town,
    /// A GeoJSON FeatureCollection of LineStrings, at most 16 MiB.
    File(PathBuf),
}

/// Limits of the cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSettings {
    /// Memory for messages, in octets, at least 1 MiB. When it is full the oldest bucket goes. Default 268435456 (256 MiB).
    pub octets_max: usize,
    /// Memory for decoded messages that were asked for lately, in octets. Default 33554432 (32 MiB).
    pub decoded_octets_max: usize,
    /// Length of a bucket in seconds, 0.1 to 3600: what is dropped at once. Default 5.
    pub bucket_s: f64,
    /// Seconds after which a message is dropped, with a bucket's grain; 1 or more. Default: none, memory alone decides.
    pub retention_s: Option<f64>,
    /// Stations of which a summary is kept, 1 to 200000. Default 20000.
    pub stations_max: usize,
}

/// Limits of the live streams.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LiveSettings {
    /// Clients at the same time, up to 4096; one more is answered 503. Default 64.
    pub clients_max: usize,
    /// Messages that wait for one client, 1 to 65536; then it loses the oldest. Default 256.
    pub queue: usize,
}

/// A setting with a value that it cannot have.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingsError {
    /// Where the setting stands below `settings`: `cache.bucket_s`.
    pub key: &'static str,
    /// What is wrong, with the value.
    pub problem: String,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            topics: topics_default().to_vec(),
            cache: CacheSettings::default(),
            map: None,
            live: LiveSettings::default(),
            cors_origins: Vec::new(),
        }
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        let limits = CacheLimits::default();
        Self {
            octets_max: limits.octets_max,
            decoded_octets_max: 32 << 20,
            bucket_s: limits.bucket.as_secs_f64(),
            retention_s: None,
            stations_max: limits.stations_max,
        }
    }
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self { clients_max: 64, queue: 256 }
    }
}

impl ApiSettings {
    /// How many of the topics, from the first, must be fed: all that the user names, but not the second of the default, which
    /// a station that only listens does not feed.
    pub(crate) fn topics_needed(&self) -> usize {
        if self.topics == topics_default() { 1 } else { self.topics.len() }
    }

    /// Checks what the types do not say. The map is read, and the origins are checked, when the API is built.
    ///
    /// # Errors
    /// The first setting that has a wrong value.
    pub fn check(&self) -> Result<(), SettingsError> {
        for pattern in &self.topics {
            topic::check_pattern(pattern).map_err(|error| SettingsError::new("topics", &error))?;
        }
        let cache = &self.cache;
        within("cache.octets_max", cache.octets_max, 1 << 20, isize::MAX.unsigned_abs())?;
        within("cache.bucket_s", cache.bucket_s, 0.1, 3600.0)?;
        within("cache.retention_s", cache.retention_s.unwrap_or(1.0), 1.0, 1e9)?;
        within("cache.stations_max", cache.stations_max, 1, 200_000)?;
        within("live.clients_max", self.live.clients_max, 0, 4096)?;
        within("live.queue", self.live.queue, 1, 65_536)
    }
}

/// Received messages, and those that a station of the node sends, if one does.
fn topics_default() -> [String; 2] {
    [topic::ITS_RX, topic::ITS_TX].map(|prefix| format!("{prefix}/*"))
}

impl CacheSettings {
    /// The limits as the cache has them; call it on checked settings.
    pub(crate) fn limits(&self) -> CacheLimits {
        CacheLimits {
            octets_max: self.octets_max,
            stations_max: self.stations_max,
            bucket: Duration::try_from_secs_f64(self.bucket_s).unwrap_or(CacheLimits::default().bucket),
        }
    }

    /// How long a message is kept at most.
    pub(crate) fn retention(&self) -> Option<Duration> {
        self.retention_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

impl SettingsError {
    pub(crate) fn new(key: &'static str, problem: &dyn std::fmt::Display) -> Self {
        Self { key, problem: problem.to_string() }
    }
}

/// Refuses a value outside `low` to `high`, and one that is no number.
fn within<T: Copy + PartialOrd + std::fmt::Display>(
    key: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<(), SettingsError> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(SettingsError::new(key, &format_args!("{value} is not within {low} to {high}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ApiSettings, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn no_setting_is_needed() {
        let settings = parse("{}").unwrap();
        settings.check().unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(settings.topics, ["its/rx/*", "its/tx/*"]);
    }

    #[test]
    fn an_unknown_key_is_refused_at_every_level() {
        for bad in [r#"{"port":1}"#, r#"{"cache":{"octets":1}}"#, r#"{"live":{"clients":1}}"#] {
            assert!(parse(bad).unwrap_err().to_string().contains("unknown field"), "{bad}");
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_key() {
        for (bad, key) in [
            (r#"{"topics":["its/#"]}"#, "topics"),
            (r#"{"cache":{"octets_max":1000}}"#, "cache.octets_max"),
            (r#"{"cache":{"bucket_s":0}}"#, "cache.bucket_s"),
            (r#"{"cache":{"retention_s":0.5}}"#, "cache.retention_s"),
            (r#"{"cache":{"stations_max":0}}"#, "cache.stations_max"),
            (r#"{"live":{"clients_max":5000}}"#, "live.clients_max"),
            (r#"{"live":{"queue":0}}"#, "live.queue"),
        ] {
            assert_eq!(parse(bad).unwrap().check().unwrap_err().key, key);
        }
    }

    #[test]
    fn every_setting_is_documented() {
        let schema = serde_json::to_value(schemars::schema_for!(ApiSettings)).unwrap();
        let parts = ["/properties", "/$defs/CacheSettings/properties", "/$defs/LiveSettings/properties"];
        for part in parts {
            for (name, property) in schema.pointer(part).unwrap().as_object().unwrap() {
                assert!(property.get("description").is_some(), "{part}/{name}");
            }
        }
    }
}
