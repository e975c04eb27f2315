//! Header of a geographically scoped unicast (GUC), EN 302 636-4-1, clause 9.8.2. A location service reply has the same
//! header (clause 9.8.8).

use viaduct_units::Tai;

use super::{LongPositionVector, SequenceNumber, ShortPositionVector};

/// Offset of the destination's position vector, which forwarders update (clause 10.3.8.3).
pub(super) const DESTINATION_OFFSET: usize = 28;

/// Extended header of a packet for one station.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |              SN               |           reserved            |
/// +-------------------------------+-------------------------------+
/// |        source: long position vector (24 octets)               |
/// +---------------------------------------------------------------+
/// |        destination: short position vector (20 octets)         |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GucHeader {
    /// Sequence number of the packet.
    pub sequence_number: SequenceNumber,
    /// Position vector of the packet's source (SO PV).
    pub source: LongPositionVector,
    /// Address and last known position of the destination (DE PV).
    pub destination: ShortPositionVector,
}

impl GucHeader {
    /// Parses the header. Returns the header with the remaining octets, or `None` if there are fewer than 48 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (sequence_number, rest) = SequenceNumber::parse(octets)?;
        let (source, rest) = LongPositionVector::parse(rest, reception)?;
        let (destination, rest) = ShortPositionVector::parse(rest, reception)?;
        Some((Self { sequence_number, source, destination }, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.sequence_number.write(out);
        self.source.write(out);
        self.destination.write(out);
    }
}
