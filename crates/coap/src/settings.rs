//! Settings and limits of a machine, and the transmission parameters of RFC 7252, 4.8.

use std::time::Duration;

use viaduct_units::retransmission::Profile;

use crate::codec::BlockSize;

/// Waits of RFC 7252, 4.8: ACK_TIMEOUT 2 s, ACK_RANDOM_FACTOR 1.5, MAX_RETRANSMIT 4.
pub const STANDARD: Profile =
    Profile { first: Duration::from_secs(2), spread: 1.5, growth: 2.0, retransmissions: 4, measured: None };

/// Waits from measured round trips. Until the first measurement, ACK_TIMEOUT is 1 s, the least that RFC 7252, 4.8.1 permits
/// without a measurement.
pub const ADAPTIVE: Profile = Profile::ADAPTIVE;

/// EXCHANGE_LIFETIME: time from the first transmission of a confirmable message until its message ID may be used again.
pub const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
/// NON_LIFETIME: the same for a non-confirmable message.
pub const NON_LIFETIME: Duration = Duration::from_secs(145);
/// MAX_TRANSMIT_WAIT: longest time from the first transmission of a confirmable message until the sender gives up.
pub const MAX_TRANSMIT_WAIT: Duration = Duration::from_secs(93);
/// MAX_LATENCY: longest time that a datagram is expected to need.
pub const MAX_LATENCY: Duration = Duration::from_secs(100);

/// Settings of a machine. The default conforms to RFC 7252.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Retransmission of confirmable messages: [`STANDARD`] or [`ADAPTIVE`].
    pub retransmission: Profile,
    /// Largest number of confirmable messages in flight to one peer (NSTART), at least 1. RFC 7252, 4.7 permits more than
    /// 1 only with a congestion control: the window then begins with 1, grows by 1 per round trip without a loss, and is
    /// halved by each retransmission.
    pub window: usize,
    /// Time after which a request without an answer of the owner is acknowledged. A later answer is a separate response.
    pub processing_delay: Duration,
    /// Time from the acknowledgement of a request, or from a non-confirmable request, until it fails without a response.
    pub response_timeout: Duration,
    /// `true` to reuse message IDs within EXCHANGE_LIFETIME, which RFC 7252, 4.4 forbids. If `false`, at most 65536
    /// messages are sent to a peer in 247 s, and further ones wait. A server of this crate accepts a reused ID if the token
    /// differs.
    pub reuse_message_ids: bool,
    /// Octets of a new token, 0 to 8. RFC 7252, 5.3.1 asks for 32 random bits on an open network.
    pub token_octets: u8,
    /// Rate in octets per second at which non-confirmable messages are sent to a peer that does not answer
    /// (PROBING_RATE).
    pub probing_octets_per_s: u32,
    /// Octets of non-confirmable messages that are sent to a silent peer before that rate applies.
    pub probing_burst_octets: u32,
    /// Size of the blocks of large bodies.
    pub block_size: BlockSize,
    /// `true` to send large bodies with Q-Block (RFC 9177) to peers that support it.
    pub q_block: bool,
    /// `true` to pass requests with Proxy-Uri or Proxy-Scheme to the owner. Without it, they are answered 5.05.
    pub proxy: bool,
    /// Sending of notifications.
    pub notifications: Notifications,
    /// Check of a peer's address before a large response.
    pub address_check: AddressCheck,
    /// Limits.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retransmission: STANDARD,
            window: 1,
            processing_delay: Duration::from_millis(25),
            response_timeout: MAX_TRANSMIT_WAIT,
            reuse_message_ids: false,
            token_octets: 4,
            probing_octets_per_s: 1,
            probing_burst_octets: 32 << 10,
            block_size: BlockSize::LARGEST,
            q_block: false,
            proxy: false,
            notifications: Notifications::default(),
            address_check: AddressCheck::SmallBlocks,
            limits: Limits::default(),
        }
    }
}

/// Sending of notifications to observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notifications {
    /// `true` to send all notifications as confirmable messages.
    pub confirmable: bool,
    /// Longest time between two confirmable notifications to one observer, which checks that the observer still exists.
    /// At most 24 h (RFC 7641, 4.5).
    pub confirm_interval: Duration,
}

impl Default for Notifications {
    fn default() -> Self {
        Self { confirmable: true, confirm_interval: Duration::from_secs(60) }
    }
}

/// Check of a peer's address before large responses, so that a forged source address does not amplify an attack (RFC 7252,
/// 11.3; RFC 9175, 2.4).
///
/// An address is verified once the peer has answered any message that this endpoint sent to it. Before, notifications, retransmissions
/// and the answers to duplicates have at most [`Limits::unverified_octets`] more than three times the octets that the address has sent;
/// beyond it, a ping is sent instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressCheck {
    /// No check.
    Off,
    /// An address that is not verified receives at most [`Limits::unverified_octets`] more than three times what it has
    /// sent. Beyond it, responses are cut into blocks of at most three times the request (of 16 octets at least), which
    /// each client with block-wise transfer understands. A ping is sent with the first large response. It verifies the
    /// address within a round trip.
    SmallBlocks,
    /// A ping (an empty confirmable message) is sent before a response that is larger than three times the request and
    /// than 136 octets, and the response follows the peer's Reset as separate response.
    /// Each peer that conforms to RFC 7252 answers.
    Ping,
    /// A GET or FETCH is answered with 4.01 and an Echo option, which the client must send back (RFC 9175, 2.3). Other
    /// methods are treated as with [`AddressCheck::Ping`].
    Echo,
}

/// Limits of a machine. The memory of a peer is bounded by its own limits, so that a peer cannot use up that of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Peers. Beyond it, the peer that was silent for the longest time is removed: first those with unverified addresses.
    pub peers: usize,
    /// Unanswered requests to one peer.
    pub requests_per_peer: usize,
    /// Unanswered requests of one peer.
    pub exchanges_per_peer: usize,
    /// Messages that wait for the window to one peer.
    pub queue_per_peer: usize,
    /// Messages of one peer that are remembered to detect duplicates. The oldest ones are forgotten first.
    pub remembered_per_peer: usize,
    /// Messages of all peers that are remembered to detect duplicates. Beyond it, each peer keeps its latest 16.
    pub remembered: usize,
    /// Octets of the answers that are remembered for duplicates of one peer.
    pub remembered_octets_per_peer: usize,
    /// Observations of one peer.
    pub observations_per_peer: usize,
    /// Observations of all peers.
    pub observations: usize,
    /// Octets of a body in blocks.
    pub body_octets: usize,
    /// Bodies of one peer that are received or sent in blocks, in each direction.
    pub bodies_per_peer: usize,
    /// Octets of all bodies in blocks, with 80 octets more for each block of a body whose blocks arrive in any order (Q-Block).
    pub bodies_octets: usize,
    /// Time after which a body whose next block does not arrive is dropped.
    pub body_lifetime: Duration,
    /// Octets of a message on a reliable connection that is accepted (Max-Message-Size).
    pub message_octets: usize,
    /// Octets of a datagram to send.
    pub datagram_octets: usize,
    /// Octets beyond three times the received ones that are sent to an address that is not verified
    /// ([`AddressCheck::SmallBlocks`]). With 0, the first response is small already.
    pub unverified_octets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peers: 4096,
            requests_per_peer: 256,
            exchanges_per_peer: 64,
            queue_per_peer: 256,
            remembered_per_peer: 4096,
            remembered: 1 << 18,
            remembered_octets_per_peer: 64 << 10,
            observations_per_peer: 64,
            observations: 8192,
            body_octets: 1 << 20,
            bodies_per_peer: 4,
            bodies_octets: 32 << 20,
            body_lifetime: Duration::from_secs(60),
            message_octets: 64 << 10,
            datagram_octets: 1280,
            unverified_octets: 4096,
        }
    }
}
