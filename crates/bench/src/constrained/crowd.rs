//! Many clients of a gateway or a server at a fixed rate.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::time::MissedTickBehavior;
use viaduct_bus::clock;
use viaduct_coap::codec::ContentFormat;
use viaduct_coap::{Endpoint, Event, Request};
use viaduct_mqttsn::Destination;
use viaduct_mqttsn::client::{Client, ClientEvent, ClientSettings, Publication};
use viaduct_mqttsn::codec::Qos;
use viaduct_units::Mono;
use viaduct_units::retransmission::Profile;

use super::series::Series;
use super::setup;
use crate::error::BenchError;
use crate::nodes::runtime;

/// Interval of the messages of a client: 10 per second.
const PERIOD: Duration = Duration::from_millis(100);
/// Octets of a payload.
pub(super) const OCTETS: usize = 20;
/// Longest wait for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Protocol of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// MQTT-SN with QoS 1, to a gateway.
    MqttSn,
    /// CoAP with confirmable requests, to a server.
    Coap,
}

/// Connects clients and lets each send ten messages per second for a time. Calls `begin` when all are connected.
pub(super) fn run(
    protocol: Protocol,
    server: SocketAddr,
    clients: usize,
    time: Duration,
    begin: impl FnOnce(),
) -> Result<Series, BenchError> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut connecting = tokio::task::JoinSet::new();
        for number in 0..clients {
            connecting.spawn(async move { Member::connect(protocol, server, number).await });
        }
        let mut members = Vec::with_capacity(clients);
        while let Some(member) = connecting.join_next().await {
            members.push(member.map_err(BenchError::part("a client ended"))??);
        }
        begin();
        let mut sending = tokio::task::JoinSet::new();
        for (number, member) in members.into_iter().enumerate() {
            let offset = PERIOD.mul_f64(number as f64 / clients as f64);
            sending.spawn(member.send_for(time, offset));
        }
        let mut all = Vec::new();
        while let Some(series) = sending.join_next().await {
            all.push(series.map_err(BenchError::part("a client ended"))??);
        }
        Ok(Series::join(all))
    })
}

/// The machine of a client.
enum Machine {
    MqttSn(Box<Client>, Publication),
    Coap(Box<Endpoint>, Request),
}

impl Machine {
    fn new(protocol: Protocol, number: usize) -> Result<Self, BenchError> {
        let payload = vec![b'x'; OCTETS];
        Ok(match protocol {
            Protocol::MqttSn => {
                let settings = ClientSettings {
                    client_id: format!("robot-{number}"),
                    retransmission: Profile::ADAPTIVE,
                    congestion_wait: Duration::from_secs(1),
                    ..ClientSettings::default()
                };
                let client =
                    Client::new(settings, number as u64).map_err(BenchError::part("cannot configure a client"))?;
                let topic = format!("bench/{number}");
                let publication = Publication {
                    topic: topic.as_str().into(),
                    payload: payload.into(),
                    qos: Qos::AtLeastOnce,
                    retain: false,
                };
                Self::MqttSn(Box::new(client), publication)
            }
            Protocol::Coap => {
                let settings =
                    viaduct_coap::Settings { retransmission: Profile::ADAPTIVE, ..viaduct_coap::Settings::default() };
                let request = Request::post(setup::PATH, ContentFormat::OCTET_STREAM, payload);
                Self::Coap(Box::new(Endpoint::new(settings, number as u64)), request)
            }
        })
    }

    /// Starts a connection, if the protocol has one.
    fn connect(&mut self, now: Mono, server: SocketAddr) -> Result<(), BenchError> {
        match self {
            Self::MqttSn(client, _) => client.connect(now, Some(server)).map_err(BenchError::part("cannot connect")),
            Self::Coap(..) => Ok(()),
        }
    }

    /// Starts to send a message.
    fn send(&mut self, now: Mono, server: SocketAddr) -> Result<(), BenchError> {
        let failed = BenchError::part("cannot send a message");
        match self {
            Self::MqttSn(client, publication) => {
                client.publish(now, publication.clone()).map(drop).map_err(|error| failed(error.to_string()))
            }
            Self::Coap(endpoint, request) => {
                endpoint.request(now, server, request.clone()).map(drop).map_err(|error| failed(error.to_string()))
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Bytes> {
        match self {
            Self::MqttSn(client, _) => {
                let unicast = |transmit: &viaduct_mqttsn::Transmit| matches!(transmit.to, Destination::Unicast(_));
                std::iter::from_fn(|| client.poll_transmit()).find(unicast).map(|transmit| transmit.datagram)
            }
            Self::Coap(endpoint, _) => endpoint.poll_transmit().map(|(_, datagram)| datagram),
        }
    }

    /// Returns `true` if the message was acknowledged, `false` if it failed, and `None` while it waits. There is one at a time.
    fn poll_outcome(&mut self) -> Option<bool> {
        match self {
            Self::MqttSn(client, _) => std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
                ClientEvent::Finished { result, .. } => Some(result.is_ok()),
                _ => None,
            }),
            Self::Coap(endpoint, _) => std::iter::from_fn(|| endpoint.poll_event()).find_map(|event| match event {
                Event::Response { response, .. } => Some(response.code.class() == 2),
                Event::Failed { .. } => Some(false),
                _ => None,
            }),
        }
    }

    fn poll_timeout(&self) -> Option<Mono> {
        match self {
            Self::MqttSn(client, _) => client.poll_timeout(),
            Self::Coap(endpoint, _) => endpoint.poll_timeout(),
        }
    }

    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        match self {
            Self::MqttSn(client, _) => client.handle_datagram(now, from, datagram),
            Self::Coap(endpoint, _) => endpoint.handle_datagram(now, from, datagram),
        }
    }

    fn handle_timeout(&mut self, now: Mono) {
        match self {
            Self::MqttSn(client, _) => client.handle_timeout(now),
            Self::Coap(endpoint, _) => endpoint.handle_timeout(now),
        }
    }
}

/// One of the clients.
struct Member {
    socket: UdpSocket,
    machine: Machine,
    server: SocketAddr,
    buffer: Vec<u8>,
}

impl Member {
    async fn connect(protocol: Protocol, server: SocketAddr, number: usize) -> Result<Self, BenchError> {
        let failed = BenchError::system("cannot open a UDP socket");
        let socket = UdpSocket::bind("127.0.0.1:0").await.map_err(&failed)?;
        let machine = Machine::new(protocol, number)?;
        let mut member = Self { socket, machine, server, buffer: vec![0; 2048] };
        member.machine.connect(clock::mono(), server)?;
        member.send().await?.ok_or_else(|| BenchError::broken("cannot connect", "there is no answer"))?;
        Ok(member)
    }

    async fn send_for(mut self, time: Duration, offset: Duration) -> Result<Series, BenchError> {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + offset, PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut series = Series::default();
        let end = Instant::now() + time;
        while Instant::now() < end {
            ticks.tick().await;
            match self.send().await? {
                Some(time) => series.samples.push(time.as_secs_f64() * 1e6),
                None => series.undelivered += 1,
            }
        }
        Ok(series)
    }

    /// Sends a message and waits for its acknowledgement.
    async fn send(&mut self) -> Result<Option<Duration>, BenchError> {
        let start = Instant::now();
        self.machine.send(clock::mono(), self.server)?;
        loop {
            while let Some(datagram) = self.machine.poll_transmit() {
                let sent = self.socket.send_to(&datagram, self.server).await;
                sent.map_err(BenchError::system("cannot send a datagram"))?;
            }
            if let Some(is_acknowledged) = self.machine.poll_outcome() {
                return Ok(is_acknowledged.then(|| start.elapsed()));
            }
            if start.elapsed() > ANSWER_TIME_MAX {
                return Ok(None);
            }
            let wait = self.machine.poll_timeout().map_or(ANSWER_TIME_MAX, |at| at.since(clock::mono()));
            let wait = wait.min(ANSWER_TIME_MAX.saturating_sub(start.elapsed()));
            match tokio::time::timeout(wait, self.socket.recv(&mut self.buffer)).await {
                Ok(Ok(length)) => {
                    let datagram = Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default());
                    self.machine.handle_datagram(clock::mono(), self.server, &datagram);
                }
                Ok(Err(cause)) => return Err(BenchError::system("cannot receive a datagram")(cause)),
                Err(_) => self.machine.handle_timeout(clock::mono()),
            }
        }
    }
}
