//! Kind `coap_client`: topics of the bus to the resources of a CoAP server, and its resources to topics of the bus.
//!
//! Each sample of a route becomes a POST or PUT. A confirmable request is sent again until the server acknowledges it; the next sample of the
//! route follows then. Observed resources (RFC 7641) become samples.
//!
//! | counter | meaning |
//! |---|---|
//! | `taken` | samples of routes: taken = delivered + dropped + waiting, at most one of each route |
//! | `delivered` | requests that the server has answered with success |
//! | `dropped` | requests without success: `unencodable`, `client_error`, `server_error`, or the reason why there was no answer |
//! | `notifications` | states of observed resources: notifications = published + refused |
//! | `published`, `notifications_refused` | states that became a message on the bus, and those that are not of the type |
//! | `observations_failed` | observations that ended and begin again |
//! | `received`, `sent`, `octets_received`, `octets_sent`, `retransmissions`, `duplicates`, `refused` | CoAP messages, as for `coap_server` |
//!
//! Gauge: `round_trip_ms`.

mod runner;

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::Qos;
use viaduct_messages::topic;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use crate::coap;
use crate::encoding::Encoding;
use crate::mqtt::client::check_range;
use crate::mqtt::typed::InboundType;
use crate::net::dtls::DtlsClientSettings;
use crate::net::port::{check_keys, check_server};
use crate::retransmission::Timers;
use runner::Runner;

/// Maximum number of routes, and of observed resources.
const ROUTES_MAX: usize = 64;
/// Longest path, in octets.
const PATH_OCTETS_MAX: usize = 1024;
/// Quality of service of observed resources on the bus.
const OFFERED: Qos = Qos::keep_last(16);

/// Settings of `coap_client`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// UDP address of the server.
    pub server: SocketAddr,
    /// DTLS with a pre-shared key (`coaps://`). Default: none.
    #[serde(default)]
    pub dtls: Option<DtlsClientSettings>,
    /// Routes from topics of the bus to resources of the server; at most 64.
    #[serde(default)]
    pub routes: Vec<RouteSettings>,
    /// Resources of the server that become topics of the bus; at most 64.
    #[serde(default)]
    pub observe: Vec<ObserveSettings>,
    /// Retransmissions of confirmable requests.
    #[serde(default)]
    pub timers: Timers,
    /// Maximum number of confirmable requests without an acknowledgement (NSTART), 1 to 64. With more than 1, the number grows from 1 with
    /// each round trip without a loss and is halved by a loss (RFC 7252, 4.7). Default: 1.
    #[serde(default = "default_window")]
    #[schemars(range(min = 1, max = 64))]
    pub window: usize,
}

const fn default_window() -> usize {
    1
}

/// A route from a topic of the bus to a resource of the server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteSettings {
    /// Topic of the bus.
    pub from: String,
    /// Path of the resource, without the leading `/`.
    pub to: String,
    /// Method: `post` or `put`.
    #[serde(default)]
    pub method: MethodSetting,
    /// Encoding of the payloads, as for the resources of `coap_server`.
    #[serde(default)]
    pub encoding: Encoding,
    /// Sends the requests as confirmable messages. Otherwise one that is lost is not sent again. Default: `true`.
    #[serde(default = "default_confirm")]
    pub confirm: bool,
    /// Number of samples that wait for the request before, 1 to 65536. A newer one overwrites the oldest. Default: 1, the latest one.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 1, max = 65_536))]
    pub queue: usize,
}

const fn default_confirm() -> bool {
    true
}

const fn default_queue() -> usize {
    1
}

/// Method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MethodSetting {
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
}

/// A resource of the server that becomes a topic of the bus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObserveSettings {
    /// Path of the resource, without the leading `/`.
    pub from: String,
    /// Topic of the bus.
    pub to: String,
    /// Encoding of the payloads, as for the resources of `coap_server`.
    #[serde(default)]
    pub encoding: Encoding,
    /// Type of the messages: `protobuf: NAME`, `ros1: NAME`, `ros2: NAME`, or `opaque: NAME` with `encoding: native`.
    pub r#type: InboundType,
}

impl Settings {
    fn check(&self) -> Result<(), SettingError> {
        if self.routes.is_empty() && self.observe.is_empty() {
            return Err(SettingError::new("routes", "required: at least one of `routes` or `observe`"));
        }
        check_server("server", self.server, "server")?;
        self.dtls.as_ref().map_or(Ok(()), |dtls| dtls.check("dtls"))?;
        check_range("window", self.window as u64, 1, 64)?;
        check_range("routes", self.routes.len() as u64, 0, ROUTES_MAX as u64)?;
        check_range("observe", self.observe.len() as u64, 0, ROUTES_MAX as u64)?;
        for (index, route) in self.routes.iter().enumerate() {
            let key = |name: &str| format!("routes.{index}.{name}");
            topic::check_name(&route.from).map_err(|error| SettingError::new(key("from"), error.to_string()))?;
            check_path(&route.to).map_err(|problem| SettingError::new(key("to"), problem))?;
            check_range(&key("queue"), route.queue as u64, 1, 65_536)?;
            check_encoding(route.encoding).map_err(|problem| SettingError::new(key("encoding"), problem))?;
        }
        for (index, observed) in self.observe.iter().enumerate() {
            let key = |name: &str| format!("observe.{index}.{name}");
            check_path(&observed.from).map_err(|problem| SettingError::new(key("from"), problem))?;
            topic::check_name(&observed.to).map_err(|error| SettingError::new(key("to"), error.to_string()))?;
            check_encoding(observed.encoding).map_err(|problem| SettingError::new(key("encoding"), problem))?;
            coap::check_type(&observed.r#type, observed.encoding)
                .map_err(|problem| SettingError::new(key("type"), problem))?;
        }
        Ok(())
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let is_path = (1..=PATH_OCTETS_MAX).contains(&path.len())
        && path.split('/').all(|segment| (1..=255).contains(&segment.len()));
    if is_path {
        Ok(())
    } else {
        Err(format!("`{path}` is not a path: segments of 1 to 255 octets, joined by `/`, without a `/` in front"))
    }
}

fn check_encoding(encoding: Encoding) -> Result<(), String> {
    match encoding {
        Encoding::MqttClient => Err("expected `json`, `protobuf`, `native` or `primitive`".to_owned()),
        _ => Ok(()),
    }
}

/// A client. All its work is in its I/O task.
pub struct CoapClient;

impl Component for CoapClient {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        check_keys(settings.dtls.as_ref().map(DtlsClientSettings::load))
    }

    fn edges(settings: &Settings) -> Edges {
        let mut edges = Edges::default().connects(settings.server);
        for (index, route) in settings.routes.iter().enumerate() {
            let setting = format!("routes.{index}.from");
            edges = edges.reads_untyped(&setting, &route.from, Qos::keep_last(route.queue)).holds(route.queue + 1);
        }
        for (index, observed) in settings.observe.iter().enumerate() {
            edges = observed.r#type.publishes(edges, &format!("observe.{index}.to"), &observed.to, OFFERED);
        }
        edges
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let runner = Runner::open(&settings, context)?;
        context.spawn_io(runner.run());
        Ok(Self)
    }
}
