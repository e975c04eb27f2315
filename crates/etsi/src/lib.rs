//! ASN.1 types of the ETSI ITS messages, with their UPER and JSON codecs: the only crate that names rasn.
//!
//! One module a message and edition: [`cam_ts103900_v231`], [`denm_ts103831_v231`], [`cpm_ts103324_v211`],
//! [`vam_ts103300_3_v231`]. Each has the edition's types and four plain functions, `decode`, `encode`, `write_json` and
//! `from_json`. They are not generic on purpose: the codecs are, and are instantiated here and nowhere else. The types that
//! the messages share are in [`cdd`].
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
//!
//! # Limits
//!
//! A list with fewer or more elements than the root of its extensible size (`SIZE(1..8,...)`) is decoded and written as
//! JSON, but neither read from JSON nor encoded: rasn would encode it wrongly.

pub mod cam_ts103900_v231;
pub mod cdd;
pub mod cpm_ts103324_v211;
pub mod denm_ts103831_v231;
mod error;
mod header;
pub mod ivim_ts103301_v221;
mod json;
pub mod limits;
pub mod mapem_ts103301_v221;
mod open_type;
mod sizes;
pub mod spatem_ts103301_v221;
pub mod srem_ts103301_v221;
pub mod ssem_ts103301_v221;
mod uper;
pub mod vam_ts103300_3_v231;

pub use error::{JsonError, JsonProblem, UperError};
pub use header::{PduHeader, pdu_header};
pub use json::{HeaderDefaults, JsonForm, JsonStyle};
