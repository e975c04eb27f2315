//! Duplicate address detection, EN 302 636-4-1, clause 10.2.1.5, and what keeps own packets apart from it.
//!
//! A packet with the own address comes from somebody else who has it, or it is an own one: heard again from the link (UDP
//! multicast loops back), or sent back by a forwarder. Taken for another's, an own one would be delivered and forwarded in
//! circles.

use viaduct_units::Mono;

use super::Router;
use crate::{
    DropReason,
    access::{EthernetHeader, MacAddress},
    geonet::{GnAddress, Packet, mib::LocalGnAddrConfMethod},
    limits::ADDRESS_CHANGE_INTERVAL_MIN,
};

/// Bits of the first octet of a link address: an individual (not a group) address that is administered locally.
const GROUP_BIT: u8 = 0x01;
const LOCAL_BIT: u8 = 0x02;

impl Router {
    /// Drops packets whose source has the own address.
    pub(super) fn check_source(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
    ) -> Result<(), DropReason> {
        let source = packet.source().address;
        if self.former_address == Some(source) {
            return Err(DropReason::OwnPacket);
        }
        if source != self.address {
            return Ok(());
        }
        let own = match packet.sequence_number() {
            Some(number) => self.sequence.was_used(number),
            None => link.source == self.link_address,
        };
        if own {
            return Err(DropReason::OwnPacket);
        }
        self.change_address(now);
        Err(DropReason::DuplicateAddress)
    }

    /// A station that made its address itself makes another one.
    fn change_address(&mut self, now: Mono) {
        let recently = self.address_changed.is_some_and(|then| now.since(then) < ADDRESS_CHANGE_INTERVAL_MIN);
        if self.mib.local_gn_addr_conf_method != LocalGnAddrConfMethod::Auto || recently {
            return;
        }
        let [a, b, c, d, e, f, ..] = self.random.next().to_be_bytes();
        self.link_address = MacAddress([a & !GROUP_BIT | LOCAL_BIT, b, c, d, e, f]);
        self.former_address = Some(self.address);
        self.address = GnAddress::automatic(self.settings.station_type, self.link_address);
        self.address_changed = Some(now);
        self.counters.address_changes += 1;
    }
}
