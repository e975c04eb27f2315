//! Cooperative awareness message, ETSI EN 302 637-2 V1.4.1 (release 1), on the data dictionary TS 102 894-2 V1.3.1.
//!
//! BTP port 2001, message id 2, protocol version 2.

use c_its_parser::standards;

pub use standards::cam_1_4_1::cam_pdu_descriptions::CAM as Cam;

/// The message's types, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{cam_1_4_1::cam_pdu_descriptions::*, cdd_1_3_1_1::its_container::*};
}

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// The standard's name and version.
pub const EDITION: &str = "EN 302 637-2 V1.4.1";
/// `messageID` of a CAM.
pub const MESSAGE_ID: u8 = 2;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// The member of the message that is its body.
pub const BODY: &str = "cam";

const MESSAGE: &str = "CAM (EN 302 637-2 V1.4.1)";

/// Decodes a CAM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Octets that are not one CAM, or whole octets behind it.
pub fn decode(octets: &[u8]) -> Result<Cam, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Encodes a CAM in UPER.
///
/// # Errors
/// A value outside its range.
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
/// The first thing in which the text is not a CAM, and where it is.
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
/// The first thing in which the text is not a CAM, and where it is.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Cam, JsonError> {
    json::read_in(form, text)
}

/// `ExteriorLights` from its eight bits, the most significant one first (low beam headlights).
#[must_use]
pub fn exterior_lights(bits: u8) -> types::ExteriorLights {
    // rasn stores N octets for N bits and counts the first N bits: the first octet has them all.
    types::ExteriorLights(rasn::types::FixedBitString::new([bits, 0, 0, 0, 0, 0, 0, 0]))
}

/// `AccelerationControl` from its seven bits, which are the upper ones of `bits` (brake pedal engaged is the first).
#[must_use]
pub fn acceleration_control(bits: u8) -> types::AccelerationControl {
    types::AccelerationControl(rasn::types::FixedBitString::new([bits & 0xFE, 0, 0, 0, 0, 0, 0]))
}

/// `PathDeltaTime` from units of 10 ms, 1 to 65 535.
#[must_use]
pub fn path_delta_time(units: u16) -> types::PathDeltaTime {
    types::PathDeltaTime(units.into())
}
