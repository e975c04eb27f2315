//! Vulnerable road user awareness message, ETSI TS 103 300-3 V2.3.1 (release 2), on the data dictionary TS 102 894-2 V2.4.1.
//!
//! BTP port 2018, message id 16, protocol version 3.
//!
//! The module also has the standard's second ASN.1 module, a container for motorcyclists that is not part of the
//! message.

pub mod types;

pub use types::{MotorcyclistSpecialContainer, Vam};

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 300-3 V2.3.1";
/// `messageId` of a VAM.
pub const MESSAGE_ID: u8 = 16;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 3;

/// Name of the member that is the body of the message.
pub const BODY: &str = "vam";

const MESSAGE: &str = "VAM (TS 103 300-3 V2.3.1)";

/// Decodes a VAM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one VAM, or if whole octets follow it.
pub fn decode(octets: &[u8]) -> Result<Vam, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Returns the element and the bit at which the octets stop being a VAM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Vam>(MESSAGE, octets)
}

/// Encodes a VAM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode(vam: &Vam) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, vam)
}

/// Appends the VAM's JSON form to `out`.
pub fn write_json(vam: &Vam, out: &mut Vec<u8>) {
    json::write(vam, out);
}

/// Reads a VAM from its JSON form.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json(text: &[u8]) -> Result<Vam, JsonError> {
    json::read(text)
}

/// Appends the VAM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, vam: &Vam, out: &mut Vec<u8>) {
    json::write_in(style, vam, out);
}

/// Reads a VAM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Vam, JsonError> {
    json::read_in(form, text)
}

const MOTORCYCLIST: &str = "motorcyclist special container (TS 103 300-3 V2.3.1)";

/// Decodes a motorcyclist special container from UPER.
///
/// # Errors
/// Returns an error if the octets are not one container, or if whole octets follow it.
pub fn decode_motorcyclist(octets: &[u8]) -> Result<MotorcyclistSpecialContainer, UperError> {
    uper::decode(MOTORCYCLIST, octets)
}

/// Encodes a motorcyclist special container in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode_motorcyclist(container: &MotorcyclistSpecialContainer) -> Result<Vec<u8>, UperError> {
    uper::encode(MOTORCYCLIST, container)
}
