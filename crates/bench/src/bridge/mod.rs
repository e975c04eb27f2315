//! Bench `bridge`: the measurement of the mqtt_client paper. A vehicle publishes lidar scans and point clouds in ROS; a bridge carries
//! them over MQTT to the cloud, whose end answers with a list of objects.
//!
//! | method | path |
//! |---|---|
//! | `viaduct`, from ROS 1 | ROS, `ros1_node`, `mqtt_bridge`, broker, `mqtt_bridge`, `ros1_node`, ROS |
//! | `viaduct`, from ROS 2 | DDS, `ros2_node`, `mqtt_bridge`, broker, `mqtt_bridge`, `ros2_node`, DDS |
//! | `viaduct`, from the bus | `generator`, `mqtt_bridge`, broker, `mqtt_bridge`, a subscription of the bench |
//! | `viaduct`, in the vehicle | ROS, `ros1_node`, ROS |
//! | use case | `velodyne`, `mqtt_bridge`, broker, `mqtt_bridge`, `velodyne_points`, `detector`, and back to `key_figures` |
//! | use case, in the vehicle | `velodyne`, `velodyne_points`, `detector`, `key_figures` |
//! | detector | points to boxes, on one thread |
//! | `mqtt_client`, `mqtt_bridge` | as the first one, with the rival in place of the nodes |
//! | `ros1.overlay` | the same ends in ROS with one ROS master, connected over the link |
//! | `floor.ros`, `floor.ros2` | the same ends in ROS without a bridge |
//! | `floor.tcp`, `floor.mqtt` | sockets of the bench, without and with the broker |
//!
//! All bridges are measured from outside, between the same ends, which are programs in C++ with roscpp, and for ROS 2 with Cyclone DDS. `total` is the time from before
//! the publication to the callback. `interface` is what the bridges at both ends add to it: `total` minus the median of the same path
//! without a bridge, which is `floor.ros` (a publication, a connection, a callback), `floor.tcp` (the second connection of ROS) and
//! `floor.mqtt` (publisher, broker, subscriber). From ROS 2, `floor.ros2` takes the place of `floor.ros`; what DDS takes longer than TCP in
//! the second connection belongs to the interface. The nodes of Viaduct also report it from inside: from the complete message of ROS to its
//! last octet in the broker's socket, and from the complete message of MQTT to its last octet in the socket of ROS.
//!
//! ```text
//! case.rs      methods, links, messages: a cell;  plan.rs: the cells of a run
//! network.rs   the link;  daemon.rs: ROS master and broker;  domain.rs: of ROS 2;  configs.rs: of the bridges;  content.rs: points and packets
//! job.rs       lines between the programs;  node.rs: the program of a node;  session.rs: the programs of a setup
//! use_case.rs  the nodes with lidar and detector;  inference.rs: the detector alone
//! floor.rs     plain sockets;  outcome.rs: result of a cell
//! paper.rs     published figures;  figures.rs, rows.rs, sections.rs, charts.rs: cells -> report
//! ```

mod case;
mod charts;
mod configs;
mod content;
mod daemon;
mod domain;
mod figures;
mod floor;
mod folder;
mod inference;
mod job;
mod network;
mod node;
mod outcome;
mod paper;
mod plan;
mod rows;
mod sections;
mod session;
mod use_case;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use self::case::Link;
use self::case::{Answer, Cell, Kind, Method};
use self::content::Content;
use self::figures::Figures;
use self::folder::Folder;
use self::job::WARM_UP;
use self::network::Network;
use self::outcome::Outcome;
use self::session::Session;
use crate::error::BenchError;
use crate::machine::{COMMIT, MachineMonitor};
use crate::progress::print_progress;
use crate::report::Report;
use crate::state::{Measured, Run};

/// Arguments with which the bench starts its own executable as a node. The executable calls [`run_node`].
pub const NODE_COMMAND: [&str; 1] = ["bench-node"];

/// Shortest time of a cell of the rate sweep, in seconds.
const SWEEP_S: u32 = 2;

/// Options of the bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// Messages of each cell. A cell of the rate sweep has more at high rates.
    pub messages: u32,
    /// Links; `None` selects all.
    pub links: Option<Vec<Link>>,
    /// Names of the rivals; `None` runs all of them.
    pub only: Option<Vec<String>>,
    /// `true` measures every cell.
    pub all: bool,
    /// Folder of the rivals' programs. Default: `rivals`.
    pub rivals: Option<PathBuf>,
    /// Program that runs the nodes with [`NODE_COMMAND`]; `None` is this program.
    pub program: Option<PathBuf>,
    /// State file of an interrupted run.
    pub state: Option<PathBuf>,
    /// Seed of the emulated link.
    pub seed: u64,
    /// Time without an answer after which the rest is lost.
    pub silence: Duration,
    /// Longest time of the whole run: cells that do not fit are left out.
    pub limit: Option<Duration>,
}

impl Default for Options {
    /// Returns options for the essential cells with 25 messages each, within four minutes.
    fn default() -> Self {
        Self {
            messages: 25,
            links: None,
            only: None,
            all: false,
            rivals: None,
            program: None,
            state: None,
            seed: 1,
            silence: Duration::from_secs(1),
            limit: None,
        }
    }
}

impl Options {
    /// Returns options with the paper's 600 messages at 10 Hz in every cell.
    #[must_use]
    pub fn full() -> Self {
        Self { messages: 600, all: true, silence: Duration::from_secs(5), ..Self::default() }
    }

    fn run(&self) -> Run {
        let Self { messages, seed, silence, .. } = self;
        let options = format!("{messages} messages, seed {seed}, {} ms of silence", silence.as_millis());
        Run { commit: COMMIT.to_owned(), options }
    }

    /// Returns the messages of a cell. A floor has half as many, because it varies less and only its median is used, and so have slow
    /// cells. A cell of the sweep takes some seconds.
    fn messages(&self, cell: &Cell) -> u32 {
        let Cell { setup, load, .. } = cell;
        let is_sweep = load.kind == Kind::Scan && load.answer == Answer::Same;
        let is_slow = load.kind == Kind::Cloud && setup.link == Link::NarrowFiveG;
        if is_sweep {
            self.messages.max(load.rate_hz * SWEEP_S)
        } else if setup.method.is_floor() || is_slow {
            self.messages.div_ceil(2)
        } else {
            self.messages
        }
    }

    /// Returns the expected time of each cell: its messages, the probes before them, and the start of its programs, if it does not have
    /// those of the cell before it.
    fn durations(&self, cells: &[Cell]) -> Vec<Duration> {
        let mut opened: Option<&Cell> = None;
        let mut duration = |cell| {
            let is_open = opened.is_some_and(|opened| Cell::shares_session(cell, opened));
            if !is_open {
                opened = Some(cell);
            }
            let method = cell.setup.method;
            if method == Method::Detector {
                return Duration::from_secs(1);
            }
            let start_ms = match (is_open, method.has_ros()) {
                // Its nodes are started for each cell.
                _ if method.is_use_case() => 600,
                (false, true) if method.has_ros2() => 300,
                (false, true) if cell.setup.link == Link::Host => 1000,
                (false, true) => 1300,
                _ => 100,
            };
            let probes_ms = if method.has_ros() { 900 } else { 0 };
            cell.load.period() * (self.messages(cell) + WARM_UP) + Duration::from_millis(start_ms + probes_ms)
        };
        cells.iter().map(&mut duration).collect()
    }

    fn program(&self) -> Result<PathBuf, String> {
        let program = self.program.clone().map_or_else(std::env::current_exe, Ok);
        program.map_err(|cause| format!("cannot find this program: {cause}"))
    }
}

/// Returns the names of the rivals.
#[must_use]
pub const fn rivals() -> [&'static str; 3] {
    plan::rivals()
}

/// Runs a node of the bench: reads its job from standard input and writes its reports to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub fn run_node() -> std::io::Result<()> {
    node::run(std::io::stdin().lock(), std::io::stdout().lock())
}

/// Runs the bench. A system that is missing or fails is a note.
///
/// # Errors
/// Returns an error if the state file belongs to another run or cannot be written, or if there is no folder for temporary files.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = MachineMonitor::start();
    let mut measured = match &options.state {
        Some(path) => Measured::resume(path, &options.run())?,
        None => Measured::default(),
    };
    let cells = plan::cells(options);
    let note = measure_all(options, &cells, &mut measured)?;
    let figures = Figures::of(&cells, &measured);
    let mut notes = figures.notes();
    notes.extend(note);
    let mut report = Report::new("bridge", watch, rows::rows(&figures), notes);
    report.sections = sections::sections(&figures);
    report.charts = charts::charts(&figures);
    report.sections_only = true;
    Ok(report)
}

/// Measures the missing cells. Returns a note if the time was not sufficient.
fn measure_all(
    options: &Options,
    cells: &[Cell],
    measured: &mut Measured<Outcome>,
) -> Result<Option<String>, BenchError> {
    let started = Instant::now();
    let folder = Folder::create()?;
    let content = Content::write(folder.path())?;
    let durations = options.durations(cells);
    let mut rest: Duration = durations.iter().sum();
    let mut session: Option<(Cell, Result<Session<'_>, String>)> = None;
    for (index, (cell, each)) in cells.iter().zip(durations).enumerate() {
        let left = rest;
        rest = rest.saturating_sub(each);
        if measured.has(&cell.key(), cell.round.into()) {
            continue;
        }
        if options.limit.is_some_and(|limit| started.elapsed() + each > limit) {
            let left = cells.len() - index;
            return Ok(Some(format!("the time limit was reached: {left} of {} cells were not measured", cells.len())));
        }
        print_progress(&format!(
            "bridge: {} of {}: {}; about {} s left",
            index + 1,
            cells.len(),
            cell.key(),
            left.as_secs()
        ));
        let is_open = session.as_ref().is_some_and(|(open, _)| cell.shares_session(open));
        if !is_open {
            // The programs of the old one end first.
            drop(session.take());
            let network = Network::up(cell.setup.link, options.seed.wrapping_add(index as u64));
            let opened = network.map_err(|error| error.to_string());
            session = Some((*cell, opened.and_then(|network| Session::open(cell.setup, network, options))));
        }
        let outcome = match &mut session {
            Some((_, Ok(session))) => session.measure(cell, &content),
            Some((_, Err(why))) => Err(why.clone()),
            None => Err("no program is running".to_owned()),
        };
        if outcome.is_err() && matches!(session, Some((_, Ok(_)))) {
            // A program that has failed may answer the next job with the result of this one.
            session = None;
        }
        let outcome = outcome.unwrap_or_else(Outcome::refused);
        measured.add(&cell.key(), cell.round.into(), outcome)?;
    }
    Ok(None)
}
