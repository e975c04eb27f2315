//! A UDP socket for any protocol: datagrams are received and sent in batches.
//!
//! - A received datagram has the time at which the kernel received it, by the node's monotonic clock. A task that wakes up late
//!   therefore measures no delay that the network does not have.
//! - Datagrams to send wait in a bounded queue. A batch that the kernel takes in part keeps the rest. A datagram that the kernel
//!   rejects is counted with its reason and does not affect the others.
//! - Equal datagrams in a row to one address pass the kernel as one piece (UDP segmentation offload), where the system can.
//! - Datagrams that the kernel drops because the receive buffer is full are counted.
//!
//! The socket knows no protocol. The owner calls [`UdpSocket::push`] for each datagram, then [`UdpSocket::flush`], which does not
//! wait, and then [`UdpSocket::receive`], which sends the rest while it waits. A cancelled wait loses nothing.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use viaduct_bus::clock;
use viaduct_units::{Mono, Now, Tai};

use super::sys::{self, Arrival, BATCH_FRAMES_MAX, BATCH_SENT_MAX, Run};

/// Largest number of datagrams that one call of [`UdpSocket::try_receive`] returns.
pub const BATCH_RECEIVED_MAX: usize = BATCH_FRAMES_MAX;
/// Longest datagram that a socket can be opened for: the longest payload of UDP over IPv4.
pub const DATAGRAM_OCTETS_MAX: usize = 65_507;

/// Size of an allocation for received datagrams, which are slices of it.
const CHUNK_BYTES: usize = 256 << 10;
/// Largest number of octets and of datagrams that pass the kernel as one piece.
const RUN_OCTETS_MAX: usize = 60_000;
const RUN_DATAGRAMS_MAX: usize = 44;
/// Largest number of errors that one call of [`UdpSocket::send`] processes.
const SEND_ERRORS_MAX: usize = 2 * BATCH_SENT_MAX;
/// Largest number of errors that one call of [`UdpSocket::receive`] processes.
const RECEIVE_ERRORS_MAX: usize = 16;

/// A received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The sender.
    pub from: SocketAddr,
    /// The datagram. It may be empty.
    pub octets: Bytes,
    /// Time at which the kernel received it.
    pub at: Mono,
}

/// Settings of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpSettings {
    /// Size of the kernel's receive buffer in bytes. The kernel limits it to `net.core.rmem_max`.
    pub receive_buffer_octets: usize,
    /// Longest datagram that is received, 1 to [`DATAGRAM_OCTETS_MAX`]. A longer one is counted and dropped.
    pub datagram_octets_max: usize,
    /// Largest number of datagrams that wait to be sent, at least 1. If the queue is full, a new datagram replaces the oldest one.
    pub queue_max: usize,
}

/// Reason why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnsentReason {
    /// No program listens at the address (ECONNREFUSED).
    Refused,
    /// The datagram is longer than the path or UDP permits (EMSGSIZE).
    TooLong,
    /// There is no path to the address (ENETUNREACH, EHOSTUNREACH, ENETDOWN).
    Unreachable,
    /// The queue of the network interface is full (ENOBUFS, ENOMEM).
    NoBuffer,
    /// The queue before the socket was full. The oldest datagram was dropped for a newer one.
    QueueFull,
    /// Another error, for example a firewall (EPERM).
    Failed,
}

impl UnsentReason {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::Refused, Self::TooLong, Self::Unreachable, Self::NoBuffer, Self::QueueFull, Self::Failed];

    /// Returns the reason as metrics spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::TooLong => "too_long",
            Self::Unreachable => "unreachable",
            Self::NoBuffer => "no_buffer",
            Self::QueueFull => "queue_full",
            Self::Failed => "failed",
        }
    }

    fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN) => Self::Unreachable,
            Some(libc::ENOBUFS | libc::ENOMEM) => Self::NoBuffer,
            _ => Self::Failed,
        }
    }
}

/// Counters of a socket.
///
/// Each datagram that leaves the queue is counted once, as sent or unsent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Datagrams received, without those that were too long.
    pub received: u64,
    /// Octets of these datagrams.
    pub received_octets: u64,
    /// Received datagrams that were dropped because they were too long.
    pub received_too_long: u64,
    /// Errors of earlier datagrams that the kernel has reported, for example a port that is not in use.
    pub reported_errors: u64,
    /// Received datagrams that the kernel has dropped because the receive buffer was full, at the last call of
    /// [`UdpSocket::count_kernel_drops`].
    pub kernel_drops: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Octets of these datagrams.
    pub sent_octets: u64,
    unsent: [u64; UnsentReason::ALL.len()],
}

impl UdpCounters {
    /// Returns the number of datagrams that were not sent for a reason.
    #[must_use]
    pub fn unsent(&self, reason: UnsentReason) -> u64 {
        self.unsent.get(reason as usize).copied().unwrap_or(0)
    }

    fn count_unsent(&mut self, reason: UnsentReason) {
        if let Some(count) = self.unsent.get_mut(reason as usize) {
            *count += 1;
        }
    }
}

/// Condition for a receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Always,
    /// If the runtime regards the socket as readable. If it holds no datagram, the runtime waits for the next one.
    IfReady,
}

/// A UDP socket.
pub struct UdpSocket {
    socket: AsyncFd<Socket>,
    /// Memory into which the kernel writes: a slot for each datagram, one byte longer than the longest one.
    slots: Box<[u8]>,
    slot_bytes: usize,
    /// Memory of the received datagrams, which are contiguous slices of it, so that a datagram kept for long does not hold an empty
    /// slot.
    chunk: BytesMut,
    /// A time before which all received datagrams have been taken. Those that follow have arrived later.
    empty_at: Mono,
    /// Datagrams that wait to be sent, with their receivers.
    queue: VecDeque<(SocketAddr, Bytes)>,
    queue_max: usize,
    /// `true` if the system segments datagrams, as far as is known.
    segments: bool,
    /// Drops of the kernel at the last reading, which wraps.
    kernel_drops: u32,
    counters: UdpCounters,
}

impl UdpSocket {
    /// Opens a socket at an address. Must be called inside the runtime.
    ///
    /// # Errors
    /// A system call fails: the address is in use or not one of this machine.
    pub fn bind(address: SocketAddr, settings: &UdpSettings) -> io::Result<Self> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
        socket.set_recv_buffer_size(settings.receive_buffer_octets)?;
        socket.bind(&address.into())?;
        Self::new(socket, settings)
    }

    /// Wraps a bound socket, for example one of a multicast group, whose receive buffer remains as it is. Must be called inside the
    /// runtime.
    ///
    /// # Errors
    /// A system call fails.
    pub fn new(socket: Socket, settings: &UdpSettings) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from)?;
        let slot_bytes = settings.datagram_octets_max.clamp(1, DATAGRAM_OCTETS_MAX) + 1;
        Ok(Self {
            socket: sys::watch(socket)?,
            slots: vec![0; BATCH_FRAMES_MAX * slot_bytes].into_boxed_slice(),
            slot_bytes,
            chunk: BytesMut::new(),
            empty_at: clock::mono(),
            queue: VecDeque::new(),
            queue_max: settings.queue_max.max(1),
            segments: true,
            kernel_drops: 0,
            counters: UdpCounters::default(),
        })
    }

    /// Returns the own address.
    ///
    /// # Errors
    /// A system call fails.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        let address = self.socket.get_ref().local_addr()?;
        address.as_socket().ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// Waits until datagrams have arrived, and appends at most [`BATCH_RECEIVED_MAX`] to the batch. Sends the datagrams of the queue
    /// in the meantime, as fast as the kernel takes them.
    ///
    /// # Errors
    /// The socket fails.
    pub async fn receive(&mut self, batch: &mut Vec<Received>) -> io::Result<()> {
        loop {
            let interest =
                if self.queue.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let mut guard = self.socket.ready(interest).await?;
            guard.retain_ready();
            let ready = guard.ready();
            if ready.is_writable() {
                self.flush();
            }
            if ready.is_readable() && self.take_batch(batch, Call::IfReady)? > 0 {
                return Ok(());
            }
        }
    }

    /// Appends the datagrams that have arrived to the batch, at most [`BATCH_RECEIVED_MAX`], without waiting. Returns the number of
    /// datagrams taken from the kernel, those that were dropped included.
    ///
    /// # Errors
    /// The socket fails.
    pub fn try_receive(&mut self, batch: &mut Vec<Received>) -> io::Result<usize> {
        self.take_batch(batch, Call::Always)
    }

    fn take_batch(&mut self, batch: &mut Vec<Received>, call: Call) -> io::Result<usize> {
        for _ in 0..RECEIVE_ERRORS_MAX {
            match self.receive_batch(batch, call) {
                Ok(taken) => return Ok(taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                // The kernel reports that an earlier datagram was not delivered.
                Err(error) if is_about_a_datagram(&error) => self.counters.reported_errors += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    fn receive_batch(&mut self, batch: &mut Vec<Received>, call: Call) -> io::Result<usize> {
        let Self { socket, slots, slot_bytes, chunk, counters, empty_at, .. } = self;
        let (asked_at, longest) = (clock::mono(), *slot_bytes - 1);
        let (start, mut stamps) = (batch.len(), [None; BATCH_FRAMES_MAX]);
        let take = |Arrival { octets, stamp, from }: Arrival<'_>| {
            let Some(from) = from else { return };
            if octets.len() > longest {
                counters.received_too_long += 1;
                return;
            }
            counters.received += 1;
            counters.received_octets += octets.len() as u64;
            if let Some(slot) = stamps.get_mut(batch.len() - start) {
                *slot = stamp;
            }
            if chunk.capacity() < octets.len() {
                *chunk = BytesMut::with_capacity(CHUNK_BYTES.max(octets.len()));
            }
            chunk.extend_from_slice(octets);
            batch.push(Received { from, octets: chunk.split().freeze(), at: asked_at });
        };
        let outcome = match call {
            Call::Always => sys::receive_batch(socket.get_ref(), slots, *slot_bytes, take),
            Call::IfReady => {
                socket.try_io(Interest::READABLE, |socket| sys::receive_batch(socket, slots, *slot_bytes, take))
            }
        };
        // The clocks are read after the batch, so that no datagram is from the future.
        let now = clock::now();
        for (received, stamp) in batch.iter_mut().skip(start).zip(stamps) {
            received.at = arrival(now, stamp, *empty_at);
        }
        if outcome.as_ref().is_ok_and(|taken| *taken < BATCH_FRAMES_MAX) {
            *empty_at = asked_at;
        }
        outcome
    }

    /// Appends a datagram to the queue.
    pub fn push(&mut self, to: SocketAddr, datagram: Bytes) {
        if self.queue.len() >= self.queue_max {
            self.queue.pop_front();
            self.counters.count_unsent(UnsentReason::QueueFull);
        }
        self.queue.push_back((to, datagram));
    }

    /// Returns the number of datagrams in the queue.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Sends datagrams to multicast groups through an interface. This machine receives them as well.
    ///
    /// # Errors
    /// A system call fails.
    pub fn set_multicast_interface(&self, interface: Ipv4Addr) -> io::Result<()> {
        self.socket.get_ref().set_multicast_if_v4(&interface)?;
        self.socket.get_ref().set_multicast_loop_v4(true)
    }

    /// Sends datagrams of the queue until the kernel takes no more. Does not wait.
    pub fn flush(&mut self) {
        let (mut errors, mut is_repeated) = (0, false);
        while !self.queue.is_empty() && errors < SEND_ERRORS_MAX {
            match self.send_batch() {
                Ok(sent) => {
                    is_repeated = false;
                    self.count_sent(sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => errors += 1,
                // This is the error of an earlier datagram. The first one of the queue was not sent yet.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && !is_repeated => {
                    (errors, is_repeated) = (errors + 1, true);
                    self.counters.reported_errors += 1;
                }
                Err(error) => {
                    (errors, is_repeated) = (errors + 1, false);
                    self.handle_send_error(&error);
                }
            }
        }
    }

    /// Sends all datagrams of the queue, and waits as long as the kernel takes none.
    ///
    /// # Errors
    /// The socket fails.
    pub async fn flush_all(&mut self) -> io::Result<()> {
        self.flush();
        while !self.queue.is_empty() {
            self.socket.writable().await?.retain_ready();
            self.flush();
        }
        Ok(())
    }

    /// Sends the first datagrams of the queue, and returns their number. They remain in the queue.
    fn send_batch(&mut self) -> io::Result<usize> {
        let runs = runs(self.queue.make_contiguous(), self.segments);
        let mut outcome = sys::send_batch(self.socket.get_ref(), &runs);
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            // A second attempt, after which the runtime waits for the socket to become writable.
            outcome = self.socket.try_io(Interest::WRITABLE, |socket| sys::send_batch(socket, &runs));
        }
        Ok(runs.iter().take(outcome?).map(|run| run.datagrams.len()).sum())
    }

    /// Removes the first datagrams of the queue, which were sent.
    fn count_sent(&mut self, sent: usize) {
        for (_, datagram) in self.queue.drain(..sent.min(self.queue.len())) {
            self.counters.sent += 1;
            self.counters.sent_octets += datagram.len() as u64;
        }
    }

    /// Processes the error of the first run of the queue.
    fn handle_send_error(&mut self, error: &io::Error) {
        let is_run = self.segments && run_length(self.queue.make_contiguous()) > 1;
        if is_run && may_be_about_segments(error) {
            // From now on, each datagram passes the kernel on its own.
            self.segments = false;
        } else if self.queue.pop_front().is_some() {
            self.counters.count_unsent(UnsentReason::of(error));
        }
    }

    /// Reads how many received datagrams the kernel has dropped. To be called periodically.
    pub fn count_kernel_drops(&mut self) {
        let Ok(drops) = sys::socket_drops(self.socket.get_ref()) else { return };
        self.counters.kernel_drops += u64::from(drops.wrapping_sub(self.kernel_drops));
        self.kernel_drops = drops;
    }
}

/// Access to socket options. Datagrams must be received and sent through [`UdpSocket`] only.
impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl std::fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UdpSocket").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// Returns the time of arrival by the monotonic clock. The kernel's stamp is of the system's time, which may have been set since:
/// the result is not before `earliest` and not after `now`.
fn arrival(now: Now, stamp: Option<Tai>, earliest: Mono) -> Mono {
    let Some(stamp) = stamp else { return now.mono };
    let waited = u64::try_from(now.tai.nanos().saturating_sub(stamp.nanos())).unwrap_or(0);
    let at = Mono(now.mono.0.saturating_sub(Duration::from_nanos(waited)));
    at.max(earliest).min(now.mono)
}

/// Groups the first datagrams into runs.
fn runs(datagrams: &[(SocketAddr, Bytes)], segments: bool) -> Vec<Run<'_>> {
    let mut rest = datagrams.get(..BATCH_SENT_MAX).unwrap_or(datagrams);
    let mut runs = Vec::new();
    while let Some((to, _)) = rest.first() {
        let length = if segments { run_length(rest) } else { 1 };
        let (run, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        runs.push(Run { to: SockAddr::from(*to), datagrams: run });
        rest = after;
    }
    runs
}

/// Returns the number of datagrams, from the first one, that pass the kernel as one piece: all to one address and of one length, but
/// the last one may be shorter.
fn run_length(datagrams: &[(SocketAddr, Bytes)]) -> usize {
    let Some((to, first)) = datagrams.first() else { return 0 };
    let (mut length, mut octets) = (1, first.len());
    for (other, datagram) in datagrams.iter().skip(1) {
        octets += datagram.len();
        let fits = length < RUN_DATAGRAMS_MAX && octets <= RUN_OCTETS_MAX;
        if other != to || datagram.len() > first.len() || datagram.is_empty() || !fits {
            break;
        }
        length += 1;
        if datagram.len() < first.len() {
            break;
        }
    }
    length
}

/// Returns `true` if an error may be the consequence of segmentation: the system or the interface cannot, or a segment does not fit
/// the interface.
fn may_be_about_segments(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::ENOPROTOOPT | libc::EOPNOTSUPP)
    )
}

/// Returns `true` if an error while receiving is about a datagram that was sent, so that the socket still works.
fn is_about_a_datagram(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
        || matches!(
            error.raw_os_error(),
            Some(
                libc::ECONNREFUSED
                    | libc::EHOSTUNREACH
                    | libc::ENETUNREACH
                    | libc::ENETDOWN
                    | libc::EHOSTDOWN
                    | libc::EMSGSIZE
                    | libc::EPROTO
                    | libc::ENOBUFS
                    | libc::ENOMEM
            )
        )
}

#[cfg(test)]
mod tests;
