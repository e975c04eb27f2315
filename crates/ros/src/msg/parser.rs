//! One line of a definition: a field, a constant, or nothing.

use super::text::shown;
use super::{Basic, Count, Dialect, SchemaError, TypeName, is_name};
use crate::limits::ARRAY_ELEMENTS_MAX;

/// A member of a type, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Field(FieldText),
    Constant(ConstantText),
}

impl Member {
    /// Returns the type of a field that is a message.
    pub(super) fn message(self) -> Option<TypeName> {
        match self {
            Self::Field(FieldText { base: Base::Message(name), .. }) => Some(name),
            Self::Field(_) | Self::Constant(_) => None,
        }
    }
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldText {
    pub(super) line: usize,
    pub(super) name: String,
    /// The type as it is written, with brackets.
    pub(super) type_text: String,
    pub(super) base: Base,
    pub(super) count: Count,
    /// Largest number of octets of a string.
    pub(super) string_limit: Option<u32>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConstantText {
    pub(super) name: String,
    pub(super) type_text: String,
    /// The value as it is written.
    pub(super) value: String,
}

/// The type of a field without brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Basic(Basic),
    Message(TypeName),
}

/// Parses a line of a type of the given package.
pub(super) fn member(dialect: Dialect, package: &str, line: usize, text: &str) -> Result<Option<Member>, SchemaError> {
    let content = text.split('#').next().unwrap_or("").trim();
    let Some((type_text, rest)) = content.split_once([' ', '\t']) else {
        return if content.is_empty() { Ok(None) } else { Err(SchemaError::Line { line, text: shown(text) }) };
    };
    let (name, value) = name_and_value(rest);
    if !is_name(name) {
        return Err(SchemaError::Name { line, name: shown(name) });
    }
    if let Some(value) = value {
        let value = if type_text == "string" && dialect == Dialect::Ros1 { text_of_constant(text) } else { value };
        let (name, type_text, value) = (name.to_owned(), type_text.to_owned(), value.to_owned());
        return Ok(Some(Member::Constant(ConstantText { name, type_text, value })));
    }
    let written = written_type(type_text).ok_or_else(|| SchemaError::Type { line, text: shown(type_text) })?;
    let base = base(dialect, package, written.base);
    let base = base.ok_or_else(|| SchemaError::Type { line, text: shown(type_text) })?;
    if written.string_limit.is_some() && !matches!(base, Base::Basic(Basic::String | Basic::Wstring)) {
        return Err(SchemaError::Type { line, text: shown(type_text) });
    }
    Ok(Some(Member::Field(FieldText {
        line,
        name: name.to_owned(),
        type_text: type_text.to_owned(),
        base,
        count: written.count,
        string_limit: written.string_limit,
    })))
}

/// Returns the name of a member, and the value of a constant. The default value of a field is left out.
fn name_and_value(rest: &str) -> (&str, Option<&str>) {
    let rest = rest.trim();
    let end = rest.find([' ', '\t', '=']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    (name, after.trim_start().strip_prefix('=').map(str::trim))
}

/// Returns the value of a string constant of ROS 1: all after the equals sign, also a number sign.
fn text_of_constant(line: &str) -> &str {
    line.split_once('=').map_or("", |(_, value)| value).trim()
}

/// The parts of a type as it is written.
struct Written<'a> {
    base: &'a str,
    count: Count,
    string_limit: Option<u32>,
}

/// Divides `string<=10[<=5]`, or returns `None` if it is no type.
fn written_type(text: &str) -> Option<Written<'_>> {
    let (base, count) = match text.strip_suffix(']') {
        Some(array) => {
            let (base, length) = array.rsplit_once('[')?;
            (base, count(length)?)
        }
        None => (text, Count::One),
    };
    let (base, string_limit) = match base.split_once("<=") {
        Some((base, limit)) => (base, Some(limit.parse().ok()?)),
        None => (base, None),
    };
    Some(Written { base, count, string_limit })
}

fn count(text: &str) -> Option<Count> {
    let number = |text: &str| text.parse().ok().filter(|number| *number <= ARRAY_ELEMENTS_MAX);
    Some(match text.strip_prefix("<=") {
        Some(most) => Count::AtMost(number(most)?),
        None if text.is_empty() => Count::Any,
        None => Count::Fixed(number(text)?),
    })
}

/// Returns the type with that name. A name without a package is one of the same package, except `Header` in ROS 1.
fn base(dialect: Dialect, package: &str, name: &str) -> Option<Base> {
    if let Some(basic) = Basic::named(dialect, name) {
        return Some(Base::Basic(basic));
    }
    let message = match name {
        "Header" if dialect == Dialect::Ros1 => TypeName::new("std_msgs", name),
        name if name.contains('/') => TypeName::parse(name),
        name => TypeName::new(package, name),
    };
    message.map(Base::Message)
}
