//! Duplicate address detection, EN 302 636-4-1, clause 10.2.1.5, and what keeps own packets apart from it.
//!
//! A packet with the own address comes from somebody else who has it, or it is an own one: heard again from the link (UDP
//! multicast loops back), or sent back by a forwarder. Taken for another's, an own one would be delivered and forwarded in
//! circles.

use std::time::Duration;

use viaduct_units::Mono;

use super::Router;
use crate::{
    DropReason,
    access::{EthernetHeader, MacAddress},
    geonet::{GnAddress, Packet, mib::LocalGnAddrConfMethod, sequence_number::SequenceCounter},
    limits::ADDRESS_CHANGE_INTERVAL_MIN,
};

/// Bits of the first octet of a link address: an individual (not a group) address that is administered locally.
const GROUP_BIT: u8 = 0x01;
const LOCAL_BIT: u8 = 0x02;

/// How long after a change of the address an own packet without a number may come back: it is not forwarded. One that waited for longer
/// before it was sent is taken for another's.
const ECHO_TIME_MAX: Duration = ADDRESS_CHANGE_INTERVAL_MIN;

/// The address that the station had before; of the ones before that it knows nothing. Own packets with it are still on their way, as
/// long as a packet lives. Whatever else comes from it is another station's.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormerAddress {
    /// The GeoNetworking address.
    address: GnAddress,
    /// The address on the link.
    link_address: MacAddress,
    /// The numbers that were used with it.
    sequence: SequenceCounter,
    /// When the station gave it up.
    left: Mono,
}

impl FormerAddress {
    /// Whether a packet from it is an own one.
    fn sent(&self, now: Mono, link: &EthernetHeader, packet: &Packet<'_>, lifetime: Duration) -> bool {
        let age = now.since(self.left);
        match packet.sequence_number() {
            Some(number) => age <= lifetime && self.sequence.was_used(number),
            None => age <= ECHO_TIME_MAX && link.source == self.link_address,
        }
    }
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

    /// A station that made its address itself makes another one.
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
