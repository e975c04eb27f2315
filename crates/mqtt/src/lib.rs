//! The MQTT engine: broker, client and packets of the crate `mqtt5`.
//!
//! Every `async fn` of `mqtt5` that Viaduct awaits is behind a function here that returns a [`BoxFuture`]. The compiler
//! generates the code of an `async fn` in the crate that polls it, together with everything that it calls. If awaited
//! directly, the broker and the client are compiled again in each crate that uses them, and again after each change of
//! such a crate. Behind a box they are compiled here, once (`docs/decisions/0009-build-time.md`). The box costs one
//! allocation per call.
//!
//! Not here: settings, routes, the bus. They are in `viaduct-components`.

pub mod address;
pub mod broker;
pub mod client;
pub mod transport;

use std::pin::Pin;

pub use mqtt5::transport::packet_io::{decode_buffered_packet, encode_packet_to_buffer};
pub use mqtt5::{
    ConnectOptions, ConnectionEvent, Message, MqttError, Packet, Properties, PropertyId, PropertyValue, QoS,
    SubscribeOptions, packet, topic_matches_filter, types, validate_topic_filter, validate_topic_name,
};

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
