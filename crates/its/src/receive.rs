//! One frame, from the link up to the facilities.

use bytes::Bytes;
use viaduct_units::Tai;

use crate::{
    DropReason,
    access::{ETHERTYPE_GEONETWORKING, EthernetHeader, MacAddress},
    btp::BtpHeader,
    facilities::{self, Message, MessageKind, Summary},
    geonet::{self, GnAddress, LongPositionVector, Packet, PacketBody, TrafficClass},
    limits::FRAME_OCTETS_MAX,
};

/// What a frame turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// It carries a message.
    Message(Box<Received>),
    /// It says where a station is.
    Beacon(BeaconReceived),
}

/// A received message with everything that was around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// When the frame was received.
    pub reception: Tai,
    /// Who sent the frame on the link.
    pub link_source: MacAddress,
    /// Where the packet's source was (SO PV), with its GeoNetworking address.
    pub source: LongPositionVector,
    /// Traffic class of the packet.
    pub traffic_class: TrafficClass,
    /// BTP destination port.
    pub btp_port: u16,
    /// Which message it is; it names the edition too.
    pub kind: MessageKind,
    /// What is known about the packet's signature.
    pub security: Security,
    /// The message's octets (UPER): a part of the frame, not a copy.
    pub payload: Bytes,
    /// The message decoded.
    pub message: Message,
    /// What nearly everybody asks for, in SI units.
    pub summary: Summary,
}

/// What is known about a packet's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// The packet has no security header.
    Unsecured,
}

/// A received beacon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeaconReceived {
    /// When the frame was received.
    pub reception: Tai,
    /// Who sent the frame on the link.
    pub link_source: MacAddress,
    /// Where the sender was, with its GeoNetworking address.
    pub source: LongPositionVector,
}

/// Decodes one Ethernet frame without a station; a message's payload shares the frame's buffer.
///
/// # Errors
/// Why a station would drop the frame.
pub fn decode_frame(reception: Tai, frame: &Bytes) -> Result<Frame, DropReason> {
    decode_unless_own(reception, frame, None)
}

/// Decodes one frame; one whose source is `own` is dropped before its payload is looked at.
pub(crate) fn decode_unless_own(reception: Tai, frame: &Bytes, own: Option<GnAddress>) -> Result<Frame, DropReason> {
    if frame.len() > FRAME_OCTETS_MAX {
        return Err(DropReason::FrameTooLong);
    }
    let (link, rest) = EthernetHeader::parse(frame).ok_or(DropReason::Truncated)?;
    if link.ethertype != ETHERTYPE_GEONETWORKING {
        return Err(DropReason::NotGeonetworking);
    }
    let packet = geonet::parse(rest, reception)?;
    if own == Some(packet.source().address) {
        return Err(DropReason::OwnPacket);
    }
    match packet.body {
        PacketBody::Beacon(source) => Ok(Frame::Beacon(BeaconReceived { reception, link_source: link.source, source })),
        PacketBody::SingleHopBroadcast { payload, .. } => {
            let received = decode_payload(reception, frame, link.source, &packet, payload)?;
            Ok(Frame::Message(Box::new(received)))
        }
    }
}

fn decode_payload(
    reception: Tai,
    frame: &Bytes,
    link_source: MacAddress,
    packet: &Packet<'_>,
    btp_packet: &[u8],
) -> Result<Received, DropReason> {
    let (btp, payload) = BtpHeader::parse(packet.common.next_header, btp_packet).ok_or(DropReason::BtpTruncated)?;
    let btp_port = btp.destination_port();
    let kind = facilities::kind_of(btp_port, payload)?;
    let message = Message::decode(kind, payload).map_err(|_| DropReason::UperInvalid)?;
    let summary = message.summary(reception);
    Ok(Received {
        reception,
        link_source,
        source: *packet.source(),
        traffic_class: packet.common.traffic_class,
        btp_port,
        kind,
        security: Security::Unsecured,
        payload: frame.slice_ref(payload),
        message,
        summary,
    })
}
