//! `viaduct check FILE...`

use std::path::PathBuf;
use std::process::ExitCode;

use crate::files;
use crate::output::print_line;

/// Files of nodes that are to run in one process.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Config files (YAML), one a node.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let files = files::read(&arguments.files)?;
    for (graph, (file, _)) in files::resolve(&files)?.iter().zip(&files) {
        print_line(format_args!("{file}: node `{}` is fine", graph.node_name()))?;
        for (name, kind, inputs, outputs) in graph.describe() {
            let (reads, publishes) = (topics(" reads ", &inputs), topics(" publishes ", &outputs));
            print_line(format_args!("  {name} ({kind}){reads}{publishes}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn topics(verb: &str, names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("{verb}{}", names.join(", ")) }
}
