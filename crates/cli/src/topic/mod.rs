//! `viaduct topic list|info|hz|latency|echo`: the topics of a running node, over its HTTP endpoint.
//!
//! Everything but `echo` reads the node's counters and histograms, which are kept anyway; `echo` is an observer, which the
//! data path does not wait for.

mod client;
mod echo;
mod hz;
mod info;
mod latency;
mod list;
mod message;
mod snapshot;
mod text;

use std::process::ExitCode;

use anyhow::Context as _;

/// What to look at.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List topics: type, publishers, subscribers, rate, drops.
    List(list::Arguments),
    /// Show one topic: who publishes it, who reads it, what they lost and why.
    Info(info::Arguments),
    /// Show how often a topic is published, and how evenly: one line a second.
    Hz(hz::Arguments),
    /// Show how long samples take from publishing to being taken, for each subscription: a table a second.
    Latency(latency::Arguments),
    /// Print samples as they are published.
    Echo(echo::Arguments),
}

/// Which node.
#[derive(clap::Args)]
struct NodeArgument {
    /// The node's HTTP endpoint, which its file names under `http`.
    #[arg(long, value_name = "URL", env = "VIADUCT_NODE", default_value = "http://127.0.0.1:9470")]
    #[arg(value_parser = client::NodeAddress::parse)]
    node: client::NodeAddress,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the I/O of this command")?.block_on(async {
        match command {
            Command::List(arguments) => list::run(arguments).await,
            Command::Info(arguments) => info::run(arguments).await,
            Command::Hz(arguments) => hz::run(arguments).await,
            Command::Latency(arguments) => latency::run(arguments).await,
            Command::Echo(arguments) => echo::run(arguments).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
