//! Bench `its`: the cost of a received packet, from its octets to its readers. It measures:
//!
//! - codecs: CAM, CPM and whole frames, from the vectors of `testdata/its` and, if present, a capture of 929 frames;
//! - throughput: frames per second to JSON, and to an MQTT subscriber;
//! - end to end: live packets through real nodes in this process. A fleet sends by UDP multicast, a station
//!   receives, and an MQTT subscriber and an HTTP client each measure the time since reception;
//! - stages: one packet from station to station, split as in the paper's Table 2, over raw Ethernet and UDP;
//! - station to station: a message from one application to another by MQTT, over two real nodes and UDP.

mod bounds;
mod codecs;
mod corpus;
mod end_to_end;
mod numbered;
mod paced;
mod stages;
mod station_to_station;
mod throughput;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::error::BenchError;
use crate::keep_awake::KeepAwake;
use crate::machine::MachineMonitor;
use crate::paper;
use crate::progress::print_progress;
use crate::report::{Report, Row};
use crate::sys;

/// Path of the capture below the data folder.
const CAPTURE: &str = "v2x/cam_cpm_r2_unsecured.pcap";

/// Options of the bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples of each codec row; a sample is the mean of 16 messages.
    pub samples: usize,
    /// Number of rounds over which the samples are spread.
    pub rounds: usize,
    /// Total time of each throughput row over all rounds.
    pub throughput: Duration,
    /// Number of rounds over which this time is spread.
    pub throughput_rounds: u32,
    /// Time for which the nodes run for each output, after one second of warm-up.
    pub end_to_end: Duration,
    /// Number of vehicles of the fleet.
    pub vehicles: u32,
    /// CAM rate of each vehicle in Hz.
    pub rate_hz: u32,
    /// Number of packets from station to station for each access layer and each dialect.
    pub paced_packets: usize,
    /// Rates of these packets in Hz. The stages use the first only.
    pub paced_hz: [u32; 2],
    /// Data folder with the capture. If `None`, the rows of the capture are left out.
    pub data: Option<PathBuf>,
}

impl Default for Options {
    /// Returns the options of a run of about two minutes, without a data folder.
    fn default() -> Self {
        Self {
            samples: 300,
            rounds: 3,
            throughput: Duration::from_secs(3),
            throughput_rounds: 3,
            end_to_end: Duration::from_secs(5),
            vehicles: 50,
            rate_hz: 10,
            paced_packets: 1000,
            paced_hz: [100, 500],
            data: None,
        }
    }
}

impl Options {
    /// Returns the packet rate of all vehicles together in Hz.
    const fn packets_hz(&self) -> u32 {
        self.vehicles.saturating_mul(self.rate_hz)
    }

    /// Returns options with more samples and longer runs, about four minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            samples: 3000,
            rounds: 10,
            throughput: Duration::from_secs(10),
            throughput_rounds: 5,
            end_to_end: Duration::from_secs(30),
            ..Self::default()
        }
    }
}

/// State of idle cores between two packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cores {
    /// Kept awake.
    Awake,
    /// Allowed to sleep.
    #[default]
    MaySleep,
}

/// Rate of packets that are sent one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// Packets per second.
    rate_hz: u32,
    cores: Cores,
}

impl Default for Pace {
    /// Returns the rate of the paper's tests.
    fn default() -> Self {
        Self { rate_hz: 100, cores: Cores::default() }
    }
}

impl Cores {
    /// Returns the name in parameters.
    const fn label(self) -> &'static str {
        match self {
            Self::Awake => "awake",
            Self::MaySleep => "may_sleep",
        }
    }

    /// Starts to keep the cores awake if this state requires it, until the returned guard is dropped.
    fn keep(self) -> Result<Option<KeepAwake>, BenchError> {
        (self == Self::Awake).then(|| KeepAwake::start(&sys::cores())).transpose()
    }
}

/// Runs the bench.
///
/// # Errors
/// Returns an error if the system refuses threads or sockets, or a node does not start.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = MachineMonitor::start();
    let mut notes = vec![
        "codec rows: a sample is the mean of 16 messages on one thread; the floor is a copy of the same octets"
            .to_owned(),
        "packets: the time starts at the kernel's timestamp of the packet; the floor is the sum of the medians of a frame by \
         UDP and of its text by TCP (bridge: twice), each from before the send call until a waiting thread has received it"
            .to_owned(),
        "throughput: median of the rounds; the frames are in memory; bus, node, async runtime and subscriber run on as many \
         cores as the row's parameter"
            .to_owned(),
        "decode_to_mqtt: the floor is one bare TCP connection on the same cores (a bridge uses two); the paper's figure is the \
         capacity of its on-board unit to MQTT, 682 vehicles at 10 Hz"
            .to_owned(),
        "cores awake: threads that run only on idle cores (SCHED_IDLE) keep the cores from halting between two packets, also \
         for the floors; cores may_sleep: rows and floors include the wake-up of the core or the hypervisor"
            .to_owned(),
        stages::NOTE.to_owned(),
        station_to_station::NOTE.to_owned(),
        "ours/paper: ratio of means or rates; the paper's on-board unit is a Cohda MK5 (i.MX6, 600 MHz)".to_owned(),
    ];
    let vectors = corpus::vectors()?;
    let no_folder = || "no data folder is configured".to_owned();
    let capture = options.data.as_ref().ok_or_else(no_folder).and_then(|data| corpus::capture(&data.join(CAPTURE)));
    let capture = match capture {
        Ok(capture) => Some(capture),
        Err(problem) => {
            notes.push(format!(
                "rows of the capture are left out, and throughput is measured with the vectors: {problem}"
            ));
            None
        }
    };
    print_progress("its: codecs");
    let corpora: Vec<_> = std::iter::once(&vectors).chain(&capture).collect();
    let mut rows = codecs::rows(&corpora, options)?;
    print_progress("its: throughput");
    rows.extend(throughput::rows(capture.as_ref().unwrap_or(&vectors), options)?);
    print_progress("its: nodes");
    rows.extend(end_to_end::rows(lengths(&vectors), options)?);
    let cam = vectors.cam()?;
    let mut has_stages = false;
    for cores in [Cores::Awake, Cores::MaySleep] {
        let _kept = match cores.keep() {
            Ok(kept) => kept,
            Err(problem) => {
                let label = cores.label();
                notes.push(format!("rows and stages with cores {label} are left out: {problem}"));
                continue;
            }
        };
        for rate_hz in options.paced_hz {
            let floors = stages::Floors::measure(lengths(&vectors), Pace { rate_hz, cores }, options)?;
            if !std::mem::replace(&mut has_stages, true) {
                print_progress("its: stages from station to station");
                let (staged, left_out) = stages::rows(&numbered::NumberedCam::of(&cam.json)?, &floors, options)?;
                rows.extend(staged);
                notes.extend(left_out);
            }
            print_progress(&format!("its: station to station, {rate_hz} packets per second, cores {}", cores.label()));
            rows.extend(station_to_station::rows(&cam.message, &floors, options)?);
            rows.extend(floors.rows());
        }
    }
    // Viaduct's rows come first, then floors, then the paper's.
    rows.sort_by_key(Row::is_floor);
    rows.extend(paper::c_its());
    Ok(Report::new("its", watch, rows, notes).with_bounds())
}

/// Returns the first frame of the vectors, a CAM.
pub(crate) fn first_frame() -> Result<Bytes, BenchError> {
    let vectors = corpus::vectors()?;
    let first = vectors.packets.first().map(|packet| packet.frame.clone());
    first.ok_or_else(|| BenchError::broken("vectors", "they have no frame"))
}

/// Returns the octets of the first frame, a CAM as vehicles send it, and of its message as JSON.
fn lengths(vectors: &corpus::Corpus) -> (usize, usize) {
    let frame = vectors.packets.first().map_or(0, |packet| packet.frame.len());
    (frame, throughput::json_lengths(vectors).first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_run_has_all_rows() {
        let _lock = crate::measurement_lock();
        let options = Options {
            samples: 2,
            rounds: 1,
            throughput: Duration::from_millis(50),
            throughput_rounds: 1,
            end_to_end: Duration::from_millis(500),
            vehicles: 2,
            paced_packets: 3,
            data: Some(PathBuf::from("nowhere")),
            ..Options::default()
        };
        let report = run(&options).unwrap();
        for name in [
            "viaduct.uper_decode",
            "viaduct.uper_encode",
            "viaduct.json_write",
            "viaduct.json_read",
            "viaduct.frame_decode",
            "viaduct.decode_to_json",
            "viaduct.decode_to_mqtt",
            "viaduct.packet_to_mqtt",
            "viaduct.packet_to_api",
            "viaduct.hop",
            "viaduct.stage",
            "viaduct.station_to_station",
            "viaduct.uper_to_json",
            "floor.tcp_send",
            "floor.memcpy",
            "floor.udp_one_way",
            "floor.tcp_one_way",
            "paper.packet_to_mqtt",
        ] {
            let row = report.rows.iter().find(|row| row.name == name);
            assert!(row.is_some_and(|row| row.n > 0), "{name}: {row:?}");
        }
        let memory = ["viaduct.decode_to_json", "viaduct.hop"];
        for row in report.rows.iter().filter(|row| row.name.starts_with("viaduct.")) {
            let bare =
                row.params.get("stage").is_none_or(|stage| ["mqtt", "link", "total"].iter().any(|of| stage == of));
            assert_eq!(row.references.floor.is_some(), bare && !memory.contains(&row.name.as_str()), "{row:?}");
        }
        // Without the privilege to create network interfaces, a note replaces the rows of raw Ethernet.
        let on_ethernet = report.rows.iter().any(|row| row.params.get("access").is_some_and(|of| of == "ethernet"));
        let without = report.notes.iter().any(|note| note.contains("raw Ethernet are left out"));
        assert_ne!(on_ethernet, without, "{:?}", report.notes);
        assert_eq!(report.sections.first().map(|section| section.rows.len()), Some(17), "each bound is judged");
        assert!(report.notes.iter().any(|note| note.contains("left out")));
        assert!(!std::path::Path::new("mqtt_storage").exists(), "the brokers store nothing");
    }
}
