//! The network between the two ends.

use std::ffi::OsStr;
use std::fs::File;
use std::net::Ipv4Addr;
use std::process::Command;

use nix::sched::{CloneFlags, setns};
use viaduct_components::link::{End, Tunnel, TunnelSettings, command_in, namespace_path, remove_namespaces};
use viaduct_netem::config::{BottleneckConfig, LinkPatch, RateConfig};
use viaduct_netem::{LinksConfig, Profile};

use super::case::Link;
use crate::error::BenchError;

/// Name of the virtual Ethernet devices, in both namespaces.
const DEVICE: &str = "link0";
/// Rate of the link [`Link::NarrowFiveG`], in Mbit/s: the paper's link carries 55 scans of 0.18 MB per second and not 56, and with this
/// rate a cloud of 1.08 MB takes as long as the paper's. The profile `5g` has the rate by which whole scans take longer than empty
/// ones.
const NARROW_MBPS: f64 = 84.3;
/// Queue of that link in octets, as that of the profile.
const QUEUE_OCTETS: usize = 1_000_000;
/// Description of a failure.
const FAILED: &str = "cannot connect two network namespaces";

/// Two ends and the link between them. The vehicle is the end `A`.
pub(super) enum Network {
    Host,
    Ethernet(VirtualEthernet),
    Emulated(Tunnel),
}

impl Network {
    pub(super) fn up(link: Link, seed: u64) -> Result<Self, BenchError> {
        match link {
            Link::Host => Ok(Self::Host),
            Link::Ethernet => VirtualEthernet::up().map(Self::Ethernet),
            Link::FiveG => Self::emulate(LinksConfig::default(), seed),
            Link::NarrowFiveG => {
                let rate = RateConfig { mbps: NARROW_MBPS, queue_octets: QUEUE_OCTETS };
                let both = LinkPatch { bottleneck: Some(BottleneckConfig::Rate(rate)), ..LinkPatch::default() };
                Self::emulate(LinksConfig { both, ..LinksConfig::default() }, seed)
            }
        }
    }

    /// Emulates the profile `5g` with changes.
    fn emulate(changes: LinksConfig, seed: u64) -> Result<Self, BenchError> {
        let links = LinksConfig { profile: Some(Profile::FiveG), ..changes };
        let tunnel = Tunnel::up(&TunnelSettings { links, seed, ..TunnelSettings::default() });
        tunnel.map(Self::Emulated).map_err(BenchError::part("cannot emulate a link"))
    }

    /// Returns a command that runs at an end.
    pub(super) fn command(&self, end: End, program: impl AsRef<OsStr>) -> Result<Command, BenchError> {
        match self {
            Self::Host => Ok(Command::new(program)),
            Self::Ethernet(link) => command_in(&link.name, end, program).map_err(BenchError::part(FAILED)),
            Self::Emulated(tunnel) => Ok(tunnel.command(end, program)),
        }
    }

    /// Returns the address at which the other end reaches an end.
    pub(super) const fn address(&self, end: End) -> Ipv4Addr {
        match self {
            Self::Host => Ipv4Addr::LOCALHOST,
            Self::Ethernet(_) | Self::Emulated(_) => end.address(),
        }
    }

    /// Returns `true` if both ends are the same host.
    pub(super) const fn is_host(&self) -> bool {
        matches!(self, Self::Host)
    }

    /// Calls a function at an end, on a separate thread. Sockets that it opens stay there.
    pub(super) fn within<T: Send>(&self, end: End, function: impl FnOnce() -> T + Send) -> Result<T, BenchError> {
        match self {
            Self::Host => Ok(function()),
            Self::Ethernet(link) => link.within(end, function),
            Self::Emulated(tunnel) => tunnel.within(end, function).map_err(BenchError::part(FAILED)),
        }
    }

    /// Returns the packets that a full queue of the emulated link has dropped.
    pub(super) fn queue_drops(&self) -> Option<u64> {
        let Self::Emulated(tunnel) = self else { return None };
        let counters = tunnel.counters();
        let drops = [counters.a_to_b, counters.b_to_a]
            .map(|direction| direction.dropped("queue_full") + direction.dropped("interface_queue"));
        Some(drops.iter().sum())
    }
}

/// Two named network namespaces with a pair of virtual Ethernet devices (veth). Removed when dropped.
pub(super) struct VirtualEthernet {
    name: String,
}

impl VirtualEthernet {
    fn up() -> Result<Self, BenchError> {
        let name = format!("bench-{}", std::process::id());
        // Namespaces of an earlier process with the same number.
        remove_namespaces(&name).map_err(BenchError::part(FAILED))?;
        let link = Self { name };
        let [a, b] = [End::A, End::B].map(|end| format!("{}-{}", link.name, end.name()));
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add {DEVICE} netns {a} type veth peer name {DEVICE} netns {b}"))?;
        for (namespace, end) in [(&a, End::A), (&b, End::B)] {
            ip(&format!("-n {namespace} address add {}/30 dev {DEVICE}", end.address()))?;
            // Without an IPv6 address there is no neighbour discovery traffic.
            ip(&format!("-n {namespace} link set {DEVICE} addrgenmode none up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        Ok(link)
    }

    fn within<T: Send>(&self, end: End, function: impl FnOnce() -> T + Send) -> Result<T, BenchError> {
        let file = File::open(namespace_path(&self.name, end)).map_err(BenchError::system(FAILED))?;
        std::thread::scope(|scope| {
            let body = || setns(&file, CloneFlags::CLONE_NEWNET).map(|()| function());
            let thread = std::thread::Builder::new().spawn_scoped(scope, body);
            let thread = thread.map_err(BenchError::system("cannot start a thread"))?;
            let entered = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            entered.map_err(BenchError::part(FAILED))
        })
    }
}

impl Drop for VirtualEthernet {
    fn drop(&mut self) {
        // The devices disappear with their namespaces, when the last process in them has ended.
        let _ = remove_namespaces(&self.name);
    }
}

/// Runs `ip ARGUMENTS`.
fn ip(arguments: &str) -> Result<(), BenchError> {
    let run = Command::new("ip").args(arguments.split(' ')).output().map_err(BenchError::system("cannot run ip(8)"))?;
    if run.status.success() {
        return Ok(());
    }
    let cause = format!("`ip {arguments}` fails (it needs root): {}", String::from_utf8_lossy(&run.stderr).trim());
    Err(BenchError::broken(FAILED, &cause))
}
