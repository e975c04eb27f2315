//! A message from a person's JSON: its kind found, its header filled in, encoded.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use viaduct_its::facilities::{Message, MessageKind};

use crate::files::Refused;

/// A message that can be sent.
pub(super) struct OutgoingMessage {
    pub(super) message: Message,
    /// The message in UPER.
    pub(super) payload: Bytes,
}

impl OutgoingMessage {
    /// Reads a file, or stdin where the path is `-`. `kind` and `station_id` are for what the message leaves out.
    pub(super) fn read(path: &Path, kind: Option<MessageKind>, station_id: u32) -> Result<Self, Refused> {
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        let refused = |problem: String| Refused::argument(format!("{name}: {problem}"));
        let text = read_text(path).map_err(|cause| refused(format!("cannot be read: {cause}")))?;
        Self::parse(&text, kind, station_id).map_err(refused)
    }

    fn parse(text: &[u8], kind: Option<MessageKind>, station_id: u32) -> Result<Self, String> {
        let members: Members = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let (members, said) = members.unwrapped()?;
        let kind = kind.or(said).map_or_else(|| members.kind(), Ok)?;
        let message = Message::from_json(kind, &members.with_header(kind, station_id)?)
            .map_err(|error| format!("{} ({}): {error}", kind.label(), kind.edition()))?;
        let payload = message.encode().map_err(|error| error.to_string())?;
        Ok(Self { message, payload: Bytes::from(payload) })
    }

    pub(super) const fn kind(&self) -> MessageKind {
        self.message.kind()
    }
}

fn read_text(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}

/// The members of a message in their order, which its decoder may need; their values are not looked into.
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| &**value)
    }

    /// A line of `its decode --json-lines` has the message in its member `message`, and its type beside it.
    fn unwrapped(self) -> Result<(Self, Option<MessageKind>), String> {
        let (Some(message), Some(kind)) = (self.get("message"), self.get("type")) else { return Ok((self, None)) };
        let label: String = serde_json::from_str(kind.get()).map_err(|error| format!("type: {error}"))?;
        let kind = MessageKind::from_label(&label).ok_or_else(|| format!("type: there is no message `{label}`"))?;
        Ok((serde_json::from_str(message.get()).map_err(|error| format!("message: {error}"))?, Some(kind)))
    }

    /// Which message it is, by its header or by the name of its body.
    fn kind(&self) -> Result<MessageKind, String> {
        let header = self.header()?;
        let labels = MessageKind::ALL.map(MessageKind::label).join(", ");
        let Some(id) = header.get("messageId").or_else(|| header.get("messageID")) else {
            let named = |kind: &MessageKind| self.get(kind.label()).is_some();
            return MessageKind::ALL.into_iter().find(named).ok_or_else(|| {
                format!("it does not say which message it is; header.messageId does, or --type ({labels})")
            });
        };
        let found = MessageKind::ALL.into_iter().find(|kind| id.as_u64() == Some(kind.message_id().into()));
        found.ok_or_else(|| format!("header.messageId: {id} is none of the messages that are sent ({labels})"))
    }

    fn header(&self) -> Result<Map<String, Value>, String> {
        let header = self.get("header").map_or(Ok(Map::new()), |header| serde_json::from_str(header.get()));
        header.map_err(|error| format!("header: {error}"))
    }

    /// The message's JSON with a whole header.
    fn with_header(&self, kind: MessageKind, station_id: u32) -> Result<Vec<u8>, String> {
        let header = filled(self.header()?, kind, station_id);
        let mut text = format!("{{\"header\":{}", Value::Object(header));
        for (name, value) in self.0.iter().filter(|(name, _)| name != "header") {
            text += &format!(",{}:{}", Value::from(name.as_str()), value.get());
        }
        text.push('}');
        Ok(text.into_bytes())
    }
}

/// Adds what is left out, and gives both identifiers the spelling of release 2; release 1 writes ID at their end.
fn filled(mut header: Map<String, Value>, kind: MessageKind, station_id: u32) -> Map<String, Value> {
    for (release_1, release_2) in [("messageID", "messageId"), ("stationID", "stationId")] {
        if let Some(value) = header.remove(release_1) {
            header.entry(release_2).or_insert(value);
        }
    }
    header.entry("protocolVersion").or_insert_with(|| kind.protocol_version().into());
    header.entry("messageId").or_insert_with(|| kind.message_id().into());
    header.entry("stationId").or_insert_with(|| station_id.into());
    header
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message as an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Members {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_message_is_known_by_its_header_or_by_its_body() {
        assert_eq!(members(r#"{"header":{"messageID":2}}"#).kind(), Ok(MessageKind::Cam));
        assert_eq!(members(r#"{"header":{"messageId":14},"payload":{}}"#).kind(), Ok(MessageKind::Cpm));
        assert_eq!(members(r#"{"cam":{}}"#).kind(), Ok(MessageKind::Cam));
        assert!(members(r#"{"header":{"messageId":250}}"#).kind().unwrap_err().contains("header.messageId: 250"));
        assert!(members(r#"{"payload":{}}"#).kind().unwrap_err().contains("--type"));
        assert!(members(r#"{"header":7}"#).kind().unwrap_err().starts_with("header: "));
    }

    #[test]
    fn a_header_is_filled_in_and_keeps_what_it_has() {
        let header = |text: &str| {
            let text = members(text).with_header(MessageKind::Cpm, 77).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap()["header"].clone()
        };
        let whole = serde_json::json!({ "protocolVersion": 2, "messageId": 14, "stationId": 77 });
        assert_eq!(header("{}"), whole);
        let own = serde_json::json!({ "protocolVersion": 9, "messageId": 14, "stationId": 5, "more": 1 });
        assert_eq!(header(r#"{"header":{"stationID":5,"protocolVersion":9,"more":1}}"#), own);
    }

    #[test]
    fn members_stay_in_their_order() {
        let text = members(r#"{"payload":{"b":1,"a":2},"header":{}}"#).with_header(MessageKind::Cpm, 1).unwrap();
        assert!(String::from_utf8(text).unwrap().ends_with(r#","payload":{"b":1,"a":2}}"#));
    }
}
