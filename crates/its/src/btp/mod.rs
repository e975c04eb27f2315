//! Basic transport protocol (BTP), EN 302 636-5-1 V2.2.1: ports that distinguish the facilities of a station.

mod header;
pub mod ports;

pub use header::{BtpHeader, BtpKind, HEADER_OCTETS};
