//! The text form of link and GeoNetworking addresses: two hexadecimal digits per octet, separated by colons.

use std::fmt;

/// The reason why a text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct AddressError {
    /// The form of an address, with an example.
    pub expected: &'static str,
}

/// Writes the octets: `02:00:00:00:03:e9`.
pub(crate) fn write_octets(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, octet) in octets.iter().enumerate() {
        let separator = if index == 0 { "" } else { ":" };
        write!(f, "{separator}{octet:02x}")?;
    }
    Ok(())
}

/// Parses exactly `N` octets, all separated by colons or all by hyphens. Returns `None` for any other text.
pub(crate) fn parse_octets<const N: usize>(text: &str) -> Option<[u8; N]> {
    let separator = if text.contains('-') { '-' } else { ':' };
    let octets: Option<Vec<u8>> = text.split(separator).map(hex_pair).collect();
    octets?.try_into().ok()
}

/// Parses an octet of two hexadecimal digits. `from_str_radix` alone would accept a sign.
fn hex_pair(pair: &str) -> Option<u8> {
    let digits = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(pair, 16).ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use crate::access::MacAddress;
    use crate::geonet::GnAddress;

    #[test]
    fn an_address_round_trips_as_text() {
        let (mac, gn) = (MacAddress([2, 0, 0, 0, 3, 0xE9]), GnAddress([0x94, 0, 2, 0, 0, 0, 3, 0xF8]));
        assert_eq!((mac.to_string().as_str(), mac.to_string().parse()), ("02:00:00:00:03:e9", Ok(mac)));
        assert_eq!((gn.to_string().as_str(), gn.to_string().parse()), ("94:00:02:00:00:00:03:f8", Ok(gn)));
    }

    #[test]
    fn hyphens_are_read_too() {
        assert_eq!("02-00-00-00-03-E9".parse(), Ok(MacAddress([2, 0, 0, 0, 3, 0xE9])));
        assert_eq!("94-00-02-00-00-00-03-f8".parse(), Ok(GnAddress([0x94, 0, 2, 0, 0, 0, 3, 0xF8])));
    }

    #[test]
    fn other_texts_are_rejected() {
        for bad in [
            "",
            "02:00:00:00:03",
            "02:00:00:00:03:e9:00",
            "2:0:0:0:3:e9",
            "02:00:00:00:03:+9",
            "02-00:00-00:03-e9",
            "0200:00:00:03:e9",
            "020000003e9",
        ] {
            let error = bad.parse::<MacAddress>().unwrap_err();
            assert_eq!(error.to_string(), "expected six octets such as `02:00:00:00:03:e9`", "{bad}");
        }
        let error = "9400:02:00:00:00:03:f8".parse::<GnAddress>().unwrap_err();
        assert_eq!(error.to_string(), "expected eight octets such as `94:00:02:00:00:00:03:f8`");
    }
}
