//! The JSON form of ASN.1 values: a rasn encoder that writes text, and a rasn decoder that reads it.

mod header;
mod reader;
pub mod scaled;
mod style;
mod tree;
mod writer;

pub use reader::JsonReader;
pub use style::{HeaderDefaults, JsonForm, JsonStyle};
pub use writer::JsonWriter;

use rasn::{Decode, Encode};

use crate::error::JsonError;

/// Appends the JSON form of `value` to `out`.
pub fn write<T: Encode>(value: &T, out: &mut Vec<u8>) {
    write_in(JsonStyle::Raw, value, out);
}

/// Appends the JSON form of `value` in a style to `out`.
pub fn write_in<T: Encode>(style: JsonStyle, value: &T, out: &mut Vec<u8>) {
    JsonWriter::write(style, out, |writer| value.encode(writer));
}

/// Reads one value from its JSON form.
pub fn read<T: Decode>(text: &[u8]) -> Result<T, JsonError> {
    read_in(JsonForm::default(), text)
}

/// Reads one value from its JSON form in a style, or from a part of it.
pub fn read_in<T: Decode>(form: JsonForm, text: &[u8]) -> Result<T, JsonError> {
    JsonReader::read(form, text, T::decode)
}

/// Returns `true` if a BIT STRING has a fixed size, so that its text does not contain the number of bits (X.697, 24).
fn has_fixed_size(constraints: &rasn::types::Constraints) -> bool {
    constraints.size().is_some_and(|size| size.extensible.is_none() && size.constraint.is_fixed())
}
