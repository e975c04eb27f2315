//! TCPROS, the transport of ROS 1 topics: a connection header of each end, then the messages of the publisher.
//!
//! ```text
//! frames.rs      octets of a connection -> frames, each with its length before it
//! header.rs      connection header: fields `key=value`
//! handshake.rs   the header of a subscriber, and the answer of a publisher
//! ```

mod frames;
mod handshake;
mod header;

pub use frames::{FrameTooLong, Frames, write_length};
pub use handshake::{ANY, HandshakeError, Offer, Request};
pub use header::{Header, HeaderError};
