//! Every bound of the JSON reader.
//!
//! The largest message that fits a GeoNetworking packet (1398 octets) is far inside all of them.

/// Octets of one JSON text.
pub const JSON_OCTETS_MAX: usize = 256 * 1024;
/// Objects and arrays inside each other. The deepest path of a CPM has 15.
pub const JSON_DEPTH_MAX: usize = 32;
/// Values in one text, over all objects and arrays.
pub const JSON_VALUES_MAX: usize = 32 * 1024;
/// Members of one object. The largest SEQUENCE of the messages has 17.
pub const JSON_MEMBERS_MAX: usize = 64;
/// Elements of one array. The largest SEQUENCE OF of the messages has 256.
pub const JSON_ELEMENTS_MAX: usize = 1024;
/// Bits of a BIT STRING that is read from an object. The longest of the messages has 20.
pub const JSON_NAMED_BITS_MAX: usize = 64;
/// Characters of a refused value that an error repeats.
pub const ERROR_EXCERPT_MAX: usize = 40;
/// Octets of a codec's explanation that an error repeats.
pub const ERROR_DETAIL_MAX: usize = 240;
/// Octets of the names that an error lists.
pub const ERROR_NAMES_MAX: usize = 600;

const _: () = assert!(JSON_DEPTH_MAX < 128, "serde_json stops at 128");
