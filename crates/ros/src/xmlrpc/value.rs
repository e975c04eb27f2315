//! Values of calls and responses.

use std::fmt::Write as _;

use super::tree::Element;
use super::{DocumentError, escaped};

/// A value. Dates and binary values do not occur in ROS.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of 32 bits.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A number with fraction.
    Double(f64),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Values with names.
    Struct(Vec<(String, Value)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<Vec<Self>> for Value {
    fn from(values: Vec<Self>) -> Self {
        Self::Array(values)
    }
}

impl Value {
    /// Returns the number, or `None` for another value.
    #[must_use]
    pub const fn as_int(&self) -> Option<i32> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the text, or `None` for another value.
    #[must_use]
    pub const fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the values of a list, or `None` for another value.
    #[must_use]
    pub const fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(values) => Some(values.as_slice()),
            _ => None,
        }
    }

    /// Returns the value with that name, or `None`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Struct(members) => members.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Reads the value of an element `value`. Without an element in it, the value is a text.
    pub(super) fn read(element: &Element) -> Result<Self, DocumentError> {
        let Some(typed) = element.children.first() else { return Ok(Self::String(element.text.clone())) };
        let text = typed.text.trim();
        let wrong = |name| DocumentError::Value { name, text: text.chars().take(40).collect() };
        Ok(match typed.name.as_str() {
            "i4" | "int" => Self::Int(text.parse().map_err(|_| wrong("int"))?),
            "boolean" => Self::Bool(match text {
                "0" => false,
                "1" => true,
                _ => return Err(wrong("boolean")),
            }),
            "double" => Self::Double(text.parse().map_err(|_| wrong("double"))?),
            "string" => Self::String(typed.text.clone()),
            "array" => Self::Array(typed.child("data")?.all("value").map(Self::read).collect::<Result<_, _>>()?),
            "struct" => Self::Struct(typed.all("member").map(read_member).collect::<Result<_, _>>()?),
            other => return Err(DocumentError::Type(other.chars().take(40).collect())),
        })
    }

    /// Writes the value as an element `value`.
    pub(super) fn write(&self, text: &mut String) {
        text.push_str("<value>");
        // Writing into a String cannot fail.
        let _ = match self {
            Self::Int(number) => write!(text, "<int>{number}</int>"),
            Self::Bool(value) => write!(text, "<boolean>{}</boolean>", u8::from(*value)),
            Self::Double(number) => write!(text, "<double>{number}</double>"),
            Self::String(value) => write!(text, "<string>{}</string>", escaped(value)),
            Self::Array(values) => {
                text.push_str("<array><data>");
                values.iter().for_each(|value| value.write(text));
                write!(text, "</data></array>")
            }
            Self::Struct(members) => {
                text.push_str("<struct>");
                for (name, value) in members {
                    let _ = write!(text, "<member><name>{}</name>", escaped(name));
                    value.write(text);
                    text.push_str("</member>");
                }
                write!(text, "</struct>")
            }
        };
        text.push_str("</value>");
    }
}

fn read_member(member: &Element) -> Result<(String, Value), DocumentError> {
    Ok((member.child("name")?.text.trim().to_owned(), Value::read(member.child("value")?)?))
}
