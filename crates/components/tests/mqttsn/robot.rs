//! Clients of MQTT-SN in the process of the test: the machine of the crate `viaduct-mqttsn` on a UDP socket.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_mqttsn::client::{
    Client, ClientEvent, ClientSettings, ClientState, Failure, Outcome, Publication, RequestId,
};
use viaduct_mqttsn::codec::Qos;

/// Time limit for an answer, generous for a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longest datagram.
const DATAGRAM_OCTETS_MAX: usize = 65_535;

/// A client.
pub(crate) struct Robot {
    client: Client,
    socket: UdpSocket,
    gateway: SocketAddr,
    /// Texts of messages whose outcome is not known.
    pending: HashMap<RequestId, String>,
    /// Texts of the messages that the gateway has acknowledged.
    pub(crate) acknowledged: Vec<String>,
    /// Texts of the messages that have failed.
    pub(crate) failed: Vec<(String, Failure)>,
    /// Topics and texts of received messages.
    pub(crate) received: VecDeque<(String, String)>,
    subscribed: usize,
    /// Datagrams from the gateway.
    pub(crate) datagrams: usize,
}

impl Robot {
    /// Returns a client that is not connected.
    pub(crate) fn new(client_id: &str, clean: bool, port: u16) -> Self {
        let settings = ClientSettings {
            client_id: client_id.to_owned(),
            clean,
            // The gateway of a test is gone for less than a second.
            congestion_wait: Duration::from_millis(100),
            reconnect_wait: Duration::from_millis(50),
            ..ClientSettings::default()
        };
        let seed = client_id.bytes().fold(7, |seed: u64, octet| seed.wrapping_mul(31).wrapping_add(octet.into()));
        Self {
            client: Client::new(settings, seed).unwrap(),
            socket: UdpSocket::bind("127.0.0.1:0").unwrap(),
            gateway: SocketAddr::from(([127, 0, 0, 1], port)),
            pending: HashMap::new(),
            acknowledged: Vec::new(),
            failed: Vec::new(),
            received: VecDeque::new(),
            subscribed: 0,
            datagrams: 0,
        }
    }

    /// Returns a connected client.
    pub(crate) fn connected(client_id: &str, clean: bool, port: u16) -> Self {
        let mut robot = Self::new(client_id, clean, port);
        robot.connect();
        robot.until("it is connected", |robot| robot.client.state() == ClientState::Active);
        robot
    }

    pub(crate) fn connect(&mut self) {
        self.client.connect(clock::mono(), Some(self.gateway)).unwrap();
    }

    pub(crate) fn state(&self) -> ClientState {
        self.client.state()
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Subscribes, and waits until the gateway has granted the subscription.
    pub(crate) fn subscribe(&mut self, filter: &str, qos: Qos) {
        let wanted = self.subscribed + 1;
        self.client.subscribe(clock::mono(), filter.into(), qos).unwrap();
        self.until("the subscription is granted", |robot| robot.subscribed == wanted);
    }

    /// Begins to publish a text.
    pub(crate) fn publish(&mut self, topic: &str, qos: Qos, text: String) {
        let payload = Bytes::from(text.clone());
        let publication = Publication { topic: topic.into(), payload, qos, retain: false };
        let request = self.client.publish(clock::mono(), publication).unwrap();
        self.pending.insert(request, text);
    }

    /// Falls asleep, and waits until the gateway has confirmed it.
    pub(crate) fn sleep(&mut self, duration: Duration) {
        self.client.sleep(clock::mono(), duration).unwrap();
        self.until("it sleeps", |robot| robot.client.state() == ClientState::Asleep);
    }

    pub(crate) fn wake(&mut self) {
        self.client.wake(clock::mono()).unwrap();
    }

    /// Works until a condition holds.
    pub(crate) fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            assert!(start.elapsed() < PATIENCE, "it does not happen that {what}: {:?}", self.client);
            self.work(Duration::from_millis(5));
        }
    }

    /// Works for at most a time: sends what is due, and processes what arrives.
    pub(crate) fn work(&mut self, time_max: Duration) {
        let now = clock::mono();
        if self.client.poll_timeout().is_some_and(|due| due <= now) {
            self.client.handle_timeout(now);
        }
        self.flush();
        self.socket.set_read_timeout(Some(time_max.max(Duration::from_micros(100)))).unwrap();
        let mut buffer = [0; DATAGRAM_OCTETS_MAX];
        match self.socket.recv_from(&mut buffer) {
            Ok((octets, from)) => {
                self.datagrams += 1;
                let datagram = Bytes::copy_from_slice(&buffer[..octets]);
                self.client.handle_datagram(clock::mono(), from, &datagram);
            }
            // Without a gateway, the kernel reports its port as unreachable.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
            Err(error) => panic!("{error}"),
        }
        self.take_events();
        self.flush();
    }

    fn flush(&mut self) {
        while let Some(transmit) = self.client.poll_transmit() {
            // What cannot be sent is lost, as on a network.
            let _ = self.socket.send_to(&transmit.datagram, self.gateway);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Finished { result: Ok(Outcome::Subscribed(_)), .. } => self.subscribed += 1,
                ClientEvent::Finished { request, result } => {
                    let Some(text) = self.pending.remove(&request) else { continue };
                    match result {
                        Ok(_) => self.acknowledged.push(text),
                        Err(failure) => self.failed.push((text, failure)),
                    }
                }
                ClientEvent::Message(message) => {
                    let text = String::from_utf8_lossy(&message.payload).into_owned();
                    self.received.push_back((message.topic.to_string(), text));
                }
                _ => {}
            }
        }
    }
}
