//! A connection to the broker: its socket and its buffers. Packets and their codec come from `mqtt5`.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;
use viaduct_bus::{Hop, clock};
use viaduct_mqtt::Packet;
use viaduct_mqtt::packet::connack::ConnAckPacket;
use viaduct_mqtt::packet::connect::ConnectPacket;
use viaduct_mqtt::packet::disconnect::DisconnectPacket;
use viaduct_mqtt::packet::puback::PubAckPacket;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::subscribe::SubscribePacket;
use viaduct_mqtt::types::ReasonCode;
use viaduct_mqtt::{ConnectOptions, MqttError, Properties, PropertyId, PropertyValue};
use viaduct_mqtt::{decode_buffered_packet, encode_packet_to_buffer, read_packet};

use super::outbox::{self, DropReason, Next, Outbox, Peer};
use super::subscribed::Subscribed;

/// Time limit for the TCP connection, and for the broker's CONNACK.
const OPEN_TIME_MAX: Duration = Duration::from_secs(5);
/// Size up to which the send buffer is filled before a write, in bytes, so that several messages share one write.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Maximum number of rounds of filling and writing before acknowledgements are handled.
const ROUNDS_MAX: usize = 16;
/// Duration after which a connection counts as productive even if no message was acknowledged.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// MQTT 5.
const PROTOCOL_VERSION: u8 = 5;
/// Packet identifier of the single SUBSCRIBE of a connection. No PUBLISH uses it ([`outbox::PACKET_IDS`]), because the SUBACK may
/// arrive late and an identifier in use must not be reused (MQTT 5, 2.2.1).
pub(crate) const SUBSCRIBE_ID: u16 = u16::MAX;
const _: () = assert!(outbox::PACKET_IDS < SUBSCRIBE_ID as u64);

/// Parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectParams {
    /// `host:port`.
    pub(crate) address: String,
    pub(crate) client_id: String,
    pub(crate) keep_alive: Duration,
    pub(crate) credentials: Option<(String, Vec<u8>)>,
    /// Longest packet from the broker, in bytes.
    pub(crate) packet_bytes_max: u32,
}

/// Reason why a connection could not be opened or was lost.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Mqtt(#[from] MqttError),
    #[error("the broker did not answer in time")]
    Timeout,
    #[error("the broker rejected the connection: {0:?}")]
    Refused(ReasonCode),
    #[error("the broker closed the connection: {0:?}")]
    Ended(ReasonCode),
    #[error("the broker sent an unexpected packet")]
    Unexpected,
}

pub(crate) struct Connection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    /// Received octets that are not a complete packet yet.
    incoming: BytesMut,
    /// Send buffer: octets that the socket has not accepted yet.
    send_buffer: BytesMut,
    /// Octets that the socket has accepted on this connection.
    written: u64,
    peer: Peer,
    keep_alive: Duration,
    /// Longest packet from the broker, in bytes.
    packet_bytes_max: usize,
    /// `true` if a packet was received since the last [`Self::ping`].
    received: bool,
    opened: Instant,
    /// `true` if the broker acknowledged or rejected a message.
    acknowledged: bool,
}

impl Connection {
    /// Connects with a clean session. Unfinished messages are in the outbox, not in a session of the broker.
    pub(crate) async fn open(
        params: &ConnectParams,
        inbound: Option<SubscribePacket>,
    ) -> Result<Self, ConnectionError> {
        let connecting = tokio::time::timeout(OPEN_TIME_MAX, TcpStream::connect(&params.address));
        let stream = connecting.await.map_err(|_| ConnectionError::Timeout)??;
        // Otherwise the kernel delays a short message by up to 40 ms, until the previous one is acknowledged.
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = stream.into_split();
        let (mut incoming, mut buffer) = (BytesMut::new(), BytesMut::new());
        encode_packet_to_buffer(&Packet::Connect(Box::new(connect_packet(params))), &mut buffer)?;
        writer.write_all(&buffer).await?;
        buffer.clear();
        let packet_bytes_max = params.packet_bytes_max as usize;
        let answer = read_packet(&mut reader, PROTOCOL_VERSION, &mut incoming, packet_bytes_max);
        let answer = tokio::time::timeout(OPEN_TIME_MAX, answer).await.map_err(|_| ConnectionError::Timeout)??;
        let Packet::ConnAck(answer) = answer else {
            return Err(ConnectionError::Unexpected);
        };
        if answer.reason_code.is_error() {
            return Err(ConnectionError::Refused(answer.reason_code));
        }
        if let Some(subscribe) = inbound {
            encode_packet_to_buffer(&Packet::Subscribe(subscribe), &mut buffer)?;
        }
        let peer = peer(&answer);
        let keep_alive = keep_alive(&answer).unwrap_or(params.keep_alive);
        let opened = Instant::now();
        let acknowledged = false;
        Ok(Self {
            reader,
            writer,
            incoming,
            send_buffer: buffer,
            written: 0,
            peer,
            keep_alive,
            packet_bytes_max,
            received: true,
            opened,
            acknowledged,
        })
    }

    pub(crate) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the keep alive of this connection: the one set by the broker, or else the configured one. Returns `None` if the
    /// broker has disabled it.
    pub(crate) fn keep_alive(&self) -> Option<Duration> {
        (!self.keep_alive.is_zero()).then_some(self.keep_alive)
    }

    /// Returns `true` if the connection that ended with `ended` was productive, so that the next attempt may follow
    /// soon. A connection is not productive if the broker closed it at the first message, or if another client with the
    /// same identifier took it over. Otherwise the bridge would reconnect forever at the shortest wait.
    pub(crate) fn was_productive(&self, ended: &ConnectionError) -> bool {
        let taken_over = matches!(ended, ConnectionError::Ended(ReasonCode::SessionTakenOver));
        !taken_over && (self.acknowledged || self.opened.elapsed() >= SETTLED_AFTER)
    }

    /// Sends as many messages as the window, the socket and a limit allow. If messages are left that may be sent, the send buffer is
    /// not empty, so that [`Self::wait`] returns when the socket is writable.
    pub(crate) fn send(&mut self, outbox: &mut Outbox, hop: &Hop) -> Result<(), ConnectionError> {
        self.fill(outbox, hop);
        for _ in 0..ROUNDS_MAX {
            if self.send_buffer.is_empty() {
                break;
            }
            match self.writer.try_write(&self.send_buffer) {
                Ok(count) => {
                    self.send_buffer.advance(count);
                    self.written += count as u64;
                    let now = clock::tai();
                    outbox.written(self.written, |meta| hop.mark(meta, now));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
            self.fill(outbox, hop);
        }
        Ok(())
    }

    /// Fills the send buffer with messages, up to a limit that the last one may exceed.
    fn fill(&mut self, outbox: &mut Outbox, hop: &Hop) {
        while self.send_buffer.len() < SEND_BUFFER_BYTES {
            let Some(Next { message, packet_id }) = outbox.next() else {
                break;
            };
            let mut packet = message.packet(hop.name(), clock::tai());
            packet.packet_id = packet_id;
            match put(packet, self.peer.packet_octets_max, &mut self.send_buffer) {
                Ok(()) => outbox.sent(self.written + self.send_buffer.len() as u64),
                Err(reason) => outbox.refuse(reason),
            }
        }
    }

    /// Waits until packets arrive (acknowledgements or messages for the inbound routes), which are handled, or until the socket
    /// accepts more of the send buffer. Cancelling the wait loses nothing.
    pub(crate) async fn wait(&mut self, outbox: &mut Outbox, inbound: &Subscribed) -> Result<(), ConnectionError> {
        let limit = self.packet_bytes_max;
        let incoming = read_packet(&mut self.reader, PROTOCOL_VERSION, &mut self.incoming, limit);
        let first = tokio::select! {
            biased;
            packet = incoming => packet?,
            ready = self.writer.writable(), if !self.send_buffer.is_empty() => return Ok(ready?),
        };
        self.received = true;
        self.handle(first, outbox, inbound)?;
        while let Some(packet) = decode_buffered_packet(&mut self.incoming, PROTOCOL_VERSION, limit)? {
            self.handle(packet, outbox, inbound)?;
        }
        Ok(())
    }

    /// Appends a ping to the send buffer. Returns an error if nothing was received since the previous ping.
    pub(crate) fn ping(&mut self) -> Result<(), ConnectionError> {
        if !std::mem::take(&mut self.received) {
            return Err(ConnectionError::Timeout);
        }
        Ok(encode_packet_to_buffer(&Packet::PingReq, &mut self.send_buffer)?)
    }

    /// Sends the rest of the send buffer and a DISCONNECT, and closes the connection.
    pub(crate) async fn close(&mut self) -> Result<(), ConnectionError> {
        encode_packet_to_buffer(&Packet::Disconnect(DisconnectPacket::normal()), &mut self.send_buffer)?;
        self.writer.write_all(&self.send_buffer).await?;
        Ok(self.writer.shutdown().await?)
    }

    fn handle(&mut self, packet: Packet, outbox: &mut Outbox, inbound: &Subscribed) -> Result<(), ConnectionError> {
        match packet {
            Packet::Publish(packet) => self.take_in(&packet, outbox, inbound)?,
            Packet::SubAck(ack) => inbound.answered(&ack.reason_codes),
            Packet::PubAck(ack) => {
                self.acknowledged = true;
                outbox.acknowledged(ack.packet_id, !ack.reason_code.is_error());
            }
            Packet::PingResp => {}
            Packet::Disconnect(packet) => return Err(ConnectionError::Ended(packet.reason_code)),
            _ => return Err(ConnectionError::Unexpected),
        }
        Ok(())
    }

    /// Handles a message of an application, puts its answer into the outbox, and acknowledges it, also if it is invalid.
    fn take_in(
        &mut self,
        packet: &PublishPacket,
        outbox: &mut Outbox,
        inbound: &Subscribed,
    ) -> Result<(), ConnectionError> {
        if let Some(answer) = inbound.take(packet, clock::now()) {
            outbox.counts().taken.increment();
            _ = outbox.accept(answer);
        }
        if let Some(id) = packet.packet_id {
            encode_packet_to_buffer(&Packet::PubAck(PubAckPacket::new(id)), &mut self.send_buffer)?;
        }
        Ok(())
    }
}

/// Appends a message to the send buffer. A message that cannot be sent leaves the buffer unchanged.
fn put(packet: PublishPacket, octets_max: usize, buffer: &mut BytesMut) -> Result<(), DropReason> {
    let before = buffer.len();
    let reason = match encode_packet_to_buffer(&Packet::Publish(packet), buffer) {
        Ok(()) if buffer.len() - before <= octets_max => return Ok(()),
        Ok(()) => DropReason::TooLarge,
        // The message is at fault, not the connection: it would fail on the next one as well.
        Err(_) => DropReason::Unencodable,
    };
    buffer.truncate(before);
    Err(reason)
}

fn connect_packet(params: &ConnectParams) -> ConnectPacket {
    let mut options =
        ConnectOptions::new(params.client_id.clone()).with_clean_start(true).with_keep_alive(params.keep_alive);
    if let Some((username, password)) = &params.credentials {
        options = options.with_credentials(username.clone(), password);
    }
    options.protocol_options.properties.maximum_packet_size = Some(params.packet_bytes_max);
    ConnectPacket::new(options.protocol_options)
}

/// Returns the capabilities of the broker. Absent properties have the default of the standard (MQTT 5, 3.2.2.3).
fn peer(answer: &ConnAckPacket) -> Peer {
    let properties = &answer.properties;
    let packet_octets_max = properties.get_maximum_packet_size().and_then(|octets| usize::try_from(octets).ok());
    Peer {
        receive_maximum: properties.get_receive_maximum().unwrap_or(u16::MAX),
        packet_octets_max: packet_octets_max.unwrap_or(usize::MAX),
        at_least_once: properties.get_maximum_qos() != Some(0),
        retain: is_available(properties, PropertyId::RetainAvailable),
    }
}

fn is_available(properties: &Properties, id: PropertyId) -> bool {
    !matches!(properties.get(id), Some(PropertyValue::Byte(0)))
}

fn keep_alive(answer: &ConnAckPacket) -> Option<Duration> {
    answer.properties.get_server_keep_alive().map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::mqtt_bridge::outbox::{Counts, Limits, WhenFull};
    use crate::mqtt::route::Message;
    use viaduct_bus::Bus;
    use viaduct_mqtt::QoS;

    fn packet(topic: &str, octets: usize) -> PublishPacket {
        PublishPacket::new(topic, vec![0; octets], QoS::AtMostOnce)
    }

    #[test]
    fn a_message_that_cannot_be_sent_leaves_the_send_buffer_unchanged() {
        let mut buffer = BytesMut::new();
        put(packet("t", 10), 100, &mut buffer).unwrap();
        let before = buffer.clone();
        assert_eq!(put(packet("t", 200), 100, &mut buffer), Err(DropReason::TooLarge));
        // An MQTT string has at most 65535 octets.
        assert_eq!(put(packet(&"t".repeat(70_000), 1), usize::MAX, &mut buffer), Err(DropReason::Unencodable));
        assert_eq!(buffer, before);
    }

    /// Returns a connection to a peer that has sent a CONNACK and does not read any more.
    async fn connection_without_reader() -> (Connection, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let params = ConnectParams {
            address: listener.local_addr().unwrap().to_string(),
            client_id: "car".into(),
            keep_alive: Duration::from_secs(30),
            credentials: None,
            packet_bytes_max: 65536,
        };
        let accept = async {
            let mut stream = listener.accept().await.unwrap().0;
            let mut answer = BytesMut::new();
            let connack = ConnAckPacket::new(false, ReasonCode::Success);
            encode_packet_to_buffer(&Packet::ConnAck(connack), &mut answer).unwrap();
            stream.write_all(&answer).await.unwrap();
            stream
        };
        let (connection, stream) = tokio::join!(Connection::open(&params, None), accept);
        (connection.unwrap(), stream)
    }

    #[tokio::test]
    async fn messages_left_to_send_keep_the_send_buffer_filled() {
        let bus = Bus::new("t");
        let (mut connection, _stream) = connection_without_reader().await;
        let limits =
            Limits { messages_max: 10_000, bytes_max: 1 << 30, in_flight_max: 1, when_full: WhenFull::DropNewest };
        let mut outbox = Outbox::new(limits, Counts::new(|name, reason| bus.counter("bridge", name, reason)));
        outbox.connected(connection.peer());
        // One message more than one call sends; the kernel accepts all of them at once.
        for _ in 0..ROUNDS_MAX + 1 {
            outbox.accept(Message::example(QoS::AtMostOnce, SEND_BUFFER_BYTES));
        }
        connection.send(&mut outbox, &bus.hop("bridge")).unwrap();
        assert!(outbox.len() > 0 && outbox.next().is_none());
        assert!(!connection.send_buffer.is_empty());
    }
}
