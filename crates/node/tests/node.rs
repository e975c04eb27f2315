//! A node with test components: start, stop, failures, and mistakes that are found before the start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Runtime;
use viaduct_bus::{Publisher, Qos};
use viaduct_messages::foxglove::{LocationFix, Log};
use viaduct_node::{
    Checks, Component, Context, Edges, FailureCause, Graph, Kind, Node, NodeError, Resource, SettingError, StartError,
};

/// Publishes `count` logs, and then waits, panics or fails as its settings demand.
struct Source {
    publisher: Publisher<Log>,
    left: u32,
    then: Then,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SourceSettings {
    /// Topic of the logs.
    topic: String,
    /// Number of logs.
    #[serde(default)]
    count: u32,
    /// Behaviour after the last log.
    #[serde(default)]
    then: Then,
    /// Address on which it claims to listen.
    listen: Option<SocketAddr>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Then {
    #[default]
    Rest,
    Panic,
    Fail,
    PanicInIo,
    RefuseToStart,
    PanicAtStart,
    /// Work for longer than a timer period, and publish one more log.
    Overload,
    /// Block in a callback for longer than a stop may take.
    Hang,
}

impl Component for Source {
    type Settings = SourceSettings;

    fn check(settings: &SourceSettings) -> Result<(), SettingError> {
        if settings.count > 1000 { Err(SettingError::new("count", "more than 1000")) } else { Ok(()) }
    }

    fn edges(settings: &SourceSettings) -> Edges {
        let edges = Edges::default().publishes::<Log>("topic", &settings.topic, RELIABLE);
        match settings.listen {
            Some(address) => edges.takes(Resource::TcpListen { address, setting: "listen".into() }),
            None => edges,
        }
    }

    fn start(settings: SourceSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        if settings.then == Then::RefuseToStart {
            return Err(StartError::Other("no camera at /dev/video7".into()));
        }
        assert!(settings.then != Then::PanicAtStart, "no such camera");
        if settings.then == Then::PanicInIo {
            context.spawn_io(async { if true { panic!("in I/O") } else { Ok::<(), String>(()) } });
        }
        context.every(Duration::from_millis(1), Self::tick);
        Ok(Self { publisher: context.publisher(&settings.topic, RELIABLE)?, left: settings.count, then: settings.then })
    }
}

const RELIABLE: Qos = Qos::reliable(4, Duration::from_secs(10));

impl Source {
    fn tick(&mut self, out: &mut viaduct_node::CallbackContext) {
        while self.left > 0 {
            self.left -= 1;
            self.publisher.publish(Log::default()).unwrap();
        }
        match self.then {
            Then::Panic => panic!("the source is broken"),
            Then::Fail => out.fail("the sensor is gone"),
            Then::Overload => {
                std::thread::sleep(Duration::from_millis(4));
                self.publisher.publish(Log::default()).unwrap();
            }
            Then::Hang => std::thread::sleep(2 * viaduct_node::STOP_TIME_MAX),
            _ => {}
        }
    }
}

/// Counts logs slowly, and reports the count when it stops.
struct Sink {
    seen: u32,
    settings: SinkSettings,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SinkSettings {
    /// Topic to read.
    from: String,
    /// Name in the report.
    #[serde(default)]
    test: String,
    /// `true` if `stop` panics.
    #[serde(default)]
    panic_at_stop: bool,
}

static SEEN: Mutex<Vec<(String, u32)>> = Mutex::new(Vec::new());

impl Component for Sink {
    type Settings = SinkSettings;

    fn edges(settings: &SinkSettings) -> Edges {
        Edges::default().reads::<Log>("from", &settings.from, RELIABLE)
    }

    fn start(settings: SinkSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let logs = context.subscribe::<Log>(&settings.from, RELIABLE)?;
        let counter = context.counter("seen");
        context.on(logs, move |sink, _, _| {
            std::thread::sleep(Duration::from_micros(200));
            counter.increment();
            sink.seen += 1;
        });
        let (mut stop, farewell) = (context.stop(), format!("{} farewell", settings.test));
        context.spawn_io(async move {
            stop.asked().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            SEEN.lock().unwrap().push((farewell, 0));
            Ok::<(), String>(())
        });
        Ok(Self { seen: 0, settings })
    }

    fn stop(&mut self) {
        SEEN.lock().unwrap().push((self.settings.test.clone(), self.seen));
        assert!(!self.settings.panic_at_stop, "the file is gone");
    }
}

/// Publishes a type other than logs.
struct Gps;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GpsSettings {}

impl Component for Gps {
    type Settings = GpsSettings;

    fn edges(_: &GpsSettings) -> Edges {
        Edges::default().publishes::<LocationFix>("", "gps/fix", Qos::sensor_data())
    }

    fn start(_: GpsSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Ok(Self)
    }
}

const KINDS: [Kind; 3] = [
    Kind::of::<Source>("source", "Publishes logs.", "topic: log"),
    Kind::of::<Sink>("sink", "Counts logs.", "from: log"),
    Kind::of::<Gps>("gps", "Publishes positions.", ""),
];

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn start(runtime: &Runtime, text: &str) -> Result<Node, NodeError> {
    Node::start(Graph::resolve("test.yaml", text, &KINDS).unwrap(), runtime.handle())
}

/// Stops the node without a time limit, because a busy machine may need longer than the usual limit. Returns `true` if
/// every queue was drained.
fn stops_clean(node: Node) -> bool {
    node.stop_by(std::time::Instant::now() + Duration::from_secs(60)).is_clean
}

fn refused(text: &str) -> String {
    Graph::resolve("test.yaml", text, &KINDS).err().expect("is accepted").to_string()
}

fn pair(source: &str, sink: &str) -> String {
    format!(
        "node: test\ncomponents:\n  a-sink: {{ kind: sink, settings: {{ from: log, {sink} }} }}\n  \
         z-source: {{ kind: source, settings: {{ topic: log, {source} }} }}\n"
    )
}

#[test]
fn a_stop_drains_every_queue_before_the_last_call() {
    let runtime = runtime();
    let node = start(&runtime, &pair("count: 1000", "test: drained")).unwrap();
    // The source publishes in its first callback, which may still run when the node stops.
    while node.bus().snapshot().topics[0].published < 10 {
        std::thread::yield_now();
    }
    assert!(stops_clean(node));
    assert!(SEEN.lock().unwrap().contains(&("drained".into(), 1000)));
}

#[test]
fn a_panic_in_a_callback_is_reported_with_the_component() {
    let runtime = runtime();
    let mut node = start(&runtime, &pair("then: panic", "test: x")).unwrap();
    let failure = runtime.block_on(node.failed());
    assert_eq!(failure.to_string(), "component `z-source` panicked: the source is broken");
    assert!(node.stop() || failure.cause == FailureCause::Panic("the source is broken".into()));
}

#[test]
fn a_panic_in_io_and_a_failure_are_reported_too() {
    let runtime = runtime();
    for (then, expected) in [
        ("panic_in_io", "component `z-source` panicked: in I/O"),
        ("fail", "component `z-source` failed: the sensor is gone"),
    ] {
        let mut node = start(&runtime, &pair(&format!("then: {then}"), "test: x")).unwrap();
        assert_eq!(runtime.block_on(node.failed()).to_string(), expected);
        node.stop();
    }
}

#[test]
fn a_component_that_does_not_start_is_reported_and_the_others_stop() {
    let runtime = runtime();
    let error = start(&runtime, &pair("then: refuse_to_start", "test: stopped-again")).err().unwrap();
    assert_eq!(error.to_string(), "test.yaml: component `z-source` does not start: no camera at /dev/video7");
    assert!(SEEN.lock().unwrap().contains(&("stopped-again".into(), 0)));
}

#[test]
fn a_timer_that_is_always_due_does_not_starve_the_others() {
    let runtime = runtime();
    let node = start(&runtime, &pair("count: 3, then: overload", "test: overload")).unwrap();
    let bus = node.bus().clone();
    while bus.snapshot().topics[0].published < 10 {
        std::thread::yield_now();
    }
    assert!(stops_clean(node), "the queue was not drained");
    let published = bus.snapshot().topics[0].published as u32;
    assert!(SEEN.lock().unwrap().contains(&("overload".into(), published)));
}

#[test]
fn a_component_that_does_not_stop_does_not_use_the_time_of_the_others() {
    let runtime = runtime();
    let text = pair("count: 3, then: hang", "test: share");
    let node = start(&runtime, &text).unwrap();
    while node.bus().snapshot().topics[0].published < 3 {
        std::thread::yield_now();
    }
    let began = std::time::Instant::now();
    assert!(!node.stop());
    assert!(began.elapsed() < 2 * viaduct_node::STOP_TIME_MAX);
    let seen = SEEN.lock().unwrap();
    assert!(seen.contains(&("share farewell".into(), 0)), "the I/O of the second was cut off");
    assert!(seen.contains(&("share".into(), 3)));
}

#[test]
fn a_panic_at_the_start_names_the_component_and_stops_the_others() {
    let runtime = runtime();
    let error = start(&runtime, &pair("then: panic_at_start", "test: start-panic")).err().unwrap();
    assert_eq!(error.to_string(), "test.yaml: component `z-source` does not start: panicked: no such camera");
    assert!(SEEN.lock().unwrap().contains(&("start-panic".into(), 0)));
}

#[test]
fn a_panic_at_the_stop_leaves_the_others_to_be_stopped() {
    let runtime = runtime();
    let text = format!(
        "{}  b-sink: {{ kind: sink, settings: {{ from: log, test: stop-panic-other }} }}\n",
        pair("count: 3", "test: stop-panic, panic_at_stop: true")
    );
    assert!(!start(&runtime, &text).unwrap().stop());
    let seen = SEEN.lock().unwrap();
    let stopped = |test: &str| seen.iter().any(|(name, _)| name == test);
    assert!(stopped("stop-panic") && stopped("stop-panic-other"));
}

#[test]
fn the_http_endpoint_shows_health_metrics_and_topics() {
    let runtime = runtime();
    let node = start(&runtime, &format!("http: 127.0.0.1:0\n{}", pair("count: 7", "test: http"))).unwrap();
    let address = node.http_address().unwrap();
    assert_eq!(get(address, "/healthz").1, "ok\n");
    let paths = get(address, "/").1;
    for path in paths.lines().filter_map(|line| line.split(' ').next()).filter(|path| *path != "/topics/echo") {
        assert!(get(address, path).0.starts_with("HTTP/1.1 200"), "{path}");
    }
    assert_eq!(paths.lines().count(), 4, "{paths}");
    while !get(address, "/metrics").1.contains("viaduct_component_seen_total{node=\"test\",component=\"a-sink\"} 7") {
        std::thread::yield_now();
    }
    let metrics = get(address, "/metrics").1;
    assert!(metrics.contains("viaduct_topic_published_total{node=\"test\",topic=\"log\"} 7"), "{metrics}");
    assert!(
        metrics.contains("viaduct_hop_latency_seconds_bucket{")
            && metrics.contains("viaduct_hop_latency_quantile_seconds{"),
        "{metrics}"
    );
    let topics: serde_json::Value = serde_json::from_str(&get(address, "/topics").1).unwrap();
    assert_eq!(topics["topics"][0]["type"], "foxglove.Log");
    assert_eq!(topics["topics"][0]["subscriptions"][0]["delivered"], 7);
    assert!(get(address, "/nothing").0.contains("404"));
    node.stop();
}

/// Returns the status line and the body of a GET.
fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn a_port_that_is_in_use_is_reported_with_its_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = format!(
        "node: a\ncomponents:\n  s:\n    kind: source\n    settings:\n      topic: log\n      listen: {address}\n"
    );
    let files = [("a.yaml".to_owned(), text)];
    assert!(Graph::resolve_all(&files, &KINDS, Checks::Machine).is_ok());
    let error = Graph::resolve_all(&files, &KINDS, Checks::Ports).err().unwrap().to_string();
    assert!(
        error.starts_with(&format!("a.yaml:7:7: components.s.settings.listen: cannot listen on {address}: ")),
        "{error}"
    );
}

#[test]
fn invalid_graphs_are_rejected_with_the_key() {
    let two_listen = "node: a\ncomponents:\n  s: { kind: source, settings: { topic: log, listen: 127.0.0.1:7001 } }\n  t: { kind: source, settings: { topic: log, listen: 0.0.0.0:7001 } }\n";
    for (text, expected) in [
        (
            "node: a\ncomponents:\n  s: { kind: sinc, settings: { from: log } }\n",
            "test.yaml:3:8: components.s.kind: there is no kind `sinc`; did you mean `sink`?",
        ),
        (
            "node: a\ncomponents:\n  s: { kind: sink, settings: { from: log } }\n",
            "test.yaml:3:32: components.s.settings.from: no component of the node publishes `log`; it publishes nothing",
        ),
        (
            "node: a\ncomponents:\n  g: { kind: gps }\n  s: { kind: sink, settings: { from: gps/fix } }\n",
            "test.yaml:4:32: components.s.settings.from: `g` publishes `gps/fix` as `foxglove.LocationFix`, not `foxglove.Log`",
        ),
        (
            "node: a\ncomponents:\n  g: { kind: gps }\n  s: { kind: source, settings: { topic: gps/fix } }\n",
            "test.yaml:4:34: components.s.settings.topic: `g` publishes `gps/fix` as `foxglove.LocationFix`, but this output has the type `foxglove.Log`",
        ),
        (
            "node: a\ncomponents:\n  s: { kind: source, settings: { topic: log, count: 2000 } }\n",
            "test.yaml:3:46: components.s.settings.count: more than 1000",
        ),
        (
            "node: a\ncomponents:\n  s: { kind: source }\n",
            "test.yaml:3:3: components.s.settings: missing field `topic`",
        ),
        (
            "node: a\ncomponents:\n  s: { kind: source, settings: { topic: log, speed: 3 } }\n",
            "test.yaml:3:46: components.s.settings.speed: unknown field `speed`, expected one of topic, count, then, listen",
        ),
        (
            two_listen,
            "test.yaml:4:46: components.t.settings.listen: TCP 0.0.0.0:7001 is already taken by components.s.settings.listen",
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
}

/// Returns the file of a source and a sink. `run` is the executor of the sink, `executors` the section before the
/// components.
fn with_executors(executors: &str, run: &str) -> String {
    format!(
        "node: test\nexecutors: {{ {executors} }}\ncomponents:\n  a-sink: {{ kind: sink, {run}, settings: {{ from: log }} }}\n  \
         z-source: {{ kind: source, settings: {{ topic: log, count: 3 }} }}\n"
    )
}

#[test]
fn invalid_executors_are_rejected_with_the_key() {
    let two = "control: { thread: { policy: fifo, priority: 60 } }, vision: { pool: 4 }";
    for (executors, run, expected) in [
        (
            two,
            "run: { executor: controll }",
            "test.yaml:4:32: components.a-sink.run.executor: there is no executor `controll`; the node has `control`, `vision` under `executors`",
        ),
        (
            "",
            "run: { executor: control }",
            "test.yaml:4:32: components.a-sink.run.executor: there is no executor `control`; the node has none under `executors`",
        ),
        (
            two,
            "run: { executor: control }",
            "test.yaml:2:67: executors.vision: no component uses this executor; to use it, set `run: { executor: vision }`",
        ),
        (
            "control: { thread: { policy: fifo } }",
            "run: { executor: control }",
            "test.yaml:2:25: executors.control.thread.priority: the policies fifo and rr need a priority from 1 to 99",
        ),
        (
            "vision: { pool: 65 }",
            "run: { executor: vision }",
            "test.yaml:2:24: executors.vision.pool: 65 is not within 1 to 64",
        ),
        (
            "control: { thread: { prefault_stack_bytes: 67108865 } }",
            "run: { executor: control }",
            "test.yaml:2:35: executors.control.thread.prefault_stack_bytes: 67108865 is more than 67108864",
        ),
        ("", "budget_ms: 0", "test.yaml:4:25: components.a-sink.budget_ms: 0 is not above 0 and up to 60000"),
        ("", "budget_ms: .nan", "test.yaml:4:25: components.a-sink.budget_ms: NaN is not above 0 and up to 60000"),
        (
            "",
            "run: { thread: { priority: 3 } }",
            "test.yaml:4:42: components.a-sink.run.thread.priority: only the policies fifo and rr have a priority",
        ),
    ] {
        assert_eq!(refused(&with_executors(executors, run)), expected);
    }
}

#[test]
fn components_share_a_named_executor_and_have_their_own_metrics() {
    let runtime = runtime();
    for executors in ["control: { thread: { policy: rr, priority: 1, cpus: [0] } }", "control: { pool: 2 }"] {
        let text =
            format!("http: 127.0.0.1:0\n{}", with_executors(executors, "budget_ms: 0.05, run: { executor: control }"));
        let node = start(&runtime, &text).unwrap();
        let threads: Vec<_> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .collect();
        assert!(threads.iter().any(|name| name.starts_with("control")), "{threads:?}");
        let labels = "node=\"test\",component=\"a-sink\",callback=\"log\"";
        // The sink sleeps for 200 us in each of its three callbacks.
        let overruns = format!("viaduct_callback_overruns_total{{{labels}}} 3");
        let metrics = || get(node.http_address().unwrap(), "/metrics").1;
        while !metrics().contains(&overruns) {
            std::thread::yield_now();
        }
        let metrics = metrics();
        assert!(metrics.contains(&format!("viaduct_callback_run_seconds_count{{{labels}}} 3")), "{metrics}");
        assert!(metrics.contains(&format!("viaduct_callback_budget_seconds{{{labels}}} 0.00005")), "{metrics}");
        let timer = "component=\"z-source\",callback=\"every 1ms\"";
        assert!(
            metrics.contains(&format!("viaduct_timer_lateness_seconds_count{{node=\"test\",{timer}}}")),
            "{metrics}"
        );
        assert!(metrics.contains(&format!("viaduct_timer_skipped_total{{node=\"test\",{timer}}}")), "{metrics}");
        assert!(stops_clean(node));
    }
}

#[test]
fn two_nodes_in_one_process_do_not_share_names_or_sockets() {
    let file = |name: &str, node: &str| {
        (name.to_owned(), format!("node: {node}\nhttp: 127.0.0.1:7002\ncomponents:\n  g: {{ kind: gps }}\n"))
    };
    let refused =
        |files: &[(String, String)]| Graph::resolve_all(files, &KINDS, Checks::File).err().unwrap().to_string();
    assert_eq!(
        refused(&[file("a.yaml", "x"), file("b.yaml", "x")]),
        "b.yaml:1:1: node: `x` is already the name of the node in a.yaml\n\
         b.yaml:2:1: http: TCP 127.0.0.1:7002 is already taken by http in a.yaml"
    );
    assert_eq!(
        refused(&[file("a.yaml", "x"), file("b.yaml", "y")]),
        "b.yaml:2:1: http: TCP 127.0.0.1:7002 is already taken by http in a.yaml"
    );
}

#[test]
fn a_publisher_that_would_wait_for_its_own_thread_is_rejected() {
    let both = |executors: &str, run: &str| {
        format!(
            "node: test\n{executors}\ncomponents:\n  a: {{ kind: source, {run}, settings: {{ topic: log }} }}\n  b: {{ kind: sink, {run}, \
             settings: {{ from: log }} }}\n"
        )
    };
    for (executors, run) in [
        ("executors: { one: { thread: {} } }", "run: { executor: one }"),
        ("executors: { one: { pool: 1 } }", "run: { executor: one }"),
        ("pool_threads: 1", "run: pool"),
    ] {
        let error = refused(&both(executors, run));
        assert!(
            error.ends_with(
                "components.b.run: it runs on the same thread as `a`, which waits on `log` until `b` has room; give one of them \
                 another thread"
            ),
            "{error}"
        );
    }
    for (executors, run) in [("executors: { two: { pool: 2 } }", "run: { executor: two }"), ("", "run: { thread: {} }")]
    {
        let text = both(executors, run);
        assert!(Graph::resolve("test.yaml", &text, &KINDS).is_ok(), "{text}");
    }
}
