//! Targets of the bus, and whether this run met them.

use super::Options;
use super::case::{Case, Fill, Load, Measure, Mode, Reliability};
use super::plan::Capabilities;
use super::series::{AllSeries, Series, summary};
use crate::floor::WARM_UP;
use crate::report::{Section, figure, size_text};
use crate::statistics::ratio_interval;

/// Loan: p50 divided by that of an empty hand-off with the same placement, at most.
const OVER_FUTEX: f64 = 1.6;
/// Loan: p99 divided by p50, at most.
const TAIL: f64 = 4.0;
/// Loan: standard deviation divided by the floor's, and its excess in microseconds, at most.
const DEVIATION: (f64, f64) = (1.5, 1.0);
/// Loan: p50 of the largest size divided by that of the smallest, at most.
const SLOPE: f64 = 1.15;
/// Copy: p50 above that of a hot copy, in microseconds, at most.
const OVER_MEMCPY_US: f64 = 10.0;
/// Allocations per message and their bytes, at most: small ones that do not depend on the payload.
const ALLOCATIONS: f64 = 4.0;
const ALLOCATED_BYTES: f64 = 4096.0;
/// p99 of a disturbed row divided by that of the base, at most.
const DISTURBED: f64 = 2.0;

/// Ratio of a competitor to Viaduct at p50 and p99, at least, with the base's size, threads and cores.
const RIVALS: [(&str, f64, Option<f64>); 10] = [
    ("ros1.nodelet", 10.0, None),
    ("fastcycle.model", 10.0, None),
    ("fastcycle.model_sleep", 10.0, None),
    ("ros1.inter", 100.0, None),
    ("iceoryx2.event", 1.0, Some(1.0)),
    ("crossbeam", 1.0, Some(1.0)),
    ("kanal", 1.0, Some(1.0)),
    ("flume", 1.0, Some(1.0)),
    ("thingbuf", 1.0, Some(1.0)),
    ("tokio_broadcast", 1.0, Some(1.0)),
];

/// One target.
struct Bound {
    what: String,
    reached: f64,
    limit: f64,
    /// `true` if the figure must not exceed the limit, `false` if it must reach it.
    at_most: bool,
    unit: &'static str,
    /// 95 % confidence interval of a ratio.
    interval: Option<(f64, f64)>,
}

impl Bound {
    fn at_most(what: String, reached: f64, limit: f64, unit: &'static str) -> Self {
        Self { what, reached, limit, at_most: true, unit, interval: None }
    }

    fn at_least(what: String, reached: f64, limit: f64) -> Self {
        Self { what, reached, limit, at_most: false, unit: "x", interval: None }
    }

    fn within(self, interval: Option<(f64, f64)>) -> Self {
        Self { interval, ..self }
    }

    fn is_met(&self) -> bool {
        if self.at_most { self.reached <= self.limit } else { self.reached >= self.limit }
    }

    fn cells(&self, real_time: bool) -> Vec<String> {
        let limit = format!("{} {}", if self.at_most { "at most" } else { "at least" }, figure(Some(self.limit)));
        let verdict = match (real_time, self.is_met()) {
            (false, _) => "not judged",
            (true, true) => "met",
            (true, false) => "NOT MET",
        };
        let interval = |(low, high)| format!("{} to {}", figure(Some(low)), figure(Some(high)));
        let interval = self.interval.map(interval).unwrap_or_default();
        vec![self.what.clone(), verdict.to_owned(), limit, figure(Some(self.reached)), interval, self.unit.to_owned()]
    }
}

pub(super) fn section(all: &AllSeries, base: &Case, options: &Options, capabilities: &Capabilities) -> Section {
    let mut bounds = Vec::new();
    for size in &options.sizes {
        bounds.extend(of_size(all, &Case { size: *size, ..base.clone() }, options.seed));
    }
    bounds.extend(slope(all, base, &options.sizes));
    bounds.extend(rivals(all, base, options.seed));
    bounds.extend(nothing_lost(all, base));
    bounds.extend(clean(all));
    bounds.extend(disturbed(all, base));
    Section {
        title: "Bounds".to_owned(),
        columns: ["bound", "verdict", "limit", "reached", "95 %", "unit"].map(str::to_owned).to_vec(),
        words: 3,
        rows: bounds.iter().map(|bound| bound.cells(capabilities.real_time)).collect(),
        about: format!(
            "all from this run: loan, executor thread, {} cores, {} messages per row in {} rounds, each after {} of warm-up; \
             the verdict is that of the figure; 95 % is its confidence interval by bootstrap over the rounds; the limit of the \
             standard deviation is from the futex hand-off with a concurrent producer; rivals are compared with the \
             same fill, loan if they have one",
            if capabilities.real_time { "same" } else { "same, without real-time priority," },
            options.samples,
            options.rounds,
            WARM_UP
        ),
    }
}

fn of_size(all: &AllSeries, loan: &Case, seed: u64) -> Vec<Bound> {
    let size = size_text(loan.size as u64);
    let mut bounds = Vec::new();
    if let Some(ours) = all.ours(loan) {
        bounds.push(Bound::at_most(format!("{size} loan: p99 over p50"), ours.p99() / ours.p50(), TAIL, "x"));
        let over = |futex: &Series, how: &str| {
            let what = format!("{size} loan: p50 over an empty futex hand-off {how}");
            let interval = ratio_interval(&ours.rounds, &futex.rounds, 500, seed);
            Bound::at_most(what, ours.p50() / futex.p50(), OVER_FUTEX, "x").within(interval)
        };
        bounds.extend(all.bare_futex(loan).map(|futex| over(futex, "without a producer")));
        if let Some(futex) = all.futex(loan) {
            bounds.push(over(futex, "with a concurrent producer"));
            let limit = futex.sd() * DEVIATION.0 + DEVIATION.1;
            bounds.push(Bound::at_most(format!("{size} loan: standard deviation"), ours.sd(), limit, "us"));
        }
    }
    let copy = all.ours(&Case { fill: Fill::Copy, ..loan.clone() });
    if let Some((copy, memcpy)) = copy.zip(all.memcpy(loan.size)) {
        let limit = memcpy.p50() + OVER_MEMCPY_US;
        bounds.push(Bound::at_most(format!("{size} copy: p50, against a hot copy + 10 us"), copy.p50(), limit, "us"));
    }
    bounds
}

fn slope(all: &AllSeries, base: &Case, sizes: &[usize]) -> Option<Bound> {
    let (small, large) = (*sizes.iter().min()?, *sizes.iter().max()?);
    let p50 = |size| all.ours(&Case { size, ..base.clone() }).map(Series::p50);
    let what = format!("loan: p50 at {} over that at {}", size_text(large as u64), size_text(small as u64));
    Some(Bound::at_most(what, p50(large)? / p50(small)?, SLOPE, "x"))
}

fn rivals(all: &AllSeries, base: &Case, seed: u64) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (name, p50_limit, p99_limit) in RIVALS {
        let fills = [Fill::Loan, Fill::Copy].map(|fill| Case { fill, ..base.clone() });
        let of = |case: &Case| {
            let same = |rival: &&Series| rival.name == name && Case { mode: case.mode, ..rival.case.clone() } == *case;
            Some((all.rivals().find(same)?, all.ours(case)?))
        };
        let Some((rival, ours)) = fills.iter().find_map(of) else {
            continue;
        };
        let what = |percentile: &str| {
            format!("{} {}: {percentile} of {name} over ours", size_text(base.size as u64), rival.case.fill.label())
        };
        let interval = |thousandths| ratio_interval(&rival.rounds, &ours.rounds, thousandths, seed);
        bounds.push(Bound::at_least(what("p50"), rival.p50() / ours.p50(), p50_limit).within(interval(500)));
        let of_tail = |limit| Bound::at_least(what("p99"), rival.p99() / ours.p99(), limit).within(interval(990));
        bounds.extend(p99_limit.map(of_tail));
    }
    bounds
}

fn nothing_lost(all: &AllSeries, base: &Case) -> Option<Bound> {
    let reliable = all.ours(&Case { reliability: Some(Reliability::ReliableKeepAll), ..base.clone() })?;
    let lost = reliable.row.lost? as f64;
    Some(Bound::at_most("reliable, keep all: messages lost".to_owned(), lost, 0.0, "messages"))
}

/// Adds the targets of the loan path's cost, over all rows with an executor thread and without load.
fn clean(all: &AllSeries) -> Vec<Bound> {
    let loan = |series: &&Series| {
        let Case { measure, mode, fill, load, observer, slow_subscriber, subscribers, .. } = series.case;
        let plain = load == Load::None && !observer && !slow_subscriber && subscribers == 1;
        plain && (measure, mode, fill) == (Measure::OneWay, Mode::Thread, Fill::Loan)
    };
    let rows = || all.0.iter().filter(|series| series.subject == super::Subject::Bus);
    let of_loans = |pick: fn(&Series) -> Option<f64>| rows().filter(loan).filter_map(pick).reduce(f64::max);
    let faults = of_loans(|series| series.row.cost.map(|cost| cost.page_faults as f64));
    let allocations = of_loans(|series| series.row.cost?.allocations);
    let bytes = of_loans(|series| series.row.cost?.allocated_octets);
    let shared = rows().filter(|series| series.case.subscribers == 8);
    let copied = shared.filter_map(|series| Some(series.row.cost?.copied? as f64)).reduce(f64::max);
    let bound = |what: &str, reached: Option<f64>, limit, unit| {
        Some(Bound::at_most(format!("loan, worst row: {what}"), reached?, limit, unit))
    };
    [
        bound("page faults after the warm-up", faults, 0.0, "faults"),
        bound("allocations per message", allocations, ALLOCATIONS, "allocations"),
        bound("bytes allocated per message", bytes, ALLOCATED_BYTES, "bytes"),
        copied.map(|copied| {
            Bound::at_most("eight subscribers: deliveries with a copy".to_owned(), copied, 0.0, "copies")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn disturbed(all: &AllSeries, base: &Case) -> Vec<Bound> {
    let Some(undisturbed) = all.ours(base).and_then(|series| summary(&series.rounds)) else {
        return Vec::new();
    };
    let cases = [
        ("an observer", Case { observer: true, ..base.clone() }),
        ("a slow subscriber", Case { slow_subscriber: true, ..base.clone() }),
        ("CPU hogs", Case { load: Load::Cpu, ..base.clone() }),
        ("a memory hog", Case { load: Load::Memory, ..base.clone() }),
    ];
    let bound = |(with, case): (&str, Case)| {
        let over = all.ours(&case)?.p99() / undisturbed.p99;
        Some(Bound::at_most(format!("with {with}: p99 over that without it"), over, DISTURBED, "x"))
    };
    cases.into_iter().filter_map(bound).collect()
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Outcome;
    use super::super::plan::{Job, Subject};
    use super::*;

    fn series(name: &str, subject: Subject, case: Case, latencies: &[u64]) -> Series {
        let job = Job { name: name.to_owned(), subject, case, samples: latencies.len(), of_rival: None };
        let outcome = Outcome { latencies: latencies.to_vec(), ..Outcome::default() };
        Series::of(&job, [&outcome].into_iter()).unwrap()
    }

    fn verdicts(all: &AllSeries, real_time: bool) -> Vec<String> {
        let options = Options { sizes: vec![1 << 20], ..Options::default() };
        let capabilities = Capabilities { cores: vec![0, 1], real_time };
        section(all, &Case::base(1 << 20, 1000), &options, &capabilities)
            .rows
            .iter()
            .map(|row| row[..2].join(" | "))
            .collect()
    }

    #[test]
    fn bound_holds_up_to_its_limit_only() {
        let base = Case::base(1 << 20, 1000);
        let futex = || series("floor.futex", Subject::Futex, base.clone(), &[2000, 2000]);
        let met = "1 MB loan: p50 over an empty futex hand-off with a concurrent producer | met".to_owned();
        let broken = "1 MB loan: p50 over an empty futex hand-off with a concurrent producer | NOT MET".to_owned();
        let ours = |p50| series("viaduct", Subject::Bus, base.clone(), &[p50, p50]);
        assert!(verdicts(&AllSeries(vec![ours(3200), futex()]), true).contains(&met));
        assert!(verdicts(&AllSeries(vec![ours(3201), futex()]), true).contains(&broken));
        assert!(
            verdicts(&AllSeries(vec![ours(3200), futex()]), false)
                .iter()
                .all(|verdict| verdict.ends_with("| not judged"))
        );
    }

    #[test]
    fn compares_a_rival_by_its_fill_and_skips_missing_rivals() {
        let base = Case::base(1 << 20, 1000);
        let copy = Case { fill: Fill::Copy, ..base.clone() };
        let rival = Case { mode: Mode::Process, ..copy.clone() };
        let all = AllSeries(vec![
            series("viaduct", Subject::Bus, copy, &[60_000]),
            series("ros1.inter", Subject::Rival(0), rival, &[5_999_000]),
        ]);
        let verdicts = verdicts(&all, true);
        assert!(verdicts.contains(&"1 MB copy: p50 of ros1.inter over ours | NOT MET".to_owned()), "{verdicts:?}");
        assert!(!verdicts.iter().any(|verdict| verdict.contains("nodelet")), "{verdicts:?}");
    }
}
