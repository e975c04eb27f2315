//! Decentralized environmental notification message, ETSI TS 103 831 V2.3.1 (release 2), on the data dictionary
//! TS 102 894-2 V2.4.1.
//!
//! BTP port 2002, message id 1, protocol version 2.
//!
//! A DENM of release 1 (EN 302 637-3 V1.3.1) has the same octets for the same content, so these functions also read
//! and write it; only names differ. Release 2 added groups of extension additions, which a release 1 decoder skips.
//! The members of a group are in a type of their own; in the JSON form they are beside the other members.

pub mod types;

pub use types::Denm;

use crate::{JsonError, JsonForm, JsonStyle, UperError, json, uper};

/// Name and version of the standard.
pub const EDITION: &str = "TS 103 831 V2.3.1";
/// `messageId` of a DENM.
pub const MESSAGE_ID: u8 = 1;
/// `protocolVersion` of this edition.
pub const PROTOCOL_VERSION: u8 = 2;

/// Name of the member that is the body of the message.
pub const BODY: &str = "denm";

const MESSAGE: &str = "DENM (TS 103 831 V2.3.1)";

/// Decodes a DENM from UPER.
///
/// Extension additions of later editions are skipped, and a group of additions without members is decoded as absent.
/// Forward the received octets, not a re-encoding.
///
/// # Errors
/// Returns an error if the octets are not one DENM, or if whole octets follow it.
pub fn decode(octets: &[u8]) -> Result<Denm, UperError> {
    let mut denm: Denm = uper::decode(MESSAGE, octets)?;
    drop_empty_groups(&mut denm.denm);
    Ok(denm)
}

/// Returns the element and the bit at which the octets stop being a DENM, or `None` if they are one. It takes about 14 times
/// as long as [`decode`].
#[must_use]
pub fn explain(octets: &[u8]) -> Option<UperError> {
    uper::explain::<Denm>(MESSAGE, octets)
}

/// Removes groups without members: the encoder does not write them (X.691, 19.9).
fn drop_empty_groups(payload: &mut types::DenmPayload) {
    if let Some(situation) = &mut payload.situation {
        situation.additions1.take_if(|group| *group == types::SituationAdditions1::default());
        situation.additions2.take_if(|group| *group == types::SituationAdditions2::default());
    }
    if let Some(location) = &mut payload.location {
        location.additions.take_if(|group| *group == types::LocationAdditions::default());
    }
    if let Some(alacarte) = &mut payload.alacarte {
        alacarte.additions.take_if(|group| *group == types::AlacarteAdditions::default());
    }
}

/// Encodes a DENM in UPER.
///
/// # Errors
/// Returns an error if a value is outside its range.
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
/// Returns the first error in the text, with its path.
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
/// Returns the first error in the text, with its path.
pub fn from_json_in(form: JsonForm, text: &[u8]) -> Result<Denm, JsonError> {
    json::read_in(form, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_members_equals_an_absent_group() {
        let text = std::include_bytes!("../../../../testdata/its/denm_full.json");
        let full = from_json(text).unwrap();
        let mut empty = full.clone();
        let situation = empty.denm.situation.as_mut().unwrap();
        assert!(situation.additions1.is_some());
        situation.additions1 = Some(types::SituationAdditions1::default());
        let decoded = decode(&encode(&empty).unwrap()).unwrap();
        assert_eq!(decoded.denm.situation.as_ref().unwrap().additions1, None);
        assert_eq!(decoded.denm.location, full.denm.location);
        drop_empty_groups(&mut empty.denm);
        assert_eq!(decoded, empty);
    }
}
