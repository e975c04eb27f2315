//! Emulated links and radio that lose, delay and reorder packets, in virtual time.
//!
//! [`Link`] is one direction of a link between two machines: packets and time go in; packets and a deadline come out.
//! [`World`] is a plane with stations that communicate by radio. It drives any [`Machine`] with an event queue.
//!
//! The same seed yields the same losses, delays and order, on every machine and in every build.
//!
//! Not included: clocks, sockets, threads, random sources. A caller that owns a clock places a [`Link`] between two
//! real interfaces; a test advances the time itself.

pub mod limits;
pub mod link;
mod probability;
pub mod world;

pub use link::{Link, LinkSettings};
pub use probability::{NotAProbability, Probability};
pub use world::{Machine, World};
