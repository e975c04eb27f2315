//! `viaduct topic list|info|hz|latency|echo`: the topics of a running node, over its HTTP endpoint.
//!
//! `echo` attaches an observer, for which the data path never waits. The other commands read the counters and
//! histograms that the node keeps in any case.

mod client;
mod echo;
mod hz;
mod info;
mod latency;
mod list;
mod message;
mod ros;
mod snapshot;
mod text;

use std::process::ExitCode;

use anyhow::Context as _;

/// Subcommands of `viaduct topic`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List topics: type, publishers, subscribers, rate, drops.
    List(list::Arguments),
    /// Show one topic: its publishers and subscribers, their QoS, and the samples that they dropped, by reason.
    Info(info::Arguments),
    /// Show the rate of a topic and the interval between its samples, one line per second.
    Hz(hz::Arguments),
    /// Show the latency from publish to receive for each subscription, one table per second.
    Latency(latency::Arguments),
    /// Print samples as they are published.
    Echo(echo::Arguments),
}

/// Option that selects the node.
#[derive(clap::Args)]
struct NodeArgument {
    /// HTTP endpoint of the node (`http` in its config file).
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
