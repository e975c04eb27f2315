//! `viaduct bench NAME`: runs a benchmark and prints a table of paper, Viaduct and floor.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use viaduct_bench::{Report, bus, its};

use crate::output::stdout_failed;

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
    /// Take as many samples as the paper, which takes longer. An interrupted run of `bus` can be resumed.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    bus: BusArguments,
}

/// Options of `bench bus` only.
#[derive(clap::Args)]
struct BusArguments {
    /// Folder of the competitors' programs [default: `VIADUCT_RIVALS`, else `rivals`].
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Resume from this state file, and save measured rounds in it until the run is complete [default: with `--full`
    /// and `--json`, the JSON file with the extension `.state`].
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

/// A benchmark.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Bench {
    /// C-ITS: codecs, throughput to JSON and MQTT, live packets to MQTT and to the API, station to station by stage.
    Its,
    /// The bus: latency by size, executor and fill, measured as in FastCycle, with rivals and floors of the same run.
    Bus,
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
    /// Returns the state file of a run of the bus, or `None` if it is not resumable.
    fn state(&self) -> Option<PathBuf> {
        if !matches!(self.bench, Bench::Bus) {
            return None;
        }
        let next_to_json = || self.json.as_ref().filter(|_| self.full).map(|json| json.with_extension("state"));
        self.bus.resume.clone().or_else(next_to_json)
    }

    fn bus_options(&self) -> bus::Options {
        let options = if self.full { bus::Options::full() } else { bus::Options::default() };
        bus::Options { rivals: Some(self.rivals_folder()), state: self.state(), ..options }
    }

    fn rivals_folder(&self) -> PathBuf {
        let named = self.bus.rivals.clone().or_else(|| std::env::var_os("VIADUCT_RIVALS").map(PathBuf::from));
        named.unwrap_or_else(|| PathBuf::from("rivals"))
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    Ok(match arguments.bench {
        Bench::Its if arguments.bus.rivals.is_some() || arguments.bus.resume.is_some() => {
            bail!("`--rivals` and `--resume` are for `bench bus`")
        }
        Bench::Its => {
            let options = if arguments.full { its::Options::full() } else { its::Options::default() };
            its::run(&its::Options { data: Some(data_folder()), ..options })?
        }
        Bench::Bus => bus::run(&arguments.bus_options())?,
    })
}

/// Returns `VIADUCT_DATA`, or `../shared/data` if it is not set.
fn data_folder() -> PathBuf {
    std::env::var_os("VIADUCT_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}
