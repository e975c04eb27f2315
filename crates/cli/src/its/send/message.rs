//! Reads a message to send from JSON.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_its::SendRequest;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_units::{StationId, Tai};
use viaduct_v2x_json::dialect::Dialect;

use crate::files::Refused;

/// Largest difference between the time of a message and the time at which it is sent without a note.
const AGE_MAX: Duration = Duration::from_secs(2);

/// Options for reading a JSON text.
#[derive(Clone, Copy)]
pub(super) struct ReadOptions {
    pub(super) dialect: Dialect,
    /// Type of the message, or `None` if the text determines it.
    pub(super) kind: Option<MessageKind>,
    /// Station ID of the message if the text has no header, or station ID 0.
    pub(super) station_id: StationId,
}

/// A decoded message and the request to send it.
pub(super) struct OutgoingMessage {
    pub(super) message: Message,
    /// The request of the text. Without `lifetime_s`, the lifetime is that of a message without repetition, because the command
    /// itself repeats the message as separate packets.
    pub(super) request: SendRequest,
}

/// The member of an envelope that sets the lifetime of the packet.
#[derive(Deserialize)]
struct LifetimeMember {
    lifetime_s: Option<serde::de::IgnoredAny>,
}

impl OutgoingMessage {
    /// Reads a file, or stdin if the path is `-`.
    pub(super) fn read(path: &Path, options: ReadOptions) -> Result<Self, Refused> {
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        let refused = |problem: String| Refused::argument(format!("{name}: {problem}"));
        let text = read_text(path).map_err(|cause| refused(format!("cannot be read: {cause}")))?;
        Self::parse(&text, options).map_err(refused)
    }

    /// Returns a note if the generation time of the message differs from now by more than [`AGE_MAX`], or `None` otherwise.
    pub(super) fn old_time_note(&self, now: Tai) -> Option<String> {
        // Other kinds have no generation time, or one that `set_generation` does not set.
        if !self.message.clone().set_generation(now) {
            return None;
        }
        let offset = match self.message.summary(now).generation {
            Some(time) => time.since(now).max(now.since(time)),
            // The time of a CPM is far away.
            None => Duration::MAX,
        };
        (offset > AGE_MAX).then(|| {
            let kind = self.request.kind.label();
            format!(
                "viaduct: the time of the {kind} differs from now by more than {} s, and a receiver may drop it; \
                 --refresh-time sets it to now",
                AGE_MAX.as_secs()
            )
        })
    }

    /// Returns the message in UPER with this generation time. A message without a generation time is not changed.
    pub(super) fn payload_at(&self, time: Tai) -> anyhow::Result<Vec<u8>> {
        let mut message = self.message.clone();
        message.set_generation(time);
        Ok(message.encode()?)
    }

    fn parse(text: &[u8], options: ReadOptions) -> Result<Self, String> {
        let request = options.dialect.read_request(options.kind, text).map_err(|error| describe(&error))?;
        let mut request = request.from_station(options.station_id);
        let envelope = serde_json::from_slice::<LifetimeMember>(text);
        if !envelope.is_ok_and(|envelope| envelope.lifetime_s.is_some()) {
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

/// Describes an error. A missing message type also names the argument that sets the type.
fn describe(error: &JsonError) -> String {
    if error.problem == JsonProblem::Missing && error.path.ends_with("header.messageId") {
        let labels = MessageKind::ALL.map(MessageKind::label).join(", ");
        return format!("the type of the message is missing; set {} or --type ({labels})", error.path);
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: ReadOptions = ReadOptions { dialect: Dialect::Viaduct, kind: None, station_id: StationId(77) };

    fn problem(text: &str) -> String {
        OutgoingMessage::parse(text.as_bytes(), OPTIONS).err().unwrap()
    }

    #[test]
    fn a_missing_type_names_the_member_and_the_argument() {
        assert!(problem("{}").contains("set header.messageId or --type (cam, denm, "));
        assert!(problem(r#"{"message":{}}"#).contains("set message.header.messageId or --type"));
        assert!(problem(r#"{"header":{"messageId":2}}"#).starts_with("cam: "));
    }
}
