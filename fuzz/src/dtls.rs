//! DTLS: a server and a client that exchange datagrams which the input changes, repeats, drops and adds to.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use viaduct_components::net::dtls::{
    Client, ClientConfig, Counters, HandshakeTiming, PskKeys, Server, ServerConfig,
    limits::{RECEIVED_MAX, TRANSMITS_MAX},
};
use viaduct_units::Mono;

/// Steps of one input.
const STEPS: usize = 200;
/// Datagrams that an input can repeat.
const HISTORY: usize = 16;
const KEY: &[u8] = b"0123456789abcdef";
/// Content of all payloads.
const PAYLOAD: &[u8] = b"genuine";

/// Two ends and the datagrams between them.
struct Ends {
    now: Mono,
    server: Server,
    client: Client,
    /// Datagrams on their way, with `true` for those to the server.
    queue: Vec<(bool, Bytes)>,
    history: Vec<Bytes>,
}

impl Ends {
    fn new() -> Self {
        let now = Mono(Duration::from_secs(100));
        let keys = PskKeys::single("robot", KEY).expect("a valid identity and key");
        let timing = HandshakeTiming { timeout: Duration::from_secs(20), retransmission: Duration::from_secs(1) };
        let server = ServerConfig {
            keys: keys.clone(),
            connections_max: 3,
            handshakes_max: 2,
            idle_timeout: Duration::from_secs(60),
            timing,
        };
        let client = ClientConfig { keys, silence: Duration::from_secs(5), timing };
        Self {
            now,
            server: Server::new(now, server).expect("a valid configuration"),
            client: Client::new(now, client, address(2)).expect("a valid configuration"),
            queue: Vec::new(),
            history: Vec::new(),
        }
    }

    fn deliver(&mut self, to_server: bool, from: SocketAddr, datagram: &[u8]) {
        if to_server {
            self.server.handle_datagram(self.now, from, datagram);
        } else {
            self.client.handle_datagram(self.now, address(2), datagram);
        }
        self.take();
    }

    /// Processes the deadlines until a time. The same deadline must not occur twice.
    fn advance(&mut self, by: Duration) {
        self.now = self.now.plus(by);
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
        let is_over = |due: Option<Mono>| due.is_none_or(|due| due > self.now);
        assert!(is_over(self.server.poll_timeout()) && is_over(self.client.poll_timeout()), "a deadline is repeated");
        self.take();
    }

    fn take(&mut self) {
        let up = std::iter::from_fn(|| self.client.poll_transmit()).map(|(_, datagram)| (true, datagram));
        let down = std::iter::from_fn(|| self.server.poll_transmit()).map(|(_, datagram)| (false, datagram));
        let sent: Vec<_> = up.chain(down).collect();
        assert!(sent.len() <= 2 * TRANSMITS_MAX);
        self.history.extend(sent.iter().map(|(_, datagram)| datagram.clone()));
        let old = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..old);
        self.queue.extend(sent);
        self.queue.truncate(HISTORY);
        let received = std::iter::from_fn(|| self.server.poll_received().or_else(|| self.client.poll_received()));
        let received: Vec<_> = received.collect();
        assert!(received.len() <= 2 * RECEIVED_MAX && received.iter().all(|(_, payload)| payload == PAYLOAD), "forged");
        while self.server.poll_event().or_else(|| self.client.poll_event()).is_some() {}
        assert!(self.server.sessions() <= 3, "too many sessions");
        check(self.server.counters());
        check(self.client.counters());
    }

    /// Does one step. Returns `None` at the end of the input.
    fn step(&mut self, script: &mut &[u8]) -> Option<()> {
        let (operation, argument) = (take(script)?, take(script)?);
        match operation % 16 {
            0..=5 if !self.queue.is_empty() => {
                let (to_server, datagram) = self.queue.remove(0);
                self.deliver(to_server, address(1), &datagram);
            }
            6 if !self.queue.is_empty() => drop(self.queue.remove(0)),
            7 if !self.queue.is_empty() => {
                let (to_server, datagram) = self.queue.remove(0);
                let mut datagram = datagram.to_vec();
                let index = usize::from(argument) % datagram.len().max(1);
                let change = take(script)?;
                if let Some(octet) = datagram.get_mut(index) {
                    *octet ^= change;
                }
                self.deliver(to_server, address(1), &datagram);
            }
            8 => {
                let index = usize::from(argument) % self.history.len().max(1);
                let repeated = self.history.get(index).cloned().unwrap_or_default();
                self.deliver(argument & 0x80 == 0, address(argument & 1), &repeated);
            }
            9 => {
                let length = usize::from(take(script)?).min(script.len());
                let (forged, rest) = script.split_at(length);
                *script = rest;
                self.deliver(argument & 0x80 == 0, address(argument & 1), forged);
            }
            10 => drop(self.client.send(self.now, PAYLOAD)),
            11 => drop(self.server.send(self.now, address(1), PAYLOAD)),
            12 => self.client.reconnect(self.now),
            13 if argument > 200 => self.client.disconnect(self.now),
            14 if argument > 200 => self.server.disconnect(self.now, address(1)),
            _ => self.advance(Duration::from_millis(50) * u32::from(argument)),
        }
        self.take();
        Some(())
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4000))
}

fn take(script: &mut &[u8]) -> Option<u8> {
    script.split_off_first().copied()
}

fn check(counters: &Counters) {
    let processed = counters.payloads + counters.handshake_records;
    assert_eq!(counters.records, processed + counters.dropped_total(), "{counters:?}");
}

/// Checks both ends: they deliver no forged payload, repeat no deadline, count each record once, and connect afterwards.
pub fn ends(script: &[u8]) {
    let mut ends = Ends::new();
    run(&mut ends, script);
}

fn run(ends: &mut Ends, mut script: &[u8]) {
    for _ in 0..STEPS {
        if ends.step(&mut script).is_none() {
            return;
        }
    }
}

/// Returns scripts that connect, exchange payloads, and close.
pub(crate) fn scripts() -> Vec<Vec<u8>> {
    let connect = [&[10, 0][..], &[0, 0].repeat(8)].concat();
    let traffic = [10, 0, 11, 0, 0, 0, 0, 0].repeat(4);
    let again = [&[12, 0][..], &[0, 0].repeat(8)].concat();
    let close = [13, 255, 0, 0, 0, 0, 15, 255];
    vec![
        [&connect[..], &traffic, &again, &traffic, &close].concat(),
        [&connect[..], &traffic, &[15, 255].repeat(6), &traffic, &[14, 255, 0, 0], &connect].concat(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_connect_and_exchange_payloads() {
        for script in scripts() {
            let mut ends = Ends::new();
            run(&mut ends, &script);
            let counters = ends.server.counters();
            assert!(counters.sessions >= 2 && counters.payloads >= 4, "{counters:?}");
        }
    }
}
