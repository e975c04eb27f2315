//! The generic part of UPER and JSON for types with rasn's derives. The crates of the message types instantiate it.
//!
//! # The JSON form
//!
//! ASN.1 names in the order of their declaration; integers as the standard scales them; ENUMERATED as its name; BIT STRING
//! of a fixed size as hexadecimal text, of a variable size as `{"value":"..","length":n}`; OCTET STRING as hexadecimal
//! text; CHOICE as an object with one member; an absent OPTIONAL is absent. This is the form of X.697 (JER), with one
//! difference: the open types of a CPM are shown with their content.
//!
//! The second style, [`JsonStyle::Scaled`], is that of vanetza-nap: INTEGERs of the types in `json/scaled` are numbers in
//! metres, degrees, seconds and derived units, `null` if the value is not available; an ENUMERATED is its number; a BIT STRING
//! is an object of named booleans. The reader rounds these numbers to the nearest step and also accepts the code for "not
//! available" (`900000001` for a latitude), which some versions write. It rejects decimals of an INTEGER that is not scaled.
//!
//! The reader accepts members in any order. It rejects members that the type does not have or that occur twice, values out
//! of range, and text that is too deep, too long or has too many values. The error names the member.
//!
//! # Limits
//!
//! A list may have fewer or more elements than the root of its extensible size (`SIZE(1..8,...)`): it is decoded, encoded, and
//! read and written as JSON. rasn would encode it wrongly; [`uper::encode`] uses a slower encoder for such a message. Such a list
//! is encoded with at most [`limits::LIST_ELEMENTS_MAX`] elements and read from JSON with [`limits::JSON_ELEMENTS_MAX`].
//!
//! While rasn decodes such a list, it allocates
//! memory for the number of elements in the length field, at most one for each remaining bit: with the largest elements, those
//! of an IVIM, a few megabytes for one packet.

mod error;
mod extended_sizes;
pub mod json;
pub mod limits;
pub mod open_type;
mod sizes;
pub mod uper;

pub use error::{JsonError, JsonProblem, UperError};
pub use json::{HeaderDefaults, JsonForm, JsonStyle};
