//! Attacks on the listeners of a node, beside those on Mosquitto. During each attack other clients are served, and are measured: messages
//! by MQTT, requests of the API and of the page, and V2X messages of vehicles on their way to a subscriber.
//!
//! Rows: `viaduct.mqtt`, `viaduct.api`, `viaduct.page`, `mosquitto.mqtt` {attack} with latencies and requests without an answer,
//! `viaduct.cams` {attack} with messages per second, `viaduct.its` {addresses} with the time of a frame. The table shows memory and CPU
//! time of the attacked process.

mod attack;
mod frames;
mod probe;
mod target;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use self::attack::Attack;
use self::probe::Probes;
use self::target::{Kind, Target};
use crate::error::BenchError;
use crate::machine::MachineMonitor;
use crate::progress::print_progress;
use crate::report::{Report, Row, Section};

/// Time for which clients are measured before the attack begins.
const BEFORE: Duration = Duration::from_millis(500);

/// Options of the bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time for which connections of an attack stay.
    pub hold: Duration,
    /// Sessions that clients leave behind.
    pub sessions: usize,
    /// Frames of the measurement of the location table.
    pub frames: usize,
    /// Program that runs a node with [`crate::constrained::NODE_COMMAND`]; `None` is this program.
    pub program: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { hold: Duration::from_secs(3), sessions: 8000, frames: 20_000, program: None }
    }
}

impl Options {
    /// Returns options with longer attacks.
    #[must_use]
    pub fn full() -> Self {
        Self { hold: Duration::from_secs(30), frames: 200_000, ..Self::default() }
    }
}

/// Result of an attack on a target.
struct Outcome {
    attack: Attack,
    kind: Kind,
    /// Resident memory before and at most, in MiB.
    memory: (f64, f64),
    /// CPU time of the process in seconds, and the duration of the attack.
    cpu_s: f64,
    time_s: f64,
    /// Description of the success of the attack.
    success: String,
    rows: Vec<Row>,
}

/// Runs the bench.
///
/// # Errors
/// Returns an error if a part of Viaduct does not start or the system refuses a socket or a thread.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = MachineMonitor::start();
    let (mut outcomes, mut notes) = (Vec::new(), Vec::new());
    for attack in Attack::ALL {
        for kind in Kind::ALL.into_iter().filter(|kind| *kind == Kind::Viaduct || attack.concerns_brokers()) {
            print_progress(&format!("abuse: {} against {}", attack.name(), kind.name()));
            match measure(attack, kind, options) {
                Err(error) if kind == Kind::Mosquitto => notes.push(format!("Mosquitto is left out: {error}")),
                outcome => outcomes.push(outcome?),
            }
        }
    }
    let mut rows = frames::rows(options.frames)?;
    let section = section(&outcomes);
    rows.extend(outcomes.into_iter().flat_map(|outcome| outcome.rows));
    let mut report = Report::new("abuse", watch, rows, notes);
    report.sections = vec![section];
    Ok(report)
}

fn measure(attack: Attack, kind: Kind, options: &Options) -> Result<Outcome, BenchError> {
    let target = Target::start(kind, options)?;
    let probes = Probes::start(&target)?;
    std::thread::sleep(BEFORE);
    let usage = target.watch()?;
    let success = attack.run(&target, options)?;
    let usage = usage.stop()?;
    let outcomes = probes.stop()?;
    let params = json!({ "attack": attack.name() });
    let rows = outcomes.into_iter().map(|(name, outcome)| outcome.row(&format!("{}.{name}", kind.name()), &params));
    Ok(Outcome {
        attack,
        kind,
        memory: usage.memory,
        cpu_s: usage.cpu_s,
        time_s: usage.time_s,
        success,
        rows: rows.collect(),
    })
}

fn section(outcomes: &[Outcome]) -> Section {
    let columns = ["attack", "target", "success", "RSS before, MiB", "RSS at most, MiB", "CPU, s", "time, s"];
    let row = |outcome: &Outcome| {
        let figures = [outcome.memory.0, outcome.memory.1, outcome.cpu_s, outcome.time_s];
        let words = [outcome.attack.name(), outcome.kind.name(), &outcome.success].map(str::to_owned);
        words.into_iter().chain(figures.map(|figure| format!("{figure:.1}"))).collect()
    };
    Section {
        title: "Attacks".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        words: 3,
        rows: outcomes.iter().map(row).collect(),
        about: "A process may open 1024 files. RSS is the resident memory of the attacked process, CPU its time in the kernel and outside."
            .to_owned(),
    }
}
