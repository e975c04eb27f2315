//! Inputs that the decoders accept, made from `testdata/its`.

use viaduct_etsi::{
    cam_ts103900_v231 as etsi_cam, cpm_ts103324_v211 as etsi_cpm, denm_ts103831_v231 as etsi_denm,
    vam_ts103300_3_v231 as etsi_vam,
};

/// Frames with a CAM, with CPMs, and with a secured packet.
const CAM: &str = include_str!("../../testdata/its/cam.hex");
const CPMS: [&str; 2] =
    [include_str!("../../testdata/its/cpm_objects.hex"), include_str!("../../testdata/its/cpm_sensors.hex")];
const SECURED: &str = include_str!("../../testdata/its/secured_cam.hex");

/// Octets of the link's header.
const LINK: usize = 14;
/// Octets of the link's and of GeoNetworking's headers.
const GEONET: usize = LINK + 40;
/// Octets of all headers.
const BTP: usize = GEONET + 4;

/// A CAM with what the captured one has not: low frequency and special vehicle containers, all kinds of ASN.1 types.
const CAM_FULL: &str = include_str!("../../testdata/its/cam_full.json");
const DENM_FULL: &str = include_str!("../../testdata/its/denm_full.json");
const VAM_FULL: &str = include_str!("../../testdata/its/vam_full.json");
/// A CPM with containers of every kind, one unknown.
const CPM_FULL: &str = include_str!("../../testdata/its/cpm_full.json");

pub(crate) fn frames() -> Vec<Vec<u8>> {
    let captured = [CAM, CPMS[0], CPMS[1], SECURED].into_iter().map(octets);
    captured.chain([beacon()]).chain(multi_hop()).collect()
}

pub(crate) fn packets() -> Vec<Vec<u8>> {
    behind(frames(), LINK)
}

pub(crate) fn btp_packets() -> Vec<Vec<u8>> {
    behind([CAM, CPMS[0], CPMS[1]].into_iter().map(octets).collect(), GEONET)
}

pub(crate) fn cams() -> Vec<Vec<u8>> {
    let full = etsi_cam::from_json(CAM_FULL.as_bytes()).map(|cam| etsi_cam::encode(&cam));
    let full = full.expect("the seed is a CAM").expect("the seed can be encoded");
    behind(vec![octets(CAM)], BTP).into_iter().chain([full]).collect()
}

pub(crate) fn cpms() -> Vec<Vec<u8>> {
    let full = etsi_cpm::from_json(CPM_FULL.as_bytes()).map(|cpm| etsi_cpm::encode(&cpm));
    let full = full.expect("the seed is a CPM").expect("the seed can be encoded");
    behind(CPMS.into_iter().map(octets).collect(), BTP).into_iter().chain([full]).collect()
}

pub(crate) fn denms() -> Vec<Vec<u8>> {
    let full = etsi_denm::from_json(DENM_FULL.as_bytes()).expect("the seed is a DENM");
    vec![etsi_denm::encode(&full).expect("the seed can be encoded")]
}

pub(crate) fn vams() -> Vec<Vec<u8>> {
    let full = etsi_vam::from_json(VAM_FULL.as_bytes()).expect("the seed is a VAM");
    vec![etsi_vam::encode(&full).expect("the seed can be encoded")]
}

pub(crate) fn json_denms() -> Vec<Vec<u8>> {
    vec![DENM_FULL.as_bytes().to_vec()]
}

pub(crate) fn json_vams() -> Vec<Vec<u8>> {
    vec![VAM_FULL.as_bytes().to_vec()]
}

pub(crate) fn json_cams() -> Vec<Vec<u8>> {
    let texts = cams().into_iter().filter_map(|octets| etsi_cam::decode(&octets).ok()).map(|cam| {
        let mut text = Vec::new();
        etsi_cam::write_json(&cam, &mut text);
        text
    });
    texts.collect()
}

pub(crate) fn json_cpms() -> Vec<Vec<u8>> {
    let texts = cpms().into_iter().filter_map(|octets| etsi_cpm::decode(&octets).ok()).map(|cpm| {
        let mut text = Vec::new();
        etsi_cpm::write_json(&cpm, &mut text);
        text
    });
    texts.collect()
}

/// Classic pcap and pcapng of one frame each.
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
    vec![b"1726061471092870123;station:1726061471092970456;uplink:1726061471093070789".to_vec(), full.into_bytes()]
}

/// The project's own configs: every key that they use is one to be mutated.
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

/// A beacon frame: the captured CAM's link header and position vector behind the headers of a beacon.
fn beacon() -> Vec<u8> {
    let cam = octets(CAM);
    let mut frame = cam.get(..LINK).unwrap_or_default().to_vec();
    frame.extend_from_slice(&[0x11, 0, 0x1A, 1, 0x00, 0x10, 0, 0x80, 0, 0, 1, 0]);
    frame.extend_from_slice(cam.get(LINK + 12..LINK + 36).unwrap_or_default());
    frame
}

/// One frame of each multi-hop type: the captured CAM behind other headers.
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

/// A frame of that header type with the source of the captured CAM, and with its payload where one is carried.
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

/// The octets of a vector: comment lines, then hexadecimal text.
fn octets(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.chars().filter_map(|digit| digit.to_digit(16)))
        .collect();
    let pairs = digits.chunks_exact(2);
    pairs.filter_map(|pair| u8::try_from(pair.iter().fold(0, |octet, digit| octet << 4 | digit)).ok()).collect()
}
