//! Reasons why a received frame or an outgoing packet is dropped.

/// Defines the reasons with their labels, so that `ALL` is complete.
macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        /// The reason why a received frame or an outgoing packet was dropped. Each drop has exactly one reason and is
        /// counted under it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DropReason {
            $($(#[$doc])* $name,)*
        }

        impl DropReason {
            /// All reasons, in the order of processing.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$name),*];

            /// Returns the reason as metrics and JSON spell it.
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
    /// The ethertype is not 0x8947.
    NotGeonetworking => "not_geonetworking",
    /// The frame is for another link address (a promiscuous receiver gets such frames too).
    OtherLinkDestination => "other_link_destination",
    /// The GeoNetworking version is not `itsGnProtocolVersion` (EN 302 636-4-1, 10.3.3).
    GeonetVersion => "geonet_version",
    /// The packet is signed and was not verified: the policy does not accept it, or does not forward it.
    SecuredNotVerified => "secured_not_verified",
    /// The octets behind the basic header are not an `Ieee1609Dot2Data`.
    SecurityInvalid => "security_invalid",
    /// The packet is encrypted, has no payload or no certificate of its signer, or has another version.
    SecurityUnsupported => "security_unsupported",
    /// The basic header announces neither a common header nor a secured packet.
    GeonetNextHeader => "geonet_next_header",
    /// The remaining hop limit exceeds the maximum hop limit (EN 302 636-4-1, 10.3.5).
    HopLimit => "hop_limit",
    /// This edition does not define the header type or subtype.
    HeaderTypeUnknown => "header_type_unknown",
    /// The packet has fewer octets than its payload length, or a packet without payload claims to have one.
    PayloadLength => "payload_length",
    /// The centre of the packet's area is not on earth, or the angle is invalid.
    AreaInvalid => "area_invalid",
    /// The station itself sent the packet: an echo of the link, or forwarded by another station.
    OwnPacket => "own_packet",
    /// Another station uses the own address (EN 302 636-4-1, 10.2.1.5).
    DuplicateAddress => "duplicate_address",
    /// The packet was received before (EN 302 636-4-1, annex A.2).
    Duplicate => "duplicate",
    /// The packet is for other stations, and its hop limit is reached.
    HopsExhausted => "hops_exhausted",
    /// The packet's lifetime has expired.
    LifetimeExpired => "lifetime_expired",
    /// The packet's source exceeds `itsGnMaxPacketDataRate` (EN 302 636-4-1, annex B.2).
    SourceTooFast => "source_too_fast",
    /// The packet's area is larger than `itsGnMaxGeoAreaSize` (EN 302 636-4-1, annex B.3).
    AreaTooLarge => "area_too_large",
    /// The packet is for other stations, and this station has no position.
    OwnPositionUnknown => "own_position_unknown",
    /// The packet contains no valid position of its destination.
    DestinationUnknown => "destination_unknown",
    /// The station is outside the packet's area, and the sender of the frame is inside (EN 302 636-4-1, annex D).
    LeftArea => "left_area",
    /// The station is no nearer to the destination than the sender of the frame (EN 302 636-4-1, annex E.3).
    NoProgress => "no_progress",
    /// The location service got no reply for the destination (EN 302 636-4-1, 10.3.7.1.3).
    NotLocated => "not_located",
    /// The packet does not fit its buffer, or newer packets replaced it.
    BufferOverflow => "buffer_overflow",
    /// The transmit queue is full.
    TransmitQueueFull => "transmit_queue_full",
    /// The packet is for this station, and carries neither BTP-A nor BTP-B.
    TransportUnsupported => "transport_unsupported",
    /// The payload ends inside the BTP header.
    BtpTruncated => "btp_truncated",
    /// No message is assigned to the BTP port.
    UnknownPort => "unknown_port",
    /// The message of the BTP port has no decoder.
    MessageUnsupported => "message_unsupported",
    /// The payload ends inside the ITS PDU header.
    MessageTruncated => "message_truncated",
    /// The ITS PDU header and the BTP port identify different messages.
    MessageIdMismatch => "message_id_mismatch",
    /// No decoder exists for the protocol version in the ITS PDU header.
    MessageVersion => "message_version",
    /// The payload is not a valid UPER encoding of the message.
    UperInvalid => "uper_invalid",
    /// The frame is valid, but the event queue is full.
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
