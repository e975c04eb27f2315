//! Signal request extended message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2007, message id 9, protocol version 2. A vehicle asks an intersection for priority with it.

pub use types::SREM as Srem;

/// The message's types, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{
        cdd_2_2_1::etsi_its_cdd::ItsPduHeader, dsrc_2_2_1::etsi_its_dsrc::*, srem_2_2_1::srem_pdu_descriptions::*,
    };
}

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// The standard's name and version.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of an SREM.
pub const MESSAGE_ID: u8 = 9;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// The member of the message that is its body.
pub const BODY: &str = "srm";

const MESSAGE: &str = "SREM (TS 103 301 V2.2.1)";

/// Decodes an SREM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Octets that are not one SREM, or whole octets behind it.
pub fn decode(octets: &[u8]) -> Result<Srem, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Returns the element and the bit at which the octets stop being an SREM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Srem>(MESSAGE, octets)
}

/// Encodes an SREM in UPER.
///
/// # Errors
/// A value outside its range.
pub fn encode(srem: &Srem) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, srem)
}

/// Appends the SREM's JSON form to `out`.
pub fn write_json(srem: &Srem, out: &mut Vec<u8>) {
    json::write(srem, out);
}

/// Reads an SREM from its JSON form.
///
/// # Errors
/// The first thing in which the text is not an SREM, and where it is.
pub fn from_json(text: &[u8]) -> Result<Srem, JsonError> {
    json::read(text)
}

/// Appends the SREM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, srem: &Srem, out: &mut Vec<u8>) {
    json::write_in(style, srem, out);
}

/// Reads an SREM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// The first thing in which the text is not an SREM, and where it is.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Srem, JsonError> {
    json::read_in(form, text)
}
