//! Values of the vehicle that this crate does not interpret.

use bytes::{BufMut, Bytes};

use super::{HEADER_OCTETS, ParseError, Reader, TELEMETRY, begin};

/// Octets before the payload.
pub const TELEMETRY_HEADER_OCTETS: usize = HEADER_OCTETS + 8;

/// Values of the vehicle, for example its position. Later ones replace earlier ones.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 4 | sequence number |
/// | 4 | time of sending by the sender's clock, in microseconds |
/// | rest | payload |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Sequence number.
    pub sequence: u32,
    /// Time of sending by the sender's clock, in microseconds.
    pub sent_us: u32,
    /// Payload.
    pub payload: Bytes,
}

impl Telemetry {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self { sequence: reader.u32()?, sent_us: reader.u32()?, payload: reader.take_rest() })
    }

    pub(crate) fn write(&self, epoch: u32) -> Bytes {
        let mut octets = begin(TELEMETRY, epoch, TELEMETRY_HEADER_OCTETS + self.payload.len());
        octets.put_u32(self.sequence);
        octets.put_u32(self.sent_us);
        octets.put_slice(&self.payload);
        octets.freeze()
    }
}
