//! The packets of the received byte stream.

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use viaduct_mqtt::{MqttError, Packet, QoS, decode_buffered_packet};

/// Octets for which a read has room if the length of the packet is not known, and at least.
const CHUNK_OCTETS: usize = 8 * 1024;
/// Memory that the length of a packet reserves before its octets arrive. More is reserved as they arrive.
const RESERVED_MAX: usize = 2 << 20;
/// Type of a PUBLISH packet (MQTT 5, 2.1.2).
const PUBLISH: u8 = 3;

/// A received packet.
pub(super) enum Incoming {
    Packet(Packet),
    TooLong(LongPublish),
}

/// A PUBLISH above the limit, whose payload is not kept. A broker with MQTT 3.1.1 does not know the limit, and would send the message
/// again if it were not acknowledged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LongPublish {
    pub(super) topic: String,
    pub(super) qos: QoS,
    pub(super) packet_id: Option<u16>,
}

/// The receiving side of a connection.
pub(super) struct Reader<S> {
    stream: S,
    /// Received octets that are not a complete packet yet.
    buffer: BytesMut,
    /// Octets of a PUBLISH above the limit that are still to be skipped.
    skip: usize,
    /// Octets received on this connection.
    octets: u64,
    version: u8,
    packet_bytes_max: usize,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    pub(super) fn new(stream: S, version: u8, packet_bytes_max: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), skip: 0, octets: 0, version, packet_bytes_max }
    }

    /// Returns the number of octets received.
    pub(super) const fn octets(&self) -> u64 {
        self.octets
    }

    /// Waits for the next packet. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Result<Incoming, MqttError> {
        loop {
            if let Some(incoming) = self.buffered()? {
                return Ok(incoming);
            }
            self.buffer.reserve(self.room());
            let octets = self.stream.read_buf(&mut self.buffer).await?;
            if octets == 0 {
                return Err(MqttError::ClientClosed);
            }
            self.octets += octets as u64;
        }
    }

    /// Returns the octets for which the next read has room: the rest of the packet. A buffer that only doubles when it is full would be
    /// copied several times for a long one.
    fn room(&self) -> usize {
        let octets = packet_octets(&self.buffer).filter(|octets| *octets <= self.packet_bytes_max).unwrap_or(0);
        octets.saturating_sub(self.buffer.len()).clamp(CHUNK_OCTETS, RESERVED_MAX.max(self.buffer.len()))
    }

    /// Returns the next packet of the octets received so far, or `None` if it is not complete.
    pub(super) fn buffered(&mut self) -> Result<Option<Incoming>, MqttError> {
        let skipped = self.skip.min(self.buffer.len());
        self.buffer.advance(skipped);
        self.skip -= skipped;
        if self.skip > 0 {
            return Ok(None);
        }
        match decode_buffered_packet(&mut self.buffer, self.version, self.packet_bytes_max) {
            Err(error @ MqttError::PacketTooLarge { size, .. }) => {
                if self.buffer.first().is_none_or(|octet| octet >> 4 != PUBLISH) {
                    return Err(error);
                }
                let Some(publish) = long_publish(&self.buffer)? else {
                    return Ok(None);
                };
                self.skip = size;
                Ok(Some(Incoming::TooLong(publish)))
            }
            decoded => Ok(decoded?.map(Incoming::Packet)),
        }
    }
}

/// Returns the length of a packet with its fixed header, or `None` if the fixed header is not complete (MQTT 5, 2.1.4).
fn packet_octets(packet: &[u8]) -> Option<usize> {
    let lengths = packet.get(1..)?.iter().take(4).zip([0, 7, 14, 21]);
    let mut rest = 0;
    for (index, (octet, shift)) in lengths.enumerate() {
        rest |= usize::from(octet & 0x7F) << shift;
        if octet & 0x80 == 0 {
            return Some(2 + index + rest);
        }
    }
    None
}

/// Reads the beginning of a PUBLISH, whose fixed header is complete. Returns `None` if topic and packet identifier are not complete.
fn long_publish(packet: &[u8]) -> Result<Option<LongPublish>, MqttError> {
    let malformed = |problem: &str| MqttError::MalformedPacket(problem.to_owned());
    let qos = match packet.first().map(|octet| octet >> 1 & 3) {
        Some(0) => QoS::AtMostOnce,
        Some(1) => QoS::AtLeastOnce,
        Some(2) => QoS::ExactlyOnce,
        _ => return Err(malformed("quality of service 3")),
    };
    let length = packet.iter().skip(1).position(|octet| octet & 0x80 == 0);
    let Some(Some((topic_octets, rest))) = length.map(|last| packet[last + 2..].split_first_chunk()) else {
        return Ok(None);
    };
    let Some((topic, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes(*topic_octets))) else {
        return Ok(None);
    };
    let topic = std::str::from_utf8(topic).map_err(|_| malformed("a topic is not UTF-8"))?.to_owned();
    let packet_id = match qos {
        QoS::AtMostOnce => None,
        _ => match rest.first_chunk() {
            None => return Ok(None),
            Some(id) => Some(u16::from_be_bytes(*id)),
        },
    };
    Ok(Some(LongPublish { topic, qos, packet_id }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_mqtt::encode_packet_to_buffer;
    use viaduct_mqtt::packet::publish::PublishPacket;

    #[tokio::test]
    async fn a_publish_above_the_limit_is_skipped_wherever_the_stream_is_divided() {
        let mut octets = BytesMut::new();
        for (length, qos, packet_id) in [(3000, QoS::ExactlyOnce, Some(7)), (10, QoS::AtMostOnce, None)] {
            let mut publish = PublishPacket::new("some/topic", vec![0x30; length], qos);
            publish.packet_id = packet_id;
            encode_packet_to_buffer(&Packet::Publish(publish), &mut octets).unwrap();
        }
        for first in 1..octets.len() {
            let (left, right) = octets.split_at(first);
            let mut reader = Reader::new(AsyncReadExt::chain(left, right), 5, 2000);
            let expected = LongPublish { topic: "some/topic".into(), qos: QoS::ExactlyOnce, packet_id: Some(7) };
            let Incoming::TooLong(publish) = reader.next().await.unwrap() else { panic!("divided at {first}") };
            assert_eq!(publish, expected, "divided at {first}");
            let next = reader.next().await.unwrap();
            assert!(matches!(next, Incoming::Packet(Packet::Publish(next)) if next.payload.len() == 10));
        }
    }

    #[test]
    fn a_read_has_room_for_the_rest_of_a_packet_within_limits() {
        let room = |received: &[u8]| {
            let mut reader = Reader::new(&[][..], 5, 4 << 20);
            reader.buffer.extend_from_slice(received);
            reader.room()
        };
        assert_eq!(room(&[]), CHUNK_OCTETS);
        assert_eq!(room(&[0x30, 0x80, 0x80]), CHUNK_OCTETS, "the length is not complete");
        assert_eq!(room(&[0x30, 10]), CHUNK_OCTETS);
        // 2^19 octets after a fixed header of four octets.
        assert_eq!(room(&[0x30, 0x80, 0x80, 0x20]), 1 << 19);
        assert_eq!(room(&[0x30, 0x80, 0x80, 0x20, 0, 0]), (1 << 19) - 2);
        // 3 MB, of which nothing has arrived; and more than the limit.
        assert_eq!(room(&[0x30, 0x80, 0x80, 0xC0, 0x01]), RESERVED_MAX);
        assert_eq!(room(&[0x30, 0x80, 0x80, 0x80, 0x04]), CHUNK_OCTETS);
    }

    #[tokio::test]
    async fn another_packet_above_the_limit_is_an_error() {
        // A SUBACK of 256 octets.
        let octets = [&[0x90, 0xFD, 0x01][..], &[0; 253]].concat();
        assert!(matches!(
            Reader::new(&octets[..], 5, 100).next().await,
            Err(MqttError::PacketTooLarge { size: 256, max: 100 })
        ));
    }
}
