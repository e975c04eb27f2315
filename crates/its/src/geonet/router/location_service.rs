//! Location service, EN 302 636-4-1, clause 10.3.7: requests the position of a station, and stores packets for the
//! station meanwhile.

use std::collections::{BTreeMap, VecDeque};

use viaduct_units::Mono;

use super::{
    Outcome, Router,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    DropReason,
    access::EthernetHeader,
    geonet::{GnAddress, GucHeader, HeaderType, LsRequestHeader, Packet},
    limits::LOCATION_SEARCHES_MAX,
    send_error::SendError,
};

/// Searches in progress, and the packets that wait for them.
#[derive(Debug, Default)]
pub(super) struct LocationService {
    searches: BTreeMap<GnAddress, Search>,
    /// The LS packet buffer (clause 8.4), in the order of the requests.
    waiting: VecDeque<Waiting>,
    /// Octets of the waiting payloads.
    octets: usize,
}

#[derive(Debug)]
struct Search {
    /// Time of the next repetition of the request (T_LS).
    due: Mono,
    /// Number of repetitions (RTC_LS).
    retransmitted: u8,
}

#[derive(Debug)]
struct Waiting {
    destination: GnAddress,
    request: GnRequest,
    /// Time of the request to send.
    since: Mono,
}

impl Waiting {
    fn expires(&self) -> Mono {
        self.since.plus(self.request.lifetime.duration())
    }
}

impl LocationService {
    /// Returns the number of waiting packets.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the earliest time of a repetition or of the end of a waiting packet's lifetime.
    pub(super) fn next_due(&self) -> Option<Mono> {
        let questions = self.searches.values().map(|search| search.due);
        questions.chain(self.waiting.iter().map(Waiting::expires)).min()
    }

    fn first_due(&self, now: Mono) -> Option<GnAddress> {
        self.searches.iter().find(|(_, search)| search.due <= now).map(|(address, _)| *address)
    }

    /// Removes the packets that wait for an address.
    fn take(&mut self, destination: GnAddress) -> Vec<Waiting> {
        self.searches.remove(&destination);
        let (taken, kept): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|waiting| waiting.destination == destination);
        self.waiting = kept.into();
        self.octets = self.waiting.iter().map(|waiting| waiting.request.payload.len()).sum();
        taken
    }

    fn pop_oldest(&mut self) -> Option<Waiting> {
        let oldest = self.waiting.pop_front()?;
        self.octets = self.octets.saturating_sub(oldest.request.payload.len());
        Some(oldest)
    }

    fn push(&mut self, waiting: Waiting) {
        self.octets += waiting.request.payload.len();
        self.waiting.push_back(waiting);
    }
}

impl Router {
    /// Stores a packet and requests the position of its destination (10.3.7.1.2), unless a search is in progress.
    pub(super) fn search(&mut self, now: Mono, request: &GnRequest, sought: GnAddress) -> Result<(), SendError> {
        let capacity = self.mib.location_service_packet_buffer_size;
        let octets = request.payload.len();
        let known = self.location_service.searches.contains_key(&sought);
        let too_many = !known && self.location_service.searches.len() >= LOCATION_SEARCHES_MAX;
        if octets > capacity || too_many {
            return Err(SendError::NotSent(DropReason::BufferOverflow));
        }
        while self.location_service.octets + octets > capacity && self.location_service.pop_oldest().is_some() {
            self.counters.count_lost(DropReason::BufferOverflow);
        }
        self.location_service.push(Waiting { destination: sought, request: request.clone(), since: now });
        self.counters.taken += 1;
        if !known {
            self.ask(now, sought, 0);
        }
        Ok(())
    }

    /// Repeats requests or gives up (10.3.7.1.3).
    pub(super) fn repeat_due_searches(&mut self, now: Mono) {
        while let Some(sought) = self.location_service.first_due(now) {
            let retransmitted = self.location_service.searches.get(&sought).map_or(0, |search| search.retransmitted);
            if retransmitted >= self.mib.location_service_max_retrans {
                self.give_up(sought);
            } else {
                self.ask(now, sought, retransmitted + 1);
            }
        }
        self.expire_waiting(now);
    }

    /// Sends the packets that waited for a station whose position is now known (10.3.7.1.4, and step "flush LS buffer"
    /// of every packet).
    pub(super) fn flush_waiting(&mut self, now: Mono, address: GnAddress) {
        let sought = self.location_service.searches.contains_key(&address);
        let Some(destination) = self.located(now, address).filter(|_| sought) else { return };
        for waiting in self.location_service.take(address) {
            let made = self.make_guc(now, HeaderType::GeoUnicast, &waiting.request, destination);
            let sent = made.map(|(pdu, route)| self.dispatch_taken(now, pdu.created_at(waiting.since), route, None));
            match sent {
                Ok(Ok(())) => {}
                Ok(Err(reason)) => self.counters.count_lost(reason),
                Err(_) => self.counters.count_lost(DropReason::OwnPositionUnknown),
            }
        }
    }

    /// Processes a location request for this station (10.3.7.3) or for other stations (10.3.7.2).
    pub(super) fn receive_location_request(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        header: &LsRequestHeader,
    ) -> Result<Outcome, DropReason> {
        if header.sought != self.address {
            return self.forward(now, link, packet, Route::Broadcast).map(|()| Outcome::Relayed);
        }
        self.reply(now, header)?;
        Ok(Outcome::LocationService)
    }

    /// Processes a location reply. One for this station has already updated the table; one for another station is
    /// forwarded as a GUC packet.
    pub(super) fn receive_location_reply(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        header: &GucHeader,
    ) -> Result<Outcome, DropReason> {
        if header.destination.address == self.address {
            return Ok(Outcome::LocationService);
        }
        self.forward_unicast(now, link, packet, header).map(|()| Outcome::Relayed)
    }

    fn reply(&mut self, now: Mono, asked: &LsRequestHeader) -> Result<(), DropReason> {
        let request = self.own_request();
        let destination = self.located(now, asked.source.address).unwrap_or(asked.source.short());
        let (pdu, route) = match self.make_guc(now, HeaderType::LocationReply, &request, destination) {
            Ok(reply) => reply,
            Err(SendError::NotSent(reason)) => return Err(reason),
            Err(_) => return Err(DropReason::OwnPositionUnknown),
        };
        self.dispatch(now, pdu, route, None)?;
        self.counters.location_replies_sent += 1;
        Ok(())
    }

    fn ask(&mut self, now: Mono, sought: GnAddress, retransmitted: u8) {
        let due = now.plus(self.mib.location_service_retransmit_timer);
        self.location_service.searches.insert(sought, Search { due, retransmitted });
        let Some(source) = self.position_vector() else { return };
        let request = self.own_request();
        let sequence_number = self.sequence.take();
        let mut octets = self.begin_packet(HeaderType::LocationRequest, self.mib.default_hop_limit, &request);
        LsRequestHeader { sequence_number, source, sought }.write(&mut octets);
        let pdu = Pdu::own(octets, now, &request, Some((source.address, sequence_number)));
        // A request that could not be sent is repeated as if it had not been answered.
        if self.dispatch(now, pdu, Route::Broadcast, None).is_ok() {
            self.counters.location_requests_sent += 1;
        }
    }

    fn give_up(&mut self, sought: GnAddress) {
        for _ in self.location_service.take(sought) {
            self.counters.count_lost(DropReason::NotLocated);
        }
    }

    fn expire_waiting(&mut self, now: Mono) {
        let before = self.location_service.waiting.len();
        self.location_service.waiting.retain(|waiting| waiting.expires() > now);
        for _ in self.location_service.waiting.len()..before {
            self.counters.count_lost(DropReason::LifetimeExpired);
        }
        let octets = self.location_service.waiting.iter().map(|waiting| waiting.request.payload.len());
        self.location_service.octets = octets.sum();
    }
}
