//! `viaduct`: the one binary. It joins the tables of kinds and reads the command line.

mod bench;
mod check;
mod demo;
mod files;
mod its;
mod kinds;
mod run;
mod topic;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// `bench bus` reports what a message's path allocates.
#[global_allocator]
static ALLOCATOR: viaduct_bench::CountingAllocator = viaduct_bench::CountingAllocator;

/// Exit code of a node or demo that failed while it ran.
const FAILED: u8 = 1;
/// Exit code of a config or a command line that is refused.
const REFUSED: u8 = 2;

/// Data plane of connected vehicles: a bus of components, ETSI C-ITS, MQTT, and an API, measured hop by hop.
#[derive(Parser)]
#[command(version, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the nodes of one or more config files until SIGINT or SIGTERM.
    Run(run::Arguments),
    /// Check config files without starting anything.
    Check(check::Arguments),
    /// List the kinds of components, or the settings of one.
    Kinds(kinds::Arguments),
    /// Look at ETSI ITS packets, and send some.
    #[command(subcommand)]
    Its(its::Command),
    /// Look at the topics of a running node.
    #[command(subcommand)]
    Topic(topic::Command),
    /// Run simulated vehicles, an edge node and its API with a live map on this machine.
    Demo(demo::Arguments),
    /// Measure, and print paper, ours, rivals and floor side by side.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log();
    let outcome = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Kinds(arguments) => kinds::run(&arguments),
        Command::Its(its::Command::Decode(arguments)) => its::decode(&arguments),
        Command::Its(its::Command::Send(arguments)) => its::send(&arguments),
        Command::Topic(command) => topic::run(&command),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        say_error(&error);
        ExitCode::from(if error.is::<files::Refused>() { REFUSED } else { FAILED })
    })
}

/// The log goes to stderr; `RUST_LOG` says what of it (`info` where it is not set).
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,mqtt5=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).init();
}

#[expect(clippy::print_stderr, reason = "the error is for the person at the terminal")]
fn say_error(error: &anyhow::Error) {
    eprintln!("viaduct: {error:#}");
}

/// Every kind of every crate.
fn kinds() -> Vec<viaduct_node::Kind> {
    let mut kinds = [viaduct_components::KINDS, viaduct_backend::KINDS].concat();
    kinds.sort_by_key(|kind| kind.name);
    kinds
}
