//! Round trips of the input and output of vanetza-nap, for each message type: read, encode, decode and write again.
//!
//! The example files are in the data folder (`VIADUCT_DATA`, or `../shared/data` beside the repository) and are not part of
//! the repository. Two values are equal if the same integer represents both. `null` is equal to the code for "not
//! available", which some versions of vanetza-nap write unscaled.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]
#![allow(clippy::disallowed_methods, reason = "a test reads files and the environment")]

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::Value;
use viaduct_etsi::{HeaderDefaults, JsonError, JsonForm, JsonStyle, SCALED, UperError};
use viaduct_etsi::{
    cam_ts103900_v231 as cam, cpm_ts103324_v211 as cpm, denm_ts103831_v231 as denm, ivim_ts103301_v221 as ivim,
    spatem_ts103301_v221 as spatem, vam_ts103300_3_v231 as vam,
};

/// The codecs of one message type.
struct Codec {
    name: &'static str,
    header: HeaderDefaults,
    /// Converts JSON to UPER.
    to_uper: fn(JsonForm, &[u8]) -> Result<Vec<u8>, JsonError>,
    /// Converts UPER to JSON.
    to_json: fn(JsonStyle, &[u8]) -> Result<Vec<u8>, UperError>,
}

macro_rules! codec {
    ($module:ident) => {
        Codec {
            name: stringify!($module),
            header: HeaderDefaults {
                protocol_version: $module::PROTOCOL_VERSION,
                message_id: $module::MESSAGE_ID,
                station_id: 7,
                body: $module::BODY,
            },
            to_uper: |form, text| Ok($module::encode(&$module::from_json_in(form, text)?).unwrap()),
            to_json: |style, octets| {
                let mut out = Vec::new();
                $module::write_json_in(style, &$module::decode(octets)?, &mut out);
                Ok(out)
            },
        }
    };
}

const CODECS: [Codec; 6] = [codec!(cam), codec!(cpm), codec!(denm), codec!(ivim), codec!(spatem), codec!(vam)];

/// Returns an example file, or `None` if it does not exist; the reason is then printed. The examples are not part of the
/// project, so only a folder that `VIADUCT_DATA` names must contain them.
fn example(name: &str) -> Option<Value> {
    let named = std::env::var_os("VIADUCT_DATA").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = named.clone().unwrap_or_else(beside).join("json/vanetza-nap").join(name);
    if !path.exists() {
        assert!(named.is_none(), "VIADUCT_DATA names a folder without json/vanetza-nap/{name}");
        // Written directly to stderr, because the test runner hides the output of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no json/vanetza-nap/{name} in the data folder (VIADUCT_DATA)");
        return None;
    }
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

/// Returns the message after the conversions from JSON to UPER and back.
fn round_trip(codec: &Codec, header: Option<HeaderDefaults>, text: &Value) -> Result<Value, JsonError> {
    let form = JsonForm { style: SCALED, header };
    let octets = (codec.to_uper)(form, text.to_string().as_bytes())?;
    Ok(serde_json::from_slice(&(codec.to_json)(SCALED, &octets).unwrap()).unwrap())
}

/// Codes that mean "not available" for the types that have a unit.
const UNAVAILABLE: [f64; 13] = [
    900_000_001.0,
    1_800_000_001.0,
    800_001.0,
    4095.0,
    3601.0,
    16_383.0,
    127.0,
    1023.0,
    62.0,
    161.0,
    102.0,
    32_767.0,
    512.0,
];

/// Adds the differences between `ours` and `theirs` to `found`: paths, with both values.
fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let names = theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)));
            for name in names {
                let of = |object: &serde_json::Map<String, Value>| object.get(name).cloned().unwrap_or("absent".into());
                differences(&format!("{path}.{name}"), &of(theirs), &of(ours), found);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                differences(&format!("{path}[{at}]"), theirs, ours, found);
            }
        }
        (theirs, ours) if is_same(path, theirs, ours) => {}
        (theirs, ours) => found.push(format!("{path}: {theirs} became {ours}")),
    }
}

/// Returns `true` if both values stand for the same integer of the message.
fn is_same(path: &str, theirs: &Value, ours: &Value) -> bool {
    match (theirs.as_f64(), ours.as_f64()) {
        (Some(theirs), Some(ours)) => (theirs - ours).abs() <= half_step(path),
        (Some(theirs), None) => ours.is_null() && UNAVAILABLE.contains(&theirs),
        _ => theirs == ours,
    }
}

/// Returns half a step of the integer, for values whose precision in the examples is higher than in the message.
fn half_step(path: &str) -> f64 {
    const ROUNDING: f64 = 1e-12;
    let member = path.rsplit('.').next().unwrap_or_default();
    ROUNDING
        + match member {
            "latitude" | "longitude" => 0.5e-7,
            // The unit of angles and dimensions is 0.1, that of coordinates and velocities is 0.01.
            "value" => 0.05,
            _ => 0.0,
        }
}

/// Returns the differences of a message after a round trip, or the error that rejects it.
fn losses(
    codec: &Codec,
    header: Option<HeaderDefaults>,
    text: &Value,
    expected: impl Fn(&Value) -> Value,
) -> Vec<String> {
    let whole = match round_trip(codec, header, text) {
        Ok(whole) => whole,
        Err(error) => return vec![format!("{}: {error}", codec.name)],
    };
    let mut found = Vec::new();
    differences(codec.name, text, &expected(&whole), &mut found);
    found
}

/// Adds the member `shadowingApplies`, which is mandatory (TS 103 324, `SensorInformation`) and missing in vanetza-nap's CPM.
fn complete_cpm(codec: &Codec, fields: &mut Value) {
    let error = round_trip(codec, None, fields).unwrap_err().to_string();
    assert_eq!(error, "payload.cpmContainers[1].containerData[0].shadowingApplies: this member is missing");
    for sensor in fields["payload"]["cpmContainers"][1]["containerData"].as_array_mut().unwrap() {
        sensor["shadowingApplies"] = false.into();
    }
}

#[test]
fn input_of_vanetza_nap_round_trips() {
    let mut found = Vec::new();
    for codec in &CODECS {
        let Some(theirs) = example(&format!("in_{}.json", codec.name)) else { return };
        let body = codec.header.body;
        found.extend(losses(codec, Some(codec.header), &theirs, |whole| whole[body].clone()));
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn output_of_vanetza_nap_round_trips() {
    let mut found = Vec::new();
    for codec in &CODECS {
        let Some(mut theirs) = example(&format!("out_{}.json", codec.name)) else { return };
        if codec.name == "cpm" {
            complete_cpm(codec, &mut theirs["fields"]);
        }
        found.extend(losses(codec, None, &theirs["fields"], Value::clone));
    }
    assert_eq!(found, [""; 0]);
}
