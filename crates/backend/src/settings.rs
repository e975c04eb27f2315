//! Settings of the kind `api`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
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
    /// Serves everyone who can reach the address, without a login. Required if it is not a loopback address.
    pub anonymous: bool,
    /// Names of this server (header `Host`) that clients may use if it listens on a loopback address, beside `localhost` and loopback
    /// addresses: those of a proxy in front of it. The name in `public_url` is one of them.
    pub hosts: Vec<String>,
    /// Topics of V2X messages, names or patterns. Default `its/rx/*`, and `its/tx/*` if a component publishes it.
    pub topics: Vec<String>,
    /// Topics of key figures of the kind `key_figures` (`figures/window`), which the dashboard shows. Default: none.
    pub figures: Vec<String>,
    /// Limits of the message cache.
    pub cache: CacheSettings,
    /// The road network that the dashboard draws. Default: none.
    pub map: Option<MapSource>,
    /// Streams of `/v1/live`.
    pub live: LiveSettings,
    /// Origins (`https://host:port`) whose web pages may use the API; `*` allows all. Default: only the API's own.
    pub cors_origins: Vec<String>,
    /// Address under which clients reach the API, for the links in answers: `https://host:port/path`. Default: taken from each
    /// request (`Host`, `X-Forwarded-Host`, `X-Forwarded-Proto`).
    pub public_url: Option<String>,
}

/// Source of a road network.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapSource {
    /// The town in which the vehicles of the kind `fleet` drive by default.
    Town,
    /// A GeoJSON FeatureCollection of LineStrings, at most 16 MiB.
    File(PathBuf),
}

/// Limits of the cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSettings {
    /// Memory for messages, in bytes, at least 1 MiB. When it is full, the oldest bucket is dropped. Default 268435456 (256 MiB).
    pub octets_max: usize,
    /// Memory for the JSON of recently requested messages, in bytes. Default 33554432 (32 MiB).
    pub decoded_octets_max: usize,
    /// Time span of a bucket, which is dropped as a whole, in seconds, 0.1 to 3600. Default 5.
    pub bucket_s: f64,
    /// Age at which a message is dropped, in seconds, at least 1, plus up to one bucket. Default: none, only memory is limited.
    pub retention_s: Option<f64>,
    /// Number of stations with a summary, 1 to 200000. Default 20000.
    pub stations_max: usize,
}

/// Limits of the live streams.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LiveSettings {
    /// Largest number of clients at the same time, 0 to 4096; further clients receive status 503. Default 64.
    pub clients_max: usize,
    /// Queue of each client in messages, 1 to 65536. When it is full, the oldest message is dropped. Default 256.
    pub queue: usize,
}

/// A setting with an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingsError {
    /// Path of the setting below `settings`: `cache.bucket_s`.
    pub key: &'static str,
    /// The problem, with the value.
    pub problem: String,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            anonymous: false,
            hosts: Vec::new(),
            topics: topics_default().to_vec(),
            figures: Vec::new(),
            cache: CacheSettings::default(),
            map: None,
            live: LiveSettings::default(),
            cors_origins: Vec::new(),
            public_url: None,
        }
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        let limits = CacheLimits::default();
        Self {
            octets_max: limits.bytes_max,
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
    /// Returns the number of topics, counted from the first, that must have a publisher. Each topic that the user names
    /// must have one. Of the default topics only the first must, because a station that only receives does not publish
    /// the second.
    pub(crate) fn topics_needed(&self) -> usize {
        if self.topics == topics_default() { 1 } else { self.topics.len() }
    }

    /// Returns the names of the server beside those of the loopback interface.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let public = self.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        let public = public.as_ref().and_then(Uri::host).map(str::to_owned);
        self.hosts.iter().cloned().chain(public).collect()
    }

    /// Checks ranges and topic patterns. The API checks the map, the origins and the public URL when it is created.
    ///
    /// # Errors
    /// Returns the first setting with an invalid value.
    pub fn check(&self) -> Result<(), SettingsError> {
        if !self.listen.ip().is_loopback() && !self.anonymous {
            let problem = format_args!(
                "{} is not a loopback address, and the API has no login: set `anonymous: true` to serve everyone who can reach it",
                self.listen
            );
            return Err(SettingsError::new("listen", &problem));
        }
        for pattern in &self.topics {
            topic::check_pattern(pattern).map_err(|error| SettingsError::new("topics", &error))?;
        }
        for name in &self.figures {
            topic::check_name(name).map_err(|error| SettingsError::new("figures", &error))?;
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

/// Returns the topics of received messages and of messages that a station of the node sends.
fn topics_default() -> [String; 2] {
    [topic::ITS_RX, topic::ITS_TX].map(|prefix| format!("{prefix}/*"))
}

impl CacheSettings {
    /// Returns the limits of the cache. The settings must be checked.
    pub(crate) fn limits(&self) -> CacheLimits {
        CacheLimits {
            bytes_max: self.octets_max,
            stations_max: self.stations_max,
            bucket: Duration::try_from_secs_f64(self.bucket_s).unwrap_or(CacheLimits::default().bucket),
        }
    }

    /// Returns the maximum age of a message, or `None` if it is unlimited.
    pub(crate) fn retention(&self) -> Option<Duration> {
        self.retention_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

impl SettingsError {
    pub(crate) fn new(key: &'static str, problem: &dyn std::fmt::Display) -> Self {
        Self { key, problem: problem.to_string() }
    }
}

/// Returns an error if the value is outside `low` to `high` or is not a number.
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
    fn an_unknown_key_is_rejected_at_every_level() {
        for bad in [r#"{"port":1}"#, r#"{"cache":{"octets":1}}"#, r#"{"live":{"clients":1}}"#] {
            assert!(parse(bad).unwrap_err().to_string().contains("unknown field"), "{bad}");
        }
    }

    #[test]
    fn an_invalid_value_is_rejected_with_its_key() {
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
