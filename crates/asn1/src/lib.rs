//! UPER and JSON for types with rasn's derives: what is generic. The crates of the message types instantiate it.
//!
//! # The JSON form
//!
//! ASN.1 names in the order of their declaration; integers as the standard scales them; ENUMERATED as its name; BIT STRING
//! of a fixed size as hexadecimal text, of a variable size as `{"value":"..","length":n}`; OCTET STRING as hexadecimal
//! text; CHOICE as an object with one member; an absent OPTIONAL is absent. It is the form of X.697 (JER), with one
//! difference: a CPM's open types are shown as what they hold.
//!
//! There is a second style, [`JsonStyle::Scaled`], which is that of vanetza-nap: INTEGERs of the types in `json/scaled`
//! are numbers in metres, degrees, seconds and what is made of them, `null` where the value is not available; ENUMERATED is
//! its number; BIT STRING is an object of named truth values. Reading rounds to the nearest integer, and takes also the
//! integer that stands for "not available" (`900000001` for a latitude), since others write it.
//!
//! Reading takes members in any order. It refuses a member that the type does not have, one that occurs twice, a value out
//! of range, and text that is too deep, too long or has too many values; the error names the member.
//!
//! # Limits
//!
//! A list with fewer or more elements than the root of its extensible size (`SIZE(1..8,...)`) is decoded and written as
//! JSON, but neither read from JSON nor encoded: rasn would encode it wrongly. While such a list is decoded, rasn reserves room
//! for as many elements as it claims to have, at most one for each bit that is left: with the largest elements, those of an
//! IVIM, a few megabytes for the octets of one packet.

mod error;
pub mod json;
pub mod limits;
pub mod open_type;
mod sizes;
pub mod uper;

pub use error::{JsonError, JsonProblem, UperError};
pub use json::{HeaderDefaults, JsonForm, JsonStyle};
