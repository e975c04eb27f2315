//! `viaduct topic` against a running node: output of the subcommands, and errors.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use prost::Message as _;
use serde_json::Value;
use tokio::runtime::Runtime;
use viaduct_bus::{BusSnapshot, Encoded, MessageFormat, Meta, Qos, TypeInfo, UntypedPublisher, clock};
use viaduct_node::{Graph, Kind, Node};

const PATIENCE: Duration = Duration::from_secs(60);

/// A node in this process, and its HTTP endpoint.
struct Running {
    node: Option<Node>,
    address: SocketAddr,
    /// Runtime of the node's I/O, dropped after the node has stopped.
    _runtime: Runtime,
}

impl Running {
    fn start(text: &str) -> Self {
        let kinds: Vec<Kind> = [viaduct_components::KINDS, viaduct_backend::KINDS].concat();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = Node::start(Graph::resolve("bus.yaml", text, &kinds).unwrap(), runtime.handle()).unwrap();
        Self { address: node.http_address().unwrap(), node: Some(node), _runtime: runtime }
    }

    /// Starts the committed example on a free port.
    fn example() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/bus.yaml");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("\nhttp: 127.0.0.1:9472\n"));
        Self::start(&text.replace("\nhttp: 127.0.0.1:9472\n", "\nhttp: 127.0.0.1:0\n"))
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        command(&[arguments, &["--node", &self.url()]].concat())
    }

    /// Runs a command that must succeed, and returns its output.
    fn topic(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let (code, out, stderr) = parts(&output);
        assert_eq!(code, 0, "{arguments:?}: {stderr}");
        out
    }

    fn wait_for(&self, what: &str, enough: impl Fn(&BusSnapshot) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !enough(&self.node().bus().snapshot()) {
            assert!(Instant::now() < deadline, "timeout while waiting for {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of a second in which topics were published and read.
    fn wait_for_a_measured_second(&self) {
        self.wait_for("a measured second", |snapshot| {
            let measured = |end: &viaduct_bus::SubscriptionSnapshot| end.recent.count > 0;
            !snapshot.topics.is_empty()
                && snapshot.topics.iter().all(|topic| topic.rate_hz > 0.0 && topic.subscriptions.iter().all(measured))
        });
    }

    /// Returns the whole response to a GET.
    fn get(&self, path: &str) -> String {
        let mut text = String::new();
        self.open(path).read_to_string(&mut text).unwrap();
        text
    }

    /// Returns a connection on which a GET of a path was sent.
    fn open(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.node.take().map(Node::stop);
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.arg("topic").args(arguments).env_remove("VIADUCT_NODE").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns exit code, stdout and stderr.
fn parts(output: &Output) -> (i32, String, String) {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs a command that must fail, and returns exit code and stderr.
fn refused(mut command: Command) -> (i32, String) {
    let (code, out, stderr) = parts(&command.output().unwrap());
    assert!(code != 0 && out.is_empty(), "{code}: {out}");
    (code, stderr)
}

#[test]
fn a_running_node_is_listed_described_and_measured() {
    let running = Running::example();
    running.wait_for_a_measured_second();

    let listed = running.topic(&["list"]);
    let words: Vec<&str> =
        listed.lines().find(|line| line.contains("lidar/points")).unwrap().split_whitespace().collect();
    assert_eq!(words[..4], ["lidar/points", "foxglove.PointCloud", "lidar", "planner"], "{listed}");
    let topics = json(&running.topic(&["list", "--json"]));
    assert_eq!((topics.as_array().unwrap().len(), &topics[1]["topic"]), (2, &"radar/points".into()));

    let described = running.topic(&["info", "radar/points"]);
    for expected in [
        "foxglove.PointCloud",
        "publishers\n    radar\n",
        "reliability best_effort",
        "logger (radar/*)",
        "planner (radar/points)",
        "p99.9",
    ] {
        assert!(described.contains(expected), "{expected}: {described}");
    }
    assert_eq!(json(&running.topic(&["info", "radar/points", "--json"]))["publishers"][0]["publisher"], "radar");

    // If the machine is stalled for a second, that second has no sample or no interval.
    let mut measured = 0;
    for _ in 0..10 {
        let text = running.topic(&["hz", "radar/points", "--count", "2"]);
        let is = |line: &str| line.contains(" Hz  interval: min ");
        let is_empty_second =
            |line: &str| line.starts_with("no new sample; ") || line.ends_with("interval: none measured");
        assert!(text.lines().count() == 2 && text.lines().all(|line| is(line) || is_empty_second(line)), "{text}");
        measured = text.lines().filter(|line| is(line)).count();
        if measured == 2 {
            break;
        }
    }
    assert_eq!(measured, 2);
    assert!(running.topic(&["hz", "radar/points", "--count", "1", "--total"]).contains(" Hz  interval: min "));

    let latencies = running.topic(&["latency", "--once"]);
    assert!(latencies.contains("total") && latencies.contains("planner") && latencies.contains("logger"));
    assert!(!running.topic(&["latency", "lidar/*", "--count", "1"]).contains("logger"));
    let rows = json(&running.topic(&["latency", "radar/points", "--once", "--json"]));
    let of = |subscriber: &str| rows.as_array().unwrap().iter().find(|row| row["subscriber"] == subscriber).unwrap();
    for subscriber in ["logger", "planner"] {
        let total = &of(subscriber)["total"];
        assert!(total["count"].as_u64().unwrap() > 0 && total["p50_us"].as_f64().unwrap() > 0.0, "{rows}");
    }
}

#[test]
fn samples_are_printed_with_long_fields_cut() {
    let running = Running::example();
    let text = running.topic(&["echo", "lidar/points", "--count", "2", "--truncate-length", "3"]);
    assert_eq!(text.matches("\n---\n").count(), 2, "{text}");
    assert!(text.starts_with("# lidar/points  foxglove.PointCloud  number "), "{text}");
    for expected in
        ["\n# origin ", "\n#   lidar  published +", "\nframe_id: lid <2 more of 5 characters>\n", "- <1 more of 4>\n"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.contains("\ndata: <1048576 octets: 00 00 a0 ...>\n"), "{text}");
    let short = running.topic(&["echo", "radar/*", "--count", "1", "--no-arr"]);
    assert!(short.contains("\nfields: <4 elements>\ndata: <4096 octets>\n"), "{short}");
    let full = running.topic(&["echo", "radar/*", "--count", "1", "--full"]);
    assert!(full.contains("data: <4096 octets: ") && full.len() > 3 * 4096, "{} characters", full.len());
    let lines = running.topic(&["echo", "**", "--count", "3", "--json", "--no-arr"]);
    assert_eq!(lines.lines().count(), 3);
    for line in lines.lines().map(json) {
        assert_eq!((&line["type"], &line["message"]["point_stride"]), (&"foxglove.PointCloud".into(), &16.into()));
        assert!(line["message"].get("data").is_none());
    }
}

/// Returns a type that is not compiled into this program.
fn foreign_type() -> TypeInfo {
    let folder = tempfile::tempdir().unwrap();
    let proto = "syntax = 'proto3'; package acme; message Wheel { uint32 ticks = 1; repeated string tags = 2; }";
    std::fs::write(folder.path().join("wheel.proto"), proto).unwrap();
    let schema = protox::compile(["wheel.proto"], [folder.path()]).unwrap();
    TypeInfo::foreign(MessageFormat::Protobuf, "acme.Wheel", schema.encode_to_vec().into())
}

/// Publishes the same octets until the command ends, and returns its output.
fn output_while_publishing(publisher: &UntypedPublisher, octets: &[u8], mut command: Command) -> Output {
    let running = std::thread::spawn(move || command.output().unwrap());
    while !running.is_finished() {
        let encoded = Encoded::from(bytes::Bytes::copy_from_slice(octets));
        publisher.publish_from(Meta::from_origin(clock::tai()), encoded).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    running.join().unwrap()
}

#[test]
fn an_unknown_type_is_decoded_by_the_schema_in_the_stream() {
    let running = Running::example();
    let publisher =
        running.node().bus().publisher_untyped("acme/wheel", foreign_type(), Qos::sensor_data(), "odometer").unwrap();
    // ticks = 300, tags = ["left"]
    let octets = [0x08, 0xAC, 0x02, 0x12, 4, b'l', b'e', b'f', b't'];
    let echo = running.command(&["echo", "acme/*", "--count", "1"]);
    let (code, text, stderr) = parts(&output_while_publishing(&publisher, &octets, echo));
    assert_eq!(code, 0, "{stderr}");
    assert!(text.starts_with("# acme/wheel  acme.Wheel  number "), "{text}");
    assert!(text.ends_with("\nticks: 300\ntags: [left]\n---\n"), "{text}");
    let echo = running.command(&["echo", "acme/wheel", "--count", "1", "--json"]);
    let (_, line, _) = parts(&output_while_publishing(&publisher, &octets, echo));
    assert_eq!(json(&line)["message"], json(r#"{"ticks":300,"tags":["left"]}"#));
}

#[test]
fn a_fifth_observer_is_rejected_until_one_of_the_four_disconnects() {
    let running = Running::example();
    let mut four: Vec<TcpStream> = (0..4)
        .map(|_| {
            // No sample is sent on this stream, so the node can detect the disconnect only by the closed connection.
            let mut stream = running.open("/topics/echo?pattern=nothing/*");
            let mut status = [0; 15];
            stream.read_exact(&mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 200 OK");
            stream
        })
        .collect();
    let echo = || running.command(&["echo", "radar/points", "--count", "1"]);
    let (code, stderr) = refused(echo());
    assert_eq!(code, 1);
    assert!(stderr.contains("503 Service Unavailable: 4 observers are attached already"), "{stderr}");
    four.pop();
    let deadline = Instant::now() + PATIENCE;
    while !echo().status().unwrap().success() {
        assert!(Instant::now() < deadline, "the disconnected observer still counts");
    }
}

#[test]
fn a_slow_client_receives_its_missed_count_and_delays_no_subscriber() {
    let running = Running::start(
        "node: bus\nhttp: 127.0.0.1:0\ncomponents:\n  \
         lidar: { kind: generator, run: { thread: {} }, settings: { topic: points, octets: 1048576, rate_hz: 40 } }\n  \
         planner: { kind: sink, run: { thread: {} }, settings: { topics: [ points ] } }\n",
    );
    let mut client = running.command(&["echo", "points", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    // The client's output is not read meanwhile, and these samples are more than the buffers in between can hold.
    let published = |snapshot: &BusSnapshot| snapshot.topics[0].published;
    let before = published(&running.node().bus().snapshot());
    running.wait_for("120 clouds", |snapshot| published(snapshot) > before + 120);
    let reported = lines.find_map(|line| json(&line.unwrap())["missed"].as_u64().filter(|missed| *missed > 1));
    assert!(reported.is_some());
    client.kill().unwrap();
    client.wait().unwrap();
    let snapshot = running.node().bus().snapshot();
    let missed = snapshot.counters.iter().find(|count| count.component == "echo" && count.name == "missed").unwrap();
    assert!(Some(missed.value) >= reported, "{missed:?}");
    let planner = snapshot.topics[0].subscriptions.iter().find(|entry| entry.subscriber == "planner").unwrap();
    assert!(planner.delivered > 100, "{planner:?}");
}

#[test]
fn an_unknown_topic_is_reported_with_suggestions() {
    let running = Running::example();
    for arguments in
        [&["info", "lidar/point"][..], &["hz", "lidar/point"], &["latency", "lidar/point"], &["echo", "lidar/point"]]
    {
        let stderr = refused(running.command(arguments));
        let expected = "viaduct: node `bus` has no topic `lidar/point`; did you mean `lidar/points`?\n";
        assert_eq!(stderr, (1, expected.to_owned()), "{arguments:?}");
    }
    let (code, stderr) = refused(running.command(&["echo", "lidar/#"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("`lidar/#` is not a topic name: a level may contain only letters"), "{stderr}");

    let bad = running.get("/topics/echo?pattern=lidar/%23");
    assert!(bad.starts_with("HTTP/1.1 400") && bad.contains("`lidar/#` is not a topic name: "), "{bad}");
    let unknown = running.get("/topics/echo?pattern=no/such");
    assert!(unknown.starts_with("HTTP/1.1 404") && unknown.ends_with("the node has no topic `no/such`\n"), "{unknown}");
    assert!(running.get("/topics/echo").starts_with("HTTP/1.1 400"));
    assert!(!running.topic(&["list"]).contains("no/such"), "a request creates no topic");
}

#[test]
fn the_stream_ends_when_the_node_stops() {
    let mut running = Running::example();
    let mut client = running.command(&["echo", "radar/points"]).spawn().unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(client.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    assert!(first.starts_with("# radar/points"), "{first}");
    let drained = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    assert!(running.node.take().unwrap().stop());
    let (code, _, stderr) = parts(&client.wait_with_output().unwrap());
    drained.join().unwrap().unwrap();
    assert_eq!((code, stderr), (1, format!("viaduct: {}: the node has ended the stream\n", running.url())));
}

#[test]
fn the_node_can_be_set_by_the_environment() {
    let running = Running::example();
    let listed = command(&["list"]).env("VIADUCT_NODE", running.url()).output().unwrap();
    assert!(parts(&listed).1.contains("radar/points"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, stderr) = refused(command(&["list", "--node", &closed]));
    assert_eq!(code, 1);
    assert!(
        stderr.starts_with(&format!("viaduct: no node listens at http://{closed}: Connection refused")),
        "{stderr}"
    );
    assert!(stderr.contains(&format!("does its file have `http: {closed}`?")), "{stderr}");
    assert_eq!(refused(command(&["list", "--node", "https://x"])).0, 2);
}

#[test]
fn a_server_that_is_no_node_is_reported() {
    for (answer, expected) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nnope\n", "/topics: 404 Not Found: nope\n"),
        ("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "/topics: 502 Bad Gateway\n"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "is not a Viaduct node, or has another version"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "is not a Viaduct node, or has another version"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{", "is incomplete"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "does not respond with HTTP"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                request.read_line(&mut line).unwrap();
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let (code, stderr) = refused(command(&["list", "--node", &address]));
        server.join().unwrap();
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains(expected) && stderr.contains(&address), "{expected}: {stderr}");
    }
}
