//! A socket for Ethernet frames: a packet socket of an interface, or UDP multicast.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::{Bytes, BytesMut};
use socket2::{SockAddr, Socket};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use viaduct_its::access::MacAddress;
use viaduct_its::limits::FRAME_OCTETS_MAX;
use viaduct_node::StartError;
use viaduct_units::Tai;

use super::sys::{self, Arrival, BATCH_FRAMES_MAX};

/// Size of a receive slot: one byte more than the longest frame. A longer frame is truncated to this size, and the station drops it
/// because of its length.
const SLOT_BYTES: usize = FRAME_OCTETS_MAX + 1;

/// Size of an allocation for received frames, which are slices of it.
const CHUNK_BYTES: usize = 64 << 10;

/// A socket that receives frames in batches and sends them one by one.
pub struct FrameSocket {
    socket: AsyncFd<Socket>,
    /// Destination of sent frames; `None` for a packet socket.
    group: Option<SockAddr>,
    /// Interface of a packet socket.
    interface: Option<Interface>,
    /// Memory into which the kernel writes, one slot per frame.
    slots: Box<[u8]>,
    /// Memory of the received frames, which are contiguous slices of it, so that a frame kept for long does not hold an empty slot.
    chunk: BytesMut,
    /// Frames of the last batch that have not been returned yet.
    received: VecDeque<SocketFrame>,
}

/// A received frame with the timestamp of the kernel.
#[derive(Clone, Debug)]
pub struct SocketFrame {
    /// The frame, Ethernet header included.
    pub octets: Bytes,
    /// Time of reception in the kernel; `None` if the kernel gave no timestamp.
    pub received: Option<Tai>,
}

/// The interface that a packet socket is bound to.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    /// Link address; `None` if it has none, as the loopback interface.
    pub(super) address: Option<MacAddress>,
}

impl FrameSocket {
    /// Wraps a bound socket. Must be called inside the runtime.
    pub(super) fn new(
        socket: Socket,
        group: Option<SocketAddr>,
        interface: Option<Interface>,
    ) -> Result<Self, StartError> {
        let socket =
            sys::watch(socket).map_err(|cause| StartError::io("cannot wait for frames on the socket", cause))?;
        Ok(Self {
            socket,
            group: group.map(SockAddr::from),
            interface,
            slots: vec![0; BATCH_FRAMES_MAX * SLOT_BYTES].into_boxed_slice(),
            chunk: BytesMut::new(),
            received: VecDeque::with_capacity(BATCH_FRAMES_MAX),
        })
    }

    /// Returns the link address of the interface, or `None` if it has none.
    #[must_use]
    pub fn hardware_address(&self) -> Option<MacAddress> {
        self.interface.as_ref().and_then(|interface| interface.address)
    }

    /// Enables the reception of frames that are not addressed to the interface. Does nothing for UDP multicast.
    pub(super) fn add_membership(&self, membership: sys::Membership) -> io::Result<()> {
        let Some(interface) = &self.interface else { return Ok(()) };
        sys::add_membership(self.socket.get_ref(), interface.index, membership)
    }

    /// Waits for the next frame. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// Returns an error if the socket fails. The call waits while the interface is down.
    pub async fn receive(&mut self) -> io::Result<SocketFrame> {
        loop {
            if let Some(frame) = self.received.pop_front() {
                return Ok(frame);
            }
            self.socket.readable().await?.retain_ready();
            self.receive_batch()?;
        }
    }

    /// Returns the next frame, or `None` if none is waiting.
    ///
    /// # Errors
    /// Returns the errors of [`Self::receive`].
    pub fn try_receive(&mut self) -> io::Result<Option<SocketFrame>> {
        if self.received.is_empty() {
            self.receive_batch()?;
        }
        Ok(self.received.pop_front())
    }

    /// Receives the frames that wait in the kernel, as one batch.
    fn receive_batch(&mut self) -> io::Result<()> {
        let Self { socket, slots, chunk, received, .. } = self;
        let take = |Arrival { octets, stamp, .. }: Arrival<'_>| {
            if chunk.capacity() < octets.len() {
                *chunk = BytesMut::with_capacity(CHUNK_BYTES);
            }
            chunk.extend_from_slice(octets);
            received.push_back(SocketFrame { octets: chunk.split().freeze(), received: stamp });
        };
        let outcome = socket.try_io(Interest::READABLE, |socket| sys::receive_batch(socket, slots, SLOT_BYTES, take));
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => self.log_down(),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        Ok(())
    }

    /// Logs that the interface is down. Reception continues when it is up again.
    fn log_down(&self) {
        let interface = self.interface.as_ref().map_or("", |interface| interface.name.as_str());
        tracing::warn!(interface, "network interface is down");
    }

    /// Checks that the interface still exists. To be called periodically, because the removal of an interface does not wake
    /// [`Self::receive`].
    ///
    /// # Errors
    /// Returns an error if the interface was removed, or another one has its name.
    pub fn check(&self) -> io::Result<()> {
        let Some(interface) = &self.interface else { return Ok(()) };
        if self.socket.get_ref().take_error()?.is_some_and(|error| error.kind() == io::ErrorKind::NetworkDown) {
            self.log_down();
        }
        if nix::net::if_::if_nametoindex(interface.name.as_str()) == Ok(interface.index) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NetworkDown, format!("network interface {} is gone", interface.name)))
    }

    /// Returns the number of frames that the kernel has dropped on this socket because its queue was full. The count wraps.
    ///
    /// # Errors
    /// Returns an error if the system call fails.
    pub fn kernel_drops(&self) -> io::Result<u32> {
        sys::socket_drops(self.socket.get_ref())
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// Returns an error if the system rejects the frame.
    pub async fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.async_io(Interest::WRITABLE, |socket| self.send_now(socket, frame)).await
    }

    fn send_now(&self, socket: &Socket, frame: &[u8]) -> io::Result<()> {
        match &self.group {
            Some(group) => socket.send_to(frame, group),
            None => socket.send(frame),
        }
        .map(drop)
    }
}

/// Access to socket options. Frames must be received through [`FrameSocket::receive`] only.
impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}
