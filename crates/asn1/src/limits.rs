//! Limits of the JSON reader.
//!
//! The largest message that fits a GeoNetworking packet (1398 octets) is far inside all of them.

/// Maximum length of a JSON text in bytes.
pub const JSON_OCTETS_MAX: usize = 256 * 1024;
/// Maximum nesting of objects and arrays. The deepest path of a CPM has 15.
pub const JSON_DEPTH_MAX: usize = 32;
/// Maximum number of values in a text, in all objects and arrays.
pub const JSON_VALUES_MAX: usize = 32 * 1024;
/// Maximum number of members of an object. The largest SEQUENCE of the messages has 17.
pub const JSON_MEMBERS_MAX: usize = 64;
/// Maximum number of elements of an array. The largest SEQUENCE OF of the messages has 256.
pub const JSON_ELEMENTS_MAX: usize = 1024;
/// Maximum number of elements of a list beyond the root of its size that is encoded, and of the lists beside it.
pub const LIST_ELEMENTS_MAX: usize = 65_535;
/// Maximum number of bits of a BIT STRING that is read from an object. The longest of the messages has 20.
pub const JSON_NAMED_BITS_MAX: usize = 64;
/// Maximum number of characters of a rejected value in an error.
pub const ERROR_EXCERPT_MAX: usize = 40;
/// Maximum length of a codec's explanation in an error, in bytes.
pub const ERROR_DETAIL_MAX: usize = 240;
/// Maximum length of the names in an error, in bytes.
pub const ERROR_NAMES_MAX: usize = 600;

const _: () = assert!(JSON_DEPTH_MAX < 128, "serde_json stops at 128");
