//! Options: their encoding (RFC 7252, 3.1) and their properties (RFC 7252, 5.4 and 5.10).

use core::fmt;

use super::ParseError;

/// Number of an option.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionNumber(pub u16);

/// Permitted length of the values of an option, and if the option may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Smallest number of octets.
    pub shortest: u16,
    /// Largest number of octets.
    pub longest: u16,
    /// `true` if a message may have several of these options.
    pub repeatable: bool,
}

macro_rules! options {
    ($($name:ident = $number:literal, $text:literal, $shortest:literal..=$longest:literal, $repeatable:literal, $rfc:literal;)+) => {
        impl OptionNumber {
            $(
                #[doc = concat!($text, " (", $rfc, ").")]
                pub const $name: Self = Self($number);
            )+

            /// Options with a meaning in this crate.
            pub const ALL: [Self; [$($number),+].len()] = [$(Self::$name),+];

            /// Returns the name, or `None` if the option is unknown.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)+
                    _ => None,
                }
            }

            /// Returns the permitted values, or `None` if the option is unknown.
            #[must_use]
            pub const fn limit(self) -> Option<Limit> {
                match self.0 {
                    $($number => Some(Limit { shortest: $shortest, longest: $longest, repeatable: $repeatable }),)+
                    _ => None,
                }
            }
        }
    };
}

options! {
    IF_MATCH = 1, "If-Match", 0..=8, true, "RFC 7252";
    URI_HOST = 3, "Uri-Host", 1..=255, false, "RFC 7252";
    ETAG = 4, "ETag", 1..=8, true, "RFC 7252";
    IF_NONE_MATCH = 5, "If-None-Match", 0..=0, false, "RFC 7252";
    OBSERVE = 6, "Observe", 0..=3, false, "RFC 7641";
    URI_PORT = 7, "Uri-Port", 0..=2, false, "RFC 7252";
    LOCATION_PATH = 8, "Location-Path", 0..=255, true, "RFC 7252";
    URI_PATH = 11, "Uri-Path", 0..=255, true, "RFC 7252";
    CONTENT_FORMAT = 12, "Content-Format", 0..=2, false, "RFC 7252";
    MAX_AGE = 14, "Max-Age", 0..=4, false, "RFC 7252";
    URI_QUERY = 15, "Uri-Query", 0..=255, true, "RFC 7252";
    HOP_LIMIT = 16, "Hop-Limit", 1..=1, false, "RFC 8768";
    ACCEPT = 17, "Accept", 0..=2, false, "RFC 7252";
    Q_BLOCK1 = 19, "Q-Block1", 0..=3, false, "RFC 9177";
    LOCATION_QUERY = 20, "Location-Query", 0..=255, true, "RFC 7252";
    BLOCK2 = 23, "Block2", 0..=3, false, "RFC 7959";
    BLOCK1 = 27, "Block1", 0..=3, false, "RFC 7959";
    SIZE2 = 28, "Size2", 0..=4, false, "RFC 7959";
    Q_BLOCK2 = 31, "Q-Block2", 0..=3, true, "RFC 9177";
    PROXY_URI = 35, "Proxy-Uri", 1..=1034, false, "RFC 7252";
    PROXY_SCHEME = 39, "Proxy-Scheme", 1..=255, false, "RFC 7252";
    SIZE1 = 60, "Size1", 0..=4, false, "RFC 7252";
    ECHO = 252, "Echo", 1..=40, false, "RFC 9175";
    NO_RESPONSE = 258, "No-Response", 0..=1, false, "RFC 7967";
    REQUEST_TAG = 292, "Request-Tag", 0..=8, true, "RFC 9175";
}

impl OptionNumber {
    /// Returns `true` if a receiver that does not recognise the option must reject the message (RFC 7252, 5.4.1).
    #[must_use]
    pub const fn is_critical(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns `true` if a proxy that does not recognise the option must not forward the message (RFC 7252, 5.4.2).
    #[must_use]
    pub const fn is_unsafe(self) -> bool {
        self.0 & 2 == 2
    }

    /// Returns `true` if the option is no part of the key of a cache (RFC 7252, 5.4.2).
    #[must_use]
    pub const fn is_no_cache_key(self) -> bool {
        self.0 & 0x1E == 0x1C
    }
}

impl fmt::Debug for OptionNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "option {}", self.0),
        }
    }
}

/// The options of a received message, an iterator in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionsView<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> OptionsView<'a> {
    /// Returns the iterator over octets that are known to be options.
    pub(super) const fn checked(octets: &'a [u8]) -> Self {
        Self { rest: octets, number: 0 }
    }

    /// Returns the value of the first option with this number, or `None`.
    #[must_use]
    pub fn get(mut self, number: OptionNumber) -> Option<&'a [u8]> {
        self.find(|(found, _)| *found == number).map(|(_, value)| value)
    }
}

impl<'a> Iterator for OptionsView<'a> {
    type Item = (OptionNumber, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (number, value, rest) = read(self.number, self.rest).ok()?;
        (self.number, self.rest) = (number.0, rest);
        Some((number, value))
    }
}

/// An option and the octets after it.
type ReadOption<'a> = (OptionNumber, &'a [u8], &'a [u8]);

/// Reads the option at the start of `octets`, given the number of the option before.
///
/// ```text
///   0   1   2   3   4   5   6   7
/// +---------------+---------------+
/// |  Option Delta | Option Length |   1 octet
/// +---------------+---------------+
/// |  Option Delta (extended)      |   0 to 2 octets
/// |  Option Length (extended)     |   0 to 2 octets
/// |  Option Value                 |   0 or more octets
/// +-------------------------------+
/// ```
pub(super) fn read(before: u16, octets: &[u8]) -> Result<ReadOption<'_>, ParseError> {
    let (first, rest) = octets.split_first().ok_or(ParseError::OptionTruncated)?;
    let (delta, rest) = extended(first >> 4, rest)?;
    let (length, rest) = extended(first & 0xF, rest)?;
    let number = u16::try_from(u32::from(before) + delta).map_err(|_| ParseError::OptionNumber)?;
    let (value, rest) = rest.split_at_checked(length as usize).ok_or(ParseError::OptionTruncated)?;
    Ok((OptionNumber(number), value, rest))
}

fn extended(nibble: u8, octets: &[u8]) -> Result<(u32, &[u8]), ParseError> {
    match nibble {
        0..=12 => Ok((u32::from(nibble), octets)),
        13 => {
            octets.split_first().map(|(octet, rest)| (13 + u32::from(*octet), rest)).ok_or(ParseError::OptionTruncated)
        }
        14 => match octets {
            [high, low, rest @ ..] => Ok((269 + u32::from(u16::from_be_bytes([*high, *low])), rest)),
            _ => Err(ParseError::OptionTruncated),
        },
        _ => Err(ParseError::OptionReserved),
    }
}

/// Returns the number in a value of format uint (RFC 7252, 3.2), or `None` if it has more than four octets.
#[must_use]
pub fn decode_uint(value: &[u8]) -> Option<u32> {
    (value.len() <= 4).then(|| value.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
}

/// Returns a number in format uint: four octets, and how many of the last of them are the value.
#[must_use]
pub const fn encode_uint(number: u32) -> ([u8; 4], usize) {
    (number.to_be_bytes(), 4 - number.leading_zeros() as usize / 8)
}
