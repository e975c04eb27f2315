//! One function for each decoder of network input. It takes arbitrary octets and panics if an invariant is violated.
//! The binary of this crate runs the functions with mutated vectors on stable Rust; `libfuzzer/` runs them with
//! coverage feedback.

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
