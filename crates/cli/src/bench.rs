//! `viaduct bench NAME`: runs a benchmark and prints a table of paper, Viaduct and floor.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use viaduct_bench::{Report, abuse, bridge, bus, constrained, drive, its};
use viaduct_netem::Profile;

use crate::output::stdout_failed;

/// Longest time of a default run of `drive` and `bridge`.
const TIME_MAX: Duration = Duration::from_secs(235);

/// Arguments of `viaduct bench`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Benchmark to run.
    #[arg(value_enum)]
    bench: Bench,
    /// Write all rows and a description of the machine to this file (JSON).
    ///
    /// The samples are written to a second file next to it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with tables and charts to this file (HTML).
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Take as many samples as the paper, which takes longer. An interrupted run of `bus`, `drive` and `bridge` can be resumed.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    rivals: RivalArguments,
    #[command(flatten)]
    cells: CellArguments,
}

/// Options of `bench bus`, `bench drive` and `bench bridge`.
#[derive(clap::Args)]
struct RivalArguments {
    /// Folder of the competitors' programs [default: `VIADUCT_RIVALS`, else `rivals`].
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Resume from this state file, and save measured rounds in it until the run is complete [default: with `--full`
    /// and `--json`, the JSON file with the extension `.state`].
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

/// Options of `bench drive` and `bench bridge`.
#[derive(clap::Args)]
struct CellArguments {
    /// Measure every system over these links only. `drive`: `ethernet`, `lossy-0.3`, `lossy-5`, `bursty-5`, `outage`; `bridge`: `host`,
    /// `ethernet`, `5g`, `5g-84` [default: the cells that the bounds need; with `--full`, all].
    #[arg(long, value_name = "LINK", num_args = 1..)]
    link: Option<Vec<String>>,
    /// Measure every system with these numbers of cameras only, 1 to 4 (`drive`) [default: as for `--link`].
    #[arg(long, value_name = "N", num_args = 1.., value_parser = clap::value_parser!(u8).range(1..=4))]
    cameras: Option<Vec<u8>>,
    /// Measure these rivals only. `drive`: `best_effort`, `tcp`, `mqtt`, `cyclonedds`, or `none`; `bridge`: `mqtt_client`, `mqtt_bridge`,
    /// `ros1.overlay`, or `none`.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    rival: Option<Vec<String>>,
    /// Frames of each camera in each cell (`drive`), 1 to 100000 [default: 80; with `--full`, 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: Option<u32>,
    /// Messages of each cell (`bridge`, `constrained`), 1 to 100000 [default: 25, and 10000 for `constrained`; with `--full`, 600 and 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    messages: Option<u32>,
}

impl CellArguments {
    const fn is_used(&self) -> bool {
        let Self { link, cameras, rival, frames, messages } = self;
        link.is_some() || cameras.is_some() || rival.is_some() || frames.is_some() || messages.is_some()
    }

    /// Returns the chosen links of a bench.
    fn links<L: Copy>(&self, known: &[L], name: fn(L) -> &'static str) -> anyhow::Result<Option<Vec<L>>> {
        let parse = |text: &String| {
            let found = known.iter().find(|link| name(**link) == text);
            let names = || known.iter().map(|link| name(*link)).collect::<Vec<_>>().join(", ");
            found.copied().with_context(|| format!("`--link {text}`: the links of this bench are {}", names()))
        };
        self.link.as_ref().map(|links| links.iter().map(parse).collect()).transpose()
    }

    /// Returns the chosen rivals of a bench.
    fn rivals(&self, known: &[&str]) -> anyhow::Result<Option<Vec<String>>> {
        let wrong = self.rival.iter().flatten().find(|name| *name != "none" && !known.contains(&name.as_str()));
        if let Some(name) = wrong {
            bail!("`--rival {name}`: the rivals of this bench are {}, none", known.join(", "));
        }
        Ok(self.rival.clone())
    }
}

/// A benchmark.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Bench {
    /// C-ITS: codecs, throughput to JSON and MQTT, live packets to MQTT and to the API, station to station by stage.
    Its,
    /// The bus: latency by size, executor and fill, measured as in FastCycle, with rivals and floors of the same run.
    Bus,
    /// Remote driving: frames of one to four cameras over a lossy link, with rivals, the floor and the paper's tables. Needs root.
    Drive,
    /// ROS over MQTT: lidar scans and point clouds to the cloud and back, measured as mqtt_client, with rivals and floors of the same run.
    /// Needs root.
    Bridge,
    /// MQTT-SN and CoAP: consecutive messages, many clients and lossy links, with rivals, baselines and the floor. The lossy links need root.
    Constrained,
    /// Attacks on the listeners of a node while others are served, beside those on Mosquitto.
    Abuse,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // An unwritable file is reported before the measurement, which takes minutes.
    for path in arguments.json.iter().chain(&arguments.html) {
        Report::check_writable(path).with_context(|| cannot_write(path))?;
    }
    let report = measure(arguments)?;
    report.print_table().or_else(stdout_failed)?;
    if let Some(path) = &arguments.json {
        report.write_json(path).with_context(|| cannot_write(path))?;
    }
    if let Some(path) = &arguments.html {
        report.write_html(path).with_context(|| cannot_write(path))?;
    }
    if let Some(state) = arguments.state() {
        // The report contains all saved rounds; the next run starts again.
        std::fs::remove_file(&state).with_context(|| format!("cannot remove {}", state.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Returns the state file of a run, or `None` if it is not resumable.
    fn state(&self) -> Option<PathBuf> {
        if matches!(self.bench, Bench::Its | Bench::Constrained | Bench::Abuse) {
            return None;
        }
        let next_to_json = || self.json.as_ref().filter(|_| self.full).map(|json| json.with_extension("state"));
        self.rivals.resume.clone().or_else(next_to_json)
    }

    fn bus_options(&self) -> bus::Options {
        let options = if self.full { bus::Options::full() } else { bus::Options::default() };
        bus::Options { rivals: Some(self.rivals_folder()), state: self.state(), ..options }
    }

    fn drive_options(&self) -> anyhow::Result<drive::Options> {
        let options = if self.full { drive::Options::full() } else { drive::Options::default() };
        let CellArguments { cameras, frames, .. } = &self.cells;
        Ok(drive::Options {
            frames: frames.unwrap_or(options.frames),
            links: self.cells.links(&drive::links(), Profile::name)?,
            cameras: cameras.clone(),
            only: self.cells.rivals(&drive::rivals())?,
            rivals: Some(self.rivals_folder()),
            state: self.state(),
            limit: (!self.full && !self.cells.is_used()).then_some(TIME_MAX),
            ..options
        })
    }

    fn bridge_options(&self) -> anyhow::Result<bridge::Options> {
        let options = if self.full { bridge::Options::full() } else { bridge::Options::default() };
        Ok(bridge::Options {
            messages: self.cells.messages.unwrap_or(options.messages),
            links: self.cells.links(&bridge::Link::ALL, bridge::Link::name)?,
            only: self.cells.rivals(&bridge::rivals())?,
            rivals: Some(self.rivals_folder()),
            state: self.state(),
            limit: (!self.full && !self.cells.is_used()).then_some(TIME_MAX),
            ..options
        })
    }

    fn rivals_folder(&self) -> PathBuf {
        let named = self.rivals.rivals.clone().or_else(|| std::env::var_os("VIADUCT_RIVALS").map(PathBuf::from));
        named.unwrap_or_else(|| PathBuf::from("rivals"))
    }
}

/// Runs one end of a link for `bench drive`.
pub(crate) fn run_end() -> anyhow::Result<ExitCode> {
    drive::run_end().context("cannot answer the bench")?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a node of `bench bridge`.
pub(crate) fn run_node() -> anyhow::Result<ExitCode> {
    bridge::run_node().context("cannot answer the bench")?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let Arguments { bench, rivals, cells, .. } = arguments;
    if matches!(bench, Bench::Its | Bench::Abuse) && (rivals.rivals.is_some() || rivals.resume.is_some()) {
        bail!("`--rivals` and `--resume` are for `bench bus`, `bench drive` and `bench bridge`");
    }
    if matches!(bench, Bench::Constrained) && rivals.resume.is_some() {
        bail!("`--resume` is for `bench bus`, `bench drive` and `bench bridge`");
    }
    let CellArguments { link, cameras, rival, frames, .. } = cells;
    if matches!(bench, Bench::Constrained)
        && (link.is_some() || cameras.is_some() || rival.is_some() || frames.is_some())
    {
        bail!("`--link`, `--cameras`, `--rival` and `--frames` are for `bench drive` and `bench bridge`");
    }
    if matches!(bench, Bench::Its | Bench::Bus | Bench::Abuse) && cells.is_used() {
        bail!("`--link`, `--cameras`, `--rival`, `--frames` and `--messages` are for `bench drive` and `bench bridge`");
    }
    if matches!(bench, Bench::Drive) && cells.messages.is_some() {
        bail!("`--messages` is for `bench bridge` and `bench constrained`");
    }
    if matches!(bench, Bench::Bridge) && (cells.cameras.is_some() || cells.frames.is_some()) {
        bail!("`--cameras` and `--frames` are for `bench drive`");
    }
    Ok(match bench {
        Bench::Its => {
            let options = if arguments.full { its::Options::full() } else { its::Options::default() };
            its::run(&its::Options { data: Some(data_folder()), ..options })?
        }
        Bench::Bus => bus::run(&arguments.bus_options())?,
        Bench::Drive => drive::run(&arguments.drive_options()?)?,
        Bench::Bridge => bridge::run(&arguments.bridge_options()?)?,
        Bench::Abuse => abuse::run(&if arguments.full { abuse::Options::full() } else { abuse::Options::default() })?,
        Bench::Constrained => {
            let options = if arguments.full { constrained::Options::full() } else { constrained::Options::default() };
            let messages = cells.messages.map_or(options.messages, |messages| messages as usize);
            constrained::run(&constrained::Options { messages, rivals: Some(arguments.rivals_folder()), ..options })?
        }
    })
}

/// Returns `VIADUCT_DATA`, or `../shared/data` if it is not set.
fn data_folder() -> PathBuf {
    std::env::var_os("VIADUCT_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}
