//! `viaduct`: the binary. It joins the tables of kinds and parses the command line.

mod bench;
mod check;
mod completions;
mod demo;
mod files;
mod import;
mod its;
mod keys;
mod kinds;
mod link;
mod log;
mod output;
mod run;
mod schema;
mod table;
mod topic;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Counts allocations; `bench bus` reports the allocations on a message's path.
#[global_allocator]
static ALLOCATOR: viaduct_bench::CountingAllocator = viaduct_bench::CountingAllocator;

/// Exit code of a node or a command that failed while it ran.
const FAILED: u8 = 1;
/// Exit code of a config or a command line that is rejected.
const REFUSED: u8 = 2;

/// Data plane for connected vehicles: a bus of components, ETSI C-ITS, MQTT and an HTTP API, with latencies measured
/// hop by hop.
#[derive(Parser)]
#[command(name = "viaduct", version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("VIADUCT_COMMIT"), ")"))]
#[command(max_term_width = 120)]
struct Arguments {
    #[command(flatten)]
    log: log::LogOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the nodes of one or more config files until SIGINT or SIGTERM.
    Run(run::Arguments),
    /// Check config files without starting anything.
    Check(check::Arguments),
    /// Make a node file from a config file of mqtt_client or mqtt_bridge.
    ///
    /// Each parameter that a node does not have, or has in another form, is listed with its line on standard error. The node file is
    /// checked as by `viaduct check --offline`.
    Import(import::Arguments),
    /// List the kinds of components, or the settings of one.
    Kinds(kinds::Arguments),
    /// Print the JSON schema (draft 2020-12) of a config file with the settings of all kinds.
    ///
    /// An editor with a YAML language server uses the schema if the first line of the config file is
    /// `# yaml-language-server: $schema=viaduct.schema.json`.
    Schema(schema::Arguments),
    /// Decode and send ETSI ITS packets.
    #[command(subcommand)]
    Its(its::Command),
    /// Create keys of vehicles and driver's desks, and print their public keys.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Inspect the topics of a running node.
    #[command(subcommand)]
    Topic(topic::Command),
    /// Emulate a link between two network namespaces: rate, delay, loss and outages for any program.
    #[command(subcommand)]
    Link(link::Command),
    /// Run simulated vehicles and an edge node with an API and a live map on this machine.
    Demo(demo::Arguments),
    /// Measure, and compare the results with papers, other middleware and the machine's lower bound.
    Bench(bench::Arguments),
    /// Run one end of a link for `bench drive`, which starts it.
    #[command(hide = true)]
    BenchEnd,
    /// Run a node of `bench bridge`, which starts it.
    #[command(hide = true)]
    BenchNode,
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
}

fn main() -> ExitCode {
    let Arguments { log, command } = Arguments::parse();
    log::start(&log);
    viaduct_node::set_build(env!("CARGO_PKG_VERSION"), env!("VIADUCT_COMMIT"));
    let outcome = match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Kinds(arguments) => kinds::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Its(its::Command::Decode(arguments)) => its::decode(&arguments),
        Command::Its(its::Command::Send(arguments)) => its::send(&arguments),
        Command::Keys(command) => keys::run(&command),
        Command::Topic(command) => topic::run(&command),
        Command::Link(command) => link::run(&command),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::BenchEnd => bench::run_end(),
        Command::BenchNode => bench::run_node(),
        Command::Completions(arguments) => completions::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        if let Some(refused) = error.downcast_ref::<files::Refused>() {
            output::print_note(refused);
            return ExitCode::from(REFUSED);
        }
        output::print_note(format_args!("viaduct: {error:#}"));
        ExitCode::from(FAILED)
    })
}

/// Returns every kind of every crate, sorted by name.
fn kinds() -> Vec<viaduct_node::Kind> {
    let mut kinds = [viaduct_components::KINDS, viaduct_backend::KINDS].concat();
    kinds.sort_by_key(|kind| kind.name);
    kinds
}
