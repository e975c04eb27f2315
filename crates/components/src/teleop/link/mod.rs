//! The datagrams between the two ends of a remote drive.

mod plain;
mod sealed;
mod security;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::{Counter, clock};
use viaduct_node::{Context, StartError};
use viaduct_units::Mono;

use crate::machine_counters::MachineCounters;
use crate::net::secure::{Role, SealError};
use crate::net::socket_counters;
use crate::net::udp_socket::{Received, UdpSettings, UdpSocket, UnsentReason};
use plain::Peer;
use sealed::Sealed;
pub(crate) use security::Security;

/// Longest datagram that is received.
const DATAGRAM_OCTETS_MAX: usize = 9000;
/// Datagrams that wait until the kernel takes them: 90 ms of four raw cameras.
const QUEUE_MAX: usize = 1024;
/// Batches that are received in a row without waiting.
const BATCHES_MAX: usize = 16;
/// Delay of a wake-up from which a task first receives what has arrived.
const LATE: Duration = Duration::from_millis(1);

/// One end of the datagrams.
pub(crate) struct DatagramLink {
    socket: UdpSocket,
    peer: Protection,
    /// Datagrams of the socket; empty between two calls.
    received: Vec<Received>,
    counters: LinkCounters,
    socket_counters: MachineCounters<UdpSocket>,
}

/// The way in which an end knows the address of its peer.
enum Protection {
    None(Peer),
    Keys(Box<Sealed>),
}

/// A payload that was received, and the time of its arrival in the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Mono,
    pub(crate) payload: Bytes,
}

struct LinkCounters {
    address: Counter,
    no_peer: Counter,
    no_session: Counter,
    too_long: Counter,
}

impl DatagramLink {
    /// Opens a link to the given address. Must be called inside the runtime.
    ///
    /// # Errors
    /// A setting is wrong, or a system call fails.
    pub(crate) fn connect<C: Send + 'static>(
        peer: SocketAddr,
        security: &Security,
        buffer_octets: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let protection = match security.load()? {
            None => Protection::None(Peer::Fixed(peer)),
            Some(mut credentials) => {
                credentials.peers.iter_mut().for_each(|settings| settings.address = Some(peer));
                Protection::Keys(Box::new(Sealed::new(credentials, context)?))
            }
        };
        Self::open(SocketAddr::new(any, 0), protection, buffer_octets, context)
    }

    /// Opens a link for a peer whose address is learned from its datagrams. Must be called inside the runtime.
    ///
    /// # Errors
    /// A setting is wrong, or a system call fails.
    pub(crate) fn listen<C: Send + 'static>(
        address: SocketAddr,
        security: &Security,
        buffer_octets: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let protection = match security.load()? {
            None => Protection::None(Peer::Learned(None)),
            Some(credentials) => Protection::Keys(Box::new(Sealed::new(credentials, context)?)),
        };
        Self::open(address, protection, buffer_octets, context)
    }

    fn open<C: Send + 'static>(
        bind: SocketAddr,
        peer: Protection,
        receive_buffer_octets: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let settings =
            UdpSettings { receive_buffer_octets, datagram_octets_max: DATAGRAM_OCTETS_MAX, queue_max: QUEUE_MAX };
        let failed = |cause| StartError::io(format!("cannot open a UDP socket on {bind}"), cause);
        let socket = UdpSocket::bind(bind, &settings).map_err(failed)?;
        let address = socket.local_address().map_err(failed)?;
        tracing::info!(%address, "datagram link is open");
        let unsent = |reason| context.counter_for("datagrams_unsent", reason);
        Ok(Self {
            socket,
            peer,
            received: Vec::new(),
            counters: LinkCounters {
                address: context.counter_for("datagrams_dropped", "address"),
                no_peer: unsent("no_peer"),
                no_session: unsent("no_session"),
                too_long: unsent(UnsentReason::TooLong.label()),
            },
            socket_counters: socket_counters(context),
        })
    }

    /// Returns the permission of the other end. Without keys, it is a driver.
    pub(crate) fn role(&self) -> Role {
        match &self.peer {
            Protection::None(_) => Role::Driver,
            Protection::Keys(sealed) => sealed.role(),
        }
    }

    /// Returns the octets of all datagrams received.
    pub(crate) const fn received_octets(&self) -> u64 {
        self.socket.counters().received_octets
    }

    /// Waits until datagrams have arrived, and adds their payloads to the batch. Sends in the meantime. Cancelling the wait loses
    /// nothing.
    ///
    /// # Errors
    /// The socket fails.
    pub(crate) async fn receive(&mut self, batch: &mut Vec<Arrival>) -> io::Result<()> {
        self.socket.receive(&mut self.received).await?;
        self.open_received(batch);
        Ok(())
    }

    /// Adds the payloads of datagrams that have arrived, if a task has woken up late for its timeout at `due`. To be called before
    /// the timeout is processed: otherwise a delay of this machine would count as a silence of the other end.
    ///
    /// # Errors
    /// The socket fails.
    pub(crate) fn receive_if_late(&mut self, due: Option<Mono>, batch: &mut Vec<Arrival>) -> io::Result<()> {
        if due.is_none_or(|due| clock::mono().since(due) <= LATE) {
            return Ok(());
        }
        for _ in 0..BATCHES_MAX {
            if self.socket.try_receive(&mut self.received)? == 0 {
                break;
            }
            self.open_received(batch);
        }
        Ok(())
    }

    fn open_received(&mut self, batch: &mut Vec<Arrival>) {
        let now = clock::mono();
        for Received { from, octets, at } in self.received.drain(..) {
            let payload = match &mut self.peer {
                Protection::Keys(sealed) => sealed.open(now, from, &octets),
                Protection::None(peer) => {
                    let is_admitted = peer.admits(from, now);
                    self.counters.address.add(u64::from(!is_admitted));
                    is_admitted.then_some(octets)
                }
            };
            batch.extend(payload.map(|payload| Arrival { at, payload }));
        }
        if let Protection::Keys(sealed) = &mut self.peer {
            sealed.settle(now, &mut self.socket);
            self.socket.flush();
        }
    }

    /// Sends payloads in order. What the kernel does not take now waits for [`Self::receive`]. A payload that cannot be sent is
    /// counted and dropped.
    pub(crate) fn send(&mut self, batch: &mut Vec<Bytes>) {
        let now = clock::mono();
        for payload in batch.drain(..) {
            match &mut self.peer {
                Protection::None(peer) => match peer.address() {
                    Some(to) => self.socket.push(to, payload),
                    None => self.counters.no_peer.increment(),
                },
                Protection::Keys(sealed) => match sealed.seal(now, &payload) {
                    Ok((to, datagram)) => self.socket.push(to, datagram),
                    Err(SealError::NotConnected) => self.counters.no_session.increment(),
                    Err(SealError::TooLong(_)) => self.counters.too_long.increment(),
                },
            }
        }
        self.socket.flush();
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    pub(crate) fn poll_timeout(&self) -> Option<Mono> {
        match &self.peer {
            Protection::None(_) => None,
            Protection::Keys(sealed) => sealed.poll_timeout(),
        }
    }

    /// Processes the time: establishes and renews sessions.
    pub(crate) fn handle_timeout(&mut self, now: Mono) {
        if let Protection::Keys(sealed) = &mut self.peer {
            sealed.handle_timeout(now, &mut self.socket);
            self.socket.flush();
        }
    }

    /// Updates the counters. To be called periodically.
    pub(crate) fn sync_counters(&mut self) {
        self.socket.count_kernel_drops();
        self.socket_counters.sync(&self.socket);
        if let Protection::Keys(sealed) = &mut self.peer {
            sealed.sync_counters();
        }
    }
}
