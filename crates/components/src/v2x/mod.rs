//! V2X messages and requests to send them, converted between the protocols' types and those of the bus.

pub(crate) mod message;
pub(crate) mod request;

pub use message::{received_message, sent_or_received};
