//! Config files, read and checked.

use std::path::PathBuf;

use viaduct_node::Graph;
use viaduct_node::config::ConfigError;

use crate::kinds;

/// A config or a command line that is refused: exit code 2.
#[derive(Debug)]
pub(crate) struct Refused(Box<dyn std::error::Error + Send + Sync>);

impl Refused {
    /// An argument of the command line that cannot be.
    pub(crate) fn argument(problem: String) -> Self {
        Self(problem.into())
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {}

impl From<ConfigError> for Refused {
    fn from(error: ConfigError) -> Self {
        Self(error.into())
    }
}

/// Reads files: how errors call each, and its text.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<(String, String)>, Refused> {
    let read_one = |path: &PathBuf| {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok((name, text)),
            Err(cause) => Err(ConfigError::unreadable(&name, &cause).into()),
        }
    };
    paths.iter().map(read_one).collect()
}

/// Checks the nodes of files that are to run in one process, free ports included.
pub(crate) fn resolve(files: &[(String, String)]) -> Result<Vec<Graph>, Refused> {
    let graphs = Graph::resolve_all(files, &kinds())?;
    for (graph, (_, text)) in graphs.iter().zip(files) {
        graph.check_ports(text)?;
    }
    Ok(graphs)
}
