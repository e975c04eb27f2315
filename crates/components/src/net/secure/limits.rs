//! Limits and times of encrypted datagrams.

use std::time::Duration;

/// Peers of an endpoint.
pub const PEERS_MAX: usize = 64;
/// Octets that [`seal`](super::Endpoint::seal) adds to a payload.
pub const OVERHEAD_OCTETS: usize = 29;
/// Octets of a payload: what a UDP datagram over IPv4 can carry, less the overhead.
pub const PAYLOAD_OCTETS_MAX: usize = 65_507 - OVERHEAD_OCTETS;
/// Octets of a file with a private key.
pub const KEY_FILE_OCTETS_MAX: u64 = 1024;
/// Octets of a file with roles.
pub const ROLES_FILE_OCTETS_MAX: u64 = 64 * 1024;

/// Counters behind the highest one that a session still accepts, each once: 0.7 s at 11 000 datagrams/s.
pub const REPLAY_WINDOW: u64 = 8128;

/// Datagrams that wait for [`poll_transmit`](super::Endpoint::poll_transmit).
pub const TRANSMITS_MAX: usize = 64;
/// Events that wait for [`poll_event`](super::Endpoint::poll_event).
pub const EVENTS_MAX: usize = 256;

/// Age at which the secret of the cookies is replaced. A cookie is valid for one to two of these periods.
pub const COOKIE_SECRET_PERIOD: Duration = Duration::from_secs(10);

/// Interval between key agreements that an endpoint computes for addresses without a session, in the long run.
pub const HANDSHAKE_INTERVAL: Duration = Duration::from_millis(20);
/// Key agreements that an endpoint computes for these addresses at once.
pub const HANDSHAKE_BURST: u32 = 50;
/// Buckets for the limit per source. The IPv4 address, or the upper half of the IPv6 address, selects the bucket.
pub const SOURCES: usize = 64;
/// Interval between key agreements for one source, in the long run.
pub const SOURCE_HANDSHAKE_INTERVAL: Duration = Duration::from_millis(250);
/// Key agreements for one source at once.
pub const SOURCE_HANDSHAKE_BURST: u32 = 8;
/// Interval between handshakes that an endpoint accepts from one peer, in the long run.
pub const PEER_HANDSHAKE_INTERVAL: Duration = Duration::from_secs(1);
/// Handshakes that an endpoint accepts from one peer at once.
pub const PEER_HANDSHAKE_BURST: u32 = 12;

/// Accepted handshakes of a peer that an endpoint remembers. It accepts no more during the life of a cookie, so that no
/// initiation is accepted twice.
pub const ACCEPTED_HANDSHAKES: usize = 32;

const _: () = assert!(
    COOKIE_SECRET_PERIOD.as_millis() * 2 / PEER_HANDSHAKE_INTERVAL.as_millis() + PEER_HANDSHAKE_BURST as u128
        <= ACCEPTED_HANDSHAKES as u128,
    "an initiation is remembered for as long as its cookie is valid"
);
const _: () = assert!(PEERS_MAX.is_power_of_two(), "the low bits of a session identifier number the peer");

/// Times and counts after which keys change and peers are considered silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Age of a session at which the initiator starts the next handshake.
    pub rekey_after: Duration,
    /// Delay of the same if the other end has initiated the session, and this end knows the peer's address too.
    pub rekey_delay_of_responder: Duration,
    /// Age at which a session ends.
    pub expire_after: Duration,
    /// Datagrams in one direction after which the initiator starts the next handshake.
    pub rekey_after_datagrams: u64,
    /// Datagrams in one direction after which a session ends.
    pub expire_after_datagrams: u64,
    /// Time without an authentic datagram after a datagram was sent, after which an end that knows the peer's address
    /// starts a handshake. The session continues meanwhile.
    pub silence_after: Duration,
    /// Time after a received payload, during which nothing was sent, after which an empty datagram is sent.
    pub keepalive_after: Duration,
    /// Time without an answer after which a handshake message is sent again. The time doubles with each attempt.
    pub retry_first: Duration,
    /// Longest such time.
    pub retry_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            rekey_after: Duration::from_secs(120),
            rekey_delay_of_responder: Duration::from_secs(20),
            expire_after: Duration::from_secs(180),
            // AES-GCM is secure for 2^38 octets with one key (RFC 8446, 5.5); these are 2^35 octets of video datagrams.
            rekey_after_datagrams: 1 << 24,
            expire_after_datagrams: 1 << 25,
            silence_after: Duration::from_millis(500),
            keepalive_after: Duration::from_millis(200),
            retry_first: Duration::from_millis(250),
            retry_max: Duration::from_secs(2),
        }
    }
}
