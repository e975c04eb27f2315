//! Settings of the gateway.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use viaduct_units::retransmission::Profile;

use crate::{SettingsError, topic::is_topic_name};

/// Connections to the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One connection per client.
    #[default]
    Transparent,
    /// One connection for all clients. The gateway merges subscriptions and distributes messages.
    Aggregating,
}

/// Time at which a message of a client is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// After the broker has confirmed it: safe without storage.
    #[default]
    AfterBroker,
    /// After the gateway has stored it: fast, and independent of the broker.
    AfterStorage,
}

/// Message that is dropped if a buffer is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropPolicy {
    /// The oldest message of the same client.
    #[default]
    Oldest,
    /// The new message.
    Newest,
}

/// Buffer for the messages to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSettings {
    /// Messages per client, at least 1.
    pub messages_per_client_max: usize,
    /// Octets of topic names and payloads per client. The messages of a client that wait for the broker have the same limit, but one
    /// always may wait.
    pub octets_per_client_max: usize,
    /// Octets of topic names and payloads of all clients.
    pub octets_max: usize,
    /// Message that is dropped if the buffer is full.
    pub drop: DropPolicy,
}

impl Default for BufferSettings {
    fn default() -> Self {
        Self {
            messages_per_client_max: 256,
            octets_per_client_max: 64 << 10,
            octets_max: 64 << 20,
            drop: DropPolicy::Oldest,
        }
    }
}

/// Topic ids that are known without a registration (6.7).
pub type PredefinedTopics = BTreeMap<u16, Arc<str>>;

/// Settings of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySettings {
    /// Id of the gateway in ADVERTISE and GWINFO.
    pub gateway_id: u8,
    /// Connections to the broker.
    pub mode: Mode,
    /// Time at which a message of a client is acknowledged.
    pub acknowledge: Acknowledge,
    /// `true` if the owner stores the records of [`GatewayEvent::Record`]. If not, none is emitted, and everything counts as
    /// stored at once.
    ///
    /// [`GatewayEvent::Record`]: super::GatewayEvent::Record
    pub storage: bool,
    /// Interval of ADVERTISE (T_ADV, 7.2), 1 to 65,535 s, or `None` for none.
    pub advertise: Option<Duration>,
    /// Longest random delay of GWINFO, 0 to 5 s.
    pub gwinfo_delay_max: Duration,
    /// Waits for the acknowledgements of clients.
    pub retransmission: Profile,
    /// Wait after a client has answered with congestion (T_WAIT, 7.2).
    pub congestion_wait: Duration,
    /// Topics of all clients.
    pub predefined: PredefinedTopics,
    /// Topics of single clients, by client id. They take precedence.
    pub predefined_of_clients: BTreeMap<String, PredefinedTopics>,
    /// `true` if PUBLISH with QoS -1 is accepted from nodes without a session.
    pub without_connection: bool,
    /// Messages with QoS -1 per second, of all nodes.
    pub without_connection_per_s_max: u32,
    /// `true` if the gateway publishes wills. Always so in aggregating mode.
    pub hold_wills: bool,
    /// Octets of a client id, 1 to 255. The specification allows 23.
    pub client_id_octets_max: usize,
    /// Sessions, at least 1.
    pub clients_max: usize,
    /// Sessions of one IP address or forwarder, at least 1.
    pub clients_per_address_max: usize,
    /// Sessions that wait for a will or for the broker, at least 1.
    pub connecting_max: usize,
    /// Time after which a session that waits for a will is dropped.
    pub connecting_time_max: Duration,
    /// Topic ids of a client, 1 to 65,534.
    pub topics_per_client_max: usize,
    /// Subscriptions of a client, 1 to 512. With the longest filters and will, the record of a session then fits into
    /// [`RECORD_OCTETS_MAX`](crate::limits::RECORD_OCTETS_MAX).
    pub subscriptions_per_client_max: usize,
    /// Messages of a client with QoS 1 or 2 that wait for the broker, 1 to 1024.
    pub in_flight_per_client_max: usize,
    /// Buffer for the messages to clients.
    pub buffer: BufferSettings,
    /// Octets of a datagram to a client, 64 to 65,507. Longer messages are dropped.
    pub datagram_octets_max: usize,
    /// Longest keep-alive time. It also replaces a keep-alive time of zero.
    pub keep_alive_max: Duration,
    /// Time for which the session of a disconnected client is kept if it is not clean.
    pub session_expiry: Duration,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            gateway_id: 1,
            mode: Mode::default(),
            acknowledge: Acknowledge::default(),
            storage: true,
            advertise: Some(Duration::from_secs(900)),
            gwinfo_delay_max: Duration::from_millis(100),
            retransmission: Profile::ADAPTIVE,
            congestion_wait: Duration::from_secs(300),
            predefined: PredefinedTopics::new(),
            predefined_of_clients: BTreeMap::new(),
            without_connection: false,
            without_connection_per_s_max: 1000,
            hold_wills: false,
            client_id_octets_max: crate::codec::CLIENT_ID_OCTETS_MAX,
            clients_max: 4096,
            clients_per_address_max: 2048,
            connecting_max: 512,
            connecting_time_max: Duration::from_secs(30),
            topics_per_client_max: 256,
            subscriptions_per_client_max: 64,
            in_flight_per_client_max: 64,
            buffer: BufferSettings::default(),
            datagram_octets_max: 1400,
            keep_alive_max: Duration::from_secs(86_400),
            session_expiry: Duration::from_secs(86_400),
        }
    }
}

impl GatewaySettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), SettingsError> {
        let advertise = self.advertise.is_none_or(|interval| (1..=65_535).contains(&interval.as_secs()));
        let topics = |topics: &PredefinedTopics| {
            topics.iter().all(|(id, name)| (1..=0xFFFE).contains(id) && is_topic_name(name))
        };
        let predefined = topics(&self.predefined) && self.predefined_of_clients.values().all(topics);
        for (valid, field, range) in [
            (advertise, "advertise", "1 to 65,535 s"),
            (self.gwinfo_delay_max <= Duration::from_secs(5), "gwinfo_delay_max", "0 to 5 s"),
            (predefined, "predefined", "topic names without wildcards, with ids 1 to 65,534"),
            ((1..=255).contains(&self.client_id_octets_max), "client_id_octets_max", "1 to 255"),
            ((1..=1 << 24).contains(&self.clients_max), "clients_max", "1 to 16,777,216"),
            (self.clients_per_address_max >= 1, "clients_per_address_max", "at least 1"),
            (self.connecting_max >= 1, "connecting_max", "at least 1"),
            (self.connecting_time_max >= Duration::from_secs(1), "connecting_time_max", "at least 1 s"),
            ((1..=0xFFFE).contains(&self.topics_per_client_max), "topics_per_client_max", "1 to 65,534"),
            ((1..=512).contains(&self.subscriptions_per_client_max), "subscriptions_per_client_max", "1 to 512"),
            ((1..=1024).contains(&self.in_flight_per_client_max), "in_flight_per_client_max", "1 to 1024"),
            ((1..=16_384).contains(&self.buffer.messages_per_client_max), "messages_per_client_max", "1 to 16,384"),
            ((64..=65_507).contains(&self.datagram_octets_max), "datagram_octets_max", "64 to 65,507"),
            (self.keep_alive_max >= Duration::from_secs(1), "keep_alive_max", "at least 1 s"),
        ] {
            if !valid {
                return Err(SettingsError { field, range });
            }
        }
        Ok(())
    }
}
