//! The serialisation of ROS 1: numbers in little-endian order without padding; strings and arrays of any length begin with
//! their length as 32 bits.

use crate::msg::{Basic, Count, Field, FieldType, MessageType, Schema};

/// The reason why octets are not a message of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The message ends within a field.
    #[error("the message ends in `{field}`: {missing} octets are missing")]
    TooShort {
        /// The field, with those that contain it: `header.frame_id`.
        field: String,
        /// Octets that are missing at least.
        missing: u64,
    },
    /// Octets follow the last field.
    #[error("{0} octets follow the last field")]
    TooLong(usize),
    /// The type does not exist in ROS 1.
    #[error("`{field}` has a type that ROS 1 does not have")]
    Type {
        /// The field, with those that contain it.
        field: String,
    },
}

/// Checks that a message is one of the schema's type: its length is that of its fields.
///
/// Arrays of values with a fixed length are not visited, so the time does not depend on the size of an image or a point cloud.
///
/// # Errors
/// The first field that does not fit.
pub fn check(schema: &Schema, message: &[u8]) -> Result<(), Mismatch> {
    let Some(root) = schema.root() else { return Ok(()) };
    let mut walk = Walk { schema, rest: message };
    walk.message(root)?;
    if walk.rest.is_empty() { Ok(()) } else { Err(Mismatch::TooLong(walk.rest.len())) }
}

/// The walk along a message.
struct Walk<'a> {
    schema: &'a Schema,
    rest: &'a [u8],
}

impl Walk<'_> {
    fn message(&mut self, message_type: &MessageType) -> Result<(), Mismatch> {
        if let Some(octets) = message_type.fixed_octets().filter(|octets| *octets <= self.rest.len()) {
            return self.skip(octets as u64);
        }
        for field in message_type.fields() {
            self.field(field).map_err(|mismatch| mismatch.within(&field.name))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field) -> Result<(), Mismatch> {
        let count = match field.count {
            Count::One => 1,
            Count::Fixed(count) => count,
            Count::Any => self.length()?,
            Count::AtMost(_) => return Err(Mismatch::Type { field: String::new() }),
        };
        if let Some(octets) = self.schema.octets_of(field.base) {
            return self.skip(u64::from(count) * octets as u64);
        }
        for _ in 0..count {
            self.value(field.base)?;
        }
        Ok(())
    }

    /// Passes a value of variable length.
    fn value(&mut self, base: FieldType) -> Result<(), Mismatch> {
        match base {
            FieldType::Basic(Basic::String) => {
                let octets = self.length()?;
                self.skip(octets.into())
            }
            FieldType::Basic(_) => Err(Mismatch::Type { field: String::new() }),
            FieldType::Message(index) => match self.schema.message_type(index) {
                Some(message_type) => self.message(message_type),
                None => Ok(()),
            },
        }
    }

    fn length(&mut self) -> Result<u32, Mismatch> {
        let Some((length, rest)) = self.rest.split_first_chunk() else { return Err(self.too_short(4)) };
        self.rest = rest;
        Ok(u32::from_le_bytes(*length))
    }

    fn skip(&mut self, octets: u64) -> Result<(), Mismatch> {
        let rest = usize::try_from(octets).ok().and_then(|octets| self.rest.get(octets..));
        let Some(rest) = rest else { return Err(self.too_short(octets)) };
        self.rest = rest;
        Ok(())
    }

    fn too_short(&self, wanted: u64) -> Mismatch {
        Mismatch::TooShort { field: String::new(), missing: wanted.saturating_sub(self.rest.len() as u64) }
    }
}

impl Mismatch {
    /// Returns the mismatch with the name of the field that contains it.
    fn within(self, name: &str) -> Self {
        let path = |inner: String| if inner.is_empty() { name.to_owned() } else { format!("{name}.{inner}") };
        match self {
            Self::TooShort { field, missing } => Self::TooShort { field: path(field), missing },
            Self::Type { field } => Self::Type { field: path(field) },
            other @ Self::TooLong(_) => other,
        }
    }
}
