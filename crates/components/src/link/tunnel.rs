//! Two network namespaces with an emulated link between them.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::Arc;

use nix::sched::{CloneFlags, setns};
use viaduct_netem::config::LinkPatch;
use viaduct_units::Rng;

use super::direction::Direction;
use super::namespace::{NamedNamespace, Namespace};
use super::{LinkError, LinkReport, TunnelSettings, sys};

/// An end of the link. In the profiles of `viaduct_netem`, `A` is the vehicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The end `a`.
    A,
    /// The end `b`.
    B,
}

impl End {
    /// Returns the name of the end: `a` or `b`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// Returns the IPv4 address of the end. It is the same in every tunnel: namespaces of different tunnels do not meet.
    #[must_use]
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Self::A => Ipv4Addr::new(10, 77, 0, 1),
            Self::B => Ipv4Addr::new(10, 77, 0, 2),
        }
    }
}

/// Two network namespaces, joined by TUN devices, with an emulated link between them. Removed when dropped.
pub struct Tunnel {
    // The threads end before their devices are closed.
    a_to_b: Direction,
    b_to_a: Direction,
    names: Vec<NamedNamespace>,
    a: Namespace,
    b: Namespace,
}

impl Tunnel {
    /// Creates the namespaces and starts the emulation, in two threads of this process.
    ///
    /// Needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN) and /dev/net/tun.
    ///
    /// # Errors
    /// An invalid setting, a missing right, or a failed system call.
    pub fn up(settings: &TunnelSettings) -> Result<Self, LinkError> {
        let links = settings.resolve()?;
        let a = Namespace::create(End::A.address(), settings.mtu)?;
        let b = Namespace::create(End::B.address(), settings.mtu)?;
        let mut names = Vec::new();
        if let Some(name) = &settings.name {
            names.push(a.publish(name, End::A)?);
            names.push(b.publish(name, End::B)?);
        }
        let mut seeds = Rng::new(settings.seed);
        let (there, back) = (seeds.next_u64(), seeds.next_u64());
        let a_to_b = Direction::start("a_to_b", links.a_to_b, there, (&a.device, &b.device), settings.mtu)?;
        let b_to_a = Direction::start("b_to_a", links.b_to_a, back, (&b.device, &a.device), settings.mtu)?;
        Ok(Self { a_to_b, b_to_a, names, a, b })
    }

    /// Returns a command that runs in the namespace of an end.
    pub fn command(&self, end: End, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        sys::enter_before_exec(&mut command, Arc::clone(&self.namespace(end).file));
        command
    }

    /// Calls a function in the namespace of an end, on a separate thread. Sockets that the function opens stay in the namespace.
    ///
    /// # Errors
    /// The system does not start a thread, or refuses the namespace.
    pub fn within<T: Send>(&self, end: End, function: impl FnOnce() -> T + Send) -> Result<T, LinkError> {
        let file = &self.namespace(end).file;
        std::thread::scope(|scope| {
            let body = || setns(file.as_fd(), CloneFlags::CLONE_NEWNET).map(|()| function());
            let thread =
                std::thread::Builder::new().spawn_scoped(scope, body).map_err(LinkError::system("start a thread"))?;
            let entered = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            entered.map_err(LinkError::system("enter a network namespace"))
        })
    }

    /// Returns the IPv4 address of an end.
    #[must_use]
    pub const fn address(&self, end: End) -> Ipv4Addr {
        end.address()
    }

    /// Returns `true` if the namespaces have names for ip-netns(8).
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.names.is_empty()
    }

    /// Changes the settings of the direction that begins at an end, while packets pass.
    ///
    /// # Errors
    /// The invalid setting. The direction continues with the settings that it had.
    pub fn set(&self, from: End, patch: &LinkPatch) -> Result<(), LinkError> {
        match from {
            End::A => self.a_to_b.set(patch),
            End::B => self.b_to_a.set(patch),
        }
    }

    /// Returns the settings and figures of both directions.
    #[must_use]
    pub fn counters(&self) -> LinkReport {
        LinkReport {
            a_to_b: self.a_to_b.report(self.a.queue_drops()),
            b_to_a: self.b_to_a.report(self.b.queue_drops()),
        }
    }

    const fn namespace(&self, end: End) -> &Namespace {
        match end {
            End::A => &self.a,
            End::B => &self.b,
        }
    }
}
