//! What is asked of the stations, and whether this run has it.

use super::station_to_station;
use crate::report::{Report, Row, Section, figure};

/// A CAM from its octets to JSON, on one core: microseconds.
const DECODE_P50_US: f64 = 3.0;

/// From one application to another, MQTT on loopback included: microseconds.
const STATION_TO_STATION_US: (f64, f64) = (500.0, 2000.0);

/// One promise: a figure of a row and what it may be at most.
struct Bound {
    what: String,
    /// `None` where the row has no samples.
    reached: Option<f64>,
    limit: f64,
    /// What did not arrive.
    lost: u64,
}

impl Bound {
    /// What did not arrive does not hold, whatever the rest took.
    fn cells(&self) -> Vec<String> {
        let holds = self.lost == 0 && self.reached.is_some_and(|reached| reached <= self.limit);
        let verdict = match (holds, self.lost) {
            (true, _) => "holds".to_owned(),
            (false, 0) => "DOES NOT HOLD".to_owned(),
            (false, lost) => format!("DOES NOT HOLD, {lost} lost"),
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
            "all of this run; decoding on one core, of the CAM that vehicles sent; station to station: two nodes, from \
                one application's MQTT client to the other's, UDP multicast in between, all on this machine"
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
    /// With the bounds of its rows as a section.
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
    fn each_bound_is_judged_by_its_row() {
        let params = json!({ "dialect": "viaduct" });
        let good = Row::latencies(station_to_station::ROW, &params, vec![300.0, 400.0, 500.0], 0);
        let slow = Row::latencies("viaduct.uper_to_json", &json!({ "of": "vectors", "what": "cam" }), vec![3.1], 0);
        let none = Row::latencies(station_to_station::ROW, &params, vec![], 7);
        let other =
            Row::latencies("viaduct.uper_to_json", &json!({ "of": "vectors", "what": "denm_full" }), vec![9.0], 0);
        let gaps = Row::latencies(station_to_station::ROW, &params, vec![300.0], 1);
        let section = section(&[good, slow, none, other, gaps]);
        let verdicts: Vec<&str> = section.rows.iter().map(|cells| cells[1].as_str()).collect();
        let (none, gaps) = ("DOES NOT HOLD, 7 lost", "DOES NOT HOLD, 1 lost");
        assert_eq!(verdicts, ["holds", "holds", "DOES NOT HOLD", none, none, gaps, gaps]);
    }
}
