//! Emulated links and radio that lose, delay and reorder packets, in virtual time.
//!
//! [`Link`] is one direction of a link between two machines: packets and time go in; packets and a deadline come out.
//! [`Profile`] names links with documented figures; [`LinksConfig`] is what a config file or a command line sets.
//! [`Pair`] connects two datagram machines with addresses by a link in each direction.
//! [`World`] is a plane with stations that communicate by radio. It drives any [`Machine`] with an event queue.
//!
//! The same seed yields the same losses, delays and order, on every machine and in every build.
//!
//! Not included: clocks, sockets, threads, random sources. A caller that owns a clock places a [`Link`] between two
//! real interfaces; a test advances the time itself.

pub mod config;
pub mod limits;
pub mod link;
#[cfg(feature = "serde")]
mod millis;
pub mod pair;
mod probability;
pub mod profile;
pub mod world;

pub use config::{Duplex, LinkConfig, LinksConfig};
pub use link::{Link, LinkSettings};
pub use pair::{DatagramMachine, Pair, PairSettings};
pub use probability::{NotAProbability, Probability};
pub use profile::Profile;
pub use world::{Machine, World};
