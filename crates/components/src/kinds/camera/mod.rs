//! Kind `camera`: publishes pictures from a road scene, recorded files, or a camera of the system.
//!
//! Each picture is a JPEG file with a frame segment ([`FrameSegment`]): camera, frame number, capture time. A picture of a road scene
//! also has a mark that a program can read from the screen ([`Mark`]). Under a budget, the quality of the pictures decreases, then
//! their size, then their rate.
//!
//! Counters: `published`; `skipped{reason="budget"}` and `{reason="rate"}`, pictures that the budget or the configured rate do not
//! permit; `dropped` with the reason `no_buffer`, `too_large` or `malformed`; `states_refused`; `device_errors`. Gauges:
//! `quality_percent`, unknown for a file that is published as it is, and `picture_octets`.

mod budget;
mod directory;
mod ego;
pub mod fuzzing;
mod jpeg;
mod mark;
mod output;
mod picture;
mod quality;
mod scene;
mod settings;
mod v4l2;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use viaduct_bus::{Counter, Qos, Sample};
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::viaduct::vehicle::{CameraBudget, VehicleState};
use viaduct_node::{CallbackContext, Component, Context, Edges, Loans, SettingError, StartError};
use viaduct_units::{Mono, Now, Rng, Tai};

pub use crate::frame_segment::FrameSegment;
pub use mark::{Luma, Mark, MarkError};
pub use settings::{
    CameraSettings, DirectorySettings, JpegSettings, RawSettings, SmallestSize, SourceSettings, SyntheticSettings,
    V4l2Settings, ViewSetting,
};

use budget::Budget;
use directory::Recording;
use ego::Ego;
use output::Output;
use scene::{Mount, Scene};

/// Requested quality of service of states and budgets: the newest one is sufficient.
const NEWEST: Qos = Qos::keep_last(1);

/// A camera.
pub struct Camera {
    budget: Budget,
    source: Source,
    states_refused: Counter,
}

/// The source of the pictures.
enum Source {
    Synthetic(Box<Synthetic>),
    Directory(Recording, Box<Output>),
    Raw(Vec<u8>, Ticks, Box<Output>),
    /// A thread reads the device.
    Device,
}

/// The schedule of the source `raw`. Its frames have the time of their tick, so the delay of a late callback is part of the latency.
struct Ticks {
    period: Duration,
    latest: Option<Mono>,
}

impl Ticks {
    /// Returns the tick of a callback that begins at `now`.
    fn tick(&mut self, now: Now) -> Now {
        let tick = self.latest.map_or(now.mono, |latest| {
            let periods = now.mono.since(latest).as_nanos() / self.period.as_nanos();
            // The callback is earlier than the next tick: the schedule was late.
            if periods == 0 { now.mono } else { latest.plus(self.period * periods as u32) }
        });
        self.latest = Some(tick);
        let late = i64::try_from(now.mono.since(tick).as_nanos()).unwrap_or(0);
        Now { mono: tick, tai: Tai::from_nanos(now.tai.nanos() - late) }
    }
}

/// A road scene.
struct Synthetic {
    scene: Scene,
    mount: Mount,
    size: (usize, usize),
    mark: bool,
    /// `true` if the vehicle has a topic.
    has_state: bool,
    ego: Option<Ego>,
    output: Output,
}

impl Component for Camera {
    type Settings = CameraSettings;

    fn check(settings: &CameraSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &CameraSettings) -> Result<(), SettingError> {
        settings.check_machine()
    }

    fn edges(settings: &CameraSettings) -> Edges {
        // `check` has rejected settings that cannot be resolved.
        let offered = settings.qos.resolve("qos").unwrap_or(Qos::sensor_data());
        let mut edges = Edges::default()
            .publishes::<CompressedImage>("topic", &settings.topic, offered)
            .loans(Loans::one(settings.octets_max()));
        if let Some(budget) = &settings.budget {
            edges = edges.reads::<CameraBudget>("budget", budget, NEWEST);
        }
        if let Some(state) = state_topic(settings) {
            edges = edges.reads::<VehicleState>("source.synthetic.state", state, NEWEST);
        }
        edges
    }

    fn start(settings: CameraSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let output = Output::new(&settings, settings.qos.resolve("qos")?, context)?;
        let budget = output.budget.clone();
        if let Some(topic) = &settings.budget {
            let budgets = context.subscribe::<CameraBudget>(topic, NEWEST)?;
            context.on(budgets, Self::take_budget);
        }
        if let Some(topic) = state_topic(&settings) {
            let states = context.subscribe::<VehicleState>(topic, NEWEST)?;
            context.on(states, Self::take_state);
        }
        let source = Source::new(&settings, output, context)?;
        if !matches!(source, Source::Device) {
            context.every(Duration::from_secs_f64(1.0 / settings.rate_hz), Self::capture);
        }
        Ok(Self { budget, source, states_refused: context.counter("states_refused") })
    }
}

impl Source {
    fn new(settings: &CameraSettings, output: Output, context: &mut Context<Camera>) -> Result<Self, StartError> {
        Ok(match &settings.source {
            SourceSettings::Synthetic(synthetic) => Self::Synthetic(Box::new(Synthetic {
                scene: Scene::new(Arc::new(synthetic.load_roads()?)),
                mount: synthetic.view.mount(),
                size: (synthetic.width, synthetic.height),
                mark: synthetic.mark,
                has_state: synthetic.state.is_some(),
                ego: None,
                output,
            })),
            SourceSettings::Directory(directory) => Self::Directory(directory.open()?, Box::new(output)),
            SourceSettings::Raw(raw) => {
                let ticks = Ticks { period: Duration::from_secs_f64(1.0 / settings.rate_hz), latest: None };
                Self::Raw(raw_payload(raw.octets), ticks, Box::new(output))
            }
            SourceSettings::V4l2(device) => {
                spawn_device(device.device(settings.rate_hz), output, context)?;
                Self::Device
            }
        })
    }
}

/// Starts the thread that reads a device.
fn spawn_device(
    settings: v4l2::DeviceSettings,
    mut output: Output,
    context: &mut Context<Camera>,
) -> Result<(), StartError> {
    let (stop, errors) = (context.stop(), context.counter("device_errors"));
    let skipped = context.counter_for("skipped", "rate");
    let mut pace = Pace::new(settings.rate_hz);
    context.spawn_thread(move || {
        v4l2::run(&settings, &stop, &errors, |captured, file| {
            if pace.admit(captured.mono) {
                output.publish_file(captured, file);
            } else {
                skipped.increment();
            }
        });
        Ok::<(), Infallible>(())
    })?;
    Ok(())
}

/// Limits the rate of a device that is faster than configured.
struct Pace {
    period: Duration,
    due: Mono,
}

impl Pace {
    fn new(rate_hz: f64) -> Self {
        Self { period: Duration::from_secs_f64(1.0 / rate_hz), due: Mono::default() }
    }

    /// Returns `true` if a frame of that time is published.
    fn admit(&mut self, captured: Mono) -> bool {
        // A frame that is early by a part of the period belongs to the next one.
        if captured.plus(self.period / 4) < self.due {
            return false;
        }
        let next = self.due.plus(self.period);
        self.due = if next.plus(self.period) < captured { captured.plus(self.period) } else { next };
        true
    }
}

fn state_topic(settings: &CameraSettings) -> Option<&str> {
    match &settings.source {
        SourceSettings::Synthetic(synthetic) => synthetic.state.as_deref(),
        _ => None,
    }
}

/// Returns a payload that begins like a JPEG file, so that it has room for a frame segment, and cannot be compressed.
fn raw_payload(octets: usize) -> Vec<u8> {
    let mut rng = Rng::new(374);
    let mut payload: Vec<u8> = std::iter::repeat_with(|| rng.next_u64() as u8).take(octets).collect();
    payload[..2].copy_from_slice(&[0xFF, 0xD8]);
    payload
}

impl Camera {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn take_budget(&mut self, budget: Sample<CameraBudget>, out: &mut CallbackContext) {
        self.budget.set(out.now.mono, budget.octets_per_frame);
    }

    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn take_state(&mut self, state: Sample<VehicleState>, out: &mut CallbackContext) {
        let Source::Synthetic(synthetic) = &mut self.source else { return };
        match Ego::from_state(&state, out.now.mono, synthetic.ego.as_ref()) {
            Some(ego) => synthetic.ego = Some(ego),
            None => self.states_refused.increment(),
        }
    }

    fn capture(&mut self, out: &mut CallbackContext) {
        match &mut self.source {
            Source::Synthetic(synthetic) => synthetic.capture(out.now),
            Source::Raw(payload, ticks, output) => output.publish_raw(ticks.tick(out.now), payload),
            Source::Directory(recording, output) => match recording.advance() {
                Ok(file) => output.publish_file(out.now, file),
                Err(error) => {
                    tracing::debug!(%error, "a recorded picture is skipped");
                    output.counts.malformed.increment();
                }
            },
            Source::Device => {}
        }
    }
}

impl Synthetic {
    fn capture(&mut self, now: Now) {
        let vehicle = match (&self.ego, self.has_state) {
            (Some(ego), _) => ego.pose_at(now.mono),
            // Until the first state arrives, the vehicle stands.
            (None, true) => self.scene.tour_pose(Tai::from_nanos(0)),
            (None, false) => self.scene.tour_pose(now.tai),
        };
        let (scene, mount) = (&mut self.scene, &self.mount);
        self.output.publish_drawn(now, self.size, self.mark, |picture| scene.draw(now.tai, vehicle, mount, picture));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_device_is_reduced_to_the_configured_rate() {
        for (device_hz, wanted_hz, expected) in
            [(30.0, 10.0, 100), (30.0, 15.0, 150), (29.97, 30.0, 299), (10.0, 30.0, 100)]
        {
            let mut pace = Pace::new(wanted_hz);
            let frames = (0..(10.0 * device_hz) as u32)
                .filter(|frame| pace.admit(Mono(Duration::from_secs_f64(1000.0 + f64::from(*frame) / device_hz))));
            let admitted = frames.count();
            assert!(admitted.abs_diff(expected) <= 2, "{device_hz} to {wanted_hz} Hz: {admitted}");
        }
    }

    #[test]
    fn a_late_callback_belongs_to_its_tick() {
        let mut ticks = Ticks { period: Duration::from_millis(100), latest: None };
        // The first callback was 3 ms late, the fourth one 42 ms after a skipped tick.
        let calls_and_ticks = [(1003, 1003), (1101, 1101), (1209, 1201), (1443, 1401), (1500, 1500)];
        for (call_ms, tick_ms) in calls_and_ticks {
            let at = |ms: i64| Now {
                mono: Mono(Duration::from_millis(ms as u64)),
                tai: Tai::from_nanos(7_000_000_000 + ms * 1_000_000),
            };
            assert_eq!(ticks.tick(at(call_ms)), at(tick_ms));
        }
    }

    #[test]
    fn a_raw_payload_has_its_size_and_room_for_the_frame_segment() {
        let mut payload = raw_payload(374_000);
        assert_eq!(payload.len(), 374_000);
        assert_eq!(FrameSegment::read(&payload), None);
        let segment = FrameSegment { camera: 2, frame: 5, time_us: 6, mark: false, reduced: false };
        payload[2..2 + crate::frame_segment::SEGMENT_OCTETS].copy_from_slice(&segment.to_octets());
        assert_eq!(FrameSegment::read(&payload), Some(segment));
    }
}
