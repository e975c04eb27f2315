//! The hop metadata of a message as one MQTT 5 user property.
//!
//! The property is named `viaduct-hops`; its value is text without spaces:
//!
//! ```text
//! value = origin *8( ";" name ":" time )
//! origin, time = ["-"] digits     nanoseconds of atomic time (TAI) since 1970-01-01T00:00:00 TAI, 64 bits signed
//! name         = 1*15( letter / digit / "_" / "-" / "." )
//! ```
//!
//! `1726061471092870123;station:1726061471092970456;uplink:1726061471093070789` has three times: the message's origin,
//! its publication by the component `station`, and its hand-over to the socket by `uplink`. Numbers have no leading
//! zeros, so that each value has exactly one form.

use std::fmt::Write as _;

use viaduct_bus::{HOPS_MAX, HopName, Meta};
use viaduct_units::Tai;

/// Name of the user property.
pub const PROPERTY: &str = "viaduct-hops";

/// Maximum length of a value, in octets: an origin, and eight stamps of a name and a time.
pub const OCTETS_MAX: usize = NUMBER_OCTETS_MAX + HOPS_MAX * (1 + NAME_OCTETS_MAX + 1 + NUMBER_OCTETS_MAX);

/// Length of `i64::MIN` in decimal, in octets.
const NUMBER_OCTETS_MAX: usize = 20;
/// Maximum length of a [`HopName`], in octets.
const NAME_OCTETS_MAX: usize = 15;

/// Error of a value that is not valid hop metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed hop metadata")]
pub struct Malformed;

/// Returns the value of the property for a message. Characters of names that the format does not allow become `_`.
#[must_use]
pub fn write(meta: &Meta) -> String {
    let mut out = String::with_capacity(NUMBER_OCTETS_MAX + meta.stamps().len() * 32);
    // Writing into a String cannot fail.
    let _ = write!(out, "{}", meta.origin.nanos());
    for stamp in meta.stamps() {
        out.push(';');
        let name = stamp.hop.as_str().bytes();
        out.extend(name.map(|octet| if is_name_octet(octet) { char::from(octet) } else { '_' }));
        if stamp.hop.as_str().is_empty() {
            out.push('_');
        }
        let _ = write!(out, ":{}", stamp.at.nanos());
    }
    out
}

/// Parses a value: origin and stamps.
///
/// # Errors
/// Returns an error if [`write()`] cannot return the value.
pub fn parse(value: &str) -> Result<Meta, Malformed> {
    if value.len() > OCTETS_MAX {
        return Err(Malformed);
    }
    let mut parts = value.split(';');
    let mut meta = Meta::from_origin(number(parts.next().unwrap_or_default())?);
    for part in parts {
        let (name, at) = part.split_once(':').ok_or(Malformed)?;
        if !(1..=NAME_OCTETS_MAX).contains(&name.len()) || !name.bytes().all(is_name_octet) {
            return Err(Malformed);
        }
        if !meta.stamp(HopName::new(name), number(at)?) {
            return Err(Malformed);
        }
    }
    Ok(meta)
}

const fn is_name_octet(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'-' | b'.')
}

fn number(text: &str) -> Result<Tai, Malformed> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = match digits.as_bytes() {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return Err(Malformed);
    }
    text.parse().map(Tai::from_nanos).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta(origin: i64, stamps: &[(String, i64)]) -> Meta {
        let mut meta = Meta::from_origin(Tai::from_nanos(origin));
        for (name, at) in stamps {
            meta.stamp(HopName::new(name), Tai::from_nanos(*at));
        }
        meta
    }

    proptest! {
        #[test]
        fn a_value_survives_writing_and_parsing(
            origin in any::<i64>(),
            stamps in proptest::collection::vec(("[A-Za-z0-9_.-]{1,15}", any::<i64>()), 0..=8),
        ) {
            let meta = meta(origin, &stamps);
            let text = write(&meta);
            prop_assert!(text.len() <= OCTETS_MAX);
            let read = parse(&text).unwrap();
            prop_assert_eq!(read.origin, meta.origin);
            prop_assert_eq!(read.stamps(), meta.stamps());
        }

        #[test]
        fn a_valid_value_has_one_form(text in "[-0-9;:a_ +]{0,40}") {
            if let Ok(meta) = parse(&text) {
                prop_assert_eq!(write(&meta), text);
            }
        }

        #[test]
        fn any_name_is_written_in_a_form_that_can_be_parsed(name in ".{0,20}") {
            let text = write(&meta(1, &[(name, 2)]));
            prop_assert_eq!(parse(&text).unwrap().stamps().len(), 1);
        }
    }

    #[test]
    fn malformed_values_are_rejected() {
        for text in [
            "",
            ";",
            "x",
            "1;",
            "1;a",
            "1;a:",
            "1;:2",
            "1;a:2;",
            "01",
            "-0",
            "+1",
            "1;a:+2",
            "1 ;a:2",
            "1;a b:2",
            "9223372036854775808",
            "1;aaaaaaaaaaaaaaaa:2",
            "1;a:1;a:1;a:1;a:1;a:1;a:1;a:1;a:1;a:1",
            &"1".repeat(OCTETS_MAX + 1),
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("0").unwrap().origin, Tai::from_nanos(0));
        assert_eq!(parse("-9223372036854775808;a:1").unwrap().stamps().len(), 1);
    }
}
