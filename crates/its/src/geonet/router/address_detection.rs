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

/// The address that the station had before. Own packets with it are still on their way, as long as a packet lives; after that, and
/// where they are not own ones, it is that of another station.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormerAddress {
    address: GnAddress,
    link_address: MacAddress,
    /// When the station gave it up.
    left: Mono,
}

impl Router {
    /// Drops packets whose source has the own address.
    pub(super) fn check_source(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
    ) -> Result<(), DropReason> {
        let source = packet.source().address;
        if source == self.address {
            if self.is_own(link, packet, self.link_address) {
                return Err(DropReason::OwnPacket);
            }
            self.change_address(now);
            return Err(DropReason::DuplicateAddress);
        }
        let lifetime = self.mib.max_packet_lifetime.duration();
        let former = self.former_address.filter(|it| it.address == source && now.since(it.left) <= lifetime);
        if former.is_some_and(|former| self.is_own(link, packet, former.link_address)) {
            return Err(DropReason::OwnPacket);
        }
        Ok(())
    }

    /// Whether a packet from an own address is an own one: by its number, or where it has none, by where it comes from.
    fn is_own(&self, link: &EthernetHeader, packet: &Packet<'_>, link_address: MacAddress) -> bool {
        packet.sequence_number().map_or_else(|| link.source == link_address, |number| self.sequence.was_used(number))
    }

    /// A station that made its address itself makes another one.
    fn change_address(&mut self, now: Mono) {
        let recently = self.former_address.is_some_and(|it| now.since(it.left) < ADDRESS_CHANGE_INTERVAL_MIN);
        if self.mib.local_gn_addr_conf_method != LocalGnAddrConfMethod::Auto || recently {
            return;
        }
        self.former_address = Some(FormerAddress { address: self.address, link_address: self.link_address, left: now });
        let [a, b, c, d, e, f, ..] = self.random.next().to_be_bytes();
        self.link_address = MacAddress([a & !GROUP_BIT | LOCAL_BIT, b, c, d, e, f]);
        self.address = GnAddress::automatic(self.settings.station_type, self.link_address);
        self.counters.address_changes += 1;
    }
}
