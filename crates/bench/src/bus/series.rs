//! The joined rounds of a case: samples by round for comparisons, and the row of the report.

use serde_json::{Value, json};

use super::case::{Case, Fill, Load};
use super::outcome::{Counts, Outcome, SummaryUs};
use super::plan::{Job, Subject};
use crate::report::{Cost, References, Row};
use crate::statistics::{Summary, percentile};

/// A measured case.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) subject: Subject,
    pub(super) case: Case,
    /// Latencies of each round in microseconds; empty if a competitor reports percentiles only.
    pub(super) rounds: Vec<Vec<f64>>,
    pub(super) row: Row,
    /// Rows of the publisher's lateness and of the latencies from the tick.
    pub(super) more: Vec<Row>,
}

impl Series {
    /// Joins the outcomes of a job. Returns `None` if nothing was measured.
    pub(super) fn of<'a>(job: &Job, outcomes: impl Iterator<Item = &'a Outcome>) -> Option<Self> {
        let outcomes: Vec<&Outcome> = outcomes.filter(|outcome| outcome.has_samples()).collect();
        let rounds = micros(&outcomes, |outcome| &outcome.latencies);
        let params = job.params();
        let row = Row { cost: cost(&outcomes), ..row(&job.name, &params, &rounds, &outcomes)? };
        let of = |part: &str, pick: fn(&Outcome) -> &Vec<u64>| {
            let samples = micros(&outcomes, pick).concat();
            Row::latencies(&format!("{}.{part}", job.name), &params, samples, 0)
        };
        let more = [of("lateness", |outcome| &outcome.lateness), of("from_tick", |outcome| &outcome.from_tick)];
        let references = References { late: more[0].p99, tick: more[1].p99, ..References::default() };
        let more = more.into_iter().filter(|row| row.n > 0).collect();
        Some(Self {
            name: job.name.clone(),
            subject: job.subject,
            case: job.case.clone(),
            rounds,
            row: Row { references, ..row },
            more,
        })
    }

    pub(super) fn p50(&self) -> f64 {
        self.row.p50.unwrap_or(f64::NAN)
    }

    pub(super) fn p99(&self) -> f64 {
        self.row.p99.unwrap_or(f64::NAN)
    }

    pub(super) fn sd(&self) -> f64 {
        self.row.sd.unwrap_or(f64::NAN)
    }
}

fn micros(outcomes: &[&Outcome], pick: fn(&Outcome) -> &Vec<u64>) -> Vec<Vec<f64>> {
    let of_round = |outcome: &&Outcome| pick(outcome).iter().map(|nanos| *nanos as f64 / 1000.0).collect();
    outcomes.iter().map(of_round).collect()
}

fn row(name: &str, params: &Value, rounds: &[Vec<f64>], outcomes: &[&Outcome]) -> Option<Row> {
    let lost = outcomes.iter().map(|outcome| outcome.lost).sum();
    if rounds.iter().any(|round| !round.is_empty()) {
        return Some(Row::latencies(name, params, rounds.concat(), lost));
    }
    let summaries: Vec<SummaryUs> = outcomes.iter().filter_map(|outcome| outcome.summary).collect();
    let median = |pick: fn(&SummaryUs) -> f64| percentile(&mut summaries.iter().map(pick).collect::<Vec<_>>(), 500);
    Some(Row {
        n: summaries.iter().map(|summary| summary.n).sum(),
        lost: Some(lost),
        min: summaries.iter().map(|summary| summary.min).reduce(f64::min),
        p50: Some(median(|summary| summary.p50)?),
        p99: median(|summary| summary.p99),
        max: summaries.iter().map(|summary| summary.max).reduce(f64::max),
        ..Row::empty(name, params, "us")
    })
}

fn cost(outcomes: &[&Outcome]) -> Option<Cost> {
    let counts = outcomes.iter().filter_map(|outcome| outcome.cost).reduce(Counts::and)?;
    let each = |sum: Option<u64>| sum.map(|sum| sum as f64 / counts.messages.max(1) as f64);
    Some(Cost {
        page_faults: counts.page_faults,
        switches_voluntary: counts.switches_voluntary,
        switches_involuntary: counts.switches_involuntary,
        allocations: each(counts.allocations),
        allocated_octets: each(counts.allocated_octets),
        copied: counts.copied,
    })
}

/// All measured cases.
pub(super) struct AllSeries(pub(super) Vec<Series>);

impl AllSeries {
    /// Returns Viaduct's series of a case.
    pub(super) fn ours(&self, case: &Case) -> Option<&Series> {
        self.find(Subject::Bus, case)
    }

    /// Returns the empty hand-off with the same placement, with a producer if the case has one. Returns `None` for a
    /// case of another rate, under load or with several subscribers, because the hand-off is not a floor of those.
    pub(super) fn futex(&self, case: &Case) -> Option<&Series> {
        let fill = if case.has_producer() { Fill::Loan } else { Fill::Copy };
        let floor = Case { cores: case.cores, policy: case.policy, fill, ..Case::base(case.size, case.rate_hz) };
        let plain = case.load == Load::None && case.subscribers == 1;
        self.find(Subject::Futex, &floor).filter(|_| plain)
    }

    /// Returns the empty hand-off with the same placement, without a producer.
    pub(super) fn bare_futex(&self, case: &Case) -> Option<&Series> {
        self.futex(&Case { fill: Fill::Copy, ..case.clone() })
    }

    /// Returns the copies of that size within the caches.
    pub(super) fn memcpy(&self, size: usize) -> Option<&Series> {
        self.0.iter().find(|series| series.subject == Subject::MemcpyHot && series.case.size == size)
    }

    pub(super) fn rivals(&self) -> impl Iterator<Item = &Series> {
        self.0.iter().filter(|series| matches!(series.subject, Subject::Rival(_)))
    }

    fn find(&self, subject: Subject, case: &Case) -> Option<&Series> {
        self.0.iter().find(|series| series.subject == subject && series.case == *case)
    }
}

/// Returns the parameters of a row, with version and mode of a competitor.
pub(super) fn params(case: &Case, rival: Option<(&str, &str)>) -> Value {
    let mut params = case.params();
    if let Some((version, how)) = rival {
        params["version"] = json!(version);
        params["how"] = json!(how);
    }
    params
}

/// Returns the summary of all rounds.
pub(super) fn summary(rounds: &[Vec<f64>]) -> Option<Summary> {
    Summary::of(&rounds.concat())
}
