//! Contention-based forwarding (CBF), EN 302 636-4-1, annexes E.3 and F.3: the station with the most progress sends
//! first, and thereby suppresses the others.

use std::time::Duration;

use viaduct_units::{Metres, Mono, Position};

use super::{
    Router,
    forwarding::Decision,
    pdu::{PacketId, Pdu, Route},
};
use crate::{DropReason, access::MacAddress, limits::TRANSMITS_MAX};

impl Router {
    /// Decides by annex F.3: the farther from the sender, the shorter the wait. If the distance is unknown, the wait is
    /// longest.
    pub(super) fn contend_in_area(&self, pdu: &Pdu, sender: Option<Position>) -> Decision {
        if pdu.own {
            return Decision::Transmit(MacAddress::BROADCAST);
        }
        let accurate = self.ego.filter(|ego| ego.position_accurate);
        let distance = sender.zip(accurate).map(|(sender, ego)| sender.distance(ego.position));
        Decision::Contend(distance.map_or(self.mib.cbf_max_time, |distance| self.contention_time(distance)))
    }

    /// Decides by annex E.3: the larger the progress towards the destination, the shorter the wait. Stations without
    /// progress do not contend.
    pub(super) fn contend_outside(
        &self,
        pdu: &Pdu,
        destination: Position,
        sender: Option<Position>,
    ) -> Result<Decision, DropReason> {
        if pdu.own {
            return Ok(Decision::Transmit(MacAddress::BROADCAST));
        }
        let own = self.own_position()?;
        let Some(sender) = sender else { return Ok(Decision::Contend(self.mib.cbf_max_time)) };
        let progress = sender.distance(destination) - own.distance(destination);
        if progress.value() > 0.0 {
            Ok(Decision::Contend(self.contention_time(progress)))
        } else {
            Err(DropReason::NoProgress)
        }
    }

    /// Returns TO: from `itsGnCbfMaxTime` next to the sender down to `itsGnCbfMinTime` at the end of its range (annex
    /// F.3).
    fn contention_time(&self, distance: Metres) -> Duration {
        let (shortest, longest) = (self.mib.cbf_min_time, self.mib.cbf_max_time.max(self.mib.cbf_min_time));
        let part = distance.value() / self.mib.default_max_communication_range.value();
        // NaN if the range is set to 0: then each station is at its end.
        let part = if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) };
        longest - (longest - shortest).mul_f64(part)
    }

    /// Stores a packet in the CBF packet buffer. Removes the oldest ones if there is no room.
    pub(super) fn contend(&mut self, due: Mono, pdu: Pdu, route: Route) -> Result<(), DropReason> {
        let id =
            pdu.id.filter(|_| !self.contention.packets().is_too_small_for(&pdu)).ok_or(DropReason::BufferOverflow)?;
        while !self.contention.packets().has_room_for(&pdu) && self.contention.pop_oldest().is_some() {
            self.counters.count_lost(DropReason::BufferOverflow);
        }
        self.contention.push(due, pdu, route, id);
        Ok(())
    }

    /// Removes a packet that another station has sent. Returns `true` if it was in contention here.
    pub(super) fn suppress(&mut self, id: PacketId) -> bool {
        let contended = self.contention.take(id).is_some();
        self.counters.suppressed += u64::from(contended);
        contended
    }

    /// Sends the packets whose contention has ended, as long as the transmit queue has room.
    pub(super) fn send_due_contenders(&mut self, now: Mono) {
        while self.transmits.len() < TRANSMITS_MAX {
            let Some(held) = self.contention.pop_due(now) else { return };
            if let Err(reason) = self.transmit(now, &held.pdu, MacAddress::BROADCAST) {
                self.counters.count_lost(reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::StationType;

    use super::*;
    use crate::{StationSettings, geonet::Mib};

    fn router(mib: Mib) -> Router {
        let settings = StationSettings {
            link_address: MacAddress::default(),
            station_type: StationType::PASSENGER_CAR,
            mobile: true,
            beacons: false,
        };
        Router::new(settings, mib, 0)
    }

    #[test]
    fn farther_stations_forward_sooner() {
        let router = router(Mib::default());
        for (metres, micros) in [(0.0, 100_000), (500.0, 50_500), (1000.0, 1000), (5000.0, 1000), (-1.0, 100_000)] {
            let time = router.contention_time(Metres(metres));
            assert_eq!(time, Duration::from_micros(micros), "{metres} m");
        }
    }

    #[test]
    fn invalid_ranges_and_times_do_not_panic() {
        let none = Mib { default_max_communication_range: Metres(0.0), ..Mib::default() };
        assert_eq!(router(none).contention_time(Metres(0.0)), none.cbf_min_time);
        let reversed = Mib { cbf_max_time: Duration::ZERO, ..Mib::default() };
        assert_eq!(router(reversed).contention_time(Metres(3.0)), reversed.cbf_min_time);
    }
}
