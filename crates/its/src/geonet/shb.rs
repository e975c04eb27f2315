//! Header of a single-hop broadcast (SHB), EN 302 636-4-1, clause 9.8.4.

use viaduct_units::Tai;

use super::LongPositionVector;

/// Length of the media-dependent data after the position vector, in octets (TS 102 636-4-2 for ITS-G5).
const MEDIA_DEPENDENT_OCTETS: usize = 4;

/// Extended header of a single-hop broadcast.
///
/// ```text
/// +---------------------------------------------------------------+
/// |        source: long position vector (24 octets)               |
/// +---------------------------------------------------------------+
/// |                    media-dependent data                       |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShbHeader {
    /// Position vector of the packet's source (SO PV).
    pub source: LongPositionVector,
    /// Data of the access layer, for example the channel load, or zero.
    pub media_dependent: [u8; MEDIA_DEPENDENT_OCTETS],
}

impl ShbHeader {
    /// Parses the header. Returns the header with the remaining octets, or `None` if there are fewer than 28 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (source, rest) = LongPositionVector::parse(octets, reception)?;
        let (&media_dependent, rest) = rest.split_first_chunk::<MEDIA_DEPENDENT_OCTETS>()?;
        Some((Self { source, media_dependent }, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.source.write(out);
        out.extend_from_slice(&self.media_dependent);
    }
}
