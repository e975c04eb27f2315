//! Bench `constrained`: the measurement of "Lightweight protocols" (MQTT-SN against CoAP), 10,000 consecutive reliable messages, and the same over a
//! link that loses packets.
//!
//! | section | what is measured |
//! |---|---|
//! | consecutive messages | the time from a message to its acknowledgement on this host, one after the other, with cores kept awake |
//! | payloads | the same for longer payloads |
//! | clients | 1 to 1,000 clients with ten messages per second each |
//! | loss | the delay over an emulated link between two network namespaces: 30 ms round trip, 0 to 25 % loss in each direction |
//! | octets | octets on the wire for one reliable message |
//! | code and memory | size of the codecs on microcontrollers, which `make size-constrained` measures |
//!
//! The client is the same for all servers: our machine on a socket that waits in the kernel. The rivals' servers are those of libcoap, aiocoap
//! and Californium; libcoap's client is measured, too. Baselines are MQTT and HTTP over TCP.
//!
//! ```text
//! client.rs, crowd.rs, baseline.rs   clients;  machine.rs: servers without the bus;  setup.rs: nodes, brokers and rivals
//! series.rs                          one series;  floor.rs: UDP without a protocol;  plan.rs: the cells
//! loss.rs                            cells over an emulated link;  figures.rs: rows and tables of the report;  size.rs: size of the codecs
//! ```

mod baseline;
mod client;
mod crowd;
mod figures;
mod floor;
mod loss;
mod machine;
mod plan;
mod series;
pub(crate) mod setup;
mod size;

use std::path::PathBuf;

use crate::error::BenchError;
use crate::keep_awake::KeepAwake;
use crate::machine::MachineMonitor;
use crate::report::Report;
use crate::sys;

/// Arguments with which the bench starts its own executable as a node. The executable calls [`crate::bridge::run_node`].
pub const NODE_COMMAND: [&str; 1] = ["bench-node"];

/// Octets of a payload, unless another size is measured.
pub(crate) const PAYLOAD_OCTETS: usize = 20;

/// Options of the bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// Consecutive messages of each cell.
    pub messages: usize,
    /// Messages of each cell over the emulated link, of all its clients together.
    pub lossy_messages: usize,
    /// `true` measures every loss, and fixed waits too.
    pub all: bool,
    /// Seconds for which many clients send.
    pub crowd_s: u64,
    /// Folder of the rivals' programs. Default: `rivals`.
    pub rivals: Option<PathBuf>,
    /// Program that runs a node with [`NODE_COMMAND`]; `None` is this program.
    pub program: Option<PathBuf>,
    /// Seed of the links.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { messages: 10_000, lossy_messages: 2000, all: false, crowd_s: 4, rivals: None, program: None, seed: 1 }
    }
}

impl Options {
    /// Returns options with more messages over the emulated link.
    #[must_use]
    pub fn full() -> Self {
        Self { lossy_messages: 10_000, all: true, crowd_s: 30, ..Self::default() }
    }

    fn rivals(&self) -> PathBuf {
        self.rivals.clone().unwrap_or_else(|| PathBuf::from("rivals"))
    }
}

/// Runs the bench.
///
/// # Errors
/// Returns an error if a part of Viaduct does not start or the system refuses a socket or a thread.
pub fn run(options: &Options) -> Result<Report, BenchError> {
    let watch = MachineMonitor::start();
    let mut results = plan::Results::default();
    {
        let _awake = KeepAwake::start(&sys::cores())?;
        plan::consecutive(options, &mut results)?;
        plan::payloads(options, &mut results)?;
    }
    plan::crowds(options, &mut results)?;
    loss::measure(options, &mut results)?;
    match size::CodecSizes::read(&options.rivals()) {
        Ok(sizes) => results.sizes = Some(sizes),
        Err(why) => results.missing("code and memory of the codecs", &why),
    }
    let mut report = Report::new("constrained", watch, figures::rows(&results), results.notes.clone());
    report.sections = figures::sections(&results);
    report.sections_only = true;
    Ok(report)
}
