//! The access layers of a station behind one face: frames come, frames go.

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

/// Where a station's frames come from and go to.
pub(super) enum Link {
    /// A network, by a socket.
    Socket(FrameSocket),
    /// A capture file, which takes no frames.
    Replay(Replay),
}

/// A frame and when it came.
pub(super) struct LinkFrame {
    /// The Ethernet frame, or the reason why the record of a capture has none.
    pub(super) octets: Result<Bytes, SkipReason>,
    pub(super) time: FrameTime,
}

/// What is known about the time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameTime {
    /// It came just now, and nobody said when.
    Now,
    /// The kernel received it at that time.
    Received(Tai),
    /// It was captured at that time and is received again; `again` is the first of a further pass.
    Captured { at: Tai, again: bool },
}

/// Why a link is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The socket fails.
    #[error("cannot receive frames: {0}")]
    Socket(#[from] io::Error),
    /// The capture cannot be read on.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl Link {
    /// Opens the access layer for a station; its address is `configured`, or that of the interface. Call it inside the
    /// runtime.
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

    /// Address of the interface, where the link has one.
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

    /// The next frame, where one is there.
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
            Self::Replay(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "a capture takes no frames")),
        }
    }

    /// Sees whether the link can still be received from. Call it now and then.
    pub(super) fn check(&mut self) -> Result<(), LinkError> {
        match self {
            Self::Socket(socket) => Ok(socket.check()?),
            Self::Replay(_) => Ok(()),
        }
    }

    /// Frames that were dropped before the station could take them; the count wraps.
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

/// How messages name the access layer that they came by.
pub(super) const fn access_layer(access: &Access) -> AccessLayer {
    match access {
        Access::UdpMulticast(_) => AccessLayer::UdpMulticast,
        Access::Ethernet(_) => AccessLayer::Ethernet,
        Access::Replay(_) => AccessLayer::Replay,
    }
}
