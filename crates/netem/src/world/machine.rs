//! The interface of a simulated station.

use bytes::Bytes;
use viaduct_units::Mono;

/// A machine at one place of a world: a station, or anything else that sends and receives frames.
///
/// After each input and each command, the world takes all frames and reads the deadline.
pub trait Machine {
    /// Processes a received frame.
    fn handle_frame(&mut self, now: Mono, frame: &Bytes);

    /// Does the work that is due. Does nothing before the deadline of [`Self::poll_timeout`].
    fn handle_timeout(&mut self, now: Mono);

    /// Returns the next frame to send, or `None`.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
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
    /// The receiver, which acknowledges the frame, or `None` for a broadcast, which is not acknowledged.
    pub to: Option<NodeId>,
}
