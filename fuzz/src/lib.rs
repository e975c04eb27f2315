//! One function a decoder of network input: it takes any octets and panics where an invariant does not hold.
//!
//! The binary of this crate drives them with mutated vectors on stable Rust; `libfuzzer/` drives the same functions with
//! coverage.

pub mod dcc;
pub mod dialect;
pub mod facilities;
pub mod ldm;
pub mod link;
pub mod messages;
mod mutator;
mod seeds;
pub mod station;
pub mod targets;
pub mod texts;

pub use mutator::Mutator;
pub use targets::{TARGETS, Target};
