//! Many clients of a gateway at a fixed rate.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::time::MissedTickBehavior;
use viaduct_bus::clock;
use viaduct_mqttsn::Destination;
use viaduct_mqttsn::client::{Client, ClientEvent, ClientSettings, Publication};
use viaduct_mqttsn::codec::Qos;
use viaduct_units::retransmission::Profile;

use super::series::Series;
use crate::error::BenchError;
use crate::nodes::runtime;

/// Interval of the messages of a client: 10 per second.
const PERIOD: Duration = Duration::from_millis(100);
/// Octets of a payload.
pub(super) const OCTETS: usize = 20;
/// Longest wait for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Connects clients and lets each send ten messages of QoS 1 per second for a time. Calls `begin` when all are connected.
pub(super) fn run(
    gateway: SocketAddr,
    clients: usize,
    time: Duration,
    begin: impl FnOnce(),
) -> Result<Series, BenchError> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut connecting = tokio::task::JoinSet::new();
        for number in 0..clients {
            connecting.spawn(async move { Member::connect(gateway, number).await });
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

/// One of the clients.
struct Member {
    socket: UdpSocket,
    client: Client,
    gateway: SocketAddr,
    publication: Publication,
    buffer: Vec<u8>,
}

impl Member {
    async fn connect(gateway: SocketAddr, number: usize) -> Result<Self, BenchError> {
        let failed = BenchError::system("cannot open a UDP socket");
        let socket = UdpSocket::bind("127.0.0.1:0").await.map_err(&failed)?;
        let settings = ClientSettings {
            client_id: format!("robot-{number}"),
            retransmission: Profile::ADAPTIVE,
            congestion_wait: Duration::from_secs(1),
            ..ClientSettings::default()
        };
        let client = Client::new(settings, number as u64).map_err(BenchError::part("cannot configure a client"))?;
        let topic = format!("bench/{number}");
        let publication = Publication {
            topic: topic.as_str().into(),
            payload: vec![b'x'; OCTETS].into(),
            qos: Qos::AtLeastOnce,
            retain: false,
        };
        let mut member = Self { socket, client, gateway, publication, buffer: vec![0; 2048] };
        let connected = member.client.connect(clock::mono(), Some(gateway));
        connected.map_err(BenchError::part("cannot connect"))?;
        member.publish().await?.ok_or_else(|| BenchError::broken("cannot connect", "the gateway does not answer"))?;
        Ok(member)
    }

    async fn send_for(mut self, time: Duration, offset: Duration) -> Result<Series, BenchError> {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + offset, PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut series = Series::default();
        let end = Instant::now() + time;
        while Instant::now() < end {
            ticks.tick().await;
            match self.publish().await? {
                Some(time) => series.samples.push(time.as_secs_f64() * 1e6),
                None => series.undelivered += 1,
            }
        }
        Ok(series)
    }

    /// Publishes a message and waits for its acknowledgement.
    async fn publish(&mut self) -> Result<Option<Duration>, BenchError> {
        let start = Instant::now();
        let sent = self.client.publish(clock::mono(), self.publication.clone());
        let id = sent.map_err(BenchError::part("cannot publish"))?;
        loop {
            while let Some(transmit) = self.client.poll_transmit() {
                if let Destination::Unicast(to) = transmit.to {
                    let sent = self.socket.send_to(&transmit.datagram, to).await;
                    sent.map_err(BenchError::system("cannot send a datagram"))?;
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
            let wait = self.client.poll_timeout().map_or(ANSWER_TIME_MAX, |at| at.since(clock::mono()));
            let wait = wait.min(ANSWER_TIME_MAX.saturating_sub(start.elapsed()));
            match tokio::time::timeout(wait, self.socket.recv(&mut self.buffer)).await {
                Ok(Ok(length)) => {
                    let datagram = Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default());
                    self.client.handle_datagram(clock::mono(), self.gateway, &datagram);
                }
                Ok(Err(cause)) => return Err(BenchError::system("cannot receive a datagram")(cause)),
                Err(_) => self.client.handle_timeout(clock::mono()),
            }
        }
    }
}
