//! Link types of captures, and the conversion of their frames to Ethernet II frames.
//!
//! Numbers and layouts are those of the tcpdump group (`LINKTYPE_*`), IEEE 802.11 and radiotap. The station reads one
//! frame format, so each record becomes `destination (6) source (6) ethertype (2) payload`, without VLAN tags. Each layer
//! hands over to the next one at most once: Linux cooked, radiotap, IEEE 802.11, Ethernet.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Length of an Ethernet II header in octets.
const ETHERNET_OCTETS: usize = 14;
/// Length of both addresses of an Ethernet frame in octets.
const ADDRESSES_OCTETS: usize = 12;
/// Length of an IEEE 802.1Q tag in octets.
const TAG_OCTETS: usize = 4;
/// Largest number of VLAN tags that are removed from a frame.
const TAGS_MAX: usize = 4;
/// Ethertypes of a VLAN tag: IEEE 802.1Q, IEEE 802.1ad, and the one that was used before IEEE 802.1ad.
const TAG_ETHERTYPES: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xA8], [0x91, 0x00]];
/// LLC header with SNAP, up to the ethertype: IEEE 802.2, OUI 00-00-00 (RFC 1042) or 00-00-F8 (IEEE 802.1H).
const SNAP: [[u8; 6]; 2] = [[0xAA, 0xAA, 0x03, 0, 0, 0], [0xAA, 0xAA, 0x03, 0, 0, 0xF8]];
/// `ARPHRD_IEEE80211_RADIOTAP`: a cooked frame whose payload starts with a radiotap header.
const ARPHRD_RADIOTAP: [u8; 2] = 803_u16.to_be_bytes();
/// Packet type "to another host" of a cooked header.
const TO_OTHER_HOST: u8 = 3;
/// Length of the frame check sequence of IEEE 802.11 in octets.
const FCS_OCTETS: usize = 4;

type Address = [u8; 6];

/// A link type whose frames can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    /// Ethernet, with or without VLAN tags.
    Ethernet,
    /// IEEE 802.11 from the frame control on.
    Ieee80211,
    /// Linux cooked capture (`tcpdump -i any` of older versions).
    LinuxCooked,
    /// IEEE 802.11 behind a radiotap header.
    Radiotap,
    /// Linux cooked capture, version 2.
    LinuxCooked2,
}

/// Reason why a record of a capture does not become an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// The record ends inside a header of the link.
    Truncated,
    /// The record belongs to a pcapng interface whose link type is not supported, or that the file does not describe.
    LinkTypeUnsupported,
    /// The record has no time (simple packet block of pcapng).
    NoTime,
    /// The receiver marked the IEEE 802.11 frame as damaged (radiotap).
    BadChecksum,
    /// An IEEE 802.11 management or control frame, or a data frame without payload.
    NotData,
    /// The payload of the IEEE 802.11 frame is encrypted.
    Encrypted,
    /// A fragment of an IEEE 802.11 frame.
    Fragment,
    /// Several payloads in one IEEE 802.11 frame (A-MSDU).
    Aggregate,
    /// The payload has no LLC/SNAP header, so it has no ethertype.
    NoSnap,
}

impl SkipReason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Truncated,
        Self::LinkTypeUnsupported,
        Self::NoTime,
        Self::BadChecksum,
        Self::NotData,
        Self::Encrypted,
        Self::Fragment,
        Self::Aggregate,
        Self::NoSnap,
    ];

    /// Returns the label in metrics: `not_data`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Truncated => "record_truncated",
            Self::LinkTypeUnsupported => "link_type_unsupported",
            Self::NoTime => "no_time",
            Self::BadChecksum => "bad_checksum",
            Self::NotData => "not_data",
            Self::Encrypted => "link_encrypted",
            Self::Fragment => "link_fragment",
            Self::Aggregate => "link_aggregate",
            Self::NoSnap => "no_snap_header",
        }
    }

    /// Returns a sentence that explains the reason.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Truncated => "The record ends inside a link header; a small snapshot length cuts frames like this.",
            Self::LinkTypeUnsupported => "The record belongs to an interface whose link type is not supported.",
            Self::NoTime => "The record has no time, and messages cannot be decoded without one.",
            Self::BadChecksum => "The receiver marked the frame as damaged (radiotap flags).",
            Self::NotData => "An IEEE 802.11 management or control frame, or one without payload.",
            Self::Encrypted => "The payload is encrypted by the wireless network (WEP, WPA).",
            Self::Fragment => "The record is a fragment of an IEEE 802.11 frame; fragments are not joined.",
            Self::Aggregate => "The frame holds several payloads (A-MSDU), which are not separated.",
            Self::NoSnap => "The payload has no LLC/SNAP header, so it is not GeoNetworking.",
        }
    }
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

impl LinkType {
    /// Every supported link type.
    pub(super) const ALL: [Self; 5] =
        [Self::Ethernet, Self::Ieee80211, Self::LinuxCooked, Self::Radiotap, Self::LinuxCooked2];

    /// Returns the supported link type with that number.
    pub(super) fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|link_type| link_type.number() == number)
    }

    /// Returns the number in capture files.
    pub(super) const fn number(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Ieee80211 => 105,
            Self::LinuxCooked => 113,
            Self::Radiotap => 127,
            Self::LinuxCooked2 => 276,
        }
    }

    /// Returns the record as an Ethernet II frame without VLAN tags.
    pub(super) fn ethernet_frame(self, record: &[u8]) -> Result<Bytes, SkipReason> {
        match self {
            Self::Ethernet => ethernet(record),
            Self::Ieee80211 => ieee80211(record, 0),
            Self::LinuxCooked => linux_cooked(record),
            Self::Radiotap => radiotap(record),
            Self::LinuxCooked2 => linux_cooked_2(record),
        }
    }
}

/// Returns the name of a link type for error messages, or an empty text if it is a rare one.
pub(super) const fn name(number: u16) -> &'static str {
    match number {
        0 => " (BSD loopback)",
        1 => " (Ethernet)",
        101 => " (raw IP)",
        105 => " (IEEE 802.11)",
        113 => " (Linux cooked)",
        119 => " (Prism)",
        127 => " (radiotap)",
        147..=162 => " (user-defined)",
        189 | 220 => " (USB)",
        192 => " (PPI)",
        195 | 230 => " (IEEE 802.15.4)",
        201 => " (Bluetooth)",
        227 => " (SocketCAN)",
        228 => " (raw IPv4)",
        229 => " (raw IPv6)",
        276 => " (Linux cooked v2)",
        _ => "",
    }
}

/// Removes VLAN tags. A frame without tags is copied as it is, even if it is too short for an Ethernet header: the
/// station counts it.
fn ethernet(frame: &[u8]) -> Result<Bytes, SkipReason> {
    let Some((addresses, mut rest)) = frame.split_at_checked(ADDRESSES_OCTETS) else {
        return Ok(Bytes::copy_from_slice(frame));
    };
    for _ in 0..TAGS_MAX {
        if !rest.first_chunk().is_some_and(|ethertype| TAG_ETHERTYPES.contains(ethertype)) {
            break;
        }
        rest = rest.get(TAG_OCTETS..).filter(|rest| rest.len() >= 2).ok_or(SkipReason::Truncated)?;
    }
    Ok([addresses, rest].concat().into())
}

/// Converts a Linux cooked capture: packet type (2), ARPHRD type (2), address length (2), address (8), protocol (2).
fn linux_cooked(record: &[u8]) -> Result<Bytes, SkipReason> {
    let (&[_, packet_type], rest) = split::<2>(record)?;
    let (&hardware, rest) = split::<2>(rest)?;
    let (&[_, address_octets], rest) = split::<2>(rest)?;
    let (&address, rest) = split::<8>(rest)?;
    let (&protocol, payload) = split::<2>(rest)?;
    cooked(&Cooked { packet_type, hardware, address_octets, address, protocol, payload })
}

/// Converts a Linux cooked capture, version 2: protocol (2), reserved (2), interface (4), ARPHRD type (2), packet type
/// (1), address length (1), address (8).
fn linux_cooked_2(record: &[u8]) -> Result<Bytes, SkipReason> {
    let (&[protocol_high, protocol_low, ..], rest) = split::<8>(record)?;
    let (&hardware, rest) = split::<2>(rest)?;
    let (&[packet_type, address_octets], rest) = split::<2>(rest)?;
    let (&address, payload) = split::<8>(rest)?;
    cooked(&Cooked { packet_type, hardware, address_octets, address, protocol: [protocol_high, protocol_low], payload })
}

/// Fields that both versions of a cooked header have.
struct Cooked<'a> {
    packet_type: u8,
    hardware: [u8; 2],
    address_octets: u8,
    address: [u8; 8],
    protocol: [u8; 2],
    payload: &'a [u8],
}

/// Converts a cooked header, which has no destination. The destination becomes broadcast, or zero if the frame was for
/// another host.
fn cooked(frame: &Cooked<'_>) -> Result<Bytes, SkipReason> {
    if frame.hardware == ARPHRD_RADIOTAP {
        return radiotap(frame.payload);
    }
    let destination = if frame.packet_type == TO_OTHER_HOST { [0; 6] } else { [0xFF; 6] };
    let [a, b, c, d, e, f, ..] = frame.address;
    let source = if frame.address_octets == 6 { [a, b, c, d, e, f] } else { [0; 6] };
    ethernet(&build(destination, source, frame.protocol, frame.payload))
}

/// Converts radiotap: version (1), padding (1), length (2), present bits (4 each), fields in the order of the bits.
fn radiotap(record: &[u8]) -> Result<Bytes, SkipReason> {
    /// Offset of the first word of present bits.
    const PRESENT: usize = 4;
    /// Present bit: another word of present bits follows.
    const MORE: u32 = 1 << 31;
    const TSFT: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    let (&[_, _, length_low, length_high], _) = split::<4>(record)?;
    let length = usize::from(u16::from_le_bytes([length_low, length_high]));
    let (header, frame) = record.split_at_checked(length).ok_or(SkipReason::Truncated)?;
    let mut words = header.get(PRESENT..).ok_or(SkipReason::Truncated)?.as_chunks::<4>().0.iter();
    let first = words.next().map(|word| u32::from_le_bytes(*word)).ok_or(SkipReason::Truncated)?;
    let mut at = PRESENT + 4;
    let mut present = first;
    while present & MORE != 0 {
        present = words.next().map(|word| u32::from_le_bytes(*word)).ok_or(SkipReason::Truncated)?;
        at += 4;
    }
    if first & TSFT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if first & FLAGS == 0 { 0 } else { *header.get(at).ok_or(SkipReason::Truncated)? };
    ieee80211(frame, flags)
}

/// Converts an IEEE 802.11 frame. `flags` is from its radiotap header, or 0 if it has none.
fn ieee80211(frame: &[u8], flags: u8) -> Result<Bytes, SkipReason> {
    const FCS_AT_END: u8 = 0x10;
    const PADDED: u8 = 0x20;
    const BAD_FCS: u8 = 0x40;
    if flags & BAD_FCS != 0 {
        return Err(SkipReason::BadChecksum);
    }
    let end = if flags & FCS_AT_END == 0 { frame.len() } else { frame.len().saturating_sub(FCS_OCTETS) };
    let frame = frame.get(..end).unwrap_or(frame);
    let header = MacHeader::parse(frame)?;
    let octets = if flags & PADDED == 0 { header.octets } else { header.octets.next_multiple_of(4) };
    let payload = frame.get(octets..).ok_or(SkipReason::Truncated)?;
    let (snap, payload) = split::<6>(payload)?;
    if !SNAP.contains(snap) {
        return Err(SkipReason::NoSnap);
    }
    let (&ethertype, payload) = split::<2>(payload)?;
    ethernet(&build(header.destination, header.source, ethertype, payload))
}

/// MAC header of an IEEE 802.11 data frame.
struct MacHeader {
    destination: Address,
    source: Address,
    octets: usize,
}

impl MacHeader {
    /// Reads frame control (2), duration (2), three addresses (18), sequence control (2), and the optional fields: a fourth
    /// address (6), QoS control (2), HT control (4).
    fn parse(frame: &[u8]) -> Result<Self, SkipReason> {
        const TO_DS: u8 = 1;
        const FROM_DS: u8 = 1 << 1;
        const MORE_FRAGMENTS: u8 = 1 << 2;
        const PROTECTED: u8 = 1 << 6;
        const ORDER: u8 = 1 << 7;
        const QOS: u8 = 1 << 3;
        const NO_DATA: u8 = 1 << 2;
        let (&[control, flags], rest) = split::<2>(frame)?;
        let (version, kind, subtype) = (control & 3, control >> 2 & 3, control >> 4);
        if version != 0 || kind != 2 || subtype & NO_DATA != 0 {
            return Err(SkipReason::NotData);
        }
        let (_duration, rest) = split::<2>(rest)?;
        let (&first, rest) = split::<6>(rest)?;
        let (&second, rest) = split::<6>(rest)?;
        let (&third, rest) = split::<6>(rest)?;
        let (&[sequence, _], mut rest) = split::<2>(rest)?;
        let mut octets = 24;
        let (destination, source) = match (flags & TO_DS != 0, flags & FROM_DS != 0) {
            (false, false) => (first, second),
            (false, true) => (first, third),
            (true, false) => (third, second),
            (true, true) => {
                let (&fourth, behind) = split::<6>(rest)?;
                rest = behind;
                octets += 6;
                (third, fourth)
            }
        };
        if subtype & QOS != 0 {
            let (&[qos, _], _) = split::<2>(rest)?;
            if qos & 0x80 != 0 {
                return Err(SkipReason::Aggregate);
            }
            octets += if flags & ORDER == 0 { 2 } else { 6 };
        }
        if flags & PROTECTED != 0 {
            return Err(SkipReason::Encrypted);
        }
        if flags & MORE_FRAGMENTS != 0 || sequence & 0x0F != 0 {
            return Err(SkipReason::Fragment);
        }
        Ok(Self { destination, source, octets })
    }
}

fn split<const N: usize>(octets: &[u8]) -> Result<(&[u8; N], &[u8]), SkipReason> {
    octets.split_first_chunk().ok_or(SkipReason::Truncated)
}

fn build(destination: Address, source: Address, ethertype: [u8; 2], payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(ETHERNET_OCTETS + payload.len());
    frame.put_slice(&destination);
    frame.put_slice(&source);
    frame.put_slice(&ethertype);
    frame.put_slice(payload);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = [2, 0, 0, 0, 0, 0xA];
    const B: Address = [2, 0, 0, 0, 0, 0xB];
    const C: Address = [2, 0, 0, 0, 0, 0xC];
    const D: Address = [2, 0, 0, 0, 0, 0xD];
    const SNAP_GEONETWORKING: [u8; 8] = [0xAA, 0xAA, 3, 0, 0, 0, 0x89, 0x47];
    const PAYLOAD: [u8; 5] = [0x11, 0, 0x1A, 1, 0x20];

    fn geonetworking(destination: Address, source: Address) -> Bytes {
        build(destination, source, [0x89, 0x47], &PAYLOAD)
    }

    /// Returns an IEEE 802.11 frame with the given frame control and the octets between sequence control and payload.
    fn wireless(control: [u8; 2], extra: &[u8]) -> Vec<u8> {
        [&control[..], &[0, 0], &A, &B, &C, &[0, 0], extra, &SNAP_GEONETWORKING, &PAYLOAD].concat()
    }

    fn with_radiotap(present: &[u32], fields: &[u8], frame: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + 4 * present.len() + fields.len()).unwrap();
        let words: Vec<u8> = present.iter().flat_map(|word| word.to_le_bytes()).collect();
        [&[0, 0][..], &length.to_le_bytes(), &words, fields, frame].concat()
    }

    #[test]
    fn vlan_tags_are_removed() {
        let plain = geonetworking(A, B);
        assert_eq!(LinkType::Ethernet.ethernet_frame(&plain), Ok(plain.clone()));
        for tags in [
            &[0x81, 0x00, 0x20, 0x05][..],
            &[0x88, 0xA8, 0, 7, 0x81, 0x00, 0, 9],
            &[0x91, 0x00, 0, 1, 0x91, 0x00, 0, 2, 0x81, 0x00, 0, 3, 0x81, 0x00, 0, 4],
        ] {
            let tagged = [&plain[..12], tags, &plain[12..]].concat();
            assert_eq!(LinkType::Ethernet.ethernet_frame(&tagged), Ok(plain.clone()));
            assert_eq!(LinkType::Ethernet.ethernet_frame(&tagged[..12 + tags.len()]), Err(SkipReason::Truncated));
        }
        assert_eq!(LinkType::Ethernet.ethernet_frame(&plain[..5]), Ok(plain.slice(..5)), "the station counts it");
    }

    #[test]
    fn each_direction_of_a_wireless_frame_has_its_addresses_elsewhere() {
        let read = |control: [u8; 2], extra: &[u8]| LinkType::Ieee80211.ethernet_frame(&wireless(control, extra));
        assert_eq!(read([0x08, 0], &[]), Ok(geonetworking(A, B)), "outside the context of a BSS: ITS-G5");
        assert_eq!(read([0x08, 2], &[]), Ok(geonetworking(A, C)), "from an access point");
        assert_eq!(read([0x08, 1], &[]), Ok(geonetworking(C, B)), "to an access point");
        assert_eq!(read([0x08, 3], &D), Ok(geonetworking(C, D)), "between access points");
        assert_eq!(read([0x88, 0], &[0x20, 0]), Ok(geonetworking(A, B)), "with QoS control");
        assert_eq!(read([0x88, 0x83], &[&D[..], &[0x20, 0, 1, 2, 3, 4]].concat()), Ok(geonetworking(C, D)));
    }

    #[test]
    fn a_wireless_frame_without_a_readable_payload_has_a_reason() {
        let read = |frame: &[u8]| LinkType::Ieee80211.ethernet_frame(frame);
        assert_eq!(read(&wireless([0x80, 0], &[])), Err(SkipReason::NotData), "beacon of an access point");
        assert_eq!(read(&[0xD4, 0, 0, 0, 1, 2, 3, 4, 5, 6]), Err(SkipReason::NotData), "acknowledgement");
        assert_eq!(read(&wireless([0xC8, 0], &[0, 0])), Err(SkipReason::NotData), "QoS null");
        assert_eq!(read(&wireless([0x08, 0x40], &[])), Err(SkipReason::Encrypted));
        assert_eq!(read(&wireless([0x08, 0x04], &[])), Err(SkipReason::Fragment));
        assert_eq!(read(&wireless([0x88, 0], &[0x80, 0])), Err(SkipReason::Aggregate));
        let mut second = wireless([0x08, 0], &[]);
        second[22] = 1;
        assert_eq!(read(&second), Err(SkipReason::Fragment), "a last fragment");
        let mut other = wireless([0x08, 0], &[]);
        other[24] = 0x42;
        assert_eq!(read(&other), Err(SkipReason::NoSnap));
        let whole = wireless([0x08, 0], &[]);
        for length in 0..32 {
            assert_eq!(read(&whole[..length]), Err(SkipReason::Truncated), "{length}");
        }
    }

    #[test]
    fn radiotap_flags_are_obeyed() {
        let frame = wireless([0x08, 0], &[]);
        let read = |record: &[u8]| LinkType::Radiotap.ethernet_frame(record);
        let expected = Ok(geonetworking(A, B));
        assert_eq!(read(&with_radiotap(&[0], &[], &frame)), expected);
        let with_fcs = [&frame[..], &[1, 2, 3, 4]].concat();
        assert_eq!(read(&with_radiotap(&[2], &[0x10], &with_fcs)), expected, "frame check sequence at the end");
        let time = [&[9; 8][..], &[0x10]].concat();
        assert_eq!(read(&with_radiotap(&[3], &time, &with_fcs)), expected, "flags behind the time");
        let aligned = [&[0; 4][..], &time].concat();
        assert_eq!(read(&with_radiotap(&[3 | 1 << 31, 0], &aligned, &with_fcs)), expected, "two words of present bits");
        assert_eq!(read(&with_radiotap(&[2], &[0x40], &frame)), Err(SkipReason::BadChecksum));
        let padded = [&wireless([0x88, 0], &[0, 0])[..26], &[0, 0], &SNAP_GEONETWORKING, &PAYLOAD].concat();
        assert_eq!(read(&with_radiotap(&[2], &[0x20], &padded)), expected, "padded header");
        let whole = with_radiotap(&[2], &[0], &frame);
        for length in 0..9 {
            assert_eq!(read(&whole[..length]), Err(SkipReason::Truncated), "{length}");
        }
        assert_eq!(read(&with_radiotap(&[1 << 31], &[], &frame)), Err(SkipReason::Truncated));
    }

    #[test]
    fn a_cooked_frame_has_only_a_source() {
        let first = |kind: u8, hardware: u16, payload: &[u8]| {
            [&[0, kind][..], &hardware.to_be_bytes(), &[0, 6], &B, &[0, 0, 0x89, 0x47], payload].concat()
        };
        let second = |kind: u8, hardware: u16, payload: &[u8]| {
            [&[0x89, 0x47, 0, 0, 0, 0, 0, 2][..], &hardware.to_be_bytes(), &[kind, 6], &B, &[0, 0], payload].concat()
        };
        let broadcast = Ok(geonetworking([0xFF; 6], B));
        let wireless = with_radiotap(&[0], &[], &wireless([0x08, 0], &[]));
        for (link_type, header, octets) in [
            (LinkType::LinuxCooked, &first as &dyn Fn(u8, u16, &[u8]) -> Vec<u8>, 16),
            (LinkType::LinuxCooked2, &second, 20),
        ] {
            assert_eq!(link_type.ethernet_frame(&header(1, 1, &PAYLOAD)), broadcast);
            assert_eq!(link_type.ethernet_frame(&header(3, 1, &PAYLOAD)), Ok(geonetworking([0; 6], B)));
            assert_eq!(link_type.ethernet_frame(&header(1, 803, &wireless)), Ok(geonetworking(A, B)));
            for length in 0..octets {
                let cut = &header(1, 1, &PAYLOAD)[..length];
                assert_eq!(link_type.ethernet_frame(cut), Err(SkipReason::Truncated), "{length}");
            }
        }
    }

    #[test]
    fn each_reason_has_a_label_and_a_sentence() {
        let mut labels: Vec<&str> = SkipReason::ALL.iter().map(|reason| reason.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), SkipReason::ALL.len());
        assert!(SkipReason::ALL.iter().all(|reason| reason.explain().ends_with('.')));
    }

    #[test]
    fn each_supported_type_is_found_by_its_number() {
        for link_type in LinkType::ALL {
            assert_eq!(LinkType::from_number(link_type.number()), Some(link_type));
            assert!(!name(link_type.number()).is_empty());
        }
        assert_eq!(LinkType::from_number(195), None);
    }
}
