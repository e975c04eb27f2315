//! The state of the demo: once a second while it runs, and the totals at its end.

use std::fmt::Write as _;

use comfy_table::Cell;
use viaduct_bus::{BusSnapshot, CounterSnapshot};
use viaduct_node::Node;

use super::super::snapshot::{counter, gauge, reasons};
use super::config::CAMERAS;
use crate::table::{number, table};

/// Latencies of the pictures of one camera, from capture to arrival at the desk, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Latency {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// Pictures of one camera since the start.
#[derive(Clone, Debug)]
struct CameraStatus {
    name: &'static str,
    sent: u64,
    arrived: u64,
    lost: u64,
    /// Pictures of which symbols were lost and restored.
    repaired: u64,
    /// Size of the latest picture in bytes.
    octets: f64,
    recent: Latency,
    total: Latency,
}

/// The state at one time.
pub(super) struct Status {
    cameras: Vec<CameraStatus>,
    /// State of driving, as on the page.
    driving: String,
    speed_mps: Option<f64>,
    command_age_ms: Option<f64>,
    round_trip_ms: Option<f64>,
    /// Share of the vehicle's datagrams that were lost in the last second, 0 to 1.
    loss: Option<f64>,
    /// Bits per second that the vehicle may send.
    rate_bits_per_second: Option<f64>,
    pages: f64,
}

/// The totals at the end.
pub(super) struct Totals {
    cameras: Vec<CameraStatus>,
    /// Octets of frames, and of their symbols as sent.
    frame_octets: u64,
    symbol_octets: u64,
    /// Pictures that were lost, by reason.
    lost: Vec<(String, u64)>,
    /// Pictures that were refused before they were sent, by reason.
    refused: Vec<(String, u64)>,
}

impl Status {
    /// Reads the state of the nodes: desk, link, vehicle.
    pub(super) fn read(nodes: &[Node]) -> Self {
        let [desk, _, vehicle] = nodes else { return Self::unknown() };
        let (desk, vehicle) = (desk.bus().snapshot(), vehicle.bus().snapshot());
        let states = vehicle.gauges.iter().filter(|gauge| gauge.name == "driving_state" && gauge.value > 0.0);
        Self {
            cameras: cameras(&desk, &vehicle),
            driving: states.filter_map(|gauge| gauge.part.clone()).next().unwrap_or_default(),
            speed_mps: gauge(&vehicle, "drive", "speed_mps", None),
            command_age_ms: gauge(&vehicle, "drive", "command_age_ms", None),
            round_trip_ms: gauge(&desk, "desk", "round_trip_ms", None),
            loss: gauge(&desk, "desk", "loss_to_desk", None),
            rate_bits_per_second: gauge(&vehicle, "drive", "rate_bits_per_second", None),
            pages: gauge(&desk, "desk", "pages", None).unwrap_or_default(),
        }
    }

    const fn unknown() -> Self {
        Self {
            cameras: Vec::new(),
            driving: String::new(),
            speed_mps: None,
            command_age_ms: None,
            round_trip_ms: None,
            loss: None,
            rate_bits_per_second: None,
            pages: 0.0,
        }
    }

    /// Returns the state in one line.
    pub(super) fn line(&self) -> String {
        let sum = |count: fn(&CameraStatus) -> u64| self.cameras.iter().map(count).sum::<u64>();
        let slowest =
            |part: fn(&Latency) -> f64| self.cameras.iter().map(|camera| part(&camera.recent)).fold(0.0, f64::max);
        format!(
            "{}: {} pictures sent, {} arrived, {} lost, {} repaired; p50 {:.1} ms p99 {:.1} ms; {}",
            self.driving,
            sum(|camera| camera.sent),
            sum(|camera| camera.arrived),
            sum(|camera| camera.lost),
            sum(|camera| camera.repaired),
            slowest(|latency| latency.p50_ms),
            slowest(|latency| latency.p99_ms),
            self.link()
        )
    }

    fn link(&self) -> String {
        let shown = |value: Option<f64>, digits: usize, unit: &str| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$} {unit}"))
        };
        format!(
            "loss {}, round trip {}, command age {}",
            shown(self.loss.map(|loss| loss * 100.0), 1, "%"),
            shown(self.round_trip_ms, 1, "ms"),
            shown(self.command_age_ms, 1, "ms"),
        )
    }

    /// Returns the state as a table of at most 80 columns.
    pub(super) fn table(&self) -> String {
        let speed = self.speed_mps.map_or_else(|| "-".to_owned(), |speed| format!("{:.1} km/h", 3.6 * speed));
        let rate = self.rate_bits_per_second.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} Mbit/s", rate / 1e6));
        let mut text = cameras_table(&self.cameras, |camera| camera.recent);
        // Writing into a String cannot fail.
        let _ = write!(text, "\n\nlink: {}, rate limit {rate}", self.link());
        let _ = write!(text, "\nvehicle: {}, {speed}; pages at the desk: {:.0}", self.driving, self.pages);
        text
    }
}

impl Totals {
    /// Reads the totals of the nodes: desk, link, vehicle.
    pub(super) fn read(nodes: &[Node]) -> Self {
        let [desk, _, vehicle] = nodes else {
            return Self {
                cameras: Vec::new(),
                frame_octets: 0,
                symbol_octets: 0,
                lost: Vec::new(),
                refused: Vec::new(),
            };
        };
        let (desk, vehicle) = (desk.bus().snapshot(), vehicle.bus().snapshot());
        Self {
            cameras: cameras(&desk, &vehicle),
            frame_octets: counter(&vehicle, "drive", "frame_octets", None),
            symbol_octets: counter(&vehicle, "drive", "symbol_octets", None),
            lost: reasons(&vehicle, "drive", "frames_lost"),
            refused: reasons(&vehicle, "drive", "pictures_refused"),
        }
    }

    /// Returns `true` if each picture that was sent has arrived or was counted as lost.
    pub(super) fn is_settled(&self) -> bool {
        self.cameras.iter().all(|camera| camera.sent == camera.arrived + camera.lost)
    }

    pub(super) fn table(&self) -> String {
        let mut text = cameras_table(&self.cameras, |camera| camera.total);
        if self.frame_octets > 0 {
            let ratio = self.symbol_octets as f64 / self.frame_octets as f64;
            // Writing into a String cannot fail.
            let _ = write!(text, "\n\nsent / needed bytes of pictures: {ratio:.3}");
        }
        for (name, rows) in [("lost", &self.lost), ("refused", &self.refused)] {
            if !rows.is_empty() {
                let rows: Vec<String> = rows.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
                let _ = write!(text, "\n{name}: {}", rows.join(", "));
            }
        }
        text
    }
}

fn cameras(desk: &BusSnapshot, vehicle: &BusSnapshot) -> Vec<CameraStatus> {
    let present = |name: &&str| vehicle.counters.iter().any(|row| is_of(row, "drive", "camera_frames", &topic(name)));
    CAMERAS.into_iter().filter(present).map(|name| camera(name, desk, vehicle)).collect()
}

fn camera(name: &'static str, desk: &BusSnapshot, vehicle: &BusSnapshot) -> CameraStatus {
    let topic = topic(name);
    let count = |counter_name| counter(vehicle, "drive", counter_name, Some(&topic));
    let hop = desk.hops.iter().find(|hop| hop.from == "origin" && hop.to == name);
    let latency = |part: fn(&viaduct_bus::HopSnapshot) -> &viaduct_bus::Percentiles| {
        let percentiles = hop.map(part).filter(|percentiles| percentiles.count > 0);
        percentiles.map_or_else(Latency::default, |percentiles| Latency {
            p50_ms: percentiles.p50_us / 1e3,
            p99_ms: percentiles.p99_us / 1e3,
            max_ms: percentiles.max_us / 1e3,
        })
    };
    CameraStatus {
        name,
        sent: count("camera_frames"),
        arrived: count("camera_frames_arrived"),
        lost: count("camera_frames_lost"),
        repaired: counter(desk, "desk", "pictures_repaired", Some(name)),
        octets: gauge(vehicle, "drive", "camera_picture_octets", Some(&topic)).unwrap_or_default(),
        recent: latency(|hop| &hop.recent),
        total: latency(|hop| &hop.total),
    }
}

fn topic(camera: &str) -> String {
    format!("camera/{camera}")
}

fn cameras_table(cameras: &[CameraStatus], latency: fn(&CameraStatus) -> Latency) -> String {
    let header = ["camera", "sent", "arrived", "repaired", "lost", "kB", "p50 ms", "p99 ms", "max ms"];
    let mut table = table(header);
    for camera in cameras {
        let Latency { p50_ms, p99_ms, max_ms } = latency(camera);
        table.add_row([
            Cell::new(camera.name),
            number(camera.sent),
            number(camera.arrived),
            number(camera.repaired),
            number(camera.lost),
            number(format!("{:.0}", camera.octets / 1e3)),
            number(format!("{p50_ms:.1}")),
            number(format!("{p99_ms:.1}")),
            number(format!("{max_ms:.1}")),
        ]);
    }
    table.trim_fmt()
}

fn is_of(row: &CounterSnapshot, component: &str, name: &str, reason: &str) -> bool {
    row.component == component && row.name == name && row.reason.as_deref() == Some(reason)
}
