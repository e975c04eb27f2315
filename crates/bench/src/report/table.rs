//! The tables of a report: Viaduct with paper and floor, then the floors, then all figures of the paper.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde_json::Value;

use super::{Cost, Report, Row, Section};

/// A column with its figures.
type Column = (&'static str, fn(&Row) -> String);

const LATENCY: &[Column] = &[
    ("n", |row| row.n.to_string()),
    ("lost", |row| row.lost.map(|lost| lost.to_string()).unwrap_or_default()),
    ("p50", |row| figure(row.p50)),
    ("p99", |row| figure(row.p99)),
    ("p99.9", |row| figure(row.p999)),
    ("max", |row| figure(row.max)),
    ("mean", |row| figure(row.mean)),
    ("sd", |row| figure(row.sd)),
];

const BESIDE_LATENCY: &[Column] = &[
    ("floor p50", |row| figure(row.references.floor)),
    ("ours/floor", |row| ratio(row.p50, row.references.floor)),
    ("paper mean", |row| figure(row.references.paper)),
    ("ours/paper", |row| ratio(row.mean, row.references.paper)),
];

const COST: &[Column] = &[
    ("late p99", |row| figure(row.references.late)),
    ("tick p99", |row| figure(row.references.tick)),
    ("lost", |row| row.lost.map(|lost| lost.to_string()).unwrap_or_default()),
    ("faults", |row| cost(row, |cost| Some(cost.page_faults.to_string()))),
    ("waits", |row| cost(row, |cost| Some(cost.switches_voluntary.to_string()))),
    ("preempted", |row| cost(row, |cost| Some(cost.switches_involuntary.to_string()))),
    ("allocations", |row| cost(row, |cost| cost.allocations.map(|count| figure(Some(count))))),
    ("bytes", |row| cost(row, |cost| cost.allocated_octets.map(|bytes| figure(Some(bytes))))),
    ("copied", |row| cost(row, |cost| cost.copied.map(|copied| copied.to_string()))),
];

const COST_TITLE: &str =
    "Cost of the path over all its threads: faults, waits and preemptions in total, allocations and bytes per message";

const RATE: &[Column] = &[
    ("messages", |row| row.n.to_string()),
    ("lost", |row| row.lost.map(|lost| lost.to_string()).unwrap_or_default()),
    ("per second", |row| figure(row.rate)),
];

const BESIDE_RATE: &[Column] = &[
    ("floor", |row| figure(row.references.floor)),
    ("ours/floor", |row| ratio(row.rate, row.references.floor)),
    ("paper", |row| figure(row.references.paper)),
    ("ours/paper", |row| ratio(row.rate, row.references.paper)),
];

const PAPER: &[Column] = &[
    ("n", |row| row.n.to_string()),
    ("mean", |row| figure(row.mean)),
    ("sd", |row| figure(row.sd)),
    ("max", |row| figure(row.max)),
    ("per second", |row| figure(row.rate)),
];

/// Table style with one line below the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

pub(super) fn render(report: &Report) -> String {
    let mut out = if report.sections_only { String::new() } else { tables_of_rows(report) };
    report.sections.iter().for_each(|section| own_section(&mut out, section));
    let _ = writeln!(out, "{}", machine(report));
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// Returns the tables of the rows, by kind.
fn tables_of_rows(report: &Report) -> String {
    let (papers, measured): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(|row| row.is_paper());
    let (floors, ours): (Vec<&Row>, Vec<&Row>) = measured.into_iter().partition(|row| row.is_floor());
    // Lateness and latency from the tick are columns of the main row.
    let is_column = |row: &&Row| row.name.ends_with(".lateness") || row.name.ends_with(".from_tick");
    let ours: Vec<&Row> = ours.into_iter().filter(|row| !is_column(row)).collect();
    let (rates, latencies): (Vec<&Row>, Vec<&Row>) = ours.into_iter().partition(|row| row.rate.is_some());
    let (floor_rates, floor_latencies): (Vec<&Row>, Vec<&Row>) = floors.into_iter().partition(|row| row.rate.is_some());

    let mut out = String::new();
    for rows in latencies.chunk_by(|one, next| alike(one, next)) {
        section(&mut out, "Latency, us", rows, &[LATENCY, BESIDE_LATENCY].concat());
    }
    let counted: Vec<&Row> = latencies.into_iter().filter(|row| row.cost.is_some() && is_ours(row)).collect();
    section(&mut out, COST_TITLE, &counted, COST);
    section(&mut out, "Throughput", &rates, &[RATE, BESIDE_RATE].concat());
    section(&mut out, "Floor: latency without Viaduct, us", &floor_latencies, LATENCY);
    section(&mut out, "Floor: throughput", &floor_rates, RATE);
    section(&mut out, "Paper, published figures, us", &papers, PAPER);
    out
}

/// Returns the description of the machine.
pub(super) fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let waited =
        machine.psi_cpu.map(|share| format!(", CPU pressure {:.1} % (a thread waited for a core)", share * 100.0));
    format!(
        "commit {}; {} cores, {}; load {:.2} before the run, CPU steal {:.2} %{}",
        report.commit,
        machine.cpus,
        machine.kernel,
        machine.load,
        machine.steal * 100.0,
        waited.unwrap_or_default()
    )
}

/// Returns `true` if two rows belong to one table: the same parameters, or Viaduct's rows of one bench.
fn alike(one: &Row, next: &Row) -> bool {
    let both = |test: &dyn Fn(&Row) -> bool| test(one) && test(next);
    let of_the_bus = |row: &Row| row.params.contains_key("measure");
    one.params.keys().eq(next.params.keys()) || (both(&of_the_bus) && both(&is_ours))
}

fn is_ours(row: &Row) -> bool {
    row.name.split('.').next() == Some("viaduct")
}

fn cost(row: &Row, text: fn(&Cost) -> Option<String>) -> String {
    row.cost.as_ref().and_then(text).unwrap_or_default()
}

/// Prints an additional table of the bench.
fn own_section(out: &mut String, section: &Section) {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(&section.columns);
    table.add_rows(&section.rows);
    table.discover_columns();
    for index in section.words..section.columns.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(out, "{}\n{}\n({})\n", section.title, table.trim_fmt(), section.about);
}

/// Prints one table. Parameters in which rows differ are columns; empty columns are left out.
fn section(out: &mut String, title: &str, rows: &[&Row], columns: &[Column]) {
    if rows.is_empty() {
        return;
    }
    let keys = differing(rows);
    let columns: Vec<&Column> =
        columns.iter().filter(|(_, text)| rows.iter().any(|row| !text(row).is_empty())).collect();
    let mut table = Table::new();
    table.load_style(STYLE);
    let names = std::iter::once("row").chain(keys.iter().map(String::as_str));
    table.set_header(names.chain(columns.iter().map(|(name, _)| *name)));
    for row in rows {
        let params = keys.iter().map(|key| param(key, row.params.get(key)));
        let cells = std::iter::once(row.name.clone()).chain(params);
        table.add_row(cells.chain(columns.iter().map(|(_, text)| text(row))));
    }
    table.discover_columns();
    for index in 1 + keys.len()..1 + keys.len() + columns.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(out, "{title}{}\n{}\n", same_for_all(rows, &keys), table.trim_fmt());
}

/// Parameters of a competitor that are too long for a table; a note has them.
pub(super) const IN_NOTES: [&str; 2] = ["version", "how"];

/// Returns the parameters in which rows differ, in order of appearance.
fn differing(rows: &[&Row]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in rows.iter().flat_map(|row| row.params.keys()).filter(|key| !IN_NOTES.contains(&key.as_str())) {
        let values: BTreeSet<String> = rows.iter().map(|row| format!("{:?}", row.params.get(key))).collect();
        if values.len() > 1 && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Returns the other parameters, once for the table.
fn same_for_all(rows: &[&Row], differing: &[String]) -> String {
    let params = rows.first().map(|row| &row.params).into_iter().flatten();
    let same: Vec<String> = params
        .filter(|(key, value)| !differing.contains(key) && !value.is_null() && !IN_NOTES.contains(&key.as_str()))
        .map(|(key, value)| format!("{key} {}", param(key, Some(value))))
        .collect();
    if same.is_empty() { String::new() } else { format!("; {}", same.join(", ")) }
}

pub(super) fn param(key: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if key == "size" => size_text(number.as_u64().unwrap_or(0)),
        Some(other) => other.to_string(),
    }
}

pub(crate) fn size_text(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Formats a number with three digits, or all before the decimal point.
pub(crate) fn figure(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.abs() >= 99.95 => format!("{value:.0}"),
        Some(value) if value.abs() >= 9.995 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn ratio(ours: Option<f64>, other: Option<f64>) -> String {
    match (ours, other) {
        (Some(ours), Some(other)) if other > 0.0 => {
            let ratio = ours / other;
            if ratio < 0.1 { format!("{ratio:.4}") } else { figure(Some(ratio)) }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::report::References;
    use serde_json::json;

    #[test]
    fn shows_differing_parameters_as_columns_and_others_once() {
        let row = |size: u64, samples: Vec<f64>| {
            Row::latencies("viaduct", &json!({"size": size, "mode": "thread"}), samples, 0)
        };
        let mut small = row(32 << 10, vec![4.0, 5.0, 6.0]);
        small.references = References { paper: Some(159.0), floor: Some(2.5), ..References::default() };
        let rows = vec![small, row(4 << 20, vec![123.456]), Row::latencies("floor.futex", &json!({}), vec![2.5], 0)];
        let machine = Machine { cpus: 2, kernel: "Linux".into(), load: 0.0, steal: 0.0, psi_cpu: Some(0.125) };
        let own = Section {
            title: "Bounds".into(),
            columns: vec!["bound".into(), "reached".into()],
            words: 1,
            rows: vec![vec!["small".into(), "7".into()]],
            about: "as it is".into(),
        };
        let report = Report {
            bench: "bus".into(),
            commit: "unknown".into(),
            machine,
            rows,
            notes: vec!["short".into()],
            sections: vec![own],
            charts: vec![],
            sections_only: false,
        };
        let text = report.table();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Latency, us; mode thread");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(lines[1]),
            "row size n lost p50 p99 p99.9 max mean sd floor p50 ours/floor paper mean ours/paper"
        );
        assert_eq!(words(lines[3]), "viaduct 32 KB 3 0 5.00 6.00 6.00 6.00 5.00 1.00 2.50 2.00 159 0.0314");
        assert!(words(&text).contains("viaduct 4 MB 1 0 123 123"), "{text}");
        assert!(words(&text).contains("Bounds bound reached ─────────────────── small 7 (as it is)"), "{text}");
        assert!(text.contains("CPU pressure 12.5 % (a thread waited for a core)\n"), "{text}");
        assert!(text.contains("Floor") && text.ends_with("note: short\n"), "{text}");
    }
}
