//! Long and short position vector, EN 302 636-4-1, clauses 9.5.2 and 9.5.3.

use viaduct_units::{Degrees, MetresPerSecond, Position, Tai, TimestampIts};

use super::{GnAddress, coordinates};

/// Length of the vector in octets.
#[cfg(test)]
const OCTETS: usize = 24;
/// Units of the speed field per metre per second.
const PER_METRE_PER_SECOND: f64 = 100.0;
/// Units of the heading field per degree.
const HEADING_PER_DEGREE: f64 = 10.0;
/// Width of the timestamp in bits.
const TIMESTAMP_BITS: u32 = 32;

/// Position, speed and heading of a station at a time.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +---------------------------------------------------------------+
/// |                       GN_ADDR (64 bits)                       |
/// +---------------------------------------------------------------+
/// |                                                               |
/// +---------------------------------------------------------------+
/// |                    TST (ms of TAI, lowest 32 bits)            |
/// +---------------------------------------------------------------+
/// |                    latitude (1/10 microdegree)                |
/// +---------------------------------------------------------------+
/// |                    longitude (1/10 microdegree)               |
/// +-+-----------------------------+-------------------------------+
/// |P|     speed (0,01 m/s)        |       heading (0,1 degree)    |
/// +-+-----------------------------+-------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongPositionVector {
    /// Address of the station.
    pub address: GnAddress,
    /// Time of the position, widened from 32 bits (49.7 days) with the time of reception.
    pub timestamp: Tai,
    /// Position, or `None` if the coordinates are invalid.
    pub position: Option<Position>,
    /// `true` if the 95 % confidence ellipse is within `itsGnPaiInterval` (PAI).
    pub position_accurate: bool,
    /// Speed along the heading, negative if the station moves backwards.
    pub speed: MetresPerSecond,
    /// Heading, 0 up to 360, or `None` if the value is invalid.
    pub heading: Option<Degrees>,
}

impl LongPositionVector {
    /// Parses the vector. Returns the vector with the remaining octets, or `None` if there are fewer than 24 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (short, rest) = ShortPositionVector::parse(octets, reception)?;
        let (&[pai_speed_high, speed_low], rest) = rest.split_first_chunk::<2>()?;
        let (&heading, rest) = rest.split_first_chunk::<2>()?;
        // The speed has 15 bits with a sign; shifting left and right extends the sign.
        let speed = (i16::from_be_bytes([pai_speed_high, speed_low]) << 1) >> 1;
        let vector = Self {
            address: short.address,
            timestamp: short.timestamp,
            position: short.position,
            position_accurate: pai_speed_high & 0x80 != 0,
            speed: MetresPerSecond(f64::from(speed) / PER_METRE_PER_SECOND),
            heading: heading_of(u16::from_be_bytes(heading)),
        };
        Some((vector, rest))
    }

    /// Appends the vector. Unknown values are written as invalid ones.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the field before")]
    pub fn write(&self, out: &mut Vec<u8>) {
        let speed = (self.speed.value() * PER_METRE_PER_SECOND).round().clamp(-16_384.0, 16_383.0) as i16;
        let pai = if self.position_accurate { 0x8000 } else { 0 };
        let tenths = |degrees: Degrees| (degrees.normalised().value() * HEADING_PER_DEGREE).round() as u16 % 3600;
        self.short().write(out);
        out.extend_from_slice(&(speed as u16 & 0x7FFF | pai).to_be_bytes());
        out.extend_from_slice(&self.heading.map_or(u16::MAX, tenths).to_be_bytes());
    }

    /// Returns the short vector, which identifies a destination.
    #[must_use]
    pub const fn short(&self) -> ShortPositionVector {
        ShortPositionVector { address: self.address, timestamp: self.timestamp, position: self.position }
    }
}

/// Position of a station at a time, without its movement.
///
/// ```text
/// +---------------------------------------------------------------+
/// |                       GN_ADDR (64 bits)                       |
/// +---------------------------------------------------------------+
/// |                                                               |
/// +---------------------------------------------------------------+
/// |                    TST (ms of TAI, lowest 32 bits)            |
/// +---------------------------------------------------------------+
/// |                    latitude (1/10 microdegree)                |
/// +---------------------------------------------------------------+
/// |                    longitude (1/10 microdegree)               |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortPositionVector {
    /// Address of the station.
    pub address: GnAddress,
    /// Time of the position, widened from 32 bits (49.7 days) with the time of reception.
    pub timestamp: Tai,
    /// Position, or `None` if the coordinates are invalid.
    pub position: Option<Position>,
}

impl ShortPositionVector {
    /// Length of the vector in octets.
    pub const OCTETS: usize = 20;

    /// Parses the vector. Returns the vector with the remaining octets, or `None` if there are fewer than 20 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (&address, rest) = octets.split_first_chunk::<8>()?;
        let (&timestamp, rest) = rest.split_first_chunk::<4>()?;
        let (position, rest) = coordinates::parse(rest)?;
        let timestamp = u32::from_be_bytes(timestamp).into();
        let timestamp = reception.timestamp_its().widen(timestamp, TIMESTAMP_BITS).tai();
        Some((Self { address: GnAddress(address), timestamp, position }, rest))
    }

    /// Appends the vector.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.address.0);
        out.extend_from_slice(&TimestampIts::geonet(self.timestamp.timestamp_its()).to_be_bytes());
        coordinates::write(self.position, out);
    }
}

fn heading_of(tenths: u16) -> Option<Degrees> {
    // 3600 is north too; 3601 is the "unavailable" of the facilities layer.
    (tenths <= 3600).then(|| Degrees(f64::from(tenths) / HEADING_PER_DEGREE).normalised())
}

#[cfg(test)]
mod tests {
    use viaduct_units::StationType;

    use super::*;
    use crate::access::MacAddress;

    fn vector() -> LongPositionVector {
        LongPositionVector {
            address: GnAddress::new(StationType::PASSENGER_CAR, MacAddress([2, 0, 0, 0, 0, 1])),
            timestamp: TimestampIts(650_000_000_123).tai(),
            position: Some(Position::new(45.014_765_3, -7.568_490_8)),
            position_accurate: true,
            speed: MetresPerSecond(-13.89),
            heading: Some(Degrees(270.5)),
        }
    }

    #[test]
    fn vector_round_trips() {
        let mut octets = Vec::new();
        vector().write(&mut octets);
        assert_eq!(octets.len(), OCTETS);
        let reception = TimestampIts(650_000_000_500).tai();
        assert_eq!(LongPositionVector::parse(&octets, reception), Some((vector(), &[][..])));
        assert_eq!(LongPositionVector::parse(&octets[..23], reception), None);
    }

    #[test]
    fn unavailable_fields_are_none() {
        let unknown = LongPositionVector { position: None, heading: None, ..vector() };
        let mut octets = Vec::new();
        unknown.write(&mut octets);
        assert_eq!(LongPositionVector::parse(&octets, unknown.timestamp), Some((unknown, &[][..])));
    }

    #[test]
    fn limits_of_the_fields_round_trip() {
        for (speed, expected) in [(1000.0, 163.83), (-1000.0, -163.84), (0.0, 0.0)] {
            let mut octets = Vec::new();
            LongPositionVector { speed: MetresPerSecond(speed), ..vector() }.write(&mut octets);
            let (read, _) = LongPositionVector::parse(&octets, vector().timestamp).unwrap();
            assert_eq!(read.speed, MetresPerSecond(expected));
            assert!(read.position_accurate);
        }
        assert_eq!(heading_of(3600), Some(Degrees(0.0)));
        assert_eq!(heading_of(3601), None);
    }

    #[test]
    fn short_vector_is_a_prefix_of_the_long_one() {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        vector().write(&mut long);
        vector().short().write(&mut short);
        assert_eq!(short.len(), ShortPositionVector::OCTETS);
        assert_eq!(short, long[..ShortPositionVector::OCTETS]);
        let reception = vector().timestamp;
        assert_eq!(ShortPositionVector::parse(&short, reception), Some((vector().short(), &[][..])));
        assert_eq!(ShortPositionVector::parse(&short[..19], reception), None);
    }
}
