//! `viaduct run FILE...`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use viaduct_node::{Checks, Failure, Graph, Node, STOP_TIME_MAX};

use crate::{files, output};

/// Files of nodes that run in one process, each with its own bus.
/// Exit code if accepted messages are lost with the stop.
const LOST: u8 = 3;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Config files (YAML), one per node; `-` reads stdin.
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
        let lost = stop(nodes);
        match failure {
            Some(failure) => Err(failure.into()),
            None if lost > 0 => Ok(report_lost(lost)),
            None => Ok(ExitCode::SUCCESS),
        }
    })
}

/// Lends the runtime of all I/O of the process. At the end it does not wait for tasks that outlive their nodes, such as
/// a query to a name server that does not answer.
pub(crate) fn with_runtime<T>(body: impl FnOnce(&Runtime) -> anyhow::Result<T>) -> anyhow::Result<T> {
    viaduct_node::listen::raise_descriptor_limit();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).thread_name("io").enable_all().build();
    let runtime = runtime.context("cannot start the I/O threads")?;
    let outcome = body(&runtime);
    runtime.shutdown_background();
    outcome
}

/// Starts nodes. If one does not start, the nodes before it are stopped again.
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

/// Stops nodes in their order, all within the time limit of one node. Returns the number of accepted messages that are lost.
pub(crate) fn stop(nodes: Vec<Node>) -> u64 {
    let deadline = Instant::now() + STOP_TIME_MAX;
    nodes.into_iter().map(|node| node.stop_by(deadline).lost).sum()
}

fn report_lost(messages: u64) -> ExitCode {
    output::print_note(format_args!(
        "viaduct: {messages} accepted messages are lost with the stop; `outbox: {{ folder: FOLDER }}` would keep them"
    ));
    ExitCode::from(LOST)
}

/// Listener for SIGINT and SIGTERM. It exists before any node starts, so that a signal during the start stops cleanly.
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

    /// Waits until a signal arrives. Cancelling the wait loses no signal.
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
