//! `viaduct check FILE...`

use std::path::PathBuf;
use std::process::ExitCode;

use crate::files;

/// Files of nodes that are to run in one process.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Config files (YAML), one a node.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[expect(clippy::print_stdout, reason = "the answer to the command")]
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let files = files::read(&arguments.files)?;
    for (graph, (file, _)) in files::resolve(&files)?.iter().zip(&files) {
        println!("{file}: node `{}` is fine", graph.node_name());
        for (name, kind, inputs, outputs) in graph.describe() {
            println!("  {name} ({kind}){}{}", topics(" reads ", &inputs), topics(" publishes ", &outputs));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn topics(verb: &str, names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("{verb}{}", names.join(", ")) }
}
