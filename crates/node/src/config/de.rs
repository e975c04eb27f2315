//! Reads settings types from a tree. An error has the path and the place of the value, and names what was expected in
//! words of the file.

use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer as _, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::error::Place;
use super::tree::{Entry, Item, Scalar, Value};

/// Maximum number of characters of a rejected value that an error repeats.
const SHOWN_MAX: usize = 40;

/// Texts of serde for an address that cannot be parsed.
const BAD_ADDRESSES: [&str; 3] =
    ["invalid socket address syntax", "invalid IPv4 socket address syntax", "invalid IPv6 socket address syntax"];

/// Reason why a value cannot be read.
#[derive(Debug)]
pub(crate) struct ReadError {
    /// Keys from the value that was read down to the rejected one, innermost first.
    path: Vec<String>,
    pub(crate) place: Option<Place>,
    pub(crate) problem: String,
    pub(crate) cause: Cause,
}

/// Sort of mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A required field of this name is absent.
    Missing(&'static str),
    /// The type has no such field.
    Unknown,
    /// The value is of another type or out of its range.
    Value,
}

impl ReadError {
    fn new(problem: impl Into<String>, cause: Cause) -> Self {
        Self { path: Vec::new(), place: None, problem: problem.into(), cause }
    }

    /// Returns the keys down to the rejected value.
    pub(crate) fn into_path(self) -> Vec<String> {
        self.path.into_iter().rev().collect()
    }

    /// Returns the error with the key of the entry added to its path.
    fn below(mut self, entry: &Entry) -> Self {
        self.place.get_or_insert(if self.cause == Cause::Value { entry.item.place } else { entry.place });
        self.path.push(entry.key.clone());
        self
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: Display>(problem: T) -> Self {
        Self::new(problem.to_string(), Cause::Value)
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, got {unexpected}"), Cause::Value)
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, got {length} values"), Cause::Value)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown variant `{variant}`, expected {}", one_of(expected)), Cause::Value)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown field `{field}`, expected {}", one_of(expected)), Cause::Unknown)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field `{field}`"), Cause::Missing(field))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` occurs twice"), Cause::Value)
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// Returns the error of a text that is no socket address, with the part that is wrong if it is known.
fn bad_address(text: &str, item: &Item) -> ReadError {
    let error = expected("an address such as 127.0.0.1:8080", item);
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|octet| octet.is_ascii_digit());
    let parts: Vec<&str> = host.split('.').collect();
    let is_ipv4 = parts.len() == 4 && parts.iter().all(|part| is_number(part));
    let too_large = parts.iter().find(|part| part.parse::<u8>().is_err());
    let why = if let (true, Some(part)) = (is_ipv4, too_large) {
        format!("`{part}` is not within 0 to 255")
    } else if port.is_empty() {
        "the port is missing".to_owned()
    } else if is_number(port) && port.parse::<u16>().is_err() {
        format!("the port `{port}` is not within 0 to 65535")
    } else if host.starts_with(|c: char| c.is_ascii_alphabetic()) && !host.contains(':') {
        format!("`{host}` is a name, not an IP address")
    } else {
        return error;
    };
    ReadError { problem: format!("{}: {why}", error.problem), ..error }
}

/// Returns the error that names the expected value, and the value in the file if it is short.
fn expected(what: &str, item: &Item) -> ReadError {
    let got = match &item.value {
        Value::Map(_) => ", got a map".to_owned(),
        Value::List(_) => ", got a list".to_owned(),
        Value::Scalar(scalar) if scalar.one_line && !scalar.is_null() => {
            format!(", got `{}`", scalar.text.chars().take(SHOWN_MAX).collect::<String>())
        }
        Value::Scalar(_) => String::new(),
    };
    ReadError::new(format!("expected {what}{got}"), Cause::Value)
}

/// Reads a value of any type from an item.
#[derive(Clone, Copy)]
pub(crate) struct ItemReader<'a>(pub(crate) &'a Item);

impl<'a> ItemReader<'a> {
    fn scalar(self, what: &str) -> Result<&'a Scalar, ReadError> {
        match &self.0.value {
            Value::Scalar(scalar) => Ok(scalar),
            _ => Err(expected(what, self.0)),
        }
    }

    fn integer<T: TryFrom<i128>>(self, least: i128, most: i128) -> Result<T, ReadError> {
        let what = format!("an integer from {least} to {most}");
        let value = parse_integer(&self.scalar(&what)?.text).and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| expected(&what, self.0))
    }

    fn number(self) -> Result<f64, ReadError> {
        let what = "a number";
        parse_float(&self.scalar(what)?.text).ok_or_else(|| expected(what, self.0))
    }
}

/// Parses an integer of YAML 1.2: decimal, `0x`, `0o` or `0b`, with `_` between digits.
fn parse_integer(text: &str) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        // A leading zero is octal for some readers and decimal for others, so it is neither here.
        _ if digits.len() > 1 && digits.starts_with('0') => return None,
        _ => (10, digits),
    };
    let is_separated = !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    // `from_str_radix` alone would take a second sign.
    if !is_separated || digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -value } else { value })
}

/// Parses a number of YAML 1.2, with `.inf` and `.nan`. A kind rejects those with the name of its setting.
fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (-1.0, unsigned),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    match unsigned {
        ".inf" | ".Inf" | ".INF" => Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn parse_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" => Some(true),
        "false" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            visitor.$visit(self.integer(i128::from(<$type>::MIN), i128::from(<$type>::MAX))?)
        })*
    };
}

impl<'de> Deserializer<'de> for ItemReader<'_> {
    type Error = ReadError;

    integers! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Map(_) => self.deserialize_map(visitor),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            Value::Scalar(Scalar { text, plain: false, .. }) => visitor.visit_str(text),
            Value::Scalar(Scalar { text, .. }) => {
                if let Some(value) = parse_integer(text).and_then(|value| i64::try_from(value).ok()) {
                    visitor.visit_i64(value)
                } else if let Some(value) = parse_float(text) {
                    visitor.visit_f64(value)
                } else if let "true" | "True" | "TRUE" | "false" | "False" | "FALSE" = text.as_str() {
                    visitor.visit_bool(parse_switch(text) == Some(true))
                } else {
                    visitor.visit_str(text)
                }
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let what = "true or false";
        visitor.visit_bool(parse_switch(&self.scalar(what)?.text).ok_or_else(|| expected(what, self.0))?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let scalar = self.scalar("a text")?;
        if scalar.is_null() {
            return Err(ReadError::custom("expected a text"));
        }
        visitor.visit_str(&scalar.text).map_err(|error: ReadError| {
            if BAD_ADDRESSES.contains(&&*error.problem) { bad_address(&scalar.text, self.0) } else { error }
        })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            _ => Err(expected("no value", self.0)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::List(_) => visitor.visit_seq(Entries::of(self.0)),
            _ => Err(expected("a list", self.0)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Map(_) => visitor.visit_map(Entries::of(self.0)),
            _ => Err(expected("a map", self.0)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let what = "expected one choice: `CHOICE`, or `CHOICE: ...` if it has settings";
        match &self.0.value {
            Value::Scalar(scalar) if !scalar.is_null() => visitor.visit_enum(Choice::Name(&scalar.text)),
            Value::Map(_) => {
                let mut entries = self.0.entries();
                let first = entries.next().ok_or_else(|| ReadError::custom(what))?;
                if let Some(second) = entries.next() {
                    return Err(ReadError::custom("expected one choice only").below(second));
                }
                visitor.visit_enum(Choice::Entry(first))
            }
            _ => Err(ReadError::custom(what)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }
}

/// The entries of a map or a list, one after the other.
struct Entries<'a> {
    left: std::vec::IntoIter<&'a Entry>,
    /// The entry whose key was read and whose value comes next.
    current: Option<&'a Entry>,
}

impl<'a> Entries<'a> {
    fn of(item: &'a Item) -> Self {
        Self { left: item.entries().collect::<Vec<_>>().into_iter(), current: None }
    }
}

// The functions for one value are not inlined, so that each type of a value is compiled once and not in each type with such a
// setting.
impl<'de> SeqAccess<'de> for Entries<'_> {
    type Error = ReadError;

    #[inline(never)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(entry) = self.left.next() else {
            return Ok(None);
        };
        seed.deserialize(ItemReader(&entry.item)).map(Some).map_err(|error| error.below(entry))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some(entry) = self.left.next() else {
            return Ok(None);
        };
        self.current = Some(entry);
        let key: StrDeserializer<'_, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut error| {
            error.place = Some(entry.place);
            error.below(entry)
        })
    }

    #[inline(never)]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some(entry) = self.current.take() else {
            return Err(ReadError::custom("a value was read before its key"));
        };
        seed.deserialize(ItemReader(&entry.item)).map_err(|error| error.below(entry))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// A choice among the variants of a type: `name`, or `name: settings`.
#[derive(Clone, Copy)]
enum Choice<'a> {
    Name(&'a str),
    Entry(&'a Entry),
}

impl<'a> Choice<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Name(name) => name,
            Self::Entry(entry) => &entry.key,
        }
    }

    /// Reads the settings of the variant. A variant that is given by its name alone has none.
    fn settings<T>(self, read: impl FnOnce(ItemReader<'a>) -> Result<T, ReadError>) -> Result<T, ReadError> {
        match self {
            Self::Name(name) => {
                Err(ReadError::custom(format!("`{name}` has settings: write `{name}: ...`, at least `{name}: {{}}`")))
            }
            Self::Entry(entry) => read(ItemReader(&entry.item)).map_err(|error| error.below(entry)),
        }
    }
}

impl<'de> EnumAccess<'de> for Choice<'_> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let name: StrDeserializer<'_, ReadError> = self.name().into_deserializer();
        let variant = seed.deserialize(name).map_err(|error| match self {
            Self::Name(..) => error,
            Self::Entry(entry) => error.below(entry),
        });
        variant.map(|variant| (variant, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self {
            Self::Entry(entry) if !matches!(&entry.item.value, Value::Scalar(scalar) if scalar.is_null()) => {
                Err(ReadError::custom("this choice has no settings").below(entry))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.settings(|reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.settings(|reader| reader.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        self.settings(|reader| reader.deserialize_map(visitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_yaml() {
        for (text, value) in [
            ("0", Some(0)),
            ("-17", Some(-17)),
            ("+5", Some(5)),
            ("0x1F", Some(31)),
            ("0o17", Some(15)),
            ("0b101", Some(5)),
            ("1_000_000", Some(1_000_000)),
            ("1__0", None),
            ("_1", None),
            ("017", None),
            ("--5", None),
            ("0x-5", None),
            ("5.0", None),
            ("", None),
        ] {
            assert_eq!(parse_integer(text), value, "{text}");
        }
        assert_eq!(
            [parse_float("0.5"), parse_float("1e3"), parse_float("-.inf")],
            [Some(0.5), Some(1e3), Some(-f64::INFINITY)]
        );
        assert_eq!([parse_float("inf"), parse_float("1e999"), parse_float("0,5")], [None; 3]);
        assert!(parse_float(".nan").is_some_and(f64::is_nan));
    }
}
