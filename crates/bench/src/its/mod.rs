//! Bench `its`: what a received packet costs, from its octets to those who read it.
//!
//! - the codecs of CAM and CPM and the decoding of whole frames, over the vectors of `testdata/its` and, where it is
//!   there, over a capture of 929 frames;
//! - how many frames a second become JSON, and JSON in an MQTT subscriber;
//! - the way of live packets through real nodes in this process: a fleet sends by UDP multicast, a station receives, an
//!   MQTT subscriber and an HTTP client each measure the time since the reception;
//! - the way of a packet from one station to another by stage, as the paper's Table 2 has it, over raw Ethernet and UDP;
//! - the way of a message from one application to another by MQTT, over two real nodes and UDP.

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

use crate::awake::Awake;
use crate::error::BenchError;
use crate::machine::Watch;
use crate::paper;
use crate::progress::say;
use crate::report::{Report, Row};
use crate::sys;

/// Where the capture is looked for, below the data folder.
const CAPTURE: &str = "v2x/cam_cpm_r2_unsecured.pcap";

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples of each codec row; a sample is the mean of some messages.
    pub samples: usize,
    /// Rounds that they are spread over.
    pub rounds: usize,
    /// Time of each throughput row, all rounds together.
    pub throughput: Duration,
    /// Rounds that it is spread over.
    pub throughput_rounds: u32,
    /// Time for which the nodes run, after a second that is not counted, for each way through them.
    pub end_to_end: Duration,
    /// Vehicles of the fleet.
    pub vehicles: u32,
    /// CAMs a second of each vehicle.
    pub rate_hz: u32,
    /// Packets that go from one station to another, for each access layer, and for each dialect.
    pub paced_packets: usize,
    /// So many of them a second; by stages only the first.
    pub paced_hz: [u32; 2],
    /// Data folder with the capture; without one, its rows are left out.
    pub data: Option<PathBuf>,
}

impl Default for Options {
    /// About two minutes, without a data folder.
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
    /// Packets a second of all vehicles.
    const fn packets_hz(&self) -> u32 {
        self.vehicles.saturating_mul(self.rate_hz)
    }

    /// More samples and longer runs: about four minutes.
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

/// What the cores do between two packets that are sent one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cores {
    /// They are kept awake.
    Awake,
    /// What the machine makes of it.
    #[default]
    MaySleep,
}

/// How packets follow each other that are sent one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// So many a second.
    rate_hz: u32,
    cores: Cores,
}

impl Default for Pace {
    /// That of the paper's tests.
    fn default() -> Self {
        Self { rate_hz: 100, cores: Cores::default() }
    }
}

impl Cores {
    /// The name in parameters.
    const fn label(self) -> &'static str {
        match self {
            Self::Awake => "awake",
            Self::MaySleep => "may_sleep",
        }
    }

    /// It is so until what this gives is dropped.
    fn keep(self) -> Result<Option<Awake>, BenchError> {
        (self == Self::Awake).then(|| Awake::start(&sys::cores())).transpose()
    }
}

/// Runs the bench.
///
/// # Errors
/// The system gives no threads or sockets, or a node does not start.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = Watch::start();
    let mut notes = vec![
        "codec rows: a sample is the mean of 16 messages, one after the other on one thread; the floor is a copy of the \
         same octets"
            .to_owned(),
        "packets: the time starts at the kernel's stamp of the packet; the floor is a frame by UDP, from before its \
         sending until a thread that waits has it, and its text by TCP likewise, once or (bridge) twice: medians, added"
            .to_owned(),
        "throughput: the median of the rounds; to MQTT the frames are in memory, and the bus, the node, its runtime and the \
         subscriber run on the cores that the row names"
            .to_owned(),
        "the floor of decode_to_mqtt is one bare TCP connection on the same cores (a bridge goes through two), and its \
         paper figure the 682 vehicles at 10 Hz that the paper's on-board unit keeps up with, to MQTT"
            .to_owned(),
        "cores awake: threads that run only where nothing else does (SCHED_IDLE) keep the cores from halting between two \
         packets, beside the floors too; cores may_sleep: as the machine is, so what a hypervisor or a core takes to wake up \
         is in both"
            .to_owned(),
        stages::NOTE.to_owned(),
        station_to_station::NOTE.to_owned(),
        "ours/paper: means and rates; the paper's on-board unit is a Cohda MK5 (i.MX6, 600 MHz)".to_owned(),
    ];
    let vectors = corpus::vectors()?;
    let no_folder = || "no data folder is named".to_owned();
    let capture = options.data.as_ref().ok_or_else(no_folder).and_then(|data| corpus::capture(&data.join(CAPTURE)));
    let capture = match capture {
        Ok(capture) => Some(capture),
        Err(problem) => {
            notes.push(format!("rows of the capture are left out, and throughput is that of the vectors: {problem}"));
            None
        }
    };
    say("its: codecs");
    let corpora: Vec<_> = std::iter::once(&vectors).chain(&capture).collect();
    let mut rows = codecs::rows(&corpora, options)?;
    say("its: throughput");
    rows.extend(throughput::rows(capture.as_ref().unwrap_or(&vectors), options)?);
    say("its: nodes");
    rows.extend(end_to_end::rows(lengths(&vectors), options)?);
    let cam = vectors.cam()?;
    let mut has_stages = false;
    for cores in [Cores::Awake, Cores::MaySleep] {
        let _kept = match cores.keep() {
            Ok(kept) => kept,
            Err(problem) => {
                let label = cores.label();
                notes.push(format!("rows with cores {label} are left out, and the stages are without it: {problem}"));
                continue;
            }
        };
        for rate_hz in options.paced_hz {
            let floors = stages::Floors::measure(lengths(&vectors), Pace { rate_hz, cores }, options)?;
            if !std::mem::replace(&mut has_stages, true) {
                say("its: stages from station to station");
                let (staged, left_out) = stages::rows(&numbered::NumberedCam::of(&cam.json)?, &floors, options)?;
                rows.extend(staged);
                notes.extend(left_out);
            }
            say(&format!("its: stations with applications, {rate_hz} a second, cores {}", cores.label()));
            rows.extend(station_to_station::rows(&cam.message, &floors, options)?);
            rows.extend(floors.rows());
        }
    }
    // Ours first, then floors, then the paper's.
    rows.sort_by_key(Row::is_floor);
    rows.extend(paper::c_its());
    Ok(Report::new("its", watch, rows, notes).with_bounds())
}

/// Octets of the first frame, which is a CAM as vehicles send it, and of its message as JSON.
fn lengths(vectors: &corpus::Corpus) -> (usize, usize) {
    let frame = vectors.packets.first().map_or(0, |packet| packet.frame.len());
    (frame, throughput::json_lengths(vectors).first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_small_run_is_there() {
        let _alone = crate::measuring_alone();
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
            assert_eq!(row.beside.floor.is_some(), bare && !memory.contains(&row.name.as_str()), "{row:?}");
        }
        // Who may lay a cable has the rows of raw Ethernet; who may not is told so.
        let on_ethernet = report.rows.iter().any(|row| row.params.get("access").is_some_and(|of| of == "ethernet"));
        let without = report.notes.iter().any(|note| note.contains("raw Ethernet are left out"));
        assert_ne!(on_ethernet, without, "{:?}", report.notes);
        assert_eq!(report.sections.first().map(|section| section.rows.len()), Some(17), "each bound is judged");
        assert!(report.notes.iter().any(|note| note.contains("left out")));
        assert!(!std::path::Path::new("mqtt_storage").exists(), "the brokers store nothing");
    }
}
