//! Store, carry and forward, EN 302 636-4-1, clause 8.5: packets without a suitable neighbour.

use viaduct_units::{Mono, Position};

use super::{
    Router,
    buffer::PacketBuffer,
    forwarding::Decision,
    pdu::{Pdu, Route},
};
use crate::{
    DropReason,
    limits::{HELD_RETRIES_MAX, TRANSMITS_MAX},
};

impl Router {
    /// Stores a packet in the UC or BC forwarding packet buffer (clause 8.5). Removes the oldest ones if there is no
    /// room.
    pub(super) fn store(&mut self, pdu: Pdu, route: Route) -> Result<(), DropReason> {
        let buffer = if matches!(route, Route::Towards(_)) { &mut self.unicast } else { &mut self.broadcast };
        if buffer.is_too_small_for(&pdu) {
            return Err(DropReason::BufferOverflow);
        }
        while !buffer.has_room_for(&pdu) && buffer.pop_oldest().is_some() {
            self.counters.count_lost(DropReason::BufferOverflow);
        }
        buffer.push(pdu.expires(), pdu, route);
        Ok(())
    }

    /// Reconsiders stored packets after a frame of a neighbour (clause 8.5).
    pub(super) fn retry_held(&mut self, now: Mono, neighbour: Option<Position>) {
        for number in self.broadcast.round(HELD_RETRIES_MAX) {
            self.retry(now, neighbour, |router| &mut router.broadcast, number);
        }
        for number in self.unicast.round(HELD_RETRIES_MAX) {
            self.retry(now, neighbour, |router| &mut router.unicast, number);
        }
    }

    fn retry(
        &mut self,
        now: Mono,
        neighbour: Option<Position>,
        buffer: fn(&mut Self) -> &mut PacketBuffer,
        number: u64,
    ) {
        if self.transmits.len() >= TRANSMITS_MAX {
            return;
        }
        let Some(route) = buffer(self).get(number).map(|held| held.route) else { return };
        if !self.is_helpful(neighbour, &route) {
            return;
        }
        let Some(pdu) = buffer(self).get(number).map(|held| held.pdu.clone()) else { return };
        let decision = self.decide(now, &pdu, &route, None);
        if decision == Ok(Decision::Store) {
            return;
        }
        buffer(self).remove(number);
        if let Err(reason) = decision.and_then(|decision| self.execute(now, decision, pdu, route)) {
            self.counters.count_lost(reason);
        }
    }

    /// Returns `true` if the neighbour may change the decision about a packet. This check is cheaper than the decision.
    fn is_helpful(&self, neighbour: Option<Position>, route: &Route) -> bool {
        let destination = match route {
            Route::Broadcast => return true,
            Route::Towards(destination) => *destination,
            Route::Area(area) if self.is_for_me(area) => return true,
            Route::Area(area) => area.centre,
        };
        let own = self.ego.map(|ego| ego.position);
        neighbour
            .zip(own)
            .is_some_and(|(neighbour, own)| neighbour.distance(destination).value() < own.distance(destination).value())
    }

    /// Discards packets whose lifetime has ended.
    pub(super) fn expire_held(&mut self, now: Mono) {
        for buffer in [&mut self.unicast, &mut self.broadcast] {
            while buffer.pop_due(now).is_some() {
                self.counters.count_lost(DropReason::LifetimeExpired);
            }
        }
    }
}
