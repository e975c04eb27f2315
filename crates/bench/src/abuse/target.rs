//! The attacked process: a node, or Mosquitto.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Options;
use crate::constrained::setup::{self, Place, Server};
use crate::error::BenchError;
use crate::floor;

/// Files that the process may open, as on many systems by default.
const FILES_MAX: u32 = 1024;

/// Vehicles that send ten CAMs per second each.
const VEHICLES: u32 = 20;

/// Period in which the memory of the process is read.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Viaduct,
    Mosquitto,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Viaduct, Self::Mosquitto];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Viaduct => "viaduct",
            Self::Mosquitto => "mosquitto",
        }
    }
}

/// A running process and its listeners.
pub(super) struct Target {
    server: Server,
    pub(super) mqtt: SocketAddr,
    /// API and endpoint of a node.
    pub(super) http: Option<(SocketAddr, SocketAddr)>,
}

impl Target {
    pub(super) fn start(kind: Kind, options: &Options) -> Result<Self, BenchError> {
        let started = match kind {
            Kind::Viaduct => Self::node(options),
            Kind::Mosquitto => {
                setup::mosquitto_with_files(FILES_MAX).map(|server| Self { mqtt: server.address, server, http: None })
            }
        };
        started.map_err(|cause| BenchError::broken(kind.name(), &cause))
    }

    fn node(options: &Options) -> Result<Self, String> {
        let port = || Place::Host.port().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let [mqtt, api, http, group] = [port()?, port()?, port()?, port()?];
        let group = format!("udp_multicast: {{ interface: 127.0.0.1, group: \"239.118.122.97:{}\" }}", group.port());
        let config = format!(
            "node: abuse\nhttp: \"{http}\"\ncomponents:\n  \
             fleet: {{ kind: fleet, settings: {{ vehicles: {VEHICLES}, {group} }} }}\n  \
             station: {{ kind: its_station, settings: {{ station_id: 1, access: {{ {group} }} }} }}\n  \
             api: {{ kind: api, settings: {{ listen: \"{api}\" }} }}\n  \
             broker: {{ kind: mqtt_broker, settings: {{ listen: \"{mqtt}\", routes: [ {{ from: its/rx/cam, to: cams }} ] }} }}\n"
        );
        let program = match &options.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|cause| format!("the path of this program is unknown: {cause}"))?,
        };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {FILES_MAX}; exec \"$0\" \"$@\"")]).arg(program);
        let server = setup::node_of(command, mqtt, &config)?;
        Ok(Self { server, mqtt, http: Some((api, http)) })
    }

    /// Starts to measure the memory and the CPU time of the process.
    pub(super) fn watch(&self) -> Result<Watch, BenchError> {
        let process = self.server.process;
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let before = memory(process);
        let thread = floor::spawn("bench-memory", move || {
            let mut most = 0.0_f64;
            while !stopped.load(Ordering::Relaxed) {
                most = most.max(memory(process));
                std::thread::sleep(LOOK_PERIOD);
            }
            most
        })?;
        Ok(Watch { process, stop, thread, before, cpu: setup::cpu_seconds(process), started: Instant::now() })
    }
}

/// A running measurement of a process.
pub(super) struct Watch {
    process: u32,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<f64>,
    before: f64,
    cpu: Option<f64>,
    started: Instant,
}

/// Memory and CPU time of a process.
pub(super) struct Usage {
    /// Resident memory before and at most, in MiB.
    pub(super) memory: (f64, f64),
    pub(super) cpu_s: f64,
    pub(super) time_s: f64,
}

impl Watch {
    pub(super) fn stop(self) -> Result<Usage, BenchError> {
        let time_s = self.started.elapsed().as_secs_f64();
        self.stop.store(true, Ordering::Relaxed);
        let most = floor::join("memory", self.thread)?;
        let cpu_s = self.cpu.zip(setup::cpu_seconds(self.process)).map_or(f64::NAN, |(before, after)| after - before);
        Ok(Usage { memory: (self.before, most), cpu_s, time_s })
    }
}

/// Returns the resident memory of a process in MiB.
pub(super) fn memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).map_or(f64::NAN, |kib| kib / 1024.0)
}

impl Target {
    pub(super) fn memory(&self) -> f64 {
        memory(self.server.process)
    }
}
