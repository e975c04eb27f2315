//! Header of a topologically scoped broadcast (TSB), EN 302 636-4-1, clause 9.8.3.

use viaduct_units::Tai;

use super::{LongPositionVector, SequenceNumber};

/// Extended header of a topologically scoped broadcast.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |              SN               |           reserved            |
/// +-------------------------------+-------------------------------+
/// |        source: long position vector (24 octets)               |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TsbHeader {
    /// Sequence number of the packet.
    pub sequence_number: SequenceNumber,
    /// Position vector of the packet's source (SO PV).
    pub source: LongPositionVector,
}

impl TsbHeader {
    /// Parses the header. Returns the header with the remaining octets, or `None` if there are fewer than 28 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (sequence_number, rest) = SequenceNumber::parse(octets)?;
        let (source, rest) = LongPositionVector::parse(rest, reception)?;
        Some((Self { sequence_number, source }, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.sequence_number.write(out);
        self.source.write(out);
    }
}
