//! Header of a location service request, EN 302 636-4-1, clause 9.8.7.

use viaduct_units::Tai;

use super::{GnAddress, LongPositionVector, SequenceNumber};

/// Extended header of a location request.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |              SN               |           reserved            |
/// +-------------------------------+-------------------------------+
/// |        source: long position vector (24 octets)               |
/// +---------------------------------------------------------------+
/// |                   request GN_ADDR (64 bits)                   |
/// +---------------------------------------------------------------+
/// |                                                               |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LsRequestHeader {
    /// Sequence number of the packet.
    pub sequence_number: SequenceNumber,
    /// Position vector of the requesting station (SO PV).
    pub source: LongPositionVector,
    /// Address of the sought station.
    pub sought: GnAddress,
}

impl LsRequestHeader {
    /// Parses the header. Returns the header with the remaining octets, or `None` if there are fewer than 36 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (sequence_number, rest) = SequenceNumber::parse(octets)?;
        let (source, rest) = LongPositionVector::parse(rest, reception)?;
        let (&sought, rest) = rest.split_first_chunk::<8>()?;
        Some((Self { sequence_number, source, sought: GnAddress(sought) }, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.sequence_number.write(out);
        self.source.write(out);
        out.extend_from_slice(&self.sought.0);
    }
}
