//! The product: a node with cameras, a vehicle and the vehicle's end of a remote drive, and a node with a driver's desk.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_bus::{Counter, Qos, clock};
use viaduct_components::kinds::camera::FrameSegment;
use viaduct_messages::foxglove::CompressedImage;
use viaduct_node::Node;
use viaduct_teleop::frames::FrameLoss;
use viaduct_units::Tai;

use super::arrivals::Arrivals;
use super::page::Page;
use super::{Receiver, Sender};
use crate::drive::job::{Arrived, Job, Pacing, Sent};
use crate::drive::keys::Keys;
use crate::error::BenchError;
use crate::floor::nanos;
use crate::nodes::{runtime, start};
use crate::sys;

/// Address of the desk's page.
const PAGE_PORT: u16 = 8090;
/// Time after which a frame is worthless: the limit of the paper.
const LIFESPAN_MS: u32 = 500;
/// Time between two looks at the counters.
const POLL_PERIOD: Duration = Duration::from_millis(5);
/// Time limit for the link of the two nodes.
const LINK_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames that wait for the bench on the desk's bus.
const DEPTH: u32 = 16;

/// The vehicle's node.
pub(super) struct Vehicle {
    node: Node,
    /// Keeps the node's tasks running.
    _runtime: Runtime,
}

impl Vehicle {
    pub(super) fn open(job: &Job) -> Result<Self, BenchError> {
        let runtime = runtime()?;
        let node = start("vehicle.yaml", &vehicle_config(job), &runtime)?;
        Ok(Self { node, _runtime: runtime })
    }

    fn counter(&self, component: &str, name: &str) -> Counter {
        self.node.bus().counter(component, name, None)
    }

    fn wait_for_link(&self) -> Result<(), BenchError> {
        let arrived =
            |camera: u8| self.node.bus().counter("teleop", "camera_frames_arrived", Some(&topic(camera))).value() > 0;
        let end = Instant::now() + LINK_TIMEOUT;
        while !arrived(0) {
            if Instant::now() >= end {
                return Err(BenchError::broken("cannot connect vehicle and desk", "no frame has arrived within 10 s"));
            }
            std::thread::sleep(POLL_PERIOD);
        }
        Ok(())
    }

    /// Returns the frames that the vehicle's node has lost since its start, by reason.
    fn losses(&self, job: &Job) -> BTreeMap<String, u64> {
        let counted = |name: &str, reason: &str| self.node.bus().counter("teleop", name, Some(reason)).value();
        let untaken = (0..job.cameras).map(|camera| {
            let taken = counted("pictures", &topic(camera));
            self.counter(&component(camera), "published").value().saturating_sub(taken)
        });
        let refused = ["stale", "not_jpeg", "too_long"].map(|reason| (reason, counted("pictures_refused", reason)));
        let lost = FrameLoss::ALL.map(|loss| (loss.name(), counted("frames_lost", loss.name())));
        let all = refused.into_iter().chain(lost).map(|(reason, count)| (reason.to_owned(), count));
        all.chain([("not taken from the camera".to_owned(), untaken.sum())]).filter(|(_, count)| *count > 0).collect()
    }

    fn pacing(&self) -> Pacing {
        let gauge = |name: &str| self.node.bus().gauge("teleop", name, None).value().unwrap_or(0.0);
        Pacing {
            rate_mbps: gauge("rate_bits_per_second") / 1e6,
            queueing_ms: gauge("queueing_delay_ms"),
            stops: self.counter("teleop", "queue_stops").value(),
        }
    }

    /// Returns the octets of the accepted frames and of the datagrams with their symbols.
    fn octets(&self) -> (u64, u64) {
        (self.counter("teleop", "frame_octets").value(), self.counter("teleop", "symbol_octets").value())
    }
}

impl Sender for Vehicle {
    fn send(&mut self, job: &Job) -> Result<Sent, BenchError> {
        self.wait_for_link()?;
        let published: Vec<Counter> =
            (0..job.cameras).map(|camera| self.counter(&component(camera), "published")).collect();
        // The cameras run since the start of the node. The number of a frame is the number of those before it.
        let first: Vec<u32> = published.iter().map(|count| count.value() as u32 + job.warm_up).collect();
        let reach = |at_least: &dyn Fn(u32) -> u32| {
            while published.iter().zip(&first).any(|(count, first)| (count.value() as u32) < at_least(*first)) {
                std::thread::sleep(POLL_PERIOD);
            }
        };
        reach(&|first| first);
        // The counters of the machine are published every 500 ms, which is one frame in 50 of a default run.
        let (before, begin, earlier) = (self.octets(), nanos(sys::monotonic()), self.losses(job));
        reach(&|first| first + job.frames);
        let (after, end) = (self.octets(), nanos(sys::monotonic()));
        let octets = Some((after.0 - before.0, after.1 - before.1)).filter(|(needed, _)| *needed > 0);
        let mut losses = self.losses(job);
        for (reason, count) in &mut losses {
            // Some counts are differences of counters that change in the meantime.
            *count = count.saturating_sub(earlier.get(reason).copied().unwrap_or(0));
        }
        losses.retain(|_, count| *count > 0);
        let ticks = end.saturating_sub(begin) / job.period_ns;
        let ticks_skipped = ticks.saturating_sub(u64::from(job.frames) + 1);
        Ok(Sent { first, octets, window: Some((begin, end)), pacing: Some(self.pacing()), losses, ticks_skipped })
    }
}

/// The desk's node, with a page.
pub(super) struct DriversDesk {
    arrivals: Arrivals,
    node: Node,
    page: Page,
    runtime: Runtime,
}

impl DriversDesk {
    pub(super) fn open(job: &Job) -> Result<Self, BenchError> {
        let runtime = runtime()?;
        let node = start("desk.yaml", &desk_config(job), &runtime)?;
        let arrivals = Arrivals::new(&Job { frames: u32::MAX / 2, ..job.clone() });
        for camera in 0..job.cameras {
            let opened =
                node.bus().subscribe::<CompressedImage>(&topic(camera), Qos::keep_last(DEPTH as usize), "bench");
            let pictures = opened.map_err(BenchError::part("cannot subscribe to the desk's pictures"))?;
            let arrivals = arrivals.clone();
            runtime.spawn(async move {
                while let Some(picture) = pictures.recv().await {
                    let now = clock::tai();
                    if let Some(segment) = FrameSegment::read(&picture.data) {
                        arrivals.add_aged(segment.camera, segment.frame, age_ns(now, segment.time_us));
                        arrivals.update(|arrived| arrived.captures_us.insert(segment.camera, segment.time_us));
                    }
                }
            });
        }
        let page = Page::open(PAGE_PORT, job.pictures, arrivals.clone(), &runtime);
        Ok(Self { arrivals, node, page, runtime })
    }
}

impl Receiver for DriversDesk {
    fn finish(self: Box<Self>, _job: &Job) -> Result<Arrived, BenchError> {
        // The cameras do not stop. A later frame would be after its deadline.
        std::thread::sleep(Duration::from_millis(u64::from(LIFESPAN_MS) + 100));
        let arrived = self.arrivals.take();
        self.page.close();
        self.node.stop();
        drop(self.runtime);
        Ok(arrived)
    }
}

/// Returns the time since a capture time in microseconds. Both ends have the same clock.
pub(super) fn age_ns(now: Tai, capture_us: u64) -> u64 {
    u64::try_from(now.nanos()).unwrap_or(0).saturating_sub(capture_us.saturating_mul(1000))
}

fn topic(camera: u8) -> String {
    format!("camera/{camera}")
}

fn component(camera: u8) -> String {
    format!("camera-{camera}")
}

fn vehicle_config(job: &Job) -> String {
    let Job { size, cameras, .. } = job;
    let rate_hz = 1e9 / job.period_ns as f64;
    let views = ["front", "left", "right", "rear"];
    let mut components = String::new();
    let mut inputs = Vec::new();
    for camera in 0..*cameras {
        let (topic, name) = (topic(camera), component(camera));
        let view = views.get(usize::from(camera)).copied().unwrap_or("front");
        let source = if job.pictures {
            format!("{{ synthetic: {{ view: {view}, state: vehicle/state }} }}")
        } else {
            format!("{{ raw: {{ octets: {size} }} }}")
        };
        let _ = writeln!(
            components,
            "  {name}: {{ kind: camera, settings: {{ topic: {topic}, index: {camera}, rate_hz: {rate_hz}, source: {source} }} }}"
        );
        inputs.push(format!("{{ topic: {topic}, lifespan_ms: {LIFESPAN_MS}, octets_max: 500000 }}"));
    }
    format!(
        "node: vehicle\ncomponents:\n  model: {{ kind: vehicle_model, settings: {{ topic: vehicle/state, commands: \
         vehicle/drive }} }}\n{components}  teleop: {{ kind: teleop_vehicle, settings: {{ desk: \"{}\", security: {}, vehicle: \
         vehicle/state, drive: vehicle/drive, cameras: [ {} ] }} }}\n",
        job.address(),
        job.keys.as_ref().map_or_else(unprotected, Keys::of_vehicle),
        inputs.join(", ")
    )
}

fn desk_config(job: &Job) -> String {
    let camera = |camera: u8| format!("{{ name: camera-{camera}, place: {}, topic: {} }}", "front", topic(camera));
    let cameras: Vec<String> = (0..job.cameras).map(camera).collect();
    format!(
        "node: desk\ncomponents:\n  desk: {{ kind: teleop_desk, settings: {{ listen: \"{}\", http: \"127.0.0.1:{PAGE_PORT}\", \
         security: {}, login: none, page: {{ state_hz: 50 }}, cameras: [ {} ] }} }}\n",
        job.address(),
        job.keys.as_ref().map_or_else(unprotected, Keys::of_desk),
        cameras.join(", ")
    )
}

/// Returns the setting `security` of two ends on one machine.
fn unprotected() -> String {
    "none".to_owned()
}
