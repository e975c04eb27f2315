//! Why a received frame or a packet on its way goes no further.

/// Defines the reasons with their labels, so that none is left out of `ALL`.
macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        /// Why a received frame, or a packet on its way, goes no further. Each drop has exactly one reason and is counted
        /// under it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DropReason {
            $($(#[$doc])* $name,)*
        }

        impl DropReason {
            /// Every reason, in the order in which a frame meets them.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$name),*];

            /// The reason as metrics and JSON have it.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// The frame is longer than [`crate::limits::FRAME_OCTETS_MAX`].
    FrameTooLong => "frame_too_long",
    /// The frame ends inside a link or GeoNetworking header.
    Truncated => "truncated",
    /// Another ethertype than 0x8947.
    NotGeonetworking => "not_geonetworking",
    /// The frame is for another link address (a receiver that hears everything hears those too).
    OtherLinkDestination => "other_link_destination",
    /// Another version of GeoNetworking than `itsGnProtocolVersion` (EN 302 636-4-1, 10.3.3).
    GeonetVersion => "geonet_version",
    /// The packet is signed and was not verified: the policy does not accept it, or does not forward it.
    SecuredNotVerified => "secured_not_verified",
    /// The octets behind the basic header are no `Ieee1609Dot2Data`.
    SecurityInvalid => "security_invalid",
    /// The packet is encrypted, has no payload of its own or no certificate of its signer, or is of another version.
    SecurityUnsupported => "security_unsupported",
    /// The basic header announces neither a common header nor a secured packet.
    GeonetNextHeader => "geonet_next_header",
    /// More hops are left than the source allowed (EN 302 636-4-1, 10.3.5).
    HopLimit => "hop_limit",
    /// A header type or subtype that this edition does not have.
    HeaderTypeUnknown => "header_type_unknown",
    /// The packet has fewer octets than its payload length says, or a beacon says that it has any.
    PayloadLength => "payload_length",
    /// The area of the packet has a centre that is not on earth or an angle that is none.
    AreaInvalid => "area_invalid",
    /// The packet is the station's own: an echo of the link, or sent back by a forwarder.
    OwnPacket => "own_packet",
    /// Another station has the own address (EN 302 636-4-1, 10.2.1.5).
    DuplicateAddress => "duplicate_address",
    /// The packet was received before (EN 302 636-4-1, annex A.2).
    Duplicate => "duplicate",
    /// The packet is for others and may take no further hop.
    HopsExhausted => "hops_exhausted",
    /// The packet's lifetime is over.
    LifetimeExpired => "lifetime_expired",
    /// The packet's source sends more than `itsGnMaxPacketDataRate` (EN 302 636-4-1, annex B.2).
    SourceTooFast => "source_too_fast",
    /// The packet's area is larger than `itsGnMaxGeoAreaSize` (EN 302 636-4-1, annex B.3).
    AreaTooLarge => "area_too_large",
    /// The packet is for others, and the station does not know where it is itself.
    OwnPositionUnknown => "own_position_unknown",
    /// The packet does not say where its destination is.
    DestinationUnknown => "destination_unknown",
    /// The station lies outside the packet's area, and who sent the frame inside it (EN 302 636-4-1, annex D).
    LeftArea => "left_area",
    /// The station is no nearer to the destination than who sent the frame (EN 302 636-4-1, annex E.3).
    NoProgress => "no_progress",
    /// Nobody answered where the destination is (EN 302 636-4-1, 10.3.7.1.3).
    NotLocated => "not_located",
    /// The packet does not fit its buffer, or newer ones took its place.
    BufferOverflow => "buffer_overflow",
    /// Nobody had taken the frames before it.
    TransmitQueueFull => "transmit_queue_full",
    /// A packet for this station that carries neither BTP-A nor BTP-B.
    TransportUnsupported => "transport_unsupported",
    /// The payload ends inside the BTP header.
    BtpTruncated => "btp_truncated",
    /// No message is known for the BTP port.
    UnknownPort => "unknown_port",
    /// The message of that BTP port is known and not decoded.
    MessageUnsupported => "message_unsupported",
    /// The payload ends inside the ITS PDU header.
    MessageTruncated => "message_truncated",
    /// The ITS PDU header names another message than the BTP port.
    MessageIdMismatch => "message_id_mismatch",
    /// The ITS PDU header has a protocol version that no decoder is for.
    MessageVersion => "message_version",
    /// The payload is no UPER encoding of the message.
    UperInvalid => "uper_invalid",
    /// The frame was fine, and nobody had taken the events before it.
    EventQueueFull => "event_queue_full",
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_distinct_and_in_snake_case() {
        let mut labels: Vec<&str> = DropReason::ALL.iter().map(|reason| reason.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), DropReason::ALL.len());
        assert!(labels.iter().all(|label| label.bytes().all(|octet| octet == b'_' || octet.is_ascii_lowercase())));
    }
}
