//! Reads frames from a connection.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use viaduct_ros::tcpros::{FrameTooLong, Frames};

/// Reason why a connection has no further frame.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    TooLong(#[from] FrameTooLong),
    #[error("the other end closed the connection")]
    Closed,
}

/// Returns the next frame of a connection. `frames` keeps what was received of the frames after it.
pub(super) async fn next_frame(stream: &mut TcpStream, frames: &mut Frames) -> Result<Bytes, FrameError> {
    loop {
        if let Some(frame) = frames.next_frame()? {
            return Ok(frame);
        }
        if stream.read_buf(frames.room()).await? == 0 {
            return Err(FrameError::Closed);
        }
    }
}
