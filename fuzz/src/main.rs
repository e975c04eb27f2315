//! Runs the fuzz targets with mutated vectors: `cargo run --release -p viaduct-fuzz -- --runs 1000000`.
//!
//! It fails on a panic and on an allocation above the target's limit (1 MiB for most targets). It also fails if a
//! decoder holds more than 16 MiB for an input of a few kilobytes.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool reports there")]

mod sys;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Instant,
};

use viaduct_fuzz::{Mutator, TARGETS, Target};

#[global_allocator]
static ALLOCATOR: sys::TrackingAllocator = sys::TrackingAllocator;

/// Maximum number of bytes that a target may hold at one time, including its input of a few kilobytes.
const HELD_BYTES_MAX: usize = 16 << 20;
const USAGE: &str = "usage: viaduct-fuzz [--runs N] [--target NAME] [--seed N]";

/// Options of the command line.
struct Options {
    /// Number of inputs for each target. A slow target gets fewer, unless it is the only one.
    runs: u64,
    /// Name of the target, or `None` for all.
    target: Option<String>,
    /// Seed of the inputs.
    seed: u64,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let chosen = TARGETS.iter().filter(|target| options.target.as_deref().is_none_or(|name| name == target.name));
    let mut all_held = true;
    for target in chosen {
        all_held &= run(target, &options);
    }
    if all_held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { runs: 100_000, target: None, seed: 1 };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} needs a number, got {value}"));
        match name.as_str() {
            "--runs" => options.runs = number()?,
            "--seed" => options.seed = number()?,
            "--target" if TARGETS.iter().any(|target| target.name == value) => options.target = Some(value),
            "--target" => {
                let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                return Err(format!("unknown target {value}; use one of {}", names.join(", ")));
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

/// Runs one target and prints its result. Returns `true` if no invariant was violated.
fn run(target: &Target, options: &Options) -> bool {
    (target.prepare)();
    let mut mutator = Mutator::new((target.seeds)(), options.seed);
    let (mut largest, mut most_held) = (0, 0);
    let start = Instant::now();
    let runs = options.runs.div_ceil(if options.target.is_some() { 1 } else { target.divisor });
    for number in 0..runs {
        let input = mutator.next_input();
        sys::take_largest();
        let before = sys::begin_peak();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let allocated = sys::take_largest();
        largest = largest.max(allocated);
        let held = sys::peak().saturating_sub(before);
        most_held = most_held.max(held);
        if outcome.is_err() || allocated > target.allocation_max || held > HELD_BYTES_MAX {
            let sizes = format!("largest allocation {allocated} bytes, held {held} bytes");
            let what = if outcome.is_err() { "it panicked".to_owned() } else { sizes };
            println!("{}: run {number} of seed {}: {what}\n{}", target.name, options.seed, hex(input));
            return false;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let rate = runs as f64 / seconds;
    println!(
        "{:<17} {:>10} runs {seconds:>8.1} s {rate:>10.0} runs/s, largest allocation {largest:>7} bytes, held {most_held:>9}",
        target.name, runs
    );
    true
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
