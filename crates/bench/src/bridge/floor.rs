//! Floors: a message over TCP, and over MQTT with a plain client that only writes and reads packets.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use viaduct_components::link::End;

use super::network::Network;
use crate::error::BenchError;
use crate::floor::nanos;
use crate::sys;

/// Time limit for the next octet.
const SILENCE: Duration = Duration::from_secs(10);
/// Messages before the first one that counts.
const WARM_UP: usize = 5;
/// Octets of the time at the beginning of a message.
const STAMP_OCTETS: usize = 8;
/// Topic of the messages.
const TOPIC: &[u8] = b"floor";
/// Longest message that is accepted, in octets.
const OCTETS_MAX: usize = 16 << 20;

/// Measures messages over a TCP connection from the vehicle's end to the cloud's, in nanoseconds.
pub(super) fn tcp(network: &Network, octets: usize, messages: usize, period: Duration) -> Result<Vec<u64>, BenchError> {
    let failed = BenchError::system("cannot measure the floor of TCP");
    let octets = octets.max(STAMP_OCTETS);
    let listener = network.within(End::B, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?.map_err(&failed)?;
    let port = listener.local_addr().map_err(&failed)?.port();
    let address = SocketAddr::from((network.address(End::B), port));
    let mut writer = network.within(End::A, || TcpStream::connect(address))?.map_err(&failed)?;
    let (mut reader, _) = listener.accept().map_err(&failed)?;
    prepare(&writer).and_then(|()| prepare(&reader)).map_err(&failed)?;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let mut message = vec![0; octets];
            let mut receive = || reader.read_exact(&mut message).map(|()| age(&message));
            (0..WARM_UP + messages).map(|_| receive()).skip(WARM_UP).collect::<io::Result<Vec<u64>>>()
        });
        let mut message = vec![0xA5; octets];
        let mut send = |message: &mut Vec<u8>| {
            stamp(message);
            writer.write_all(message)
        };
        paced(WARM_UP + messages, period, || send(&mut message)).map_err(&failed)?;
        receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(&failed)
    })
}

/// Measures messages from a publisher at the vehicle's end over a broker to a subscriber at the cloud's, in nanoseconds.
pub(super) fn mqtt(
    network: &Network,
    broker: SocketAddr,
    qos: u8,
    octets: usize,
    messages: usize,
    period: Duration,
) -> Result<Vec<u64>, BenchError> {
    let failed = BenchError::system("cannot measure the floor of MQTT");
    let octets = octets.max(STAMP_OCTETS);
    let connect = |end, name| network.within(end, || PlainClient::connect(broker, name))?.map_err(&failed);
    let mut subscriber = connect(End::B, "floor-subscriber")?;
    let mut publisher = connect(End::A, "floor-publisher")?;
    subscriber.subscribe(qos).map_err(&failed)?;
    std::thread::scope(|scope| {
        let (sender, all) = sync_channel(1);
        scope.spawn(move || {
            let mut receive = || subscriber.receive();
            let ages = (0..WARM_UP + messages).map(|_| receive()).skip(WARM_UP).collect::<io::Result<Vec<u64>>>();
            // The other end may have failed.
            let _ = sender.send(ages);
        });
        let mut packet = publish_packet(qos, octets);
        paced(WARM_UP + messages, period, || publisher.publish(qos, &mut packet)).map_err(&failed)?;
        all.recv()
            .map_err(|_| BenchError::broken("cannot measure the floor of MQTT", "the subscriber ended"))?
            .map_err(&failed)
    })
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))
}

/// Calls `send` for each message, one period apart.
fn paced(messages: usize, period: Duration, mut send: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    sys::exact_timers();
    let mut next = sys::monotonic();
    for _ in 0..messages {
        next += period;
        sys::sleep_until(next);
        send()?;
    }
    Ok(())
}

/// Writes the present time to the beginning of a message.
fn stamp(message: &mut [u8]) {
    if let Some(stamp) = message.first_chunk_mut::<STAMP_OCTETS>() {
        *stamp = nanos(sys::monotonic()).to_le_bytes();
    }
}

/// Returns the time since the stamp at the beginning of a message.
fn age(message: &[u8]) -> u64 {
    let stamp = message.first_chunk().map_or(0, |stamp| u64::from_le_bytes(*stamp));
    nanos(sys::monotonic()).saturating_sub(stamp)
}

/// A client of MQTT 3.1.1 with one message under way.
struct PlainClient {
    stream: TcpStream,
    /// The last packet without its fixed header.
    body: Vec<u8>,
}

/// Types of packets, with their flags.
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const PUBREC: u8 = 0x50;
const PUBREL: u8 = 0x62;
const PUBCOMP: u8 = 0x70;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
/// Packet identifier of every packet.
const PACKET_ID: [u8; 2] = [0, 1];

impl PlainClient {
    fn connect(broker: SocketAddr, name: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(broker)?;
        prepare(&stream)?;
        let mut client = Self { stream, body: Vec::new() };
        // Protocol name and level, clean session, keep alive of 0 (none), client identifier.
        let mut body = b"\x00\x04MQTT\x04\x02\x00\x00\x00".to_vec();
        body.push(name.len() as u8);
        body.extend(name.as_bytes());
        client.stream.write_all(&packet(CONNECT, &body))?;
        client.expect(CONNACK)?;
        Ok(client)
    }

    fn subscribe(&mut self, qos: u8) -> io::Result<()> {
        let body = [&PACKET_ID, &[0, TOPIC.len() as u8][..], TOPIC, &[qos]].concat();
        self.stream.write_all(&packet(SUBSCRIBE, &body))?;
        self.expect(SUBACK)
    }

    /// Sends a message, and waits until its exchange with the broker has ended.
    fn publish(&mut self, qos: u8, packet: &mut [u8]) -> io::Result<()> {
        let payload = packet.len() - payload_octets(packet);
        stamp(&mut packet[payload..]);
        self.stream.write_all(packet)?;
        match qos {
            0 => Ok(()),
            1 => self.expect(PUBACK),
            _ => {
                self.expect(PUBREC)?;
                self.stream.write_all(&acknowledgement(PUBREL, &PACKET_ID))?;
                self.expect(PUBCOMP)
            }
        }
    }

    /// Receives a message and returns its age. Answers with the acknowledgements that its quality of service needs.
    fn receive(&mut self) -> io::Result<u64> {
        let first = loop {
            let first = self.read()?;
            if first & 0xF0 == PUBREL & 0xF0 {
                self.acknowledge(PUBCOMP, 0)?;
            } else if first & 0xF0 == PUBLISH {
                break first;
            } else {
                return Err(unexpected(first));
            }
        };
        let (id, qos) = (2 + TOPIC.len(), first >> 1 & 3);
        let payload = if qos == 0 { id } else { id + 2 };
        let age = age(self.body.get(payload..).unwrap_or_default());
        match qos {
            0 => {}
            1 => self.acknowledge(PUBACK, id)?,
            _ => self.acknowledge(PUBREC, id)?,
        }
        Ok(age)
    }

    /// Sends an acknowledgement for the packet identifier at a place of the last packet.
    fn acknowledge(&mut self, kind: u8, at: usize) -> io::Result<()> {
        let id = self.body.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(|| unexpected(kind))?;
        self.stream.write_all(&acknowledgement(kind, id))
    }

    fn expect(&mut self, kind: u8) -> io::Result<()> {
        let first = self.read()?;
        if first & 0xF0 == kind & 0xF0 { Ok(()) } else { Err(unexpected(first)) }
    }

    /// Reads a packet. Returns the first octet of its fixed header.
    fn read(&mut self) -> io::Result<u8> {
        let mut octet = [0];
        self.stream.read_exact(&mut octet)?;
        let [first] = octet;
        let mut length = 0;
        for shift in [0, 7, 14, 21] {
            self.stream.read_exact(&mut octet)?;
            length |= usize::from(octet[0] & 0x7F) << shift;
            if octet[0] & 0x80 == 0 {
                break;
            }
        }
        if length > OCTETS_MAX {
            return Err(unexpected(first));
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(first)
    }
}

fn unexpected(first: u8) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("unexpected MQTT packet {first:#04x}"))
}

/// Returns a packet with its fixed header.
fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut rest = body.len();
    while rest > 0x7F {
        packet.push((rest & 0x7F) as u8 | 0x80);
        rest >>= 7;
    }
    packet.push(rest as u8);
    packet.extend(body);
    packet
}

fn acknowledgement(first: u8, id: &[u8; 2]) -> Vec<u8> {
    packet(first, id)
}

fn publish_packet(qos: u8, octets: usize) -> Vec<u8> {
    let id: &[u8] = if qos == 0 { &[] } else { &PACKET_ID };
    let body = [&[0, TOPIC.len() as u8][..], TOPIC, id, &vec![0xA5; octets]].concat();
    packet(PUBLISH | qos << 1, &body)
}

/// Returns the length of the payload of a packet of [`publish_packet`].
fn payload_octets(packet: &[u8]) -> usize {
    let header = 1 + packet.iter().skip(1).take_while(|octet| **octet & 0x80 != 0).count() + 1;
    let id = if packet.first().is_some_and(|first| first >> 1 & 3 == 0) { 0 } else { 2 };
    packet.len().saturating_sub(header + 2 + TOPIC.len() + id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_length_in_groups_of_seven_bits() {
        assert_eq!(packet(PUBACK, &PACKET_ID), [0x40, 2, 0, 1]);
        let long = publish_packet(1, 200);
        assert_eq!((&long[..3], payload_octets(&long)), (&[0x32, 0x80 | (209 & 0x7F) as u8, 1][..], 200));
        assert_eq!(payload_octets(&publish_packet(0, 3)), 3);
    }

    #[test]
    fn tcp_has_an_age_for_each_message() {
        let ages = tcp(&Network::Host, 100_000, 4, Duration::from_millis(2)).unwrap();
        assert!(ages.len() == 4 && ages.iter().all(|age| (1_000..10_000_000_000).contains(age)), "{ages:?}");
    }
}
