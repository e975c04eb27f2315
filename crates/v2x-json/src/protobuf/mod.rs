//! JSON of a protobuf message of any type, by its schema.
//!
//! | protobuf | JSON |
//! |---|---|
//! | field name | as in the schema: `latitude_deg` |
//! | enumeration | the label of the value ([`enum_label`]); a number if the schema does not have the value |
//! | 64-bit integer | a number up to 2^53 - 1 (a double holds it exactly), otherwise a string |
//! | bytes | base64 |
//! | `google.protobuf.Timestamp` | RFC 3339: `2024-09-11T13:30:34.092870Z` |
//! | other types of `google.protobuf` | as in protobuf's JSON mapping |
//!
//! A field without presence is always written, with its default if it is not set: a zero is a value. A field with presence
//! is absent if it is not set.
//!
//! Reading also accepts the spellings of protobuf's own JSON mapping: names in lowerCamelCase and the full names of
//! enumeration values (`OBJECT_CLASS_UNKNOWN`).

mod labels;
mod reader;
mod writer;

pub use labels::enum_label;
pub use reader::{Reader, SchemaReader};
pub use writer::JsonOf;

#[cfg(test)]
mod tests;
