//! The messages of the facilities layer, in UPER and as JSON.

use serde_json::Value;
use viaduct_etsi::{JsonError, JsonProblem, UperError};
use viaduct_its::limits::PAYLOAD_OCTETS_MAX;

/// Both targets of a message. The codecs are plain functions of each message's module, so this is a macro.
///
/// `$settled` is what the message is after it was encoded: for ours just the same, see [`as_it_was`] and [`as_encoded`].
macro_rules! targets {
    ($module:ident, $uper:ident, $json:ident, $settled:ident) => {
        /// A message in UPER, not longer than in a packet: what is decoded can be encoded and written, and is the same when it is read again.
        pub fn $uper(octets: &[u8]) {
            use viaduct_etsi::$module::{decode, encode, from_json, write_json};
            let Ok(message) = decode(octets.get(..PAYLOAD_OCTETS_MAX).unwrap_or(octets)) else { return };
            let message = match encode(&message) {
                Ok(encoded) => {
                    $settled(&message, decode(&encoded).unwrap(), |again| encode(again).unwrap() == encoded, write_json)
                }
                Err(error) => {
                    assert!(is_of_a_later_edition(&error), "{error}");
                    message
                }
            };
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

targets!(cam_ts103900_v231, cam, json_cam, as_it_was);
targets!(denm_ts103831_v231, denm, json_denm, as_it_was);
targets!(cpm_ts103324_v211, cpm, json_cpm, as_it_was);
targets!(vam_ts103300_3_v231, vam, json_vam, as_it_was);
targets!(ivim_ts103301_v221, ivim, json_ivim, as_encoded);
targets!(mapem_ts103301_v221, mapem, json_mapem, as_encoded);
targets!(spatem_ts103301_v221, spatem, json_spatem, as_encoded);
targets!(srem_ts103301_v221, srem, json_srem, as_encoded);
targets!(ssem_ts103301_v221, ssem, json_ssem, as_encoded);

/// A message whose encoding says all of it.
fn as_it_was<T: PartialEq + std::fmt::Debug>(
    message: &T,
    again: T,
    _: impl Fn(&T) -> bool,
    _: impl Fn(&T, &mut Vec<u8>),
) -> T {
    assert_eq!(&again, message);
    again
}

/// An extension addition group may be there in the octets and say nothing; encoded again it is left out (X.691, 19.9). From
/// then on the message stays as it is.
fn as_encoded<T: PartialEq>(
    message: &T,
    again: T,
    is_encoded_the_same: impl Fn(&T) -> bool,
    write: impl Fn(&T, &mut Vec<u8>),
) -> T {
    if again != *message {
        let text = |message| {
            let mut text = Vec::new();
            write(message, &mut text);
            without_empty(serde_json::from_slice(&text).expect("what is written is JSON"))
        };
        assert_eq!(text(&again), text(message));
        assert!(is_encoded_the_same(&again));
    }
    again
}

/// JSON without objects that have no members.
fn without_empty(value: Value) -> Value {
    let said = |value: &Value| value.as_object().is_none_or(|members| !members.is_empty());
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(members.filter(|(_, value)| said(value)).collect())
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(without_empty).collect()),
        value => value,
    }
}

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
