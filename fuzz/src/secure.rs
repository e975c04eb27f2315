//! Encrypted datagrams: both ends of a session that process a sequence of them.

use std::{net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use viaduct_components::net::secure::{
    Counters, Credentials, Endpoint, Peer, PeerId, PrivateKey, Random, RandomError, Role, Timing, limits::TRANSMITS_MAX,
};
use viaduct_units::{Mono, Rng};

use crate::teleop::{Records, UNIT};

/// Time between two recorded datagrams, in units.
const STEP: u8 = 9;
/// Content of all payloads, whatever their length.
const CONTENT: u8 = 7;
/// The only peer.
const PEER: PeerId = PeerId(0);

/// Random numbers of a seed: an end makes the same messages as when its peer's were recorded.
struct Seeded(Rng);

impl Random for Seeded {
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), RandomError> {
        octets.fill_with(|| self.0.next_u64() as u8);
        Ok(())
    }
}

/// One end, and the time of its last datagram.
struct End {
    endpoint: Endpoint,
    now: Mono,
}

impl End {
    fn desk() -> Self {
        Self::new(1, 2, Some(address(2)))
    }

    fn vehicle() -> Self {
        Self::new(2, 1, None)
    }

    fn new(own: u64, peer: u64, address: Option<SocketAddr>) -> Self {
        let key = |seed| PrivateKey::generate(&mut Seeded(Rng::new(seed))).expect("random numbers of a seed");
        let peer = Peer { name: "peer".to_owned(), public_key: key(peer).public_key(), address, role: Role::Driver };
        let credentials = Credentials { private_key: key(own), peers: vec![peer] };
        let now = Mono(Duration::from_secs(100));
        let endpoint = Endpoint::new(now, credentials, Timing::default(), Box::new(Seeded(Rng::new(own + 10))));
        Self { endpoint: endpoint.expect("random numbers of a seed"), now }
    }

    /// Processes the deadlines until a time. The same deadline must not occur twice. Returns the datagrams to send.
    fn advance(&mut self, units: u8) -> Vec<Bytes> {
        self.now = self.now.plus(UNIT * u32::from(units));
        let mut datagrams = Vec::new();
        while let Some(due) = self.endpoint.poll_timeout().filter(|due| *due <= self.now) {
            self.endpoint.handle_timeout(due);
            datagrams.extend(self.take());
            assert!(self.endpoint.poll_timeout().is_none_or(|next| next > due), "a deadline is repeated");
        }
        datagrams
    }

    /// Processes a datagram. Returns the datagrams to send.
    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) -> Vec<Bytes> {
        if let Some(opened) = self.endpoint.open(self.now, from, datagram) {
            let is_genuine = !opened.payload.is_empty() && opened.payload.iter().all(|octet| *octet == CONTENT);
            assert!(is_genuine && opened.peer == PEER, "a forged payload was opened");
        }
        self.take()
    }

    /// Returns the datagram of a payload, or `None` without a session.
    fn send(&mut self, octets: usize) -> Option<Bytes> {
        let mut datagram = BytesMut::new();
        self.endpoint.seal(self.now, PEER, &vec![CONTENT; octets], &mut datagram).ok()?;
        Some(datagram.freeze())
    }

    fn take(&mut self) -> Vec<Bytes> {
        let datagrams: Vec<Bytes> = std::iter::from_fn(|| self.endpoint.poll_transmit()).map(|sent| sent.1).collect();
        assert!(datagrams.len() <= TRANSMITS_MAX && datagrams.iter().all(|datagram| datagram.len() <= 144));
        while self.endpoint.poll_event().is_some() {}
        check(self.endpoint.counters());
        datagrams
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4000))
}

fn check(counters: &Counters) {
    let processed = counters.opened + counters.empty + counters.handshake_messages;
    assert_eq!(counters.received, processed + counters.dropped_total(), "{counters:?}");
}

/// Checks an end: it opens no forged payload, repeats no deadline, and counts each datagram once.
fn process(mut end: End, from: SocketAddr, octets: &[u8]) {
    for (number, (after, datagram)) in Records(octets).enumerate() {
        end.advance(u8::try_from(after.as_micros() / UNIT.as_micros()).unwrap_or(u8::MAX));
        end.receive(from, datagram);
        if number % 4 == 3 {
            let _ = end.send(number);
        }
    }
    end.advance(u8::MAX);
}

/// Checks the end that opens the connection.
pub fn initiator(octets: &[u8]) {
    process(End::desk(), address(2), octets);
}

/// Checks the end that waits for the connection.
pub fn responder(octets: &[u8]) {
    process(End::vehicle(), address(1), octets);
}

/// Records a handshake and some payloads. Returns what the desk and what the vehicle receives.
fn exchange() -> (Vec<u8>, Vec<u8>) {
    let (mut desk, mut vehicle) = (End::desk(), End::vehicle());
    let (mut to_desk, mut to_vehicle) = (Vec::new(), Vec::new());
    for step in 0..12 {
        let (mut up, mut down) = (desk.advance(STEP), vehicle.advance(STEP));
        if step > 0 {
            up.extend(desk.send(40));
            down.extend(vehicle.send(300));
        }
        while !up.is_empty() || !down.is_empty() {
            for datagram in std::mem::take(&mut up) {
                record(&mut to_vehicle, &datagram);
                down.extend(vehicle.receive(address(1), &datagram));
            }
            for datagram in std::mem::take(&mut down) {
                record(&mut to_desk, &datagram);
                up.extend(desk.receive(address(2), &datagram));
            }
        }
    }
    (to_desk, to_vehicle)
}

fn record(records: &mut Vec<u8>, datagram: &[u8]) {
    let length = u16::try_from(datagram.len()).expect("a datagram is short");
    records.extend_from_slice(&length.to_be_bytes());
    records.push(STEP);
    records.extend_from_slice(datagram);
}

pub(crate) fn to_initiator() -> Vec<Vec<u8>> {
    vec![exchange().0]
}

pub(crate) fn to_responder() -> Vec<Vec<u8>> {
    vec![exchange().1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the payloads that an end opens of a recording.
    fn opened(mut end: End, from: SocketAddr, octets: &[u8]) -> u64 {
        for (_, datagram) in Records(octets) {
            end.advance(STEP);
            end.receive(from, datagram);
        }
        end.endpoint.counters().opened
    }

    #[test]
    fn the_seeds_reach_the_data_of_a_session() {
        assert!(opened(End::desk(), address(2), &to_initiator()[0]) > 4);
        assert!(opened(End::vehicle(), address(1), &to_responder()[0]) > 4);
    }
}
