//! The rows of the report.

use serde_json::{Value, json};

use super::case::{Cell, Method};
use super::figures::{Figures, Stage, crossings_ms, stages};
use super::outcome::{Outcome, milliseconds};
use super::paper;
use crate::report::Row;

pub(super) fn rows(figures: &Figures) -> Vec<Row> {
    let mut rows: Vec<Row> = figures.measured().flat_map(|(cell, outcome)| of_cell(figures, cell, outcome)).collect();
    rows.extend(paper::rows());
    rows
}

fn of_cell(figures: &Figures, cell: &Cell, outcome: &Outcome) -> Vec<Row> {
    match cell.setup.method {
        Method::UseCase | Method::UseCaseInVehicle => return of_use_case(cell, outcome),
        Method::Detector => {
            let times = milliseconds(&outcome.one_way);
            return vec![row("viaduct.detector", &cell.params("inference"), times, outcome.sent)];
        }
        _ => {}
    }
    let is_ours = cell.setup.method.name() == "viaduct";
    let name = |part: &str| {
        if is_ours { format!("viaduct.{part}") } else { cell.setup.method.name().to_owned() }
    };
    let mut rows = vec![row(&name("total"), &cell.params("one_way"), milliseconds(&outcome.one_way), outcome.sent)];
    if !outcome.round_trip.is_empty() && cell.setup.method != Method::Bus {
        rows.push(row(&name("total"), &cell.params("rtt"), milliseconds(&outcome.round_trip), outcome.sent));
    }
    if let Some(samples) = figures.interface_ms(cell, outcome) {
        let params = with(cell.params("interface"), "by", "outside");
        rows.push(row(&name("interface"), &params, samples, outcome.sent));
    }
    if let Some(mean) = crossings_ms(cell, outcome, |hop| hop.mean_us) {
        // Percentiles of a sum are not the sums of percentiles.
        let empty = Row::empty("viaduct.interface", &with(cell.params("interface"), "by", "stamps"), "ms");
        rows.push(Row { n: outcome.sent, mean: Some(mean), ..empty });
    }
    rows.extend(
        stages(cell, outcome).iter().map(|stage| of_stage(&with(cell.params("stage"), "stage", stage.name), stage)),
    );
    rows
}

/// Returns the rows of the use case: its total, and its stages by the names of the paper.
fn of_use_case(cell: &Cell, outcome: &Outcome) -> Vec<Row> {
    let place = if cell.setup.method == Method::UseCase { "cloud" } else { "vehicle" };
    let params = |measure| with(cell.params(measure), "detection_in", place);
    let mut rows = vec![row("viaduct.usecase", &params("rtt"), milliseconds(&outcome.round_trip), outcome.sent)];
    rows.extend(outcome.stages.iter().map(|stage| {
        row("viaduct.stage", &with(params("stage"), "stage", &stage.name), stage.ms.clone(), outcome.sent)
    }));
    rows
}

fn with(mut params: Value, key: &str, value: &str) -> Value {
    params[key] = json!(value);
    params
}

/// Returns the row of a stage. A node has a histogram of each hop and no samples, so a stage of several hops has a mean only.
fn of_stage(params: &Value, stage: &Stage<'_>) -> Row {
    let empty = Row::empty("viaduct.stage", params, "ms");
    let mean = Some(stage.sum_ms(|hop| hop.mean_us));
    let [hop] = stage.hops[..] else {
        let n = stage.hops.iter().map(|hop| hop.n).min().unwrap_or(0);
        return Row { n, mean, ..empty };
    };
    let ms = |value: f64| Some(value / 1e3);
    Row {
        n: hop.n,
        min: ms(hop.min_us),
        p50: ms(hop.p50_us),
        p99: ms(hop.p99_us),
        p999: ms(hop.p999_us),
        max: ms(hop.max_us),
        mean,
        sd: ms(hop.sd_us),
        ..empty
    }
}

/// Returns a row of latencies in milliseconds, of `sent` messages.
fn row(name: &str, params: &Value, samples: Vec<f64>, sent: u64) -> Row {
    let lost = sent.saturating_sub(samples.len() as u64);
    Row { unit: "ms".to_owned(), n: sent, ..Row::latencies(name, params, samples, lost) }
}
