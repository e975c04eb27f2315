//! The generic part of UPER and JSON for types with rasn's derives. The crates of the message types instantiate it.
//!
//! # The JSON form
//!
//! The first style, [`JsonStyle::Raw`], is the form of X.697 (JER), with one difference: the open types of a CPM are shown
//! with their content. Members have their ASN.1 names, in the order of their declaration.
//!
//! | type | JSON |
//! |---|---|
//! | INTEGER | number, as the standard scales it |
//! | ENUMERATED | name |
//! | BIT STRING of a fixed size | hexadecimal text |
//! | BIT STRING of a variable size | `{"value":"..","length":n}` |
//! | OCTET STRING | hexadecimal text |
//! | CHOICE | object with one member |
//! | OPTIONAL that is absent | absent |
//!
//! The second style, [`JsonStyle::Scaled`], is that of vanetza-nap. It differs in three types:
//!
//! | type | JSON |
//! |---|---|
//! | INTEGER in the table of the style | number in metres, degrees, seconds or derived units; `null` if it is not available |
//! | ENUMERATED | number |
//! | BIT STRING | object of named booleans |
//!
//! The reader of the second style rounds scaled numbers to the nearest step. It also accepts the code for "not available"
//! (`900000001` for a latitude), which some versions write. It rejects decimals of an INTEGER that is not scaled.
//!
//! The reader accepts members in any order. It rejects unknown and repeated members and values out of range. It also
//! rejects text that is too deep, too long or has too many values. The error names the member.
//!
//! # Limits
//!
//! A list may have fewer or more elements than the root of its extensible size (`SIZE(1..8,...)`). It is decoded,
//! encoded, and read and written as JSON. rasn would encode it wrongly, so [`uper::encode`] uses a slower encoder for
//! such a message. Such a list is encoded with at most [`limits::LIST_ELEMENTS_MAX`] elements and read from JSON with
//! [`limits::JSON_ELEMENTS_MAX`].
//!
//! While rasn decodes such a list, it allocates memory for the number of elements in the length field, at most one
//! element for each remaining bit. With the largest elements, those of an IVIM, this is a few megabytes for one packet.

mod error;
mod extended_sizes;
pub mod json;
pub mod limits;
pub mod open_type;
mod sizes;
pub mod uper;

pub use error::{JsonError, JsonProblem, UperError};
pub use json::{HeaderDefaults, JsonForm, JsonStyle};
