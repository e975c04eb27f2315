//! The handshake of a subscriber and a publisher.
//!
//! The subscriber sends its name, the topic, and the type and MD5 sum that it expects. The publisher answers with those that it
//! has and with the full definition, or with an error. A subscriber that does not know the type sends `*` for both.

use super::Header;
use crate::msg::{Dialect, Schema, SchemaError, TypeName};

/// Longest reason of the other end that is kept, in characters.
const REASON_CHARACTERS_MAX: usize = 200;
/// Type and MD5 sum that stand for any.
pub const ANY: &str = "*";

/// The connection header of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name of the subscriber's node.
    pub caller: String,
    /// Topic.
    pub topic: String,
    /// Type that the subscriber expects, or `None` for any.
    pub type_name: Option<TypeName>,
    /// MD5 sum that it expects, or `None` for any.
    pub md5: Option<String>,
    /// `true` if the publisher is asked to send small messages at once (`TCP_NODELAY`).
    pub no_delay: bool,
}

/// The connection header of a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Name of the publisher's node.
    pub caller: String,
    /// Type of the messages.
    pub type_name: TypeName,
    /// MD5 sum of the type.
    pub md5: String,
    /// Full definition of the type.
    pub definition: String,
    /// `true` if a new subscriber gets the latest message.
    pub latching: bool,
}

/// The reason why two ends do not connect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// A required field is absent or wrong.
    #[error("the connection header has no valid field `{0}`")]
    Field(&'static str),
    /// The other end has refused the connection.
    #[error("the other end refuses: {0}")]
    Refused(String),
    /// The subscriber wants another topic.
    #[error("topic `{wanted}` is not published here, but `{offered}`")]
    Topic {
        /// Topic that the subscriber wants.
        wanted: String,
        /// Topic of the publisher.
        offered: String,
    },
    /// The subscriber expects another type.
    #[error(
        "the subscriber expects the type {wanted} with the sum {wanted_md5}, and the publisher has {offered} with {offered_md5}"
    )]
    Type {
        /// Type that the subscriber expects.
        wanted: String,
        /// Its MD5 sum.
        wanted_md5: String,
        /// Type of the publisher.
        offered: String,
        /// Its MD5 sum.
        offered_md5: String,
    },
}

impl Request {
    /// Reads the header of a subscriber.
    ///
    /// # Errors
    /// A required field is absent or wrong.
    pub fn read(header: &Header) -> Result<Self, HandshakeError> {
        Ok(Self {
            caller: required(header, "callerid")?.to_owned(),
            topic: required(header, "topic")?.to_owned(),
            type_name: match required(header, "type")? {
                ANY => None,
                name => Some(TypeName::parse(name).ok_or(HandshakeError::Field("type"))?),
            },
            md5: Some(required(header, "md5sum")?).filter(|md5| *md5 != ANY).map(str::to_owned),
            no_delay: header.get("tcp_nodelay") == Some("1"),
        })
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> Header {
        let type_name = self.type_name.as_ref().map_or_else(|| ANY.to_owned(), TypeName::to_string);
        Header::default()
            .with("callerid", &self.caller)
            .with("topic", &self.topic)
            .with("type", &type_name)
            .with("md5sum", self.md5.as_deref().unwrap_or(ANY))
            .with("tcp_nodelay", if self.no_delay { "1" } else { "0" })
    }

    /// Checks whether a publisher of the topic has what the subscriber expects. The publisher sends an error to the subscriber as
    /// [`Header::refusal`].
    ///
    /// # Errors
    /// The topic, the type or the sum differs.
    pub fn check(&self, topic: &str, offer: &Offer) -> Result<(), HandshakeError> {
        if self.topic != topic {
            return Err(HandshakeError::Topic { wanted: self.topic.clone(), offered: topic.to_owned() });
        }
        let has_type = self.type_name.as_ref().is_none_or(|wanted| *wanted == offer.type_name);
        // A publisher that relays messages of a type that it does not know has no sum either.
        let has_md5 = self.md5.as_ref().is_none_or(|wanted| *wanted == offer.md5 || offer.md5 == ANY);
        if has_type && has_md5 {
            return Ok(());
        }
        Err(HandshakeError::Type {
            wanted: self.type_name.as_ref().map_or_else(|| ANY.to_owned(), TypeName::to_string),
            wanted_md5: self.md5.clone().unwrap_or_else(|| ANY.to_owned()),
            offered: offer.type_name.to_string(),
            offered_md5: offer.md5.clone(),
        })
    }
}

impl Offer {
    /// Reads the header of a publisher.
    ///
    /// # Errors
    /// The publisher refuses the connection, or a required field is absent or wrong.
    pub fn read(header: &Header) -> Result<Self, HandshakeError> {
        if let Some(error) = header.get("error") {
            return Err(HandshakeError::Refused(error.chars().take(REASON_CHARACTERS_MAX).collect()));
        }
        Ok(Self {
            // Some publishers send no name.
            caller: header.get("callerid").unwrap_or("").to_owned(),
            type_name: TypeName::parse(required(header, "type")?).ok_or(HandshakeError::Field("type"))?,
            md5: required(header, "md5sum")?.to_owned(),
            definition: header.get("message_definition").unwrap_or("").to_owned(),
            latching: header.get("latching") == Some("1"),
        })
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> Header {
        Header::default()
            .with("callerid", &self.caller)
            .with("type", &self.type_name.to_string())
            .with("md5sum", &self.md5)
            .with("message_definition", &self.definition)
            .with("latching", if self.latching { "1" } else { "0" })
    }

    /// Returns the types of the full definition.
    ///
    /// # Errors
    /// The first mistake of the definition.
    pub fn schema(&self) -> Result<Schema, SchemaError> {
        Schema::parse(Dialect::Ros1, &self.type_name.to_string(), &self.definition)
    }
}

fn required<'a>(header: &'a Header, key: &'static str) -> Result<&'a str, HandshakeError> {
    header.get(key).filter(|value| !value.is_empty()).ok_or(HandshakeError::Field(key))
}
