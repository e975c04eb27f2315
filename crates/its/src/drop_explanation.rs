//! What a drop means to a person, and what helps.

use crate::DropReason;

impl DropReason {
    /// What the reason means and what can be done about it, in a sentence or two.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::FrameTooLong => {
                "The frame is longer than any frame of the link; the capture may hold joined packets (offloading)."
            }
            Self::Truncated => {
                "The frame ends inside a header; a capture with a small snapshot length cuts frames like this."
            }
            Self::NotGeonetworking => {
                "The frame is of another protocol than GeoNetworking (ethertype 0x8947), and of no concern here."
            }
            Self::OtherLinkDestination => {
                "The frame is for one other station; a receiver in promiscuous mode sees those too."
            }
            Self::GeonetVersion => {
                "The sender uses another version of GeoNetworking than 1; --any-version or geonet.accept_version_0 reads 0."
            }
            Self::SecuredNotVerified => {
                "The packet is signed, and signatures are not verified yet; --unverified or security.policy reads it."
            }
            Self::SecurityInvalid => {
                "The octets behind the basic header are no signed data of IEEE 1609.2; the sender is at fault."
            }
            Self::SecurityUnsupported => {
                "The packet is encrypted, or signed in a form other than TS 103 097 version 3 with a certificate."
            }
            Self::GeonetNextHeader => {
                "The basic header announces neither a plain nor a signed packet; the sender is at fault."
            }
            Self::HopLimit => {
                "The packet has more hops left than its source gave it; a forwarder is at fault or somebody forges."
            }
            Self::HeaderTypeUnknown => {
                "The packet has a type that EN 302 636-4-1 V1.4.1 does not have; the sender may be newer."
            }
            Self::AreaInvalid => {
                "The packet is for an area whose centre is not on earth or whose angle is none; the sender is at fault."
            }
            Self::DuplicateAddress => {
                "Another station sends by this station's address; one of them needs another link address."
            }
            Self::Duplicate => "The packet was received before, by another way or again; the first one counted.",
            Self::HopsExhausted => "The packet is for others and may take no further hop, so that it ends here.",
            Self::LifetimeExpired => {
                "The packet is older than its sender allowed; it waited too long, or the clocks differ."
            }
            Self::SourceTooFast => {
                "The source sends more than itsGnMaxPacketDataRate, and what it sends is not passed on."
            }
            Self::AreaTooLarge => {
                "The packet is for an area larger than itsGnMaxGeoAreaSize, into which nobody passes it on."
            }
            Self::OwnPositionUnknown => {
                "The packet is for others, and a station without a position cannot pass it on; give it one."
            }
            Self::DestinationUnknown => {
                "The packet does not say where its destination is, so that nobody is nearer to it."
            }
            Self::LeftArea => "The packet has left its area: the station is outside, and it came from inside.",
            Self::NoProgress => {
                "The packet is for others, and its last sender is nearer to the destination than this station."
            }
            Self::NotLocated => "Nobody answered where the destination is; it may be off or out of reach.",
            Self::BufferOverflow => {
                "The packet had to wait, and there was no room for it, or newer ones took its place."
            }
            Self::TransmitQueueFull => "The packet was ready to be sent, and the frames before it had not been taken.",
            Self::TransportUnsupported => "The packet carries neither BTP-A nor BTP-B, and nothing else is a message.",
            Self::PayloadLength => {
                "The packet says that it is longer than it is; it was cut on its way, or the sender is at fault."
            }
            Self::OwnPacket => {
                "The station heard itself: an echo of the link. Where it heard another, both have one address."
            }
            Self::BtpTruncated => "The packet ends inside the BTP header; the sender is at fault.",
            Self::UnknownPort => "The packet is for a BTP port without a known message (TS 103 248).",
            Self::MessageUnsupported => "The message is a known one that is not decoded.",
            Self::MessageTruncated => "The message ends inside its own header; the sender is at fault.",
            Self::MessageIdMismatch => {
                "The message names itself as another one than its BTP port does; the sender is at fault."
            }
            Self::MessageVersion => {
                "The message has a protocol version without a decoder; the sender is older or newer."
            }
            Self::UperInvalid => {
                "The octets are no encoding of the message; the sender may use another edition of the standard."
            }
            Self::EventQueueFull => "The frame was fine, and the program had not taken those before it.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_explained_by_sentences_of_its_own() {
        let mut texts: Vec<&str> = DropReason::ALL.iter().map(|reason| reason.explain()).collect();
        assert!(texts.iter().all(|text| text.ends_with('.') && (30..=160).contains(&text.len())));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), DropReason::ALL.len());
    }
}
