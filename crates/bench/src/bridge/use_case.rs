//! The use case of the paper: a lidar in the vehicle, the detection of vehicles in the cloud, and the list of objects back.
//!
//! ```text
//! vehicle: velodyne, uplink ──► link, broker ──► cloud: bridge, points, detector
//!           figures, uplink ◄── link, broker ◄──         bridge
//! ```
//!
//! The same components in one node are the use case in the vehicle. The stages are those of the key figures of each message.

use std::fmt::Write as _;

use viaduct_bus::Sample;
use viaduct_components::figures::path::{Offloading, Path};
use viaduct_components::link::End;
use viaduct_messages::viaduct::figures::RoundTrip;

use super::case::{Kind, Load, Setup};
use super::configs::{name, write_bridge, write_pairs};
use super::daemon::Broker;
use super::job::{StageTimes, Trip, WARM_UP};
use super::outcome::Outcome;

/// Topic of the list of objects.
const OBJECTS: &str = "lidar/objects";
/// Topic of the stages of each message.
pub(super) const TRIPS: &str = "figures/message";
/// Names of the components.
const NAMES: Offloading<'_> =
    Offloading { source: "velodyne", vehicle: "uplink", cloud: "bridge", function: "detector", reader: "figures" };
/// Stages of the use case in the vehicle, with their ends.
const IN_VEHICLE: [(&str, &str); 3] = [
    ("interface_to_detection", "detector taken"),
    ("detection", "detector published"),
    ("interface_to_benchmark", "figures taken"),
];

/// Returns the topic of the packets or points of the sensor.
const fn topic(kind: Kind) -> &'static str {
    match kind {
        Kind::Scan => "lidar/packets",
        Kind::Cloud => "lidar/points",
    }
}

/// Returns the config of a node.
pub(super) fn node(end: End, setup: &Setup, load: &Load, broker: &Broker) -> String {
    let topic = topic(load.kind);
    let mut text = format!("node: {}\ncomponents:\n", name(end));
    let (bridge, sent, received, queue) = match end {
        End::A => ("uplink", topic, OBJECTS, ", queue: latest"),
        End::B => ("bridge", OBJECTS, topic, ""),
    };
    write_bridge(&mut text, bridge, broker);
    let more = format!("{}{queue}", setup.compression.settings());
    write_pairs(&mut text, "routes", [(sent.to_owned(), mqtt(sent))].into_iter(), &route(setup, &more));
    write_pairs(&mut text, "inbound", [(mqtt(received), received.to_owned())].into_iter(), &route(setup, ""));
    match end {
        End::A => {
            write_sensor(&mut text, load);
            let _ =
                writeln!(text, "  figures: {{ kind: key_figures, settings: {{ topic: {OBJECTS}, source: {topic} }} }}");
        }
        End::B => write_detection(&mut text, load),
    }
    text
}

/// Returns the config of the node that does everything in the vehicle.
pub(super) fn in_vehicle_node(load: &Load) -> String {
    let mut text = format!("node: {}\ncomponents:\n", name(End::A));
    write_sensor(&mut text, load);
    write_detection(&mut text, load);
    let stages = IN_VEHICLE.map(|(name, to)| format!("{{ name: {name}, to: {to} }}")).join(", ");
    let topic = topic(load.kind);
    let _ = writeln!(
        text,
        "  figures: {{ kind: key_figures, settings: {{ topic: {OBJECTS}, source: {topic}, start: velodyne published, stages: [ {stages} ] }} }}"
    );
    text
}

fn mqtt(topic: &str) -> String {
    format!("bench/{topic}")
}

fn route(setup: &Setup, more: &str) -> String {
    format!(", encoding: native, qos: {}{more}", setup.qos)
}

fn write_sensor(text: &mut String, Load { kind, percent, rate_hz, .. }: &Load) {
    let output = match kind {
        Kind::Scan => "scan",
        Kind::Cloud => "cloud",
    };
    let _ = writeln!(
        text,
        "  velodyne: {{ kind: velodyne, settings: {{ topic: {}, output: {output}, format: ros1, drives: false, rate_hz: {rate_hz}, share: {percent} }} }}",
        topic(*kind)
    );
}

fn write_detection(text: &mut String, load: &Load) {
    let points = topic(Kind::Cloud);
    if load.kind == Kind::Scan {
        let packets = topic(Kind::Scan);
        let _ = writeln!(
            text,
            "  points: {{ kind: velodyne_points, settings: {{ from: {packets}, to: {points}, format: ros1 }} }}"
        );
    }
    // Objects on the bus have positions on the globe; any place will do.
    let _ = writeln!(
        text,
        "  detector: {{ kind: detector, settings: {{ from: {points}, to: {OBJECTS}, position: {{ latitude_deg: 50.8, longitude_deg: 6.1 }} }} }}"
    );
}

/// Returns a message of [`TRIPS`].
pub(super) fn trip(sample: &Sample<RoundTrip>) -> Trip {
    Trip { sequence: sample.sequence, stages_ms: sample.stages_ms.clone(), total_ms: sample.total_ms }
}

/// Returns the result of a cell: all messages from the first one after the warm-up to the last one were sent.
pub(super) fn outcome(trips: &[Trip], messages: u32, is_in_vehicle: bool) -> Outcome {
    let counted = trips.get(WARM_UP as usize..).unwrap_or_default();
    // The number of a message is 0 if the key figures do not know it.
    let numbers = || counted.iter().map(|trip| trip.sequence).filter(|number| *number > 0);
    let sent = numbers().max().zip(numbers().min()).map_or(0, |(last, first)| last - first + 1);
    let all = |stage: usize| counted.iter().filter_map(|trip| trip.stages_ms.get(stage).copied()).collect();
    let stages = names(is_in_vehicle).into_iter().enumerate();
    Outcome {
        sent: sent.max(messages.into()),
        round_trip: counted.iter().map(|trip| (trip.total_ms * 1e6) as u64).collect(),
        stages: stages.map(|(index, name)| StageTimes { name, ms: all(index) }).collect(),
        ..Outcome::default()
    }
}

fn names(is_in_vehicle: bool) -> Vec<String> {
    if is_in_vehicle {
        IN_VEHICLE.map(|(name, _)| name.to_owned()).to_vec()
    } else {
        Path::offloading(NAMES).stages().iter().map(|stage| stage.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::paper::STAGES;
    use super::*;

    #[test]
    fn the_stages_are_those_of_the_paper() {
        let published = |system: usize| {
            let with_figure = STAGES.iter().filter(move |(_, means)| means[system].is_some());
            with_figure.map(|(name, _)| (*name).to_owned()).filter(|name| name != "total").collect::<Vec<_>>()
        };
        assert_eq!(names(false), published(0));
        assert_eq!(names(true), published(3));
    }

    #[test]
    fn a_gap_in_the_numbers_is_a_loss() {
        let trip = |sequence| Trip { sequence, stages_ms: vec![1.0, 2.0, 3.0], total_ms: 6.0 };
        let trips: Vec<Trip> = (1..=10).filter(|number| *number != 8).map(trip).collect();
        let found = outcome(&trips, 4, true);
        assert_eq!((found.sent, found.lost(), found.round_trip), (5, 1, vec![6_000_000; 4]));
        assert_eq!((found.stages[1].name.as_str(), &found.stages[1].ms[..]), ("detection", &[2.0; 4][..]));
        assert_eq!(outcome(&trips[..3], 4, true).lost(), 4);
    }
}
