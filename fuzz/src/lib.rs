//! One function for each decoder of network input. It takes arbitrary octets and panics if an invariant is violated.
//! The binary of this crate runs the functions with mutated vectors on stable Rust; `libfuzzer/` runs them with
//! coverage feedback.

pub mod cameras;
pub mod coap;
pub mod dcc;
pub mod dialect;
pub mod dtls;
pub mod facilities;
pub mod ldm;
pub mod lidar;
pub mod link;
pub mod messages;
pub mod mqtt;
pub mod mqttsn;
mod mutator;
pub mod ros;
pub mod secure;
mod seeds;
pub mod station;
pub mod targets;
pub mod teleop;
pub mod texts;

pub use mutator::Mutator;
pub use targets::{TARGETS, Target};
