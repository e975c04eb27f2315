//! `viaduct run FILE...`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use viaduct_node::{Checks, Failure, Graph, Node, STOP_TIME_MAX};

use crate::files;

/// Files of nodes that run in one process, each on a bus of its own.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Config files (YAML), one a node; `-` reads stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let graphs = files::resolve(&files::read(&arguments.files)?, Checks::Ports)?;
    with_runtime(|runtime| {
        let mut signals = Signals::listen(runtime)?;
        let mut nodes = start(graphs, runtime)?;
        let failure = runtime.block_on(async {
            tokio::select! {
                () = signals.asked() => None,
                failure = first_failure(&mut nodes) => Some(failure),
            }
        });
        stop(nodes);
        failure.map_or(Ok(ExitCode::SUCCESS), |failure| Err(failure.into()))
    })
}

/// Lends the runtime of all I/O of the process. It does not wait for what outlives its nodes: a name server that does not
/// answer must not hold the process.
pub(crate) fn with_runtime<T>(body: impl FnOnce(&Runtime) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).thread_name("io").enable_all().build();
    let runtime = runtime.context("cannot start the I/O threads")?;
    let outcome = body(&runtime);
    runtime.shutdown_background();
    outcome
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

/// SIGINT and SIGTERM. Listened for before anything starts, so that a stop during the start is a clean one.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen(runtime: &Runtime) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
        let terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        Ok(Self { terminate, interrupt })
    }

    /// Waits until somebody asks for the end. Cancelling the wait loses nothing.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
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
