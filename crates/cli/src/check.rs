//! `viaduct check FILE...`

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use viaduct_node::config::ConfigError;
use viaduct_node::{Checks, Graph};

use crate::output::print_line;
use crate::{REFUSED, files};

/// Files of nodes that are to run in one process.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Config files (YAML), one per node; `-` reads stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Do not check what depends on this machine: network interfaces, files that settings name, and free TCP ports. For
    /// a file that will run on another machine.
    #[arg(long)]
    offline: bool,
    /// Print the mistakes as a JSON array of {file, line, column, key, problem}; an empty array if there are none.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let checked = check(arguments);
    if arguments.json {
        let (mistakes, code) = match &checked {
            Ok(_) => (Vec::new(), ExitCode::SUCCESS),
            Err(files::Refused::Config(errors)) => (errors.iter().map(to_json).collect(), ExitCode::from(REFUSED)),
            Err(files::Refused::Argument(problem)) => (vec![of_argument(problem)], ExitCode::from(REFUSED)),
        };
        print_line(serde_json::to_string_pretty(&Value::Array(mistakes))?)?;
        return Ok(code);
    }
    for (graph, file) in checked? {
        print_line(format_args!("{file}: node `{}` is fine", graph.node_name()))?;
        for (name, kind, inputs, outputs) in graph.describe() {
            let (reads, publishes) = (topics(" reads ", &inputs), topics(" publishes ", &outputs));
            print_line(format_args!("  {name} ({kind}){reads}{publishes}"))?;
        }
    }
    if arguments.offline {
        print_line("not checked, because of --offline: interfaces, files and TCP ports of this machine")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the nodes, each with the name of its file.
fn check(arguments: &Arguments) -> Result<Vec<(Graph, String)>, files::Refused> {
    let files = files::read(&arguments.files)?;
    let checks = if arguments.offline { Checks::File } else { Checks::Ports };
    let graphs = files::resolve(&files, checks)?;
    Ok(graphs.into_iter().zip(files.into_iter().map(|(file, _)| file)).collect())
}

fn to_json(error: &ConfigError) -> Value {
    json!({
        "file": error.file(), "line": error.line(), "column": error.column(),
        "key": error.key(), "problem": error.problem(),
    })
}

/// Returns the mistake of the command line in the form of a mistake of a file.
fn of_argument(problem: &str) -> Value {
    json!({ "file": null, "line": null, "column": null, "key": "", "problem": problem })
}

fn topics(verb: &str, names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("{verb}{}", names.join(", ")) }
}
