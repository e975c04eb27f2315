//! `viaduct bench NAME`: measures, and prints paper, ours and floor side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use viaduct_bench::{Report, bus, its};

use crate::output::stdout_failed;

/// What to measure, and how much of it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to measure.
    #[arg(value_enum)]
    bench: Bench,
    /// Write every row, with the machine and the raw figures, to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write one page with tables and pictures to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// As many samples as the paper has; takes longer. Of the bus, an interrupted run goes on where it was.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    bus: BusArguments,
}

/// What only the bench of the bus knows.
#[derive(clap::Args)]
struct BusArguments {
    /// Folder of the programs that the bus is compared with (else `VIADUCT_RIVALS`, else `rivals`).
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Go on from this file, and write it: it has what was measured until the whole run is done. Where it is not named,
    /// `--full` with `--json` uses one beside the JSON, with the ending `.state`.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

/// The benches.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Bench {
    /// C-ITS: codecs, throughput of one core to JSON and MQTT, live packets to MQTT and to the API, station to station by
    /// stage.
    Its,
    /// The bus: latency by size, executor and fill, as FastCycle measures it, beside rivals and floors of the same run.
    Bus,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // A file that cannot be written is told before minutes of measuring.
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
        // All that it kept is in the report now; a later run starts anew.
        std::fs::remove_file(&state).with_context(|| format!("cannot remove {}", state.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Where a run of the bus keeps what it measured, in case that it is interrupted.
    fn state(&self) -> Option<PathBuf> {
        if !matches!(self.bench, Bench::Bus) {
            return None;
        }
        let beside = || self.json.as_ref().filter(|_| self.full).map(|json| json.with_extension("state"));
        self.bus.resume.clone().or_else(beside)
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

/// `VIADUCT_DATA`, or `../shared/data` where that is not set.
fn data_folder() -> PathBuf {
    std::env::var_os("VIADUCT_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}
