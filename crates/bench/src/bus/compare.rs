//! The table of paper, Viaduct, competitors and floor, by size.

use super::case::{Case, Cores, Fill, Measure, Policy};
use super::plan::Subject;
use super::series::{AllSeries, Series};
use super::{paper, paper_mean};
use crate::report::{Section, figure, size_text};
use crate::statistics::ratio_interval;

const COLUMNS: [&str; 12] =
    ["size", "threads", "measure", "fill", "row", "p50", "p99", "mean", "p50 to ours", "95 %", "p99 to ours", "95 %"];

/// Columns of words before the figures.
const WORDS: usize = 5;

pub(super) fn section(all: &AllSeries, base: &Case, sizes: &[usize], seed: u64) -> Section {
    let placed = sizes.iter().map(|size| Case { size: *size, ..base.clone() });
    let free = Case { cores: Cores::Free, policy: Policy::Other, ..base.clone() };
    let mut rows = Vec::new();
    for case in placed.chain([free]) {
        rows.extend(block(all, &case, seed));
    }
    Section {
        title: "Paper, ours, rivals, floor, us".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        words: WORDS,
        rows,
        about: "to ours: the row's percentile over ours of the same size, threads, measure and fill; 95 %: bootstrap over the \
                rounds (1000 draws of whole rounds, the same for both sides, their samples pooled); a rival that gives \
                percentiles only has no interval, and its p50 and p99 are medians over the rounds; the paper's means are \
                from another machine"
            .to_owned(),
    }
}

/// Adds the rows of one size and placement.
fn block(all: &AllSeries, case: &Case, seed: u64) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (measure, fill) in [
        (Measure::OneWay, Fill::Loan),
        (Measure::OneWay, Fill::Copy),
        (Measure::Rtt, Fill::Loan),
        (Measure::Rtt, Fill::Copy),
    ] {
        let case = Case { measure, fill, ..case.clone() };
        let ours = all.ours(&case);
        rows.extend(ours.map(|ours| cells(&case, ours, None, seed)));
        let same = |rival: &&Series| Case { mode: case.mode, ..rival.case.clone() } == case;
        rows.extend(all.rivals().filter(same).map(|rival| cells(&case, rival, ours, seed)));
        if fill == Fill::Loan && case.policy == Policy::Fifo {
            rows.extend(paper_mean(&case).map(|mean| paper_cells(&case, mean)));
        }
    }
    let (loan, copy) = (case.clone(), Case { fill: Fill::Copy, ..case.clone() });
    let memcpy = all.memcpy(case.size).filter(|_| case.cores == Cores::Same);
    let floors = [(all.futex(&loan), &loan), (all.bare_futex(&loan), &loan), (memcpy, &copy)];
    for (floor, case) in floors {
        rows.extend(floor.map(|floor| cells(case, floor, all.ours(case), seed)));
    }
    rows
}

fn labels(case: &Case, name: &str) -> Vec<String> {
    let params = case.params();
    let word = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
    let threads = format!("{} {}", word("cores"), word("policy"));
    vec![size_text(case.size as u64), threads, word("measure"), word("fill"), name.to_owned()]
}

fn cells(case: &Case, series: &Series, ours: Option<&Series>, seed: u64) -> Vec<String> {
    let mut cells = labels(case, &series.name);
    if series.subject == Subject::Futex {
        cells[3] = String::new();
    }
    cells.extend([series.row.p50, series.row.p99, series.row.mean].map(figure));
    for (thousandths, pick) in [(500, Series::p50 as fn(&Series) -> f64), (990, Series::p99)] {
        let ratio = ours.map(|ours| pick(series) / pick(ours));
        let interval = ours.and_then(|ours| ratio_interval(&series.rounds, &ours.rounds, thousandths, seed));
        cells.push(figure(ratio));
        cells.push(
            interval.map(|(low, high)| format!("{} to {}", figure(Some(low)), figure(Some(high)))).unwrap_or_default(),
        );
    }
    cells
}

fn paper_cells(case: &Case, mean: f64) -> Vec<String> {
    let mut cells = labels(case, paper::FASTCYCLE);
    cells[1] = String::new();
    cells[3] = String::new();
    cells.extend([String::new(), String::new(), figure(Some(mean))]);
    cells.resize(COLUMNS.len(), String::new());
    cells
}
