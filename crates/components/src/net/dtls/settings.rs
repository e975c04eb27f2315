//! Settings of DTLS.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::SettingError;

use super::keys::{PskError, PskKeys};

/// DTLS 1.2 with pre-shared keys for the clients of a server (`TLS_PSK_WITH_AES_128_CCM_8`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DtlsServerSettings {
    /// File with the keys of the clients: one line `IDENTITY:HEX` or `IDENTITY:"text"` for each. A line that starts with `#`
    /// is a comment. An identity has 1 to 128 octets, a key 8 to 64; take 16 random octets (`openssl rand -hex 16`). Other
    /// users must not have access to the file.
    pub psk_file: PathBuf,
    /// Sessions, 1 to 100 000. A further client replaces the session that was silent for longest, of the identity with the
    /// most sessions. Default 1000.
    #[serde(default = "default_connections_max")]
    #[schemars(range(min = 1, max = 100_000))]
    pub connections_max: usize,
    /// Handshakes at once, 1 to 10 000. A further one replaces the oldest of the source with the most handshakes. Default 100.
    #[serde(default = "default_handshakes_max")]
    #[schemars(range(min = 1, max = 10_000))]
    pub handshakes_max: usize,
    /// Time without a record of the client after which a session ends, 1 to 604 800 s. Default 86 400 s.
    #[serde(default = "default_idle_timeout_s")]
    #[schemars(range(min = 1, max = 604_800))]
    pub idle_timeout_s: u64,
    /// Time after which a handshake fails, 1 to 600 s. Default 60 s.
    #[serde(default = "default_handshake_timeout_s")]
    #[schemars(range(min = 1, max = 600))]
    pub handshake_timeout_s: u64,
    /// Time without an answer after which messages of a handshake are sent again, 50 to 60 000 ms. The time doubles with each
    /// repetition. Default 1000 ms (RFC 6347, 4.2.4.1).
    #[serde(default = "default_retransmission_ms")]
    #[schemars(range(min = 50, max = 60_000))]
    pub retransmission_ms: u64,
}

/// DTLS 1.2 with a pre-shared key for a client (`TLS_PSK_WITH_AES_128_CCM_8`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DtlsClientSettings {
    /// File with the identity and the key of this client: one line `IDENTITY:HEX` or `IDENTITY:"text"`. A line that starts
    /// with `#` is a comment. An identity has 1 to 128 octets, a key 8 to 64; take 16 random octets
    /// (`openssl rand -hex 16`). Other users must not have access to the file.
    pub psk_file: PathBuf,
    /// Time after which a handshake fails, 1 to 600 s. Default 60 s.
    #[serde(default = "default_handshake_timeout_s")]
    #[schemars(range(min = 1, max = 600))]
    pub handshake_timeout_s: u64,
    /// Time without an answer after which messages of a handshake are sent again, 50 to 60 000 ms. The time doubles with each
    /// repetition. Default 1000 ms (RFC 6347, 4.2.4.1).
    #[serde(default = "default_retransmission_ms")]
    #[schemars(range(min = 50, max = 60_000))]
    pub retransmission_ms: u64,
    /// Time without a record of the server after a sent one, after which the client starts another handshake: the server may
    /// have restarted. The session continues meanwhile. 1 to 3600 s. Default 10 s.
    #[serde(default = "default_silence_s")]
    #[schemars(range(min = 1, max = 3600))]
    pub silence_s: u64,
}

const fn default_connections_max() -> usize {
    1000
}

const fn default_handshakes_max() -> usize {
    100
}

const fn default_idle_timeout_s() -> u64 {
    86_400
}

const fn default_handshake_timeout_s() -> u64 {
    60
}

const fn default_retransmission_ms() -> u64 {
    1000
}

const fn default_silence_s() -> u64 {
    10
}

/// Configuration of a server, read from its settings and files.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The keys of the clients.
    pub keys: PskKeys,
    /// Sessions, at least 1.
    pub connections_max: usize,
    /// Handshakes at once, at least 1.
    pub handshakes_max: usize,
    /// Time without a record of the client after which a session ends.
    pub idle_timeout: Duration,
    /// The times of a handshake.
    pub timing: HandshakeTiming,
}

/// Configuration of a client, read from its settings and files.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The identity of the client, with its key.
    pub keys: PskKeys,
    /// Time without a record of the server after a sent one, after which the client starts another handshake.
    pub silence: Duration,
    /// The times of a handshake.
    pub timing: HandshakeTiming,
}

/// The times of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeTiming {
    /// Time after which a handshake fails.
    pub timeout: Duration,
    /// Time without an answer after which messages are sent again for the first time.
    pub retransmission: Duration,
}

/// The files or the values of the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DtlsError {
    /// A setting is not possible.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] PskError),
}

impl DtlsServerSettings {
    /// Checks the settings without reading files. `key` is the path of these settings below those of the component.
    ///
    /// # Errors
    /// The first setting that is not within its range.
    pub fn check(&self, key: &str) -> Result<(), SettingError> {
        within(key, "connections_max", self.connections_max as u64, 1, 100_000)?;
        within(key, "handshakes_max", self.handshakes_max as u64, 1, 10_000)?;
        within(key, "idle_timeout_s", self.idle_timeout_s, 1, 604_800)?;
        within(key, "handshake_timeout_s", self.handshake_timeout_s, 1, 600)?;
        within(key, "retransmission_ms", self.retransmission_ms, 50, 60_000)
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// A setting is not within its range, or the file cannot be read or is malformed.
    pub fn load(&self) -> Result<ServerConfig, DtlsError> {
        self.check("dtls")?;
        Ok(ServerConfig {
            keys: PskKeys::read(&self.psk_file)?,
            connections_max: self.connections_max,
            handshakes_max: self.handshakes_max,
            idle_timeout: Duration::from_secs(self.idle_timeout_s),
            timing: HandshakeTiming::new(self.handshake_timeout_s, self.retransmission_ms),
        })
    }
}

impl DtlsClientSettings {
    /// Checks the settings without reading files. `key` is the path of these settings below those of the component.
    ///
    /// # Errors
    /// The first setting that is not within its range.
    pub fn check(&self, key: &str) -> Result<(), SettingError> {
        within(key, "handshake_timeout_s", self.handshake_timeout_s, 1, 600)?;
        within(key, "retransmission_ms", self.retransmission_ms, 50, 60_000)?;
        within(key, "silence_s", self.silence_s, 1, 3600)
    }

    /// Reads the key.
    ///
    /// # Errors
    /// A setting is not within its range, or the file cannot be read, is malformed or has more than one key.
    pub fn load(&self) -> Result<ClientConfig, DtlsError> {
        self.check("dtls")?;
        Ok(ClientConfig {
            keys: PskKeys::read_one(&self.psk_file)?,
            silence: Duration::from_secs(self.silence_s),
            timing: HandshakeTiming::new(self.handshake_timeout_s, self.retransmission_ms),
        })
    }
}

impl HandshakeTiming {
    const fn new(timeout_s: u64, retransmission_ms: u64) -> Self {
        Self { timeout: Duration::from_secs(timeout_s), retransmission: Duration::from_millis(retransmission_ms) }
    }
}

fn within(key: &str, name: &str, value: u64, min: u64, max: u64) -> Result<(), SettingError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SettingError::new(format!("{key}.{name}"), format!("{value} is not within {min} to {max}")))
}
