//! Cooperative awareness message, ETSI TS 103 900 V2.3.1 (release 2), on the data dictionary TS 102 894-2 V2.4.1.
//!
//! BTP port 2001, message id 2, protocol version 2.
//!
//! A CAM of release 1 (EN 302 637-2 V1.4.1) has the same octets for the same content, so these functions also read
//! and write it; only names differ. Release 2 added the extension containers, which a release 1 decoder skips.

mod extension;
pub mod types;

pub use types::Cam;

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 900 V2.3.1";
/// `messageId` of a CAM.
pub const MESSAGE_ID: u8 = 2;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "cam";

const MESSAGE: &str = "CAM (TS 103 900 V2.3.1)";

/// Decodes a CAM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one CAM, or if whole octets follow it.
pub fn decode(octets: &[u8]) -> Result<Cam, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Returns the element and the bit at which the octets stop being a CAM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Cam>(MESSAGE, octets)
}

/// Encodes a CAM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode(cam: &Cam) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, cam)
}

/// Appends the CAM's JSON form to `out`.
pub fn write_json(cam: &Cam, out: &mut Vec<u8>) {
    json::write(cam, out);
}

/// Reads a CAM from its JSON form.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json(text: &[u8]) -> Result<Cam, JsonError> {
    json::read(text)
}

/// Appends the CAM's JSON form in a style to `out`.
pub fn write_json_in(style: JsonStyle, cam: &Cam, out: &mut Vec<u8>) {
    json::write_in(style, cam, out);
}

/// Reads a CAM from its JSON form in a style, or from a part of it.
///
/// # Errors
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Cam, JsonError> {
    json::read_in(form, text)
}
