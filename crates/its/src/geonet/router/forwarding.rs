//! Forwarding, EN 302 636-4-1, annexes D, E.2 and F.2: selection of the next hop.

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

/// The forwarding decision for a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decision {
    /// Send it to the given link address.
    Transmit(MacAddress),
    /// Store it until there is a suitable neighbour.
    Store,
    /// Wait for the given time, unless another station sends the packet first.
    Contend(Duration),
}

impl Router {
    /// Accepts an outgoing packet: sends, stores or contends.
    ///
    /// # Errors
    /// Returns the reason why the packet is neither sent nor stored.
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

    /// Sends, stores or contends for a packet that is already counted as accepted; otherwise like [`Self::dispatch`].
    pub(super) fn dispatch_taken(
        &mut self,
        now: Mono,
        pdu: Pdu,
        route: Route,
        sender: Option<Position>,
    ) -> Result<(), DropReason> {
        let decision = self.decide(now, &pdu, &route, sender)?;
        self.execute(now, decision, pdu, route)
    }

    /// Forwards a received packet (forwarder operations of 10.3.8.3, 10.3.9.3, 10.3.11.3, 10.3.12.3 and 10.3.7.2).
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

    /// Returns a received packet as it is to be forwarded, if it may be.
    pub(super) fn pdu_to_forward(&self, now: Mono, packet: &Packet<'_>) -> Result<Pdu, DropReason> {
        if self.table.is_too_fast(now, packet.source().address, &self.mib) {
            return Err(DropReason::SourceTooFast);
        }
        Pdu::received(packet, now)
    }

    /// Returns the position of the frame's sender, if it is known and accurate (PV_SE, PAI_SE).
    pub(super) fn accurate_sender(&self, now: Mono, link: &EthernetHeader) -> Option<Position> {
        let vector = self.table.by_link(now, link.source)?.position_vector;
        vector.position.filter(|_| vector.position_accurate)
    }

    /// Counts the result of forwarding a packet that is also delivered: if it is not forwarded, it is not a drop.
    pub(super) fn delivered_and(&mut self, forwarded: Result<(), DropReason>) -> Result<Outcome, DropReason> {
        if let Err(reason) = forwarded {
            self.counters.count_not_forwarded(reason);
        }
        Ok(Outcome::Deliver)
    }

    /// Decides by annex D. The step "no neighbour and SCF: store", common to all source and forwarder operations, is
    /// done before.
    pub(super) fn decide(
        &self,
        now: Mono,
        pdu: &Pdu,
        route: &Route,
        sender: Option<Position>,
    ) -> Result<Decision, DropReason> {
        if pdu.class.store_carry_forward() && !self.table.has_neighbour(now) {
            return Ok(Decision::Store);
        }
        match route {
            Route::Broadcast => Ok(Decision::Transmit(MacAddress::BROADCAST)),
            Route::Towards(destination) => self.non_area(now, pdu, *destination, sender),
            Route::Area(area) => self.to_area(now, pdu, area, sender),
        }
    }

    /// Decides by annex D: inside the area the packet spreads; outside it travels towards the area, unless its sender
    /// was inside.
    fn to_area(&self, now: Mono, pdu: &Pdu, area: &Area, sender: Option<Position>) -> Result<Decision, DropReason> {
        if area.contains(self.own_position()?) {
            return Ok(self.within_area(pdu, sender));
        }
        if sender.is_some_and(|sender| area.contains(sender)) {
            return Err(DropReason::LeftArea);
        }
        self.non_area(now, pdu, area.centre, sender)
    }

    /// Decides by annex F.
    fn within_area(&self, pdu: &Pdu, sender: Option<Position>) -> Decision {
        match self.mib.area_forwarding_algorithm {
            AreaForwardingAlgorithm::Simple => Decision::Transmit(MacAddress::BROADCAST),
            AreaForwardingAlgorithm::ContentionBased => self.contend_in_area(pdu, sender),
        }
    }

    /// Decides by annex E.
    fn non_area(
        &self,
        now: Mono,
        pdu: &Pdu,
        destination: Position,
        sender: Option<Position>,
    ) -> Result<Decision, DropReason> {
        match self.mib.non_area_forwarding_algorithm {
            NonAreaForwardingAlgorithm::Greedy => self.greedy(now, pdu, destination),
            NonAreaForwardingAlgorithm::ContentionBased => self.contend_outside(pdu, destination, sender),
        }
    }

    /// Decides by annex E.2: to the neighbour with the most progress. If there is none, the packet is stored if
    /// permitted, else broadcast.
    fn greedy(&self, now: Mono, pdu: &Pdu, destination: Position) -> Result<Decision, DropReason> {
        let own = self.own_position()?;
        let own_m = own.distance(destination).value();
        let reachable = self.table.neighbours(now).filter(|neighbour| self.is_reachable(now, own, neighbour));
        let distances = reachable.map(|neighbour| (neighbour.link, neighbour.position.distance(destination).value()));
        let nearest = distances.filter(|(_, metres)| *metres < own_m).min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(match nearest {
            Some((link, _)) => Decision::Transmit(link),
            None if pdu.class.store_carry_forward() => Decision::Store,
            None => Decision::Transmit(MacAddress::BROADCAST),
        })
    }

    /// Returns `true` if a packet is likely to reach the neighbour. This check is not part of annex E.2, and is off by
    /// default.
    fn is_reachable(&self, now: Mono, own: Position, neighbour: &Neighbour) -> bool {
        let recent = self.mib.greedy_neighbour_age_max.is_none_or(|most| now.since(neighbour.last_direct) <= most);
        let near = |most: Metres| neighbour.position.distance(own).value() <= most.value();
        recent && self.mib.greedy_neighbour_distance_max.is_none_or(near)
    }

    pub(super) fn execute(&mut self, now: Mono, decision: Decision, pdu: Pdu, route: Route) -> Result<(), DropReason> {
        match decision {
            Decision::Transmit(link) => self.transmit(now, &pdu, link),
            Decision::Store => self.store(pdu, route),
            Decision::Contend(delay) => self.contend(now.plus(delay), pdu, route),
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
