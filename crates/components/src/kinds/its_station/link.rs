//! The access layers of a station behind one interface that receives and sends frames.

use std::io;

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_its::access::MacAddress;
use viaduct_messages::viaduct::its::AccessLayer;
use viaduct_node::StartError;
use viaduct_units::Tai;

use super::replay::{DueFrame, Replay};
use super::settings::Access;
use crate::capture::{CaptureError, SkipReason};
use crate::net::{FrameSocket, SocketFrame, ethernet, udp};

/// The access layer of a station.
pub(super) enum Link {
    /// A network, through a socket.
    Socket(FrameSocket),
    /// A capture file. Frames cannot be sent.
    Replay(Replay),
}

/// A received frame and its time of reception.
pub(super) struct LinkFrame {
    /// The Ethernet frame, or the reason why the record of a capture has none.
    pub(super) octets: Result<Bytes, SkipReason>,
    pub(super) time: FrameTime,
}

/// Time of reception of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameTime {
    /// Now: the kernel gave no timestamp.
    Now,
    /// The timestamp of the kernel.
    Received(Tai),
    /// The frame is replayed; `at` is its capture time. `again` is `true` for the first frame of a further pass.
    Captured { at: Tai, again: bool },
}

/// Failure of a link.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The socket fails.
    #[error("cannot receive frames: {0}")]
    Socket(#[from] io::Error),
    /// The rest of the capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl Link {
    /// Opens the access layer for a station. Frames to `configured` are received as well if it differs from the address of the
    /// interface. Must be called inside the runtime.
    pub(super) fn open(access: &Access, configured: Option<MacAddress>) -> Result<Self, StartError> {
        Ok(match access {
            Access::UdpMulticast(settings) => Self::Socket(udp::open(settings)?),
            Access::Ethernet(settings) => {
                let socket = ethernet::open(settings)?;
                if let Some(address) = configured {
                    ethernet::receive_for(&socket, address)?;
                }
                Self::Socket(socket)
            }
            Access::Replay(settings) => Self::Replay(Replay::open(settings)?),
        })
    }

    /// Returns the address of the interface, or `None` if the link has none.
    pub(super) fn hardware_address(&self) -> Option<MacAddress> {
        match self {
            Self::Socket(socket) => socket.hardware_address(),
            Self::Replay(_) => None,
        }
    }

    /// Waits for the next frame. Cancelling the wait loses nothing.
    pub(super) async fn receive(&mut self) -> Result<LinkFrame, LinkError> {
        match self {
            Self::Socket(socket) => Ok(socket.receive().await?.into()),
            Self::Replay(replay) => Ok(replay.receive().await?.into()),
        }
    }

    /// Returns the next frame, or `None` if none is waiting.
    pub(super) fn try_receive(&mut self) -> Result<Option<LinkFrame>, LinkError> {
        match self {
            Self::Socket(socket) => Ok(socket.try_receive()?.map(LinkFrame::from)),
            Self::Replay(replay) => Ok(replay.try_receive(clock::mono())?.map(LinkFrame::from)),
        }
    }

    /// Sends a frame.
    pub(super) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.send(frame).await,
            Self::Replay(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "frames cannot be sent to a capture")),
        }
    }

    /// Checks that the link can still receive. To be called periodically.
    pub(super) fn check(&mut self) -> Result<(), LinkError> {
        match self {
            Self::Socket(socket) => Ok(socket.check()?),
            Self::Replay(_) => Ok(()),
        }
    }

    /// Returns the number of frames that the kernel dropped before the station could receive them. The count wraps.
    pub(super) fn kernel_drops(&self) -> io::Result<u32> {
        match self {
            Self::Socket(socket) => socket.kernel_drops(),
            Self::Replay(_) => Ok(0),
        }
    }
}

impl From<SocketFrame> for LinkFrame {
    fn from(frame: SocketFrame) -> Self {
        Self { octets: Ok(frame.octets), time: frame.received.map_or(FrameTime::Now, FrameTime::Received) }
    }
}

impl From<DueFrame> for LinkFrame {
    fn from(frame: DueFrame) -> Self {
        Self { octets: frame.octets, time: FrameTime::Captured { at: frame.captured, again: frame.again } }
    }
}

/// Returns the access layer as it appears in messages.
pub(super) const fn access_layer(access: &Access) -> AccessLayer {
    match access {
        Access::UdpMulticast(_) => AccessLayer::UdpMulticast,
        Access::Ethernet(_) => AccessLayer::Ethernet,
        Access::Replay(_) => AccessLayer::Replay,
    }
}
