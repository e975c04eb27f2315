//! Baselines over TCP: MQTT with QoS 1 to Mosquitto, and HTTP to a node.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use viaduct_mqtt::packet::connect::ConnectPacket;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{ConnectOptions, Packet, QoS, encode_packet_to_buffer};

use super::client::{Sender, Traffic};
use crate::error::BenchError;

/// Longest wait for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(100);

fn connect(to: SocketAddr) -> Result<TcpStream, BenchError> {
    let failed = BenchError::system("cannot connect by TCP");
    let stream = TcpStream::connect(to).map_err(&failed)?;
    stream.set_nodelay(true).map_err(&failed)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).map_err(&failed)?;
    Ok(stream)
}

/// A client of MQTT that publishes with QoS 1.
pub(super) struct MqttSender {
    stream: TcpStream,
    octets: usize,
    next: u16,
}

impl MqttSender {
    pub(super) fn connect(broker: SocketAddr, name: &str, octets: usize) -> Result<Self, BenchError> {
        let mut sender = Self { stream: connect(broker)?, octets, next: 0 };
        let options = ConnectOptions::new(name).with_keep_alive(Duration::ZERO);
        sender.write(&Packet::Connect(Box::new(ConnectPacket::new(options.protocol_options))))?;
        sender.read()?;
        Ok(sender)
    }

    fn write(&mut self, packet: &Packet) -> Result<(), BenchError> {
        let mut buffer = BytesMut::new();
        encode_packet_to_buffer(packet, &mut buffer).map_err(BenchError::part("cannot encode a packet"))?;
        self.stream.write_all(&buffer).map_err(BenchError::system("cannot write to the broker"))
    }

    /// Reads a packet of less than 128 octets: CONNACK or PUBACK.
    fn read(&mut self) -> Result<(), BenchError> {
        let failed = BenchError::system("cannot read from the broker");
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).map_err(&failed)?;
        let mut rest = vec![0; usize::from(head[1] & 0x7F)];
        self.stream.read_exact(&mut rest).map_err(&failed)
    }
}

impl Sender for MqttSender {
    fn send(&mut self) -> Result<Option<Duration>, BenchError> {
        self.next = self.next % 65_000 + 1;
        let mut packet = PublishPacket::new("bench/mqtt", vec![b'x'; self.octets], QoS::AtLeastOnce);
        packet.packet_id = Some(self.next);
        let start = Instant::now();
        self.write(&Packet::Publish(packet))?;
        self.read()?;
        Ok(Some(start.elapsed()))
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// A client of HTTP that asks a node for its state over one connection.
pub(super) struct HttpSender(BufReader<TcpStream>);

impl HttpSender {
    pub(super) fn connect(server: SocketAddr) -> Result<Self, BenchError> {
        Ok(Self(BufReader::new(connect(server)?)))
    }
}

impl Sender for HttpSender {
    fn send(&mut self) -> Result<Option<Duration>, BenchError> {
        let failed = BenchError::system("cannot exchange an HTTP request");
        let start = Instant::now();
        self.0.get_mut().write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").map_err(&failed)?;
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            self.0.read_line(&mut line).map_err(&failed)?;
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).map_err(&failed)?;
        Ok(Some(start.elapsed()))
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
