//! Encrypted and authenticated datagrams between peers that know each other's public keys.
//!
//! ```text
//! initiator                                             responder
//!     cookie request ───────────────────────────────────►   checks a tag, stores nothing
//!     ◄─────────────────────────────────────────── cookie
//!     initiation (cookie, first Noise message) ─────────►   checks the cookie and the rates, then agrees on keys
//!     ◄───────────────── response (second Noise message)
//!     data ─────────────────────────────────────────────►   uses the session from here on
//!     ◄──────────────────────────────────────────── data
//! ```
//!
//! [`Endpoint`] is a machine: datagrams, time and random numbers go in; datagrams, payloads, events and a deadline come out.
//! The key agreement is Noise IK (decision 0011). The rest is here:
//!
//! - **Identities** are X25519 keys. An endpoint accepts the peers of its settings and no others.
//! - **Data** has an explicit counter. It is accepted in any order within a window, and once.
//! - **Sessions** have identifiers that each end chooses for itself. They are renewed every two minutes; both ends accept
//!   datagrams of the session before. If a peer does not answer for half a second, the end that knows its address starts a
//!   handshake, so that a restarted peer is connected again. A copied initiation does not change the session in use.
//! - **Addresses** may change. An endpoint sends to the source of the newest authentic datagram. An attacker on the path who
//!   forwards datagrams from another address can attract the answers until the next datagram arrives on the direct path.
//! - **Floods** cost two hashes for each datagram. Key agreements, about 0.2 ms each, are computed only for senders that
//!   receive datagrams at their address, 50 per second, and apart from them for the peers in session.
//!
//! An endpoint sends no more to an address that has not proved itself than it has received from there.
//!
//! Not here: sockets and clocks. The owner calls [`Endpoint::open`] for each received datagram, sends what
//! [`Endpoint::seal`] appends and [`Endpoint::poll_transmit`] returns, and calls [`Endpoint::handle_timeout`] when
//! [`Endpoint::poll_timeout`] is due.

pub(in crate::net) mod admission;
mod counters;
mod endpoint;
mod keys;
pub mod limits;
mod noise;
mod peer;
pub(in crate::net) mod random;
mod replay;
mod session;
mod settings;
mod wire;

pub use counters::{Counters, DropReason};
pub use endpoint::{Endpoint, Event, Opened, PeerId, SealError};
pub use keys::{KEY_OCTETS, KeyFileError, NotAKey, PrivateKey, PublicKey};
pub use limits::Timing;
pub use random::{Random, RandomError, SystemRandom};
pub use settings::{Credentials, CredentialsError, Peer, PeerSettings, Role, SecuritySettings};
