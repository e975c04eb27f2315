//! Why a received frame goes no further.

/// Defines the reasons with their labels, so that none is left out of `ALL`.
macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        /// Why a received frame goes no further. Each drop has exactly one reason and is counted under it.
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
    /// Another version of GeoNetworking than `itsGnProtocolVersion` (EN 302 636-4-1, 10.3.3).
    GeonetVersion => "geonet_version",
    /// The packet is secured, and nothing verifies it yet.
    SecuredNotVerified => "secured_not_verified",
    /// The basic header announces neither a common header nor a secured packet.
    GeonetNextHeader => "geonet_next_header",
    /// More hops are left than the source allowed (EN 302 636-4-1, 10.3.5).
    HopLimit => "hop_limit",
    /// A header type that is known and not processed: GUC, GAC, GBC, TSB, LS.
    HeaderTypeUnsupported => "header_type_unsupported",
    /// A header type or subtype that this edition does not have.
    HeaderTypeUnknown => "header_type_unknown",
    /// A broadcast that carries neither BTP-A nor BTP-B.
    TransportUnsupported => "transport_unsupported",
    /// The packet has fewer octets than its payload length says, or a beacon says that it has any.
    PayloadLength => "payload_length",
    /// The packet has this station's own address as its source: an echo, or a duplicate address.
    OwnPacket => "own_packet",
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
