//! Definitions of messages.
//!
//! ```text
//! parser.rs   a line -> field or constant;  text.rs: sections of a full definition
//! schema.rs   sections -> types that refer to each other;  md5.rs: the sum of ROS 1;  rihs01.rs: the hash of ROS 2
//! counterpart.rs  a type -> the same type of the other ROS version
//! ```

mod counterpart;
mod md5;
mod parser;
mod rihs01;
mod schema;
mod text;

use std::fmt;

pub use schema::{Field, FieldType, MessageType, Schema, SchemaError, TypeIndex};

use crate::limits::NAME_OCTETS_MAX;

/// The ROS version that a definition is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// ROS 1: `time` and `duration` are basic types, and `Header` stands for `std_msgs/Header`.
    Ros1,
    /// ROS 2: bounded strings and arrays, default values, `wstring`.
    Ros2,
}

/// A basic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basic {
    /// One octet, 0 or 1.
    Bool,
    /// 8 bits with sign. Also `byte` in ROS 1.
    Int8,
    /// 8 bits without sign. Also `char`, and `byte` in ROS 2.
    Uint8,
    /// 16 bits with sign.
    Int16,
    /// 16 bits without sign.
    Uint16,
    /// 32 bits with sign.
    Int32,
    /// 32 bits without sign.
    Uint32,
    /// 64 bits with sign.
    Int64,
    /// 64 bits without sign.
    Uint64,
    /// 32 bits, IEEE 754.
    Float32,
    /// 64 bits, IEEE 754.
    Float64,
    /// Octets, usually UTF-8.
    String,
    /// UTF-16 (ROS 2).
    Wstring,
    /// Seconds and nanoseconds without sign (ROS 1).
    Time,
    /// Seconds and nanoseconds with sign (ROS 1).
    Duration,
}

impl Basic {
    fn named(dialect: Dialect, name: &str) -> Option<Self> {
        Some(match (name, dialect) {
            ("bool", _) => Self::Bool,
            ("int8", _) | ("byte", Dialect::Ros1) => Self::Int8,
            ("uint8" | "char", _) | ("byte", Dialect::Ros2) => Self::Uint8,
            ("int16", _) => Self::Int16,
            ("uint16", _) => Self::Uint16,
            ("int32", _) => Self::Int32,
            ("uint32", _) => Self::Uint32,
            ("int64", _) => Self::Int64,
            ("uint64", _) => Self::Uint64,
            ("float32", _) => Self::Float32,
            ("float64", _) => Self::Float64,
            ("string", _) => Self::String,
            ("wstring", Dialect::Ros2) => Self::Wstring,
            ("time", Dialect::Ros1) => Self::Time,
            ("duration", Dialect::Ros1) => Self::Duration,
            _ => return None,
        })
    }

    /// Returns the octets of a value, or `None` for a string.
    #[must_use]
    pub const fn octets(self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::Time | Self::Duration => 8,
            Self::String | Self::Wstring => return None,
        })
    }
}

/// The number of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One value, no array.
    One,
    /// An array of this length.
    Fixed(u32),
    /// An array of any length.
    Any,
    /// An array of at most this length (ROS 2).
    AtMost(u32),
}

/// The name of a type: package and name. It is written as `std_msgs/String`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName {
    package: String,
    name: String,
}

impl TypeName {
    /// Parses `package/Name` or `package/msg/Name`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (package, rest) = text.split_once('/')?;
        let name = rest.strip_prefix("msg/").unwrap_or(rest);
        Self::new(package, name)
    }

    /// Returns the name of a type of the given package, or `None` if a part is not a name.
    fn new(package: &str, name: &str) -> Option<Self> {
        (is_name(package) && is_name(name)).then(|| Self { package: package.to_owned(), name: name.to_owned() })
    }

    /// Returns the package.
    #[must_use]
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Returns the name without the package.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the types of the fields of this type, whose definition without other types is given.
    pub(crate) fn used_by(&self, dialect: Dialect, body: &str) -> Vec<Self> {
        let member = |line: &str| parser::member(dialect, &self.package, 0, line).ok().flatten();
        body.lines().filter_map(member).filter_map(parser::Member::message).collect()
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.package, self.name)
    }
}

/// Returns `true` for a letter followed by letters, digits and underscores.
fn is_name(text: &str) -> bool {
    text.len() <= NAME_OCTETS_MAX
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_name_has_a_package_and_is_the_same_in_both_versions() {
        let name = TypeName::parse("sensor_msgs/PointCloud2").unwrap();
        assert_eq!((name.package(), name.name()), ("sensor_msgs", "PointCloud2"));
        assert_eq!(TypeName::parse("sensor_msgs/msg/PointCloud2"), Some(name));
        for text in ["String", "", "/", "a/", "a/b/c", "a/srv/B", "1a/B", "a/B c", "a\0/B"] {
            assert_eq!(TypeName::parse(text), None, "{text}");
        }
    }
}
