//! Settings of `mqttsn_gateway`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqttsn::codec::CLIENT_ID_OCTETS_MAX;
use viaduct_node::SettingError;

use crate::mqtt::client::tls::{self, TlsSettings};
use crate::mqtt::client::{OutboxSettings, ReconnectSettings, Version, check_client_id, check_range};
use crate::net::dtls::DtlsServerSettings;
use crate::net::port::check_open;
use crate::net::port::check_server;
use crate::retransmission::Timers;

/// Settings of `mqttsn_gateway`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// UDP address for clients and forwarders, usually with port 1884; port 0 selects a free port. Default: `127.0.0.1:1884`.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// DTLS with pre-shared keys on `listen`, which then serves clients with a key only. Default: none.
    #[serde(default)]
    pub dtls: Option<DtlsServerSettings>,
    /// Serves everyone who can reach the address, without a key. Required without `dtls` if the address is not a loopback address.
    #[serde(default)]
    pub anonymous: bool,
    /// Identifier of the gateway in ADVERTISE and GWINFO, 0 to 255. Default: 1.
    #[serde(default = "default_gateway_id")]
    pub gateway_id: u8,
    /// Multicast group in which clients find the gateway. Default: none.
    #[serde(default)]
    pub discovery: Option<DiscoverySettings>,
    /// External broker: `mqtt://HOST:PORT`, `mqtts://`, `ws://` or `wss://` as for `mqtt_bridge`. Either `broker` or `embedded_broker` is required.
    #[serde(default)]
    pub broker: Option<String>,
    /// Address on which an `mqtt_broker` of this process listens (its `listen`). Messages reach it without a socket.
    #[serde(default)]
    pub embedded_broker: Option<SocketAddr>,
    /// Connections to an external broker. An embedded one needs none.
    #[serde(default)]
    pub mode: Mode,
    /// The time at which a message of QoS 1 or 2 is acknowledged.
    #[serde(default)]
    pub acknowledge: Acknowledge,
    /// Certificates for `mqtts://` and `wss://`.
    #[serde(default)]
    pub tls: Option<TlsSettings>,
    /// Version of MQTT to an external broker.
    #[serde(default)]
    pub version: Version,
    /// Client identifier of the only connection (`mode: aggregating`). Default: the names of the node and the component, joined by `-`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// User name at an external broker, for every connection.
    #[serde(default)]
    pub username: Option<String>,
    /// File whose first line is the password of the user.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Topics with an identifier that both sides know in advance; at most 1024.
    #[serde(default)]
    pub predefined: Vec<PredefinedSettings>,
    /// Accepts messages of QoS -1: from any address, without a connection, on predefined and short topics. Default: `false`.
    #[serde(default)]
    pub qos_minus_one: bool,
    /// Retransmissions to clients.
    #[serde(default)]
    pub timers: Timers,
    /// Folder in which sessions outlive the process: clients, their topics, subscriptions and messages. It belongs to one component.
    /// The end of the process loses nothing; a loss of power may lose the last seconds. Default: none, sessions are lost with the process; clients then connect again.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// Limits of the gateway.
    #[serde(default)]
    pub limits: LimitSettings,
    /// Limits of the outbox of each connection to an external broker.
    #[serde(default)]
    pub outbox: OutboxSettings,
    /// Waiting times between attempts to connect to an external broker.
    #[serde(default)]
    pub reconnect: ReconnectSettings,
    /// Size of the kernel's receive buffer in bytes, 4096 to 268435456. Default: 1048576.
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1884))
}

const fn default_gateway_id() -> u8 {
    1
}

const fn default_receive_buffer() -> usize {
    1 << 20
}

/// Connections to an external broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One connection for each client, with its identifier, its session and its will.
    Transparent,
    /// One connection for all clients. The gateway keeps their subscriptions and wills.
    #[default]
    Aggregating,
}

/// The time at which a message of QoS 1 or 2 is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledge {
    /// After the broker has confirmed it. A client repeats a message until then.
    #[default]
    Broker,
    /// After the gateway has stored it in `folder`, which is faster and independent of the broker. The gateway sends it until the broker confirms it.
    Storage,
}

/// Multicast group in which clients find the gateway.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoverySettings {
    /// Multicast group and port. Default: `225.18.83.1:1883`.
    #[serde(default = "default_group")]
    pub group: SocketAddrV4,
    /// Network interface, by IPv4 address or name. Default: `127.0.0.1`, which keeps the packets on this machine.
    #[serde(default = "default_interface")]
    pub interface: String,
    /// Interval of ADVERTISE in seconds, 1 to 65535. Default: 900.
    #[serde(default = "default_advertise_s")]
    #[schemars(range(min = 1, max = 65_535))]
    pub advertise_s: u16,
}

fn default_group() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(225, 18, 83, 1), 1883)
}

fn default_interface() -> String {
    "127.0.0.1".to_owned()
}

const fn default_advertise_s() -> u16 {
    900
}

/// A topic with an identifier that both sides know in advance.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredefinedSettings {
    /// Identifier, 1 to 65534.
    #[schemars(range(min = 1, max = 65_534))]
    pub id: u16,
    /// MQTT topic, without wildcards.
    pub topic: String,
    /// Identifier of the client for which it holds. Default: all clients.
    #[serde(default)]
    pub client: Option<String>,
}

/// Limits of the gateway.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Maximum number of clients, also of sleeping ones, 1 to 100000.
    #[schemars(range(min = 1, max = 100_000))]
    pub clients_max: usize,
    /// Maximum number of registered topics of a client, 1 to 65534.
    #[schemars(range(min = 1, max = 65_534))]
    pub topics_max: usize,
    /// Maximum number of subscriptions of a client, 1 to 512.
    #[schemars(range(min = 1, max = 512))]
    pub subscriptions_max: usize,
    /// Maximum number of messages that wait for a client, 1 to 10000. The oldest one is dropped for a newer one.
    #[schemars(range(min = 1, max = 10_000))]
    pub queued_messages_max: usize,
    /// Maximum size of all messages that wait for clients in octets, 1024 to 17179869184 (16 GiB).
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub queued_octets_max: u64,
    /// Longest datagram to a client in octets, 64 to 65507. A message that does not fit is dropped.
    #[schemars(range(min = 64, max = 65_507))]
    pub datagram_octets_max: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            clients_max: 1_000,
            topics_max: 256,
            subscriptions_max: 64,
            queued_messages_max: 100,
            queued_octets_max: 64 << 20,
            datagram_octets_max: 1_400,
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        match (&self.broker, self.embedded_broker) {
            (Some(broker), None) => {
                let broker = BrokerAddress::parse(broker).map_err(|problem| SettingError::new("broker", problem))?;
                tls::check(self.tls.as_ref(), &broker)?;
            }
            (None, Some(address)) if address.port() == 0 => {
                return Err(SettingError::new("embedded_broker", "needs the port that the broker listens on"));
            }
            (None, Some(_)) => {}
            (None, None) => return Err(SettingError::new("broker", "required: `broker` or `embedded_broker`")),
            (Some(_), Some(_)) => {
                return Err(SettingError::new(
                    "embedded_broker",
                    "not allowed with `broker`: messages go to one broker",
                ));
            }
        }
        self.check_unused()?;
        if self.discovery.is_some() && self.dtls.is_some() {
            let problem = "not allowed with `dtls`: clients that find the gateway would have no key for it";
            return Err(SettingError::new("discovery", problem));
        }
        self.discovery.as_ref().map_or(Ok(()), DiscoverySettings::check)?;
        self.dtls.as_ref().map_or(Ok(()), |dtls| dtls.check("dtls"))?;
        if self.dtls.is_none() {
            check_open("listen", self.listen, self.anonymous)?;
        }
        check_range("receive_buffer_octets", self.receive_buffer_octets as u64, 4096, 256 << 20)?;
        self.limits.check()?;
        check_predefined(&self.predefined)?;
        self.outbox.check()?;
        self.reconnect.check()
    }

    /// Checks that settings for an external broker are not used with an embedded one.
    fn check_unused(&self) -> Result<(), SettingError> {
        if self.password_file.is_some() && self.username.is_none() {
            return Err(SettingError::new("password_file", "a password needs a `username`"));
        }
        check_client_id(self.client_id.as_deref())?;
        if self.client_id.is_some() && self.mode == Mode::Transparent {
            let problem =
                "allowed only with `mode: aggregating`: other connections have the identifiers of the clients";
            return Err(SettingError::new("client_id", problem));
        }
        if self.outbox.folder.is_some() {
            return Err(SettingError::new("outbox.folder", "not allowed: the gateway stores messages in `folder`"));
        }
        if self.acknowledge == Acknowledge::Storage && self.folder.is_none() {
            return Err(SettingError::new("folder", "required with `acknowledge: storage`"));
        }
        if self.embedded_broker.is_none() {
            return Ok(());
        }
        let unused = [
            ("mode", self.mode == Mode::Transparent),
            ("tls", self.tls.is_some()),
            ("client_id", self.client_id.is_some()),
            ("username", self.username.is_some()),
        ];
        match unused.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(SettingError::new(key, "allowed only with an external `broker`")),
            None => Ok(()),
        }
    }
}

impl DiscoverySettings {
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        if !self.group.ip().is_multicast() {
            let problem = format!("{} is not a multicast address (224.0.0.0 to 239.255.255.255)", self.group.ip());
            return Err(SettingError::new("discovery.group", problem));
        }
        check_server("discovery.group", self.group.into(), "multicast group")?;
        check_range("discovery.advertise_s", self.advertise_s.into(), 1, 65_535)
    }
}

impl LimitSettings {
    fn check(&self) -> Result<(), SettingError> {
        for (key, value, min, max) in [
            ("clients_max", self.clients_max as u64, 1, 100_000),
            ("topics_max", self.topics_max as u64, 1, 65_534),
            ("subscriptions_max", self.subscriptions_max as u64, 1, 512),
            ("queued_messages_max", self.queued_messages_max as u64, 1, 10_000),
            ("queued_octets_max", self.queued_octets_max, 1024, 16 << 30),
            ("datagram_octets_max", self.datagram_octets_max as u64, 64, 65_507),
        ] {
            check_range(&format!("limits.{key}"), value, min, max)?;
        }
        Ok(())
    }
}

/// Checks the setting `predefined`.
pub(crate) fn check_predefined(predefined: &[PredefinedSettings]) -> Result<(), SettingError> {
    check_range("predefined", predefined.len() as u64, 0, 1024)?;
    for (index, topic) in predefined.iter().enumerate() {
        let key = |name: &str| format!("predefined.{index}.{name}");
        check_range(&key("id"), topic.id.into(), 1, 65_534)?;
        if viaduct_mqtt::validate_topic_name(&topic.topic).is_err() {
            let problem = format!("`{}` is not a topic to publish on", topic.topic);
            return Err(SettingError::new(key("topic"), problem));
        }
        if let Some(client) = &topic.client
            && !(1..=CLIENT_ID_OCTETS_MAX).contains(&client.len())
        {
            let problem = format!("`{client}` is not a client identifier of 1 to {CLIENT_ID_OCTETS_MAX} octets");
            return Err(SettingError::new(key("client"), problem));
        }
        let is_same = |other: &&PredefinedSettings| other.id == topic.id && other.client == topic.client;
        if predefined.iter().take(index).any(|other| is_same(&other)) {
            return Err(SettingError::new(key("id"), format!("{} is the identifier of another topic", topic.id)));
        }
    }
    Ok(())
}
