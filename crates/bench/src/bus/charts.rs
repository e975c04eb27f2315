//! Distributions of Viaduct, competitors and floor, by size.

use super::case::{Case, Cores, Fill, Policy};
use super::series::{AllSeries, Series};
use crate::report::{Chart, Line, size_text};
use crate::statistics::distribution;

/// Number of points of a curve, without its tail.
const POINTS: usize = 300;

pub(super) fn of(all: &AllSeries, base: &Case, sizes: &[usize]) -> Vec<Chart> {
    let free = Case { cores: Cores::Free, policy: Policy::Other, ..base.clone() };
    let placed = sizes.iter().map(|size| Case { size: *size, ..base.clone() });
    let charts = placed.chain([free]).flat_map(|loan| [loan.clone(), Case { fill: Fill::Copy, ..loan }]);
    charts.map(|case| chart(all, &case)).filter(|chart| !chart.lines.is_empty()).collect()
}

fn chart(all: &AllSeries, case: &Case) -> Chart {
    let params = case.params();
    let word = |key: &str| params[key].as_str().unwrap_or_default();
    let title =
        format!("{} {}, {} cores, policy {}", size_text(case.size as u64), word("fill"), word("cores"), word("policy"));
    let same =
        |rival: &&Series| Case { mode: case.mode, ..rival.case.clone() } == *case && !rival.row.samples.is_empty();
    let ours = all.ours(case).map(|series| line(series, "ours"));
    let floor = match case.fill {
        Fill::Loan => all.futex(case),
        Fill::Copy => all.memcpy(case.size),
    };
    let lines = ours.into_iter().chain(all.rivals().filter(same).map(|series| line(series, "rival")));
    Chart { title, unit: "us".to_owned(), lines: lines.chain(floor.map(|series| line(series, "floor"))).collect() }
}

fn line(series: &Series, kind: &str) -> Line {
    Line { name: series.name.clone(), kind: kind.to_owned(), points: distribution(&series.row.samples, POINTS) }
}
