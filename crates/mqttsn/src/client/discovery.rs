//! Discovery of gateways (6.1).
//!
//! The field `GwAdd` of a GWINFO that a client sends holds the IP address and the port of the gateway: 6 octets for IPv4,
//! 18 for IPv6.

use std::{net::SocketAddr, time::Duration};

use viaduct_units::Mono;

use super::{Client, ClientEvent, ClientRefusal, connection::State};
use crate::{
    Destination, Transmit,
    codec::Packet,
    forwarder::{address_of, octets_of},
    limits::{ADVERTISE_MISSING_MAX, GATEWAYS_MAX},
};

/// Largest factor between the first and the last wait for an answer to SEARCHGW.
const SEARCH_GROWTH_MAX: u32 = 64;

/// A gateway that was discovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownGateway {
    /// Id of the gateway.
    pub id: u8,
    /// Address.
    pub address: SocketAddr,
    /// Time at which the gateway is forgotten unless it advertises itself, or `None` if it never has.
    pub expires: Option<Mono>,
}

#[derive(Debug, Default)]
pub(super) struct Discovery {
    known: Vec<KnownGateway>,
    search: Option<Search>,
    /// SEARCHGW of another client that this client answers unless a gateway does.
    answer: Option<(Mono, u8)>,
}

#[derive(Clone, Copy, Debug)]
struct Search {
    radius: u8,
    due: Mono,
    factor: u32,
}

impl Discovery {
    pub(super) fn due(&self) -> Option<Mono> {
        let expiry = self.known.iter().filter_map(|gateway| gateway.expires).min();
        [expiry, self.search.map(|search| search.due), self.answer.map(|(due, _)| due)].into_iter().flatten().min()
    }

    /// Returns the gateway that follows another one in the list.
    pub(super) fn next_after(&self, address: Option<SocketAddr>) -> Option<SocketAddr> {
        let position = self.known.iter().position(|gateway| Some(gateway.address) == address);
        let next = position.map_or(0, |position| position + 1);
        self.known.get(next).or_else(|| self.known.first()).map(|gateway| gateway.address)
    }
}

impl Client {
    /// Looks for gateways: SEARCHGW follows after a random delay, and is repeated until a gateway is found.
    ///
    /// `radius` is the broadcast radius in hops; 0 means all nodes.
    pub fn search(&mut self, now: Mono, radius: u8) {
        let due = now.plus(self.random.duration_up_to(self.settings.search_delay_max));
        self.discovery.search = Some(Search { radius, due, factor: 1 });
    }

    /// Returns the gateways that are known.
    #[must_use]
    pub fn gateways(&self) -> &[KnownGateway] {
        &self.discovery.known
    }

    /// Does the work of the discovery that is due.
    pub(super) fn discover(&mut self, now: Mono) {
        if let Some(search) = self.discovery.search.filter(|search| search.due <= now) {
            self.broadcast(search.radius, &Packet::SearchGw { radius: search.radius });
            self.postpone_search(now, search);
        }
        if let Some((_, radius)) = self.discovery.answer.take_if(|(due, _)| *due <= now)
            && let Some(KnownGateway { id, address, .. }) = self.discovery.known.first().copied()
        {
            self.broadcast(radius, &Packet::GwInfo { gateway: id, address: &octets_of(address) });
        }
        let events = &mut self.events;
        self.discovery.known.retain(|gateway| {
            let current = gateway.expires.is_none_or(|expires| expires > now);
            if !current {
                events.push_back(ClientEvent::GatewayForgotten { id: gateway.id });
            }
            current
        });
    }

    fn postpone_search(&mut self, now: Mono, search: Search) {
        let due = now.plus(self.settings.search_wait.saturating_mul(search.factor));
        let factor = (2 * search.factor).min(SEARCH_GROWTH_MAX);
        self.discovery.search = Some(Search { due, factor, ..search });
    }

    fn broadcast(&mut self, radius: u8, packet: &Packet<'_>) {
        if let Some(datagram) = self.writer.write(packet) {
            self.counters.sent += 1;
            self.transmits.push_back(Transmit { to: Destination::Broadcast { radius, reply_to: None }, datagram });
        }
    }

    pub(super) fn handle_advertise(&mut self, now: Mono, from: SocketAddr, id: u8, duration: u16) {
        let lifetime = Duration::from_secs(duration.into()).saturating_mul(ADVERTISE_MISSING_MAX);
        self.add_gateway(now, KnownGateway { id, address: from, expires: Some(now.plus(lifetime)) });
    }

    pub(super) fn handle_gwinfo(&mut self, now: Mono, from: SocketAddr, id: u8, address: &[u8]) {
        let address = if address.is_empty() { Some(from) } else { address_of(address) };
        let Some(address) = address else { return self.refuse(ClientRefusal::Unexpected) };
        self.discovery.answer = None;
        let before = self.discovery.known.iter().find(|gateway| gateway.address == address);
        let expires = before.and_then(|gateway| gateway.expires);
        self.add_gateway(now, KnownGateway { id, address, expires });
    }

    /// Adds or replaces a gateway, and connects to it if the client waits for one.
    fn add_gateway(&mut self, now: Mono, gateway: KnownGateway) {
        let KnownGateway { id, address, .. } = gateway;
        let known = &mut self.discovery.known;
        let full = known.len() >= GATEWAYS_MAX;
        match known.iter_mut().find(|known| known.address == address) {
            Some(known) => *known = gateway,
            None if full => return,
            None => {
                known.push(gateway);
                self.events.push_back(ClientEvent::GatewayFound { id, address });
            }
        }
        self.discovery.search = None;
        if matches!(self.state, State::Searching) {
            self.gateway = Some(address);
            self.start_connection(now, false);
        }
    }

    /// Processes SEARCHGW of another client: it counts as one of this client, which may also answer.
    pub(super) fn handle_search(&mut self, now: Mono, radius: u8) {
        if let Some(search) = self.discovery.search {
            self.postpone_search(now, search);
        }
        if let Some(longest) = self.settings.gwinfo_delay_max.filter(|_| !self.discovery.known.is_empty()) {
            let due = now.plus(self.random.duration_up_to(longest));
            self.discovery.answer.get_or_insert((due, radius));
        }
    }
}
