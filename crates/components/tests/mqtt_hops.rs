//! The stamps of a message on its way through two nodes and back, over Mosquitto.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use support::*;
use viaduct_bus::{HopSnapshot, Qos, Recv};

#[test]
fn a_message_that_crosses_two_nodes_and_returns_has_all_stamps_in_order() {
    if !has("mosquitto") {
        return;
    }
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let bridge = |node: &str, name: &str, inbound: &str, route: &str| {
        TestNode::start(&format!(
            "node: {node}\ncomponents:\n  feed: {{ kind: feed }}\n  {name}:\n    kind: mqtt_bridge\n    settings:\n      \
             broker: mqtt://127.0.0.1:{port}\n      inbound: [ {{ {inbound}, qos: 1, encoding: native }} ]\n      \
             routes: [ {{ {route}, qos: 1, encoding: native }} ]\n"
        ))
    };
    let cloud = bridge("cloud", "edge", "from: up, to: work", "from: work, to: down");
    let vehicle = bridge("vehicle", "uplink", "from: down, to: result", "from: log/n, to: up");
    let results = vehicle.bus().subscribe_untyped("result", Qos::keep_last(64), "reader").unwrap();
    eventually("the cloud has subscribed", || count(&cloud.bus(), "edge", "subscribed") == 1);
    eventually("the vehicle has subscribed", || count(&vehicle.bus(), "uplink", "subscribed") == 1);

    for number in 0..20 {
        vehicle.log("log/n", &number.to_string());
        let Recv::Sample(sample) = results.recv_timeout(PATIENCE) else { panic!("no result") };
        let meta = sample.meta();
        let path: Vec<String> =
            meta.stamps().iter().map(|stamp| format!("{} {}", stamp.hop, stamp.kind().label())).collect();
        let expected = [
            "feed published",
            "uplink taken",
            "uplink sent",
            "edge received",
            "edge published",
            "edge taken",
            "edge sent",
            "uplink received",
            "uplink published",
            "reader taken",
        ];
        assert_eq!(path, expected);
        // Both nodes have the clock of this machine.
        let times: Vec<_> = [meta.origin].into_iter().chain(meta.stamps().iter().map(|stamp| stamp.at)).collect();
        assert!(times.is_sorted(), "{times:?}");
    }

    let bus = vehicle.bus();
    // A hop is counted after the sample was delivered.
    for (from, to) in [("feed", "uplink"), ("uplink", "uplink"), ("edge", "uplink")] {
        let is_hop = |hop: &HopSnapshot| hop.from == from && hop.to == to && hop.total.count >= 20;
        eventually(&format!("{from} {to}"), || bus.snapshot().hops.iter().any(is_hop));
    }
    let hops = bus.snapshot().hops;
    let hop = |from: &str, to: &str| hops.iter().find(|hop| hop.from == from && hop.to == to).unwrap();
    assert_eq!(hop("feed", "uplink").clocks, None);
    // Programs of one machine have the same boot identifier, if the kernel has one.
    let is_known = viaduct_bus::clock::machine().is_some();
    let received = hop("edge", "uplink");
    assert_eq!((received.clocks == Some("shared"), received.clock_error_us == Some(0.0)), (is_known, is_known));
    assert!(vehicle.stop() && cloud.stop());
}
