//! The GeoAdhoc router, EN 302 636-4-1, clause 10. It decides for each packet whether to deliver, to forward, or to
//! drop it.
//!
//! The procedures of each packet type are in the file of its name. Shared procedures are in the files of the annexes:
//! `forwarding` (D, E.2, F.2), `contention` (E.3, F.3), `store_carry_forward` (8.5), `repetition` (J.2). This file
//! joins them.
//!
//! The router receives packets with parsed headers. Signatures are not verified yet: a signed packet that the policy
//! accepts is delivered, but not forwarded.

mod address_detection;
mod beacon;
mod buffer;
mod contention;
mod forwarding;
mod gac;
mod gbc;
mod guc;
mod location_service;
mod pdu;
mod repetition;
mod shb;
mod source;
mod store_carry_forward;
mod tsb;

use std::collections::VecDeque;

use viaduct_units::{Mono, Now, Rng, Tai};

pub(crate) use self::source::GnRequest;
use self::{
    address_detection::FormerAddress,
    buffer::{ContentionBuffer, PacketBuffer},
    location_service::LocationService,
    repetition::{Repeated, Repeating},
};
use super::{
    GnAddress, Mib, Packet, PacketBody,
    location_table::{LocationTable, PacketInfo},
    mib::LocalGnAddrConfMethod,
    sequence_number::SequenceCounter,
};
use crate::{
    Acceptance, Counters, Destination, DropReason, Ego, Repetition, StationSettings,
    access::{EthernetHeader, MacAddress},
    limits::TRANSMITS_MAX,
    send_error::SendError,
};

/// The outcome of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The packet is for this station. It may also be forwarded.
    Deliver,
    /// The packet is for other stations only, and was accepted for forwarding.
    Relayed,
    /// The packet is a beacon.
    Beacon,
    /// The packet is a location request for this station or a location reply.
    LocationService,
}

/// A router on one link.
#[derive(Debug)]
pub(crate) struct Router {
    settings: StationSettings,
    mib: Mib,
    /// Link address.
    link_address: MacAddress,
    /// Own GeoNetworking address.
    address: GnAddress,
    /// The previous address, if the station has changed it.
    former_address: Option<FormerAddress>,
    /// Position of the station, or `None` before the first [`Router::set_ego`].
    ego: Option<Ego>,
    random: Rng,
    sequence: SequenceCounter,
    table: LocationTable,
    location_service: LocationService,
    /// Packets for one station that wait for a neighbour (UC forwarding packet buffer).
    unicast: PacketBuffer,
    /// Packets for many stations that wait for a neighbour (BC forwarding packet buffer).
    broadcast: PacketBuffer,
    /// Packets that wait during contention (CBF packet buffer).
    contention: ContentionBuffer,
    /// Packets that are repeated, at most [`crate::limits::REPETITIONS_MAX`].
    repetitions: Vec<Repeating>,
    /// Time of the next beacon, if nothing else is sent before.
    beacon_due: Option<Mono>,
    /// Frames that wait to be sent, at most [`TRANSMITS_MAX`].
    transmits: VecDeque<Vec<u8>>,
    pub(crate) counters: Counters,
}

impl Router {
    pub(crate) fn new(settings: StationSettings, mib: Mib, seed: u64) -> Self {
        let address = match mib.local_gn_addr_conf_method {
            LocalGnAddrConfMethod::Auto => GnAddress::automatic(settings.station_type, settings.link_address),
            LocalGnAddrConfMethod::Managed => GnAddress::new(settings.station_type, settings.link_address),
        };
        Self {
            settings,
            link_address: settings.link_address,
            address,
            former_address: None,
            ego: None,
            random: Rng::new(seed),
            sequence: SequenceCounter::default(),
            table: LocationTable::default(),
            location_service: LocationService::default(),
            unicast: PacketBuffer::new(mib.uc_forwarding_packet_buffer_size),
            broadcast: PacketBuffer::new(mib.bc_forwarding_packet_buffer_size),
            contention: ContentionBuffer::new(mib.cbf_packet_buffer_size),
            repetitions: Vec::new(),
            beacon_due: None,
            transmits: VecDeque::new(),
            counters: Counters::default(),
            mib,
        }
    }

    pub(crate) fn start_sequence(&mut self, time: Tai) {
        self.sequence = SequenceCounter::starting_at(time);
    }

    pub(crate) const fn address(&self) -> GnAddress {
        self.address
    }

    pub(crate) const fn acceptance(&self) -> Acceptance {
        self.mib.acceptance
    }

    pub(crate) const fn table(&self) -> &LocationTable {
        &self.table
    }

    /// Returns the number of packets that were accepted for sending and are neither sent nor discarded.
    pub(crate) fn held(&self) -> usize {
        let waiting = self.location_service.len() + self.contention.packets().len();
        waiting + self.unicast.len() + self.broadcast.len()
    }

    pub(crate) fn set_ego(&mut self, now: Mono, ego: Ego) {
        self.ego = Some(ego);
        self.start_beacons(now);
    }

    /// Sends a packet (GN-DATA.request, annex J.2).
    pub(crate) fn send(
        &mut self,
        now: Mono,
        request: GnRequest,
        destination: Destination,
        repetition: Option<Repetition>,
    ) -> Result<(), SendError> {
        self.position_to_send()?;
        self.check_lifetime(&request)?;
        self.check_repetition(&request, destination, repetition)?;
        if self.transmits.len() >= TRANSMITS_MAX {
            return Err(SendError::QueueFull);
        }
        let what = self.send_to(now, request, destination)?;
        self.repeat(now, repetition, what);
        Ok(())
    }

    /// Processes a received packet.
    ///
    /// # Errors
    /// Returns the reason why the packet is dropped.
    pub(crate) fn handle(
        &mut self,
        now: Now,
        link: &EthernetHeader,
        packet: &Packet<'_>,
    ) -> Result<Outcome, DropReason> {
        let now = now.mono;
        self.check_link_destination(link)?;
        self.check_source(now, link, packet)?;
        self.check_duplicate(now, packet)?;
        self.update_location(now, packet);
        match &packet.body {
            PacketBody::Beacon(_) => Ok(Outcome::Beacon),
            PacketBody::SingleHopBroadcast { .. } => Ok(Outcome::Deliver),
            PacketBody::MultiHopBroadcast { .. } => self.receive_tsb(now, link, packet),
            PacketBody::GeoBroadcast { header, .. } => self.receive_gbc(now, link, packet, &header.area),
            PacketBody::GeoAnycast { header, .. } => self.receive_gac(now, link, packet, &header.area),
            PacketBody::GeoUnicast { header, .. } => self.receive_guc(now, link, packet, header),
            PacketBody::LocationRequest(header) => self.receive_location_request(now, link, packet, header),
            PacketBody::LocationReply(header) => self.receive_location_reply(now, link, packet, header),
        }
    }

    /// Does the work that is due.
    pub(crate) fn handle_timeout(&mut self, now: Mono) {
        self.send_due_contenders(now);
        self.expire_held(now);
        self.repeat_due_searches(now);
        self.repeat_due(now);
        self.send_due_beacon(now);
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmits.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Mono> {
        let due = [
            self.beacon_due,
            self.contention.packets().next_due(),
            self.unicast.next_due(),
            self.broadcast.next_due(),
            self.location_service.next_due(),
            self.next_repetition(),
        ];
        due.into_iter().flatten().min()
    }

    fn send_to(&mut self, now: Mono, request: GnRequest, destination: Destination) -> Result<Repeated, SendError> {
        let (pdu, route) = match destination {
            Destination::SingleHop => {
                self.send_shb(now, &request)?;
                return Ok(Repeated::Request(request, destination));
            }
            Destination::Station(address) => {
                self.send_guc(now, &request, address)?;
                return Ok(Repeated::Request(request, destination));
            }
            Destination::Hops(hops) => self.make_tsb(now, &request, hops)?,
            Destination::Area(area) => self.make_gbc(now, &request, area)?,
            Destination::AnyIn(area) => self.make_gac(now, &request, area)?,
        };
        self.emit(now, pdu.clone(), route)?;
        Ok(Repeated::Packet(pdu, route))
    }

    fn check_lifetime(&self, request: &GnRequest) -> Result<(), SendError> {
        let (lifetime, maximum) = (request.lifetime.duration(), self.mib.max_packet_lifetime.duration());
        if lifetime.is_zero() || lifetime > maximum {
            return Err(SendError::Lifetime { lifetime, maximum });
        }
        Ok(())
    }

    /// Drops frames for other link addresses, which a promiscuous link receives too.
    fn check_link_destination(&self, link: &EthernetHeader) -> Result<(), DropReason> {
        let for_me = link.destination == self.link_address || link.destination.is_group();
        if for_me { Ok(()) } else { Err(DropReason::OtherLinkDestination) }
    }

    /// Detects duplicates (annex A.2). A duplicate of a packet that contends here ends its contention (annexes E.3 and
    /// F.3).
    fn check_duplicate(&mut self, now: Mono, packet: &Packet<'_>) -> Result<(), DropReason> {
        let source = packet.source().address;
        let Some(number) = packet.sequence_number() else { return Ok(()) };
        // A contending packet is recognised even if its source was evicted from the location table.
        let contends = self.suppress((source, number));
        if contends || self.table.is_duplicate(now, source, number) { Err(DropReason::Duplicate) } else { Ok(()) }
    }

    /// Updates the location table from a packet's source, and sends the packets that waited for its position.
    fn update_location(&mut self, now: Mono, packet: &Packet<'_>) {
        let sequence_number = packet.sequence_number();
        let is_direct = sequence_number.is_none();
        let info = PacketInfo { source: packet.source(), sequence_number, octets: packet.octets.len() };
        self.table.update(now, &self.mib, info, is_direct);
        self.flush_waiting(now, packet.source().address);
        if is_direct {
            self.retry_held(now, packet.source().position);
        }
    }
}
