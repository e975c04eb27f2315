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
        std::fs::write(path, "").with_context(|| format!("cannot write {}", path.display()))?;
    }
    let report = measure(arguments)?;
    report.print_table().context("cannot write to stdout")?;
    if let Some(path) = &arguments.json {
        write(&report, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    Ok(match (arguments.bench, arguments.full) {
        (Bench::Its, false) => its::run(&its::Options::default())?,
        (Bench::Its, true) => its::run(&its::Options::full())?,
        (Bench::Bus, false) => bus::run(&bus::Options::default())?,
        (Bench::Bus, true) => bus::run(&bus::Options::full())?,
    })
}

fn write(report: &Report, path: &Path) -> anyhow::Result<()> {
    report.write_json(path).with_context(|| format!("cannot write {}", path.display()))
}
