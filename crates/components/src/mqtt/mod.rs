//! What the kinds that speak MQTT share: where a broker is (`address`), [`route`]s from bus topics to MQTT topics, and the
//! user property that carries a message's way ([`hops`]).
//!
//! MQTT itself is the crate `mqtt5`: its broker, its packets and their codec.

pub(crate) mod address;
pub mod hops;
pub mod route;
