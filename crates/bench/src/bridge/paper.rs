//! Published figures: "Enabling Connectivity for Automated Mobility: A Novel MQTT-based Interface Evaluated in a 5G Case Study on
//! Edge-Cloud Lidar Object Detection" (Reiher et al.). Means of 600 messages at 10 Hz, in ms.

use serde_json::json;

use crate::report::Row;

/// Table I: stage, and its mean with mqtt_client, mqtt_bridge, the overlay network and in the vehicle.
pub(super) const STAGES: [(&str, [Option<f64>; 4]); 12] = [
    ("vehicle_to_interface", [Some(0.2), Some(2.9), None, None]),
    ("vehicle_interface_out", [Some(0.3), Some(4.5), None, None]),
    ("vehicle_to_cloud", [Some(19.0), Some(24.3), Some(19.5), None]),
    ("cloud_interface_in", [Some(0.1), Some(4.9), None, None]),
    ("interface_to_detection", [Some(3.6), Some(2.7), None, Some(3.5)]),
    ("detection", [Some(43.4), Some(43.2), Some(44.2), Some(72.2)]),
    ("detection_to_interface", [Some(0.1), Some(0.7), None, None]),
    ("cloud_interface_out", [Some(0.1), Some(2.3), None, None]),
    ("cloud_to_vehicle", [Some(19.0), Some(24.3), Some(19.5), None]),
    ("vehicle_interface_in", [Some(0.1), Some(6.2), None, None]),
    ("interface_to_benchmark", [Some(0.2), Some(0.7), None, Some(0.2)]),
    ("total", [Some(86.1), Some(116.7), Some(83.2), Some(75.9)]),
];
/// Systems of [`STAGES`].
pub(super) const SYSTEMS: [&str; 4] = ["paper.mqtt_client", "paper.mqtt_bridge", "paper.overlay", "paper.in_vehicle"];

/// Sums of the four crossings of the MQTT interfaces, and of both ways between vehicle and cloud.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) interfaces: f64,
    pub(super) link: f64,
}

const fn sums(interfaces: f64, link: f64) -> Sums {
    Sums { interfaces, link }
}

/// Table II: encryption with mqtt_client.
pub(super) const ENCRYPTION: [(&str, Sums); 2] = [("none", sums(0.6, 38.0)), ("tls", sums(1.0, 39.0))];
/// Table III: quality of service.
pub(super) const QOS: [Sums; 3] = [sums(0.6, 38.0), sums(38.2, 2.2), sums(58.3, 34.8)];
/// Table IV: type and share of the data. 0 % was measured with QoS 1.
pub(super) const SIZES: [(&str, u8, Sums); 6] = [
    ("scan", 0, sums(26.8, 1.8)),
    ("scan", 25, sums(0.3, 34.6)),
    ("scan", 50, sums(0.4, 33.0)),
    ("scan", 75, sums(0.5, 33.0)),
    ("scan", 100, sums(0.6, 38.0)),
    ("cloud", 100, sums(6.1, 140.4)),
];
/// Table IV: means of the object detection, in the order of [`SIZES`].
pub(super) const DETECTION: [f64; 6] = [0.0, 38.9, 40.3, 42.8, 43.4, 47.6];
/// Table V: link and share of the scan; mean, median, minimum, maximum and standard deviation of one way.
pub(super) const ONE_WAY: [(&str, u8, [f64; 5]); 4] = [
    ("5g", 0, [13.6, 12.9, 11.9, 20.2, 1.6]),
    ("5g", 100, [21.9, 22.1, 18.5, 63.0, 2.4]),
    ("ethernet", 0, [0.3, 0.3, 0.2, 1.6, 0.1]),
    ("ethernet", 100, [1.9, 1.9, 1.8, 2.0, 0.0]),
];
/// Highest rate at which the paper's link was stable, in Hz: about 10 MB/s in each direction.
pub(super) const STABLE_HZ: u32 = 55;

/// Messages of an experiment.
const MESSAGES: u64 = 600;

/// Returns the published figures as rows.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (stage, means) in STAGES {
        for (system, mean) in SYSTEMS.iter().zip(means) {
            let params = json!({ "stage": stage, "link": "5g", "kind": "scan", "percent": 100, "source": "Reiher et al., Table I" });
            rows.extend(mean.map(|mean| row(system, &params, mean)));
        }
    }
    for (encryption, sums) in ENCRYPTION {
        rows.extend(of_sums(&json!({ "encryption": encryption, "source": "Reiher et al., Table II" }), sums));
    }
    for (qos, sums) in QOS.iter().enumerate() {
        rows.extend(of_sums(&json!({ "qos": qos, "source": "Reiher et al., Table III" }), *sums));
    }
    for (kind, percent, sums) in SIZES {
        rows.extend(of_sums(&json!({ "kind": kind, "percent": percent, "source": "Reiher et al., Table IV" }), sums));
    }
    for ((kind, percent, _), mean) in SIZES.iter().zip(DETECTION) {
        let params = json!({ "kind": kind, "percent": percent, "source": "Reiher et al., Table IV" });
        rows.push(row("paper.detection", &params, mean));
    }
    for (link, percent, [mean, p50, min, max, sd]) in ONE_WAY {
        let params = json!({ "measure": "one_way", "kind": "scan", "percent": percent, "link": link, "source": "Reiher et al., Table V" });
        let more =
            Row { p50: Some(p50), min: Some(min), max: Some(max), sd: Some(sd), ..row("paper.one_way", &params, mean) };
        rows.push(more);
    }
    rows
}

fn of_sums(params: &serde_json::Value, sums: Sums) -> [Row; 2] {
    [row("paper.interface", params, sums.interfaces), row("paper.link", params, sums.link)]
}

fn row(name: &str, params: &serde_json::Value, mean: f64) -> Row {
    Row { n: MESSAGES, mean: Some(mean), ..Row::empty(name, params, "ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_each_system_add_up_to_the_printed_total() {
        for (index, system) in SYSTEMS.iter().enumerate() {
            let (total, stages) = STAGES.split_last().unwrap();
            let sum: f64 = stages.iter().filter_map(|(_, means)| means[index]).sum();
            assert!((sum - total.1[index].unwrap()).abs() < 0.25, "{system}: {sum}");
        }
    }

    #[test]
    fn the_same_experiment_has_the_same_figures_in_each_table() {
        let interfaces: f64 = STAGES
            .iter()
            .filter(|(stage, _)| stage.contains("interface_out") || stage.contains("interface_in"))
            .filter_map(|(_, means)| means[0])
            .sum();
        assert!((interfaces - 0.6).abs() < 1e-9);
        assert_eq!(STAGES[5].1[0], Some(DETECTION[4]));
        assert_eq!((ENCRYPTION[0].1.interfaces, QOS[0].link, SIZES[4].2.link), (0.6, 38.0, 38.0));
    }
}
