//! The formats of the benchmarking suite of `mqtt_client` (ika-rwth-aachen/ros-v2x-benchmarking-suite): `NAME_timestamps.csv` and
//! `NAME_metrics.json`, so that scripts which evaluate its experiments read those of Viaduct.
//!
//! Latencies are in seconds. Those of ways between machines are the differences of the stamps, which contain the offset of the clocks; the
//! suite replaces them in its evaluation by half of what the total has more than the other stages.

use serde_json::{Value, json};

use crate::figures::path::{Path, Trace};
use crate::figures::window::{Statistics, Window};

/// The suite's names of the twelve points of its path.
const POINTS: [&str; 12] = [
    "/benchmarking_suite/timestamps/pointcloud",
    "/benchmarking_suite/timestamps/mqtt_interface_vehicle/pointcloud/in",
    "/benchmarking_suite/timestamps/mqtt_interface_vehicle/pointcloud/out",
    "/benchmarking_suite/timestamps/mqtt_interface_cloud/pointcloud/in",
    "/benchmarking_suite/timestamps/mqtt_interface_cloud/pointcloud/out",
    "/benchmarking_suite/timestamps/object_detection/pointcloud",
    "/benchmarking_suite/timestamps/object_detection/object_list",
    "/benchmarking_suite/timestamps/mqtt_interface_cloud/object_list/in",
    "/benchmarking_suite/timestamps/mqtt_interface_cloud/object_list/out",
    "/benchmarking_suite/timestamps/mqtt_interface_vehicle/object_list/in",
    "/benchmarking_suite/timestamps/mqtt_interface_vehicle/object_list/out",
    "/benchmarking_suite/timestamps/object_list",
];

/// Name of the last of the default stages, which have the suite's names.
const LAST_STAGE: &str = "interface_to_benchmark";

/// Returns the first line of the file of time stamps: the names of the points.
pub(super) fn header(path: &Path) -> String {
    let is_default = path.stages().len() == 11 && path.stages().last().is_some_and(|stage| stage.name == LAST_STAGE);
    if is_default {
        return POINTS.join(",");
    }
    path.points().map(|point| point.to_string().replace(' ', "/")).collect::<Vec<_>>().join(",")
}

/// Returns the line of a message: the time of each point in seconds of UTC since 1970.
pub(super) fn row(trace: &Trace) -> String {
    let seconds = |nanos: i64| format!("{}.{:09}", nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    trace.stamps().iter().map(|stamp| seconds(stamp.at.unix_nanos())).collect::<Vec<_>>().join(",")
}

/// Returns the metrics over a window whose latest message is `latest`. After the keys of the suite follow `stages`, the names of the
/// stages, and the percentiles.
pub(super) fn metrics(path: &Path, window: &Window, latest: &Trace) -> String {
    let stages: Vec<_> = (0..path.stages().len()).filter_map(|stage| window.differences(stage)).collect();
    let total = window.totals().unwrap_or_default();
    let each = |of: fn(&Statistics) -> f64| -> Vec<f64> { stages.iter().map(|stage| of(stage) / 1e3).collect() };
    let names: Vec<&str> = path.stages().iter().map(|stage| stage.name.as_str()).collect();
    let metrics: Value = json!({
        "total_latency": latest.total_ms() / 1e3,
        "latencies": latest.differences_ms().map(|ms| ms / 1e3).collect::<Vec<_>>(),
        "metrics_window": window.len(),
        "total_latency_mean": total.mean_ms / 1e3,
        "latency_means": each(|stage| stage.mean_ms),
        "total_latency_median": total.median_ms / 1e3,
        "latency_medians": each(|stage| stage.median_ms),
        "total_latency_std": total.sd_ms / 1e3,
        "latency_stds": each(|stage| stage.sd_ms),
        "total_latency_min": total.min_ms / 1e3,
        "latency_mins": each(|stage| stage.min_ms),
        "total_latency_max": total.max_ms / 1e3,
        "latency_maxs": each(|stage| stage.max_ms),
        "stages": names,
        "total_latency_p95": total.p95_ms / 1e3,
        "latency_p95s": each(|stage| stage.p95_ms),
        "total_latency_p99": total.p99_ms / 1e3,
        "latency_p99s": each(|stage| stage.p99_ms),
    });
    format!("{metrics:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::path::tests::{PAPER_US, stamps};
    use crate::figures::path::{Offloading, Point, Stage};
    use viaduct_bus::ClockState;

    fn path() -> Path {
        let (source, vehicle, cloud) = ("velodyne", "uplink", "bridge");
        Path::offloading(Offloading { source, vehicle, cloud, function: "detector", reader: "figures" })
    }

    #[test]
    fn the_files_have_the_keys_and_units_of_the_suite() {
        let path = path();
        let trace = path.trace(&stamps(PAPER_US, 3_000_000, ClockState::Unknown)).unwrap();
        let mut window = Window::new(600);
        window.push(&trace);
        let found: Value = serde_json::from_str(&metrics(&path, &window, &trace)).unwrap();
        let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-9;
        assert!(near(&found["total_latency_mean"], 0.0861) && near(&found["latency_means"][5], 0.0434), "{found}");
        assert!(near(&found["latencies"][2], 3.019) && near(&found["latencies"][8], -2.981), "with the clock offset");
        assert_eq!((found["metrics_window"].as_u64(), found["stages"][5].as_str()), (Some(1), Some("detection")));
        for (total, of_stages) in
            [("mean", "means"), ("median", "medians"), ("std", "stds"), ("min", "mins"), ("max", "maxs")]
        {
            assert!(found[format!("total_latency_{total}")].is_number());
            assert_eq!(found[format!("latency_{of_stages}")].as_array().unwrap().len(), 11);
        }
        assert_eq!(header(&path).split(',').count(), 12);
        assert!(header(&path).starts_with("/benchmarking_suite/timestamps/pointcloud,"));
        let row = row(&trace);
        let times: Vec<f64> = row.split(',').map(|time| time.parse().unwrap()).collect();
        assert!(
            (times[11] - times[0] - 0.0861).abs() < 1e-6
                && row.split(',').all(|time| time.split_once('.').unwrap().1.len() == 9)
        );
    }

    #[test]
    fn other_paths_have_the_names_of_their_points() {
        let stage = Stage { name: "detection".to_owned(), to: Point::parse("detector published").unwrap() };
        let path = Path::new(Point::parse("detector taken").unwrap(), vec![stage]);
        assert_eq!(header(&path), "detector/taken,detector/published");
    }
}
