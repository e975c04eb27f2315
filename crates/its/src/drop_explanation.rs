//! Explanations of drops for users.

use crate::DropReason;

impl DropReason {
    /// Returns the meaning of the reason and the remedy, in one or two sentences.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::FrameTooLong => {
                "The frame is longer than the link allows; captures with offloading contain joined packets like this."
            }
            Self::Truncated => {
                "The frame ends inside a header; captures with a small snapshot length cut frames like this."
            }
            Self::NotGeonetworking => {
                "The frame is not GeoNetworking (ethertype 0x8947). This is normal on a shared network."
            }
            Self::OtherLinkDestination => {
                "The frame is for another station; interfaces in promiscuous mode receive such frames too."
            }
            Self::GeonetVersion => {
                "The GeoNetworking version is not 1; --any-version or geonet.accept_version_0 accepts 0."
            }
            Self::SecuredNotVerified => {
                "The packet is signed, and signatures are not verified yet; --unverified or security.policy accepts it."
            }
            Self::SecurityInvalid => {
                "The data after the basic header is not IEEE 1609.2 signed data; the sender has a fault."
            }
            Self::SecurityUnsupported => {
                "The packet is encrypted, or signed in a form other than TS 103 097 version 3 with a certificate."
            }
            Self::GeonetNextHeader => {
                "The basic header announces neither a plain nor a signed packet; the sender has a fault."
            }
            Self::HopLimit => {
                "The packet has more hops left than its source allowed; a forwarder has a fault, or it is forged."
            }
            Self::HeaderTypeUnknown => {
                "EN 302 636-4-1 V1.4.1 does not define the packet type; the sender may use a newer edition."
            }
            Self::AreaInvalid => {
                "The centre of the packet's area is not on earth, or its angle is invalid; the sender has a fault."
            }
            Self::DuplicateAddress => {
                "Another station uses this station's address; give one of them another link address."
            }
            Self::Duplicate => {
                "The packet was already received, over another path or as a repetition; this copy is ignored."
            }
            Self::HopsExhausted => {
                "The packet is for other stations, and its hop limit is reached; it is not forwarded."
            }
            Self::LifetimeExpired => {
                "The packet's lifetime has expired; it waited too long, or the clocks of the stations differ."
            }
            Self::SourceTooFast => "The source exceeds itsGnMaxPacketDataRate, so its packets are not forwarded.",
            Self::AreaTooLarge => "The packet's area is larger than itsGnMaxGeoAreaSize, so it is not forwarded.",
            Self::OwnPositionUnknown => {
                "The packet is for other stations, and forwarding needs an own position: configure one."
            }
            Self::DestinationUnknown => {
                "The packet contains no valid position of its destination, so no next hop can be chosen."
            }
            Self::LeftArea => {
                "The packet has left its area: this station is outside the area, and the sender is inside."
            }
            Self::NoProgress => {
                "The packet is for other stations, and this station is no nearer to the destination than the sender."
            }
            Self::NotLocated => "The location service got no reply for the destination; it may be off or out of range.",
            Self::BufferOverflow => {
                "The packet had to wait, but did not fit its buffer or was replaced by newer packets."
            }
            Self::TransmitQueueFull => {
                "The transmit queue was full: frames are produced faster than the link takes them."
            }
            Self::TransportUnsupported => "The packet carries neither BTP-A nor BTP-B, so it contains no message.",
            Self::PayloadLength => {
                "The payload is shorter than its length field; the packet was cut, or the sender has a fault."
            }
            Self::OwnPacket => {
                "The station received its own packet, an echo of the link. If not, two stations share an address."
            }
            Self::BtpTruncated => "The packet ends inside the BTP header; the sender has a fault.",
            Self::UnknownPort => "TS 103 248 assigns no message to the BTP port of the packet.",
            Self::MessageUnsupported => "The kind of message is known, but there is no decoder for it.",
            Self::MessageTruncated => "The message ends inside its ITS PDU header; the sender has a fault.",
            Self::MessageIdMismatch => {
                "The message id and the BTP port identify different messages; the sender has a fault."
            }
            Self::MessageVersion => {
                "There is no decoder for the protocol version of the message; the sender is too old or too new."
            }
            Self::UperInvalid => {
                "The payload is not a valid encoding; the sender may use another edition of the standard."
            }
            Self::EventQueueFull => "The frame is valid, but the application did not fetch earlier events in time.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_distinct_explanation() {
        let mut texts: Vec<&str> = DropReason::ALL.iter().map(|reason| reason.explain()).collect();
        assert!(texts.iter().all(|text| text.ends_with('.') && (30..=160).contains(&text.len())));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), DropReason::ALL.len());
    }
}
