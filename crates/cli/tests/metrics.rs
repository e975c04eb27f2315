//! `/metrics` of a running node, checked by promtool.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use viaduct_node::{Graph, Kind, Node};

/// A node with every sort of metric: pools, deadlines, budgets, timers, drops, hops.
const FILE: &str = "
node: edge
http: 127.0.0.1:0
components:
  station:
    kind: its_station
    settings: { station_id: 901, access: { udp_multicast: { group: \"239.118.122.97:18951\" } } }
  fleet:
    kind: fleet
    budget_ms: 0.001
    settings: { vehicles: 5, udp_multicast: { group: \"239.118.122.97:18951\" } }
  broker:
    kind: mqtt_broker
    settings: { listen: 127.0.0.1:0, routes: [ { from: its/rx/* } ] }
  api: { kind: api, settings: { listen: 127.0.0.1:0, topics: [ its/rx/* ] } }
  lidar: { kind: generator, settings: { topic: lidar, octets: 4096, rate_hz: 100, qos: { deadline_ms: 1000 } } }
  logger: { kind: sink, settings: { topics: [ lidar ], work_us: 20000 } }
";

/// Runs the node for two seconds. Returns its metrics.
fn metrics() -> String {
    let kinds: Vec<Kind> = [viaduct_components::KINDS, viaduct_backend::KINDS].concat();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let node = Node::start(Graph::resolve("edge.yaml", FILE, &kinds).unwrap(), runtime.handle()).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let mut stream = TcpStream::connect(node.http_address().unwrap()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    node.stop();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn promtool_reports_no_problem() {
    let metrics = metrics();
    for name in [
        "viaduct_build_info{version=",
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "process_open_fds ",
        "process_start_time_seconds ",
        "viaduct_subscription_latency_seconds_bucket{node=\"edge\",topic=\"lidar\",subscriber=\"logger\",pattern=\"lidar\",le=\"0.001\"} ",
        "viaduct_hop_latency_seconds_count{node=\"edge\",",
        "viaduct_hop_latency_quantile_seconds{node=\"edge\",",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name}: {metrics}");
    }
    let checked = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = checked else {
        skipped("promtool is not installed (Debian's prometheus)");
        return;
    };
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && report.is_empty(), "{report}\n{metrics}");
}

/// Reports a skipped test on the standard error, which the test runner does not capture. Fails if peers are required.
fn skipped(reason: &str) {
    assert!(
        std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(),
        "skipped although VIADUCT_REQUIRE_PEERS is set: {reason}"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
