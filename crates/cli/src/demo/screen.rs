//! The state of a demo on the terminal, once a second.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_node::{Failure, Node};

use crate::output::print_line;
use crate::run::Signals;

/// Time between two states.
const PERIOD: Duration = Duration::from_secs(1);

/// The terminal: one line for each state, or a table that is refreshed in place.
pub(super) struct Screen {
    lines: bool,
    /// Lines of the table on the terminal, which the next one overwrites.
    height: usize,
}

impl Screen {
    pub(super) fn new(headless: bool) -> Self {
        Self { lines: headless || !std::io::stdout().is_terminal(), height: 0 }
    }

    /// Prints a state as a line or as a table.
    pub(super) fn show(&mut self, line: impl FnOnce() -> String, table: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.lines {
            return print_line(line());
        }
        let table = table();
        let table = table.trim_end();
        let up = if self.height > 0 { format!("\x1b[{}A\x1b[J", self.height) } else { String::new() };
        self.height = table.lines().count();
        print_line(format_args!("{up}{table}"))
    }
}

/// Calls `show` once a second until the time is over, a signal arrives, or a component fails. Returns the failure.
pub(super) fn watch(
    nodes: &mut [Node],
    runtime: &Runtime,
    signals: &mut Signals,
    seconds: Option<u64>,
    mut show: impl FnMut(&[Node]) -> anyhow::Result<()>,
) -> Option<Failure> {
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    runtime.block_on(async {
        loop {
            let wait = end.map_or(PERIOD, |end| PERIOD.min(end.saturating_duration_since(Instant::now())));
            tokio::select! {
                () = signals.asked() => return None,
                () = tokio::time::sleep(wait) => {}
            }
            if let Some(failure) = nodes.iter_mut().find_map(Node::try_failed) {
                return Some(failure);
            }
            // The demo runs on if the terminal cannot be written.
            let _ = show(nodes);
            if end.is_some_and(|end| Instant::now() >= end) {
                return None;
            }
        }
    })
}
