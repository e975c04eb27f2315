//! The messages of the facilities layer, in UPER and as JSON.

use viaduct_etsi::{JsonError, JsonProblem, UperError};
use viaduct_its::limits::PAYLOAD_OCTETS_MAX;

/// Both targets of a message. The codecs are plain functions of each message's module, so this is a macro.
macro_rules! targets {
    ($module:ident, $uper:ident, $json:ident) => {
        /// A message in UPER, not longer than in a packet: what is decoded can be encoded and written, and is the same when it is read again.
        pub fn $uper(octets: &[u8]) {
            use viaduct_etsi::$module::{decode, encode, from_json, write_json};
            let Ok(message) = decode(octets.get(..PAYLOAD_OCTETS_MAX).unwrap_or(octets)) else { return };
            match encode(&message) {
                Ok(encoded) => assert_eq!(decode(&encoded).as_ref(), Ok(&message)),
                Err(error) => assert!(is_of_a_later_edition(&error), "{error}"),
            }
            let mut text = Vec::new();
            write_json(&message, &mut text);
            match from_json(&text) {
                Ok(read) => assert_eq!(read, message),
                Err(error) => assert!(is_beyond_64_bits(&error) || is_beyond_a_size(&error), "{error}"),
            }
        }

        /// A message as JSON: what is read is written as JSON that reads the same, and what can be encoded decodes the same.
        pub fn $json(text: &[u8]) {
            use viaduct_etsi::$module::{decode, encode, from_json, write_json};
            let Ok(message) = from_json(text) else { return };
            let mut written = Vec::new();
            write_json(&message, &mut written);
            assert_eq!(from_json(&written).as_ref(), Ok(&message));
            if let Ok(octets) = encode(&message) {
                assert_eq!(decode(&octets).as_ref(), Ok(&message));
            }
        }
    };
}

targets!(cam_ts103900_v231, cam, json_cam);
targets!(denm_ts103831_v231, denm, json_denm);
targets!(cpm_ts103324_v211, cpm, json_cpm);
targets!(vam_ts103300_3_v231, vam, json_vam);
targets!(ivim_ts103301_v221, ivim, json_ivim);
targets!(mapem_ts103301_v221, mapem, json_mapem);
targets!(spatem_ts103301_v221, spatem, json_spatem);
targets!(srem_ts103301_v221, srem, json_srem);
targets!(ssem_ts103301_v221, ssem, json_ssem);

/// A list may have a size beyond what this edition has; it is decoded, and not encoded.
fn is_of_a_later_edition(error: &UperError) -> bool {
    matches!(error, UperError::Unencodable { detail, .. } if detail.contains("a list of "))
}

/// An extensible INTEGER may be of any size in UPER; the JSON form is read up to 64 bits.
fn is_beyond_64_bits(error: &JsonError) -> bool {
    match &error.problem {
        JsonProblem::Mismatch { expected, .. } => expected.contains("integer"),
        JsonProblem::Syntax(cause) => cause.contains("number out of range"),
        _ => false,
    }
}

/// A list that is not encoded is not read from JSON either.
fn is_beyond_a_size(error: &JsonError) -> bool {
    matches!(&error.problem, JsonProblem::Mismatch { expected, .. } if expected.ends_with(" elements"))
}
