//! A message from a person's JSON, as it is to be sent.

use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_its::SendRequest;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_units::StationId;
use viaduct_v2x_json::dialect::Dialect;

use crate::files::Refused;

/// How a text is read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) dialect: Dialect,
    /// Which message it is, where the text does not say.
    pub(super) kind: Option<MessageKind>,
    /// Station ID of a message that does not say its own.
    pub(super) station_id: StationId,
}

/// A message that can be sent.
pub(super) struct OutgoingMessage {
    pub(super) message: Message,
    /// What the text asks for. The command repeats it itself: where the text does not say how long a packet lives, it lives as long
    /// as one that is not repeated.
    pub(super) request: SendRequest,
}

/// The part of an envelope that says how long a packet lives.
#[derive(Deserialize)]
struct Lifetime {
    lifetime_s: Option<serde::de::IgnoredAny>,
}

impl OutgoingMessage {
    /// Reads a file, or stdin where the path is `-`.
    pub(super) fn read(path: &Path, reading: Reading) -> Result<Self, Refused> {
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        let refused = |problem: String| Refused::argument(format!("{name}: {problem}"));
        let text = read_text(path).map_err(|cause| refused(format!("cannot be read: {cause}")))?;
        Self::parse(&text, reading).map_err(refused)
    }

    fn parse(text: &[u8], reading: Reading) -> Result<Self, String> {
        let request = reading.dialect.read_request(reading.kind, text).map_err(|error| explained(&error))?;
        let mut request = request.from_station(reading.station_id);
        let says_lifetime = serde_json::from_slice::<Lifetime>(text).is_ok_and(|said| said.lifetime_s.is_some());
        if !says_lifetime {
            request.lifetime = request.kind.lifetime();
        }
        let message = Message::decode(request.kind, &request.payload).map_err(|error| error.to_string())?;
        Ok(Self { message, request })
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

/// What is wrong, with what the command line could say instead.
fn explained(error: &JsonError) -> String {
    if error.problem == JsonProblem::Missing && error.path.ends_with("header.messageId") {
        let labels = MessageKind::ALL.map(MessageKind::label).join(", ");
        return format!("it does not say which message it is; {} does, or --type ({labels})", error.path);
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Reading = Reading { dialect: Dialect::Viaduct, kind: None, station_id: StationId(77) };

    fn problem(text: &str) -> String {
        OutgoingMessage::parse(text.as_bytes(), READING).err().unwrap()
    }

    #[test]
    fn what_the_command_line_could_say_is_named() {
        assert!(problem("{}").contains("header.messageId does, or --type (cam, denm, "));
        assert!(problem(r#"{"message":{}}"#).contains("message.header.messageId does, or --type"));
        assert!(problem(r#"{"header":{"messageId":2}}"#).starts_with("cam: "));
    }
}
