//! The table that renews itself while the demo runs.

use comfy_table::{Cell, CellAlignment, Table as Rows, presets};
use viaduct_bus::BusSnapshot;

/// Shows rates and latencies once a second.
pub(super) struct Table {
    /// One line a second instead of a table that renews itself.
    lines: bool,
    /// Lines of the table on the screen, which the next one overwrites.
    height: usize,
}

impl Table {
    pub(super) fn new(headless: bool) -> Self {
        use std::io::IsTerminal as _;
        Self { lines: headless || !std::io::stdout().is_terminal(), height: 0 }
    }

    #[expect(clippy::print_stdout, reason = "the demo talks to the person at the terminal")]
    pub(super) fn show(&mut self, nodes: &[BusSnapshot]) {
        if self.lines {
            println!("{}", line(nodes));
            return;
        }
        let text = format!("{}\n{}", rates(nodes), hops(nodes));
        if self.height > 0 {
            print!("\x1b[{}A\x1b[J", self.height);
        }
        println!("{text}");
        self.height = text.lines().count();
    }
}

/// Rates and end-to-end latencies in one line.
fn line(nodes: &[BusSnapshot]) -> String {
    let published: f64 = nodes.iter().flat_map(|node| &node.topics).map(|topic| topic.rate_hz).sum();
    let dropped: u64 = nodes.iter().flat_map(|node| &node.topics).map(|topic| topic.dropped).sum();
    let ways: Vec<String> = nodes
        .iter()
        .flat_map(|node| &node.hops)
        .filter(|hop| hop.from == "origin" && hop.recent.count > 0)
        .map(|hop| format!("{} p50 {} p99 {}", hop.to, time(hop.recent.p50_us), time(hop.recent.p99_us)))
        .collect();
    format!("{published:6.0} messages/s, {dropped} dropped; since reception: {}", ways.join(", "))
}

fn rates(nodes: &[BusSnapshot]) -> Rows {
    let mut table = rows(["topic", "type", "per s", "published", "dropped"]);
    for topic in nodes.iter().flat_map(|node| &node.topics).filter(|topic| topic.published > 0) {
        table.add_row([
            Cell::new(&topic.topic),
            Cell::new(topic.type_name.as_deref().unwrap_or("")),
            number(format!("{:.0}", topic.rate_hz)),
            number(topic.published.to_string()),
            number(topic.dropped.to_string()),
        ]);
    }
    table
}

fn hops(nodes: &[BusSnapshot]) -> Rows {
    let mut table = rows(["from", "to", "per s", "p50", "p99", "max"]);
    for hop in nodes.iter().flat_map(|node| &node.hops).filter(|hop| hop.recent.count > 0) {
        let recent = &hop.recent;
        table.add_row([
            Cell::new(&hop.from),
            Cell::new(&hop.to),
            number(recent.count.to_string()),
            number(time(recent.p50_us)),
            number(time(recent.p99_us)),
            number(time(recent.max_us)),
        ]);
    }
    table
}

fn rows<const N: usize>(header: [&str; N]) -> Rows {
    let mut table = Rows::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    table
}

fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Microseconds in a unit that fits.
fn time(microseconds: f64) -> String {
    if microseconds < 1_000.0 { format!("{microseconds:.0} us") } else { format!("{:.2} ms", microseconds / 1_000.0) }
}
