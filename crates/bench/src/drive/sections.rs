//! The tables of the report.

use viaduct_netem::Profile;

use super::cell::Cell;
use super::job::Transport;
use super::outcome::{Outcome, milliseconds};
use super::tables::{self, Published};
use super::{FRAME_OCTETS, RATE_HZ, floor};
use crate::report::{Section, figure};
use crate::statistics::Summary;

type Measured<'a> = [(Cell, &'a Outcome)];

/// Returns the tables of the frames, of the driver and of the bounds.
pub(super) fn sections(outcomes: &Measured<'_>) -> Vec<Section> {
    let published = tables::published();
    let frames = |(cell, outcome): &&(Cell, &Outcome)| !cell.subject.pictures && outcome.refused.is_none();
    let mut frames: Vec<_> = outcomes.iter().filter(frames).copied().collect();
    frames.sort_by_key(|(cell, _)| (cell.cameras, cell.link));
    let groups = frames.chunk_by(|one, two| (one.0.cameras, one.0.link) == (two.0.cameras, two.0.link));
    let mut sections: Vec<Section> = groups.map(|group| overview(group, &published)).collect();
    for cameras in 1..=4 {
        let of_network = |network: &str| of_network(&frames, &published, network, cameras);
        sections.extend(["stable", "lossy"].map(of_network));
    }
    sections.extend([driver(outcomes), bounds(outcomes)]);
    sections.retain(|section| !section.rows.is_empty());
    sections
}

fn words(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the systems over one link with one number of cameras.
fn overview(group: &Measured<'_>, published: &[Published]) -> Section {
    let mut rows: Vec<Vec<String>> =
        group.iter().map(|(cell, outcome)| overview_cells(cell, outcome, published)).collect();
    rows.extend(group.first().and_then(|(cell, _)| floor_cells(cell)));
    let title = group.first().map_or_else(String::new, |(cell, _)| {
        let cameras = if cell.cameras == 1 { "camera" } else { "cameras" };
        format!("{} {cameras}, {}: frames of {FRAME_OCTETS} octets at {RATE_HZ} Hz, ms", cell.cameras, cell.link)
    });
    Section {
        title,
        columns: words(&["row", "n", "lost", "mean", "p99", "max", "/floor", "paper", "/paper", "sent"]),
        words: 1,
        rows,
        about: "/floor: mean over the floor; paper: mean of the paper's case; sent: octets sent over octets needed"
            .to_owned(),
    }
}

fn overview_cells(cell: &Cell, outcome: &Outcome, published: &[Published]) -> Vec<String> {
    let summary = Summary::of(&milliseconds(&outcome.cameras.concat()));
    let pick = |pick: fn(&Summary) -> f64| summary.as_ref().map(pick);
    let mean = pick(|summary| summary.mean);
    let (sent, lost) = outcome.totals();
    let paper = tables::network(cell.link)
        .and_then(|network| tables::mean_ms(published, network, cell.cameras, paper_case(cell)?));
    let ratio = |other: Option<f64>| mean.zip(other).map(|(mean, other)| mean / other);
    vec![
        cell.subject.label(),
        sent.to_string(),
        lost.to_string(),
        figure(mean),
        figure(pick(|summary| summary.p99)),
        figure(pick(|summary| summary.max)),
        figure(ratio(floor::cameras_ms(cell.link, cell.cameras))),
        figure(paper),
        paper_ratio(ratio(paper)),
        outcome.sent_per_needed().map(|ratio| format!("{ratio:.3}")).unwrap_or_default(),
    ]
}

fn floor_cells(cell: &Cell) -> Option<Vec<String>> {
    let floor = floor::cameras_ms(cell.link, cell.cameras)?;
    let mut cells = vec!["floor.frame".to_owned(), String::new(), String::new(), figure(Some(floor))];
    cells.resize(10, String::new());
    Some(cells)
}

fn paper_ratio(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio) if ratio < 0.1 => format!("{ratio:.4}"),
        other => figure(other),
    }
}

/// Returns the case of the paper that a system is compared with.
fn paper_case(cell: &Cell) -> Option<u8> {
    match (cell.subject.transport, cell.subject.variant) {
        (Transport::BestEffort, _) => Some(4),
        (Transport::Cyclonedds, Some(case)) => Some(case.parse().unwrap_or(1)),
        _ => Some(1),
    }
}

/// Returns the cells of the paper for a network and a number of cameras, with the measured ones of the corresponding links.
fn of_network(outcomes: &Measured<'_>, published: &[Published], network: &str, cameras: u8) -> Section {
    let measured = outcomes
        .iter()
        .filter(|(cell, _)| tables::network(cell.link) == Some(network) && cell.cameras == cameras)
        .flat_map(|(cell, outcome)| (0..usize::from(cameras)).map(|camera| camera_cells(cell, outcome, camera)));
    let mut rows: Vec<Vec<String>> = measured.collect();
    if !rows.is_empty() {
        let printed = published.iter().filter(|cell| cell.network == network && cell.cameras == cameras);
        rows.splice(0..0, by_case(printed));
    }
    let table = if network == "stable" { 4 } else { 5 };
    Section {
        title: format!("Table {table} of the paper ({network} network) and this run, cameras: {cameras}, ms"),
        columns: words(&["row", "camera", "mean", "max", "min", "sd", "n", "lost", "lost %"]),
        words: 1,
        rows,
        about:
            "cases of the paper: 1 Reliable, KeepLast 10; 2 Reliable, KeepLast 1; 3 Reliable, KeepAll; 4 BestEffort, \
                KeepLast 1; ?: not legible"
                .to_owned(),
    }
}

fn by_case<'a>(printed: impl Iterator<Item = &'a Published>) -> Vec<Vec<String>> {
    let mut printed: Vec<&Published> = printed.collect();
    printed.sort_by_key(|cell| (cell.case, cell.camera));
    printed.into_iter().map(published_cells).collect()
}

fn published_cells(cell: &Published) -> Vec<String> {
    let share = cell.lost.map(|lost| lost as f64 / cell.samples as f64);
    let mut cells = vec![format!("paper case {}", cell.case), cell.camera.to_string()];
    cells.extend([cell.mean_ms, cell.max_ms, cell.min_ms, cell.sd_ms].map(|value| figure(Some(value))));
    cells.push(cell.samples.to_string());
    cells.push(cell.lost.map_or_else(|| "?".to_owned(), |lost| lost.to_string()));
    cells.push(percent(share));
    cells
}

fn camera_cells(cell: &Cell, outcome: &Outcome, camera: usize) -> Vec<String> {
    let latencies = outcome.cameras.get(camera).map(Vec::as_slice).unwrap_or_default();
    let summary = Summary::of(&milliseconds(latencies));
    let pick = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
    let lost = outcome.lost(camera);
    vec![
        format!("{}, {}", cell.subject.label(), cell.link),
        (camera + 1).to_string(),
        pick(|summary| summary.mean),
        pick(|summary| summary.max),
        pick(|summary| summary.min),
        pick(|summary| summary.sd),
        outcome.sent.to_string(),
        lost.to_string(),
        percent((outcome.sent > 0).then(|| lost as f64 / outcome.sent as f64)),
    ]
}

fn percent(share: Option<f64>) -> String {
    share.map(|share| format!("{:.2}", share * 100.0)).unwrap_or_default()
}

/// Returns the latencies that a driver has: of commands, and from the camera to the page.
fn driver(outcomes: &Measured<'_>) -> Section {
    let mut rows = Vec::new();
    for (cell, outcome) in outcomes {
        let series = [
            ("viaduct.command_age", &outcome.command_ages, !cell.subject.pictures),
            ("viaduct.glass_to_glass", &outcome.glass, cell.subject.pictures),
        ];
        for (name, nanos, wanted) in series {
            let Some(summary) = Summary::of(&milliseconds(nanos)).filter(|_| wanted) else { continue };
            let mut cells = vec![name.to_owned(), cell.link.name().to_owned(), cell.cameras.to_string()];
            cells.push(summary.n.to_string());
            let figures = [summary.mean, summary.p50, summary.p99, summary.p999, summary.max];
            cells.extend(figures.map(|value| figure(Some(value))));
            rows.push(cells);
        }
    }
    Section {
        title: "Commands and pictures of the driver, ms".to_owned(),
        columns: words(&["row", "link", "cameras", "n", "mean", "p50", "p99", "p99.9", "max"]),
        words: 2,
        rows,
        about: "command_age: age of a command when the vehicle accepts it, 50 commands per second while the cameras send; \
                glass_to_glass: from the mark in a picture of a synthetic camera until the picture is decoded behind the desk's \
                WebSocket, without the screen"
            .to_owned(),
    }
}

/// Returns the targets and what this run has reached.
fn bounds(outcomes: &Measured<'_>) -> Section {
    let mut rows = Vec::new();
    for (cell, outcome) in outcomes.iter().filter(|(cell, outcome)| cell.cameras == 4 && outcome.refused.is_none()) {
        rows.extend(bounds_of(cell, outcome));
    }
    Section {
        title: "Bounds, 4 cameras".to_owned(),
        columns: words(&["bound", "link", "target", "reached", "met"]),
        words: 2,
        rows,
        about: "a run with few frames says little about bounds that are near: `--full` has 10,000 frames".to_owned(),
    }
}

fn bounds_of(cell: &Cell, outcome: &Outcome) -> Vec<Vec<String>> {
    let (sent, lost) = outcome.totals();
    let share = if sent > 0 { lost as f64 / sent as f64 * 100.0 } else { 0.0 };
    let mut rows = Vec::new();
    let mut bound = |what: &str, target: &str, reached: String, met: bool| {
        let met = if met { "yes" } else { "NO" };
        rows.push(vec![what.to_owned(), cell.link.name().to_owned(), target.to_owned(), reached, met.to_owned()]);
    };
    match cell.subject.transport {
        Transport::BestEffort if cell.link == Profile::Lossy03 => {
            let reached = format!("{share:.1} %");
            bound("best_effort loses as in the paper", "42 to 58 %", reached, (42.0..=58.0).contains(&share));
        }
        Transport::Viaduct if !cell.subject.pictures => {
            let summary = Summary::of(&milliseconds(&outcome.cameras.concat()));
            bound("frames lost", "0", format!("{lost} of {sent}"), lost == 0);
            if let (Some(summary), Profile::Lossy03 | Profile::Lossy5) = (summary, cell.link) {
                bound("mean", "at most 12 ms", figure(Some(summary.mean)), summary.mean <= 12.0);
                bound("p99", "at most 25 ms", figure(Some(summary.p99)), summary.p99 <= 25.0);
            }
            let most = if cell.link == Profile::Lossy03 { 1.05 } else { 1.12 };
            let ratio = outcome.sent_per_needed().filter(|_| matches!(cell.link, Profile::Lossy03 | Profile::Lossy5));
            if let Some(ratio) = ratio {
                bound("sent/needed", &format!("at most {most}"), format!("{ratio:.3}"), ratio <= most);
            }
            if let Some(ages) = Summary::of(&milliseconds(&outcome.command_ages)) {
                let delay_ms = cell.link.config().b_to_a.delay.base.as_secs_f64() * 1e3;
                let most = 50.0 + delay_ms;
                bound("command age, p99.9", &format!("below {most:.2} ms"), figure(Some(ages.p999)), ages.p999 < most);
            }
        }
        _ => {}
    }
    rows
}
