//! Kind `mqttsn_gateway`: a gateway between clients of MQTT-SN 1.2 and an MQTT broker.
//!
//! Clients connect by UDP, directly or through a forwarder. The broker is an external one, with one connection for each client
//! (*transparent*) or for all (*aggregating*), or an `mqtt_broker` of the same process, which needs no socket. Messages for sleeping clients
//! wait until they wake up. With a folder, sessions outlive the process.
//!
//! With `mode: transparent`, a client with the identifier `NODE-COMPONENT` (the names of the node and the component) is rejected: the gateway
//! has that identifier at the broker itself.
//!
//! If the process is killed, a gateway with a folder loses no message that it has acknowledged, and repeats none of QoS 2 on the way to
//! and from an external broker. A message of QoS 2 may be repeated without a folder; with `mode: transparent` and a client with a clean session,
//! because the broker ends that session with the connection; if the broker loses its session; and with an embedded broker, which ends with the process.
//! A message of QoS 1 may be repeated in any case. A message that does not fit into the buffers of a client is dropped and counted, also one that is stored.
//!
//! | counter | meaning |
//! |---|---|
//! | `received`, `sent` | datagrams of MQTT-SN |
//! | `published` | messages of clients, passed on to the broker |
//! | `deliveries` | messages of the broker, once for each client: deliveries = delivered + messages_dropped + waiting |
//! | `delivered` | messages that were sent (QoS 0) or that the client has acknowledged |
//! | `buffered` | messages that waited for a sleeping client |
//! | `messages_dropped` | messages to clients that were dropped, by reason |
//! | `refused` | datagrams and requests that were refused, by reason |
//! | `retransmissions`, `duplicates` | messages sent again, and received again |
//! | `sessions_created`, `sessions_evicted`, `clients_lost` | sessions, and clients that became silent |
//! | `answers_suppressed` | answers to strangers beyond the rate limit |
//! | `refused_by_broker` | messages that the broker refused after they were acknowledged |
//!
//! Gauges: `sessions`, `buffered_octets`. The counters of the connections to an external broker are those of `mqtt_bridge`.

mod embedded;
mod external;
mod folders;
pub mod fuzzing;
mod history;
mod runner;
mod settings;
mod storage;
mod upstream;

use viaduct_mqtt::address::BrokerAddress;
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError};

use crate::mqtt::check_readable;
use crate::mqtt::client::tls;
use crate::net::dtls::DtlsServerSettings;
use crate::net::port::check_keys;
use runner::Runner;
pub(crate) use settings::check_predefined;
pub use settings::{Acknowledge, DiscoverySettings, LimitSettings, Mode, PredefinedSettings, Settings};

/// A gateway. All its work is in its I/O task.
pub struct MqttsnGateway;

impl Component for MqttsnGateway {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        if let Some(path) = &settings.password_file {
            check_readable("password_file", path)?;
        }
        if let Some(folder) = settings.folder.as_ref().filter(|folder| folder.exists() && !folder.is_dir()) {
            return Err(SettingError::new("folder", format!("{} is not a folder", folder.display())));
        }
        check_keys(settings.dtls.as_ref().map(DtlsServerSettings::load))?;
        tls::check_files(settings.tls.as_ref())
    }

    fn edges(settings: &Settings) -> Edges {
        let listen = Resource::UdpBind { address: settings.listen, shared: false, setting: "listen".to_owned() };
        let broker = settings.broker.as_deref().and_then(|broker| BrokerAddress::parse(broker).ok()?.socket_address());
        let folder = settings.folder.iter().cloned();
        let folder = folder.map(|path| Resource::File { path, setting: "folder".to_owned() });
        let edges = folder.fold(Edges::default().takes(listen), Edges::takes);
        broker.or(settings.embedded_broker).into_iter().fold(edges, Edges::connects)
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let runner = Runner::open(&settings, context)?;
        context.spawn_io(runner.run());
        Ok(Self)
    }
}
