//! One frame, from the link up to the facilities.

use std::{fmt, time::Duration};

use bytes::Bytes;
use viaduct_etsi::UperError;
use viaduct_units::Tai;

use crate::{
    Acceptance, Destination, DropReason, SecurityPolicy,
    access::{ETHERTYPE_GEONETWORKING, EthernetHeader, MacAddress},
    btp::BtpHeader,
    facilities::{self, Message, MessageKind, Summary},
    geonet::{self, CommonNextHeader, GnAddress, LongPositionVector, Packet, PacketBody, SequenceNumber, TrafficClass},
    limits::FRAME_OCTETS_MAX,
    security::Security,
};

/// The decoded content of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// A message.
    Message(Box<Received>),
    /// A beacon: the position of its sender.
    Beacon(BeaconReceived),
    /// A location request or reply.
    LocationService(LocationServiceReceived),
}

/// A received message with the data of all layers below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Time at which the frame was received.
    pub reception: Tai,
    /// Link address of the frame's sender: the source, or the last forwarder.
    pub link_source: MacAddress,
    /// Position vector of the packet's source (SO PV), with its GeoNetworking address.
    pub source: LongPositionVector,
    /// Destination of the packet, which also identifies the packet type: SHB, TSB, GBC, GAC or GUC.
    pub destination: Destination,
    /// Sequence number of the packet, or `None` for a single-hop broadcast.
    pub sequence_number: Option<SequenceNumber>,
    /// Version of GeoNetworking, 0 or 1.
    pub version: u8,
    /// Number of hops before the one to this station, 0 if the source itself sent the frame.
    pub hops_before: u8,
    /// Remaining hop limit (RHL).
    pub remaining_hops: u8,
    /// Maximum hop limit, set by the source (MHL).
    pub maximum_hops: u8,
    /// Time for which the packet may still travel.
    pub remaining_lifetime: Duration,
    /// Traffic class of the packet.
    pub traffic_class: TrafficClass,
    /// BTP header, of type A or B.
    pub btp: BtpHeader,
    /// BTP destination port.
    pub btp_port: u16,
    /// Kind of the message, which also identifies the edition.
    pub kind: MessageKind,
    /// Security of the packet.
    pub security: Security,
    /// The message in UPER: a slice of the frame, not a copy.
    pub payload: Bytes,
    /// The decoded message.
    pub message: Message,
    /// The most used values of the message, in SI units.
    pub summary: Summary,
}

/// A received beacon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeaconReceived {
    /// Time at which the frame was received.
    pub reception: Tai,
    /// Link address of the frame's sender.
    pub link_source: MacAddress,
    /// Position vector of the sender, with its GeoNetworking address.
    pub source: LongPositionVector,
}

/// A received packet of the location service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocationServiceReceived {
    /// Time at which the frame was received.
    pub reception: Tai,
    /// Link address of the frame's sender.
    pub link_source: MacAddress,
    /// Position vector of the packet's source: the requesting station of a request, the sought station of a reply.
    pub source: LongPositionVector,
    /// Address of the sought station in a request, of the requesting station in a reply.
    pub about: GnAddress,
    /// `true` for a reply, `false` for a request.
    pub reply: bool,
}

impl fmt::Display for BeaconReceived {
    /// Formats the frame as a phrase for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a beacon of station {}, {}, from {}",
            self.source.address,
            PositionText(&self.source),
            self.link_source
        )
    }
}

impl fmt::Display for LocationServiceReceived {
    /// Formats the frame as a phrase for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, about) = (self.source.address, self.about);
        if self.reply {
            write!(f, "a location reply of station {source}, {}, to station {about}", PositionText(&self.source))?;
        } else {
            write!(f, "a location request of station {source}, {}, for station {about}", PositionText(&self.source))?;
        }
        write!(f, ", from {}", self.link_source)
    }
}

/// Formats a position for people.
struct PositionText<'a>(&'a LongPositionVector);

impl fmt::Display for PositionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.position {
            Some(position) => write!(f, "at {}, {}", position.latitude.value(), position.longitude.value()),
            None => f.write_str("at no valid position"),
        }
    }
}

/// Decodes one Ethernet frame with an unsecured packet of version 1, see [`decode_frame_with`].
///
/// # Errors
/// Returns the reason why every station would drop the frame.
pub fn decode_frame(reception: Tai, frame: &Bytes) -> Result<Frame, DropReason> {
    decode_frame_with(reception, frame, Acceptance::default())
}

/// Decodes one Ethernet frame without a station. The payload of a message shares the buffer of the frame.
///
/// # Errors
/// Returns the reason why every station with this acceptance would drop the frame.
pub fn decode_frame_with(reception: Tai, frame: &Bytes, acceptance: Acceptance) -> Result<Frame, DropReason> {
    let packet = LinkPacket::parse(reception, frame, acceptance)?;
    match &packet.packet.body {
        PacketBody::Beacon(_) => Ok(Frame::Beacon(packet.beacon())),
        PacketBody::LocationRequest(header) => Ok(packet.location_service(header.sought, false)),
        PacketBody::LocationReply(header) => Ok(packet.location_service(header.destination.address, true)),
        _ => Ok(Frame::Message(Box::new(packet.decode()?))),
    }
}

/// Returns the explanation of a dropped frame in one or two sentences. For [`DropReason::UperInvalid`] the explanation
/// names the message, the wrong element and its bit. The search takes about 14 times as long as decoding the message.
#[must_use]
pub fn explain_drop(reason: DropReason, frame: &Bytes) -> String {
    let problem = match reason {
        DropReason::UperInvalid => codec_problem(frame),
        _ => None,
    };
    match problem {
        Some(problem) => format!("{} Details: {problem}.", reason.explain()),
        None => reason.explain().to_owned(),
    }
}

fn codec_problem(frame: &Bytes) -> Option<UperError> {
    // The frame reached the codec, so a station accepted its headers.
    let acceptance = Acceptance { security: SecurityPolicy::Unverified, version_0: true };
    let packet = LinkPacket::parse(Tai::from_nanos(0), frame, acceptance).ok()?;
    let (_, kind, payload) = packet.btp_payload().ok()?;
    Message::explain(kind, payload)
}

/// A frame with parsed link and GeoNetworking headers.
pub(crate) struct LinkPacket<'a> {
    reception: Tai,
    frame: &'a Bytes,
    pub(crate) link: EthernetHeader,
    pub(crate) packet: Packet<'a>,
}

impl<'a> LinkPacket<'a> {
    pub(crate) fn parse(reception: Tai, frame: &'a Bytes, acceptance: Acceptance) -> Result<Self, DropReason> {
        if frame.len() > FRAME_OCTETS_MAX {
            return Err(DropReason::FrameTooLong);
        }
        let (link, rest) = EthernetHeader::parse(frame).ok_or(DropReason::Truncated)?;
        if link.ethertype != ETHERTYPE_GEONETWORKING {
            return Err(DropReason::NotGeonetworking);
        }
        let packet = geonet::parse_with(rest, reception, acceptance)?;
        Ok(Self { reception, frame, link, packet })
    }

    pub(crate) const fn beacon(&self) -> BeaconReceived {
        BeaconReceived { reception: self.reception, link_source: self.link.source, source: *self.packet.source() }
    }

    const fn location_service(&self, about: GnAddress, reply: bool) -> Frame {
        Frame::LocationService(LocationServiceReceived {
            reception: self.reception,
            link_source: self.link.source,
            source: *self.packet.source(),
            about,
            reply,
        })
    }

    /// Returns the BTP header, the kind of the message and its octets.
    fn btp_payload(&self) -> Result<(BtpHeader, MessageKind, &[u8]), DropReason> {
        let (btp_packet, _) = self.packet.payload().ok_or(DropReason::TransportUnsupported)?;
        let next_header = self.packet.common.next_header;
        if !matches!(next_header, CommonNextHeader::BtpA | CommonNextHeader::BtpB) {
            return Err(DropReason::TransportUnsupported);
        }
        let (btp, payload) = BtpHeader::parse(next_header, btp_packet).ok_or(DropReason::BtpTruncated)?;
        let kind = facilities::kind_of(btp.destination_port(), payload)?;
        Ok((btp, kind, payload))
    }

    /// Decodes the message that the packet carries.
    pub(crate) fn decode(&self) -> Result<Received, DropReason> {
        let Packet { basic, common, .. } = &self.packet;
        let (_, destination) = self.packet.payload().ok_or(DropReason::TransportUnsupported)?;
        let (btp, kind, payload) = self.btp_payload()?;
        let btp_port = btp.destination_port();
        let message = Message::decode(kind, payload).map_err(|_| DropReason::UperInvalid)?;
        let summary = message.summary(self.reception);
        Ok(Received {
            reception: self.reception,
            link_source: self.link.source,
            source: *self.packet.source(),
            destination,
            sequence_number: self.packet.sequence_number(),
            version: basic.version,
            remaining_hops: basic.remaining_hop_limit,
            maximum_hops: common.maximum_hop_limit,
            hops_before: common.maximum_hop_limit.saturating_sub(basic.remaining_hop_limit),
            remaining_lifetime: basic.lifetime.duration(),
            traffic_class: common.traffic_class,
            btp,
            btp_port,
            kind,
            security: self.packet.security,
            payload: self.frame.slice_ref(payload),
            message,
            summary,
        })
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::{Degrees, MetresPerSecond, Position, StationType};

    use super::*;

    #[test]
    fn packets_are_formatted_for_people() {
        let address = |number| GnAddress::new(StationType::PASSENGER_CAR, MacAddress([2, 0, 0, 0, 0, number]));
        let (reception, link_source) = (Tai::from_nanos(0), MacAddress([2, 0, 0, 0, 0, 9]));
        let source = LongPositionVector {
            address: address(1),
            timestamp: reception,
            position: Some(Position::new(48.5, -1.25)),
            position_accurate: true,
            speed: MetresPerSecond(0.0),
            heading: Some(Degrees(0.0)),
        };
        let (one, two) = (address(1), address(2));
        let beacon = BeaconReceived { reception, link_source, source };
        assert_eq!(beacon.to_string(), format!("a beacon of station {one}, at 48.5, -1.25, from {link_source}"));
        let service = |reply| LocationServiceReceived { reception, link_source, source, about: two, reply }.to_string();
        let request =
            format!("a location request of station {one}, at 48.5, -1.25, for station {two}, from {link_source}");
        assert_eq!(service(false), request);
        let reply = format!("a location reply of station {one}, at 48.5, -1.25, to station {two}, from {link_source}");
        assert_eq!(service(true), reply);
        let lost = BeaconReceived { source: LongPositionVector { position: None, ..source }, ..beacon };
        assert!(lost.to_string().contains("at no valid position"));
    }
}
