//! Header of a geographically scoped broadcast (GBC) or anycast (GAC), EN 302 636-4-1, clause 9.8.5.

use viaduct_units::Tai;

use super::{Area, LongPositionVector, SequenceNumber, ShapeKind};
use crate::DropReason;

/// Extended header of a packet for an area.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |              SN               |           reserved            |
/// +-------------------------------+-------------------------------+
/// |        source: long position vector (24 octets)               |
/// +---------------------------------------------------------------+
/// |              latitude of the centre (1/10 microdegree)        |
/// +---------------------------------------------------------------+
/// |              longitude of the centre (1/10 microdegree)       |
/// +-------------------------------+-------------------------------+
/// |       distance a (m)          |        distance b (m)         |
/// +-------------------------------+-------------------------------+
/// |       angle (degree)          |           reserved            |
/// +-------------------------------+-------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeoHeader {
    /// Sequence number of the packet.
    pub sequence_number: SequenceNumber,
    /// Position vector of the packet's source (SO PV).
    pub source: LongPositionVector,
    /// Destination area.
    pub area: Area,
}

impl GeoHeader {
    /// Parses the header of a packet for an area of the given shape. Returns the header with the remaining octets.
    ///
    /// # Errors
    /// Returns an error if there are fewer than 44 octets, or the fields are not an area.
    pub fn parse(kind: ShapeKind, octets: &[u8], reception: Tai) -> Result<(Self, &[u8]), DropReason> {
        let (sequence_number, rest) = SequenceNumber::parse(octets).ok_or(DropReason::Truncated)?;
        let (source, rest) = LongPositionVector::parse(rest, reception).ok_or(DropReason::Truncated)?;
        let (area, rest) = Area::parse(kind, rest).ok_or(DropReason::Truncated)?;
        let (_reserved, rest) = rest.split_first_chunk::<2>().ok_or(DropReason::Truncated)?;
        let area = area.map_err(|_| DropReason::AreaInvalid)?;
        Ok((Self { sequence_number, source, area }, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.sequence_number.write(out);
        self.source.write(out);
        self.area.write(out);
        out.extend_from_slice(&[0; 2]);
    }
}
