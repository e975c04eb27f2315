//! The user properties of MQTT 5 with which a message of the native format describes itself.
//!
//! | property | value |
//! |---|---|
//! | `viaduct-type` | name of the type |
//! | `viaduct-encoding` | serialisation as in MCAP: `protobuf`, `ros1`, `cdr`, `json`, or empty |
//! | `viaduct-schema` | identifier of the schema, for example an MD5 sum of ROS 1, or else `sha256:` with 16 digits of the schema's hash |
//! | `viaduct-sequence` | `RUN.NUMBER`: a number that grows by one with each message of the topic, after the run of the sender in eight digits |
//! | `viaduct-codec` | codec of a compressed message, see [`super::compression`] |
//! | `viaduct-length` | length of such a message before it was compressed, in bytes |
//!
//! All numbers are decimal but hash and run, which are hexadecimal. With MQTT 3.1.1 there are no properties, and messages are not
//! compressed. The time of sending is in the hop metadata ([`super::hops`]).

use sha2::{Digest as _, Sha256};
use viaduct_bus::TypeInfo;
use viaduct_mqtt::Properties;

use super::answer::Refusal;
use super::compression::Codec;

const TYPE: &str = "viaduct-type";
const ENCODING: &str = "viaduct-encoding";
const SCHEMA: &str = "viaduct-schema";
const SEQUENCE: &str = "viaduct-sequence";
const CODEC: &str = "viaduct-codec";
const LENGTH: &str = "viaduct-length";
/// Octets of the hash of a schema.
const HASH_OCTETS: usize = 8;
/// Longest name of a codec in a log line.
const CODEC_CHARACTERS_MAX: usize = 32;

/// A user property.
pub(crate) type Property = (String, String);

/// Number of a message among those of its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Run of the sender.
    pub(super) run: u32,
    pub(super) number: u64,
}

impl Sequence {
    fn parse(text: &str) -> Option<Self> {
        let (run, number) = text.split_once('.')?;
        let is_run = run.len() == 8 && run.bytes().all(|octet| octet.is_ascii_hexdigit());
        let run = u32::from_str_radix(run, 16).ok().filter(|_| is_run)?;
        Some(Self { run, number: decimal(number)? })
    }
}

fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|octet| octet.is_ascii_digit()))
}

/// Returns the identifier of a type's schema, or `None` if it has none.
pub(super) fn schema_id(info: &TypeInfo) -> Option<String> {
    match (info.schema_id(), info.schema()) {
        ("", schema) if schema.is_empty() => None,
        ("", schema) => {
            let hash = Sha256::digest(schema);
            let digits = hash.iter().take(HASH_OCTETS).map(|octet| format!("{octet:02x}"));
            Some(digits.fold("sha256:".to_owned(), |text, digits| text + &digits))
        }
        (id, _) => Some(id.to_owned()),
    }
}

/// Returns the properties of a type, which are the same for all messages.
pub(super) fn of_type(info: &TypeInfo) -> Vec<Property> {
    let own = [
        (TYPE, Some(info.full_name().to_owned())),
        (ENCODING, Some(info.format().message_encoding().to_owned())),
        (SCHEMA, schema_id(info)),
    ];
    own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the property of a number.
pub(super) fn of_sequence(sequence: Sequence) -> Property {
    (SEQUENCE.to_owned(), format!("{:08x}.{}", sequence.run, sequence.number))
}

/// Returns the properties of a compressed message.
pub(super) fn of_codec(codec: Codec, length: usize) -> [Property; 2] {
    [(CODEC.to_owned(), codec.name().to_owned()), (LENGTH.to_owned(), length.to_string())]
}

/// The properties of a received message. A message without properties has none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Name of the type, and its serialisation.
    pub(super) type_name: Option<(String, String)>,
    pub(super) schema: Option<String>,
    pub(super) sequence: Option<Sequence>,
    /// Codec and original length.
    pub(super) compressed: Option<(Codec, usize)>,
}

impl Header {
    /// Reads the properties. Returns an error if one of them is malformed, or if the codec is unknown.
    pub(super) fn read(properties: &Properties) -> Result<Self, Refusal> {
        let value = |name| properties.get_user_property_value(name);
        let malformed = |name: &'static str| move || Refusal::MalformedProperty { name };
        let sequence = value(SEQUENCE).map(|text| Sequence::parse(text).ok_or_else(malformed(SEQUENCE))).transpose()?;
        let codec = value(CODEC).map(|name| {
            let unknown = || Refusal::UnknownCodec { name: name.chars().take(CODEC_CHARACTERS_MAX).collect() };
            Codec::from_name(name).ok_or_else(unknown)
        });
        let compressed = match codec.transpose()? {
            None => None,
            Some(codec) => {
                let length = value(LENGTH).and_then(decimal).and_then(|length| usize::try_from(length).ok());
                Some((codec, length.ok_or_else(malformed(LENGTH))?))
            }
        };
        let type_name = value(TYPE).zip(value(ENCODING)).map(|(name, encoding)| (name.to_owned(), encoding.to_owned()));
        Ok(Self { type_name, schema: value(SCHEMA).map(str::to_owned), sequence, compressed })
    }

    /// Returns `true` if the message can be of a type.
    pub(super) fn is_of(&self, info: &TypeInfo) -> bool {
        let is_type = |(name, encoding): &(String, String)| {
            name == info.full_name() && encoding == info.format().message_encoding()
        };
        let is_schema = |schema: &String| schema_id(info).is_none_or(|own| own == *schema);
        self.type_name.as_ref().is_none_or(is_type) && self.schema.as_ref().is_none_or(is_schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use viaduct_bus::MessageFormat;
    use viaduct_mqtt::{PropertyId, PropertyValue};

    fn properties(texts: &[(&str, &str)]) -> Properties {
        let mut properties = Properties::default();
        for (name, value) in texts {
            let pair = PropertyValue::Utf8StringPair((*name).to_owned(), (*value).to_owned());
            properties.add(PropertyId::UserProperty, pair).unwrap();
        }
        properties
    }

    #[test]
    fn properties_survive_writing_and_reading() {
        let info = TypeInfo::foreign(MessageFormat::Ros1, "std_msgs/String", Bytes::from_static(b"string data\n"));
        let sequence = Sequence { run: 0xAB, number: 12 };
        let written = [of_type(&info), vec![of_sequence(sequence)], of_codec(Codec::Planes, 1000).to_vec()].concat();
        let pairs: Vec<_> = written.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let header = Header::read(&properties(&pairs)).unwrap();
        assert_eq!((header.sequence, header.compressed), (Some(sequence), Some((Codec::Planes, 1000))));
        assert!(header.is_of(&info));
        let other = TypeInfo::foreign(MessageFormat::Ros1, "std_msgs/String", Bytes::from_static(b"string text\n"));
        let named = TypeInfo::foreign(MessageFormat::Ros1, "std_msgs/Bool", info.schema().clone());
        assert!(!header.is_of(&other) && !header.is_of(&named));
        // `printf 'string data\n' | sha256sum`
        assert_eq!(header.schema.as_deref(), Some("sha256:8d7bb56baf93c614"));
        assert_eq!(Header::read(&Properties::default()).unwrap(), Header::default());
    }

    #[test]
    fn malformed_properties_and_unknown_codecs_are_refused() {
        for (texts, expected) in [
            (&[("viaduct-codec", "lzma")][..], "unknown_codec"),
            (&[("viaduct-codec", "zstd")], "malformed_property"),
            (&[("viaduct-codec", "zstd"), ("viaduct-length", "-1")], "malformed_property"),
            (&[("viaduct-codec", "zstd"), ("viaduct-length", "99999999999999999999999")], "malformed_property"),
            (&[("viaduct-sequence", "1.2")], "malformed_property"),
            (&[("viaduct-sequence", "+0000001.2")], "malformed_property"),
            (&[("viaduct-sequence", "00000001.x")], "malformed_property"),
        ] {
            assert_eq!(Header::read(&properties(texts)).unwrap_err().label(), expected, "{texts:?}");
        }
    }
}
