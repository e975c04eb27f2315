//! Basic transport protocol, EN 302 636-5-1 V2.2.1: a port, so that one station has many facilities.

mod header;
pub mod ports;

pub use header::{BtpHeader, BtpKind, HEADER_OCTETS};
