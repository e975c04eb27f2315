//! Valid inputs of the decoders, made from `testdata/its`.

use viaduct_its::facilities::{Message, MessageKind};

/// Frames with a CAM, with CPMs, and with a secured packet.
const CAM: &str = include_str!("../../testdata/its/cam.hex");
const CPMS: [&str; 2] =
    [include_str!("../../testdata/its/cpm_objects.hex"), include_str!("../../testdata/its/cpm_sensors.hex")];
const SECURED: &str = include_str!("../../testdata/its/secured_cam.hex");

/// Length of the link header in octets.
const LINK: usize = 14;
/// Octets of the basic header of GeoNetworking.
const BASIC: usize = 4;
/// Length of the link and GeoNetworking headers in octets.
const GEONET: usize = LINK + 40;
/// Length of all headers in octets.
const BTP: usize = GEONET + 4;

/// A CAM with the parts that the captured one lacks: low frequency and special vehicle containers, all kinds of ASN.1
/// types.
const CAM_FULL: &str = include_str!("../../testdata/its/cam_full.json");
const DENM_FULL: &str = include_str!("../../testdata/its/denm_full.json");
const VAM_FULL: &str = include_str!("../../testdata/its/vam_full.json");
/// A CPM with containers of every kind, one unknown.
const CPM_FULL: &str = include_str!("../../testdata/its/cpm_full.json");
/// Messages of infrastructure services, one per line.
const INFRASTRUCTURE: &str = include_str!("../../testdata/its/infrastructure.jsonl");

pub(crate) fn frames() -> Vec<Vec<u8>> {
    let captured = [CAM, CPMS[0], CPMS[1], SECURED].into_iter().map(octets);
    captured.chain([beacon()]).chain(multi_hop()).collect()
}

pub(crate) fn packets() -> Vec<Vec<u8>> {
    behind(frames(), LINK)
}

/// Returns data signed by a certificate, without the basic header.
pub(crate) fn signed_data() -> Vec<Vec<u8>> {
    behind(vec![octets(SECURED)], LINK + BASIC)
}

pub(crate) fn btp_packets() -> Vec<Vec<u8>> {
    behind([CAM, CPMS[0], CPMS[1]].into_iter().map(octets).collect(), GEONET)
}

/// Returns messages of every kind, a CAM first.
pub(crate) fn messages() -> Vec<(MessageKind, Vec<u8>)> {
    MessageKind::ALL.into_iter().flat_map(|kind| of(kind).into_iter().map(move |octets| (kind, octets))).collect()
}

/// Returns the captured messages of a kind and those with all containers.
fn of(kind: MessageKind) -> Vec<Vec<u8>> {
    match kind {
        MessageKind::Cam => [behind(vec![octets(CAM)], BTP), encoded(kind, &[CAM_FULL])].concat(),
        MessageKind::Cpm => [behind(CPMS.into_iter().map(octets).collect(), BTP), encoded(kind, &[CPM_FULL])].concat(),
        MessageKind::Denm => encoded(kind, &[DENM_FULL]),
        MessageKind::Vam => encoded(kind, &[VAM_FULL]),
        MessageKind::Ivim | MessageKind::Mapem | MessageKind::Spatem | MessageKind::Srem | MessageKind::Ssem => {
            let begin = format!("{{\"header\":{{\"protocolVersion\":2,\"messageId\":{},", kind.message_id());
            let lines: Vec<&str> = INFRASTRUCTURE.lines().filter(|line| line.starts_with(&begin)).collect();
            encoded(kind, &lines)
        }
    }
}

fn encoded(kind: MessageKind, texts: &[&str]) -> Vec<Vec<u8>> {
    let message = |text: &&str| Message::from_json(kind, text.as_bytes()).expect("the seed is a valid message");
    texts.iter().map(message).map(|message| message.encode().expect("the seed can be encoded")).collect()
}

fn json(kind: MessageKind) -> Vec<Vec<u8>> {
    let written = |octets: Vec<u8>| {
        let mut text = Vec::new();
        Message::decode(kind, &octets).expect("the seed decodes").write_json(&mut text);
        text
    };
    of(kind).into_iter().map(written).collect()
}

/// Defines the seeds of both targets of a kind.
macro_rules! message_seeds {
    ($kind:ident, $uper:ident, $json:ident) => {
        pub(crate) fn $uper() -> Vec<Vec<u8>> {
            of(MessageKind::$kind)
        }

        pub(crate) fn $json() -> Vec<Vec<u8>> {
            json(MessageKind::$kind)
        }
    };
}

message_seeds!(Cam, cams, json_cams);
message_seeds!(Denm, denms, json_denms);
message_seeds!(Cpm, cpms, json_cpms);
message_seeds!(Vam, vams, json_vams);
message_seeds!(Ivim, ivims, json_ivims);
message_seeds!(Mapem, mapems, json_mapems);
message_seeds!(Spatem, spatems, json_spatems);
message_seeds!(Srem, srems, json_srems);
message_seeds!(Ssem, ssems, json_ssems);

/// Returns a classic pcap file and a pcapng file of one frame each.
pub(crate) fn captures() -> Vec<Vec<u8>> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let frame = [0xFF; 16];
    let classic = [words(&[0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 1, 1_726_061_434, 92_870, 16, 16]), frame.to_vec()];
    let section = words(&[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, 0xFFFF_FFFF, 0xFFFF_FFFF, 28]);
    let interface = words(&[1, 20, 1, 65_535, 20]);
    let packet = [words(&[6, 48, 0, 0x0006_21D4, 0x9D5B_4F6B, 16, 16]), frame.to_vec(), words(&[48])].concat();
    vec![classic.concat(), [section, interface, packet].concat()]
}

pub(crate) fn hops() -> Vec<Vec<u8>> {
    let full = (0..8).fold("-9223372036854775808".to_owned(), |text, index| format!("{text};hop_{index}:{index}"));
    let short = "1726061471092870123;station:1726061471092970456;uplink:1726061471093070789";
    let later =
        (8..16).fold("ptspr=ts68r?ptsptptp@0000002a".to_owned(), |text, index| format!("{text};hop_{index}:{index}"));
    [short.to_owned(), format!("{short}\npt38@5e1fd15a"), format!("{full}\n{later}"), full]
        .map(String::into_bytes)
        .to_vec()
}

/// Returns the project's configs, so that all their keys are mutated.
pub(crate) fn configs() -> Vec<Vec<u8>> {
    [
        include_str!("../../configs/vehicles.yaml"),
        include_str!("../../configs/uplink.yaml"),
        "node: a\ncomponents:\n  s: {kind: its_station, run: inline, settings: {station_id: 1, access: {udp_multicast: {}}}}\n  b: {kind: mqtt_broker, settings: {listen: \"127.0.0.1:0\", routes: [{from: its/rx/*}]}}\n",
        "node: a\ncomponents: &x\n  s: &y {kind: fleet, settings: {vehicles: 3}}\n  t: *y\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Returns a beacon frame with the captured CAM's link header and position vector.
fn beacon() -> Vec<u8> {
    let cam = octets(CAM);
    let mut frame = cam.get(..LINK).unwrap_or_default().to_vec();
    frame.extend_from_slice(&[0x11, 0, 0x1A, 1, 0x00, 0x10, 0, 0x80, 0, 0, 1, 0]);
    frame.extend_from_slice(cam.get(LINK + 12..LINK + 36).unwrap_or_default());
    frame
}

/// Returns one frame of each multi-hop type, with the payload of the captured CAM.
fn multi_hop() -> Vec<Vec<u8>> {
    let cam = octets(CAM);
    let position = cam.get(LINK + 20..LINK + 28).unwrap_or_default();
    let around = [position, &[1, 0x2C, 0, 100, 0, 45, 0, 0]].concat();
    let around = around.as_slice();
    let station = [&[0xBC, 0, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0][..], position].concat();
    let types = [(0x51, &[][..]), (0x40, around), (0x41, around), (0x32, around), (0x20, &station)];
    let carrying = types.into_iter().map(|(header_type, behind_source)| packet(&cam, header_type, behind_source, true));
    let sought = station.get(..8).unwrap_or_default();
    let services = [packet(&cam, 0x60, sought, false), packet(&cam, 0x61, &station, false)];
    carrying.chain(services).collect()
}

/// Returns a frame of a header type with the source of the captured CAM and, if `carrying`, its payload.
fn packet(cam: &[u8], header_type: u8, behind_source: &[u8], carrying: bool) -> Vec<u8> {
    let part = |range: std::ops::Range<usize>| cam.get(range).unwrap_or_default();
    let (next, length) = if carrying { (0x20, part(22..24)) } else { (0, &[0, 0][..]) };
    let payload = if carrying { part(GEONET..cam.len()) } else { &[] };
    let headers = [&[0x11, 0, 0x1A, 4, next, header_type, 0, 0x80][..], length, &[10, 0, 0, 1, 0, 0]].concat();
    [part(0..LINK), headers.as_slice(), part(LINK + 12..LINK + 36), behind_source, payload].concat()
}

fn behind(frames: Vec<Vec<u8>>, headers: usize) -> Vec<Vec<u8>> {
    frames.into_iter().map(|frame| frame.get(headers..).unwrap_or_default().to_vec()).collect()
}

/// Parses a vector: comment lines, then hexadecimal text.
fn octets(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.chars().filter_map(|digit| digit.to_digit(16)))
        .collect();
    let pairs = digits.chunks_exact(2);
    pairs.filter_map(|pair| u8::try_from(pair.iter().fold(0, |octet, digit| octet << 4 | digit)).ok()).collect()
}
