//! Settings of a client: outbox, reconnection, last will.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_mqtt::QoS;
use viaduct_mqtt::types::WillMessage;
use viaduct_node::{SettingError, StartError, files};

use super::journal::{Disk, Journal, Restored};
use super::outbox::{Limits, WhenFull};
use crate::mqtt::check_qos;

/// Longest payload of a last will, in octets.
const WILL_OCTETS_MAX: usize = 65_535;

/// Limits of the outbox. It keeps messages of QoS 1 and 2 until the broker has acknowledged them, and messages of QoS 0 until the socket
/// has accepted them. Without a connection, messages of QoS 0 are dropped (`disconnected`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutboxSettings {
    /// Maximum number of messages, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub messages_max: usize,
    /// Maximum size of all payloads together in bytes, 1024 to 17179869184 (16 GiB). A larger message is dropped (`too_large`).
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub octets_max: u64,
    /// Maximum number of unacknowledged messages of QoS 1 and 2, 1 to 10000. The broker may allow fewer.
    #[schemars(range(min = 1, max = 10_000))]
    pub in_flight_max: u16,
    /// The message that is dropped (`outbox_full`) when the outbox is full. `drop_newest`, the default, rejects the new
    /// message. Every accepted message of QoS 1 and 2 is then kept until the broker has acknowledged or rejected it, or until
    /// the node stops. `drop_oldest` drops the oldest accepted messages that have not been sent yet, also with QoS 1 and 2.
    pub when_full: WhenFull,
    /// Maximum age of a message that waits to be sent, since its origin, in seconds, 1 to 31536000. An older message is dropped (`expired`).
    /// Default: no limit.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub age_max_s: Option<u32>,
    /// Folder in which messages of QoS 1 and 2 and the state of the session outlive the process. It is created if it does not exist, and
    /// belongs to one component. It takes up to four times `octets_max` and 32 MiB. The messages are in memory too. The end of the process loses nothing; a loss of power may lose the
    /// last second. Default: none, the outbox is only in memory.
    pub folder: Option<PathBuf>,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            messages_max: 10_000,
            octets_max: 64 << 20,
            in_flight_max: 512,
            when_full: WhenFull::default(),
            age_max_s: None,
            folder: None,
        }
    }
}

/// Waiting times between connection attempts. The wait doubles from `min_ms` to `max_ms`. It returns to `min_ms` after
/// a productive connection. A connection is productive if the broker acknowledged or rejected a message or if it lasted
/// five seconds, unless a client with the same identifier took it over. Each wait is shortened by a random part of up
/// to half, so that many vehicles do not reconnect at the same time.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReconnectSettings {
    /// First wait in milliseconds, 1 to 60000.
    #[schemars(range(min = 1, max = 60_000))]
    pub min_ms: u32,
    /// Longest wait in milliseconds, `min_ms` to 3600000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub max_ms: u32,
}

impl Default for ReconnectSettings {
    fn default() -> Self {
        Self { min_ms: 100, max_ms: 5_000 }
    }
}

/// Last will: a message that the broker publishes when the connection is lost without a DISCONNECT.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WillSettings {
    /// MQTT topic, without wildcards.
    pub topic: String,
    /// Payload as a text of at most 65535 octets. Default: empty.
    #[serde(default)]
    pub payload: String,
    /// Quality of service: 0, 1 or 2.
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    pub qos: u8,
    /// Retain flag.
    #[serde(default)]
    pub retain: bool,
    /// Time in seconds from the loss of the connection to the publication, if the client does not return. Only with MQTT 5. The broker
    /// publishes it at the end of the session at the latest, so `session_expiry_s` must not be shorter; its default is then this time.
    /// Default: 0.
    #[serde(default)]
    pub delay_s: u32,
}

impl OutboxSettings {
    /// Checks the setting `outbox`.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        check_range("outbox.messages_max", self.messages_max as u64, 1, 1_000_000)?;
        check_range("outbox.octets_max", self.octets_max, 1024, 16 << 30)?;
        check_range("outbox.in_flight_max", self.in_flight_max.into(), 1, 10_000)?;
        self.age_max_s.map_or(Ok(()), |age| check_range("outbox.age_max_s", age.into(), 1, 31_536_000))
    }

    /// Opens the folder, if there is one. `client` identifies the session.
    pub(super) fn open(&self, client: &str, disk: &Disk) -> Result<Option<(Journal, Restored)>, SettingError> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let opened = Journal::open(folder, client, disk);
        let (journal, restored) = opened.map_err(|error| SettingError::new("outbox.folder", error.to_string()))?;
        let (messages, folder) = (restored.messages.len(), folder.display());
        if messages > 0 {
            tracing::info!(%folder, messages, "messages of an earlier process are sent");
        }
        if restored.damaged_octets > 0 {
            tracing::error!(%folder, octets = restored.damaged_octets, "a part of the outbox is damaged and is ignored");
        }
        Ok(Some((journal, restored)))
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            messages_max: self.messages_max,
            bytes_max: usize::try_from(self.octets_max).unwrap_or(usize::MAX),
            in_flight_max: self.in_flight_max,
            when_full: self.when_full,
            age_max: self.age_max_s.map(|age| Duration::from_secs(age.into())),
        }
    }
}

impl ReconnectSettings {
    /// Checks the setting `reconnect`.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        check_range("reconnect.min_ms", self.min_ms.into(), 1, 60_000)?;
        check_range("reconnect.max_ms", self.max_ms.into(), 1, 3_600_000)?;
        if self.max_ms < self.min_ms {
            let problem = format!("{} is below `min_ms`, which is {}", self.max_ms, self.min_ms);
            return Err(SettingError::new("reconnect.max_ms", problem));
        }
        Ok(())
    }
}

impl WillSettings {
    /// Checks the setting `will`.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        check_qos(self.qos).map_err(|problem| SettingError::new("will.qos", problem))?;
        viaduct_mqtt::validate_topic_name(&self.topic).map_err(|_| {
            let problem = format!("`{}` is not a topic to publish on", self.topic);
            SettingError::new("will.topic", problem)
        })?;
        check_range("will.payload", self.payload.len() as u64, 0, WILL_OCTETS_MAX as u64)
    }

    pub(crate) fn message(&self) -> WillMessage {
        let mut will = WillMessage::new(self.topic.clone(), self.payload.clone().into_bytes());
        will.qos = QoS::from(self.qos);
        will.retain = self.retain;
        will.properties.will_delay_interval = Some(self.delay_s);
        will
    }
}

/// Largest size of a password file: a password of MQTT is at most this long.
const PASSWORD_FILE_OCTETS_MAX: u64 = 65_535;

/// User name and password of a client.
type Credentials = (String, Vec<u8>);

/// Reads the password of a user.
pub(crate) fn credentials(
    username: Option<&str>,
    password_file: Option<&Path>,
) -> Result<Option<Credentials>, StartError> {
    let Some(username) = username else { return Ok(None) };
    let password = match password_file {
        Some(path) => {
            let unread = |cause| StartError::io(format!("cannot read the password file {}", path.display()), cause);
            let text = files::read_text(path, PASSWORD_FILE_OCTETS_MAX).map_err(unread)?;
            match text.lines().next() {
                Some(password) if !password.is_empty() => password.as_bytes().to_vec(),
                _ => return Err(unread(io::Error::other("its first line, the password, is empty"))),
            }
        }
        None => Vec::new(),
    };
    Ok(Some((username.to_owned(), password)))
}

/// Checks the setting `client_id`.
pub(crate) fn check_client_id(client_id: Option<&str>) -> Result<(), SettingError> {
    let good = |id: &str| (1..=256).contains(&id.len()) && !id.chars().any(char::is_control);
    if client_id.is_none_or(good) {
        return Ok(());
    }
    Err(SettingError::new("client_id", "expected 1 to 256 octets without control characters"))
}

/// Checks the range of a setting.
pub(crate) fn check_range(key: &str, value: u64, min: u64, max: u64) -> Result<(), SettingError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SettingError::new(key, format!("{value} is not within {min} to {max}")))
}
