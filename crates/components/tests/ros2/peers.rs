//! Programs on Cyclone DDS (in C) and Fast DDS (in C++), which are compiled once.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::support::{PATIENCE, has, skipped};

/// An implementation of DDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dds {
    /// Cyclone DDS, with identifiers of 16 octets, as from ROS 2 Iron on.
    Cyclone,
    /// Cyclone DDS, with identifiers of 24 octets, as in ROS 2 Humble.
    CycloneHumble,
    /// Fast DDS.
    Fast,
}

impl Dds {
    /// Returns `true` if the implementation is installed, and reports it otherwise.
    pub(crate) fn is_installed(self) -> bool {
        let (programs, header, package) = match self {
            Self::Cyclone | Self::CycloneHumble => (["gcc", "idlc"], "/usr/include/dds/dds.h", "cyclonedds-dev"),
            Self::Fast => (["g++", "fastddsgen"], "/usr/include/fastdds/rtps/common/Types.h", "libfastrtps-dev"),
        };
        if !programs.into_iter().all(has) {
            return false;
        }
        let found = Path::new(header).is_file();
        if !found {
            skipped(&format!("`{package}` is not installed"));
        }
        found
    }

    /// Returns the peer, and compiles it if its sources have changed.
    fn program(self) -> PathBuf {
        static COMPILING: Mutex<()> = Mutex::new(());
        let _guard = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2");
        let script = match self {
            Self::Cyclone => cyclone(&sources, 16),
            Self::CycloneHumble => cyclone(&sources, 24),
            Self::Fast => fast(&sources),
        };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ros2-{self:?}"));
        let time = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        let changed = ["cyclone.c", "fastdds.cpp", "graph.idl", "ros.idl"].map(|name| time(&sources.join(name)));
        let program = folder.join("peer");
        if time(&program).is_some_and(|built| changed.iter().all(|changed| Some(built) > *changed)) {
            return program;
        }
        std::fs::create_dir_all(&folder).unwrap();
        let done = Command::new("sh").args(["-ec", &script]).current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        program
    }
}

fn cyclone(sources: &Path, gid_octets: usize) -> String {
    let sources = sources.display();
    format!(
        "idlc {sources}/ros.idl; idlc -D GID_OCTETS={gid_octets} {sources}/graph.idl; \
         gcc -O1 -I. {sources}/cyclone.c ros.c graph.c -o new -lddsc; mv new peer"
    )
}

fn fast(sources: &Path) -> String {
    let sources = sources.display();
    format!(
        "cp {sources}/ros.idl .; fastddsgen -replace ros.idl; \
         g++ -O1 -std=c++17 -I. {sources}/fastdds.cpp ros.cxx rosPubSubTypes.cxx -o new -lfastrtps -lfastcdr -lpthread; \
         mv new peer"
    )
}

/// A domain that no other test uses.
pub(crate) struct Domain {
    pub(crate) number: u16,
    /// Holds a port of the domain, of a participant index that is never reached.
    _claim: UdpSocket,
}

impl Domain {
    /// Claims a domain. Those above 100 have ports that Linux gives to other programs.
    pub(crate) fn claim() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = u16::try_from(std::process::id() % 100).unwrap();
        loop {
            let number = 1 + (first + NEXT.fetch_add(1, Ordering::SeqCst)) % 100;
            if let Ok(claim) = UdpSocket::bind(("127.0.0.1", 7400 + 250 * number + 10 + 2 * 110)) {
                return Self { number, _claim: claim };
            }
        }
    }
}

/// A running peer.
pub(crate) struct Peer {
    child: Child,
    lines: Receiver<String>,
}

/// The configuration of Cyclone DDS for peers of this machine.
const LOOPBACK: &str = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>\
     <AllowMulticast>false</AllowMulticast></General>\
     <Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery></Domain></CycloneDDS>";

impl Peer {
    /// Starts a peer, and waits until it is ready.
    pub(crate) fn start(dds: Dds, domain: &Domain, arguments: &[&str]) -> Self {
        let mut command = Command::new(dds.program());
        command.arg(domain.number.to_string()).args(arguments).env("CYCLONEDDS_URI", LOOPBACK);
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
        let mut peer = Self { child, lines };
        assert_eq!(peer.lines(1), ["ready"]);
        peer
    }

    /// Waits for the next lines of output.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let next = || self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        (0..count).map(|index| next().unwrap_or_else(|_| panic!("only {index} of {count} lines arrive"))).collect()
    }

    /// Suspends the peer, so that it acknowledges nothing.
    pub(crate) fn pause(&self) {
        let done = Command::new("kill").args(["-STOP", &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Waits for a line of output.
    pub(crate) fn wait_for(&mut self, line: &str) {
        while self.lines(1) != [line] {}
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
