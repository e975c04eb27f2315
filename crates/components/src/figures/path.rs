//! The stages of a path, and their latencies for one message.

use std::time::Duration;

use viaduct_bus::{ClockState, HopKind, HopName, HopStamp};

/// Maximum number of stages: a message has at most sixteen stamps.
pub const STAGES_MAX: usize = 15;

/// A point of a path: the stamp of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The component.
    pub hop: HopName,
    /// What happened to the message.
    pub kind: HopKind,
}

/// Error of a text that names no point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a point: expected a component and `published`, `taken`, `sent` or `received`, such as `detector taken`"
)]
pub struct NoPoint(String);

impl Point {
    const fn new(hop: HopName, kind: HopKind) -> Self {
        Self { hop, kind }
    }

    /// Parses a point: `detector taken`.
    ///
    /// # Errors
    /// Returns an error if the text is not a name and a kind.
    pub fn parse(text: &str) -> Result<Self, NoPoint> {
        let (name, kind) = text.split_once(' ').ok_or_else(|| NoPoint(text.to_owned()))?;
        let kinds = [HopKind::Published, HopKind::Taken, HopKind::Sent, HopKind::Received];
        let kind = kinds.into_iter().find(|known| known.label() == kind);
        match kind {
            Some(kind) if !name.is_empty() && !name.contains(char::is_whitespace) => {
                Ok(Self::new(HopName::new(name), kind))
            }
            _ => Err(NoPoint(text.to_owned())),
        }
    }

    fn is_at(&self, stamp: &HopStamp) -> bool {
        self.hop == stamp.hop && self.kind == stamp.kind()
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.hop, self.kind.label())
    }
}

/// A stage of a path: from the end of the stage before to a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name of the stage.
    pub name: String,
    /// Its end.
    pub to: Point,
}

/// A path: its start, and its stages in the order of flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    start: Point,
    stages: Vec<Stage>,
}

/// Names of the components of a function that a vehicle offloads to a cloud.
#[derive(Clone, Copy, Debug)]
pub struct Offloading<'a> {
    /// Source of the messages, in the vehicle.
    pub source: &'a str,
    /// Interface of the vehicle to the cloud.
    pub vehicle: &'a str,
    /// Interface of the cloud to the vehicle.
    pub cloud: &'a str,
    /// The function, in the cloud.
    pub function: &'a str,
    /// Reader of the results, in the vehicle.
    pub reader: &'a str,
}

impl Path {
    /// Creates a path.
    #[must_use]
    pub const fn new(start: Point, stages: Vec<Stage>) -> Self {
        Self { start, stages }
    }

    /// Returns the path of a function that a vehicle offloads to a cloud, with the eleven partial latencies of the case study of
    /// `mqtt_client` (lidar object detection).
    #[must_use]
    pub fn offloading(names: Offloading<'_>) -> Self {
        use HopKind::{Published, Received, Sent, Taken};
        let [source, vehicle, cloud, function, reader] =
            [names.source, names.vehicle, names.cloud, names.function, names.reader].map(HopName::new);
        let stages = [
            ("vehicle_to_interface", vehicle, Taken),
            ("vehicle_interface_out", vehicle, Sent),
            ("vehicle_to_cloud", cloud, Received),
            ("cloud_interface_in", cloud, Published),
            ("interface_to_detection", function, Taken),
            ("detection", function, Published),
            ("detection_to_interface", cloud, Taken),
            ("cloud_interface_out", cloud, Sent),
            ("cloud_to_vehicle", vehicle, Received),
            ("vehicle_interface_in", vehicle, Published),
            ("interface_to_benchmark", reader, Taken),
        ];
        let stage =
            |(name, hop, kind): (&str, HopName, HopKind)| Stage { name: name.to_owned(), to: Point::new(hop, kind) };
        Self::new(Point::new(source, Published), stages.map(stage).to_vec())
    }

    /// Returns the stages.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the points: the start, and the end of each stage.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        std::iter::once(self.start).chain(self.stages.iter().map(|stage| stage.to))
    }

    /// Returns `true` for each stage that is the way from one node to another.
    #[must_use]
    pub fn crossings(&self) -> Vec<bool> {
        let kinds = || self.points().map(|point| point.kind);
        kinds().zip(kinds().skip(1)).map(|(from, to)| (from, to) == (HopKind::Sent, HopKind::Received)).collect()
    }

    /// Finds the points of the path among the stamps of a message. Other stamps between them are skipped.
    ///
    /// # Errors
    /// Returns the first point that the message has not passed, in the order of flow.
    pub fn trace(&self, stamps: &[HopStamp]) -> Result<Trace, Point> {
        let mut rest = stamps.iter();
        let found = self.points().map(|point| rest.find(|stamp| point.is_at(stamp)).copied().ok_or(point));
        Ok(Trace { stamps: found.collect::<Result<_, _>>()? })
    }
}

/// The stamps of one message at the points of a path.
#[derive(Clone, Debug)]
pub struct Trace {
    stamps: Vec<HopStamp>,
}

/// A way from one node to another, by the clocks of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Reception minus sending, in milliseconds: the latency plus the offset of the clocks.
    pub difference_ms: f64,
    /// State of the two clocks.
    pub clocks: ClockState,
}

impl Crossing {
    /// Returns the largest error of the difference by the clocks, in milliseconds, or `None` if they are not synchronised.
    #[must_use]
    pub fn error_ms(&self) -> Option<f64> {
        self.clocks.error().map(millis)
    }
}

impl Trace {
    /// Returns the stamps, one for each point.
    #[must_use]
    pub fn stamps(&self) -> &[HopStamp] {
        &self.stamps
    }

    /// Returns the time from the start to the end of the path, in milliseconds. If the path ends on the machine on which it starts, no
    /// other clock matters.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        match self.stamps.as_slice() {
            [start, .., end] => difference_ms(start, end),
            _ => 0.0,
        }
    }

    /// Returns the differences of the stamps of each stage, in milliseconds.
    pub fn differences_ms(&self) -> impl Iterator<Item = f64> + '_ {
        self.pairs().map(|(from, to)| difference_ms(from, to))
    }

    /// Returns the crossing of each stage, or `None` if the stage is within one node.
    pub fn crossings(&self) -> impl Iterator<Item = Option<Crossing>> + '_ {
        self.pairs().map(|(from, to)| {
            let clocks = from.clocks_until(to)?;
            Some(Crossing { difference_ms: difference_ms(from, to), clocks })
        })
    }

    /// Returns the mean latency of the ways between nodes, in milliseconds: the total without the other stages, divided by the number
    /// of ways. `None` if there is none.
    ///
    /// Every other stage is measured by one clock, and so is the total, so that the offset of the clocks does not matter.
    #[must_use]
    pub fn communication_ms(&self) -> Option<f64> {
        let ways = self.crossings().flatten().count();
        let differences = self.differences_ms().zip(self.crossings());
        let others: f64 =
            differences.filter(|(_, crossing)| crossing.is_none()).map(|(difference, _)| difference).sum();
        (ways > 0).then(|| (self.total_ms() - others) / ways as f64)
    }

    /// Returns the latencies of the stages, in milliseconds; for each way between nodes, [`Self::communication_ms`]. Their sum is the
    /// total.
    #[must_use]
    pub fn partials_ms(&self) -> Vec<f64> {
        let communication_ms = self.communication_ms().unwrap_or_default();
        let stages = self.differences_ms().zip(self.crossings());
        stages.map(|(difference, crossing)| if crossing.is_some() { communication_ms } else { difference }).collect()
    }

    fn pairs(&self) -> impl Iterator<Item = (&HopStamp, &HopStamp)> {
        self.stamps.iter().zip(self.stamps.iter().skip(1))
    }
}

fn difference_ms(from: &HopStamp, to: &HopStamp) -> f64 {
    to.at.nanos().saturating_sub(from.at.nanos()) as f64 / 1e6
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use viaduct_units::Tai;

    const NAMES: Offloading<'_> =
        Offloading { source: "velodyne", vehicle: "uplink", cloud: "bridge", function: "detector", reader: "figures" };

    /// Returns the stamps of a message on its way to the cloud and back, with the given latencies of the stages in
    /// microseconds, and a clock of the cloud that is ahead.
    pub(crate) fn stamps(stages_us: [i64; 11], ahead_us: i64, clock: ClockState) -> Vec<HopStamp> {
        let path = Path::offloading(NAMES);
        let mut at_us = 1_700_000_000_000_000;
        let times = std::iter::once(0).chain(stages_us).map(|stage_us| {
            at_us += stage_us;
            at_us
        });
        let stamp = |(index, (point, at_us)): (usize, (Point, i64))| {
            let is_cloud = (3..=8).contains(&index);
            let at = Tai::from_unix_nanos((at_us + if is_cloud { ahead_us } else { 0 }) * 1_000);
            let is_between = matches!(point.kind, HopKind::Sent | HopKind::Received);
            let clock = if is_between { clock } else { ClockState::Unknown };
            HopStamp::new(point.hop, point.kind, at).with_clock(clock)
        };
        path.points().zip(times.collect::<Vec<_>>()).enumerate().map(stamp).collect()
    }

    /// The paper's table for `mqtt_client`, in microseconds.
    pub(crate) const PAPER_US: [i64; 11] = [200, 300, 19_000, 100, 3_600, 43_400, 100, 100, 19_000, 100, 200];

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-6
    }

    #[test]
    fn the_stages_of_a_message_add_up_to_its_total_whatever_the_offset_of_the_clocks() {
        for ahead_us in [0, 3_000_000, -3_000_000] {
            let mut stages_us = PAPER_US;
            // The two ways differ.
            (stages_us[2], stages_us[8]) = (25_000, 13_000);
            let trace =
                Path::offloading(NAMES).trace(&stamps(stages_us, ahead_us, ClockState::Unsynchronised)).unwrap();
            assert!(near(trace.total_ms(), 86.1), "{}", trace.total_ms());
            assert!(near(trace.communication_ms().unwrap(), 19.0));
            let expected = PAPER_US.map(|us| us as f64 / 1e3);
            let found = trace.partials_ms();
            assert!(found.iter().zip(expected).all(|(found, expected)| near(*found, expected)), "{found:?}");
            assert!(near(found.iter().sum(), trace.total_ms()));
            let ways: Vec<f64> = trace.crossings().flatten().map(|way| way.difference_ms).collect();
            let ahead_ms = ahead_us as f64 / 1e3;
            assert!(near(ways[0], 25.0 + ahead_ms) && near(ways[1], 13.0 - ahead_ms), "{ways:?}");
        }
    }

    #[test]
    fn other_stamps_are_skipped_and_a_missing_one_is_named() {
        let path = Path::offloading(NAMES);
        let mut stamps = stamps(PAPER_US, 0, ClockState::Shared);
        let converter = HopStamp::new(HopName::new("converter"), HopKind::Taken, stamps[4].at);
        stamps.insert(5, converter);
        assert_eq!(path.trace(&stamps).unwrap().stamps().len(), 12);
        stamps.retain(|stamp| stamp.hop != HopName::new("detector"));
        assert_eq!(path.trace(&stamps).unwrap_err().to_string(), "detector taken");
        assert_eq!(path.crossings().iter().filter(|crosses| **crosses).count(), 2);
    }

    #[test]
    fn a_path_within_one_node_has_no_communication() {
        let point = |text: &str| Point::parse(text).unwrap();
        let stages = [("to_detection", "detector taken"), ("detection", "detector published")];
        let stage = |(name, to): (&str, &str)| Stage { name: name.to_owned(), to: point(to) };
        let path = Path::new(point("velodyne published"), stages.map(stage).to_vec());
        let stamp = |text: &str, millis: i64| {
            let point = point(text);
            HopStamp::new(point.hop, point.kind, Tai::from_nanos(millis * 1_000_000))
        };
        let stamps = [stamp("velodyne published", 1), stamp("detector taken", 3), stamp("detector published", 10)];
        let trace = path.trace(&stamps).unwrap();
        assert_eq!((trace.communication_ms(), trace.partials_ms()), (None, vec![2.0, 7.0]));
    }

    #[test]
    fn a_text_that_is_no_point_is_refused() {
        for text in ["", "detector", "detector gone", " taken", "a b taken"] {
            assert!(Point::parse(text).is_err(), "{text}");
        }
        assert_eq!(Point::parse("detector taken").unwrap().to_string(), "detector taken");
    }
}
