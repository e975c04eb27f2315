//! A message to be published, and its destination.

use std::sync::Arc;

use bytes::Bytes;
use viaduct_bus::{HopName, Meta};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_units::Tai;

use super::hops;
use super::native::Property;
use super::queue::Permit;
use super::receipt::Receipt;
use crate::encoding::Encoding;

/// Destination of messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) topic: String,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) encoding: Encoding,
    pub(crate) content_type: String,
}

impl Target {
    /// Creates a destination for JSON that is not retained.
    pub(crate) fn json(topic: String, qos: QoS) -> Self {
        Self { topic, qos, retain: false, encoding: Encoding::Json, content_type: Encoding::Json.content_type("") }
    }
}

/// A message to be published.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) target: Arc<Target>,
    pub(crate) payload: Bytes,
    pub(crate) meta: Meta,
    /// Correlation data of an answer; empty if the request had none.
    pub(crate) correlation: Bytes,
    /// User properties in addition to the hop metadata.
    pub(crate) properties: Vec<Property>,
    /// Identity, which a message has again if it is accepted twice. The outbox then publishes it once, also if the process ends in
    /// between. `None`: each message is another one.
    pub(crate) key: Option<Arc<str>>,
    #[expect(dead_code, reason = "it counts while the message exists")]
    pub(crate) permit: Permit,
    /// Reports whether the message was published.
    pub(crate) receipt: Receipt,
}

impl Message {
    /// Returns the PUBLISH packet of MQTT 5. Its hop metadata ends with the sending by this component.
    pub(crate) fn packet(&self, hop: HopName, now: Tai) -> PublishPacket {
        let Target { topic, qos, retain, encoding, content_type } = &*self.target;
        let packet = PublishPacket::new(topic.as_str(), self.payload.clone(), *qos)
            .with_retain(*retain)
            .with_payload_format_indicator(*encoding == Encoding::Json)
            .with_content_type(content_type.clone());
        let packet = hops::add(packet, &self.meta, hop, now);
        let add =
            |packet: PublishPacket, (name, value): &Property| packet.with_user_property(name.clone(), value.clone());
        let packet = self.properties.iter().fold(packet, add);
        if self.correlation.is_empty() { packet } else { packet.with_correlation_data(self.correlation.to_vec()) }
    }
}

#[cfg(test)]
impl Message {
    /// Returns a message with a meaningless payload.
    pub(crate) fn example(qos: QoS, octets: usize) -> Self {
        let (encoding, content_type) = (Encoding::Json, "application/json".to_owned());
        let target = Target { topic: "t".to_owned(), qos, retain: false, encoding, content_type };
        let meta = Meta::from_origin(Tai::from_nanos(7));
        Self {
            target: Arc::new(target),
            payload: vec![b'x'; octets].into(),
            meta,
            correlation: Bytes::new(),
            properties: Vec::new(),
            key: None,
            permit: Permit::default(),
            receipt: Receipt::default(),
        }
    }
}
