//! Published figures of the papers, as rows of a report.

use serde_json::json;

use crate::report::Row;

/// "FastCycle: A Message Sharing Framework for Modular Automated Driving Systems", Table I: mean and standard deviation
/// of the one-way latency in microseconds. The paper measured 5000 messages, one each millisecond, on an Intel
/// i7-8700T.
const FASTCYCLE_LATENCY: [(&str, [(f64, f64); 5]); 6] = [
    ("paper.cyber_rt", [(2039.0, 37.0), (3500.0, 42.0), (14647.0, 65.0), (29536.0, 86.0), (119_137.0, 385.0)]),
    ("paper.ros1_inter", [(558.0, 25.0), (650.0, 31.0), (1305.0, 109.0), (2017.0, 164.0), (6196.0, 487.0)]),
    ("paper.ros2_inter", [(243.0, 10.0), (299.0, 10.0), (473.0, 8.0), (908.0, 45.0), (3602.0, 1271.0)]),
    ("paper.ros1_intra", [(208.0, 29.0), (266.0, 26.0), (468.0, 45.0), (803.0, 50.0), (1504.0, 40.0)]),
    ("paper.ros2_intra", [(146.0, 20.0), (166.0, 22.0), (237.0, 38.0), (299.0, 3.0), (796.0, 167.0)]),
    (FASTCYCLE, [(159.0, 164.0), (91.0, 98.0), (218.0, 142.0), (205.0, 133.0), (289.0, 115.0)]),
];

/// Table II of the same paper: round trips.
const FASTCYCLE_RTT: [(&str, [(f64, f64); 5]); 6] = [
    ("paper.cyber_rt", [(3018.0, 706.0), (6983.0, 71.0), (29402.0, 624.0), (59885.0, 1906.0), (240_008.0, 5119.0)]),
    ("paper.ros1_inter", [(1019.0, 45.0), (1350.0, 70.0), (2326.0, 45.0), (3629.0, 59.0), (10658.0, 643.0)]),
    ("paper.ros2_inter", [(471.0, 49.0), (535.0, 35.0), (850.0, 28.0), (1779.0, 88.0), (2601.0, 253.0)]),
    ("paper.ros1_intra", [(238.0, 23.0), (280.0, 32.0), (492.0, 47.0), (796.0, 53.0), (2494.0, 323.0)]),
    ("paper.ros2_intra", [(214.0, 27.0), (272.0, 42.0), (448.0, 42.0), (669.0, 33.0), (1665.0, 71.0)]),
    (FASTCYCLE, [(133.0, 134.0), (162.0, 142.0), (166.0, 136.0), (277.0, 144.0), (537.0, 78.0)]),
];

/// Name of the rows of the paper's own system.
pub(crate) const FASTCYCLE: &str = "paper.fastcycle";

/// Sizes of the paper's messages: 32 KB, 128 KB, 512 KB, 1 MB, 4 MB.
pub(crate) const FASTCYCLE_SIZES: [usize; 5] = [32 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20];

/// Returns the paper's latencies and round trips at these sizes. Parameters that the paper omits (time of the stamp,
/// scheduling) are null.
pub(crate) fn fastcycle(sizes: &[usize]) -> Vec<Row> {
    let tables = [("one_way", "Table I", FASTCYCLE_LATENCY), ("rtt", "Table II", FASTCYCLE_RTT)];
    tables.iter().flat_map(|(measure, source, table)| fastcycle_table(measure, source, table, sizes)).collect()
}

fn fastcycle_table(measure: &str, source: &str, table: &[(&str, [(f64, f64); 5])], sizes: &[usize]) -> Vec<Row> {
    let of_system = |(name, figures): &(&str, [(f64, f64); 5])| {
        let wanted = FASTCYCLE_SIZES.iter().zip(*figures).filter(|(size, _)| sizes.contains(size));
        let row = |(size, (mean, sd)): (&usize, (f64, f64))| {
            let mode = mode_of(name);
            let params = json!({
                "measure": measure, "mode": mode, "fill": null, "cores": "free", "policy": null, "size": size,
                "subscribers": 1, "rate_hz": 1000, "load": "none", "observer": false,
                "source": format!("FastCycle, {source}"),
            });
            Row { n: 5000, mean: Some(mean), sd: Some(sd), ..Row::empty(name, &params, "us") }
        };
        wanted.map(row).collect::<Vec<_>>()
    };
    table.iter().flat_map(of_system).collect()
}

/// Returns the executor of the system's subscriber: pool, thread or process.
fn mode_of(name: &str) -> &'static str {
    match name {
        FASTCYCLE => "pool",
        "paper.ros1_intra" | "paper.ros2_intra" => "thread",
        _ => "process",
    }
}

/// "A C-ITS Architecture for MEC and Cloud Native Back-End Services", Table 2: mean, standard deviation and maximum
/// time of each stage in ms, from one on-board unit to another by Ethernet. The paper measured 1000 packets on a Cohda
/// MK5 (i.MX6, 600 MHz).
const C_ITS_STAGES: [(&str, f64, f64, f64); 9] = [
    ("facility_out", 0.0399, 0.0116, 0.0875),
    ("network_out", 0.2209, 0.0380, 0.4750),
    ("access_out", 0.1681, 0.0289, 0.3488),
    ("physical", 0.0396, 0.0758, 0.6981),
    ("access_in", 0.0497, 0.0085, 0.0695),
    ("network_in", 0.4152, 0.1911, 2.2463),
    ("facility_in", 0.1444, 0.0576, 0.5284),
    ("mqtt", 28.6794, 3.8268, 33.0784),
    ("total", 29.7572, 4.2383, 37.532),
];

/// Number of vehicles at 10 Hz that the paper's on-board unit and its edge hook (quad-core i5-7500) can process.
const C_ITS_CAPACITY: [(&str, f64); 2] = [("paper.obu_capacity", 682.0), ("paper.mec_hook_capacity", 786.0)];

/// Returns the paper's stages, the sum of those between reception and MQTT subscriber, and its capacities.
pub(crate) fn c_its() -> Vec<Row> {
    let stage = |(stage, mean, sd, max): &(&str, f64, f64, f64)| {
        let params = json!({ "source": "C-ITS architecture, Table 2" });
        let row = Row::empty(&format!("paper.{stage}"), &params, "us");
        Row { n: 1000, mean: Some(mean * 1000.0), sd: Some(sd * 1000.0), max: Some(max * 1000.0), ..row }
    };
    let params = json!({ "source": "C-ITS architecture, Table 2: access_in + network_in + facility_in + mqtt" });
    let packet_to_mqtt =
        Row { n: 1000, mean: Some(packet_to_mqtt_us()), ..Row::empty("paper.packet_to_mqtt", &params, "us") };
    let capacity = |(name, vehicles): &(&str, f64)| {
        let params = json!({ "source": format!("C-ITS architecture, text: {vehicles} vehicles at 10 Hz") });
        Row { rate: Some(vehicles * 10.0), ..Row::empty(name, &params, "messages") }
    };
    let stages = C_ITS_STAGES.iter().map(stage);
    stages.chain([packet_to_mqtt]).chain(C_ITS_CAPACITY.iter().map(capacity)).collect()
}

/// Returns the mean time from the reception of a packet to its MQTT subscriber, in microseconds.
pub(crate) fn packet_to_mqtt_us() -> f64 {
    stages_us(&["access_in", "network_in", "facility_in", "mqtt"])
}

/// Returns the mean time from the reception of a packet to its decoded message, in microseconds.
pub(crate) fn packet_to_bus_us() -> f64 {
    stages_us(&["access_in", "network_in", "facility_in"])
}

/// Returns the mean time from one unit's facilities to the MQTT subscriber of the other, in microseconds.
pub(crate) fn total_us() -> f64 {
    stages_us(&["total"])
}

/// Returns the mean time that a received packet takes through the network and facilities layers, in microseconds.
pub(crate) fn decode_us() -> f64 {
    stages_us(&["network_in", "facility_in"])
}

/// Returns the sum of the mean times of these stages of Table 2, in microseconds.
pub(crate) fn stages_us(names: &[&str]) -> f64 {
    C_ITS_STAGES.iter().filter(|(stage, ..)| names.contains(stage)).map(|(_, mean, ..)| mean * 1000.0).sum()
}

/// Messages per second that the paper's on-board unit can process.
pub(crate) const OBU_CAPACITY_HZ: f64 = C_ITS_CAPACITY[0].1 * 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_to_the_printed_total() {
        let all: f64 = C_ITS_STAGES.iter().take(8).map(|stage| stage.1).sum();
        assert!((all - 29.7572).abs() < 0.001, "{all}");
        assert!((packet_to_mqtt_us() - 29_288.7).abs() < 0.1);
    }

    #[test]
    fn has_no_row_for_an_unpublished_size() {
        assert_eq!(fastcycle(&FASTCYCLE_SIZES).len(), 60);
        assert_eq!(fastcycle(&[1 << 20, 64]).len(), 12);
    }
}
