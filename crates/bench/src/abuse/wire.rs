//! A client of MQTT 5 with which one can do what a library forbids.

use std::io;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::error::BenchError;

/// Longest wait for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

/// Longest wait for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// A connection.
pub(super) struct Wire(TcpStream);

/// Addresses of clients that are served, and of attackers.
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::LOCALHOST;
pub(super) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// Opens a connection from an address.
pub(super) fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    // Otherwise thousands of closed connections keep their ports for a minute.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.connect_timeout(&to.into(), CONNECT_TIME_MAX)?;
    Ok(socket.into())
}

/// Returns a text with its length.
fn text(octets: &[u8]) -> Vec<u8> {
    let length = u16::try_from(octets.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&length[..], octets].concat()
}

/// Returns a packet with its length (MQTT 5, 2.1.4).
pub(super) fn packet(head: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![head];
    let mut length = body.len();
    loop {
        let more = if length > 0x7F { 0x80 } else { 0 };
        packet.push(u8::try_from(length & 0x7F).unwrap_or(0) | more);
        length >>= 7;
        if length == 0 {
            break;
        }
    }
    packet.extend_from_slice(body);
    packet
}

/// Returns PUBLISH. QoS 1 and 2 need an identifier.
pub(super) fn publish(topic: &str, qos: u8, retain: bool, identifier: u16, payload: &[u8]) -> Vec<u8> {
    let mut body = text(topic.as_bytes());
    if qos > 0 {
        body.extend(identifier.to_be_bytes());
    }
    body.push(0);
    body.extend_from_slice(payload);
    packet(0x30 | qos << 1 | u8::from(retain), &body)
}

impl Wire {
    /// Opens a connection without sending anything.
    pub(super) fn open(from: Ipv4Addr, to: SocketAddr) -> Result<Self, BenchError> {
        let failed = BenchError::system("cannot connect by TCP");
        let stream = connect(from, to).map_err(&failed)?;
        stream.set_nodelay(true).map_err(&failed)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).map_err(&failed)?;
        stream.set_write_timeout(Some(ANSWER_TIME_MAX)).map_err(&failed)?;
        Ok(Self(stream))
    }

    /// Connects. Returns the client and the reason code of CONNACK. The session lasts for `expiry_s`.
    pub(super) fn connect(
        from: Ipv4Addr,
        to: SocketAddr,
        client_id: &str,
        expiry_s: u32,
    ) -> Result<(Self, u8), BenchError> {
        let mut wire = Self::open(from, to)?;
        let expiry = [&[0x11][..], &expiry_s.to_be_bytes()].concat();
        // A session that ends with its connection starts anew.
        let flags = if expiry_s == 0 { 2 } else { 0 };
        let body = [&text(b"MQTT")[..], &[5, flags, 0, 0, 5], &expiry, &text(client_id.as_bytes())].concat();
        wire.send(&packet(0x10, &body))?;
        let (_, answer) = wire.read()?;
        Ok((wire, answer.get(1).copied().unwrap_or(0xFF)))
    }

    /// Subscribes with QoS 1. Returns the reason codes.
    pub(super) fn subscribe(&mut self, filters: &[String]) -> Result<Vec<u8>, BenchError> {
        let mut body = vec![0, 1, 0];
        for filter in filters {
            body.extend(text(filter.as_bytes()));
            body.push(1);
        }
        self.send(&packet(0x82, &body))?;
        loop {
            let (head, answer) = self.read()?;
            if head & 0xF0 == 0x90 {
                // Identifier, and properties of less than 128 octets.
                let properties = answer.get(2).map_or(0, |length| usize::from(*length));
                return Ok(answer.get(3 + properties..).unwrap_or_default().to_vec());
            }
        }
    }

    pub(super) fn send(&mut self, octets: &[u8]) -> Result<(), BenchError> {
        self.0.write_all(octets).map_err(BenchError::system("cannot write to the broker"))
    }

    /// Reads a packet: its first octet, and what follows its length.
    pub(super) fn read(&mut self) -> Result<(u8, Vec<u8>), BenchError> {
        let failed = BenchError::system("cannot read from the broker");
        let mut octet = [0];
        self.0.read_exact(&mut octet).map_err(&failed)?;
        let head = octet[0];
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            self.0.read_exact(&mut octet).map_err(&failed)?;
            length |= usize::from(octet[0] & 0x7F) << shift;
            shift += 7;
            if octet[0] & 0x80 == 0 || shift > 21 {
                break;
            }
        }
        let mut rest = vec![0; length];
        self.0.read_exact(&mut rest).map_err(&failed)?;
        Ok((head, rest))
    }

    /// Acknowledges a message of QoS 1.
    pub(super) fn acknowledge(&mut self, publish: &[u8]) -> Result<(), BenchError> {
        let length = publish.get(..2).map_or(0, |octets| usize::from(u16::from_be_bytes([octets[0], octets[1]])));
        match publish.get(2 + length..4 + length) {
            Some(identifier) => self.send(&packet(0x40, identifier)),
            None => Ok(()),
        }
    }

    pub(super) fn set_time_max(&self, time: Duration) -> Result<(), BenchError> {
        self.0.set_read_timeout(Some(time)).map_err(BenchError::system("cannot set a time limit"))
    }
}
