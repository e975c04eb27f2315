//! The rows of the report.

use serde_json::{Value, json};

use super::cell::Cell;
use super::outcome::{Outcome, milliseconds};
use super::{floor, tables};
use crate::report::Row;
use crate::statistics::Summary;

pub(super) fn rows(outcomes: &[(Cell, &Outcome)]) -> Vec<Row> {
    let mut rows: Vec<Row> = outcomes.iter().flat_map(|(cell, outcome)| of_cell(cell, outcome)).collect();
    let links: std::collections::BTreeSet<_> = outcomes.iter().map(|(cell, _)| cell.link).collect();
    rows.extend(links.into_iter().filter_map(floor::row));
    rows.extend(tables::published().iter().map(tables::Published::row));
    rows
}

fn of_cell(cell: &Cell, outcome: &Outcome) -> Vec<Row> {
    if outcome.refused.is_some() {
        return Vec::new();
    }
    if cell.subject.pictures {
        let (sent, _) = outcome.totals();
        let lost = sent.saturating_sub(outcome.glass.len() as u64);
        return vec![row(cell.subject.name(), &cell.joint_params(), milliseconds(&outcome.glass), sent, lost)];
    }
    let mut rows: Vec<Row> = (0_u8..)
        .zip(&outcome.cameras)
        .map(|(camera, latencies)| {
            let lost = outcome.lost(camera.into());
            row(cell.subject.name(), &cell.params(camera + 1), milliseconds(latencies), outcome.sent, lost)
        })
        .collect();
    if !outcome.command_ages.is_empty() {
        let ages = milliseconds(&outcome.command_ages);
        let n = ages.len() as u64;
        rows.push(row("viaduct.command_age", &cell.joint_params(), ages, n, 0));
    }
    if let Some(ratio) = outcome.sent_per_needed() {
        let params = json!({ "cameras": cell.cameras, "link": cell.link.name() });
        let empty = Row::empty("viaduct.sent_per_needed", &params, "ratio");
        rows.push(Row { n: outcome.totals().0, mean: Some(ratio), ..empty });
    }
    rows
}

/// Returns a row of latencies in milliseconds, of `n` messages.
pub(super) fn row(name: &str, params: &Value, samples: Vec<f64>, n: u64, lost: u64) -> Row {
    let summary = Summary::of(&samples);
    let figure = |pick: fn(&Summary) -> f64| summary.as_ref().map(pick);
    Row {
        n,
        lost: Some(lost),
        min: figure(|summary| summary.min),
        p50: figure(|summary| summary.p50),
        p99: figure(|summary| summary.p99),
        p999: figure(|summary| summary.p999),
        max: figure(|summary| summary.max),
        mean: figure(|summary| summary.mean),
        sd: figure(|summary| summary.sd),
        samples,
        ..Row::empty(name, params, "ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::job::Transport;
    use crate::drive::{Options, cell};

    #[test]
    fn a_row_counts_the_sent_and_the_lost_frames() {
        let options = Options::default();
        let all = cell::cells(&options);
        let cell =
            all.iter().find(|cell| cell.subject.transport == Transport::Viaduct && !cell.subject.pictures).unwrap();
        let outcome = Outcome {
            sent: 3,
            cameras: vec![vec![4_000_000, 6_000_000], vec![], vec![1_000_000; 3], vec![2_000_000; 3]],
            command_ages: vec![500_000],
            octets: Some((100, 104)),
            ..Outcome::default()
        };
        let rows = of_cell(cell, &outcome);
        let figures: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.n, row.lost, row.mean)).collect();
        let expected = [
            ("viaduct.frame", 3, Some(1), Some(5.0)),
            ("viaduct.frame", 3, Some(3), None),
            ("viaduct.frame", 3, Some(0), Some(1.0)),
            ("viaduct.frame", 3, Some(0), Some(2.0)),
            ("viaduct.command_age", 1, Some(0), Some(0.5)),
            ("viaduct.sent_per_needed", 12, None, Some(1.04)),
        ];
        assert_eq!(figures, expected);
        assert_eq!(rows[0].params["camera"], 1);
        assert!(rows.iter().take(5).all(|row| row.unit == "ms"));
        assert!(of_cell(cell, &Outcome::refused("missing".to_owned())).is_empty());
    }
}
