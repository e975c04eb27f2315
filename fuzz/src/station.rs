//! A station that processes a sequence of frames: its state and the frames that it forwards.

use std::time::Duration;

use bytes::Bytes;
use viaduct_its::{
    Counters, Destination, Ego, SendRequest, Station, StationSettings,
    access::{HEADER_OCTETS, MacAddress},
    btp::BtpKind,
    facilities::{Message, MessageKind, cam},
    geonet::{
        self, Area, Mib, Shape, TrafficClass,
        mib::{AreaForwardingAlgorithm, NonAreaForwardingAlgorithm},
    },
    limits::{LOCATION_TABLE_ENTRIES_MAX, TRANSMITS_MAX},
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Mono, Now, Position, StationId, StationType, Tai, TimestampIts};

/// Length of the record header before each frame in octets: two of the frame's length, one of the time since the
/// previous frame.
const RECORD_HEADER: usize = 3;
/// Unit of that time.
const UNIT: Duration = Duration::from_millis(20);
/// Time after which all packets, location requests and location table entries have expired.
const ALL_EXPIRED: Duration = Duration::from_secs(7000);

/// Processes a sequence of frames. Checks that each frame results in one event, that the counters are consistent after
/// each frame, and that forwarded frames can be parsed. No packet may remain after all have expired. The first octet
/// selects the forwarding algorithm.
pub fn station(octets: &[u8]) {
    let Some((algorithms, records)) = octets.split_first() else { return };
    let mut now = start();
    let mut station = make_station(1, *algorithms);
    station.set_ego(now, ego(now, 0.0));
    for (after, frame) in Records(records) {
        now = now.plus(after);
        pass_deadlines(&mut station, now);
        station.handle_frame(now, &Bytes::copy_from_slice(frame));
        assert!(station.poll_event().is_some(), "a frame results in an event");
        assert_eq!(station.poll_event(), None);
        take_frames(&mut station, now);
        check(&station);
    }
    now = now.plus(ALL_EXPIRED);
    station.handle_timeout(now);
    take_frames(&mut station, now);
    check(&station);
    assert_eq!(station.held_packets(), 0, "a packet is still buffered after its lifetime");
}

/// Processes the deadlines before `now`. The same deadline must not occur twice.
fn pass_deadlines(station: &mut Station, now: Now) {
    while let Some(due) = station.poll_timeout().filter(|due| *due <= now.mono) {
        let late = now.mono.since(due);
        station.handle_timeout(Now { mono: due, tai: tai_before(now, late) });
        take_frames(station, now);
        assert!(station.poll_timeout() > Some(due), "a deadline is repeated");
    }
}

/// Returns the time `before` earlier.
fn tai_before(now: Now, before: Duration) -> Tai {
    Tai::from_nanos(now.tai.nanos() - i64::try_from(before.as_nanos()).unwrap_or(0))
}

/// Takes the frames that the station sends and checks that each can be parsed.
pub(crate) fn take_frames(station: &mut Station, now: Now) {
    let mut frames = 0;
    while let Some(frame) = station.poll_transmit() {
        let packet = frame.get(HEADER_OCTETS..).unwrap_or_default();
        let read = geonet::parse(packet, now.tai);
        assert!(read.is_ok(), "a sent frame cannot be parsed: {read:?}, {frame:02x?}");
        frames += 1;
    }
    assert!(frames <= TRANSMITS_MAX);
}

/// Checks that the counters are consistent and that the station's state is bounded.
pub(crate) fn check(station: &Station) {
    let counters: &Counters = station.counters();
    let events = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
    assert_eq!(counters.received, events + counters.dropped_total(), "{counters:?}");
    let left = counters.transmitted + counters.suppressed + counters.lost_total();
    assert_eq!(counters.taken, left + station.held_packets() as u64, "{counters:?}");
    assert!(station.known_stations() <= LOCATION_TABLE_ENTRIES_MAX);
}

/// Iterator of an input's frames, each with the time since the previous one.
pub(crate) struct Records<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = (Duration, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[high, low, after], rest) = self.0.split_first_chunk::<RECORD_HEADER>()?;
        let (frame, rest) = rest.split_at(usize::from(u16::from_be_bytes([high, low])).min(rest.len()));
        self.0 = rest;
        Some((UNIT * u32::from(after), frame))
    }
}

pub(crate) fn write_record(after: u8, frame: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&u16::try_from(frame.len()).expect("a frame is short").to_be_bytes());
    out.push(after);
    out.extend_from_slice(frame);
}

pub(crate) fn start() -> Now {
    Now { mono: Mono::default(), tai: TimestampIts(650_000_012_345).tai() }
}

/// Returns a position vector `north_m` metres north of the origin.
pub(crate) fn ego(now: Now, north_m: f64) -> Ego {
    Ego {
        time: now.tai,
        position: Position::new(45.0 + north_m / 111_195.0, 7.5),
        position_accurate: true,
        speed: MetresPerSecond(0.0),
        heading: Some(Degrees(0.0)),
    }
}

pub(crate) fn make_station(number: u8, algorithms: u8) -> Station {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, number]),
        station_type: StationType::PASSENGER_CAR,
        mobile: true,
        beacons: true,
    };
    let (towards, within) = (algorithms & 1 == 0, algorithms & 2 == 0);
    let mib = Mib {
        non_area_forwarding_algorithm: if towards {
            NonAreaForwardingAlgorithm::Greedy
        } else {
            NonAreaForwardingAlgorithm::ContentionBased
        },
        area_forwarding_algorithm: if within {
            AreaForwardingAlgorithm::Simple
        } else {
            AreaForwardingAlgorithm::ContentionBased
        },
        ..Mib::default()
    };
    Station::with_mib(settings, mib, number.into())
}

/// Returns frames of another station of each packet type, in BTP-A and BTP-B, with and without store-carry-forward.
/// Their destinations are an area, a station beyond the one under test, and the one under test.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let now = start();
    let (mut sender, mut beyond, mut here) = (make_station(2, 0), make_station(3, 0), make_station(1, 0));
    sender.set_ego(now, ego(now, -300.0));
    beyond.set_ego(now, ego(now, 300.0));
    here.set_ego(now, ego(now, 0.0));
    let later = now.plus(Duration::from_secs(1));
    let mut frames = Vec::new();
    // Beacons. The sender receives the beacon of the station under test, and requests the location of the
    // station beyond it.
    for station in [&mut sender, &mut beyond, &mut here] {
        station.handle_timeout(later);
        frames.extend(std::iter::from_fn(|| station.poll_transmit()));
    }
    let beacon = Bytes::from(frames.last().expect("a beacon was due").clone());
    sender.handle_frame(later, &beacon);
    for (destination, btp, class) in requests(here.address(), beyond.address()) {
        let request =
            SendRequest { btp, traffic_class: class, ..SendRequest::to(destination, MessageKind::Cam, cam(later)) };
        sender.send(later, &request).expect("the request is valid");
        frames.extend(std::iter::from_fn(|| sender.poll_transmit()));
    }
    let location_request = Bytes::from(frames.last().expect("the location request was sent").clone());
    beyond.handle_frame(later, &location_request);
    frames.extend(std::iter::from_fn(|| beyond.poll_transmit()));
    frames
}

/// Returns the requests to the other station. The last request is for a station that the sender does not know.
fn requests(here: geonet::GnAddress, beyond: geonet::GnAddress) -> Vec<(Destination, BtpKind, TrafficClass)> {
    let (a, b) = (BtpKind::A { source_port: 9 }, BtpKind::B { destination_port_info: 0 });
    let carried = TrafficClass(0x82);
    let (sides, azimuth) = ((Metres(200.0), Metres(100.0)), Degrees(30.0));
    let at = |north_m, shape| Area { centre: ego(start(), north_m).position, shape };
    let circle = Shape::Circle { radius: Metres(150.0) };
    let rectangle = Shape::Rectangle { a: sides.0, b: sides.1, azimuth };
    let ellipse = Shape::Ellipse { a: sides.0, b: sides.1, azimuth };
    vec![
        (Destination::SingleHop, a, TrafficClass::DP2),
        (Destination::Hops(5), b, TrafficClass::DP3),
        (Destination::Hops(2), a, carried),
        (Destination::Area(at(0.0, circle)), b, TrafficClass::DP2),
        (Destination::Area(at(400.0, rectangle)), b, carried),
        (Destination::Area(at(0.0, ellipse)), a, TrafficClass::DP2),
        (Destination::AnyIn(at(0.0, ellipse)), b, TrafficClass::DP2),
        (Destination::AnyIn(at(400.0, circle)), b, carried),
        (Destination::Station(here), b, TrafficClass::DP2),
        (Destination::Station(beyond), a, carried),
    ]
}

fn cam(now: Now) -> Bytes {
    let message = Message::Cam(Box::new(cam::build(&cam::CamInput::new(StationId(7), now.tai))));
    Bytes::from(message.encode().expect("the message can be encoded"))
}

/// Returns the seeds: all frames one second apart for each forwarding algorithm, one frame repeated, and each frame
/// twice at once.
pub(crate) fn sequences() -> Vec<Vec<u8>> {
    let frames = frames();
    let mut sequences: Vec<Vec<u8>> = (0..4).map(|algorithms| vec![algorithms]).collect();
    for sequence in &mut sequences {
        frames.iter().for_each(|frame| write_record(50, frame, sequence));
    }
    for (frame, algorithms) in frames.iter().zip([0, 1, 2, 3].into_iter().cycle()) {
        let mut again = vec![algorithms];
        (0..8).for_each(|_| write_record(0, frame, &mut again));
        sequences.push(again);
    }
    sequences
}

#[cfg(test)]
mod tests {
    use viaduct_its::Event;

    use super::*;

    #[test]
    fn seeds_have_every_packet_type_and_cause_events() {
        let types: std::collections::BTreeSet<u8> = frames().iter().map(|frame| frame[HEADER_OCTETS + 5]).collect();
        // Beacon, GUC, GAC with circle and ellipse, GBC with all three shapes, SHB and TSB, LS request and reply.
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            [0x10, 0x20, 0x30, 0x32, 0x40, 0x41, 0x42, 0x50, 0x51, 0x60, 0x61]
        );
        let mut here = make_station(1, 0);
        let mut events = Vec::new();
        here.set_ego(start(), ego(start(), 0.0));
        for frame in frames() {
            here.handle_frame(start().plus(Duration::from_secs(1)), &Bytes::from(frame));
            events.extend(here.poll_event());
            while here.poll_transmit().is_some() {}
        }
        assert!(events.iter().filter(|event| matches!(event, Event::Received(_))).count() > 5, "{events:?}");
        assert!(here.counters().forwarded > 3, "{:?}", here.counters());
    }
}
