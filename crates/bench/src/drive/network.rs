//! The network between the two ends.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;

use viaduct_netem::Profile;

use super::job::Role;
use crate::error::BenchError;

/// Two ends and the link between them.
pub(super) struct Network;

impl Network {
    pub(super) fn up(_link: Profile, _seed: u64) -> Result<Self, BenchError> {
        Ok(Self)
    }

    /// Returns a command that runs at an end.
    pub(super) fn command(&self, _role: Role, program: impl AsRef<OsStr>) -> Command {
        Command::new(program)
    }

    pub(super) fn address(&self, _role: Role) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }

    /// Returns the median, 99th percentile and maximum of the lateness of the link's timers in microseconds.
    pub(super) fn lateness_us(&self) -> Option<[f64; 3]> {
        None
    }

    /// Returns the packets from the sender's end that a full queue dropped.
    pub(super) fn queue_drops(&self) -> Option<u64> {
        None
    }
}
