//! Infrastructure to vehicle information message, ETSI TS 103 301 V2.2.1 (release 2), on the data dictionary TS 102 894-2 V2.2.1.
//!
//! BTP port 2006, message id 6, protocol version 2. Its content is ISO TS 19321: what road signs say, where and to whom.

pub use types::IVIM as Ivim;

/// The message's types, under their ASN.1 names.
pub mod types {
    pub use c_its_parser::standards::{
        cdd_2_2_1::etsi_its_cdd::ItsPduHeader,
        ivim_2_2_1::{ivi::*, ivim_pdu_descriptions::*},
    };
}

use crate::{JsonError, UperError, json, uper};

/// The standard's name and version.
pub const EDITION: &str = "TS 103 301 V2.2.1";
/// `messageId` of an IVIM.
pub const MESSAGE_ID: u8 = 6;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

const MESSAGE: &str = "IVIM (TS 103 301 V2.2.1)";

/// Decodes an IVIM from UPER.
///
/// Extension additions of later editions are skipped: forward the received octets, not a re-encoding.
///
/// # Errors
/// Octets that are not one IVIM, or whole octets behind it.
pub fn decode(octets: &[u8]) -> Result<Ivim, UperError> {
    uper::decode(MESSAGE, octets)
}

/// Encodes an IVIM in UPER.
///
/// # Errors
/// A value outside its range.
pub fn encode(ivim: &Ivim) -> Result<Vec<u8>, UperError> {
    uper::encode(MESSAGE, ivim)
}

/// Appends the IVIM's JSON form to `out`.
pub fn write_json(ivim: &Ivim, out: &mut Vec<u8>) {
    json::write(ivim, out);
}

/// Reads an IVIM from its JSON form.
///
/// # Errors
/// The first thing in which the text is not an IVIM, and where it is.
pub fn from_json(text: &[u8]) -> Result<Ivim, JsonError> {
    json::read(text)
}
