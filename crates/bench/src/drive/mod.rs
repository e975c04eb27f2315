//! Bench `drive`: the measurement of the remote driving paper. One to four cameras send a frame of 374 kB ten times a second over
//! an emulated link; the latency is the time from the tick of the camera until the whole frame has arrived.
//!
//! All systems send real packets over the same link between two network namespaces, each end in a process of its own:
//!
//! | system | frames |
//! |---|---|
//! | `viaduct.frame` | nodes with the kinds `camera`, `teleop_vehicle` and `teleop_desk`, with a page that sends commands at the same time |
//! | `best_effort` | fragments by UDP without recovery |
//! | `tcp` | one connection per camera, the kernel's default congestion control |
//! | `mqtt` | QoS 0 and 1, the embedded broker at the desk's end |
//! | `cyclonedds` | the paper's four cases of quality of service, and settings tuned for large frames |
//!
//! The floor is the time for the packets of one frame at the link's rate, divided by the share of packets that arrive.
//!
//! ```text
//! cell.rs      systems, links and numbers of cameras, and the list of cells
//! job.rs       lines between the bench and the programs at the ends;  ends/: these programs;  frame.rs: their frames
//! network.rs   the emulated link;  keys.rs: keys of our nodes;  measure.rs: measures one cell;  outcome.rs: its result
//! tables.rs    the paper's tables;  floor.rs: the floor;  rows.rs, sections.rs: cells -> rows and tables of the report
//! ```

mod cell;
mod ends;
mod floor;
mod frame;
mod job;
mod keys;
mod measure;
mod network;
mod outcome;
mod rows;
mod sections;
mod tables;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use viaduct_netem::Profile;

use self::cell::Cell;
use self::outcome::Outcome;
use crate::error::BenchError;
use crate::machine::{COMMIT, MachineMonitor};
use crate::progress::print_progress;
use crate::report::Report;
use crate::state::{Measured, Run};

/// Octets of a frame: the paper's VGA pictures.
pub(crate) const FRAME_OCTETS: usize = 374_000;
/// Frames per second of a camera.
const RATE_HZ: u32 = 10;

/// Arguments with which the bench starts its own executable at an end of the link. The executable calls [`run_end`].
pub const END_COMMAND: [&str; 1] = ["bench-end"];

/// Options of the bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// Frames of each camera in each cell.
    pub frames: u32,
    /// Links; `None` selects those that matter, or all of them with `all`.
    pub links: Option<Vec<Profile>>,
    /// Numbers of cameras, 1 to 4; `None` as for `links`.
    pub cameras: Option<Vec<u8>>,
    /// Names of the rivals; `None` runs all of them.
    pub only: Option<Vec<String>>,
    /// `true` measures every cell.
    pub all: bool,
    /// Folder of the rivals' programs. Default: `rivals`.
    pub rivals: Option<PathBuf>,
    /// Program that runs the ends with [`END_COMMAND`]; `None` is this program.
    pub program: Option<PathBuf>,
    /// State file of an interrupted run.
    pub state: Option<PathBuf>,
    /// Seed of the links.
    pub seed: u64,
    /// Time without an arrival after which a receiver ends, in milliseconds. The receiver of a system that repeats lost parts
    /// waits for `drain_ms` instead.
    pub silence_ms: u64,
    /// Longest time for which a receiver waits after the last frame was sent, in milliseconds.
    pub drain_ms: u64,
    /// Longest time of the whole run: cells that do not fit are left out.
    pub limit: Option<Duration>,
}

impl Default for Options {
    /// Returns options for the essential cells with 80 frames per camera, within four minutes.
    fn default() -> Self {
        Self {
            frames: 80,
            links: None,
            cameras: None,
            only: None,
            all: false,
            rivals: None,
            program: None,
            state: None,
            seed: 1,
            silence_ms: 700,
            drain_ms: 3000,
            limit: None,
        }
    }
}

impl Options {
    /// Returns options with the paper's 10,000 frames per camera in every cell. A receiver waits as long as the paper's longest
    /// latency.
    #[must_use]
    pub fn full() -> Self {
        Self { frames: 10_000, all: true, silence_ms: 5000, drain_ms: 60_000, ..Self::default() }
    }

    fn run(&self) -> Run {
        let Self { frames, seed, silence_ms, drain_ms, .. } = self;
        let options = format!("{frames} frames, seed {seed}, {silence_ms} ms of silence, {drain_ms} ms to drain");
        Run { commit: COMMIT.to_owned(), options }
    }
}

/// Returns the names of the rivals.
#[must_use]
pub fn rivals() -> Vec<&'static str> {
    cell::rivals()
}

/// Returns the links of the bench.
#[must_use]
pub const fn links() -> [Profile; 5] {
    cell::LINKS
}

/// Runs one end of a link: reads a job from standard input and writes its results to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub fn run_end() -> std::io::Result<()> {
    ends::run(std::io::stdin().lock(), std::io::stdout().lock())
}

/// Runs the bench.
///
/// # Errors
/// Returns an error if the system refuses to emulate a link, or if the state file belongs to another run or cannot be
/// written.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = MachineMonitor::start();
    let mut measured = match &options.state {
        Some(path) => Measured::resume(path, &options.run())?,
        None => Measured::default(),
    };
    let cells = cell::cells(options);
    let note = measure_all(options, &cells, &mut measured)?;
    let outcomes: Vec<(Cell, &Outcome)> =
        cells.iter().filter_map(|cell| Some((*cell, find(&measured, cell)?))).collect();
    let mut notes = notes(&outcomes);
    notes.extend(note);
    let mut report = Report::new("drive", watch, rows::rows(&outcomes), notes);
    report.sections = sections::sections(&outcomes);
    report.sections_only = true;
    Ok(report)
}

fn find<'a>(measured: &'a Measured<Outcome>, cell: &Cell) -> Option<&'a Outcome> {
    measured.get(&cell.key(), 0)
}

/// Measures the missing cells. Returns a note if the time was not sufficient.
fn measure_all(
    options: &Options,
    cells: &[Cell],
    measured: &mut Measured<Outcome>,
) -> Result<Option<String>, BenchError> {
    let started = Instant::now();
    let each = Duration::from_secs_f64(f64::from(options.frames + 10) / f64::from(RATE_HZ) + 2.5);
    for (number, cell) in (1_u32..).zip(cells) {
        if find(measured, cell).is_some() {
            continue;
        }
        if options.limit.is_some_and(|limit| started.elapsed() + each > limit) {
            let left = cells.len() - number as usize + 1;
            return Ok(Some(format!("the time limit was reached: {left} of {} cells were not measured", cells.len())));
        }
        let rest = each * (cells.len() as u32 - number + 1);
        print_progress(&format!(
            "drive: {} of {}: {}; about {} s left",
            number,
            cells.len(),
            cell.key(),
            rest.as_secs()
        ));
        let outcome = measure::measure(cell, options, options.seed.wrapping_add(number.into()))?;
        measured.add(&cell.key(), 0, outcome)?;
    }
    Ok(None)
}

/// Returns notes about systems that were not measured, their versions, and the link.
fn notes(outcomes: &[(Cell, &Outcome)]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for (cell, outcome) in outcomes {
        if let Some(why) = &outcome.refused {
            add(format!("{}: not measured: {why}", cell.key()));
        }
        if !outcome.version.is_empty() {
            add(format!("{}: {}", cell.subject.label(), outcome.version));
        }
        if outcome.marks_failed > 0 {
            add(format!("{}: {} marks were not readable", cell.key(), outcome.marks_failed));
        }
        if !outcome.losses.is_empty() {
            let losses: Vec<String> =
                outcome.losses.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            add(format!("{}: frames lost by the vehicle's node: {}", cell.key(), losses.join(", ")));
        }
        if outcome.ticks_skipped > 0 {
            let ticks = outcome.ticks_skipped;
            add(format!("{}: the slowest camera has skipped {ticks} ticks, which are not in `n`", cell.key()));
        }
        if let Some(pacing) = &outcome.pacing {
            add(format!(
                "{}: rate control at the end: {:.0} Mbit/s, queueing delay {:.1} ms, stopped {} times by a long queue",
                cell.key(),
                pacing.rate_mbps,
                pacing.queueing_ms,
                pacing.stops
            ));
        }
        if let Some(drops) = outcome.queue_drops.filter(|drops| *drops > 0) {
            add(format!("{}: the full queue of the link dropped {drops} packets", cell.key()));
        }
    }
    if let Some(spread) = outcomes.iter().filter_map(|(_, outcome)| outcome.spread_us).max() {
        add(format!(
            "the cameras of viaduct take the frames of a tick within {:.1} ms; those of the other systems take them at once",
            spread as f64 / 1e3
        ));
    }
    let late = outcomes.iter().filter_map(|(_, outcome)| outcome.lateness_us);
    if let Some(worst) = late.max_by(|one, two| one[1].total_cmp(&two[1])) {
        add(format!(
            "timers of the emulated link in the worst cell: late by {:.0} us (median), {:.0} us (99th percentile), {:.0} us (largest)",
            worst[0], worst[1], worst[2]
        ));
    }
    notes
}
