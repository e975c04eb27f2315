//! The datagrams between the two ends of a remote drive.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use schemars::JsonSchema;
use serde::Deserialize;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use viaduct_bus::{Counter, clock};
use viaduct_node::{Context, SettingError, StartError};
use viaduct_units::Mono;

use crate::net::socket_drops;

/// Largest number of datagrams received in a row.
const BATCH_DATAGRAMS_MAX: usize = 64;
/// Longest datagram that is received.
const DATAGRAM_OCTETS_MAX: usize = 9000;
/// Size of an allocation for received datagrams, which are slices of it.
const CHUNK_OCTETS: usize = 256 << 10;
/// Time without datagrams after which another address of the peer is accepted.
const PEER_SILENCE: Duration = Duration::from_millis(300);

/// Protection of the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    /// None. Permitted only if both ends are on this machine.
    None,
}

/// One end of the datagrams.
pub(crate) struct DatagramLink {
    socket: UdpSocket,
    peer: Peer,
    slot: Box<[u8]>,
    chunk: BytesMut,
    counters: LinkCounters,
    /// Octets received since the start.
    received_octets: u64,
}

/// The address of the other end.
enum Peer {
    /// A configured address.
    Fixed(SocketAddr),
    /// The address from which the latest datagrams came.
    Learned(Option<(SocketAddr, Mono)>),
}

struct LinkCounters {
    sent: Counter,
    received: Counter,
    address: Counter,
    too_long: Counter,
    kernel: Counter,
    /// Drops of the kernel at the last reading.
    kernel_seen: u32,
    no_peer: Counter,
    failed: Counter,
}

impl LinkCounters {
    fn new<C: Send + 'static>(context: &Context<C>) -> Self {
        let dropped = |reason| context.counter_for("datagrams_dropped", reason);
        Self {
            sent: context.counter("datagrams_sent"),
            received: context.counter("datagrams_received"),
            address: dropped("address"),
            too_long: dropped("too_long"),
            kernel: dropped("kernel"),
            kernel_seen: 0,
            no_peer: context.counter_for("datagrams_unsent", "no_peer"),
            failed: context.counter_for("datagrams_unsent", "failed"),
        }
    }
}

/// Refuses addresses that another machine can reach, if nothing protects the datagrams.
pub(crate) fn check_security(security: Security, key: &str, address: SocketAddr) -> Result<(), SettingError> {
    let Security::None = security;
    if address.ip().is_loopback() {
        return Ok(());
    }
    let problem = format!("{address} is not on this machine (127.0.0.1), which `security: none` requires");
    Err(SettingError::new(key, problem))
}

impl DatagramLink {
    /// Opens a link to the given address. Must be called inside the runtime.
    ///
    /// # Errors
    /// A system call fails.
    pub(crate) fn connect<C: Send + 'static>(
        peer: SocketAddr,
        buffer_octets: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        Self::open(SocketAddr::new(any, 0), Peer::Fixed(peer), buffer_octets, context)
    }

    /// Opens a link for a peer whose address is learned from its datagrams. Must be called inside the runtime.
    ///
    /// # Errors
    /// A system call fails.
    pub(crate) fn listen<C: Send + 'static>(
        address: SocketAddr,
        buffer_octets: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        Self::open(address, Peer::Learned(None), buffer_octets, context)
    }

    fn open<C: Send + 'static>(
        bind: SocketAddr,
        peer: Peer,
        buffer_octets: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let failed = |cause| StartError::io(format!("cannot open a UDP socket on {bind}"), cause);
        let socket = bound_socket(bind, buffer_octets).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        tracing::info!(%address, "datagram link is open");
        Ok(Self {
            socket,
            peer,
            slot: vec![0; DATAGRAM_OCTETS_MAX + 1].into_boxed_slice(),
            chunk: BytesMut::new(),
            counters: LinkCounters::new(context),
            received_octets: 0,
        })
    }

    /// Returns the octets of all datagrams received from the peer.
    pub(crate) const fn received_octets(&self) -> u64 {
        self.received_octets
    }

    /// Waits until datagrams have arrived, and adds them to the batch. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// The socket fails.
    pub(crate) async fn receive(&mut self, batch: &mut Vec<Bytes>) -> io::Result<()> {
        self.socket.readable().await?;
        for _ in 0..BATCH_DATAGRAMS_MAX {
            match self.socket.try_recv_from(&mut self.slot) {
                Ok((octets, from)) => batch.extend(self.take(octets, from)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An answer to a datagram that could not be delivered. The peer may appear later.
                Err(_) => self.counters.failed.increment(),
            }
        }
        Ok(())
    }

    /// Returns the datagram in the slot if it is from the peer.
    fn take(&mut self, octets: usize, from: SocketAddr) -> Option<Bytes> {
        if !self.peer.admits(from, clock::mono()) {
            self.counters.address.increment();
            return None;
        }
        if octets > DATAGRAM_OCTETS_MAX {
            self.counters.too_long.increment();
            return None;
        }
        let datagram = self.slot.get(..octets)?;
        if self.chunk.capacity() < octets {
            self.chunk = BytesMut::with_capacity(CHUNK_OCTETS);
        }
        self.chunk.extend_from_slice(datagram);
        self.counters.received.increment();
        self.received_octets += octets as u64;
        Some(self.chunk.split().freeze())
    }

    /// Sends datagrams in order. A datagram without a known peer, or that the system refuses, is counted and dropped.
    pub(crate) async fn send(&mut self, batch: &mut Vec<Bytes>) {
        for datagram in batch.drain(..) {
            let Some(to) = self.peer.address() else {
                self.counters.no_peer.increment();
                continue;
            };
            match self.socket.send_to(&datagram, to).await {
                Ok(_) => self.counters.sent.increment(),
                Err(_) => self.counters.failed.increment(),
            }
        }
    }

    /// Counts the datagrams that the kernel has dropped because the receive buffer was full. To be called periodically.
    pub(crate) fn count_kernel_drops(&mut self) {
        let Ok(drops) = socket_drops(&self.socket) else { return };
        self.counters.kernel.add(u64::from(drops.wrapping_sub(self.counters.kernel_seen)));
        self.counters.kernel_seen = drops;
    }
}

impl Peer {
    /// Returns `true` if a datagram from this address is one of the peer.
    fn admits(&mut self, from: SocketAddr, now: Mono) -> bool {
        match self {
            Self::Fixed(peer) => *peer == from,
            Self::Learned(Some((peer, latest))) if *peer != from && now.since(*latest) < PEER_SILENCE => false,
            Self::Learned(peer) => {
                *peer = Some((from, now));
                true
            }
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Fixed(peer) => Some(*peer),
            Self::Learned(peer) => peer.map(|(peer, _)| peer),
        }
    }
}

fn bound_socket(bind: SocketAddr, buffer_octets: usize) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(bind), Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(buffer_octets)?;
    socket.bind(&bind.into())?;
    UdpSocket::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn without_protection_only_addresses_of_this_machine_are_permitted() {
        for (address, permitted) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("192.168.1.7:1", false),
            ("[::]:1", false),
        ] {
            let checked = check_security(Security::None, "listen", address.parse().unwrap());
            assert_eq!(checked.is_ok(), permitted, "{address}");
        }
    }

    #[test]
    fn a_second_address_is_refused_while_the_first_one_sends() {
        let (one, two) = (SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2)));
        let mut peer = Peer::Learned(None);
        assert!(peer.address().is_none() && peer.admits(one, at(0)) && peer.admits(one, at(200)));
        assert!(!peer.admits(two, at(499)));
        assert_eq!(peer.address(), Some(one));
        assert!(peer.admits(two, at(500)) && !peer.admits(one, at(501)));
    }
}
