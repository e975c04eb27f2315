//! GeoNetworking address, EN 302 636-4-1, clause 6.

use viaduct_units::StationType;

use crate::access::{AddressError, MacAddress, parse_octets, write_octets};

/// `GN_ADDR`, eight octets.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+---------+-------------------+-------------------------------+
/// |M|   ST    |     reserved      |           MID                 |
/// +-+---------+-------------------+-------------------------------+
/// |                        MID (48 bits in all)                   |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GnAddress(pub [u8; 8]);

impl GnAddress {
    /// Returns the manually configured address (M = 1) of a station type (0 to 31) and a link-layer address.
    #[must_use]
    pub const fn new(station_type: StationType, mid: MacAddress) -> Self {
        let [a, b, c, d, e, f] = mid.0;
        Self([0x80 | (station_type.0 & 0x1F) << 2, 0, a, b, c, d, e, f])
    }

    /// Returns the automatically configured address (M = 0) of a station type and a link-layer address.
    #[must_use]
    pub const fn automatic(station_type: StationType, mid: MacAddress) -> Self {
        let Self([first, rest @ ..]) = Self::new(station_type, mid);
        let [a, b, c, d, e, f, g] = rest;
        Self([first & 0x7F, a, b, c, d, e, f, g])
    }

    /// Returns `true` if the address was configured manually (M).
    #[must_use]
    pub const fn is_manual(self) -> bool {
        self.0[0] & 0x80 != 0
    }

    /// Returns the station type (ST), 0 to 31.
    #[must_use]
    pub const fn station_type(self) -> StationType {
        StationType(self.0[0] >> 2 & 0x1F)
    }

    /// Returns the link-layer address (MID).
    #[must_use]
    pub const fn mid(self) -> MacAddress {
        let [_, _, a, b, c, d, e, f] = self.0;
        MacAddress([a, b, c, d, e, f])
    }
}

impl std::fmt::Display for GnAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_octets(&self.0, f)
    }
}

impl std::str::FromStr for GnAddress {
    type Err = AddressError;

    /// Parses eight octets, separated by colons or by hyphens.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = AddressError { expected: "eight octets such as `94:00:02:00:00:00:03:f8`" };
        parse_octets(text).map(Self).ok_or(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_the_offsets_of_the_standard() {
        let mid = MacAddress([1, 2, 3, 4, 5, 6]);
        let address = GnAddress::new(StationType::ROADSIDE_UNIT, mid);
        assert_eq!(address.0, [0b1011_1100, 0, 1, 2, 3, 4, 5, 6]);
        assert!(address.is_manual());
        assert_eq!((address.station_type(), address.mid()), (StationType::ROADSIDE_UNIT, mid));
        assert_eq!(GnAddress::new(StationType(255), mid).station_type(), StationType(31));
        let automatic = GnAddress::automatic(StationType::ROADSIDE_UNIT, mid);
        assert!(!automatic.is_manual());
        assert_eq!((automatic.station_type(), automatic.mid()), (StationType::ROADSIDE_UNIT, mid));
    }
}
