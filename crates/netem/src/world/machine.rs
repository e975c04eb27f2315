//! What a world drives.

use bytes::Bytes;
use viaduct_units::Mono;

/// A machine at one place of a world: a station, or anything else that sends and hears frames.
///
/// After each input, and after each command, the world takes every frame and reads the deadline.
pub trait Machine {
    /// Takes in a frame that was received whole.
    fn handle_frame(&mut self, now: Mono, frame: &Bytes);

    /// Does what is due; before the deadline of [`Self::poll_timeout`] it does nothing.
    fn handle_timeout(&mut self, now: Mono);

    /// The next frame to send.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// When [`Self::handle_timeout`] wants to be called.
    fn poll_timeout(&self) -> Option<Mono>;
}

/// Number of a station in a world, from 0 in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The frame.
    pub frame: Bytes,
    /// The only station that shall have it, which acknowledges it; `None`: all that hear it, and nobody acknowledges.
    pub to: Option<NodeId>,
}
