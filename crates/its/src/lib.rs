//! ETSI C-ITS as pure state machines: access, GeoNetworking, BTP and facilities, one folder per layer.
//!
//! | folder | standard |
//! |---|---|
//! | [`access`] | EN 302 663 (here: Ethernet II frames) |
//! | [`geonet`] | EN 302 636-4-1 V1.4.1 |
//! | [`btp`] | EN 302 636-5-1 V2.2.1, ports of TS 103 248 |
//! | [`dcc`] | TS 102 687 V1.2.1 |
//! | [`security`] | IEEE 1609.2, TS 103 097 V2.1.1 |
//! | [`facilities`] | TS 103 900 (CAM), TS 103 831 (DENM), TS 103 324 (CPM), TS 103 300-3 (VAM), EN 302 895 (local dynamic map) |
//!
//! [`Station`] is the state machine of a station: frames, commands and time go in; frames, events and a deadline come
//! out. [`decode_frame`] decodes one frame without a station.
//!
//! Not included: sockets, clocks, random sources, threads. Signatures are not verified yet: signed packets are dropped,
//! or accepted and marked if the [`Acceptance`] permits it.

pub mod access;
pub mod btp;
mod counters;
pub mod dcc;
mod drop_explanation;
mod drop_reason;
pub mod facilities;
pub mod geonet;
pub mod limits;
mod receive;
mod request;
pub mod security;
mod send_error;
mod settings;
mod station;

pub use counters::Counters;
pub use drop_reason::DropReason;
pub use receive::{
    BeaconReceived, Frame, LocationServiceReceived, Received, decode_frame, decode_frame_with, explain_drop,
};
pub use request::{Destination, Repetition, SendRequest};
pub use security::{HashedId8, Security, SecurityPolicy};
pub use send_error::SendError;
pub use settings::{Acceptance, Ego, StationSettings};
pub use station::{Event, Station};
