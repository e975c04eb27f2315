//! All limits of the crate, and their relations. Limits that a user may want to change are settings.

use std::time::Duration;

/// Octets of a datagram: the payload of UDP over IPv4.
pub const DATAGRAM_OCTETS_MAX: usize = 65_507;
/// Octets of a wireless node id. An IPv6 address with a port fits.
pub const NODE_OCTETS_MAX: usize = 32;
/// Octets of the blocks from which datagrams to send are cut.
pub const WRITE_BLOCK_OCTETS: usize = 16 << 10;
/// Octets of a topic name or filter.
pub const TOPIC_OCTETS_MAX: usize = 1024;
/// Messages from a client whose acknowledgement may be repeated.
pub const RECENT_MESSAGES: usize = 16;
/// SUBSCRIBE and UNSUBSCRIBE of a client that wait for the broker.
pub const REQUESTS_PER_CLIENT_MAX: usize = 8;
/// Delay of the broker's answers after which further messages are answered with congestion. Until then they are not
/// answered: a client waits for T_WAIT after congestion (7.2), but repeats a message without an answer much earlier.
pub const BROKER_DELAY_MAX: Duration = Duration::from_secs(5);
/// Registrations of the topic of one message, each after the client has refused the topic id.
pub const REGISTRATIONS_PER_MESSAGE_MAX: u8 = 3;
/// Groups of addresses for which answers to strangers are limited.
pub const STRANGER_GROUPS: usize = 1024;
/// Answers to strangers per second and group of addresses.
pub const STRANGER_ANSWERS_PER_S: u32 = 5;
/// Time during which a session without a second message is not evicted.
pub const UNCONFIRMED_MIN: Duration = Duration::from_secs(2);
/// Time after a subscription in which retained messages of the shared broker connection are delivered to it.
pub const RETAINED_WINDOW: Duration = Duration::from_secs(5);
/// Octets of PUBLISH messages beyond three times the received ones that a gateway sends to an address before the client has proven it.
pub const UNPROVEN_OCTETS: usize = 4096;
/// Gateways that a client stores.
pub const GATEWAYS_MAX: usize = 16;
/// Number of missing ADVERTISE messages after which a client forgets a gateway (N_ADV, 7.2).
pub const ADVERTISE_MISSING_MAX: u32 = 3;
/// Messages of QoS 2 whose PUBREL has not arrived, at a client.
pub const UNRELEASED_MAX: usize = 64;
/// Octets of a record of the gateway's state.
pub const RECORD_OCTETS_MAX: usize = 1 << 20;
