//! Links and radio that lose, delay and reorder, in virtual time.
//!
//! [`Link`] is one direction of a link between two machines: packets and time go in; packets and a deadline come out.
//! [`World`] is a place with stations in it that hear each other by radio: it drives any [`Machine`] by an event queue.
//!
//! The same seed gives the same losses, delays and order, on every machine and in every build.
//!
//! What is not here: clocks, sockets, threads, random sources. A caller that owns a clock puts a [`Link`] between two real
//! interfaces; a test moves the time by hand.

pub mod limits;
pub mod link;
mod probability;
pub mod world;

pub use link::{Link, LinkSettings};
pub use probability::{NotAProbability, Probability};
pub use world::{Machine, World};
