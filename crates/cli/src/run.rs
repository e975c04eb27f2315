//! `viaduct run FILE...`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use viaduct_node::{Failure, Graph, Node, STOP_TIME_MAX};

use crate::{FAILED, files};

/// Files of nodes that run in one process, each on a bus of its own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Config files (YAML), one a node.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let graphs = files::resolve(&files::read(&arguments.files)?)?;
    let runtime = runtime()?;
    let mut nodes = start(graphs, &runtime)?;
    let failure = runtime.block_on(ended(&mut nodes))?;
    stop(nodes);
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(failure) => {
            tracing::error!(component = failure.component, cause = %failure.cause, "node stopped for a failure");
            Ok(ExitCode::from(FAILED))
        }
    }
}

/// The runtime of all I/O of the process.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("io")
        .enable_all()
        .build()
        .context("cannot start the I/O threads")
}

/// Starts nodes; when one does not start, those before it are stopped again.
pub(crate) fn start(graphs: Vec<Graph>, runtime: &Runtime) -> anyhow::Result<Vec<Node>> {
    let mut nodes = Vec::new();
    for graph in graphs {
        match Node::start(graph, runtime.handle()) {
            Ok(node) => nodes.push(node),
            Err(error) => {
                stop(nodes);
                return Err(error.into());
            }
        }
    }
    Ok(nodes)
}

/// Stops nodes in their order, within the time of one.
pub(crate) fn stop(nodes: Vec<Node>) {
    let deadline = Instant::now() + STOP_TIME_MAX;
    for node in nodes {
        node.stop_by(deadline);
    }
}

/// Waits for SIGINT or SIGTERM (`None`), or for a component that cannot go on.
pub(crate) async fn ended(nodes: &mut [Node]) -> anyhow::Result<Option<Failure>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => Ok(None),
        _ = interrupt.recv() => Ok(None),
        failure = first_failure(nodes) => Ok(Some(failure)),
    }
}

async fn first_failure(nodes: &mut [Node]) -> Failure {
    loop {
        if let Some(failure) = nodes.iter_mut().find_map(Node::try_failed) {
            return failure;
        }
        match nodes {
            [only] => return only.failed().await,
            _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
}
