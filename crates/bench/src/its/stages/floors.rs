//! Latencies of bare sockets at the rate of the packets.

use std::time::Duration;

use serde_json::json;

use super::{Access, cable};
use crate::error::BenchError;
use crate::floor;
use crate::its::{Options, Pace};
use crate::report::Row;
use crate::statistics::Summary;

/// Maximum number of samples of each floor.
const SAMPLES_MAX: usize = 200;

/// One-way latencies through bare sockets, in microseconds.
#[derive(Clone, Debug, Default)]
pub(in crate::its) struct Floors {
    /// Octets of a frame and of its message as JSON.
    lengths: (usize, usize),
    pace: Pace,
    udp: Vec<f64>,
    tcp: Vec<f64>,
    /// Empty if the user may not open a raw socket.
    packet: Vec<f64>,
}

impl Floors {
    /// Measures the floors. `lengths` are the octets of a frame and of its message as JSON.
    pub(in crate::its) fn measure(lengths: (usize, usize), pace: Pace, options: &Options) -> Result<Self, BenchError> {
        let samples = options.paced_packets.clamp(1, SAMPLES_MAX);
        let period = Duration::from_secs(1) / pace.rate_hz.max(1);
        let [left, right] = cable::ENDS;
        let sockets = cable::in_namespace(|| floor::packet_sockets(left, right));
        Ok(Self {
            lengths,
            pace,
            udp: floor::udp_one_way(lengths.0, samples, period)?,
            tcp: floor::tcp_one_way(lengths.1, samples, period)?,
            // A note of the stages reports the missing privilege.
            packet: match sockets {
                Ok(sockets) => floor::packet_one_way(sockets, lengths.0, samples, period)?,
                Err(_) => Vec::new(),
            },
        })
    }

    /// Returns the rate of the samples and the state of the cores.
    pub(in crate::its) const fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the median of a frame from one end to the other.
    pub(super) fn link(&self, access: Access) -> Option<f64> {
        median(match access {
            Access::Ethernet => &self.packet,
            Access::UdpMulticast => &self.udp,
        })
    }

    /// Returns the median of the text through one TCP connection, times `connections`.
    pub(super) fn tcp(&self, connections: u32) -> Option<f64> {
        Some(f64::from(connections) * median(&self.tcp)?)
    }

    /// Returns the sum of the medians of a frame and of its text through `connections` TCP connections.
    pub(in crate::its) fn path(&self, access: Access, connections: u32) -> Option<f64> {
        Some(self.link(access)? + self.tcp(connections)?)
    }

    pub(in crate::its) fn rows(self) -> Vec<Row> {
        let Self { lengths: (frame, text), pace, .. } = self;
        let row = |name, octets: usize, samples: Vec<f64>| {
            Row::latencies(
                name,
                &json!({ "octets": octets, "rate_hz": pace.rate_hz, "cores": pace.cores.label() }),
                samples,
                0,
            )
        };
        let rows = [
            row("floor.udp_one_way", frame, self.udp),
            row("floor.packet_one_way", frame, self.packet),
            row("floor.tcp_one_way", text, self.tcp),
        ];
        rows.into_iter().filter(|row| row.n > 0).collect()
    }
}

fn median(samples: &[f64]) -> Option<f64> {
    Summary::of(samples).map(|summary| summary.p50)
}
