//! Mistakes in a config file: each is one readable line with file, line, column and key, and the exit code is 2.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// Runs `viaduct check` on a text. Returns exit code and stderr, with `node.yaml` as the name of the file.
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

/// Returns a node with a station, and more components below it.
fn with_station(more: &str) -> String {
    format!(
        "node: edge\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: 1\n      \
         access: {{ udp_multicast: {{}} }}\n{more}"
    )
}

/// Returns a node with one component of these settings.
fn one(kind: &str, settings: &str) -> String {
    format!("node: edge\ncomponents:\n  it:\n    kind: {kind}\n    settings: {settings}\n")
}

/// Keys of a remote drive, whose file does not exist.
const KEYS: &str = "{ keys: { private_key: no.key, peers: [ { name: v, public_key: \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\" } ] } }";

/// Returns a node with two desks, which receive datagrams at one address.
fn two_desks(listen: &str) -> String {
    let desk = |name: &str| {
        format!(
            "  {name}: {{ kind: teleop_desk, settings: {{ listen: \"{listen}\", http: \"127.0.0.1:0\", security: none, login: none }} }}\n"
        )
    };
    format!("node: edge\ncomponents:\n{}{}", desk("a"), desk("b"))
}

#[test]
fn a_port_may_be_used_for_tcp_and_for_udp() {
    let (code, stderr) = check(
        "node: edge\nhttp: 127.0.0.1:7997\ncomponents:\n  desk: { kind: teleop_desk, settings: { listen: \"127.0.0.1:7997\", \
         http: \"127.0.0.1:0\", security: none, login: none } }\n",
    );
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn stations_share_the_port_of_a_multicast_group() {
    let second = "  second: { kind: its_station, settings: { station_id: 2, access: { udp_multicast: {} }, \
                  topics: { rx: two/rx, tx: two/tx, errors: two/errors } } }\n";
    let (code, stderr) = check(&with_station(second));
    assert_eq!((code, stderr.as_str()), (0, ""));
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
        ("not a map", "- edge\n".into(), "node.yaml:1:1: expected a map of keys"),
        ("two documents", "node: a\n---\nnode: b\n".into(), "node.yaml:3"),
        ("unknown key", "node: edge\nnodes: 3\ncomponents: { it: { kind: fleet } }\n".into(), "node.yaml:2:1: nodes: unknown field `nodes`, expected one of node, http"),
        ("missing name", "components: { it: { kind: fleet } }\n".into(), "node.yaml: missing field `node`\n"),
        ("bad name", "node: my node\ncomponents: { it: { kind: fleet } }\n".into(), "node.yaml:1:1: node: `my node`: a name may have letters"),
        ("no components", "node: edge\n".into(), "node.yaml: components: a node needs at least one component"),
        ("duplicate key", with_station("  station:\n    kind: fleet\n"), "node.yaml:8:3: components.station: the key `station` occurs twice"),
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
            "components.it.settings.access: expected one choice: `CHOICE`, or `CHOICE: ...` if it has settings"),
        ("two choices", one("its_station", "{ station_id: 1, access: { udp_multicast: {}, replay: { file: x } } }"),
            "components.it.settings.access.replay: expected one choice only"),
        ("a choice without settings", one("fleet", "{ cam: { rules: { x: 1 } } }"), "components.it.settings.cam.rules: this choice has no settings"),
        ("out of range", one("fleet", "{ vehicles: 100000 }"), "node.yaml:5:17: components.it.settings.vehicles: 100000 is not within 1 to 2000"),
        ("not a number", one("fleet", "{ rate_hz: .nan }"), "components.it.settings.rate_hz: NaN is not within 0.1 to 50"),
        ("a rate and rules", one("fleet", "{ rate_hz: 5, cam: rules }"), "components.it.settings.rate_hz: not allowed with `cam: rules`"),
        ("errors on a pattern", one("its_station", "{ station_id: 1, topics: { errors: \"its/*\" }, access: { udp_multicast: {} } }"),
            "components.it.settings.topics.errors: `its/*` is not a topic name"),
        ("missing setting", one("its_station", "{ station_id: 4 }"), "missing field `access`"),
        ("no settings at all", "node: edge\ncomponents:\n  it: { kind: generator }\n".into(), "node.yaml:3:3: components.it.settings: missing field `topic`"),
        ("missing file", one("its_station", "{ station_id: 4, access: { replay: { file: no.pcap } } }"),
            "components.it.settings.access.replay.file: cannot read no.pcap: No such file"),
        ("a replay file that is not a capture", one("its_station", &format!("{{ station_id: 4, access: {{ replay: {{ file: {:?} }} }} }}", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))),
            "components.it.settings.access.replay.file: "),
        ("not multicast", one("fleet", "{ udp_multicast: { group: \"10.0.0.1:8947\" } }"),
            "components.it.settings.udp_multicast.group: 10.0.0.1 is not a multicast address"),
        ("bad latitude", one("its_station", "{ station_id: 1, position: { latitude_deg: 91, longitude_deg: 0 }, access: { udp_multicast: {} } }"),
            "components.it.settings.position.latitude_deg: 91 is not within -90 to 90"),
        ("a station that sends from nowhere", one("its_station", "{ station_id: 1, topics: { send: its/send }, access: { udp_multicast: {} } }")
            + "  in: { kind: mqtt_broker, settings: { listen: 127.0.0.1:0, inbound: [ { from: x, to: its/send } ] } }\n",
            "components.it.settings.position: a station that sends needs a position"),
        ("bad MAC", one("its_station", "{ station_id: 1, link_address: \"02:00\", access: { udp_multicast: {} } }"),
            "components.it.settings.link_address: `02:00` is not six octets"),
        ("no such interface", one("its_station", "{ station_id: 1, access: { ethernet: { interface: no_such0 } } }"),
            "node.yaml:5:54: components.it.settings.access.ethernet.interface: there is no network interface `no_such0`; there is "),
        ("bad MAC of a filter", one("its_station", "{ station_id: 1, access: { udp_multicast: {} }, filter: { ignore_from: [ \"02:00\" ] } }"),
            "components.it.settings.filter.ignore_from.0: `02:00` is not six octets"),
        ("a capture too small", one("its_station", "{ station_id: 1, access: { udp_multicast: {} }, capture: { file: out.pcap, max_octets: 9 } }"),
            "components.it.settings.capture.max_octets: 9 is not within 1024 to 1099511627776"),
        ("a query on the map's topic", one("its_station", "{ station_id: 1, position: { latitude_deg: 0, longitude_deg: 0 }, access: { udp_multicast: {} }, services: { ldm: { queries: [ { topic: its/ldm } ] } } }"),
            "components.it.settings.services.ldm.queries.0.topic: `its/ldm` is already used by the map or an earlier query"),
        ("a query for no message", one("its_station", "{ station_id: 1, position: { latitude_deg: 0, longitude_deg: 0 }, access: { udp_multicast: {} }, services: { ldm: { queries: [ { topic: near, types: [ cams ] } ] } } }"),
            "components.it.settings.services.ldm.queries.0.types: unknown type `cams`; expected one of "),
        ("unfed input", "node: edge\ncomponents:\n  it:\n    kind: api\n    settings: { topics: [ its/rx/* ] }\n".into(),
            "node.yaml:5:27: components.it.settings.topics.0: no component of the node publishes `its/rx/*`; it publishes nothing"),
        ("bad pattern", with_station("  web: { kind: api, settings: { topics: [ \"its/#\" ] } }\n"), "node.yaml:8:33: components.web.settings.topics: `its/#` is not a topic name: a level may contain only letters"),
        ("bad broker", with_station("  up: { kind: mqtt_bridge, settings: { broker: \"localhost\", routes: [ { from: its/rx/* } ] } }\n"),
            "components.up.settings.broker"),
        ("bad template", with_station("  up: { kind: mqtt_bridge, settings: { broker: \"mqtt://localhost\", routes: [ { from: its/rx/*, to: \"{vin}\" } ] } }\n"),
            "components.up.settings.routes.0.to"),
        ("bad QoS", with_station("  up: { kind: mqtt_bridge, settings: { broker: \"mqtt://localhost\", routes: [ { from: its/rx/*, qos: 3 } ] } }\n"),
            "components.up.settings.routes.0.qos"),
        ("bad run", "node: edge\ncomponents:\n  it: { kind: fleet, run: fast }\n".into(), "node.yaml:3:27: components.it.run: unknown variant `fast`, expected one of pool, inline, thread"),
        ("priority without a policy", "node: edge\ncomponents:\n  it: { kind: fleet, run: { thread: { priority: 3 } } }\n".into(),
            "components.it.run.thread.priority: only the policies fifo and rr have a priority"),
        ("port taken twice", "node: edge\nhttp: 127.0.0.1:7999\ncomponents:\n  b: { kind: mqtt_broker, settings: { listen: \"127.0.0.1:7999\" } }\n".into(),
            "node.yaml:4:39: components.b.settings.listen: TCP 127.0.0.1:7999 is already taken by http"),
        ("UDP port taken twice", two_desks("127.0.0.1:7998"),
            "node.yaml:4:39: components.b.settings.listen: UDP 127.0.0.1:7998 is already taken by components.a.settings.listen\n"),
        ("a key file that is missing", one("teleop_desk", &format!("{{ listen: \"0.0.0.0:7998\", security: {KEYS}, login: none, http: \"127.0.0.1:0\" }}")),
            "components.it.settings.security.keys.private_key: cannot read the private key `no.key`: No such file"),
        ("no keys on a real link", one("teleop_vehicle", "{ desk: \"192.0.2.1:4650\", security: none }"),
            "components.it.settings.desk: 192.0.2.1:4650 is not on this machine (127.0.0.1), which `security: none` requires"),
        ("anchor bomb", anchor_bomb, "node.yaml"),
    ];
    assert!(cases.len() >= 20);
    let mut wrong = Vec::new();
    for (what, text, expected) in &cases {
        let (code, stderr) = check(text);
        let one_line = stderr.trim_end().lines().count() == 1 && stderr.len() < 600;
        if code != 2 || !one_line || !stderr.starts_with("node.yaml") || !stderr.contains(expected) {
            wrong.push(format!("{what}: exit code {code}, expected `{expected}` in one line, got:\n{stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a command with a text on its stdin. Returns exit code, stdout and stderr.
fn with_stdin(arguments: &[&str], environment: &[(&str, &str)], text: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(arguments).envs(environment.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |octets| String::from_utf8(octets).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Mistakes of every sort in one file.
const MANY: &str = "\
node: my node
http: 127.0.0.1:70000
pool_threads: 0
colour: blue
components:
  fleet:
    kind: fleet
    settings: { vehicles: many, rate_hz: 400, udp_multicast: { group: \"10.0.0.1:8947\" }, wheels: 4 }
  station:
    kind: its_station
    run: fast
    settings:
      station_type: 32
      position: { latitude_deg: 91, longitude_deg: 181 }
      geonet: { hop_limit: 0 }
  broker:
    kind: mqtt_broker
    settings:
      listen: 127.0.0.1:7883
      routes: [ { from: its/rx/*, qos: 3 }, { to: x }, { from: \"a b\" } ]
  again: { kind: mqtt_broker, settings: { listen: 127.0.0.1:7883 } }
  sink: { kind: snik, settings: { nothing: 1 } }
  radar: { kind: generator, settings: [ radar ] }
";

#[test]
fn all_mistakes_of_a_file_are_reported_at_once_and_in_its_order() {
    let (code, stderr) = check(MANY);
    assert_eq!(code, 2);
    let keys: Vec<&str> = stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    let expected = [
        "node",
        "http",
        "pool_threads",
        "colour",
        "components.fleet.settings.vehicles",
        "components.fleet.settings.rate_hz",
        "components.fleet.settings.udp_multicast.group",
        "components.fleet.settings.wheels",
        "components.station.run",
        "components.station.settings",
        "components.station.settings",
        // Components are compared in the order of their names, so that `again` has the address first.
        "components.broker.settings.listen",
        "components.broker.settings.routes.0.qos",
        "components.broker.settings.routes.1",
        "components.broker.settings.routes.2.from",
        "components.sink.kind",
        "components.radar.settings",
    ];
    assert_eq!(keys, expected, "{stderr}");
    for line in [
        "node.yaml:2:7: http: expected an address such as 127.0.0.1:8080, got `127.0.0.1:70000`: the port `70000` is not within 0 to 65535",
        "node.yaml:12:5: components.station.settings: missing field `access`",
        "node.yaml:12:5: components.station.settings: missing field `station_id`",
        "node.yaml:20:45: components.broker.settings.routes.1: missing field `from`",
        "node.yaml:23:29: components.radar.settings: expected a map, got a list",
    ] {
        assert!(stderr.lines().any(|stderr| stderr == line), "{line}: {stderr}");
    }
}

#[test]
fn settings_of_constrained_devices_that_cannot_work_are_named() {
    let log = "routes: [ { from: a, to: a } ]";
    let broker = "broker: \"mqtt://127.0.0.1\"";
    for (kind, settings, expected) in [
        (
            "mqttsn_gateway",
            format!("{broker}, embedded_broker: 127.0.0.1:1"),
            "embedded_broker: not allowed with `broker`: messages go to one broker",
        ),
        (
            "mqttsn_gateway",
            "broker: \"tcp://a:1883\"".to_owned(),
            "broker: `tcp://` is not supported; expected `mqtt://HOST:PORT`",
        ),
        (
            "mqttsn_gateway",
            format!("{broker}, listen: \"localhost:1884\""),
            "listen: expected an address such as 127.0.0.1:8080: `localhost` is a name, not an IP address",
        ),
        (
            "mqttsn_gateway",
            format!("{broker}, client_id: \"\""),
            "client_id: expected 1 to 256 octets without control characters",
        ),
        ("mqttsn_gateway", format!("{broker}, folder: node.yaml"), "folder: node.yaml is not a folder"),
        (
            "mqttsn_gateway",
            format!("{broker}, dtls: {{ psk_file: . }}"),
            "dtls.psk_file: cannot read the pre-shared keys `.`: is a directory",
        ),
        (
            "mqttsn_gateway",
            format!("{broker}, discovery: {{ group: \"225.18.83.1:0\" }}"),
            "discovery.group: `225.18.83.1:0` has port 0; expected the port of the multicast group",
        ),
        (
            "mqttsn_gateway",
            format!("{broker}, discovery: {{ group: 225.18.83.1 }}"),
            "discovery.group: expected an address such as 127.0.0.1:8080, got `225.18.83.1`: the port is missing",
        ),
        (
            "mqttsn_gateway",
            format!("{broker}, predefined: [ {{ id: 1, topic: a }}, {{ id: 1, topic: b }} ]"),
            "predefined.1.id: 1 is the identifier of another topic",
        ),
        (
            "mqttsn_gateway",
            format!("{broker}, predefined: [ {{ id: 1, topic: a, client: a-client-with-a-long-name }} ]"),
            "predefined.0.client: `a-client-with-a-long-name` is not a client identifier of 1 to 23 octets",
        ),
        (
            "mqttsn_client",
            format!("{log}, gateway: 127.0.0.1:0"),
            "gateway: `127.0.0.1:0` has port 0; expected the port of the gateway",
        ),
        (
            "mqttsn_client",
            format!("{log}, gateway: 127.0.0.1:1, will: {{ topic: a, delay_s: 3 }}"),
            "will.delay_s: not allowed: MQTT-SN has no delay of the last will",
        ),
        (
            "mqttsn_client",
            format!("{log}, gateway: 127.0.0.1:1, predefined: [ {{ id: 1, topic: a, client: b }} ]"),
            "predefined.0.client: allowed only in `mqttsn_gateway`",
        ),
        (
            "mqttsn_forwarder",
            "listen: 127.0.0.1:1885, gateway: 127.0.0.1:1885".to_owned(),
            "gateway: `127.0.0.1:1885` is the address on which the forwarder itself listens",
        ),
        (
            "coap_server",
            "resources: [ { path: /a, to: b } ]".to_owned(),
            "resources.0.path: `/a` is not a path: segments of 1 to 255 octets, joined by `/`, without a `/` in front",
        ),
        ("coap_server", "listen: 127.0.0.1:0".to_owned(), "resources: required: at least one resource, or a `proxy`"),
        (
            "coap_server",
            "proxy: { path: http, to: \"http://a:1\" }, limits: { transfer_octets_max: 1000 }".to_owned(),
            "limits.transfer_octets_max: 1000 is below `payload_octets_max`, which is 1048576",
        ),
        (
            "coap_client",
            format!("{log}, server: 127.0.0.1:0"),
            "server: `127.0.0.1:0` has port 0; expected the port of the server",
        ),
        (
            "coap_client",
            "server: 127.0.0.1:1, observe: [ { from: a, to: a } ]".to_owned(),
            "observe.0: missing field `type`",
        ),
        (
            "coap_client",
            "server: 127.0.0.1:1, observe: [ { from: a, to: a, type: { ros1: car_msgs/Wheel } } ]".to_owned(),
            "observe.0.type: `car_msgs/Wheel` is not a common type: use `opaque: NAME` with `encoding: native`",
        ),
    ] {
        let (code, stderr) = check(&one(kind, &format!("{{ {settings} }}")));
        let own: Vec<&str> =
            stderr.lines().filter(|line| !line.contains("no component of the node publishes")).collect();
        assert_eq!((code, own.len()), (2, 1), "{settings}: {stderr}");
        assert!(own[0].contains(&format!("components.it.settings.{expected}")), "{settings}: {stderr}");
    }
}

#[test]
fn a_proxy_needs_no_resources_and_a_folder_has_one_gateway() {
    let (code, stderr) =
        check(&one("coap_server", "{ listen: \"127.0.0.1:0\", proxy: { path: http, to: \"http://a:1\" } }"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let gateway = |name: &str| {
        format!(
            "  {name}: {{ kind: mqttsn_gateway, settings: {{ listen: \"127.0.0.1:0\", broker: \"mqtt://a\", folder: sessions }} }}\n"
        )
    };
    let (code, stderr) = check(&format!("node: edge\ncomponents:\n{}{}", gateway("a"), gateway("b")));
    assert_eq!(code, 2);
    assert!(
        stderr.contains("components.b.settings.folder: file sessions is already taken by components.a.settings.folder"),
        "{stderr}"
    );
}

#[test]
fn each_element_of_a_list_has_its_own_mistakes() {
    let inbound = "[ { from: \"x/#/y\", to: ros/x }, { from: a, to: \"b c\" }, { from: b, to: \"b c\" }, { from: c, to: d, qos: 3 } ]";
    let settings = format!("{{ broker: \"mqtt://127.0.0.1\", routes: [ {{ from: log }} ], inbound: {inbound} }}");
    let (code, stderr) = check(&format!("node: n\ncomponents:\n  up: {{ kind: mqtt_bridge, settings: {settings} }}\n"));
    let keys: Vec<&str> = stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    let expected = ["inbound.0.from", "inbound.1.to", "inbound.2.to", "inbound.3.qos"];
    assert_eq!(
        (code, keys),
        (2, expected.map(|key| format!("components.up.settings.{key}")).iter().map(|key| &**key).collect()),
        "{stderr}"
    );
}

#[test]
fn a_mistake_that_follows_from_another_is_not_reported() {
    let feeds = |station: &str| {
        format!(
            "node: edge\ncomponents:\n  station: {station}\n  \
             web: {{ kind: api, settings: {{ topics: [ v2x/rx/* ], listen: 127.0.0.1:0 }} }}\n"
        )
    };
    let access = "access: { udp_multicast: {} }";
    for (text, key) in [
        // The topics of these stations are unknown, so the input of the API may be fed.
        (feeds("{ kind: its_staton, settings: { topics: { rx: v2x/rx } } }"), "components.station.kind"),
        (
            feeds(&format!("{{ kind: its_station, settings: {{ station_id: 1, {access}, topics: {{ xr: v2x/rx }} }} }}")),
            "components.station.settings.topics.xr",
        ),
        (
            feeds(&format!("{{ kind: its_station, settings: {{ station_id: 1, {access}, topic: {{ rx: v2x/rx }} }} }}")),
            "components.station.settings.topic",
        ),
        (feeds(&format!("{{ kind: its_station, settings: {{ {access} }} }}")), "components.station.settings"),
        (feeds("{ kind: its_station, settings: [] }"), "components.station.settings"),
        // The mistyped key explains the missing key, so only the mistyped key is reported.
        (one("its_station", &format!("{{ stationid: 1, {access} }}")), "components.it.settings.stationid"),
        // Without the wrong value, a default would be checked in its place.
        (
            one("mqtt_bridge", "{ broker: \"mqtt://x\", reconnect: { min_ms: 0, max_ms: 50 }, routes: [ { from: a } ] }"),
            "components.it.settings.reconnect.min_ms",
        ),
        (
            "node: edge\nexecutors: { fast: { pool: many } }\ncomponents:\n  it: { kind: fleet, run: { executor: fast } }\n"
                .to_owned(),
            "executors.fast.pool",
        ),
        ("node: edge\ncomponents:\n  it: { run: inline }\n".to_owned(), "components.it"),
    ] {
        let (code, stderr) = check(&text);
        let is_one = stderr.lines().count() == 1 && stderr.contains(&format!(": {key}: "));
        // No component feeds the bridge's route, which is a separate mistake.
        let is_two = key.ends_with("min_ms") && stderr.lines().count() == 2 && stderr.contains("publishes `a`");
        assert!(code == 2 && (is_one || is_two), "{key}: {stderr}");
    }
}

#[test]
fn mistakes_can_be_read_as_json_and_from_stdin() {
    let (code, out, stderr) = with_stdin(&["check", "--json", "-"], &[], MANY);
    assert_eq!((code, stderr.as_str()), (2, ""));
    let mistakes: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(mistakes.len(), 17, "{out}");
    let expected = serde_json::json!({
        "file": "stdin", "line": 2, "column": 7, "key": "http",
        "problem": "expected an address such as 127.0.0.1:8080, got `127.0.0.1:70000`: the port `70000` is not within 0 to 65535",
    });
    assert_eq!(mistakes[1], expected);
    let fine = "node: edge\ncomponents: { it: { kind: fleet } }\n";
    assert_eq!(with_stdin(&["check", "--json", "-"], &[], fine), (0, "[]\n".to_owned(), String::new()));
    let (code, _, stderr) = with_stdin(&["run", "-"], &[], "node: [\n");
    assert_eq!((code, stderr.starts_with("stdin:")), (2, true), "{stderr}");
    let (code, _, stderr) = with_stdin(&["check", "-", "-"], &[], fine);
    assert_eq!((code, stderr.as_str()), (2, "viaduct: `-` is stdin, which has one file only\n"));
    let (code, out, _) = with_stdin(&["check", "--json", "no/such.yaml"], &[], "");
    assert!(code == 2 && out.contains("\"key\": \"\"") && out.contains("\"line\": null"), "{out}");
}

#[test]
fn mistakes_of_all_files_are_reported_and_those_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str| format!("node: {name}\nhttp: 127.0.0.1:7984\ncomponents: {{ it: {{ kind: {name} }} }}\n");
    for name in ["fleet", "feet"] {
        std::fs::write(folder.path().join(name), text(name)).unwrap();
    }
    std::fs::write(folder.path().join("broken"), "node: [\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["check", "broken", "fleet", "feet"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(lines[0].starts_with("broken:1:7: node: not YAML: "), "{stderr}");
    assert_eq!(
        lines[1..],
        [
            "feet:2:1: http: TCP 127.0.0.1:7984 is already taken by http in fleet",
            "feet:3:21: components.it.kind: there is no kind `feet`; did you mean `fleet`?",
        ]
    );
}

#[test]
fn checks_of_the_machine_are_skipped_with_offline() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "node: edge\ncomponents:\n  \
         car: {{ kind: its_station, settings: {{ station_id: 1, access: {{ ethernet: {{ interface: no_such0 }} }} }} }}\n  \
         old: {{ kind: its_station, settings: {{ station_id: 2, topics: {{ rx: old/rx, tx: old/tx, errors: old/errors }}, access: {{ replay: {{ file: no.pcap }} }} }} }}\n  \
         fleet: {{ kind: fleet, settings: {{ roads: no.geojson }} }}\n  \
         broker: {{ kind: mqtt_broker, settings: {{ listen: \"{}\", password_file: no.txt }} }}\n",
        taken.local_addr().unwrap()
    );
    let (code, stderr) = check(&text);
    let keys: Vec<&str> = stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(code, 2);
    assert_eq!(
        keys,
        [
            "components.car.settings.access.ethernet.interface",
            "components.old.settings.access.replay.file",
            "components.fleet.settings.roads",
            "components.broker.settings.listen",
            "components.broker.settings.password_file",
        ],
        "{stderr}"
    );
    let (code, out, stderr) = with_stdin(&["check", "--offline", "-"], &[], &text);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(
        out.ends_with("not checked, because of --offline: interfaces, files and TCP ports of this machine\n"),
        "{out}"
    );
    let wrong = text.replace("station_id: 1", "station_type: 300");
    assert_eq!(with_stdin(&["check", "--offline", "-"], &[], &wrong).0, 2);
}

#[test]
fn values_may_come_from_the_environment() {
    let text = "node: ${NAME}\nhttp: ${HOST:-127.0.0.1}:${PORT:-0}\npool_threads: ${THREADS:-3}\ncomponents:\n  \
                it: { kind: fleet, settings: { vehicles: \"${VEHICLES}\", rate_hz: \"${RATE:-2.5}\" } }\n";
    let (code, out, stderr) = with_stdin(&["check", "-"], &[("NAME", "car-7"), ("VEHICLES", "3")], text);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(out.starts_with("stdin: node `car-7` is fine\n"), "{out}");
    let (code, _, stderr) = with_stdin(&["check", "-"], &[("VEHICLES", "3000"), ("THREADS", "two")], text);
    assert_eq!(code, 2);
    assert_eq!(
        stderr,
        "stdin:1:7: node: the environment variable `NAME` is not set; set it, or write ${NAME:-default}\n\
         stdin:3:15: pool_threads: expected an integer from 0 to 18446744073709551615, got `two`\n\
         stdin:5:34: components.it.settings.vehicles: 3000 is not within 1 to 2000\n"
    );
    let escaped = "node: edge\ncomponents: { it: { kind: its_station, settings: { station_id: 1, link_address: \"$${X}\", access: { udp_multicast: {} } } } }\n";
    assert!(with_stdin(&["check", "-"], &[], escaped).2.contains("link_address: `${X}` is not six octets"));
}

#[test]
fn a_port_in_use_is_reported_with_its_place() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, stderr) = check(&format!(
        "node: edge\ncomponents:\n  b:\n    kind: mqtt_broker\n    settings:\n      listen: \"{address}\"\n"
    ));
    assert_eq!(code, 2);
    assert_eq!(
        stderr,
        format!(
            "node.yaml:6:7: components.b.settings.listen: cannot listen on {address}: Address already in use (os error 98); \
             another process listens there: choose another port. `viaduct check --offline` skips this check\n"
        )
    );
}

#[test]
fn a_missing_file_is_reported_by_name() {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["run", "no/such.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "no/such.yaml: cannot be read: No such file or directory (os error 2)\n");
}

#[test]
fn a_wrong_command_line_is_exit_code_2_too() {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["demo", "--vehicles", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("0 is not in 1..=2000"));
}

#[test]
fn files_that_never_end_are_refused_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let big = directory.path().join("big");
    std::fs::File::create(&big).unwrap().set_len(1 << 40).unwrap();
    for path in ["/dev/zero", big.to_str().unwrap()] {
        let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["check", path]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, format!("{path}: cannot be read: it is longer than 16777216 bytes\n"));
        assert_eq!(output.status.code(), Some(2));
        for (kind, settings, problem) in [
            ("mqtt_broker", format!("{{ listen: 127.0.0.1:1883, password_file: {path} }}"), "password_file: "),
            (
                "mqtt_broker",
                format!(
                    "{{ listen: 127.0.0.1:1883, tls: {{ listen: 127.0.0.1:1884, certificate_file: {path}, key_file: {path} }} }}"
                ),
                "tls: ",
            ),
            ("fleet", format!("{{ roads: {path} }}"), "roads: cannot read "),
        ] {
            let (code, stderr) = check(&one(kind, &settings));
            let is_named = stderr.contains("it is longer than") || stderr.contains("it is a device");
            assert!(code == 2 && stderr.contains(problem) && is_named, "{kind} {settings}: {stderr}");
        }
    }
}

#[test]
fn messages_show_neither_control_characters_nor_long_values() {
    let (_, stderr) = check(&one("\"\\e[31mred\\u0007\"", "{}"));
    assert!(stderr.contains("no kind `\\u{1b}[31mred\\u{7}`"), "{stderr}");
    let (_, stderr) = check(&one("fleet", "{ \"ra\\u009Bte\": 1 }"));
    assert!(stderr.contains("ra\\u{9b}te"), "{stderr}");
    assert!(stderr.chars().all(|c| c == '\n' || !c.is_control()), "{stderr:?}");
    let long = "x".repeat(5000);
    let (_, stderr) = check(&one("fleet", &format!("{{ topic: {long}, {long}: 1 }}")));
    assert!(stderr.lines().all(|line| line.len() < 1000), "{stderr}");
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    let settings = "{ broker: \"mqtt://user:hidden@127.0.0.1:1883\", routes: [ { from: a, to: b } ] }";
    let (code, stderr) = check(&one("mqtt_bridge", settings));
    assert!(code == 2 && stderr.contains("components.it.settings.broker: ") && !stderr.contains("hidden"), "{stderr}");
}

#[test]
fn password_files_without_passwords_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("users");
    for (text, problem) in [
        ("", "it has no users"),
        ("# none\n", "it has no users"),
        ("\nbob\n", "line 2 is not `NAME:HASH`"),
        ("bob:secret\n", "line 1 is not `NAME:HASH`"),
    ] {
        std::fs::write(&path, text).unwrap();
        let settings = format!("{{ listen: 127.0.0.1:1883, password_file: {} }}", path.display());
        let (code, stderr) = check(&one("mqtt_broker", &settings));
        assert!(code == 2 && stderr.contains(problem), "{text:?}: {stderr}");
    }
    let (code, stderr) = check(&one("mqtt_broker", "{ listen: 127.0.0.1:1883, password_file: / }"));
    assert!(code == 2 && stderr.contains("cannot read /: it is a folder"), "{stderr}");
}

#[test]
fn the_wrong_part_of_an_address_is_named() {
    for (address, part) in [
        ("127.0.0.300:1883", "`300` is not within 0 to 255"),
        ("127.0.0.1:99999", "the port `99999` is not within 0 to 65535"),
        ("127.0.0.1", "the port is missing"),
        ("localhost:1883", "`localhost` is a name, not an IP address"),
    ] {
        let text =
            format!("node: edge\ncomponents:\n  it:\n    kind: mqtt_broker\n    settings:\n      listen: {address}\n");
        let (code, stderr) = check(&text);
        assert!(code == 2 && stderr.contains(&format!("`{address}`: {part}")), "{stderr}");
    }
}

#[test]
fn a_cpu_that_the_machine_does_not_have_is_refused() {
    let text = "node: edge\ncomponents:\n  it:\n    kind: fleet\n    run: { thread: { cpus: [ 0, 100000 ] } }\n";
    let (code, stderr) = check(text);
    assert!(
        code == 2 && stderr.contains("components.it.run.thread.cpus.1: this machine has no CPU 100000"),
        "{stderr}"
    );
}

#[test]
fn a_file_with_2000_components_is_accepted() {
    let components: String = (0..2000)
        .map(|index| format!("  c{index}: {{ kind: generator, settings: {{ topic: t{index} }} }}\n"))
        .collect();
    let (code, stderr) = check(&format!("node: edge\ncomponents:\n{components}"));
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn an_address_that_others_can_reach_needs_a_login_or_a_word() {
    let api = |more: &str| {
        let station = "  station: { kind: its_station, settings: { station_id: 1, access: { udp_multicast: {} } } }\n";
        format!(
            "node: edge\ncomponents:\n{station}  api: {{ kind: api, settings: {{ listen: \"0.0.0.0:8080\"{more} }} }}\n"
        )
    };
    let node = |more: &str| format!("node: edge\nhttp: 0.0.0.0:9100\n{more}components:\n  it: {{ kind: fleet }}\n");
    for (open, allowed, key) in [
        (api(""), api(", anonymous: true"), "components.api.settings.listen: 0.0.0.0:8080 is not a loopback address"),
        (node(""), node("http_anonymous: true\n"), "http: 0.0.0.0:9100 is not a loopback address"),
        (
            one("mqttsn_gateway", "{ listen: \"0.0.0.0:1884\", broker: \"mqtt://127.0.0.1\" }"),
            one("mqttsn_gateway", "{ listen: \"0.0.0.0:1884\", anonymous: true, broker: \"mqtt://127.0.0.1\" }"),
            "listen: 0.0.0.0:1884 is not a loopback address",
        ),
        (
            one(
                "coap_server",
                "{ tcp: \"0.0.0.0:5683\", resources: [ { path: a, to: a, type: { opaque: a }, encoding: native } ] }",
            ),
            one(
                "coap_server",
                "{ tcp: \"0.0.0.0:5683\", anonymous: true, resources: [ { path: a, to: a, type: { opaque: a }, encoding: native } ] }",
            ),
            "tcp: 0.0.0.0:5683 is not a loopback address",
        ),
    ] {
        let (code, stderr) = check(&open);
        assert!(code == 2 && stderr.contains(key), "{stderr}");
        let (code, stderr) = check(&allowed);
        assert_eq!((code, stderr.as_str()), (0, ""));
    }
}
