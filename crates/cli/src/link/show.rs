//! Text of `viaduct link show`.

use std::fmt::Write as _;

use serde_json::Value;
use viaduct_components::link::DirectionReport;
use viaduct_netem::LinkConfig;

use super::control::Status;
use crate::table::{number, table};

/// Returns the status of a link as text.
pub(super) fn text(status: &Status) -> anyhow::Result<String> {
    let Status { name, profile, seed, mtu, process_id, uptime_s, a, b, directions } = status;
    let mut text =
        format!("link {name}: {profile}, seed {seed}, MTU {mtu}, process {process_id}, up for {uptime_s:.0} s\n");
    for (end, status) in [("a", a), ("b", b)] {
        let _ = writeln!(text, "{end}: {} in the network namespace {}", status.address, status.namespace);
    }
    let both = [&directions.a_to_b, &directions.b_to_a];
    let mut rows = table(["packets", "a to b", "b to a"]);
    for (name, values) in counts(both) {
        rows.add_row([name.into(), number(values[0]), number(values[1])]);
    }
    let _ = write!(text, "\n{}\n\n", rows.trim_fmt());
    let mut rows = table(["lateness in us", "a to b", "b to a"]);
    let lateness = both.map(|direction| direction.lateness);
    for (name, values) in [
        ("p50", lateness.map(|lateness| lateness.p50_us)),
        ("p99", lateness.map(|lateness| lateness.p99_us)),
        ("max", lateness.map(|lateness| lateness.max_us)),
    ] {
        rows.add_row([name.into(), number(format!("{:.0}", values[0])), number(format!("{:.0}", values[1]))]);
    }
    let _ = write!(text, "{}\n\n", rows.trim_fmt());
    let [there, back] = both.map(|direction| settings(&direction.settings));
    let (there, back) = (there?, back?);
    if there == back {
        let _ = write!(text, "settings: {there}");
    } else {
        let _ = write!(text, "settings a to b: {there}\nsettings b to a: {back}");
    }
    Ok(text)
}

/// Returns the counters of both directions. Drops are included if there are any.
fn counts(both: [&DirectionReport; 2]) -> Vec<(String, [u64; 2])> {
    let mut rows = vec![
        ("received".to_owned(), both.map(|direction| direction.received)),
        ("duplicated".to_owned(), both.map(|direction| direction.duplicated)),
        ("delivered".to_owned(), both.map(|direction| direction.delivered)),
        ("in the link".to_owned(), both.map(|direction| direction.held)),
    ];
    for reason in both[0].dropped.keys() {
        let dropped = both.map(|direction| direction.dropped(reason));
        if dropped != [0, 0] {
            rows.push((format!("dropped: {reason}"), dropped));
        }
    }
    rows
}

/// Returns the settings that differ from those of a perfect link.
fn settings(config: &LinkConfig) -> anyhow::Result<String> {
    let (value, perfect) = (serde_json::to_value(config)?, serde_json::to_value(LinkConfig::default())?);
    let Value::Object(map) = value else { return Ok(value.to_string()) };
    let changed = map.into_iter().filter(|(key, value)| perfect.get(key) != Some(value));
    let changed: Vec<String> = changed.map(|(key, value)| format!("{key}: {value}")).collect();
    Ok(if changed.is_empty() { "a perfect link".to_owned() } else { format!("{{ {} }}", changed.join(", ")) })
}
