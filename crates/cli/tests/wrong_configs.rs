//! What a person sees who made a mistake in a config file: one readable line with file, line and key, and exit code 2.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::net::TcpListener;
use std::process::Command;

/// Runs `viaduct check` on a text; exit code and stderr, with the file called `node.yaml`.
fn check(text: &str) -> (i32, String) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("node.yaml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["check", "node.yaml"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A node with a station, and more components below it.
fn with_station(more: &str) -> String {
    format!(
        "node: edge\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: 1\n      \
         access: {{ udp_multicast: {{}} }}\n{more}"
    )
}

/// A node with one component of these settings.
fn one(kind: &str, settings: &str) -> String {
    format!("node: edge\ncomponents:\n  it:\n    kind: {kind}\n    settings: {settings}\n")
}

#[test]
fn each_mistake_is_one_line_with_its_place() {
    let anchor_bomb = format!(
        "node: &a [x,x,x,x,x,x,x,x,x,x]\n{}",
        (1..9)
            .map(|i| {
                let (new, old) = ((b'a' + i) as char, (b'a' + i - 1) as char);
                format!("k{i}: &{new} [*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old}]\n")
            })
            .collect::<String>()
    );
    let cases: Vec<(&str, String, &str)> = vec![
        ("empty file", String::new(), "node.yaml: the file is empty; a node starts with `node: NAME`"),
        ("only a comment", "# nothing\n".into(), "node.yaml"),
        ("broken YAML", "node: [edge\n".into(), "node.yaml:1"),
        ("a tab", "node: edge\n\tcomponents: {}\n".into(), "node.yaml:1"),
        ("not a map", "- edge\n".into(), "node.yaml:1:1: expected"),
        ("two documents", "node: a\n---\nnode: b\n".into(), "node.yaml:3"),
        ("unknown key", "node: edge\nnodes: 3\n".into(), "node.yaml:2:1: nodes: unknown field `nodes`, expected one of node, http"),
        ("missing name", "components: {}\n".into(), "missing field `node`"),
        ("bad name", "node: my node\ncomponents: {}\n".into(), "node.yaml:1:1: node: `my node`: a name may have letters"),
        ("no components", "node: edge\n".into(), "node.yaml: components: a node needs at least one component"),
        ("duplicate key", with_station("  station:\n    kind: fleet\n"), "node.yaml:8:3: components.station: duplicate mapping key `station`"),
        ("unknown kind", "node: edge\ncomponents:\n  it: { kind: its_staton }\n".into(),
            "node.yaml:3:9: components.it.kind: there is no kind `its_staton`; did you mean `its_station`?"),
        ("unknown setting", one("fleet", "{ vehicle: 3 }"), "node.yaml:5:17: components.it.settings.vehicle: unknown field `vehicle`, expected one of vehicles"),
        ("wrong type", one("fleet", "{ vehicles: many }"), "node.yaml:5:27: components.it.settings.vehicles: expected an integer from 0 to 4294967295, got `many`"),
        ("a type that is not one", one("its_station", "{ station_id: 1, station_type: 300, access: { udp_multicast: {} } }"),
            "components.it.settings.station_type: expected an integer from 0 to 255, got `300`"),
        ("text for a number", one("fleet", "{ rate_hz: fast }"), "components.it.settings.rate_hz: expected a number, got `fast`"),
        ("a decimal comma", "node: edge\ncomponents:\n  it:\n    kind: fleet\n    settings:\n      rate_hz: 0,5 # half\n".into(),
            "node.yaml:6:16: components.it.settings.rate_hz: expected a number, got `0,5`\n"),
        ("an empty setting", "node: edge\ncomponents:\n  it:\n    kind: fleet\n    settings:\n      vehicles:\n".into(),
            "components.it.settings.vehicles: expected an integer from 0 to 4294967295\n"),
        ("a map over several lines", "node: edge\ncomponents:\n  it: { kind: fleet, settings: {\n    vehicles: many, rate_hz: 1\n  } }\n".into(),
            "node.yaml:4:15: components.it.settings.vehicles: expected an integer from 0 to 4294967295, got `many`\n"),
        ("a map closes behind it", "node: edge\ncomponents:\n  it: { kind: fleet, settings: { rate_hz: 1,\n    vehicles: -3 }, run: inline }\n".into(),
            "components.it.settings.vehicles: expected an integer from 0 to 4294967295, got `-3`\n"),
        ("an empty setting before another", "node: edge\ncomponents:\n  it: { kind: fleet, settings: {\n    vehicles, rate_hz: 1\n  } }\n".into(),
            "components.it.settings.vehicles: expected an integer from 0 to 4294967295\n"),
        ("an empty item", "node: edge\ncomponents:\n  it:\n    kind: fleet\n    run:\n      thread:\n        cpus:\n          - # none\n".into(),
            "components.it.run.thread.cpus.0: expected an integer from 0 to 18446744073709551615\n"),
        ("a block of text for a number", "node: edge\ncomponents:\n  it:\n    kind: fleet\n    settings:\n      rate_hz: |\n        0.5\n        Hz\n".into(),
            "components.it.settings.rate_hz: expected a number\n"),
        ("text of two lines for a number", "node: edge\ncomponents:\n  it:\n    kind: fleet\n    settings:\n      rate_hz: 0.5\n        Hz\n".into(),
            "components.it.settings.rate_hz: expected a number\n"),
        ("a comment behind a tab", "\u{feff}node: edge\ncomponents:\n  it:\n    kind: fleet\n    settings:\n      rate_hz: fäst\t# ö\n".into(),
            "node.yaml:6:16: components.it.settings.rate_hz: expected a number, got `fäst`\n"),
        ("text for a switch", one("its_station", "{ station_id: 1, beacons: perhaps, access: { udp_multicast: {} } }"),
            "components.it.settings.beacons: expected true or false"),
        ("no choice", one("its_station", "{ station_id: 1, access: {} }"),
            "components.it.settings.access: expected one choice: `CHOICE`, or `CHOICE: ...` where it has settings"),
        ("two choices", one("its_station", "{ station_id: 1, access: { udp_multicast: {}, replay: { file: x } } }"),
            "components.it.settings.access.replay: expected one choice only"),
        ("a choice without settings", one("fleet", "{ cam: { rules: { x: 1 } } }"), "components.it.settings.cam.rules: this choice has no settings"),
        ("out of range", one("fleet", "{ vehicles: 100000 }"), "node.yaml:5:17: components.it.settings.vehicles: 100000 is not within 1 to 2000"),
        ("not a number", one("fleet", "{ rate_hz: .nan }"), "components.it.settings.rate_hz: NaN is not within 0.1 to 50"),
        ("a rate and rules", one("fleet", "{ rate_hz: 5, cam: rules }"), "components.it.settings.rate_hz: with `cam: rules` the movement decides"),
        ("errors on a pattern", one("its_station", "{ station_id: 1, topics: { errors: \"its/*\" }, access: { udp_multicast: {} } }"),
            "components.it.settings.topics.errors: `its/*` is not a topic name"),
        ("missing setting", one("its_station", "{ station_id: 4 }"), "missing field `access`"),
        ("no settings at all", "node: edge\ncomponents:\n  it: { kind: its_station }\n".into(), "node.yaml:3:3: components.it.settings: missing field"),
        ("missing file", one("its_station", "{ station_id: 4, access: { replay: { file: no.pcap } } }"),
            "components.it.settings.access.replay.file: cannot read no.pcap: No such file"),
        ("not multicast", one("fleet", "{ udp_multicast: { group: \"10.0.0.1:8947\" } }"),
            "components.it.settings.udp_multicast.group: 10.0.0.1 is not a multicast address"),
        ("bad latitude", one("its_station", "{ station_id: 1, position: { latitude_deg: 91, longitude_deg: 0 }, access: { udp_multicast: {} } }"),
            "components.it.settings.position.latitude_deg: 91 is not within -90 to 90"),
        ("a station that sends from nowhere", one("its_station", "{ station_id: 1, topics: { send: its/send }, access: { udp_multicast: {} } }"),
            "components.it.settings.position: a station that sends needs a position"),
        ("bad MAC", one("its_station", "{ station_id: 1, link_address: \"02:00\", access: { udp_multicast: {} } }"),
            "components.it.settings.link_address: `02:00` is not six octets"),
        ("no such interface", one("its_station", "{ station_id: 1, access: { ethernet: { interface: no_such0 } } }"),
            "node.yaml:5:54: components.it.settings.access.ethernet.interface: there is no network interface `no_such0`; there is "),
        ("bad MAC of a filter", one("its_station", "{ station_id: 1, access: { udp_multicast: {} }, filter: { ignore_from: [ \"02:00\" ] } }"),
            "components.it.settings.filter.ignore_from.0: `02:00` is not six octets"),
        ("a capture too small", one("its_station", "{ station_id: 1, access: { udp_multicast: {} }, capture: { file: out.pcap, max_octets: 9 } }"),
            "components.it.settings.capture.max_octets: 9 is not within 1024 to 1099511627776"),
        ("a query on the map's topic", one("its_station", "{ station_id: 1, access: { udp_multicast: {} }, services: { ldm: { queries: [ { topic: its/ldm } ] } } }"),
            "components.it.settings.services.ldm.queries.0.topic: `its/ldm` is already used by the map or an earlier query"),
        ("a query for no message", one("its_station", "{ station_id: 1, access: { udp_multicast: {} }, services: { ldm: { queries: [ { topic: near, types: [ cams ] } ] } } }"),
            "components.it.settings.services.ldm.queries.0.types: unknown type `cams`; expected one of "),
        ("unfed input", "node: edge\ncomponents:\n  it:\n    kind: api\n    settings: { topics: [ its/rx/* ] }\n".into(),
            "node.yaml:5:27: components.it.settings.topics.0: no component of the node publishes `its/rx/*`; it publishes nothing"),
        ("bad pattern", with_station("  web: { kind: api, settings: { topics: [ \"its/#\" ] } }\n"), "node.yaml:8:33: components.web.settings.topics: `its/#` is not a topic name: a level may have"),
        ("bad broker", with_station("  up: { kind: mqtt_bridge, settings: { broker: \"localhost\", routes: [ { from: its/rx/* } ] } }\n"),
            "components.up.settings.broker"),
        ("bad template", with_station("  up: { kind: mqtt_bridge, settings: { broker: \"mqtt://localhost\", routes: [ { from: its/rx/*, to: \"{vin}\" } ] } }\n"),
            "components.up.settings.routes.0.to"),
        ("bad QoS", with_station("  up: { kind: mqtt_bridge, settings: { broker: \"mqtt://localhost\", routes: [ { from: its/rx/*, qos: 2 } ] } }\n"),
            "components.up.settings.routes.0.qos"),
        ("bad run", "node: edge\ncomponents:\n  it: { kind: fleet, run: fast }\n".into(), "node.yaml:3:27: components.it.run: unknown variant `fast`, expected one of pool, inline, thread"),
        ("priority without a policy", "node: edge\ncomponents:\n  it: { kind: fleet, run: { thread: { priority: 3 } } }\n".into(),
            "components.it.run.thread.priority: only the policies fifo and rr have a priority"),
        ("port taken twice", "node: edge\nhttp: 127.0.0.1:7999\ncomponents:\n  b: { kind: mqtt_broker, settings: { listen: \"127.0.0.1:7999\" } }\n".into(),
            "node.yaml:4:39: components.b.settings.listen: TCP 127.0.0.1:7999 is already taken by http"),
        ("anchor bomb", anchor_bomb, "node.yaml"),
    ];
    assert!(cases.len() >= 20);
    let mut wrong = Vec::new();
    for (what, text, expected) in &cases {
        let (code, said) = check(text);
        let one_line = said.trim_end().lines().count() == 1 && said.len() < 600;
        if code != 2 || !one_line || !said.starts_with("viaduct: node.yaml") || !said.contains(expected) {
            wrong.push(format!("{what}: exit code {code}, expected `{expected}` in one line, it said:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_port_in_use_is_named_with_its_place() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, said) = check(&format!(
        "node: edge\ncomponents:\n  b:\n    kind: mqtt_broker\n    settings:\n      listen: \"{address}\"\n"
    ));
    assert_eq!(code, 2);
    assert_eq!(
        said,
        format!(
            "viaduct: node.yaml:6:7: components.b.settings.listen: cannot listen on {address}: Address already in use (os error 98)\n"
        )
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["run", "no/such.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "viaduct: no/such.yaml: cannot be read: No such file or directory (os error 2)\n");
}

#[test]
fn a_wrong_command_line_is_exit_code_2_too() {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["demo", "--vehicles", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("0 is not in 1..=2000"));
}
