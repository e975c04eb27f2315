//! The JSON form of ASN.1 values: a rasn encoder that writes text, and a rasn decoder that reads it.

mod reader;
mod tree;
mod writer;

pub(crate) use reader::JsonReader;
pub(crate) use writer::JsonWriter;

use rasn::{Decode, Encode};

use crate::error::JsonError;

/// Appends the JSON form of `value` to `out`.
pub(crate) fn write<T: Encode>(value: &T, out: &mut Vec<u8>) {
    JsonWriter::write(out, |writer| value.encode(writer));
}

/// Reads one value from its JSON form.
pub(crate) fn read<T: Decode>(text: &[u8]) -> Result<T, JsonError> {
    JsonReader::read(text, T::decode)
}

/// Whether a BIT STRING has one size only, so that its text need not say how many bits count (X.697, 24).
fn has_fixed_size(constraints: &rasn::types::Constraints) -> bool {
    constraints.size().is_some_and(|size| size.extensible.is_none() && size.constraint.is_fixed())
}
