//! The tables of a report: ours beside the paper and the floor, then the floors, then all of the paper's figures.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde_json::Value;

use super::{Report, Row};

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
    ("late p99", |row| figure(row.beside.late)),
    ("floor p50", |row| figure(row.beside.floor)),
    ("ours/floor", |row| ratio(row.p50, row.beside.floor)),
    ("paper mean", |row| figure(row.beside.paper)),
    ("ours/paper", |row| ratio(row.mean, row.beside.paper)),
];

const RATE: &[Column] = &[
    ("messages", |row| row.n.to_string()),
    ("lost", |row| row.lost.map(|lost| lost.to_string()).unwrap_or_default()),
    ("per second", |row| figure(row.rate)),
];

const BESIDE_RATE: &[Column] = &[
    ("floor", |row| figure(row.beside.floor)),
    ("ours/floor", |row| ratio(row.rate, row.beside.floor)),
    ("paper", |row| figure(row.beside.paper)),
    ("ours/paper", |row| ratio(row.rate, row.beside.paper)),
];

const PAPER: &[Column] = &[
    ("n", |row| row.n.to_string()),
    ("mean", |row| figure(row.mean)),
    ("sd", |row| figure(row.sd)),
    ("max", |row| figure(row.max)),
    ("per second", |row| figure(row.rate)),
];

/// A line below the header and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

pub(super) fn render(report: &Report) -> String {
    let (papers, measured): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(|row| row.is_paper());
    let (floors, ours): (Vec<&Row>, Vec<&Row>) = measured.into_iter().partition(|row| row.is_floor());
    // How late the publisher was stands beside its row.
    let ours: Vec<&Row> = ours.into_iter().filter(|row| !row.name.ends_with(".lateness")).collect();
    let (rates, latencies): (Vec<&Row>, Vec<&Row>) = ours.into_iter().partition(|row| row.rate.is_some());
    let (floor_rates, floor_latencies): (Vec<&Row>, Vec<&Row>) = floors.into_iter().partition(|row| row.rate.is_some());

    let mut out = String::new();
    for rows in latencies.chunk_by(|one, next| one.params.keys().eq(next.params.keys())) {
        section(&mut out, "Latency, us", rows, &[LATENCY, BESIDE_LATENCY].concat());
    }
    section(&mut out, "Throughput", &rates, &[RATE, BESIDE_RATE].concat());
    section(&mut out, "Floor: what this machine takes without us, us", &floor_latencies, LATENCY);
    section(&mut out, "Floor: throughput", &floor_rates, RATE);
    section(&mut out, "The paper, on its own machines, us", &papers, PAPER);
    let machine = &report.machine;
    let _ = writeln!(
        out,
        "commit {}; {} cores, {}; load {:.2} before the run, {:.2} % stolen during it",
        report.commit,
        machine.cpus,
        machine.kernel,
        machine.load,
        machine.steal * 100.0
    );
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// One table, with those parameters as columns in which its rows differ, and without columns that stay empty.
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

/// Parameters in which rows differ, in the order in which they come up.
fn differing(rows: &[&Row]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in rows.iter().flat_map(|row| row.params.keys()) {
        let values: BTreeSet<String> = rows.iter().map(|row| format!("{:?}", row.params.get(key))).collect();
        if values.len() > 1 && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// The other parameters, once for the table.
fn same_for_all(rows: &[&Row], differing: &[String]) -> String {
    let params = rows.first().map(|row| &row.params).into_iter().flatten();
    let same: Vec<String> = params
        .filter(|(key, value)| !differing.contains(key) && !value.is_null())
        .map(|(key, value)| format!("{key} {}", param(key, Some(value))))
        .collect();
    if same.is_empty() { String::new() } else { format!("; {}", same.join(", ")) }
}

fn param(key: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if key == "size" => octets(number.as_u64().unwrap_or(0)),
        Some(other) => other.to_string(),
    }
}

fn octets(octets: u64) -> String {
    match octets {
        0 => "0".to_owned(),
        _ if octets.is_multiple_of(1 << 20) => format!("{} MB", octets >> 20),
        _ if octets.is_multiple_of(1 << 10) => format!("{} KB", octets >> 10),
        _ => format!("{octets} B"),
    }
}

/// Three digits, or all before the point.
fn figure(value: Option<f64>) -> String {
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
    use crate::report::Beside;
    use serde_json::json;

    #[test]
    fn a_table_names_what_differs_and_says_once_what_does_not() {
        let row = |size: u64, samples: Vec<f64>| {
            Row::latencies("viaduct", &json!({"size": size, "mode": "thread"}), samples, 0)
        };
        let mut small = row(32 << 10, vec![4.0, 5.0, 6.0]);
        small.beside = Beside { paper: Some(159.0), floor: Some(2.5), late: None };
        let rows = vec![small, row(4 << 20, vec![123.456]), Row::latencies("floor.futex", &json!({}), vec![2.5], 0)];
        let machine = Machine { cpus: 2, kernel: "Linux".into(), load: 0.0, steal: 0.0 };
        let report =
            Report { bench: "bus".into(), commit: "unknown".into(), machine, rows, notes: vec!["short".into()] };
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
        assert!(text.contains("Floor") && text.ends_with("note: short\n"), "{text}");
    }
}
