//! Interoperation of a Viaduct station and a v2xflexstack station on one cable.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod network;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use network::{in_own_network, skipped};
use serde_json::Value;
use viaduct_bus::{Publisher, Qos, Recv};
use viaduct_components::KINDS;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_messages::viaduct::its::event_request::Action;
use viaduct_messages::viaduct::its::{Event, EventRequest, MessageType, V2xMessage, V2xSendRequest};
use viaduct_node::{Component, Context, Edges, Graph, Kind, Node, StartError};

/// Time limit for the start of the peer, which compiles its ASN.1 modules for some seconds on a fast machine.
const PATIENCE: Duration = Duration::from_secs(120);
const RELIABLE: Qos = Qos::reliable(4096, Duration::ZERO);
const OURS: u32 = 901;
const THEIRS: u32 = 4711;

/// Returns the Python interpreter with v2xflexstack, or `None` if scripts/setup has not installed it.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = std::env::var_os("VIADUCT_PYTHON_FLEXSTACK")
        .map_or_else(|| root.join(".cache/venv-flexstack/bin/python"), PathBuf::from);
    if python.exists() {
        return Some(python);
    }
    skipped(&format!("{} is not there; `scripts/setup flexstack` makes it", python.display()));
    None
}

/// The process of the peer and its output.
struct Peer {
    process: Child,
    lines: Receiver<Value>,
}

impl Peer {
    fn start(python: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/flexstack_station.py");
        let mut process = Command::new(python)
            .arg(script)
            .args(["veth1", "02:00:00:00:00:11", &THEIRS.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in printed.lines().map_while(Result::ok) {
                // Output of the package itself is not JSON.
                if let Ok(value) = serde_json::from_str(&line)
                    && sender.send(value).is_err()
                {
                    return;
                }
            }
        });
        let peer = Self { process, lines };
        peer.wait_for("that it is ready", |line| line["ready"] == true);
        peer
    }

    fn wait_for(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("the peer did not report {what}"));
            if wanted(&line) {
                return line;
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A component that declares the input topics of the station, on which the test publishes.
struct Feeder;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct FeederSettings {}

impl Component for Feeder {
    type Settings = FeederSettings;

    fn edges(_: &FeederSettings) -> Edges {
        Edges::default()
            .publishes::<V2xSendRequest>("", "its/send", RELIABLE)
            .publishes::<EventRequest>("", "events", RELIABLE)
    }

    fn start(_: FeederSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Ok(Self)
    }
}

/// Starts a station at the other end of the cable. It is a car, because the peer does not know station type 15 (roadside unit) and
/// stops reading at such an address.
fn start(runtime: &tokio::runtime::Runtime, more: &str) -> Node {
    let kinds = [KINDS, &[Kind::of::<Feeder>("feeder", "Feeds the station.", "{}")]].concat();
    let text = format!(
        "node: edge\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: {OURS}\n      \
         station_type: 5\n      access: {{ ethernet: {{ interface: veth0 }} }}\n      position: {{ latitude_deg: 45.5, longitude_deg: 7.25 }}\n      \
         {more}\n  feeder: {{ kind: feeder, settings: {{}} }}\n"
    );
    Node::start(Graph::resolve("edge", &text, &kinds).unwrap(), runtime.handle()).unwrap()
}

#[test]
fn each_station_understands_the_messages_of_the_other() {
    let Some(python) = python() else { return };
    in_own_network("each_station_understands_the_messages_of_the_other", || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = start(&runtime, "topics: { send: its/send }");
        let peer = Peer::start(&python);
        let requests = node.bus().publisher::<V2xSendRequest>("its/send", RELIABLE, "test").unwrap();
        for kind in MessageKind::ALL.into_iter().filter(|kind| sent_by_the_peer(*kind)) {
            let message = check_theirs(&node, kind);
            check_ours(&peer, &requests, &message);
        }
        node.stop();
    });
}

/// Messages generated by the services: a CAM and a VAM by their rules, a DENM for the area of an event.
#[test]
fn the_peer_understands_the_messages_of_the_services() {
    let Some(python) = python() else { return };
    in_own_network("the_peer_understands_the_messages_of_the_services", || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let peer = Peer::start(&python);
        let node = start(&runtime, "services: { ca: { length_m: 4.5 }, va: {}, den: {}, events: events }");
        let events = node.bus().publisher::<EventRequest>("events", RELIABLE, "test").unwrap();
        let event = Event { cause: 94, sub_cause: 2, validity_s: Some(60), ..Event::default() };
        let request =
            EventRequest { name: "car".to_owned(), action: Some(Action::Report(event)), ..EventRequest::default() };
        for (label, place) in [("cam", "referencePosition"), ("vam", "referencePosition"), ("denm", "eventPosition")] {
            if label == "denm" {
                events.publish(request.clone()).unwrap();
            }
            let read = peer.wait_for(&format!("a {label} of ours"), |line| {
                line["message"] == label && line["decoded"]["header"]["stationId"] == OURS
            });
            let found = member(&read, place).unwrap();
            assert_eq!((&found["latitude"], &found["longitude"]), (&455_000_000.into(), &72_500_000.into()), "{read}");
        }
        // Every DENM of the package is a cancellation with a validity of 0, so the DEN service publishes no notice.
        wait_for_ignored(&node, "denm_expired");
        node.stop();
    });
}

/// Waits until the DEN service has ignored a DENM for a reason.
fn wait_for_ignored(node: &Node, reason: &str) {
    let deadline = Instant::now() + PATIENCE;
    let ignored = || {
        let snapshot = node.bus().snapshot();
        let mut rows = snapshot.counters.iter().filter(|row| row.name == "denms_ignored");
        rows.any(|row| row.reason.as_deref() == Some(reason) && row.value > 0)
    };
    while !ignored() {
        assert!(Instant::now() < deadline, "no DENM was ignored as {reason}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the first member with the name at any depth.
fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(name).or_else(|| members.values().find_map(|value| member(value, name))),
        Value::Array(values) => values.iter().find_map(|value| member(value, name)),
        _ => None,
    }
}

/// Returns `true` if the package supports the message kind. It has no infrastructure messages and no CPM.
fn sent_by_the_peer(kind: MessageKind) -> bool {
    ["cam", "denm", "vam"].contains(&kind.label())
}

/// Checks that a message of the peer has its position, and that decoding and encoding returns the same octets.
fn check_theirs(node: &Node, kind: MessageKind) -> Message {
    let label = kind.label();
    let messages = node.bus().subscribe::<V2xMessage>(&format!("its/rx/{label}"), RELIABLE, "test").unwrap();
    let message = match messages.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => (*sample).clone(),
        other => panic!("{label}: {other:?}"),
    };
    assert_eq!((message.station_id, &message.link_address[..]), (THEIRS, &[2, 0, 0, 0, 0, 0x11][..]), "{label}");
    let place = message.place().unwrap();
    let (north, east) = (place.latitude.value(), place.longitude.value());
    assert!((north - 45.5).abs() < 1e-6 && (east - 7.25).abs() < 1e-6, "{label}: {place:?}");
    let decoded = Message::decode(kind, &message.payload).unwrap();
    assert_eq!(decoded.encode().unwrap(), message.payload, "{label}");
    decoded
}

/// Checks that the peer decodes a message of the station: its own message with the other station ID.
fn check_ours(peer: &Peer, requests: &Publisher<V2xSendRequest>, theirs: &Message) {
    let (kind, label) = (theirs.kind(), theirs.kind().label());
    let mut text = Vec::new();
    theirs.write_json(&mut text);
    let mut ours: Value = serde_json::from_slice(&text).unwrap();
    ours["header"]["stationId"] = OURS.into();
    // The order of members does not matter in these messages.
    let payload = Message::from_json(kind, ours.to_string().as_bytes()).unwrap().encode().unwrap();
    let (r#type, payload) = (message_type(kind).into(), Bytes::from(payload));
    requests.publish(V2xSendRequest { r#type, payload, ..V2xSendRequest::default() }).unwrap();
    let read = peer.wait_for(&format!("a {label} of ours"), |line| line["message"] == label);
    assert_eq!(read["decoded"]["header"]["stationId"], OURS, "{label}: {read}");
    let numbers = |message: &Value| {
        let mut numbers = Vec::new();
        collect_numbers(message, &mut numbers);
        numbers
    };
    assert_eq!(numbers(&read["decoded"]), numbers(&ours), "{label}: {read} {ours}");
}

fn message_type(kind: MessageKind) -> MessageType {
    MessageType::from_topic_level(kind.label()).unwrap()
}

/// Collects the integers of a message with their names. Both sides write integers in the same way, unlike choices and bit strings.
fn collect_numbers(value: &Value, out: &mut Vec<(String, i64)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                out.extend(member.as_i64().map(|number| (name.clone(), number)));
                collect_numbers(member, out);
            }
        }
        Value::Array(pair) if is_choice(pair) => {
            out.extend(pair[0].as_str().map(str::to_owned).zip(pair[1].as_i64()));
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_numbers(element, out)),
        _ => {}
    }
    out.sort();
}

/// Returns `true` for a choice. The package writes a choice as a list of name and value, and a bit string as a list of
/// hexadecimal digits and length.
fn is_choice(pair: &[Value]) -> bool {
    let name = pair.first().and_then(Value::as_str).unwrap_or_default();
    pair.len() == 2 && pair[1].is_i64() && name.chars().any(|letter| !letter.is_ascii_hexdigit())
}
