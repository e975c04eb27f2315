//! Decentralized environmental notification message, ETSI TS 103 831 V2.3.1 (release 2), on the data dictionary
//! TS 102 894-2 V2.4.1.
//!
//! BTP port 2002, message id 1, protocol version 2.
//!
//! A DENM of release 1 (EN 302 637-3 V1.3.1) has the same octets for the same content, so it is read and written here too;
//! only names differ. What release 2 added are groups of extension additions, which a release 1 decoder skips. Their
//! members stand in groups of their own here, and beside the others in the JSON form.

pub mod types;

pub use types::Denm;

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// The standard's name and version.
pub const EDITION: &str = "TS 103 831 V2.3.1";
/// `messageId` of a DENM.
pub const MESSAGE_ID: u8 = 1;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// The member of the message that is its body.
pub const BODY: &str = "denm";

const MESSAGE: &str = "DENM (TS 103 831 V2.3.1)";

/// Decodes a DENM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Octets that are not one DENM, or whole octets behind it.
pub fn decode(octets: &[u8]) -> Result<Denm, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Encodes a DENM in UPER.
///
/// # Errors
/// A value outside its range.
pub fn encode(denm: &Denm) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, denm)
}

/// Appends the DENM's JSON form to `out`.
pub fn write_json(denm: &Denm, out: &mut Vec<u8>) {
    json::write(denm, out);
}

/// Reads a DENM from its JSON form.
///
/// # Errors
/// The first thing in which the text is not a DENM, and where it is.
pub fn from_json(text: &[u8]) -> Result<Denm, JsonError> {
    json::read(text)
}

/// Appends the DENM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, denm: &Denm, out: &mut Vec<u8>) {
    json::write_in(style, denm, out);
}

/// Reads a DENM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// The first thing in which the text is not a DENM, and where it is.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Denm, JsonError> {
    json::read_in(form, text)
}
