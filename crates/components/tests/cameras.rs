//! Cameras and the model of a vehicle in one node: pictures with their marks, budgets, states and commands.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_bus::{Publisher, Qos, Recv, Sample, Subscriber, clock};
use viaduct_components::kinds::camera::{FrameSegment, Mark};
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::its::{tai_of, timestamp};
use viaduct_messages::viaduct::its::Position;
use viaduct_messages::viaduct::vehicle::drive_command::Movement;
use viaduct_messages::viaduct::vehicle::{CameraBudget, DriveCommand, Gear, VehicleState};
use viaduct_node::{Component, Context, Edges, Graph, Kind, Node, StartError};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

const PATIENCE: Duration = Duration::from_secs(30);
const LATEST: Qos = Qos::keep_last(1);
const ALL: Qos = Qos::keep_last(4096);

/// A component that declares the input topics, on which the test publishes.
struct Feeder;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct FeederSettings {}

impl Component for Feeder {
    type Settings = FeederSettings;

    fn edges(_: &FeederSettings) -> Edges {
        Edges::default()
            .publishes::<CameraBudget>("", "budget", LATEST)
            .publishes::<VehicleState>("", "state", LATEST)
            .publishes::<DriveCommand>("", "commands", LATEST)
    }

    fn start(_: FeederSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Ok(Self)
    }
}

/// A node with a component under test.
struct Running {
    node: Node,
    _runtime: Runtime,
}

fn start(kind: &str, settings: &str) -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let kinds = [viaduct_components::KINDS, &[Kind::of::<Feeder>("feeder", "Feeds the inputs.", "{}")]].concat();
    let text = format!(
        "node: test\ncomponents:\n  feeder: {{ kind: feeder, settings: {{}} }}\n  it: {{ kind: {kind}, settings: {settings} }}\n"
    );
    let graph = Graph::resolve("node.yaml", &text, &kinds).unwrap_or_else(|errors| panic!("{errors}"));
    Running { node: Node::start(graph, runtime.handle()).unwrap(), _runtime: runtime }
}

impl Running {
    fn pictures(&self) -> Subscriber<CompressedImage> {
        self.node.bus().subscribe("camera", LATEST, "reader").unwrap()
    }

    fn publisher<M: viaduct_messages::Message>(&self, topic: &str) -> Publisher<M> {
        self.node.bus().publisher(topic, LATEST, "feeder").unwrap()
    }

    fn count(&self, name: &str, reason: Option<&str>) -> u64 {
        let snapshot = self.node.bus().snapshot();
        let rows = snapshot.counters.iter().filter(|row| row.component == "it" && row.name == name);
        rows.filter(|row| reason.is_none() || row.reason.as_deref() == reason).map(|row| row.value).sum()
    }

    fn stop(mut self) {
        assert!(self.node.try_failed().is_none());
        assert!(self.node.stop());
    }
}

fn next<M: viaduct_messages::Message>(messages: &Subscriber<M>) -> Sample<M> {
    match messages.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => sample,
        Recv::TimedOut => panic!("no message"),
        Recv::Closed => panic!("the node has ended"),
    }
}

/// Returns the first message that fits. `feed` is called repeatedly until then.
fn until<M: viaduct_messages::Message>(
    messages: &Subscriber<M>,
    mut feed: impl FnMut(),
    fits: impl Fn(&M) -> bool,
) -> Sample<M> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        feed();
        if let Recv::Sample(sample) = messages.recv_timeout(Duration::from_millis(20))
            && fits(&sample)
        {
            return sample;
        }
    }
    panic!("no message that fits");
}

#[test]
fn each_picture_carries_its_number_and_time_in_mark_segment_and_message() {
    let running = start(
        "camera",
        "{ topic: camera, index: 2, rate_hz: 20, frame_id: front, jpeg: { quality: 50 }, source: { synthetic: {} } }",
    );
    let pictures = running.pictures();
    let mut last = None;
    for _ in 0..3 {
        let picture = next(&pictures);
        assert_eq!((&*picture.format, &*picture.frame_id), ("jpeg", "front"));
        let segment = FrameSegment::read(&picture.data).unwrap();
        let mark = Mark::read_jpeg(&picture.data).unwrap();
        assert_eq!((segment.camera, segment.mark, segment.reduced), (2, true, false));
        assert_eq!((mark.camera, mark.frame), (2, segment.frame));
        assert_eq!(mark.unwrapped_time_us(segment.time_us), segment.time_us);
        let captured = tai_of(picture.timestamp.as_ref().unwrap());
        assert_eq!(u64::try_from(captured.nanos()).unwrap() / 1000, segment.time_us);
        assert_eq!(picture.meta().origin, captured, "the origin is the capture");
        assert!(clock::tai().since(captured) < Duration::from_secs(5));
        assert!(last.is_none_or(|last| segment.frame > last));
        last = Some(segment.frame);
    }
    assert_eq!(running.count("dropped", None), 0);
    running.stop();
}

/// Returns the mean difference of the brightness of two pictures, 0 to 255.
fn difference(one: &CompressedImage, other: &CompressedImage) -> f64 {
    let pixels = |picture: &CompressedImage| {
        let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::Luma);
        JpegDecoder::new_with_options(ZCursor::new(&picture.data[..]), options).decode().unwrap()
    };
    let (one, other) = (pixels(one), pixels(other));
    assert_eq!(one.len(), other.len());
    let sum: u64 = one.iter().zip(&other).map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
    sum as f64 / one.len() as f64
}

#[test]
fn a_picture_is_taken_from_the_place_of_the_vehicle_in_its_direction() {
    let settings = "{ topic: camera, rate_hz: 20, source: { synthetic: { state: state, mark: false } } }";
    let running = start("camera", settings);
    let (pictures, states) = (running.pictures(), running.publisher::<VehicleState>("state"));
    // South Avenue of the built-in town runs to the east.
    let taken = |longitude_deg: f64, heading_deg: f64| {
        let position = Some(Position { latitude_deg: 45.013_015, longitude_deg, altitude_m: None });
        let state = VehicleState { position, heading_deg: Some(heading_deg), ..VehicleState::default() };
        let since = clock::tai();
        let feed = || states.publish(state.clone()).unwrap();
        let is_later = |picture: &CompressedImage| {
            picture.timestamp.as_ref().is_some_and(|time| tai_of(time).since(since) > Duration::from_millis(200))
        };
        until(&pictures, feed, is_later)
    };
    let (first, again) = (taken(7.564_615, 90.0), taken(7.564_615, 90.0));
    let (ahead, turned) = (taken(7.564_815, 90.0), taken(7.564_615, 180.0));
    let still = difference(&first, &again);
    assert!(difference(&first, &ahead) > 2.0 * still, "{still} {}", difference(&first, &ahead));
    assert!(difference(&first, &turned) > 4.0 * still, "{still} {}", difference(&first, &turned));
    running.stop();
}

#[test]
fn a_budget_reduces_the_pictures_and_its_end_restores_them() {
    let running = start(
        "camera",
        "{ topic: camera, rate_hz: 30, budget: budget, source: { synthetic: { width: 480, height: 360 } } }",
    );
    let pictures = running.pictures();
    let budgets = running.publisher::<CameraBudget>("budget");
    let full = next(&pictures).data.len();
    let octets = u32::try_from(full / 3).unwrap();
    let small = |picture: &CompressedImage| picture.data.len() <= octets as usize;
    let reduced = until(&pictures, || budgets.publish(CameraBudget { octets_per_frame: octets }).unwrap(), small);
    assert!(FrameSegment::read(&reduced.data).unwrap().reduced);
    // A budget holds for 2 s.
    let restored = until(&pictures, || (), |picture| picture.data.len() > full * 8 / 10);
    assert!(!FrameSegment::read(&restored.data).unwrap().reduced);
    until(&pictures, || (), |_| running.count("published", None) > 10);
    budgets.publish(CameraBudget { octets_per_frame: 0 }).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while running.count("skipped", Some("budget")) == 0 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    running.stop();
}

#[test]
fn a_raw_camera_publishes_payloads_of_the_size_of_the_paper() {
    let running = start("camera", "{ topic: camera, rate_hz: 50, index: 1, source: { raw: {} } }");
    let pictures = running.pictures();
    let first = next(&pictures);
    assert_eq!((first.data.len(), &*first.format), (374_000, "raw"));
    let number = |picture: &CompressedImage| FrameSegment::read(&picture.data).unwrap().frame;
    assert!(number(&next(&pictures)) > number(&first));
    running.stop();
}

#[test]
fn recorded_pictures_are_published_with_a_frame_segment_and_under_a_budget() {
    // The recording consists of pictures of another camera.
    let directory = tempfile::tempdir().unwrap();
    let running = start("camera", "{ topic: camera, rate_hz: 20, jpeg: { quality: 90 }, source: { synthetic: {} } }");
    let pictures = running.pictures();
    for index in 0..3 {
        std::fs::write(directory.path().join(format!("{index}.jpg")), &next(&pictures).data).unwrap();
    }
    running.stop();
    std::fs::write(directory.path().join("3.jpg"), b"not a picture").unwrap();

    let path = directory.path().display();
    let settings = format!(
        "{{ topic: camera, rate_hz: 30, index: 7, budget: budget, source: {{ directory: {{ path: {path} }} }} }}"
    );
    let running = start("camera", &settings);
    let pictures = running.pictures();
    let recorded = next(&pictures);
    assert_eq!(FrameSegment::read(&recorded.data).unwrap().camera, 7);
    assert_eq!(Mark::read_jpeg(&recorded.data).unwrap().camera, 0, "the picture is unchanged");
    let budgets = running.publisher::<CameraBudget>("budget");
    let budget = || budgets.publish(CameraBudget { octets_per_frame: 20_000 }).unwrap();
    let reduced = until(&pictures, budget, |picture| picture.data.len() < 22_000);
    assert!(FrameSegment::read(&reduced.data).unwrap().reduced);
    until(&pictures, || (), |_| running.count("dropped", Some("malformed")) > 0);
    running.stop();
}

#[test]
fn a_camera_starts_without_its_device_and_counts_the_attempts() {
    let running = start("camera", "{ topic: camera, source: { v4l2: { device: /dev/no-such-camera } } }");
    let deadline = Instant::now() + PATIENCE;
    while running.count("device_errors", None) < 2 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    running.stop();
}

fn command(sequence: u32, movement: Movement) -> DriveCommand {
    DriveCommand {
        time: Some(timestamp(clock::tai())),
        sequence,
        movement: Some(movement),
        gear: Gear::Drive.into(),
        steering_angle_rad: 0.1,
        ..DriveCommand::default()
    }
}

#[test]
fn a_vehicle_obeys_commands_and_stops_without_them() {
    let running = start("vehicle_model", "{ topic: vehicle, commands: commands }");
    let states: Subscriber<VehicleState> = running.node.bus().subscribe("vehicle", ALL, "reader").unwrap();
    let commands = running.publisher::<DriveCommand>("commands");
    let first = next(&states);
    assert_eq!((first.speed_mps, first.gear()), (Some(0.0), Gear::Park));

    let mut sequence = 0;
    let drive = || {
        sequence += 1;
        commands.publish(command(sequence, Movement::SpeedMps(5.0))).unwrap();
    };
    let moving = until(&states, drive, |state| state.speed_mps.is_some_and(|speed| speed > 3.0));
    assert_eq!(moving.gear(), Gear::Drive);
    assert!(moving.steering_angle_rad.is_some_and(|angle| (0.05..0.11).contains(&angle)));
    assert!(moving.yaw_rate_dps.is_some_and(|rate| rate > 0.0), "a turn to the left");
    assert!(!moving.lights.unwrap().left_turn_signal);

    let stopped = until(&states, || (), |state| state.speed_mps == Some(0.0));
    let lights = stopped.lights.unwrap();
    assert!(lights.left_turn_signal && lights.right_turn_signal, "hazard lights");
    assert_eq!(running.count("timeouts", None), 1);

    let wrong = command(0, Movement::AccelerationMps2(f64::NAN));
    until(
        &states,
        || commands.publish(wrong.clone()).unwrap(),
        |_| running.count("commands_refused", Some("range")) > 0,
    );
    running.stop();
}
