//! Targets of the stations' latencies, and whether this run met them.

use super::station_to_station;
use crate::report::{Report, Row, Section, figure};

/// Target for decoding a CAM from UPER to JSON on one core, p50 in microseconds.
const DECODE_P50_US: f64 = 3.0;

/// Targets from one application to another, including MQTT on loopback: p50 and p99 in microseconds.
const STATION_TO_STATION_US: (f64, f64) = (500.0, 2000.0);

/// A target: a figure of a row and its maximum.
struct Bound {
    what: String,
    /// Measured figure, or `None` if the row has no samples.
    reached: Option<f64>,
    limit: f64,
    /// Number of lost messages.
    lost: u64,
}

impl Bound {
    /// Returns the table row. A target with lost messages is not met, whatever the latency of the others.
    fn cells(&self) -> Vec<String> {
        let is_met = self.lost == 0 && self.reached.is_some_and(|reached| reached <= self.limit);
        let verdict = match (is_met, self.lost) {
            (true, _) => "met".to_owned(),
            (false, 0) => "NOT MET".to_owned(),
            (false, lost) => format!("NOT MET, {lost} lost"),
        };
        let limit = format!("at most {}", figure(Some(self.limit)));
        vec![self.what.clone(), verdict, limit, figure(self.reached), "us".to_owned()]
    }
}

pub(super) fn section(rows: &[Row]) -> Section {
    let bounds = rows.iter().flat_map(of_row);
    Section {
        title: "Bounds".to_owned(),
        columns: ["bound", "verdict", "limit", "reached", "unit"].map(str::to_owned).to_vec(),
        words: 3,
        rows: bounds.map(|bound| bound.cells()).collect(),
        about:
            "all from this run; decoding of a recorded CAM on one core; station to station: two nodes on this machine, from one \
                application's MQTT client to the other's, with UDP multicast between them"
                .to_owned(),
    }
}

fn of_row(row: &Row) -> Vec<Bound> {
    let lost = row.lost.unwrap_or_default();
    let param = |name: &str| row.params.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    match row.name.as_str() {
        "viaduct.uper_to_json" if (param("of"), param("what")) == ("vectors", "cam") => {
            let what = "a CAM from UPER to JSON: p50".to_owned();
            vec![Bound { what, reached: row.p50, limit: DECODE_P50_US, lost }]
        }
        station_to_station::ROW => {
            let (p50, p99) = STATION_TO_STATION_US;
            let rate = row.params.get("rate_hz").and_then(serde_json::Value::as_u64).unwrap_or_default();
            let (dialect, cores) = (param("dialect"), param("cores"));
            let what = |figure: &str| format!("station to station, {dialect}, {rate} Hz, cores {cores}: {figure}");
            vec![
                Bound { what: what("p50"), reached: row.p50, limit: p50, lost },
                Bound { what: what("p99"), reached: row.p99, limit: p99, lost },
            ]
        }
        _ => Vec::new(),
    }
}

impl Report {
    /// Returns the report with its targets as an additional section.
    pub(super) fn with_bounds(mut self) -> Self {
        self.sections.push(section(&self.rows));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn judges_each_bound_by_its_row() {
        let params = json!({ "dialect": "viaduct" });
        let good = Row::latencies(station_to_station::ROW, &params, vec![300.0, 400.0, 500.0], 0);
        let slow = Row::latencies("viaduct.uper_to_json", &json!({ "of": "vectors", "what": "cam" }), vec![3.1], 0);
        let none = Row::latencies(station_to_station::ROW, &params, vec![], 7);
        let other =
            Row::latencies("viaduct.uper_to_json", &json!({ "of": "vectors", "what": "denm_full" }), vec![9.0], 0);
        let gaps = Row::latencies(station_to_station::ROW, &params, vec![300.0], 1);
        let section = section(&[good, slow, none, other, gaps]);
        let verdicts: Vec<&str> = section.rows.iter().map(|cells| cells[1].as_str()).collect();
        let (none, gaps) = ("NOT MET, 7 lost", "NOT MET, 1 lost");
        assert_eq!(verdicts, ["met", "met", "NOT MET", none, none, gaps, gaps]);
    }
}
