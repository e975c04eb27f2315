//! The JSON form of ASN.1 values: a rasn encoder that writes text, and a rasn decoder that reads it.

mod header;
mod reader;
mod scaled;
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

/// The same in a style.
pub fn write_in<T: Encode>(style: JsonStyle, value: &T, out: &mut Vec<u8>) {
    JsonWriter::write(style, out, |writer| value.encode(writer));
}

/// Reads one value from its JSON form.
pub fn read<T: Decode>(text: &[u8]) -> Result<T, JsonError> {
    read_in(JsonForm::default(), text)
}

/// The same from a form of its own.
pub fn read_in<T: Decode>(form: JsonForm, text: &[u8]) -> Result<T, JsonError> {
    JsonReader::read(form, text, T::decode)
}

/// Whether a BIT STRING has one size only, so that its text need not say how many bits count (X.697, 24).
fn has_fixed_size(constraints: &rasn::types::Constraints) -> bool {
    constraints.size().is_some_and(|size| size.extensible.is_none() && size.constraint.is_fixed())
}
