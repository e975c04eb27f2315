//! The hop metadata of a message as two MQTT 5 user properties.
//!
//! The property `viaduct-hops` has the origin and the first eight stamps; its value is text without spaces:
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
//!
//! The property `viaduct-hop-marks` has what happened to the message at each stamp, and the stamps after the eighth. A
//! receiver that does not know it loses no more than that.
//!
//! ```text
//! value   = 0*16( kind [ clock ] ) [ "@" machine ] *8( ";" name ":" time )
//! kind    = "p" / "t" / "s" / "r"     published on the bus, taken from it, sent to another node, received from another node
//! clock   = number / "=" / "?"        the clock's error is at most 2^(number/2) ns, number = 8 to 68 / the clock is that of the
//!                                     stamp before / the clock is not synchronised. Absent: unknown
//! machine = 8( digit / "a" to "f" )   number of the machine of the last stamp: machines with the same number share one clock
//! ```
//!
//! `pts38@5e1fd15a` belongs to a message with three stamps. The clock of the third one is exact to 2^19 ns (0.52 ms).

use std::fmt::Write as _;

use viaduct_bus::{ClockState, HOPS_MAX, HopKind, HopName, HopStamp, Meta, clock};
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_units::Tai;

/// Name of the user property with the origin and the first stamps.
pub const PROPERTY: &str = "viaduct-hops";
/// Name of the user property with the kinds of all stamps, and with the later stamps.
pub const MARKS_PROPERTY: &str = "viaduct-hop-marks";

/// Maximum number of stamps in the property [`PROPERTY`].
const FIRST_STAMPS_MAX: usize = 8;
/// Maximum length of the value of [`PROPERTY`], in octets: an origin, and eight stamps of a name and a time.
pub const OCTETS_MAX: usize = NUMBER_OCTETS_MAX + FIRST_STAMPS_MAX * STAMP_OCTETS_MAX;
/// Maximum length of the value of [`MARKS_PROPERTY`], in octets: marks, the machine, and eight stamps.
pub const MARKS_OCTETS_MAX: usize = HOPS_MAX * 3 + 9 + (HOPS_MAX - FIRST_STAMPS_MAX) * STAMP_OCTETS_MAX;

/// Maximum length of a stamp with its separators, in octets.
const STAMP_OCTETS_MAX: usize = 1 + NAME_OCTETS_MAX + 1 + NUMBER_OCTETS_MAX;
/// Length of `i64::MIN` in decimal, in octets.
const NUMBER_OCTETS_MAX: usize = 20;
/// Maximum length of a [`HopName`], in octets.
const NAME_OCTETS_MAX: usize = 15;

/// Error of a value that is not valid hop metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed hop metadata")]
pub struct Malformed;

/// Metadata of a message that was received from another node.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Origin and stamps, up to the sending.
    pub meta: Meta,
    /// `true` if the sender runs on this machine.
    pub shares_clock: bool,
}

impl Arrived {
    /// Returns the state of the clock with which the reception is stamped.
    #[must_use]
    pub fn clock(&self) -> ClockState {
        if self.shares_clock { ClockState::Shared } else { clock::state() }
    }

    /// Returns the metadata with a stamp of the reception by `hop` at `at`.
    #[must_use]
    pub fn received(mut self, hop: HopName, at: Tai) -> Meta {
        let stamp = HopStamp::new(hop, HopKind::Received, at).with_clock(self.clock());
        self.meta.push(stamp);
        self.meta
    }
}

/// Adds the properties to a packet, after a stamp of the sending by `hop` at `now`.
pub(crate) fn add(packet: PublishPacket, meta: &Meta, hop: HopName, now: Tai) -> PublishPacket {
    let mut meta = *meta;
    meta.push(HopStamp::new(hop, HopKind::Sent, now).with_clock(clock::state()));
    packet
        .with_user_property(PROPERTY.to_owned(), write(&meta))
        .with_user_property(MARKS_PROPERTY.to_owned(), write_marks(&meta, clock::machine()))
}

/// Reads the metadata of a message from its user properties; `property` returns the value of the property with a name.
/// Returns `None` if the message has none.
pub fn of<'a>(property: impl Fn(&str) -> Option<&'a str>) -> Option<Result<Arrived, Malformed>> {
    Some(read(property(PROPERTY)?, property(MARKS_PROPERTY), clock::machine()))
}

/// Returns the value of [`PROPERTY`] for a message. Characters of names that the format does not allow become `_`.
#[must_use]
pub fn write(meta: &Meta) -> String {
    let first = &meta.stamps()[..meta.stamps().len().min(FIRST_STAMPS_MAX)];
    let mut out = String::with_capacity(NUMBER_OCTETS_MAX + first.len() * 32);
    // Writing into a String cannot fail.
    let _ = write!(out, "{}", meta.origin.nanos());
    write_stamps(&mut out, first);
    out
}

/// Returns the value of [`MARKS_PROPERTY`] for a message whose last stamp was made on `machine`.
#[must_use]
pub fn write_marks(meta: &Meta, machine: Option<u32>) -> String {
    let later = meta.stamps().get(FIRST_STAMPS_MAX..).unwrap_or_default();
    let mut out = String::with_capacity(16 + later.len() * 32);
    for stamp in meta.stamps() {
        out.push(letter(stamp.kind()));
        // Writing into a String cannot fail.
        let _ = match (stamp.clock(), stamp.half_octaves()) {
            (ClockState::Shared, _) => out.write_char('='),
            (ClockState::Unsynchronised, _) => out.write_char('?'),
            (_, Some(number)) => write!(out, "{number}"),
            (_, None) => Ok(()),
        };
    }
    if let Some(machine) = machine {
        let _ = write!(out, "@{machine:08x}");
    }
    write_stamps(&mut out, later);
    out
}

fn write_stamps(out: &mut String, stamps: &[HopStamp]) {
    for stamp in stamps {
        out.push(';');
        let name = stamp.hop.as_str().bytes();
        out.extend(name.map(|octet| if is_name_octet(octet) { char::from(octet) } else { '_' }));
        if stamp.hop.is_empty() {
            out.push('_');
        }
        // Writing into a String cannot fail.
        let _ = write!(out, ":{}", stamp.at.nanos());
    }
}

/// Parses a value of [`PROPERTY`]: origin and stamps, all of which count as stamps of publishing.
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
        let (hop, at) = parse_stamp(part)?;
        if meta.stamps().len() == FIRST_STAMPS_MAX {
            return Err(Malformed);
        }
        meta.stamp(hop, at);
    }
    Ok(meta)
}

/// Parses the values of both properties. `machine` is the number of this machine.
///
/// # Errors
/// Returns an error if [`write()`] and [`write_marks()`] cannot return the values for one message.
pub fn read(value: &str, marks: Option<&str>, machine: Option<u32>) -> Result<Arrived, Malformed> {
    let first = parse(value)?;
    let Some(marks) = marks else {
        return Ok(Arrived { meta: first, shares_clock: false });
    };
    if marks.len() > MARKS_OCTETS_MAX {
        return Err(Malformed);
    }
    let (marks, later) = split_optional(marks, ';');
    if later.is_some() && first.stamps().len() < FIRST_STAMPS_MAX {
        return Err(Malformed);
    }
    let (mut marks, sender) = split_optional(marks, '@');
    let sender = sender.map(parse_machine).transpose()?;
    let later = later.into_iter().flat_map(|later| later.split(';')).map(parse_stamp);
    let mut meta = Meta::from_origin(first.origin);
    for stamp in first.stamps().iter().map(|stamp| Ok((stamp.hop, stamp.at))).chain(later) {
        let ((hop, at), (kind, clock)) = (stamp?, next_mark(&mut marks)?);
        if !meta.push(HopStamp::new(hop, kind, at).with_clock(clock)) {
            return Err(Malformed);
        }
    }
    if !marks.is_empty() {
        return Err(Malformed);
    }
    Ok(Arrived { meta, shares_clock: sender.is_some() && sender == machine })
}

/// Splits a text at the first separator, if it has one.
fn split_optional(text: &str, separator: char) -> (&str, Option<&str>) {
    text.split_once(separator).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn parse_stamp(text: &str) -> Result<(HopName, Tai), Malformed> {
    let (name, at) = text.split_once(':').ok_or(Malformed)?;
    if !(1..=NAME_OCTETS_MAX).contains(&name.len()) || !name.bytes().all(is_name_octet) {
        return Err(Malformed);
    }
    Ok((HopName::new(name), number(at)?))
}

/// Takes the mark of one stamp from the beginning of the text.
fn next_mark(marks: &mut &str) -> Result<(HopKind, ClockState), Malformed> {
    let mut rest = marks.chars();
    let kind = match rest.next() {
        Some('p') => HopKind::Published,
        Some('t') => HopKind::Taken,
        Some('s') => HopKind::Sent,
        Some('r') => HopKind::Received,
        _ => return Err(Malformed),
    };
    let rest = rest.as_str();
    let end = rest.find(|next: char| next.is_ascii_lowercase()).unwrap_or(rest.len());
    let (clock, rest) = rest.split_at(end);
    *marks = rest;
    let clock = match clock {
        "" => ClockState::Unknown,
        "=" => ClockState::Shared,
        "?" => ClockState::Unsynchronised,
        digits => half_octaves(digits)?,
    };
    Ok((kind, clock))
}

fn half_octaves(digits: &str) -> Result<ClockState, Malformed> {
    let is_canonical = !digits.starts_with('0') && digits.bytes().all(|octet| octet.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_canonical).ok_or(Malformed)?;
    HopStamp::clock_within(number).ok_or(Malformed)
}

const fn letter(kind: HopKind) -> char {
    match kind {
        HopKind::Published => 'p',
        HopKind::Taken => 't',
        HopKind::Sent => 's',
        HopKind::Received => 'r',
    }
}

fn parse_machine(text: &str) -> Result<u32, Malformed> {
    let is_canonical = text.len() == 8 && text.bytes().all(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f'));
    u32::from_str_radix(text, 16).ok().filter(|_| is_canonical).ok_or(Malformed)
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

    /// A stamp: name, kind, half octaves of the clock's error (0: unknown, 1: shared, 2: not synchronised), and time.
    type Stamp = (String, u8, u8, i64);

    fn stamps(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Stamp>> {
        let clock = prop_oneof![0_u8..=2, 8_u8..=68];
        proptest::collection::vec(("[A-Za-z0-9_.-]{1,15}", 0_u8..4, clock, any::<i64>()), count)
    }

    fn meta(origin: i64, stamps: &[Stamp]) -> Meta {
        let mut meta = Meta::from_origin(Tai::from_nanos(origin));
        for (name, kind, clock, at) in stamps {
            let kind = [HopKind::Published, HopKind::Taken, HopKind::Sent, HopKind::Received][usize::from(*kind)];
            let clock = match clock {
                0 => ClockState::Unknown,
                1 => ClockState::Shared,
                2 => ClockState::Unsynchronised,
                number => HopStamp::clock_within(*number).unwrap(),
            };
            meta.push(HopStamp::new(HopName::new(name), kind, Tai::from_nanos(*at)).with_clock(clock));
        }
        meta
    }

    proptest! {
        #[test]
        fn a_message_survives_writing_and_parsing(
            origin in any::<i64>(),
            stamps in stamps(0..=16),
            machine in any::<Option<u32>>(),
            own in any::<Option<u32>>(),
        ) {
            let meta = meta(origin, &stamps);
            let (text, marks) = (write(&meta), write_marks(&meta, machine));
            prop_assert!(text.len() <= OCTETS_MAX && marks.len() <= MARKS_OCTETS_MAX);
            let arrived = read(&text, Some(&marks), own).unwrap();
            prop_assert_eq!(arrived.meta.origin, meta.origin);
            prop_assert_eq!(arrived.meta.stamps(), meta.stamps());
            prop_assert_eq!(arrived.shares_clock, machine.is_some() && machine == own);
            prop_assert!(read(&text, Some(&marks), machine).unwrap().shares_clock == machine.is_some());
        }

        #[test]
        fn a_receiver_without_marks_has_the_first_eight_stamps(origin in any::<i64>(), stamps in stamps(0..=16)) {
            let meta = meta(origin, &stamps);
            let first = parse(&write(&meta)).unwrap();
            let times = |meta: &Meta| meta.stamps().iter().take(8).map(|stamp| (stamp.hop, stamp.at)).collect::<Vec<_>>();
            prop_assert_eq!((first.origin, times(&first)), (meta.origin, times(&meta)));
            prop_assert_eq!(first.stamps().len(), meta.stamps().len().min(8));
        }

        #[test]
        fn a_valid_value_has_one_form(text in "[-0-9;:a_ +]{0,40}") {
            if let Ok(meta) = parse(&text) {
                prop_assert_eq!(write(&meta), text);
            }
        }

        #[test]
        fn valid_marks_have_one_form(marks in "[ptsr]{0,3}[0-9?=+]{0,2}[ptsr]{0,1}(@[0-9a-g]{7,8})?") {
            for value in ["1", "1;a:2", "1;a:2;b:3", "1;a:2;b:3;c:4"] {
                if let Ok(arrived) = read(value, Some(&marks), None) {
                    let machine = marks.split_once('@').map(|(_, text)| u32::from_str_radix(text, 16).unwrap());
                    prop_assert_eq!(write_marks(&arrived.meta, machine), marks.clone());
                }
            }
        }

        #[test]
        fn any_name_is_written_in_a_form_that_can_be_parsed(name in ".{0,20}") {
            let text = write(&meta(1, &[(name, 0, 0, 2)]));
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

    #[test]
    fn malformed_marks_are_rejected() {
        let eight = format!("1{}", ";a:1".repeat(8));
        let nine_marks = "p".repeat(9);
        for (value, marks) in [
            ("1", "p"),
            ("1;a:2", ""),
            ("1;a:2", "pp"),
            ("1;a:2", "x"),
            ("1;a:2", "P"),
            ("1;a:2", "p08"),
            ("1;a:2", "p7"),
            ("1;a:2", "p69"),
            ("1;a:2", "p+9"),
            ("1;a:2", "p=="),
            ("1;a:2", "p@"),
            ("1;a:2", "p@1234567"),
            ("1;a:2", "p@1234567G"),
            ("1;a:2", "p@1234567F"),
            ("1;a:2", "pp;b:3"),
            (&eight, "pppppppp;"),
            (&eight, &nine_marks),
            (&eight, &format!("{}{}", "p".repeat(17), ";a:1".repeat(9))),
            (&eight, &"p".repeat(MARKS_OCTETS_MAX + 1)),
        ] {
            assert!(read(value, Some(marks), None).is_err(), "{value} {marks}");
        }
        let nine = read(&eight, Some("pppppppps38@0000002a;b:9"), Some(42)).unwrap();
        let last = nine.meta.stamps().last().unwrap();
        assert_eq!((nine.meta.stamps().len(), last.hop.as_str(), last.kind()), (9, "b", HopKind::Sent));
        assert_eq!(last.clock(), ClockState::Within(std::time::Duration::from_nanos(1 << 19)));
        assert!(nine.shares_clock);
    }
}
