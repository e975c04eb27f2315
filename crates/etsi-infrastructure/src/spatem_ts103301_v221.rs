//! Signal phase and timing extended message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2004, message id 4, protocol version 2. The message contains the state of the traffic lights of
//! intersections, and the times at which the state changes.

pub use types::SPATEM as Spatem;

/// Types of the message, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{
        cdd_2_2_1::etsi_its_cdd::ItsPduHeader, dsrc_2_2_1::etsi_its_dsrc::*, spatem_2_2_1::spatem_pdu_descriptions::*,
    };
}

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of a SPATEM.
pub const MESSAGE_ID: u8 = 4;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "spat";

const MESSAGE: &str = "SPATEM (TS 103 301 V2.2.1)";

/// Decodes a SPATEM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one SPATEM, or if whole octets follow it.
pub fn decode(octets: &[u8]) -> Result<Spatem, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Returns the element and the bit at which the octets stop being a SPATEM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Spatem>(MESSAGE, octets)
}

/// Encodes a SPATEM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode(spatem: &Spatem) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, spatem)
}

/// Appends the SPATEM's JSON form to `out`.
pub fn write_json(spatem: &Spatem, out: &mut Vec<u8>) {
    json::write(spatem, out);
}

/// Reads a SPATEM from its JSON form.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json(text: &[u8]) -> Result<Spatem, JsonError> {
    json::read(text)
}

/// Appends the SPATEM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, spatem: &Spatem, out: &mut Vec<u8>) {
    json::write_in(style, spatem, out);
}

/// Reads a SPATEM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Spatem, JsonError> {
    json::read_in(form, text)
}
