//! Settings of the client.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use viaduct_units::retransmission::Profile;

use crate::{Message, SettingsError, topic::is_topic_name};

/// Settings of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSettings {
    /// Client id, 1 to 255 octets. The specification allows 23.
    pub client_id: String,
    /// `true` if the gateway must forget an earlier session at the first connection. Reconnections keep the session.
    pub clean: bool,
    /// Keep-alive time, 0 to 65,535 s; 0 means none.
    pub keep_alive: Duration,
    /// Will, which is published if the client is lost.
    pub will: Option<Message>,
    /// Waits for the answers of the gateway.
    pub retransmission: Profile,
    /// Wait after an answer with congestion (T_WAIT, 7.2).
    pub congestion_wait: Duration,
    /// Wait before a further attempt to connect, after all attempts with one gateway have failed.
    pub reconnect_wait: Duration,
    /// Topic ids that are known without a registration.
    pub predefined: BTreeMap<u16, Arc<str>>,
    /// Requests that wait, at least 1.
    pub queue_max: usize,
    /// Octets of the payloads and topic names of these requests.
    pub queue_octets_max: usize,
    /// Topic ids, at least 1.
    pub topics_max: usize,
    /// Subscriptions, at least 1.
    pub subscriptions_max: usize,
    /// Octets of a datagram, 64 to 65,507.
    pub datagram_octets_max: usize,
    /// Longest random delay of the first SEARCHGW (T_SEARCHGW, 7.2).
    pub search_delay_max: Duration,
    /// Wait before the second SEARCHGW; it doubles each time, up to 64 times.
    pub search_wait: Duration,
    /// Longest random delay of a GWINFO on behalf of a gateway (T_GWINFO, 7.2), or `None` if the client sends none.
    pub gwinfo_delay_max: Option<Duration>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            client_id: "viaduct".to_owned(),
            clean: true,
            keep_alive: Duration::from_secs(60),
            will: None,
            retransmission: Profile::ADAPTIVE,
            congestion_wait: Duration::from_secs(300),
            reconnect_wait: Duration::from_secs(2),
            predefined: BTreeMap::new(),
            queue_max: 256,
            queue_octets_max: 1 << 20,
            topics_max: 256,
            subscriptions_max: 64,
            datagram_octets_max: 1400,
            search_delay_max: Duration::from_secs(5),
            search_wait: Duration::from_secs(5),
            gwinfo_delay_max: None,
        }
    }
}

impl ClientSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), SettingsError> {
        let client_id = (1..=255).contains(&self.client_id.len()) && !self.client_id.contains('\0');
        let will = self.will.as_ref().is_none_or(|will| is_topic_name(&will.topic));
        let predefined = self.predefined.iter().all(|(id, name)| (1..=0xFFFE).contains(id) && is_topic_name(name));
        for (valid, field, range) in [
            (client_id, "client_id", "1 to 255 octets without U+0000"),
            (self.keep_alive <= Duration::from_secs(65_535), "keep_alive", "0 to 65,535 s"),
            (will, "will", "a message with a topic name without wildcards"),
            (self.reconnect_wait >= Duration::from_millis(10), "reconnect_wait", "at least 10 ms"),
            (predefined, "predefined", "topic names without wildcards, with ids 1 to 65,534"),
            (self.queue_max >= 1, "queue_max", "at least 1"),
            (self.topics_max >= 1, "topics_max", "at least 1"),
            (self.subscriptions_max >= 1, "subscriptions_max", "at least 1"),
            ((64..=65_507).contains(&self.datagram_octets_max), "datagram_octets_max", "64 to 65,507"),
            (self.search_wait >= Duration::from_millis(10), "search_wait", "at least 10 ms"),
        ] {
            if !valid {
                return Err(SettingsError { field, range });
            }
        }
        Ok(())
    }
}
