//! Duplicate address detection, EN 302 636-4-1, clause 10.2.1.5, and its distinction from own packets.
//!
//! A packet with the own source address was sent by another station with the same address, or is an own packet. An own
//! packet returns as an echo of the link (UDP multicast loops back) or from a forwarder. If an own packet were mistaken
//! for one of another station, it would be delivered and forwarded in circles.

use std::time::Duration;

use viaduct_units::Mono;

use super::Router;
use crate::{
    DropReason,
    access::{EthernetHeader, MacAddress},
    geonet::{GnAddress, Packet, mib::LocalGnAddrConfMethod, sequence_number::SequenceCounter},
    limits::ADDRESS_CHANGE_INTERVAL_MIN,
};

/// Bits of the first octet of a link address: individual (not group) and locally administered.
const GROUP_BIT: u8 = 0x01;
const LOCAL_BIT: u8 = 0x02;

/// Time after a change of the address within which an own packet without a sequence number is recognised. It is not
/// forwarded. A packet that was sent later is treated as one of another station.
const ECHO_TIME_MAX: Duration = ADDRESS_CHANGE_INTERVAL_MIN;

/// The previous address of the station; older ones are not stored. Own packets with it may still be received, for
/// as long as a packet lives. All other packets with it are from another station.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormerAddress {
    /// The GeoNetworking address.
    address: GnAddress,
    /// The address on the link.
    link_address: MacAddress,
    /// Sequence numbers used with the address.
    sequence: SequenceCounter,
    /// Time at which the address was changed.
    left: Mono,
}

impl FormerAddress {
    /// Returns `true` if the station itself sent the packet with this address.
    fn sent(&self, now: Mono, link: &EthernetHeader, packet: &Packet<'_>, lifetime: Duration) -> bool {
        let age = now.since(self.left);
        match packet.sequence_number() {
            Some(number) => age <= lifetime && self.sequence.was_used(number),
            None => age <= ECHO_TIME_MAX && link.source == self.link_address,
        }
    }
}

impl Router {
    /// Drops packets whose source address is the own address.
    pub(super) fn check_source(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
    ) -> Result<(), DropReason> {
        let source = packet.source().address;
        if source != self.address {
            let lifetime = self.mib.max_packet_lifetime.duration();
            let former = self.former_address.filter(|former| former.address == source);
            let own = former.is_some_and(|former| former.sent(now, link, packet, lifetime));
            return if own { Err(DropReason::OwnPacket) } else { Ok(()) };
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

    /// Changes an automatically configured address.
    fn change_address(&mut self, now: Mono) {
        let recently = self.former_address.is_some_and(|it| now.since(it.left) < ADDRESS_CHANGE_INTERVAL_MIN);
        if self.mib.local_gn_addr_conf_method != LocalGnAddrConfMethod::Auto || recently {
            return;
        }
        self.former_address = Some(FormerAddress {
            address: self.address,
            link_address: self.link_address,
            sequence: self.sequence,
            left: now,
        });
        let [a, b, c, d, e, f, ..] = self.random.next_u64().to_be_bytes();
        self.link_address = MacAddress([a & !GROUP_BIT | LOCAL_BIT, b, c, d, e, f]);
        self.address = GnAddress::automatic(self.settings.station_type, self.link_address);
        self.counters.address_changes += 1;
    }
}
