//! Two dialects of JSON in which applications write send requests and read received messages.
//!
//! | dialect | message | envelope of a send request |
//! |---|---|---|
//! | [`Dialect::Viaduct`] | ASN.1 names, raw integers ([`viaduct_etsi`]) | see [`own`] |
//! | [`Dialect::VanetzaNap`] | scaled units ([`viaduct_etsi::SCALED`]) | see [`vanetza_nap`] |
//!
//! In both dialects a text may be the message, the message without its header, or only its body. The type of the
//! message is taken from the topic, else from the header, else from the name of the body. An invalid text results in
//! a [`JsonError`] with the path in that text.

mod new_info;
pub mod own;
pub mod vanetza_nap;

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use viaduct_etsi::{HeaderDefaults, JsonError, JsonForm, JsonProblem, JsonStyle, SCALED, limits::JSON_OCTETS_MAX};

pub use new_info::NewInfo;

use viaduct_its::{
    SendRequest,
    facilities::{Message, MessageKind},
};

use crate::shortened;

/// A dialect of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The dialect of this project.
    #[default]
    Viaduct,
    /// The dialect of vanetza-nap.
    VanetzaNap,
}

impl Dialect {
    /// Returns the style of the values.
    #[must_use]
    pub const fn style(self) -> JsonStyle {
        match self {
            Self::Viaduct => JsonStyle::Raw,
            Self::VanetzaNap => SCALED,
        }
    }

    /// Reads a send request. `hint` is the type of the message if the topic or the settings define it.
    ///
    /// # Errors
    /// Returns the first error in the text, with its path.
    pub fn read_request(self, hint: Option<MessageKind>, text: &[u8]) -> Result<SendRequest, JsonError> {
        if text.len() > JSON_OCTETS_MAX {
            let problem = format!("the text has {} bytes, the limit is {JSON_OCTETS_MAX}", text.len());
            return Err(syntax(problem));
        }
        // Serde would read the values of an array as the members in their order.
        if text.trim_ascii_start().first() == Some(&b'[') {
            return Err(mismatch("", "an object", "an array"));
        }
        match self {
            Self::Viaduct => own::read_request(hint, text),
            Self::VanetzaNap => vanetza_nap::read_request(hint, text),
        }
    }
}

/// Returns the values of header members that are missing in the text.
const fn header_defaults(kind: MessageKind) -> HeaderDefaults {
    let (protocol_version, message_id) = (kind.protocol_version(), kind.message_id());
    HeaderDefaults { protocol_version, message_id, station_id: 0, body: kind.body() }
}

/// Reads a message, the header of which may be missing, and encodes it. The station replaces a station ID of 0 by its
/// own.
fn payload_of(kind: MessageKind, style: JsonStyle, text: &[u8]) -> Result<Vec<u8>, JsonError> {
    let form = JsonForm { style, header: Some(header_defaults(kind)) };
    let message = Message::from_json_in(kind, form, text)?;
    message.encode().map_err(|cause| syntax(cause.to_string()))
}

/// Returns `hint`, else the type in the message's header, else the type whose body has the name of a member.
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

/// Members that distinguish the forms of a text.
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

/// Reads a text with serde. An error contains the path.
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

fn syntax(problem: String) -> JsonError {
    JsonError { path: String::new(), problem: JsonProblem::Syntax(problem) }
}

pub(crate) fn mismatch(path: &str, expected: impl Into<String>, got: impl Into<String>) -> JsonError {
    JsonError { path: path.to_owned(), problem: JsonProblem::Mismatch { expected: expected.into(), got: got.into() } }
}
