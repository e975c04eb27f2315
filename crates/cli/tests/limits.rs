//! Limits of a node's listeners, at the process as a user starts it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A node whose process may open 256 files.
struct Process {
    child: Child,
    log: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Process {
    fn start(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (file, log) = (directory.path().join("node.yaml"), directory.path().join("log"));
        std::fs::write(&file, config).unwrap();
        let child = Command::new("sh")
            .args(["-c", "ulimit -n 256; exec \"$0\" run \"$1\" 2>\"$2\""])
            .args([env!("CARGO_BIN_EXE_viaduct"), file.to_str().unwrap(), log.to_str().unwrap()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, log, _directory: directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Returns the status line of the answer, or `None` without one.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.lines().next().map(str::to_owned)
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "it does not happen that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The other listeners accept clients while one is flooded, and the log says so once per second.
#[test]
fn idle_connections_to_one_port_leave_the_others_open() {
    let [http, api] = [free_address(), free_address()];
    let process = Process::start(&format!(
        "node: edge\nhttp: {http}\ncomponents:\n  fleet: {{ kind: fleet, settings: {{ udp_multicast: {{ interface: 127.0.0.1 }} }} }}\n  \
         station: {{ kind: its_station, settings: {{ station_id: 1, access: {{ udp_multicast: {{ interface: 127.0.0.1 }} }} }} }}\n  \
         api: {{ kind: api, settings: {{ listen: \"{api}\" }} }}\n"
    ));
    let ok = Some("HTTP/1.1 200 OK".to_owned());
    eventually("the node answers", || get(http, "/healthz") == ok && get(api, "/v1/latest") == ok);
    for (flooded, other, path) in [(http, api, "/v1/latest"), (api, http, "/healthz")] {
        let idle: Vec<TcpStream> = (0..400).filter_map(|_| TcpStream::connect(flooded).ok()).collect();
        assert!(idle.len() >= 200, "{}", idle.len());
        eventually("the other port answers", || get(other, path) == ok);
        drop(idle);
        eventually("the port answers again", || get(http, "/healthz") == ok && get(api, "/v1/latest") == ok);
    }
    let log = process.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("connections are refused")).collect();
    assert!((1..=20).contains(&lines.len()), "{log}");
    assert!(lines.iter().all(|line| line.contains("limit=") && line.contains("connections=")), "{lines:?}");
}
