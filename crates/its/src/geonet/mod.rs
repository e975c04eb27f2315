//! GeoNetworking, EN 302 636-4-1 V1.4.1: what a station needs to exchange single-hop broadcasts.
//!
//! Read: basic header, common header, single-hop broadcast (SHB), beacon. Written: the same. The other header types
//! (GUC, GAC, GBC, TSB, LS) and secured packets are recognised, not processed.

mod address;
mod area;
mod basic_header;
mod beacon;
mod common_header;
mod lifetime;
pub mod mib;
mod packet;
mod position_vector;
mod shb;
mod traffic_class;

pub use address::GnAddress;
pub use area::{Area, Shape};
pub use basic_header::{BasicHeader, BasicNextHeader};
pub use beacon::write_beacon;
pub use common_header::{CommonHeader, CommonNextHeader, HeaderType};
pub use lifetime::Lifetime;
pub use packet::{Packet, PacketBody, parse};
pub use position_vector::LongPositionVector;
pub use shb::{ShbHeader, write_shb};
pub use traffic_class::TrafficClass;
