//! ETSI C-ITS as pure machines: access, GeoNetworking, BTP and facilities, each in a folder as the standard's figure has them.
//!
//! | folder | standard |
//! |---|---|
//! | [`access`] | EN 302 663 (here: Ethernet II frames) |
//! | [`geonet`] | EN 302 636-4-1 V1.4.1 |
//! | [`btp`] | EN 302 636-5-1 V2.2.1, ports of TS 103 248 |
//! | [`dcc`] | TS 102 687 V1.2.1 |
//! | [`facilities`] | TS 103 900 (CAM), TS 103 831 (DENM), TS 103 324 (CPM), TS 103 300-3 (VAM), EN 302 895 (local dynamic map) |
//! | [`dialect`] | none: the JSON of applications |
//!
//! [`Station`] is the machine of a station: frames, commands and time go in; frames, events and a deadline come out.
//! [`decode_frame`] is its receiving half alone, for one frame without a station.
//!
//! What is not here: sockets, clocks, random sources, threads. Signed packets are recognised and dropped, since nothing
//! verifies them yet.

pub mod access;
pub mod btp;
mod counters;
pub mod dcc;
pub mod dialect;
mod drop_explanation;
mod drop_reason;
pub mod facilities;
pub mod geonet;
pub mod limits;
mod receive;
mod request;
mod send_error;
mod settings;
mod station;

pub use counters::Counters;
pub use drop_reason::DropReason;
pub use receive::{BeaconReceived, Frame, LocationServiceReceived, Received, Security, decode_frame};
pub use request::{Destination, Repetition, SendRequest};
pub use send_error::SendError;
pub use settings::{Ego, StationSettings};
pub use station::{Event, Station};
