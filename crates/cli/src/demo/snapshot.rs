//! Values of a node's components, by name.

use viaduct_bus::BusSnapshot;

/// Returns the value of a counter, or 0 if the component has none of that name and reason.
pub(super) fn counter(node: &BusSnapshot, component: &str, name: &str, reason: Option<&str>) -> u64 {
    let mut counters = node.counters.iter();
    counters
        .find(|row| row.component == component && row.name == name && row.reason.as_deref() == reason)
        .map_or(0, |row| row.value)
}

/// Returns the value of a gauge, or `None` if it is not known.
pub(super) fn gauge(node: &BusSnapshot, component: &str, name: &str, part: Option<&str>) -> Option<f64> {
    let mut gauges = node.gauges.iter();
    gauges
        .find(|row| row.component == component && row.name == name && row.part.as_deref() == part)
        .map(|row| row.value)
}

/// Returns the non-zero values of a counter by reason.
pub(super) fn reasons(node: &BusSnapshot, component: &str, name: &str) -> Vec<(String, u64)> {
    let rows = node.counters.iter().filter(|row| row.component == component && row.name == name && row.value > 0);
    rows.filter_map(|row| Some((row.reason.clone()?, row.value))).collect()
}
