//! Messages of the facilities layer, in UPER and as JSON.

use serde_json::Value;
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_its::limits::PAYLOAD_OCTETS_MAX;

/// Defines both targets of a message. It is a macro because the codecs are plain functions of each message's module.
/// `$settled` returns the message after encoding, see [`unchanged`] and [`encoded_once`].
macro_rules! targets {
    ($module:ident, $uper:ident, $json:ident, $settled:ident) => {
        /// Checks a message in UPER, at most as long as a packet. A decoded message can be encoded and written as JSON,
        /// and reading either form results in the same message.
        pub fn $uper(octets: &[u8]) {
            use viaduct_etsi::$module::{decode, encode, from_json, write_json};
            let Ok(message) = decode(octets.get(..PAYLOAD_OCTETS_MAX).unwrap_or(octets)) else { return };
            let encoded = encode(&message).unwrap();
            let message =
                $settled(&message, decode(&encoded).unwrap(), |again| encode(again).unwrap() == encoded, write_json);
            let mut text = Vec::new();
            write_json(&message, &mut text);
            match from_json(&text) {
                Ok(read) => assert_eq!(read, message),
                Err(error) => assert!(is_beyond_64_bits(&error) || is_too_large(&error), "{error}"),
            }
        }

        /// Checks a message as JSON: reading its JSON, or decoding its UPER, results in the same message.
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

targets!(cam_ts103900_v231, cam, json_cam, unchanged);
targets!(denm_ts103831_v231, denm, json_denm, unchanged);
targets!(cpm_ts103324_v211, cpm, json_cpm, unchanged);
targets!(vam_ts103300_3_v231, vam, json_vam, unchanged);
targets!(ivim_ts103301_v221, ivim, json_ivim, encoded_once);
targets!(mapem_ts103301_v221, mapem, json_mapem, encoded_once);
targets!(spatem_ts103301_v221, spatem, json_spatem, encoded_once);
targets!(srem_ts103301_v221, srem, json_srem, encoded_once);
targets!(ssem_ts103301_v221, ssem, json_ssem, encoded_once);

/// Returns the message unchanged: its encoding is lossless.
fn unchanged<T: PartialEq + std::fmt::Debug>(
    message: &T,
    again: T,
    _: impl Fn(&T) -> bool,
    _: impl Fn(&T, &mut Vec<u8>),
) -> T {
    assert_eq!(&again, message);
    again
}

/// Returns the message after one encoding. An extension addition group may be present in the octets but empty; it is
/// left out when encoded again (X.691, 19.9). Further encodings do not change the message.
fn encoded_once<T: PartialEq>(
    message: &T,
    again: T,
    is_encoded_the_same: impl Fn(&T) -> bool,
    write: impl Fn(&T, &mut Vec<u8>),
) -> T {
    if again != *message {
        let text = |message| {
            let mut text = Vec::new();
            write(message, &mut text);
            without_empty(serde_json::from_slice(&text).expect("the text is valid JSON"))
        };
        assert_eq!(text(&again), text(message));
        assert!(is_encoded_the_same(&again));
    }
    again
}

/// Removes objects without members.
fn without_empty(value: Value) -> Value {
    let has_content = |value: &Value| value.as_object().is_none_or(|members| !members.is_empty());
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(members.filter(|(_, value)| has_content(value)).collect())
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(without_empty).collect()),
        value => value,
    }
}

/// Returns `true` if a number exceeds 64 bits. An extensible INTEGER may have any size in UPER; from JSON it is read
/// up to 64 bits.
fn is_beyond_64_bits(error: &JsonError) -> bool {
    match &error.problem {
        JsonProblem::Mismatch { expected, .. } => expected.contains("integer"),
        JsonProblem::Syntax(cause) => cause.contains("number out of range"),
        _ => false,
    }
}

/// Returns `true` for the error of a limit of the JSON reader, which lists beyond the root of their size may exceed.
fn is_too_large(error: &JsonError) -> bool {
    matches!(&error.problem, JsonProblem::Syntax(cause) if cause.contains("more than") || cause.contains("at most"))
}
