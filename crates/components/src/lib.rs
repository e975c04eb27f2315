//! The kinds of components of Viaduct ([`kinds`]), and the modules that they share.
//!
//! Only here do the bus and the protocols meet: a component owns sockets, reads the clock, and drives a pure machine.
//! A new kind is a new file in `kinds/` and a row in [`KINDS`].
//!
//! | module | purpose |
//! |---|---|
//! | [`kinds`] | one file or folder per kind |
//! | [`link`] | emulated link between two network namespaces |
//! | [`net`] | sockets: batched receive, kernel timestamps, kernel drop counters |
//! | [`capture`] | reader and writer of capture files |
//! | [`mqtt`] | routes between topics of the bus and MQTT topics |
//! | [`teleop`] | pictures, datagrams and event log of a remote drive |
//! | [`v2x`] | V2X messages and send requests as they travel on the bus |

pub mod capture;
mod coap;
mod counter_mirror;
mod encoding;
pub mod figures;
mod frame_segment;
pub mod kinds;
pub mod link;
mod machine_counters;
mod motion;
pub mod mqtt;
mod mqttsn;
pub mod net;
mod record_log;
pub mod retransmission;
mod ros1_type;
mod ros2_type;
pub mod teleop;
pub mod v2x;

pub use kinds::KINDS;
