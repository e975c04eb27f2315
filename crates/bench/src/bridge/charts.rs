//! Distributions, as Figures 4 and 5 of the paper.

use super::case::{Answer, Cell, Kind, Link, Method, Setup};
use super::figures::{Figures, plain};
use super::outcome::Outcome;
use crate::report::{Chart, Line};
use crate::statistics::distribution;

/// Number of points of a curve, without its tail.
const POINTS: usize = 300;
/// Class of the curve of a chart that stands out.
const OURS: &str = "ours";
/// Class of curves that have a colour of their own.
const OTHER: &str = "rival";

pub(super) fn charts(figures: &Figures) -> Vec<Chart> {
    let mut charts = Vec::new();
    for link in [Link::Host, Link::FiveG] {
        for kind in [Kind::Scan, Kind::Cloud] {
            let title = format!("Round trip (Figure 4), {}, {}", kind.name(), link.name());
            let wanted = |cell: &Cell| {
                !cell.setup.method.is_use_case()
                    && cell.setup.link == link
                    && cell.load.kind == kind
                    && cell.load.percent == 100
                    && cell.setup.qos == 0
            };
            charts.push(chart(figures, title, wanted, Cell::method_label, |outcome| &outcome.round_trip));
        }
    }
    let use_case = |cell: &Cell| cell.setup.method.is_use_case() && cell.load.percent == 100 && cell.setup.qos == 0;
    let path = |cell: &Cell| {
        let Cell { setup: Setup { method, link, .. }, load, .. } = cell;
        let place = if *method == Method::UseCase { link.name() } else { "in-vehicle" };
        let name = format!("{}, {place}", load.kind.name());
        if cell.setup == plain(*method, *link) { name } else { format!("{name}, {}", cell.method_label()) }
    };
    charts.push(chart(figures, "Use case, total (Figure 4)".to_owned(), use_case, path, |outcome| &outcome.round_trip));
    let one_way =
        |cell: &Cell| cell.setup.method == Method::Ros1 && cell.setup.qos == 0 && cell.load.kind == Kind::Scan;
    let of_links = |cell: &Cell| one_way(cell) && matches!(cell.load.percent, 0 | 100);
    let name = |cell: &Cell| format!("{}, {} %", cell.setup.link.name(), cell.load.percent);
    charts.push(chart(figures, "One way (Figure 5), scan".to_owned(), of_links, name, |outcome| &outcome.one_way));
    charts.retain(|chart| !chart.lines.is_empty());
    charts
}

fn chart(
    figures: &Figures,
    title: String,
    wanted: impl Fn(&Cell) -> bool,
    name: impl Fn(&Cell) -> String,
    samples: fn(&Outcome) -> &Vec<u64>,
) -> Chart {
    let line = |(cell, outcome): &(Cell, Outcome)| {
        let micros: Vec<f64> = samples(outcome).iter().map(|nanos| *nanos as f64 / 1e3).collect();
        let is_shown = cell.load.answer == Answer::List && wanted(cell) && !micros.is_empty();
        is_shown.then(|| Line { name: name(cell), kind: kind(cell).to_owned(), points: distribution(&micros, POINTS) })
    };
    let mut lines: Vec<Line> = figures.measured().filter_map(line).collect();
    // Curves of one colour could not be told apart.
    for variant in lines.iter_mut().filter(|line| line.kind == OURS).skip(1) {
        variant.kind = OTHER.to_owned();
    }
    Chart { title, unit: "us".to_owned(), lines }
}

/// Returns the class of a curve.
fn kind(cell: &Cell) -> &'static str {
    match cell.setup.method {
        Method::Ros1 => OURS,
        Method::UseCase if cell.setup == plain(Method::UseCase, Link::FiveG) && cell.load.kind == Kind::Scan => OURS,
        method if method.is_floor() => "floor",
        _ => OTHER,
    }
}
