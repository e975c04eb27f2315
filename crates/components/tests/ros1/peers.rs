//! Programs of ROS 1: the master of Debian, a node in C++ that is compiled once, and a node in Python.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::support::{PATIENCE, eventually, free_port, has, skipped};

/// The folder in which Debian installs packages of its Python.
const PYTHON_PACKAGES: &str = "/usr/lib/python3/dist-packages";

/// Returns `true` if ROS 1 is installed, and reports it otherwise.
pub(crate) fn has_ros() -> bool {
    if !has("rosmaster") || !has("g++") || !has("pkg-config") {
        return false;
    }
    let found =
        Path::new("/usr/include/ros/ros.h").is_file() && Path::new("/usr/include/sensor_msgs/PointCloud2.h").is_file();
    if !found {
        skipped("`libroscpp-dev` or `libsensor-msgs-dev` is not installed");
    }
    found
}

/// Returns `true` if ROS 1 is installed with Python, and reports it otherwise.
pub(crate) fn has_rospy() -> bool {
    let packages = ["rospy", "std_msgs", "sensor_msgs"].map(|name| format!("{PYTHON_PACKAGES}/{name}"));
    let missing = packages.iter().find(|folder| !Path::new(folder).is_dir());
    if let Some(folder) = missing {
        skipped(&format!("{folder} is not installed (`python3-rospy`, `python3-std-msgs`, `python3-sensor-msgs`)"));
    }
    missing.is_none() && has("rosmaster")
}

/// Returns the node in C++.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros1/peer.cpp");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (program, started) = (folder.join("ros1-peer"), folder.join(format!("ros1-peer-{}", std::process::id())));
        let time = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        if time(&program).is_some_and(|built| Some(built) > time(&source)) {
            return program;
        }
        let flags =
            Command::new("pkg-config").args(["--cflags", "--libs", "roscpp", "sensor_msgs", "std_msgs"]).output();
        let flags = String::from_utf8(flags.unwrap().stdout).unwrap();
        let mut compiler = Command::new("g++");
        compiler.args(["-O1", "-std=c++17"]).arg(&source).arg("-o").arg(&started).args(flags.split_whitespace());
        let done = compiler.args(["-lboost_system", "-lboost_thread", "-lpthread"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::rename(&started, &program).unwrap();
        program
    })
}

/// A ROS master at a port of its own.
pub(crate) struct Master {
    port: u16,
    running: Option<Child>,
}

impl Master {
    /// Chooses a port and starts nothing.
    pub(crate) fn reserve() -> Self {
        Self { port: free_port(), running: None }
    }

    pub(crate) fn start() -> Self {
        let mut master = Self::reserve();
        master.run();
        master
    }

    pub(crate) fn run(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("rosmaster");
        command.args(["--core", "-p", &port]).env("ROS_HOSTNAME", "127.0.0.1").env("ROS_MASTER_URI", self.address());
        self.running = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        eventually("the ROS master listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.kill();
            let _ = running.wait();
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running node.
pub(crate) struct Peer {
    child: Child,
    lines: Receiver<String>,
}

impl Peer {
    pub(crate) fn start(master: &Master, arguments: &[&str]) -> Self {
        Self::run(Command::new(program()), master, arguments)
    }

    /// Starts the node in Python. Another Python than that of Debian has no `rospy`.
    pub(crate) fn python(master: &Master, arguments: &[&str]) -> Self {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros1/peer.py"));
        Self::run(command, master, arguments)
    }

    fn run(mut command: Command, master: &Master, arguments: &[&str]) -> Self {
        command.args(arguments).env("ROS_HOSTNAME", "127.0.0.1").env("ROS_MASTER_URI", master.address());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for the next lines of output.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let next = || self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        (0..count).map(|index| next().unwrap_or_else(|_| panic!("only {index} of {count} lines arrive"))).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
