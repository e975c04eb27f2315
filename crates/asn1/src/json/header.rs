//! Completes a text without a header, or with parts of it.

use std::borrow::Cow;

use super::{
    style::HeaderDefaults,
    tree::{Members, Node},
};
use crate::error::{JsonError, JsonProblem};

const HEADER: &str = "header";
const PROTOCOL_VERSION: &str = "protocolVersion";
const MESSAGE_ID: &str = "messageId";
const STATION_ID: &str = "stationId";

/// Returns the other spelling of a member of the header: `messageID` in release 1, `messageId` in release 2.
pub(super) fn other_spelling(name: &str) -> Option<&'static str> {
    match name {
        "messageID" => Some(MESSAGE_ID),
        "messageId" => Some("messageID"),
        "stationID" => Some(STATION_ID),
        "stationId" => Some("stationID"),
        _ => None,
    }
}

/// A completed message.
pub(super) struct Completed<'a> {
    pub(super) root: Node<'a>,
    /// `true` if the text was the body alone.
    pub(super) bare: bool,
}

/// Adds the missing members of the header. A text that is the body alone may contain `stationId` in addition.
pub(super) fn complete<'a>(root: Node<'a>, defaults: &HeaderDefaults) -> Result<Completed<'a>, JsonError> {
    let Node::Object(mut members) = root else {
        return Ok(Completed { root, bare: false });
    };
    let header = members.take(HEADER);
    if let Some(body) = members.take(defaults.body) {
        members.put(HEADER, complete_header(header, None, defaults)?);
        members.put(defaults.body, body);
        return Ok(Completed { root: Node::Object(members), bare: false });
    }
    if header.is_some() {
        return Err(JsonError { path: defaults.body.to_owned(), problem: JsonProblem::Missing });
    }
    let station = take_either(&mut members, STATION_ID);
    let mut whole = Members::default();
    whole.put(HEADER, complete_header(None, station, defaults)?);
    whole.put(defaults.body, Node::Object(members));
    Ok(Completed { root: Node::Object(whole), bare: true })
}

fn complete_header<'a>(
    given: Option<Node<'a>>,
    station: Option<Node<'a>>,
    defaults: &HeaderDefaults,
) -> Result<Node<'a>, JsonError> {
    let mut header = match given {
        None => Members::default(),
        Some(Node::Object(members)) => members,
        Some(other) => return Err(mismatch(HEADER.to_owned(), "an object".to_owned(), &other)),
    };
    fix(&mut header, PROTOCOL_VERSION, defaults.protocol_version)?;
    fix(&mut header, MESSAGE_ID, defaults.message_id)?;
    let station = take_either(&mut header, STATION_ID).or(station);
    header.put(STATION_ID, station.unwrap_or_else(|| Node::Integer(defaults.station_id.into())));
    Ok(Node::Object(header))
}

/// Sets the member to its value. Another value in the text is an error.
fn fix(header: &mut Members<'_>, name: &'static str, value: u8) -> Result<(), JsonError> {
    match take_either(header, name) {
        None => {}
        Some(Node::Integer(given)) if given == i64::from(value) => {}
        Some(other) => return Err(mismatch(format!("{HEADER}.{name}"), value.to_string(), &other)),
    }
    header.put(name, Node::Integer(value.into()));
    Ok(())
}

fn take_either<'a>(members: &mut Members<'a>, name: &str) -> Option<Node<'a>> {
    members.take(name).or_else(|| members.take(other_spelling(name)?))
}

fn mismatch(path: String, expected: String, got: &Node<'_>) -> JsonError {
    JsonError { path, problem: JsonProblem::Mismatch { expected, got: got.excerpt() } }
}

impl<'a> Members<'a> {
    /// Adds a member that is absent or was taken.
    fn put(&mut self, name: &'static str, node: Node<'a>) {
        match self.entries.iter_mut().find(|(known, _)| known == name) {
            Some((_, taken)) => *taken = Some(node),
            None => self.entries.push((Cow::Borrowed(name), Some(node))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::parse;
    use super::*;

    const DEFAULTS: HeaderDefaults = HeaderDefaults { protocol_version: 2, message_id: 1, station_id: 0, body: "denm" };

    /// Returns `true` if the text was the body alone, and the station ID in the header.
    fn completed(text: &str) -> Result<(bool, i64), String> {
        let done = complete(parse(text.as_bytes()).unwrap(), &DEFAULTS).map_err(|error| error.to_string())?;
        let Node::Object(mut whole) = done.root else { panic!() };
        assert!(whole.take("denm").is_some());
        let Some(Node::Object(mut header)) = whole.take("header") else { panic!() };
        let Some(Node::Integer(station)) = header.take("stationId") else { panic!() };
        assert!(matches!(header.take("messageId"), Some(Node::Integer(1))));
        Ok((done.bare, station))
    }

    #[test]
    fn missing_members_are_added() {
        assert_eq!(completed(r#"{"management":{}}"#), Ok((true, 0)));
        assert_eq!(completed(r#"{"management":{},"stationID":9}"#), Ok((true, 9)));
        assert_eq!(completed(r#"{"denm":{}}"#), Ok((false, 0)));
        assert_eq!(completed(r#"{"denm":{},"header":{"messageID":1,"stationID":7}}"#), Ok((false, 7)));
    }

    #[test]
    fn a_header_of_another_message_is_refused() {
        for (text, expected) in [
            (r#"{"denm":{},"header":{"messageID":2}}"#, "header.messageId: expected 1, got 2"),
            (r#"{"denm":{},"header":{"protocolVersion":1}}"#, "header.protocolVersion: expected 2, got 1"),
            (r#"{"denm":{},"header":[]}"#, "header: expected an object, got an array of 0"),
            (r#"{"header":{}}"#, "denm: this member is missing"),
        ] {
            assert_eq!(completed(text), Err(expected.to_owned()));
        }
    }
}
