//! Text on stdout and stderr, also if the reader has closed the pipe.

use std::fmt::Display;
use std::io::{Error, ErrorKind, Write as _};

use anyhow::Context as _;

/// Prints a text on stdout and ends its line. Ends the process with exit code 0 if the reader has closed the pipe
/// (`viaduct kinds | head -1`).
///
/// # Errors
/// Returns an error if standard output cannot be written for another reason, for example because the disk is full.
pub(crate) fn print_line(text: impl Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).or_else(stdout_failed)
}

/// Ends the process with exit code 0 if the reader of stdout has closed the pipe, and returns it otherwise.
///
/// # Errors
/// Returns any other error.
pub(crate) fn stdout_failed(error: Error) -> anyhow::Result<()> {
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    Err(error).context("cannot write to stdout")
}

/// Prints a line on stderr. A stderr that cannot be written is ignored, because there is no other place to report it.
pub(crate) fn print_note(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
