//! Multi-hop packets in a town of 200 moving stations with a lossy radio: delivery ratio and cost of each forwarding
//! algorithm.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests may panic and read files")]
#![allow(clippy::print_stdout, reason = "the tables are printed")]

mod town;

use std::{fmt::Write, time::Duration};

use town::{Conditions, Delivery, EXTENT_M, RANGE, STATIONS, Town, circle};
use viaduct_its::{
    Destination,
    geonet::{
        Mib,
        mib::{AreaForwardingAlgorithm, ITS_GN_DEFAULT_MAX_COMMUNICATION_RANGE, NonAreaForwardingAlgorithm},
    },
};
use viaduct_netem::world::Place;
use viaduct_units::{Metres, Mono};

/// Time in which every station has received at least two beacons or CAMs of each neighbour.
const WARM_UP: Duration = Duration::from_secs(7);
/// Interval between packets.
const INTERVAL: Duration = Duration::from_millis(200);
/// Number of packets of each row.
const PACKETS: usize = 25;
/// Minimum time in the area for a station to count as a receiver.
const STAY: Duration = Duration::from_secs(1);
/// Radius of the area in the centre of the town.
const RADIUS_M: f64 = 500.0;
/// Duration of the location service's search: three repetitions, one second apart, to keep the test short.
const SEARCH: Duration = Duration::from_secs(4);
const RETRANSMISSIONS: u8 = 3;
/// Seed of the radio.
const SEED: u64 = 1;
/// Header types (EN 302 636-4-1, table 8).
const GUC: usize = 2;
const GBC: usize = 4;
const LS: usize = 6;

const GREEDY: NonAreaForwardingAlgorithm = NonAreaForwardingAlgorithm::Greedy;
const OUTSIDE_CBF: NonAreaForwardingAlgorithm = NonAreaForwardingAlgorithm::ContentionBased;
const SIMPLE: AreaForwardingAlgorithm = AreaForwardingAlgorithm::Simple;
const INSIDE_CBF: AreaForwardingAlgorithm = AreaForwardingAlgorithm::ContentionBased;

/// Default range of the standard.
const STANDARD_RANGE: Metres = ITS_GN_DEFAULT_MAX_COMMUNICATION_RANGE;

/// Returns the standard's constants with the actual range of the radio.
fn mib(towards: NonAreaForwardingAlgorithm, within: AreaForwardingAlgorithm) -> Mib {
    Mib {
        non_area_forwarding_algorithm: towards,
        area_forwarding_algorithm: within,
        default_max_communication_range: RANGE,
        ..Mib::default()
    }
}

const fn towards_label(mib: &Mib) -> &'static str {
    match mib.non_area_forwarding_algorithm {
        NonAreaForwardingAlgorithm::Greedy => "greedy",
        NonAreaForwardingAlgorithm::ContentionBased => "contention",
    }
}

const fn within_label(mib: &Mib) -> &'static str {
    match mib.area_forwarding_algorithm {
        AreaForwardingAlgorithm::Simple => "simple",
        AreaForwardingAlgorithm::ContentionBased => "contention",
    }
}

/// Returns a town after the warm-up, in which all stations have received their neighbours' beacons.
fn warm_town(conditions: Conditions, mib: Mib) -> Town {
    let mut town = Town::new(conditions, mib, SEED);
    town.advance(WARM_UP);
    town
}

const fn middle() -> Place {
    Place::new(EXTENT_M.0 / 2.0, EXTENT_M.1 / 2.0)
}

/// Returns `true` if a vehicle is in the area now and for the time `STAY`.
fn stays_inside(town: &Town, number: usize) -> bool {
    let now = town.world.now();
    [now, now.plus(STAY)].into_iter().all(|when| town.place(number, when).distance(middle()).value() <= RADIUS_M)
}

fn is_far_outside(town: &Town, number: usize) -> bool {
    town.place(number, town.world.now()).distance(middle()).value() > RADIUS_M + 300.0
}

/// Returns a vehicle that satisfies a condition, a different one for each turn.
fn pick(town: &Town, turn: usize, holds: fn(&Town, usize) -> bool) -> usize {
    (0..STATIONS).map(|step| (turn * 37 + step) % STATIONS).find(|number| holds(town, *number)).unwrap()
}

/// A sent packet and its expected receivers.
struct Sent {
    packet: u32,
    at: Mono,
    expected: Vec<usize>,
}

/// Results of the packets of a row.
#[derive(Default)]
struct Outcome {
    /// Share of the expected receivers that each packet reached, 0 to 1.
    reached: Vec<f64>,
    /// Number of duplicate deliveries.
    twice: usize,
    delays: Vec<Duration>,
    hops: Vec<u8>,
}

impl Outcome {
    fn of(town: &Town, sent: &[Sent]) -> Self {
        let mut outcome = Self::default();
        let deliveries: Vec<&[Delivery]> = town.vehicles().map(|vehicle| vehicle.deliveries.as_slice()).collect();
        for one in sent {
            let got = |number: &usize| deliveries[*number].iter().find(|delivery| delivery.packet == one.packet);
            let first: Vec<&Delivery> = one.expected.iter().filter_map(got).collect();
            outcome.reached.push(first.len() as f64 / one.expected.len() as f64);
            outcome.delays.extend(first.iter().map(|delivery| delivery.at.since(one.at)));
            outcome.hops.extend(first.iter().map(|delivery| delivery.hops));
            let all = deliveries.iter().map(|of_one| of_one.iter().filter(|each| each.packet == one.packet).count());
            outcome.twice += all.map(|count| count.saturating_sub(1)).sum::<usize>();
        }
        outcome.delays.sort();
        outcome
    }

    /// Returns the share of expected receivers reached over all packets, in percent.
    fn delivered_percent(&self, sent: &[Sent]) -> f64 {
        let expected: usize = sent.iter().map(|one| one.expected.len()).sum();
        100.0 * self.delays.len() as f64 / expected as f64
    }

    fn worst_percent(&self) -> f64 {
        100.0 * self.reached.iter().copied().fold(1.0, f64::min)
    }

    fn delay_ms(&self, part: f64) -> f64 {
        let index = ((self.delays.len() as f64 * part) as usize).min(self.delays.len() - 1);
        self.delays[index].as_secs_f64() * 1e3
    }

    fn mean_hops(&self) -> f64 {
        self.hops.iter().map(|hops| f64::from(*hops)).sum::<f64>() / self.hops.len() as f64
    }
}

fn per_packet(count: u64) -> f64 {
    count as f64 / PACKETS as f64
}

/// Sends packets to the area, one at a time, from stations that satisfy a condition.
fn broadcast(town: &mut Town, may_send: fn(&Town, usize) -> bool) -> Vec<Sent> {
    let mut sent = Vec::new();
    for turn in 0..PACKETS {
        let by = pick(town, turn, may_send);
        let expected = (0..STATIONS).filter(|number| *number != by && stays_inside(town, *number)).collect();
        let packet = town.send(by, Destination::Area(circle(middle(), RADIUS_M))).unwrap();
        sent.push(Sent { packet, at: town.world.now(), expected });
        town.advance(INTERVAL);
    }
    town.advance(STAY);
    sent
}

/// Returns the result columns of a broadcast row.
fn broadcast_columns(town: &Town, sent: &[Sent], outcome: &Outcome) -> String {
    format!(
        "{:>9.2} {:>6.1} {:>5} {:>6.1} {:>6.1} {:>6.1} {:>6.1}",
        outcome.delivered_percent(sent),
        outcome.worst_percent(),
        outcome.twice,
        per_packet(town.sent(GBC)),
        per_packet(town.repeated()),
        outcome.delay_ms(0.5),
        outcome.delay_ms(0.99),
    )
}

/// Checks that every lost frame and packet is counted.
fn assert_adds_up(town: &Town) {
    for vehicle in town.vehicles() {
        let (station, counters) = (vehicle.station(), vehicle.station().counters());
        let events = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
        assert_eq!(counters.received, events + counters.dropped_total(), "{counters:?}");
        let left = counters.transmitted + counters.suppressed + counters.lost_total();
        assert_eq!(counters.taken, left + station.held_packets() as u64, "{counters:?}");
    }
    let counters = town.world.counters();
    let ended = counters.receptions + counters.not_addressed + counters.lost_signals();
    let in_the_air = counters.signals.checked_sub(ended).unwrap();
    assert!(in_the_air < STATIONS as u64, "{counters:?}");
}

const BROADCAST_HEADER: &str = "delivered  worst twice frames  again    p50    p99";

/// Compares a table with the committed one, or rewrites it if UPDATE_GOLDEN=1.
fn compare(name: &str, table: &str) {
    println!("{table}");
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, table).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == table, "{name} has changed: look at the difference after UPDATE_GOLDEN=1 cargo test");
}

#[test]
fn broadcasts_reach_the_area_once() {
    let mut table = format!(
        "GBC to a circle of {RADIUS_M} m, {PACKETS} packets a row. {STATIONS} stations drive on {} m x {} m of streets; the radio is\n\
         clear to 250 m, fades to 500 m and loses one signal in ten besides; signals collide.\n\
         delivered, worst: % of the stations in the area, of all packets and of the worst one; twice: delivered again;\n\
         frames: of all stations a packet; again: repetitions of the radios a packet; p50, p99: ms to a station.\n\
         range: itsGnDefaultMaxCommunicationRange in m; the standard's default is 1000.\n\n\
         source  towards    within     range {BROADCAST_HEADER}\n",
        EXTENT_M.0, EXTENT_M.1
    );
    let rows = [
        (false, GREEDY, SIMPLE, RANGE),
        (false, GREEDY, INSIDE_CBF, RANGE),
        (false, GREEDY, INSIDE_CBF, STANDARD_RANGE),
        (true, GREEDY, SIMPLE, RANGE),
        (true, GREEDY, INSIDE_CBF, RANGE),
        (true, GREEDY, INSIDE_CBF, STANDARD_RANGE),
        (true, OUTSIDE_CBF, SIMPLE, RANGE),
        (true, OUTSIDE_CBF, INSIDE_CBF, RANGE),
        (true, OUTSIDE_CBF, INSIDE_CBF, STANDARD_RANGE),
    ];
    for (from_outside, towards, within, range) in rows {
        let mib = Mib { default_max_communication_range: range, ..mib(towards, within) };
        let mut town = warm_town(Conditions::USUAL, mib);
        let sent = broadcast(&mut town, if from_outside { is_far_outside } else { stays_inside });
        let outcome = Outcome::of(&town, &sent);
        let (source, towards_label) = if from_outside { ("outside", towards_label(&mib)) } else { ("inside", "-") };
        let columns = broadcast_columns(&town, &sent, &outcome);
        let (within_label, range) = (within_label(&mib), range.value());
        writeln!(table, "{source:<7} {towards_label:<10} {within_label:<10} {range:>5} {columns}").unwrap();
        assert_eq!(outcome.twice, 0, "each station delivers a packet once");
        assert_adds_up(&town);
        // The next test covers the losses of greedy forwarding.
        let greedy = from_outside && towards == GREEDY;
        assert!(greedy || outcome.delivered_percent(&sent) >= 99.0, "{columns}");
    }
    compare("multi_hop_gbc.txt", &table);
}

/// Parameters of a row of greedy forwarding: distance without fading in metres, `true` if the stations drive, and
/// Viaduct's limits on the chosen neighbour. The limits are the age of its position in seconds and its distance in
/// metres.
type GreedyCase = (f64, bool, Option<(u64, f64)>);

/// Greedy forwarding sends a packet to the neighbour whose last position is nearest to the destination. Near the end
/// of the range that neighbour has often moved away or is rarely reached by the radio. Without these two effects, or
/// if such neighbours are skipped, the packets are delivered.
#[test]
fn greedy_forwarding_loses_packets_by_old_positions_and_fading() {
    let mut table = format!(
        "GBC from outside with greedy forwarding towards the area and simple forwarding within; else as multi_hop_gbc.txt.\n\
         clear: m to which the radio does not fade; age, near: s and m up to which neighbours are taken\n\
         (greedy_neighbour_age_max and greedy_neighbour_distance_max, own additions; -: as the standard has it).\n\n\
         clear stations age near {BROADCAST_HEADER}\n"
    );
    let cases: [GreedyCase; 5] = [
        (250.0, true, None),
        (250.0, false, None),
        (500.0, true, None),
        (500.0, false, None),
        (250.0, true, Some((5, 300.0))),
    ];
    let mut delivered = Vec::new();
    for case in cases {
        let (row, percent) = greedy_row(case);
        writeln!(table, "{row}").unwrap();
        delivered.push(percent);
    }
    let [both, fading, old, neither, bounded] = delivered[..] else { panic!() };
    assert!(neither >= 99.0 && both < fading && old < neither && fading < neither, "{table}");
    assert!(bounded >= 99.0, "{table}");
    compare("multi_hop_greedy.txt", &table);
}

fn greedy_row((clear_m, driving, bounds): GreedyCase) -> (String, f64) {
    let mib = Mib {
        greedy_neighbour_age_max: bounds.map(|(age_s, _)| Duration::from_secs(age_s)),
        greedy_neighbour_distance_max: bounds.map(|(_, metres)| Metres(metres)),
        ..mib(GREEDY, SIMPLE)
    };
    let mut town = warm_town(Conditions { clear: Metres(clear_m), driving }, mib);
    let sent = broadcast(&mut town, is_far_outside);
    let outcome = Outcome::of(&town, &sent);
    let stations = if driving { "drive" } else { "stand" };
    let (age, near) =
        bounds.map_or(("-".to_owned(), "-".to_owned()), |(age, near)| (age.to_string(), near.to_string()));
    let columns = broadcast_columns(&town, &sent, &outcome);
    let row = format!("{clear_m:>5} {stations:<8} {age:>3} {near:>4} {columns}");
    (row, outcome.delivered_percent(&sent))
}

/// Sends packets from one end of the town to the other, one at a time, to stations whose location is not yet known.
fn unicast(town: &mut Town) -> Vec<Sent> {
    let mut sent = Vec::new();
    for turn in 0..PACKETS {
        let by = pick(town, turn, is_west);
        let to =
            (0..STATIONS).rev().map(|step| (turn + step) % STATIONS).find(|number| is_east(town, *number)).unwrap();
        let packet = town.send(by, Destination::Station(town.address(to))).unwrap();
        sent.push(Sent { packet, at: town.world.now(), expected: vec![to] });
        town.advance(INTERVAL);
    }
    town.advance(SEARCH);
    sent
}

fn is_west(town: &Town, number: usize) -> bool {
    town.place(number, town.world.now()).east.value() < 0.2 * EXTENT_M.0
}

fn is_east(town: &Town, number: usize) -> bool {
    town.place(number, town.world.now()).east.value() > 0.7 * EXTENT_M.0
}

#[test]
fn unicasts_find_their_station() {
    let mut table = format!(
        "GUC over at least {} m, {PACKETS} packets a row; town and radio as in multi_hop_gbc.txt; a search is given up\n\
         after {RETRANSMISSIONS} repetitions. delivered: %; twice: delivered again; asked: location requests of sources a packet; LS, GUC: frames\n\
         of all stations a packet; again: repetitions of the radios a packet; hops: mean; p50, p99: ms from the request, search included.\n\
         greedy*: neighbours up to 5 s and 300 m, as in multi_hop_greedy.txt.\n\n\
         towards    delivered twice asked     LS    GUC  again  hops    p50    p99\n",
        0.5 * EXTENT_M.0
    );
    for (towards, bounded) in [(GREEDY, false), (GREEDY, true), (OUTSIDE_CBF, false)] {
        let mib = Mib {
            location_service_max_retrans: RETRANSMISSIONS,
            greedy_neighbour_age_max: bounded.then_some(Duration::from_secs(5)),
            greedy_neighbour_distance_max: bounded.then_some(Metres(300.0)),
            ..mib(towards, INSIDE_CBF)
        };
        let mut town = warm_town(Conditions::USUAL, mib);
        let sent = unicast(&mut town);
        let outcome = Outcome::of(&town, &sent);
        let asked = town.vehicles().map(|vehicle| vehicle.station().counters().location_requests_sent).sum();
        writeln!(
            table,
            "{:<10} {:>9.2} {:>5} {:>5.1} {:>6.1} {:>6.1} {:>6.1} {:>5.1} {:>6.1} {:>6.1}",
            if bounded { "greedy*" } else { towards_label(&mib) },
            outcome.delivered_percent(&sent),
            outcome.twice,
            per_packet(asked),
            per_packet(town.sent(LS)),
            per_packet(town.sent(GUC)),
            per_packet(town.repeated()),
            outcome.mean_hops(),
            outcome.delay_ms(0.5),
            outcome.delay_ms(0.99),
        )
        .unwrap();
        assert_eq!(outcome.twice, 0, "the station delivers a packet once");
        assert_adds_up(&town);
    }
    compare("multi_hop_guc.txt", &table);
}
