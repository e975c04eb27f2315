//! A connection to the broker: its transport and its buffers. Packets and their codec come from `mqtt5`.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::Instant;
use viaduct_bus::{Hop, clock};
use viaduct_mqtt::Packet;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqtt::encode_packet_to_buffer;
use viaduct_mqtt::packet::connack::ConnAckPacket;
use viaduct_mqtt::packet::connect::ConnectPacket;
use viaduct_mqtt::packet::disconnect::DisconnectPacket;
use viaduct_mqtt::packet::puback::PubAckPacket;
use viaduct_mqtt::packet::pubcomp::PubCompPacket;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::pubrec::PubRecPacket;
use viaduct_mqtt::packet::pubrel::PubRelPacket;
use viaduct_mqtt::packet::subscribe::SubscribePacket;
use viaduct_mqtt::packet::unsubscribe::UnsubscribePacket;
use viaduct_mqtt::transport::{self, ByteStream, Connected, Monitor, TlsFiles};
use viaduct_mqtt::types::{ReasonCode, WillMessage};
use viaduct_mqtt::{ConnectOptions, MqttError, Properties, PropertyId, PropertyValue, QoS};

use super::outbox::{self, DropReason, Next, Outbox, Peer};
use super::reader::{Incoming, Reader};
use super::{Application, Change, Received, Reception};

/// Time limit for the connection with TLS and WebSocket, and for the broker's CONNACK.
const OPEN_TIME_MAX: Duration = Duration::from_secs(5);
/// Size up to which the send buffer is filled before a write, in bytes, so that several messages share one write.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Maximum size of the acknowledgements in the send buffer, in bytes.
const ANSWERS_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of rounds of filling and writing before acknowledgements are handled.
const ROUNDS_MAX: usize = 16;
/// Duration after which a connection counts as productive even if no message was acknowledged.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// Packet identifier of SUBSCRIBE and UNSUBSCRIBE, of which one at a time is not answered. No PUBLISH uses it ([`outbox::PACKET_IDS`]), because the SUBACK may
/// arrive late and an identifier in use must not be reused (MQTT 5, 2.2.1).
pub(crate) const SUBSCRIBE_ID: u16 = u16::MAX;
const _: () = assert!(outbox::PACKET_IDS < SUBSCRIBE_ID as u64);

/// Version of MQTT, with its number in the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Version {
    /// MQTT 3.1.1, which has no properties: hop metadata, answers on a response topic and limits of the broker are unknown. An inbound
    /// route also receives the messages that this client publishes on its topics.
    #[serde(rename = "mqttv311")]
    Mqtt311 = 4,
    /// MQTT 5.
    #[default]
    #[serde(rename = "mqttv5")]
    Mqtt5 = 5,
}

/// Parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectParams {
    pub(crate) address: BrokerAddress,
    pub(crate) tls: TlsFiles,
    pub(crate) client_id: String,
    pub(crate) version: Version,
    pub(crate) keep_alive: Duration,
    /// Time for which the broker keeps the session after the connection is lost. Zero: no session.
    pub(crate) session_expiry: Duration,
    /// `true` if the next process can resume the session.
    pub(crate) keeps_session: bool,
    pub(crate) credentials: Option<(String, Vec<u8>)>,
    pub(crate) will: Option<WillMessage>,
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
    #[error("the CONNACK of the broker is invalid: {0}")]
    InvalidConnAck(&'static str),
    #[error("the broker does not read its acknowledgements")]
    NotReading,
}

pub(crate) struct Connection {
    reader: Reader<ReadHalf<Box<dyn ByteStream>>>,
    writer: WriteHalf<Box<dyn ByteStream>>,
    monitor: Monitor,
    /// Send buffer: octets that the socket has not accepted yet.
    send_buffer: BytesMut,
    /// Size of the send buffer when a message was put into it last, in bytes.
    filled: usize,
    /// Octets that the transport has accepted on this connection.
    written: u64,
    /// `true` if TLS or WebSocket may still hold some of them.
    is_unflushed: bool,
    version: Version,
    peer: Peer,
    /// `true` if the broker has resumed the session of an earlier connection.
    session_present: bool,
    keep_alive: Duration,
    /// `true` if the next process can resume the session.
    keeps_session: bool,
    /// Octets received and written at the last [`Self::ping`].
    progress: (u64, u64),
    /// `true` if octets were waiting for the transport at the last ping. It accepts more of them only if the broker receives some.
    is_blocked: bool,
    /// `true` if the broker has given no sign of life before the last ping.
    is_silent: bool,
    opened: Instant,
    /// `true` if the broker acknowledged or rejected a message.
    acknowledged: bool,
    /// `true` if a change of the subscriptions is not answered yet.
    is_changing: bool,
}

impl ConnectParams {
    /// Returns the name of the session, which an outbox on disk belongs to.
    pub(crate) fn session_name(&self) -> String {
        format!("{} at {}", self.client_id, self.address)
    }
}

impl Connection {
    /// Connects and subscribes. `resumes` is `true` if this client has the state of an earlier session.
    pub(crate) async fn open(
        params: &ConnectParams,
        resumes: bool,
        subscribe: Option<SubscribePacket>,
    ) -> Result<Self, ConnectionError> {
        // Without state of its own, this client cannot continue a session that an earlier process has left at the broker. A connection
        // without session ends that one. It is a connection of its own because Mosquitto 2.0 does not save a session that began with
        // Clean Start, and because MQTT 3.1.1 cannot begin one in this way.
        if !params.session_expiry.is_zero() && !resumes {
            let clean = ConnectParams { session_expiry: Duration::ZERO, keeps_session: false, ..params.clone() };
            Self::handshake(&clean).await?.close().await?;
        }
        let mut connection = Self::handshake(params).await?;
        if connection.session_present && !resumes {
            return Err(ConnectionError::InvalidConnAck("the session has ended"));
        }
        if let Some(mut subscribe) = subscribe {
            subscribe.protocol_version = params.version as u8;
            encode_packet_to_buffer(&Packet::Subscribe(subscribe), &mut connection.send_buffer)?;
            connection.is_changing = true;
        }
        Ok(connection)
    }

    /// Connects, and exchanges CONNECT and CONNACK.
    async fn handshake(params: &ConnectParams) -> Result<Self, ConnectionError> {
        let packet_bytes_max = params.packet_bytes_max as usize;
        let connecting = transport::connect(&params.address, &params.tls, packet_bytes_max);
        let connecting = tokio::time::timeout(OPEN_TIME_MAX, connecting);
        let Connected { stream, monitor } = connecting.await.map_err(|_| ConnectionError::Timeout)??;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = Reader::new(reader, params.version as u8, packet_bytes_max);
        let mut buffer = BytesMut::new();
        encode_packet_to_buffer(&Packet::Connect(Box::new(connect_packet(params))), &mut buffer)?;
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        let answer =
            tokio::time::timeout(OPEN_TIME_MAX, reader.next()).await.map_err(|_| ConnectionError::Timeout)??;
        let Incoming::Packet(Packet::ConnAck(answer)) = answer else {
            return Err(ConnectionError::Unexpected);
        };
        if answer.reason_code.is_error() {
            return Err(ConnectionError::Refused(answer.reason_code));
        }
        if answer.session_present && params.session_expiry.is_zero() {
            return Err(ConnectionError::InvalidConnAck("a session was not requested"));
        }
        Ok(Self {
            reader,
            writer,
            monitor,
            send_buffer: buffer,
            filled: 0,
            written: 0,
            is_unflushed: false,
            version: params.version,
            peer: peer(&answer)?,
            session_present: answer.session_present,
            keep_alive: keep_alive(&answer).unwrap_or(params.keep_alive),
            keeps_session: params.keeps_session,
            progress: (0, 0),
            is_blocked: false,
            is_silent: false,
            opened: Instant::now(),
            acknowledged: false,
            is_changing: false,
        })
    }

    /// Returns the rate at which the broker has acknowledged octets recently, in octets per second, if it is known.
    pub(crate) fn goodput(&self) -> Option<f64> {
        self.monitor.goodput()
    }

    pub(crate) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns `true` if the broker has resumed the session of an earlier connection.
    pub(crate) const fn session_present(&self) -> bool {
        self.session_present
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

    /// Appends to the send buffer what the application wants: acknowledgements, and the next change of the subscriptions unless one is
    /// not answered yet.
    pub(crate) fn follow(
        &mut self,
        application: &mut impl Application,
        outbox: &mut Outbox,
        received: &mut Received,
    ) -> Result<(), ConnectionError> {
        while let Some((qos, id)) = application.acknowledgement() {
            if qos == QoS::ExactlyOnce {
                received.acknowledge(id);
                outbox.note_received(id);
            }
            self.acknowledge(qos, Some(id))?;
        }
        if self.is_changing {
            return Ok(());
        }
        let version = self.version as u8;
        let packet = match application.change(SUBSCRIBE_ID) {
            None => return Ok(()),
            Some(Change::Subscribe(packet)) => {
                Packet::Subscribe(SubscribePacket { protocol_version: version, ..packet })
            }
            Some(Change::Unsubscribe(packet)) => {
                Packet::Unsubscribe(UnsubscribePacket { protocol_version: version, ..packet })
            }
        };
        self.is_changing = true;
        Ok(encode_packet_to_buffer(&packet, &mut self.send_buffer)?)
    }

    /// Sends as many messages as the window, the transport and a limit allow. If messages are left that may be sent, the send buffer
    /// is not empty, so that [`Self::wait`] continues to send when the transport accepts more.
    pub(crate) fn send(&mut self, outbox: &mut Outbox, hop: &Hop) -> Result<(), ConnectionError> {
        self.fill(outbox, hop);
        for _ in 0..ROUNDS_MAX {
            outbox.commit();
            if self.send_buffer.is_empty() {
                break;
            }
            // The first poll is the last one: what the transport does not accept now, `wait` offers again.
            match self.writer.write(&self.send_buffer).now_or_never() {
                Some(count) => self.was_written(count?, outbox, hop),
                None => break,
            }
            self.fill(outbox, hop);
        }
        outbox.commit();
        if self.is_unflushed
            && let Some(flushed) = self.writer.flush().now_or_never()
        {
            flushed?;
            self.is_unflushed = false;
        }
        Ok(())
    }

    /// Handles that the transport has accepted octets of the send buffer.
    fn was_written(&mut self, octets: usize, outbox: &mut Outbox, hop: &Hop) {
        self.send_buffer.advance(octets);
        self.written += octets as u64;
        self.is_unflushed = true;
        let now = clock::tai();
        outbox.written(self.written, |meta| hop.mark(meta, now));
    }

    /// Fills the send buffer with messages, up to a limit that the last one may exceed.
    fn fill(&mut self, outbox: &mut Outbox, hop: &Hop) {
        while self.send_buffer.len() < SEND_BUFFER_BYTES {
            let put = match outbox.next() {
                None => break,
                Some(Next::Release { packet_id }) => {
                    let packet = Packet::PubRel(PubRelPacket::new(packet_id));
                    encode_packet_to_buffer(&packet, &mut self.send_buffer).map_err(|_| DropReason::Unencodable)
                }
                Some(Next::Publish { message, packet_id, is_repeated }) => {
                    let mut packet = message.packet(hop.name(), clock::tai());
                    packet.packet_id = packet_id;
                    packet.dup = is_repeated;
                    packet.protocol_version = self.version as u8;
                    put(packet, self.peer.packet_octets_max, &mut self.send_buffer)
                }
            };
            match put {
                Ok(()) => {
                    self.filled = self.send_buffer.len();
                    outbox.sent(self.written + self.filled as u64);
                }
                Err(reason) => outbox.refuse(reason),
            }
        }
    }

    /// Waits until a packet arrives, which is returned, or until the transport has accepted more of the send buffer. Cancelling the wait
    /// loses nothing.
    pub(crate) async fn wait(&mut self, outbox: &mut Outbox, hop: &Hop) -> Result<Option<Incoming>, ConnectionError> {
        let Self { reader, writer, send_buffer, .. } = self;
        let has_octets = !send_buffer.is_empty();
        let sending =
            async { if has_octets { writer.write(send_buffer).await } else { writer.flush().await.map(|()| 0) } };
        let octets = tokio::select! {
            biased;
            incoming = reader.next() => return Ok(Some(incoming?)),
            octets = sending, if has_octets || self.is_unflushed => octets?,
        };
        if has_octets {
            self.was_written(octets, outbox, hop);
        } else {
            self.is_unflushed = false;
        }
        Ok(None)
    }

    /// Handles a packet, and those that arrived with it.
    pub(crate) fn handle_all(
        &mut self,
        first: Incoming,
        outbox: &mut Outbox,
        application: &mut impl Application,
        received: &mut Received,
    ) -> Result<(), ConnectionError> {
        let mut next = Some(first);
        while let Some(incoming) = next {
            match incoming {
                Incoming::Packet(packet) => self.handle(packet, outbox, application, received)?,
                Incoming::TooLong(publish) => {
                    application.refuse_long(&publish.topic);
                    if let (QoS::ExactlyOnce, Some(id)) = (publish.qos, publish.packet_id)
                        && received.insert(id)
                    {
                        received.acknowledge(id);
                        outbox.note_received(id);
                    }
                    self.acknowledge(publish.qos, publish.packet_id)?;
                }
            }
            if self.send_buffer.len() > self.filled + ANSWERS_BYTES_MAX {
                return Err(ConnectionError::NotReading);
            }
            next = self.reader.buffered()?;
        }
        Ok(())
    }

    /// Appends a ping to the send buffer. Returns an error if the broker has given no sign of life since the last but one. Octets count,
    /// not packets, because a long packet takes longer than the time between two pings on a slow link.
    pub(crate) fn ping(&mut self) -> Result<(), ConnectionError> {
        let (received, written) = std::mem::replace(&mut self.progress, (self.reader.octets(), self.written));
        let was_blocked = std::mem::replace(&mut self.is_blocked, !self.send_buffer.is_empty());
        let is_alive = self.progress.0 > received || (was_blocked && self.progress.1 > written);
        if std::mem::replace(&mut self.is_silent, !is_alive) && !is_alive {
            return Err(ConnectionError::Timeout);
        }
        Ok(encode_packet_to_buffer(&Packet::PingReq, &mut self.send_buffer)?)
    }

    /// Sends the rest of the send buffer and a DISCONNECT, and closes the connection. The broker ends the session if no process
    /// will resume it.
    pub(crate) async fn close(&mut self) -> Result<(), ConnectionError> {
        let packet = match self.version {
            Version::Mqtt5 if !self.keeps_session => DisconnectPacket::normal().with_session_expiry_interval(0),
            _ => DisconnectPacket::normal(),
        };
        encode_packet_to_buffer(&Packet::Disconnect(packet), &mut self.send_buffer)?;
        self.writer.write_all(&self.send_buffer).await?;
        // Shuts down after a flush.
        Ok(self.writer.shutdown().await?)
    }

    fn handle(
        &mut self,
        packet: Packet,
        outbox: &mut Outbox,
        application: &mut impl Application,
        received: &mut Received,
    ) -> Result<(), ConnectionError> {
        match packet {
            Packet::Publish(packet) => self.take_in(&packet, outbox, application, received)?,
            Packet::SubAck(ack) => {
                self.is_changing = false;
                application.subscribed(&ack.reason_codes);
            }
            Packet::UnsubAck(_) => {
                self.is_changing = false;
                application.unsubscribed();
            }
            Packet::PubAck(ack) => {
                self.acknowledged = true;
                outbox.acknowledged(ack.packet_id, !ack.reason_code.is_error());
            }
            Packet::PubRec(ack) => {
                self.acknowledged = true;
                let is_error = ack.reason_code.is_error();
                let is_known = outbox.received(ack.packet_id, !is_error);
                if !is_error {
                    let release = release_of(ack.packet_id, is_known, self.version);
                    encode_packet_to_buffer(&Packet::PubRel(release), &mut self.send_buffer)?;
                }
            }
            Packet::PubComp(ack) => outbox.completed(ack.packet_id),
            Packet::PubRel(release) => {
                received.release(release.packet_id);
                outbox.note_forgotten(release.packet_id);
                encode_packet_to_buffer(
                    &Packet::PubComp(PubCompPacket::new(release.packet_id)),
                    &mut self.send_buffer,
                )?;
            }
            Packet::PingResp => {}
            Packet::Disconnect(packet) => return Err(ConnectionError::Ended(packet.reason_code)),
            _ => return Err(ConnectionError::Unexpected),
        }
        Ok(())
    }

    /// Handles a message of an application, puts its answer into the outbox, and acknowledges it, also if it is invalid. A message of
    /// QoS 2 that was handled before is only acknowledged again, unless it is to be acknowledged later.
    fn take_in(
        &mut self,
        packet: &PublishPacket,
        outbox: &mut Outbox,
        application: &mut impl Application,
        received: &mut Received,
    ) -> Result<(), ConnectionError> {
        let once = packet.packet_id.filter(|_| packet.qos == QoS::ExactlyOnce);
        if once.is_none_or(|id| received.insert(id)) {
            match application.receive(packet) {
                Reception::Later => return Ok(()),
                Reception::Done(None) => {}
                Reception::Done(Some(answer)) => {
                    outbox.counts().taken.increment();
                    _ = outbox.accept(*answer);
                }
            }
            if let Some(id) = once {
                received.acknowledge(id);
                outbox.note_received(id);
            }
        } else if once.is_some_and(|id| !received.is_acknowledged(id)) {
            return Ok(());
        }
        self.acknowledge(packet.qos, packet.packet_id)
    }

    /// Appends the acknowledgement of a received message.
    fn acknowledge(&mut self, qos: QoS, packet_id: Option<u16>) -> Result<(), ConnectionError> {
        let answer = match (qos, packet_id) {
            (QoS::AtLeastOnce, Some(id)) => Packet::PubAck(PubAckPacket::new(id)),
            (QoS::ExactlyOnce, Some(id)) => Packet::PubRec(PubRecPacket::new(id)),
            _ => return Ok(()),
        };
        Ok(encode_packet_to_buffer(&answer, &mut self.send_buffer)?)
    }
}

/// Returns the PUBREL that answers a PUBREC. A PUBREL of MQTT 3.1.1 has no reason code.
fn release_of(id: u16, is_known: bool, version: Version) -> PubRelPacket {
    if is_known || version == Version::Mqtt311 {
        return PubRelPacket::new(id);
    }
    PubRelPacket::new_with_reason(id, ReasonCode::PacketIdentifierNotFound)
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
    let mut options = ConnectOptions::new(params.client_id.clone())
        .with_clean_start(params.session_expiry.is_zero())
        .with_keep_alive(params.keep_alive);
    if let Some((username, password)) = &params.credentials {
        options = options.with_credentials(username.clone(), password);
    }
    let mut options = options.protocol_options;
    options.will.clone_from(&params.will);
    options.properties.maximum_packet_size = Some(params.packet_bytes_max);
    options.properties.session_expiry_interval = u32::try_from(params.session_expiry.as_secs()).ok();
    match params.version {
        Version::Mqtt5 => ConnectPacket::new(options),
        Version::Mqtt311 => ConnectPacket::new_v311(options),
    }
}

/// Returns the capabilities of the broker. Absent properties have the default of the standard (MQTT 5, 3.2.2.3).
fn peer(answer: &ConnAckPacket) -> Result<Peer, ConnectionError> {
    let properties = &answer.properties;
    let packet_octets_max = properties.get_maximum_packet_size().and_then(|octets| usize::try_from(octets).ok());
    let peer = Peer {
        receive_maximum: properties.get_receive_maximum().unwrap_or(u16::MAX),
        packet_octets_max: packet_octets_max.unwrap_or(usize::MAX),
        qos_max: match properties.get_maximum_qos() {
            None => QoS::ExactlyOnce,
            Some(qos @ (0 | 1)) => QoS::from(qos),
            Some(_) => return Err(ConnectionError::InvalidConnAck("Maximum QoS is not 0 or 1")),
        },
        retain: is_available(properties, PropertyId::RetainAvailable),
    };
    match peer {
        Peer { receive_maximum: 0, .. } => Err(ConnectionError::InvalidConnAck("Receive Maximum is 0")),
        Peer { packet_octets_max: 0, .. } => Err(ConnectionError::InvalidConnAck("Maximum Packet Size is 0")),
        peer => Ok(peer),
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
    use crate::mqtt::client::outbox::{Counts, Limits, WhenFull};
    use crate::mqtt::message::Message;
    use tokio::net::TcpStream;
    use viaduct_bus::Bus;

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
            address: BrokerAddress::parse(&format!("mqtt://{}", listener.local_addr().unwrap())).unwrap(),
            tls: TlsFiles::default(),
            client_id: "car".into(),
            version: Version::Mqtt5,
            keep_alive: Duration::from_secs(30),
            session_expiry: Duration::ZERO,
            keeps_session: false,
            credentials: None,
            will: None,
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
        let (connection, stream) = tokio::join!(Connection::open(&params, false, None), accept);
        (connection.unwrap(), stream)
    }

    #[tokio::test]
    async fn a_broker_is_silent_after_two_pings_without_any_octet() {
        let (mut connection, mut stream) = connection_without_reader().await;
        assert!(connection.ping().is_ok(), "the CONNACK was received");
        assert!(connection.ping().is_ok());
        // The first octet of a packet.
        stream.write_all(&[0x30]).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(100), connection.reader.next()).await.is_err());
        assert!(connection.ping().is_ok() && connection.ping().is_ok());
        assert!(matches!(connection.ping(), Err(ConnectionError::Timeout)));
    }

    #[test]
    fn a_connack_outside_the_ranges_of_the_standard_is_rejected() {
        let with = |id, value| {
            let mut answer = ConnAckPacket::new(false, ReasonCode::Success);
            answer.properties.add(id, value).unwrap();
            peer(&answer)
        };
        assert!(with(PropertyId::ReceiveMaximum, PropertyValue::TwoByteInteger(0)).is_err());
        assert!(with(PropertyId::MaximumPacketSize, PropertyValue::FourByteInteger(0)).is_err());
        assert!(with(PropertyId::MaximumQoS, PropertyValue::Byte(2)).is_err());
        let least = with(PropertyId::MaximumQoS, PropertyValue::Byte(0)).unwrap();
        assert_eq!(
            least,
            Peer { qos_max: QoS::AtMostOnce, ..peer(&ConnAckPacket::new(false, ReasonCode::Success)).unwrap() }
        );
    }

    #[tokio::test]
    async fn messages_left_to_send_keep_the_send_buffer_filled() {
        let bus = Bus::new("t");
        let (mut connection, _stream) = connection_without_reader().await;
        // A transport that accepts everything at once.
        let (stream, _peer) = tokio::io::duplex(2 * ROUNDS_MAX * SEND_BUFFER_BYTES);
        connection.writer = tokio::io::split(Box::new(stream) as Box<dyn ByteStream>).1;
        let limits = Limits {
            messages_max: 10_000,
            bytes_max: 1 << 30,
            in_flight_max: 1,
            when_full: WhenFull::DropNewest,
            age_max: None,
        };
        let mut outbox = Outbox::new(limits, false, Counts::new(|name, reason| bus.counter("bridge", name, reason)));
        outbox.connected(connection.peer(), false);
        // One message more than one call sends.
        for _ in 0..ROUNDS_MAX + 1 {
            outbox.accept(Message::example(QoS::AtMostOnce, SEND_BUFFER_BYTES));
        }
        connection.send(&mut outbox, &bus.hop("bridge")).unwrap();
        assert!(outbox.len() > 0 && outbox.next().is_none());
        assert!(!connection.send_buffer.is_empty());
    }
}
