//! The network between the two ends: two network namespaces with an emulated link.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;

use viaduct_components::link::{End, Tunnel, TunnelSettings};
use viaduct_netem::{LinksConfig, Profile};

use super::job::Role;
use crate::error::BenchError;

/// Two ends and the link between them.
pub(super) struct Network(Tunnel);

/// State of a link after a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkState {
    /// Lateness of the timers: median, 99th percentile and maximum in microseconds.
    pub(super) lateness_us: [f64; 3],
    /// Packets from the sender's end that a full queue of the link or of the kernel dropped.
    pub(super) queue_drops: u64,
}

impl Network {
    /// Creates the ends and the link.
    pub(super) fn up(link: Profile, seed: u64) -> Result<Self, BenchError> {
        let links = LinksConfig { profile: Some(link), ..LinksConfig::default() };
        let tunnel = Tunnel::up(&TunnelSettings { links, seed, ..TunnelSettings::default() });
        tunnel.map(Self).map_err(BenchError::part("cannot emulate a link"))
    }

    /// Returns a command that runs at an end.
    pub(super) fn command(&self, role: Role, program: impl AsRef<OsStr>) -> Command {
        self.0.command(end(role), program)
    }

    pub(super) const fn address(&self, role: Role) -> Ipv4Addr {
        self.0.address(end(role))
    }

    pub(super) fn state(&self) -> LinkState {
        let there = self.0.counters().a_to_b;
        let late = there.lateness;
        LinkState {
            lateness_us: [late.p50_us, late.p99_us, late.max_us],
            queue_drops: there.dropped("queue_full") + there.dropped("interface_queue"),
        }
    }
}

/// Returns the end of a role. In the profiles, the end `a` is the vehicle.
const fn end(role: Role) -> End {
    match role {
        Role::Sender => End::A,
        Role::Receiver => End::B,
    }
}
