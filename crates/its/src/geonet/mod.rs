//! GeoNetworking, EN 302 636-4-1 V1.4.1.
//!
//! The files in this folder are the data structures of the standard: headers, position vectors, addresses, areas, the
//! location table. `router/` contains the procedures of a station. [`parse_with`] also parses signed packets, with
//! [`crate::security`].

mod address;
mod area;
mod basic_header;
mod beacon;
mod common_header;
mod coordinates;
mod data_rate;
mod geo_header;
mod guc;
mod lifetime;
mod location_table;
mod ls;
pub mod mib;
mod packet;
mod position_vector;
mod router;
mod sequence_number;
mod shb;
mod traffic_class;
mod tsb;

pub use address::GnAddress;
pub use area::{Area, Shape, ShapeKind};
pub use basic_header::{BasicHeader, BasicNextHeader};
pub use common_header::{CommonHeader, CommonNextHeader, HeaderType};
pub use geo_header::GeoHeader;
pub use guc::GucHeader;
pub use lifetime::Lifetime;
pub use ls::LsRequestHeader;
pub use mib::Mib;
pub use packet::{Packet, PacketBody, parse, parse_with};
pub use position_vector::{LongPositionVector, ShortPositionVector};
pub(crate) use router::{GnRequest, Outcome, Router};
pub use sequence_number::SequenceNumber;
pub use shb::ShbHeader;
pub use traffic_class::TrafficClass;
pub use tsb::TsbHeader;
