//! Beacon, EN 302 636-4-1, clauses 9.8.6 and 10.3.6.

use super::{
    BasicHeader, BasicNextHeader, LongPositionVector, common_header,
    mib::{ITS_GN_DEFAULT_PACKET_LIFETIME, ITS_GN_DEFAULT_TRAFFIC_CLASS, ITS_GN_PROTOCOL_VERSION},
};

/// HT 1, HST 0.
const HEADER_TYPE: u8 = 0x10;
/// NH: nothing follows.
const NEXT_HEADER_ANY: u8 = 0;

/// Appends an unsecured beacon: its extended header is the source's position vector, and it has no payload.
pub fn write_beacon(source: &LongPositionVector, mobile: bool, out: &mut Vec<u8>) {
    let basic = BasicHeader {
        version: ITS_GN_PROTOCOL_VERSION,
        next_header: BasicNextHeader::CommonHeader,
        lifetime: ITS_GN_DEFAULT_PACKET_LIFETIME,
        remaining_hop_limit: 1,
    };
    basic.write(out);
    common_header::write(NEXT_HEADER_ANY, HEADER_TYPE, ITS_GN_DEFAULT_TRAFFIC_CLASS, mobile, 0, out);
    source.write(out);
}
