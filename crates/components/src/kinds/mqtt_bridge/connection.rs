//! One connection to the broker: its socket, and what is on the wire. Packets and their codec are those of `mqtt5`.

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

/// Time for the TCP connection, and again for the broker's CONNACK.
const OPEN_TIME_MAX: Duration = Duration::from_secs(5);
/// Octets that are put on the wire before the socket is asked to take them: several messages become one write.
const WIRE_OCTETS: usize = 64 * 1024;
/// Octets of a packet that the broker may send: acknowledgements, and requests of applications.
const PACKET_OCTETS_MAX: u32 = 64 * 1024;
/// Rounds of filling and writing before acknowledgements are looked at again.
const ROUNDS_MAX: usize = 16;
/// Service after which a connection was of use, also where nothing was acknowledged.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// MQTT 5.
const PROTOCOL_VERSION: u8 = 5;
/// Packet identifier of the one SUBSCRIBE of a connection. No PUBLISH has it ([`outbox::PACKET_IDS`]): the SUBACK may
/// come late, and an identifier that is in use is for no other packet (MQTT 5, 2.2.1).
pub(crate) const SUBSCRIBE_ID: u16 = u16::MAX;
const _: () = assert!(outbox::PACKET_IDS < SUBSCRIBE_ID as u64);

/// Where the broker is and who we are.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    /// `host:port`.
    pub(crate) address: String,
    pub(crate) client_id: String,
    pub(crate) keep_alive: Duration,
    pub(crate) credentials: Option<(String, Vec<u8>)>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Mqtt(#[from] MqttError),
    #[error("no answer in time")]
    Timeout,
    #[error("the broker refuses the connection: {0:?}")]
    Refused(ReasonCode),
    #[error("the broker ends the connection: {0:?}")]
    Ended(ReasonCode),
    #[error("the broker sent a packet that does not belong there")]
    Unexpected,
}

pub(crate) struct Connection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    /// Octets that came and are not a whole packet yet.
    incoming: BytesMut,
    /// Octets that the socket did not take yet.
    wire: BytesMut,
    /// Octets of this connection that the socket took.
    written: u64,
    peer: Peer,
    keep_alive: Duration,
    /// Whether anything came since the last [`Self::ping`].
    heard: bool,
    opened: Instant,
    /// Whether the broker acknowledged or refused any message.
    acknowledged: bool,
}

impl Connection {
    /// Connects with a fresh session: what is unfinished is in the outbox, not in the broker.
    pub(crate) async fn open(login: &Login, inbound: Option<SubscribePacket>) -> Result<Self, ConnectionError> {
        let connecting = tokio::time::timeout(OPEN_TIME_MAX, TcpStream::connect(&login.address));
        let stream = connecting.await.map_err(|_| ConnectionError::Timeout)??;
        // Without this the kernel holds a short message back until the one before it is acknowledged: 40 ms.
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = stream.into_split();
        let (mut incoming, mut wire) = (BytesMut::new(), BytesMut::new());
        encode_packet_to_buffer(&Packet::Connect(Box::new(connect_packet(login))), &mut wire)?;
        writer.write_all(&wire).await?;
        wire.clear();
        let answer = read_packet(&mut reader, PROTOCOL_VERSION, &mut incoming, PACKET_OCTETS_MAX as usize);
        let answer = tokio::time::timeout(OPEN_TIME_MAX, answer).await.map_err(|_| ConnectionError::Timeout)??;
        let Packet::ConnAck(answer) = answer else {
            return Err(ConnectionError::Unexpected);
        };
        if answer.reason_code.is_error() {
            return Err(ConnectionError::Refused(answer.reason_code));
        }
        if let Some(subscribe) = inbound {
            encode_packet_to_buffer(&Packet::Subscribe(subscribe), &mut wire)?;
        }
        let (peer, keep_alive) = (peer(&answer), keep_alive(&answer).unwrap_or(login.keep_alive));
        let (opened, acknowledged) = (Instant::now(), false);
        Ok(Self { reader, writer, incoming, wire, written: 0, peer, keep_alive, heard: true, opened, acknowledged })
    }

    pub(crate) const fn peer(&self) -> Peer {
        self.peer
    }

    /// The keep alive that holds on this connection: the broker's, where it says one, else the setting. `None` where the
    /// broker does not care.
    pub(crate) fn keep_alive(&self) -> Option<Duration> {
        (!self.keep_alive.is_zero()).then_some(self.keep_alive)
    }

    /// Whether the connection that ended so did what it is for, so that the next is worth an early try. One that the
    /// broker closes at its first message did not, nor one that another client with our identifier took over: tried
    /// early, those go on for ever at the pace of the shortest wait.
    pub(crate) fn was_of_use(&self, ended: &ConnectionError) -> bool {
        let taken_over = matches!(ended, ConnectionError::Ended(ReasonCode::SessionTakenOver));
        !taken_over && (self.acknowledged || self.opened.elapsed() >= SETTLED_AFTER)
    }

    /// Sends what may be sent, as far as the socket takes it now, up to a bound. What then may still be sent is on the
    /// wire, so that [`Self::wait`] comes back for it.
    pub(crate) fn send(&mut self, outbox: &mut Outbox, hop: &Hop) -> Result<(), ConnectionError> {
        self.fill(outbox, hop);
        for _ in 0..ROUNDS_MAX {
            if self.wire.is_empty() {
                break;
            }
            match self.writer.try_write(&self.wire) {
                Ok(count) => {
                    self.wire.advance(count);
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

    /// Puts messages on the wire, up to a limit that one message may exceed.
    fn fill(&mut self, outbox: &mut Outbox, hop: &Hop) {
        while self.wire.len() < WIRE_OCTETS {
            let Some(Next { message, packet_id }) = outbox.next() else {
                break;
            };
            let mut packet = message.packet(hop.name(), clock::tai());
            packet.packet_id = packet_id;
            match put(packet, self.peer.packet_octets_max, &mut self.wire) {
                Ok(()) => outbox.sent(self.written + self.wire.len() as u64),
                Err(reason) => outbox.refuse(reason),
            }
        }
    }

    /// Waits until packets came, acknowledgements for the outbox or messages for the inbound routes, or until the socket
    /// takes more of what is on the wire. Cancelling the wait loses nothing.
    pub(crate) async fn wait(&mut self, outbox: &mut Outbox, inbound: &Subscribed) -> Result<(), ConnectionError> {
        let limit = PACKET_OCTETS_MAX as usize;
        let incoming = read_packet(&mut self.reader, PROTOCOL_VERSION, &mut self.incoming, limit);
        let first = tokio::select! {
            biased;
            packet = incoming => packet?,
            ready = self.writer.writable(), if !self.wire.is_empty() => return Ok(ready?),
        };
        self.heard = true;
        self.handle(first, outbox, inbound)?;
        while let Some(packet) = decode_buffered_packet(&mut self.incoming, PROTOCOL_VERSION, limit)? {
            self.handle(packet, outbox, inbound)?;
        }
        Ok(())
    }

    /// Puts a ping on the wire; an error where nothing came since the one before.
    pub(crate) fn ping(&mut self) -> Result<(), ConnectionError> {
        if !std::mem::take(&mut self.heard) {
            return Err(ConnectionError::Timeout);
        }
        Ok(encode_packet_to_buffer(&Packet::PingReq, &mut self.wire)?)
    }

    /// Says goodbye. What is on the wire is sent before it.
    pub(crate) async fn close(&mut self) -> Result<(), ConnectionError> {
        encode_packet_to_buffer(&Packet::Disconnect(DisconnectPacket::normal()), &mut self.wire)?;
        self.writer.write_all(&self.wire).await?;
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

    /// Hands a message in, puts its answer into the outbox, and acknowledges it: it is taken whatever is wrong with it.
    fn take_in(
        &mut self,
        packet: &PublishPacket,
        outbox: &mut Outbox,
        inbound: &Subscribed,
    ) -> Result<(), ConnectionError> {
        if let Some(answer) = inbound.take(packet, clock::now()) {
            outbox.counts().taken.increment();
            outbox.accept(answer);
        }
        if let Some(id) = packet.packet_id {
            encode_packet_to_buffer(&Packet::PubAck(PubAckPacket::new(id)), &mut self.wire)?;
        }
        Ok(())
    }
}

/// Appends a message; what cannot be sent leaves no octet behind.
fn put(packet: PublishPacket, octets_max: usize, wire: &mut BytesMut) -> Result<(), DropReason> {
    let before = wire.len();
    let reason = match encode_packet_to_buffer(&Packet::Publish(packet), wire) {
        Ok(()) if wire.len() - before <= octets_max => return Ok(()),
        Ok(()) => DropReason::TooLarge,
        // It is the message that is at fault, not the connection: on the next one it would fail again.
        Err(_) => DropReason::Unencodable,
    };
    wire.truncate(before);
    Err(reason)
}

fn connect_packet(login: &Login) -> ConnectPacket {
    let mut options =
        ConnectOptions::new(login.client_id.clone()).with_clean_start(true).with_keep_alive(login.keep_alive);
    if let Some((username, password)) = &login.credentials {
        options = options.with_credentials(username.clone(), password);
    }
    options.protocol_options.properties.maximum_packet_size = Some(PACKET_OCTETS_MAX);
    ConnectPacket::new(options.protocol_options)
}

/// What the broker takes; what it does not say has the standard's default (MQTT 5, 3.2.2.3).
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
    fn a_message_that_cannot_be_sent_leaves_the_wire_as_it_was() {
        let mut wire = BytesMut::new();
        put(packet("t", 10), 100, &mut wire).unwrap();
        let before = wire.clone();
        assert_eq!(put(packet("t", 200), 100, &mut wire), Err(DropReason::TooLarge));
        // A text of MQTT has 65535 octets at most.
        assert_eq!(put(packet(&"t".repeat(70_000), 1), usize::MAX, &mut wire), Err(DropReason::Unencodable));
        assert_eq!(wire, before);
    }

    /// A connection to somebody who said hello and never reads again.
    async fn connection_that_nobody_reads() -> (Connection, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let login = Login {
            address: listener.local_addr().unwrap().to_string(),
            client_id: "car".into(),
            keep_alive: Duration::from_secs(30),
            credentials: None,
        };
        let accept = async {
            let mut stream = listener.accept().await.unwrap().0;
            let mut answer = BytesMut::new();
            let connack = ConnAckPacket::new(false, ReasonCode::Success);
            encode_packet_to_buffer(&Packet::ConnAck(connack), &mut answer).unwrap();
            stream.write_all(&answer).await.unwrap();
            stream
        };
        let (connection, stream) = tokio::join!(Connection::open(&login, None), accept);
        (connection.unwrap(), stream)
    }

    #[tokio::test]
    async fn what_may_still_be_sent_is_on_the_wire_so_that_somebody_comes_back_for_it() {
        let bus = Bus::new("t");
        let (mut connection, _stream) = connection_that_nobody_reads().await;
        let limits =
            Limits { messages_max: 10_000, octets_max: 1 << 30, in_flight_max: 1, when_full: WhenFull::DropNewest };
        let mut outbox = Outbox::new(limits, Counts::new(|name, reason| bus.counter("bridge", name, reason)));
        outbox.connected(connection.peer());
        // A little more than the bound of one call, which the kernel takes at once.
        for _ in 0..ROUNDS_MAX + 1 {
            outbox.accept(Message::example(QoS::AtMostOnce, WIRE_OCTETS));
        }
        connection.send(&mut outbox, &bus.hop("bridge")).unwrap();
        assert!(outbox.len() > 0 && outbox.next().is_none());
        assert!(!connection.wire.is_empty());
    }
}
