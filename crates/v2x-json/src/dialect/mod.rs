//! How applications write messages that they want sent, and read those that were received: two dialects of JSON.
//!
//! | dialect | a message | around it, towards a station |
//! |---|---|---|
//! | [`Dialect::Viaduct`] | ASN.1 names, raw integers ([`viaduct_etsi`]) | nothing, or `type`, `destination`, ..., or what it gives ([`own`]) |
//! | [`Dialect::VanetzaNap`] | scaled units ([`viaduct_etsi::JsonStyle::Scaled`]) | nothing, or what it gives ([`vanetza_nap`]) |
//!
//! In both a text may be the message, the message without its header, or its body alone. Which message it is, the topic says,
//! or else its header or the name of its body. What is wrong with a text is a [`JsonError`] with the path in that text.

mod new_info;
pub mod own;
pub mod vanetza_nap;

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use viaduct_etsi::{HeaderDefaults, JsonError, JsonForm, JsonProblem, JsonStyle, limits::JSON_OCTETS_MAX};

pub use new_info::NewInfo;

use viaduct_its::{
    SendRequest,
    facilities::{Message, MessageKind},
};

/// A dialect of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Our own.
    #[default]
    Viaduct,
    /// That of vanetza-nap.
    VanetzaNap,
}

impl Dialect {
    /// How it shows values.
    #[must_use]
    pub const fn style(self) -> JsonStyle {
        match self {
            Self::Viaduct => JsonStyle::Raw,
            Self::VanetzaNap => JsonStyle::Scaled,
        }
    }

    /// Reads what an application wants sent. `hint` is the kind of message where the topic or the settings say it.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn read_request(self, hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
        if text.len() > JSON_OCTETS_MAX {
            let problem = format!("the text has {} octets, at most {JSON_OCTETS_MAX} are read", text.len());
            return Err(syntax(problem));
        }
        // Serde would take the values of an array for the members in their order.
        if text.trim_ascii_start().first() == Some(&b'[') {
            return Err(mismatch("", "an object", "an array"));
        }
        match self {
            Self::Viaduct => own::read_request(hint, text),
            Self::VanetzaNap => vanetza_nap::read_request(hint, text),
        }
    }
}

/// What the header of a message says where its text does not.
const fn header_defaults(kind: MessageKind) -> HeaderDefaults {
    let (protocol_version, message_id) = (kind.protocol_version(), kind.message_id());
    HeaderDefaults { protocol_version, message_id, station_id: 0, body: kind.body() }
}

/// Reads a message whose header may be missing, and encodes it; a station ID of 0 is for the station to fill in.
fn payload_of(kind: MessageKind, style: JsonStyle, text: &[u8]) -> Result<Vec<u8>, JsonError> {
    let form = JsonForm { style, header: Some(header_defaults(kind)) };
    let message = Message::from_json_in(kind, form, text)?;
    message.encode().map_err(|cause| syntax(cause.to_string()))
}

/// The kind that the topic says, or else the message's own header, or else the name of its body.
fn kind_of(hint: Option<MessageKind>, message: &[u8]) -> Result<MessageKind, JsonError> {
    if let Some(kind) = hint {
        return Ok(kind);
    }
    let outline: Outline<'_> = parse(message)?;
    let id = outline.header.and_then(|header| serde_json::from_str::<HeaderOutline>(header.get()).ok()?.message_id);
    let Some(id) = id else {
        return kind_by_body(message);
    };
    MessageKind::ALL.into_iter().find(|kind| u64::from(kind.message_id()) == id).ok_or_else(|| {
        let known: Vec<String> = MessageKind::ALL.iter().map(|kind| kind.message_id().to_string()).collect();
        mismatch("header.messageId", format!("one of {}", known.join(", ")), id.to_string())
    })
}

fn kind_by_body(message: &[u8]) -> Result<MessageKind, JsonError> {
    let members: BTreeMap<String, IgnoredAny> = parse(message)?;
    let found = MessageKind::ALL.into_iter().find(|kind| members.contains_key(kind.body()));
    found.ok_or_else(|| JsonError { path: "header.messageId".to_owned(), problem: JsonProblem::Missing })
}

/// The members by which the forms of a text are told apart.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default)]
    header: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    fields: Option<&'a RawValue>,
    #[serde(borrow, default)]
    direction: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct HeaderOutline {
    #[serde(rename = "messageId", alias = "messageID", default)]
    message_id: Option<u64>,
}

/// Reads a text with serde; an error says where.
fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|cause| {
        let path = cause.path().to_string();
        let path = if matches!(&*path, "." | "?") { String::new() } else { path };
        JsonError { path, problem: JsonProblem::Syntax(shortened(&cause.into_inner().to_string())) }
    })?;
    deserializer.end().map_err(|cause| syntax(cause.to_string()))?;
    Ok(value)
}

/// Cut so that no input can make an answer long.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 240;
    text.chars().take(CHARACTERS_MAX).collect()
}

fn syntax(problem: String) -> JsonError {
    JsonError { path: String::new(), problem: JsonProblem::Syntax(problem) }
}

fn mismatch(path: &str, expected: impl Into<String>, got: impl Into<String>) -> JsonError {
    JsonError { path: path.to_owned(), problem: JsonProblem::Mismatch { expected: expected.into(), got: got.into() } }
}
