//! Progress of a bench.

use std::io::Write as _;

/// Writes a line to standard error. An error of that write is ignored.
pub(crate) fn print_progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
