//! `viaduct bench NAME`: runs a benchmark and prints a table of paper, Viaduct and floor.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use viaduct_bench::{Report, bus, drive, its};
use viaduct_netem::Profile;

use crate::output::stdout_failed;

/// Longest time of a default run of `drive`.
const DRIVE_TIME_MAX: Duration = Duration::from_secs(235);

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
    /// Take as many samples as the paper, which takes longer. An interrupted run of `bus` and `drive` can be resumed.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    rivals: RivalArguments,
    #[command(flatten)]
    drive: DriveArguments,
}

/// Options of `bench bus` and `bench drive`.
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

/// Options of `bench drive` only.
#[derive(clap::Args)]
struct DriveArguments {
    /// Measure every system over these links only [default: the cells that the bounds need; with `--full`, all].
    #[arg(long, value_name = "PROFILE", num_args = 1.., value_parser = parse_link)]
    link: Option<Vec<Profile>>,
    /// Measure every system with these numbers of cameras only, 1 to 4 [default: as for `--link`].
    #[arg(long, value_name = "N", num_args = 1.., value_parser = clap::value_parser!(u8).range(1..=4))]
    cameras: Option<Vec<u8>>,
    /// Measure these rivals only: `best_effort`, `tcp`, `mqtt`, `cyclonedds`, or `none`.
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = rival_names())]
    rival: Option<Vec<String>>,
    /// Frames of each camera in each cell, 1 to 100000 [default: 80; with `--full`, 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: Option<u32>,
}

fn parse_link(name: &str) -> Result<Profile, String> {
    let names = drive::links().map(Profile::name).join(", ");
    let profile = name.parse().ok().filter(|profile| drive::links().contains(profile));
    profile.ok_or_else(|| format!("the links of this bench are {names}"))
}

fn rival_names() -> clap::builder::PossibleValuesParser {
    let names = drive::rivals().into_iter().chain(["none"]);
    clap::builder::PossibleValuesParser::new(names.collect::<Vec<_>>())
}

impl DriveArguments {
    const fn is_used(&self) -> bool {
        self.link.is_some() || self.cameras.is_some() || self.rival.is_some() || self.frames.is_some()
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
        if !matches!(self.bench, Bench::Bus | Bench::Drive) {
            return None;
        }
        let next_to_json = || self.json.as_ref().filter(|_| self.full).map(|json| json.with_extension("state"));
        self.rivals.resume.clone().or_else(next_to_json)
    }

    fn bus_options(&self) -> bus::Options {
        let options = if self.full { bus::Options::full() } else { bus::Options::default() };
        bus::Options { rivals: Some(self.rivals_folder()), state: self.state(), ..options }
    }

    fn drive_options(&self) -> drive::Options {
        let options = if self.full { drive::Options::full() } else { drive::Options::default() };
        let chosen = self.drive.is_used();
        drive::Options {
            frames: self.drive.frames.unwrap_or(options.frames),
            links: self.drive.link.clone(),
            cameras: self.drive.cameras.clone(),
            only: self.drive.rival.clone(),
            rivals: Some(self.rivals_folder()),
            state: self.state(),
            limit: (!self.full && !chosen).then_some(DRIVE_TIME_MAX),
            ..options
        }
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

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    Ok(match arguments.bench {
        Bench::Its if arguments.rivals.rivals.is_some() || arguments.rivals.resume.is_some() => {
            bail!("`--rivals` and `--resume` are for `bench bus` and `bench drive`")
        }
        Bench::Its | Bench::Bus if arguments.drive.is_used() => {
            bail!("`--link`, `--cameras`, `--rival` and `--frames` are for `bench drive`")
        }
        Bench::Its => {
            let options = if arguments.full { its::Options::full() } else { its::Options::default() };
            its::run(&its::Options { data: Some(data_folder()), ..options })?
        }
        Bench::Bus => bus::run(&arguments.bus_options())?,
        Bench::Drive => drive::run(&arguments.drive_options())?,
    })
}

/// Returns `VIADUCT_DATA`, or `../shared/data` if it is not set.
fn data_folder() -> PathBuf {
    std::env::var_os("VIADUCT_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}
