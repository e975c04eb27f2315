//! An application message.

use std::sync::Arc;

use bytes::Bytes;

use crate::codec::Qos;

/// An application message with its topic name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Topic name.
    pub topic: Arc<str>,
    /// Payload.
    pub payload: Bytes,
    /// Quality of service.
    pub qos: Qos,
    /// `true` if the broker must retain the message; from a broker: `true` if the message was retained.
    pub retain: bool,
}

impl Message {
    /// Returns the octets that the message counts for in a buffer.
    pub(crate) fn weight(&self) -> usize {
        self.topic.len() + self.payload.len() + 64
    }
}
