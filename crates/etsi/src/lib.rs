//! ASN.1 types of the ETSI ITS messages, with their UPER and JSON codecs: the only crate that names rasn.
//!
//! One module a message and edition: [`cam_en302637_2_v141`], [`cpm_ts103324_v211`]. Each re-exports the edition's types and
//! has four plain functions, `decode`, `encode`, `write_json` and `from_json`. They are not generic on purpose: the codecs
//! are, and are instantiated here and nowhere else.
//!
//! What is not here: headers below the message (crate `its`), SI units, signatures.
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

pub mod cam_en302637_2_v141;
pub mod cpm_ts103324_v211;
mod error;
mod header;
mod json;
pub mod limits;
mod sizes;
mod uper;

pub use error::{JsonError, JsonProblem, UperError};
pub use header::{PduHeader, pdu_header};
pub use json::{HeaderDefaults, JsonForm, JsonStyle};
