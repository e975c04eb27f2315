//! What a bench says while it runs.

use std::io::Write as _;

/// Writes a line to standard error; one that nobody reads is not missed.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
