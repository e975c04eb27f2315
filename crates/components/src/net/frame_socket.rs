//! A socket that carries Ethernet frames: a packet socket of an interface, or UDP multicast.

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

use super::sys::{self, BATCH_FRAMES_MAX};

/// One octet more than a frame may have: a longer one is cut to this, and the station drops it for its length.
const SLOT_OCTETS: usize = FRAME_OCTETS_MAX + 1;

/// Octets set aside at a time for received frames, which are slices of it.
const CHUNK_OCTETS: usize = 64 << 10;

/// A socket that receives frames in batches and sends them one by one.
pub struct FrameSocket {
    socket: AsyncFd<Socket>,
    /// Where frames are sent to; a packet socket knows by itself.
    group: Option<SockAddr>,
    /// The interface of a packet socket.
    interface: Option<Interface>,
    /// Into this the kernel writes, a slot a frame.
    slots: Box<[u8]>,
    /// Of this the received frames are slices, one after the other: a frame that is kept long holds no empty slot.
    chunk: BytesMut,
    /// Frames of the last batch that wait to be taken.
    received: VecDeque<SocketFrame>,
}

/// A frame with what the kernel says about it.
#[derive(Clone, Debug)]
pub struct SocketFrame {
    /// The frame, Ethernet header included.
    pub octets: Bytes,
    /// When the kernel received it; `None` where it does not say.
    pub received: Option<Tai>,
}

/// The interface that a packet socket is bound to.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    /// Its own address; `None` where it has none, as the loopback interface.
    pub(super) address: Option<MacAddress>,
}

impl FrameSocket {
    /// A socket that is opened and bound. Call it inside the runtime.
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
            slots: vec![0; BATCH_FRAMES_MAX * SLOT_OCTETS].into_boxed_slice(),
            chunk: BytesMut::new(),
            received: VecDeque::with_capacity(BATCH_FRAMES_MAX),
        })
    }

    /// Address of the interface that the frames go out by, where it has one of its own.
    #[must_use]
    pub fn hardware_address(&self) -> Option<MacAddress> {
        self.interface.as_ref().and_then(|interface| interface.address)
    }

    /// Lets the interface pass on more frames than those to its own address; UDP multicast has no such thing.
    pub(super) fn add_membership(&self, membership: sys::Membership) -> io::Result<()> {
        let Some(interface) = &self.interface else { return Ok(()) };
        sys::add_membership(self.socket.get_ref(), interface.index, membership)
    }

    /// Waits for the next frame. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// The socket fails. An interface that is down is waited for.
    pub async fn receive(&mut self) -> io::Result<SocketFrame> {
        loop {
            if let Some(frame) = self.received.pop_front() {
                return Ok(frame);
            }
            self.socket.readable().await?.retain_ready();
            self.receive_batch()?;
        }
    }

    /// The next frame, where one is there.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn try_receive(&mut self) -> io::Result<Option<SocketFrame>> {
        if self.received.is_empty() {
            self.receive_batch()?;
        }
        Ok(self.received.pop_front())
    }

    /// Takes what waits in the kernel, as one batch.
    fn receive_batch(&mut self) -> io::Result<()> {
        let Self { socket, slots, chunk, received, .. } = self;
        let take = |octets: &[u8], time: Option<Tai>| {
            if chunk.capacity() < octets.len() {
                *chunk = BytesMut::with_capacity(CHUNK_OCTETS);
            }
            chunk.extend_from_slice(octets);
            received.push_back(SocketFrame { octets: chunk.split().freeze(), received: time });
        };
        let outcome = socket.try_io(Interest::READABLE, |socket| sys::receive_batch(socket, slots, SLOT_OCTETS, take));
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => self.note_down(),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        Ok(())
    }

    /// An interface that is down comes up again, and the kernel then goes on by itself.
    fn note_down(&self) {
        let interface = self.interface.as_ref().map_or("", |interface| interface.name.as_str());
        tracing::warn!(interface, "network interface is down");
    }

    /// Sees whether the interface is still there: nobody who waits for frames is woken when it is removed. Call it now and
    /// then.
    ///
    /// # Errors
    /// The interface is gone, or another one has its name.
    pub fn check(&self) -> io::Result<()> {
        let Some(interface) = &self.interface else { return Ok(()) };
        if self.socket.get_ref().take_error()?.is_some_and(|error| error.kind() == io::ErrorKind::NetworkDown) {
            self.note_down();
        }
        if nix::net::if_::if_nametoindex(interface.name.as_str()) == Ok(interface.index) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NetworkDown, format!("network interface {} is gone", interface.name)))
    }

    /// Frames that the kernel had to drop on this socket so far, because its queue was full. The count wraps.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn kernel_drops(&self) -> io::Result<u32> {
        sys::socket_drops(self.socket.get_ref())
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The system does not take it.
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

/// For what else the system can tell about the socket; its frames are taken by [`FrameSocket::receive`] alone.
impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}
