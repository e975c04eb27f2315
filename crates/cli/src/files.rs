//! Config files, read and checked.

use std::path::{Path, PathBuf};

use viaduct_node::config::{ConfigError, ConfigErrors};
use viaduct_node::{Checks, Graph, files};

use crate::kinds;

/// Path of stdin.
const STDIN: &str = "-";

/// Name of stdin in errors.
const STDIN_NAME: &str = "stdin";

/// Longest file in bytes: about 100,000 components.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A rejected config or command line: exit code 2.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The mistakes of config files.
    Config(Vec<ConfigError>),
    /// An argument of the command line that is not possible.
    Argument(String),
}

impl Refused {
    /// Returns the refusal of an argument of the command line.
    pub(crate) fn argument(problem: String) -> Self {
        Self::Argument(problem)
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument(problem) => write!(f, "viaduct: {problem}"),
            Self::Config(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{error}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Refused {}

impl From<ConfigErrors> for Refused {
    fn from(errors: ConfigErrors) -> Self {
        Self::Config(errors.iter().cloned().collect())
    }
}

/// Reads files, each with its name in errors and its text. The path `-` is stdin.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<(String, String)>, Refused> {
    if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(Refused::Argument("`-` is stdin, which has one file only".to_owned()));
    }
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    for path in paths {
        let name = if is_stdin(path) { STDIN_NAME.to_owned() } else { path.display().to_string() };
        match read_text(path) {
            Ok(text) => files.push((name, text)),
            Err(cause) => unread.extend(ConfigErrors::unreadable(&name, &cause).iter().cloned()),
        }
    }
    if unread.is_empty() { Ok(files) } else { Err(Refused::Config(unread)) }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

fn read_text(path: &Path) -> std::io::Result<String> {
    if is_stdin(path) {
        files::text_of(std::io::stdin(), FILE_BYTES_MAX)
    } else {
        files::read_text(path, FILE_BYTES_MAX)
    }
}

/// Checks the nodes of files that are to run in one process.
pub(crate) fn resolve(files: &[(String, String)], checks: Checks) -> Result<Vec<Graph>, Refused> {
    Ok(Graph::resolve_all(files, &kinds(), checks)?)
}
