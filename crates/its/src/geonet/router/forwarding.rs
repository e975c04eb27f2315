//! Forwarding, EN 302 636-4-1, annexes D, E.2 and F.2: which way a packet goes next.

use std::time::Duration;

use viaduct_units::{Metres, Mono, Position};

use super::{
    Outcome, Router,
    pdu::{Pdu, Route},
};
use crate::{
    DropReason,
    access::{EthernetHeader, MacAddress},
    geonet::{
        Area, Packet,
        location_table::Neighbour,
        mib::{AreaForwardingAlgorithm, NonAreaForwardingAlgorithm},
    },
    limits::TRANSMITS_MAX,
};

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Put it into a frame for that link address.
    Transmit(MacAddress),
    /// Carry it until there is somebody to give it to.
    Keep,
    /// Wait that long whether another station sends it first.
    Contend(Duration),
}

impl Router {
    /// Takes a packet on its way.
    ///
    /// # Errors
    /// Why it has none.
    pub(super) fn dispatch(
        &mut self,
        now: Mono,
        pdu: Pdu,
        route: Route,
        sender: Option<Position>,
    ) -> Result<(), DropReason> {
        self.dispatch_taken(now, pdu, route, sender)?;
        self.counters.taken += 1;
        Ok(())
    }

    /// The same for a packet that was taken before.
    pub(super) fn dispatch_taken(
        &mut self,
        now: Mono,
        pdu: Pdu,
        route: Route,
        sender: Option<Position>,
    ) -> Result<(), DropReason> {
        let verdict = self.decide(now, &pdu, &route, sender)?;
        self.carry_out(now, verdict, pdu, route)
    }

    /// Sends a received packet on (forwarder operations of 10.3.8.3, 10.3.9.3, 10.3.11.3, 10.3.12.3 and 10.3.7.2).
    pub(super) fn forward(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        route: Route,
    ) -> Result<(), DropReason> {
        let pdu = self.pdu_to_forward(now, packet)?;
        let sender = self.accurate_sender(now, link);
        self.dispatch(now, pdu, route, sender)
    }

    /// A received packet as it is sent on, if it may be.
    pub(super) fn pdu_to_forward(&self, now: Mono, packet: &Packet<'_>) -> Result<Pdu, DropReason> {
        if self.table.is_too_fast(now, packet.source().address, &self.mib) {
            return Err(DropReason::SourceTooFast);
        }
        Pdu::received(packet, now)
    }

    /// Where the station is that sent a frame, if it says so accurately (PV_SE, PAI_SE).
    pub(super) fn accurate_sender(&self, now: Mono, link: &EthernetHeader) -> Option<Position> {
        let vector = self.table.by_link(now, link.source)?.position_vector;
        vector.position.filter(|_| vector.position_accurate)
    }

    /// A packet that is for this station too: that it is not forwarded does not make it a drop.
    pub(super) fn delivered_and(&mut self, forwarded: Result<(), DropReason>) -> Result<Outcome, DropReason> {
        if let Err(reason) = forwarded {
            self.counters.count_not_forwarded(reason);
        }
        Ok(Outcome::Deliver)
    }

    /// Annex D, after the step "no neighbour and SCF: keep" that all source and forwarder operations have.
    pub(super) fn decide(
        &self,
        now: Mono,
        pdu: &Pdu,
        route: &Route,
        sender: Option<Position>,
    ) -> Result<Verdict, DropReason> {
        if pdu.class.store_carry_forward() && !self.table.has_neighbour(now) {
            return Ok(Verdict::Keep);
        }
        match route {
            Route::Everybody => Ok(Verdict::Transmit(MacAddress::BROADCAST)),
            Route::Towards(destination) => self.non_area(now, pdu, *destination, sender),
            Route::Area(area) => self.to_area(now, pdu, area, sender),
        }
    }

    /// Annex D: inside the area it spreads; outside it travels towards it, unless it was inside already.
    fn to_area(&self, now: Mono, pdu: &Pdu, area: &Area, sender: Option<Position>) -> Result<Verdict, DropReason> {
        if area.contains(self.own_position()?) {
            return Ok(self.within_area(pdu, sender));
        }
        if sender.is_some_and(|sender| area.contains(sender)) {
            return Err(DropReason::LeftArea);
        }
        self.non_area(now, pdu, area.centre, sender)
    }

    /// Annex F.
    fn within_area(&self, pdu: &Pdu, sender: Option<Position>) -> Verdict {
        match self.mib.area_forwarding_algorithm {
            AreaForwardingAlgorithm::Simple => Verdict::Transmit(MacAddress::BROADCAST),
            AreaForwardingAlgorithm::ContentionBased => self.contend_in_area(pdu, sender),
        }
    }

    /// Annex E.
    fn non_area(
        &self,
        now: Mono,
        pdu: &Pdu,
        destination: Position,
        sender: Option<Position>,
    ) -> Result<Verdict, DropReason> {
        match self.mib.non_area_forwarding_algorithm {
            NonAreaForwardingAlgorithm::Greedy => self.greedy(now, pdu, destination),
            NonAreaForwardingAlgorithm::ContentionBased => self.contend_outside(pdu, destination, sender),
        }
    }

    /// Annex E.2: to the neighbour with the most progress. Where none has any, the packet is kept if it may be, and is sent
    /// to everybody otherwise.
    fn greedy(&self, now: Mono, pdu: &Pdu, destination: Position) -> Result<Verdict, DropReason> {
        let own = self.own_position()?;
        let own_m = own.distance(destination).value();
        let reachable = self.table.neighbours(now).filter(|neighbour| self.is_reachable(now, own, neighbour));
        let distances = reachable.map(|neighbour| (neighbour.link, neighbour.position.distance(destination).value()));
        let nearest = distances.filter(|(_, metres)| *metres < own_m).min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(match nearest {
            Some((link, _)) => Verdict::Transmit(link),
            None if pdu.class.store_carry_forward() => Verdict::Keep,
            None => Verdict::Transmit(MacAddress::BROADCAST),
        })
    }

    /// Own addition to annex E.2, off unless it is set: whether a packet for that neighbour is likely to arrive there.
    fn is_reachable(&self, now: Mono, own: Position, neighbour: &Neighbour) -> bool {
        let recent = self.mib.greedy_neighbour_age_max.is_none_or(|most| now.since(neighbour.heard) <= most);
        let near = |most: Metres| neighbour.position.distance(own).value() <= most.value();
        recent && self.mib.greedy_neighbour_distance_max.is_none_or(near)
    }

    pub(super) fn carry_out(&mut self, now: Mono, verdict: Verdict, pdu: Pdu, route: Route) -> Result<(), DropReason> {
        match verdict {
            Verdict::Transmit(link) => self.transmit(now, &pdu, link),
            Verdict::Keep => self.keep(pdu, route),
            Verdict::Contend(delay) => self.contend(now.plus(delay), pdu, route),
        }
    }

    pub(super) fn transmit(&mut self, now: Mono, pdu: &Pdu, link: MacAddress) -> Result<(), DropReason> {
        if self.transmits.len() >= TRANSMITS_MAX {
            return Err(DropReason::TransmitQueueFull);
        }
        let frame = pdu.frame(now, self.link_address, link).ok_or(DropReason::LifetimeExpired)?;
        self.transmits.push_back(frame);
        self.counters.transmitted += 1;
        if !pdu.own {
            self.counters.forwarded += 1;
        }
        Ok(())
    }

    pub(super) fn own_position(&self) -> Result<Position, DropReason> {
        self.ego.map(|ego| ego.position).ok_or(DropReason::OwnPositionUnknown)
    }
}
