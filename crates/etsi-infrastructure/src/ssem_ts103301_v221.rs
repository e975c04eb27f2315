//! Signal request status extended message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2008, message id 10, protocol version 2. With this message an intersection answers requests for priority.

pub use types::SSEM as Ssem;

/// Types of the message, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{
        cdd_2_2_1::etsi_its_cdd::ItsPduHeader, dsrc_2_2_1::etsi_its_dsrc::*, ssem_2_2_1::ssem_pdu_descriptions::*,
    };
}

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of an SSEM.
pub const MESSAGE_ID: u8 = 10;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "ssm";

const MESSAGE: &str = "SSEM (TS 103 301 V2.2.1)";

/// Decodes an SSEM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one SSEM, or if whole octets follow it.
pub fn decode(octets: &[u8]) -> Result<Ssem, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Returns the element and the bit at which the octets stop being an SSEM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Ssem>(MESSAGE, octets)
}

/// Encodes an SSEM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode(ssem: &Ssem) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, ssem)
}

/// Appends the SSEM's JSON form to `out`.
pub fn write_json(ssem: &Ssem, out: &mut Vec<u8>) {
    json::write(ssem, out);
}

/// Reads an SSEM from its JSON form.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json(text: &[u8]) -> Result<Ssem, JsonError> {
    json::read(text)
}

/// Appends the SSEM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, ssem: &Ssem, out: &mut Vec<u8>) {
    json::write_in(style, ssem, out);
}

/// Reads an SSEM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Ssem, JsonError> {
    json::read_in(form, text)
}
