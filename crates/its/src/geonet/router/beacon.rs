//! Beacon service, EN 302 636-4-1, clause 10.3.6: a station that sends nothing else announces its position.

use viaduct_units::Mono;

use super::{Router, pdu::Pdu};
use crate::{access::MacAddress, geonet::HeaderType, limits::TRANSMITS_MAX};

impl Router {
    /// Schedules the first beacon at once (10.3.6.2), except for a jitter, since stations may start together.
    pub(super) fn start_beacons(&mut self, now: Mono) {
        if self.settings.beacons && self.beacon_due.is_none() {
            let jitter = self.random.duration_up_to(self.mib.beacon_service_max_jitter);
            self.beacon_due = Some(now.plus(jitter));
        }
    }

    /// Postpones the next beacon. To be called for each packet that contains the own position (10.3.6.2, 10.3.10.2).
    pub(super) fn restart_beacon_timer(&mut self, now: Mono) {
        if self.beacon_due.is_some() {
            let jitter = self.random.duration_up_to(self.mib.beacon_service_max_jitter);
            self.beacon_due = Some(now.plus(self.mib.beacon_service_retransmit_timer + jitter));
        }
    }

    pub(super) fn send_due_beacon(&mut self, now: Mono) {
        if self.beacon_due.is_some_and(|due| due <= now) {
            self.send_beacon(now);
            self.restart_beacon_timer(now);
        }
    }

    fn send_beacon(&mut self, now: Mono) {
        let Some(source) = self.position_vector() else { return };
        if self.transmits.len() >= TRANSMITS_MAX {
            self.counters.beacons_skipped += 1;
            return;
        }
        let request = self.own_request();
        let mut octets = self.begin_packet(HeaderType::Beacon, 1, &request);
        source.write(&mut octets);
        let pdu = Pdu::own(octets, now, &request, None);
        self.transmits.extend(pdu.frame(now, self.link_address, MacAddress::BROADCAST));
        self.counters.beacons_sent += 1;
    }
}
