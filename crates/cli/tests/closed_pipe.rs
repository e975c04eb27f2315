//! Every command that prints ends silently if the reader closes the pipe (`viaduct kinds | head -1`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::{PipeWriter, pipe};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use tokio::runtime::Runtime;
use viaduct_node::{Graph, Kind, Node};

/// A node without a socket.
const COMPONENTS: &str = "node: bus\ncomponents:\n  \
                          radar: { kind: generator, settings: { topic: radar, octets: 4096, rate_hz: 50 } }\n  \
                          logger: { kind: sink, settings: { topics: [ radar ] } }\n";

/// A small node in this process, for the commands that send requests to a node.
struct Running {
    node: Option<Node>,
    address: SocketAddr,
    _runtime: Runtime,
}

impl Running {
    fn start() -> Self {
        let kinds: Vec<Kind> = [viaduct_components::KINDS, viaduct_backend::KINDS].concat();
        let text = format!("http: 127.0.0.1:0\n{COMPONENTS}");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = Node::start(Graph::resolve("bus.yaml", &text, &kinds).unwrap(), runtime.handle()).unwrap();
        Self { address: node.http_address().unwrap(), node: Some(node), _runtime: runtime }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.node.take().map(Node::stop);
    }
}

/// Returns the writing end of a pipe whose reading end is closed.
fn closed_pipe() -> PipeWriter {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer
}

/// Writes the config file of a small node and returns its path.
fn config_in(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("bus.yaml");
    std::fs::write(&path, COMPONENTS).unwrap();
    path.to_str().unwrap().to_owned()
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Runs a command with its stdout closed. Returns the exit code and stderr.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let child = viaduct(arguments).stdout(closed_pipe()).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn viaduct(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).env_remove("VIADUCT_NODE");
    command
}

#[test]
fn no_command_panics_if_its_stdout_is_closed() {
    let running = Running::start();
    let node = format!("http://{}", running.address);
    let folder = tempfile::tempdir().unwrap();
    let file = config_in(&folder);
    let ports: Vec<String> = std::iter::repeat_with(free_port).take(5).collect();
    let [port, mqtt_port, group_port, node_port, vehicles_node_port] = ports.try_into().unwrap();
    let digits = |line: &str| line.chars().filter(char::is_ascii_hexdigit).collect::<String>();
    let frame: String = include_str!("../../../testdata/its/cam.hex")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(digits)
        .collect();
    let commands: Vec<Vec<&str>> = vec![
        vec!["--help"],
        vec!["--version"],
        vec!["help", "run"],
        vec!["kinds"],
        vec!["kinds", "its_station"],
        vec!["kinds", "its_station", "--json"],
        vec!["kinds", "--json"],
        vec!["kinds", "--markdown"],
        vec!["schema"],
        vec!["completions", "bash"],
        vec!["check", &file],
        vec!["its", "decode", &frame],
        vec!["its", "decode", &frame, "--json-lines"],
        vec!["demo", "--print-config"],
        vec!["topic", "list", "--node", &node],
        vec!["topic", "list", "--json", "--node", &node],
        vec!["topic", "info", "radar", "--node", &node],
        vec!["topic", "info", "radar", "--json", "--node", &node],
        vec!["topic", "hz", "radar", "--node", &node],
        vec!["topic", "latency", "--node", &node],
        vec!["topic", "latency", "--json", "--node", &node],
        vec!["topic", "echo", "radar", "--node", &node],
        vec!["topic", "echo", "radar", "--json", "--node", &node],
        vec![
            "demo",
            "--headless",
            "--vehicles",
            "1",
            "--seconds",
            "5",
            "--port",
            &port,
            "--mqtt-port",
            &mqtt_port,
            "--group-port",
            &group_port,
            "--node-port",
            &node_port,
            "--vehicles-node-port",
            &vehicles_node_port,
        ],
    ];
    for arguments in commands {
        let (code, stderr) = run(&arguments);
        assert!(code == Some(0) && !stderr.contains("panicked"), "{arguments:?}: {code:?}: {stderr}");
    }
}

#[test]
fn no_command_panics_if_its_stderr_is_closed() {
    for (arguments, code) in [
        (&["check", "no/such.yaml"][..], 2),
        (&["kinds", "no_such_kind"], 1),
        (&["its", "decode", "no/such.pcap"], 1),
        (&["topic", "list", "--node", "127.0.0.1:1"], 1),
    ] {
        let status = viaduct(arguments).stdout(closed_pipe()).stderr(closed_pipe()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_node_whose_stderr_is_closed_runs_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = viaduct(&["run", &config_in(&folder), "--log", "debug"]).stderr(closed_pipe()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let ended = node.try_wait().unwrap();
    node.kill().unwrap();
    node.wait().unwrap();
    assert_eq!(ended, None);
}
