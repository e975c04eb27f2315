//! The memory settings of a node take effect in the process. The only test of its process, because they apply to all of
//! it.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::sync::Mutex;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Qos, memory};
use viaduct_messages::foxglove::PointCloud;
use viaduct_node::{Component, Context, Edges, Graph, Kind, Loans, Node, StartError};

/// Uses much of its stack in a callback, and counts the page faults.
struct Deep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeepSettings {}

static FAULTS: Mutex<Option<u64>> = Mutex::new(None);

impl Component for Deep {
    type Settings = DeepSettings;

    fn edges(_: &DeepSettings) -> Edges {
        Edges::default().publishes::<PointCloud>("", "points", Qos::keep_last(1)).loans(Loans::one(1 << 20))
    }

    fn start(_: DeepSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        context.every(Duration::from_millis(1), |_, _| {
            let before = page_faults();
            use_stack(512 * 1024);
            let after = page_faults();
            FAULTS.lock().unwrap().get_or_insert(after - before);
        });
        Ok(Self)
    }
}

/// Returns the number of minor page faults of this thread (proc_pid_stat(5)).
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[inline(never)]
fn use_stack(octets: usize) {
    let mut frame = [1_u8; 4096];
    std::hint::black_box(&mut frame);
    if octets > 4096 {
        use_stack(octets - 4096);
    }
    std::hint::black_box(&mut frame);
}

fn locked_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Runs a node with these settings. Returns the page faults of its callback, and the bytes of its pool in huge pages.
fn run(memory: &str, executor: &str) -> (u64, usize) {
    const KINDS: [Kind; 1] = [Kind::of::<Deep>("deep", "Uses its stack.", "{}")];
    let text = format!(
        "node: test\nmemory: {{ {memory} }}\ncomponents: {{ deep: {{ kind: deep, run: {executor}, settings: {{}} }} }}\n"
    );
    *FAULTS.lock().unwrap() = None;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let node = Node::start(Graph::resolve("test.yaml", &text, &KINDS).unwrap(), runtime.handle()).unwrap();
    let faults = loop {
        match *FAULTS.lock().unwrap() {
            Some(faults) => break faults,
            None => std::thread::yield_now(),
        }
    };
    let region = node.bus().snapshot().topics[0].pool.as_ref().unwrap().region.unwrap();
    node.stop();
    (faults, region.huge_page_bytes)
}

/// One test for all keys, because locked memory has no page faults.
#[test]
fn the_memory_settings_take_effect() {
    // Reading the counter takes a page or two itself.
    assert!(run("", "{ thread: { prefault_stack_bytes: 786432 } }").0 < 32);
    assert!(run("", "{ thread: { prefault_stack_octets: 786432 } }").0 < 32, "the old name of the setting");
    assert!(run("", "{ thread: {} }").0 > 100, "a new stack has no pages");
    let always = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    assert!(run("huge_pages: false", "pool").1 == 0 || always.contains("[always]"));
    assert_eq!(locked_kib(), 0);
    run("lock: true, keep_freed: true", "pool");
    let locked = locked_kib() > 0;
    assert_eq!(locked, memory::lock_all().is_ok(), "memory is locked if the process has the permission");
}
