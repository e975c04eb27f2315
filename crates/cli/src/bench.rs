//! `viaduct bench NAME`: measures, and prints paper, ours and floor side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use viaduct_bench::{Report, bus, its};

/// What to measure, and how much of it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to measure.
    #[arg(value_enum)]
    bench: Bench,
    /// Write every row, with the machine and the raw figures, to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// As many samples as the paper has; takes longer.
    #[arg(long)]
    full: bool,
}

/// The benches.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Bench {
    /// C-ITS: codecs, throughput of one core to JSON and MQTT, live packets to MQTT and to the API.
    Its,
    /// The bus: latency by size, executor and fill, as FastCycle measures it.
    Bus,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // A file that cannot be written is told before minutes of measuring.
    if let Some(path) = &arguments.json {
        Report::check_writable(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let report = measure(arguments)?;
    report.print_table().context("cannot write to stdout")?;
    if let Some(path) = &arguments.json {
        write(&report, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    Ok(match arguments.bench {
        Bench::Its => {
            let options = if arguments.full { its::Options::full() } else { its::Options::default() };
            its::run(&its::Options { data: Some(data_folder()), ..options })?
        }
        Bench::Bus if arguments.full => bus::run(&bus::Options::full())?,
        Bench::Bus => bus::run(&bus::Options::default())?,
    })
}

/// `VIADUCT_DATA`, or `../shared/data` where that is not set.
fn data_folder() -> PathBuf {
    std::env::var_os("VIADUCT_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}

fn write(report: &Report, path: &Path) -> anyhow::Result<()> {
    report.write_json(path).with_context(|| format!("cannot write {}", path.display()))
}
