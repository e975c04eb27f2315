//! Signal request extended message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2007, message id 9, protocol version 2. With this message a vehicle requests priority at an intersection.

pub use types::SREM as Srem;

/// Types of the message, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{
        cdd_2_2_1::etsi_its_cdd::ItsPduHeader, dsrc_2_2_1::etsi_its_dsrc::*, srem_2_2_1::srem_pdu_descriptions::*,
    };
}

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of an SREM.
pub const MESSAGE_ID: u8 = 9;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "srm";

const MESSAGE: &str = "SREM (TS 103 301 V2.2.1)";

/// Decodes an SREM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one SREM, or if whole octets follow it.
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
/// Returns an error if a value is outside its range.
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
/// Returns the first error in the text, with its path.
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
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Srem, JsonError> {
    json::read_in(form, text)
}
