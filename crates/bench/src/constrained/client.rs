//! Blocking clients for a measurement: the machines of MQTT-SN and CoAP on a socket that waits in the kernel.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_coap::codec::ContentFormat;
use viaduct_coap::{Endpoint, Event, Request};
use viaduct_mqttsn::Destination;
use viaduct_mqttsn::client::{Client, ClientEvent, ClientSettings, Publication};
use viaduct_mqttsn::codec::Qos;
use viaduct_units::retransmission::Profile;

use crate::error::BenchError;

/// Longest wait for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Octets of the receive buffer.
const BUFFER_OCTETS: usize = 65_536;

/// Datagrams that a client has sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) datagrams: u64,
    /// Payload octets of UDP in both directions.
    pub(super) octets: u64,
    pub(super) retransmissions: u64,
}

/// A client that sends one message after the other.
pub(super) trait Sender: Send {
    /// Sends a message and waits for its acknowledgement. Returns the time, or `None` if there was none.
    fn send(&mut self) -> Result<Option<Duration>, BenchError>;

    fn traffic(&self) -> Traffic;
}

/// The socket of a client.
struct Socket {
    socket: UdpSocket,
    buffer: Vec<u8>,
    traffic: Traffic,
}

impl Socket {
    fn connect(to: SocketAddr) -> Result<Self, BenchError> {
        let failed = BenchError::system("cannot open a UDP socket");
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(&failed)?;
        socket.connect(to).map_err(&failed)?;
        Ok(Self { socket, buffer: vec![0; BUFFER_OCTETS], traffic: Traffic::default() })
    }

    fn send(&mut self, datagram: &[u8]) -> Result<(), BenchError> {
        self.traffic.datagrams += 1;
        self.traffic.octets += datagram.len() as u64;
        match self.socket.send(datagram) {
            // A server that does not listen yet.
            Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => Ok(()),
            sent => sent.map(drop).map_err(BenchError::system("cannot send a datagram")),
        }
    }

    /// Waits for a datagram, at most for a time. Returns `None` if there was none.
    fn receive(&mut self, wait: Duration) -> Result<Option<Bytes>, BenchError> {
        let failed = BenchError::system("cannot receive a datagram");
        self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(1)))).map_err(&failed)?;
        match self.socket.recv(&mut self.buffer) {
            Ok(length) => {
                self.traffic.datagrams += 1;
                self.traffic.octets += length as u64;
                Ok(Some(Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default())))
            }
            Err(cause) if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => Ok(None),
            Err(cause) => Err(failed(cause)),
        }
    }
}

/// A client of CoAP that sends requests.
pub(super) struct CoapSender {
    socket: Socket,
    endpoint: Endpoint,
    server: SocketAddr,
    request: Request,
}

impl CoapSender {
    /// Returns a client that sends POST, or PUT, with a payload of so many octets.
    pub(super) fn new(
        server: SocketAddr,
        form: &CoapForm<'_>,
        profile: Profile,
        seed: u64,
    ) -> Result<Self, BenchError> {
        let settings = viaduct_coap::Settings {
            retransmission: profile,
            // More than 65,536 messages in 247 s are the matter of this bench.
            reuse_message_ids: true,
            probing_octets_per_s: u32::MAX,
            response_timeout: if form.confirmable { Duration::from_secs(93) } else { Duration::from_secs(2) },
            ..viaduct_coap::Settings::default()
        };
        let payload = vec![b'x'; form.octets];
        let request = if form.put {
            Request::put(form.path, ContentFormat::OCTET_STREAM, payload)
        } else {
            Request::post(form.path, ContentFormat::OCTET_STREAM, payload)
        };
        let request = Request { confirmable: form.confirmable, ..request };
        Ok(Self { socket: Socket::connect(server)?, endpoint: Endpoint::new(settings, seed), server, request })
    }
}

/// The requests of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoapForm<'a> {
    pub(super) path: &'a str,
    pub(super) put: bool,
    pub(super) confirmable: bool,
    pub(super) octets: usize,
}

impl Sender for CoapSender {
    fn send(&mut self) -> Result<Option<Duration>, BenchError> {
        let request = self.request.clone();
        let start = Instant::now();
        let sent = self.endpoint.request(clock::mono(), self.server, request);
        let id = sent.map_err(BenchError::part("cannot send a request"))?;
        loop {
            while let Some((_, datagram)) = self.endpoint.poll_transmit() {
                self.socket.send(&datagram)?;
            }
            while let Some(event) = self.endpoint.poll_event() {
                match event {
                    Event::Response { id: of, response } if of == id => {
                        return Ok((response.code.class() == 2).then(|| start.elapsed()));
                    }
                    Event::Failed { id: of, .. } if of == id => return Ok(None),
                    _ => {}
                }
            }
            let now = clock::mono();
            let wait = self.endpoint.poll_timeout().map_or(ANSWER_TIME_MAX, |at| at.since(now));
            match self.socket.receive(wait)? {
                Some(datagram) => self.endpoint.handle_datagram(clock::mono(), self.server, &datagram),
                None => self.endpoint.handle_timeout(clock::mono()),
            }
        }
    }

    fn traffic(&self) -> Traffic {
        Traffic { retransmissions: self.endpoint.counters().retransmissions, ..self.socket.traffic }
    }
}

/// A client of MQTT-SN that publishes.
pub(super) struct SnSender {
    socket: Socket,
    client: Client,
    gateway: SocketAddr,
    publication: Publication,
}

impl SnSender {
    /// Connects to a gateway and registers the topic, with a message of QoS 1. Returns the time of connection and registration, too.
    pub(super) fn connect(
        gateway: SocketAddr,
        name: &str,
        (qos, octets): (Qos, usize),
        profile: Profile,
        seed: u64,
    ) -> Result<(Self, Duration), BenchError> {
        let settings =
            ClientSettings { client_id: name.to_owned(), retransmission: profile, ..ClientSettings::default() };
        let client = Client::new(settings, seed).map_err(BenchError::part("cannot configure a client"))?;
        let topic = format!("bench/{name}");
        let publication =
            Publication { topic: topic.as_str().into(), payload: vec![b'x'; octets].into(), qos, retain: false };
        let mut sender = Self { socket: Socket::connect(gateway)?, client, gateway, publication };
        let start = Instant::now();
        let connected = sender.client.connect(clock::mono(), Some(gateway));
        connected.map_err(BenchError::part("cannot connect"))?;
        let first = Publication { qos: Qos::AtLeastOnce, ..sender.publication.clone() };
        sender.publish(first)?.ok_or_else(|| BenchError::broken("cannot connect", "the gateway does not answer"))?;
        Ok((sender, start.elapsed()))
    }

    fn publish(&mut self, publication: Publication) -> Result<Option<Duration>, BenchError> {
        let start = Instant::now();
        let sent = self.client.publish(clock::mono(), publication);
        let id = sent.map_err(BenchError::part("cannot publish"))?;
        loop {
            while let Some(transmit) = self.client.poll_transmit() {
                if let Destination::Unicast(_) = transmit.to {
                    self.socket.send(&transmit.datagram)?;
                }
            }
            while let Some(event) = self.client.poll_event() {
                if let ClientEvent::Finished { request, result } = event
                    && request == id
                {
                    return Ok(result.is_ok().then(|| start.elapsed()));
                }
            }
            if start.elapsed() > ANSWER_TIME_MAX {
                return Ok(None);
            }
            let now = clock::mono();
            let wait = self.client.poll_timeout().map_or(ANSWER_TIME_MAX, |at| at.since(now));
            let wait = wait.min(ANSWER_TIME_MAX.saturating_sub(start.elapsed()));
            match self.socket.receive(wait)? {
                Some(datagram) => self.client.handle_datagram(clock::mono(), self.gateway, &datagram),
                None => self.client.handle_timeout(clock::mono()),
            }
        }
    }
}

impl Sender for SnSender {
    fn send(&mut self) -> Result<Option<Duration>, BenchError> {
        self.publish(self.publication.clone())
    }

    fn traffic(&self) -> Traffic {
        Traffic { retransmissions: self.client.counters().retransmissions, ..self.socket.traffic }
    }
}
