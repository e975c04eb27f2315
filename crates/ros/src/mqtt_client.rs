//! The wire format of mqtt_client (ika-rwth-aachen/mqtt_client): messages of ROS on MQTT topics, with their type on another topic.
//!
//! ```text
//! TOPIC                            [ time ] message
//! mqtt_client/ros_msg_type/TOPIC   retained: MD5 sum, name, definition, `true` if each message begins with a time
//! ```
//!
//! ROS 1 (up to version 2.3.0) serialises both as ROS 1 does; the time has 8 octets. ROS 2 serialises both as CDR with the
//! encapsulation header, and leaves MD5 sum and definition empty; the time has 12 octets.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::limits::DEFINITION_OCTETS_MAX;
use crate::msg::Dialect;

/// Prefix of the topics with the type of another topic.
pub const TYPE_TOPIC_PREFIX: &str = "mqtt_client/ros_msg_type/";

/// The encapsulation header of CDR in little-endian order without options (OMG DDSI-RTPS 2.3, 10.2).
const CDR_LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];

/// The type of a topic's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMessage {
    /// The ROS version of the sender.
    pub dialect: Dialect,
    /// MD5 sum; empty from ROS 2.
    pub md5: String,
    /// Name: `std_msgs/String`, from ROS 2 `std_msgs/msg/String`.
    pub name: String,
    /// Definition with those of all types that it uses; empty from ROS 2.
    pub definition: String,
    /// `true` if each message begins with the time at which it was sent.
    pub stamped: bool,
}

/// A time before a message: seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds since 1970-01-01T00:00:00 UTC, without leap seconds.
    pub seconds: u32,
    /// Nanoseconds.
    pub nanoseconds: u32,
}

/// Octets are not a message in this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the octets are not a message of mqtt_client")]
pub struct Malformed;

impl TypeMessage {
    /// Parses the message of a type topic, of either ROS version. Octets of padding may follow.
    ///
    /// # Errors
    /// Returns an error if a field is cut, too long or not UTF-8.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        // A text of ROS 1 with this length would not fit the field of the MD5 sum.
        let dialect = if octets.starts_with(&CDR_LITTLE_ENDIAN) { Dialect::Ros2 } else { Dialect::Ros1 };
        let mut reader = Reader::new(dialect, octets);
        let (md5, name, definition) = (reader.text()?, reader.text()?, reader.text()?);
        let stamped = match reader.octet()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed),
        };
        Ok(Self { dialect, md5, name, definition, stamped })
    }

    /// Returns the message for the type topic.
    #[must_use]
    pub fn write(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64 + self.definition.len());
        if self.dialect == Dialect::Ros2 {
            out.put_slice(&CDR_LITTLE_ENDIAN);
        }
        for text in [&self.md5, &self.name, &self.definition] {
            self.write_text(text, &mut out);
        }
        out.put_u8(u8::from(self.stamped));
        out.freeze()
    }

    fn write_text(&self, text: &str, out: &mut BytesMut) {
        let is_cdr = self.dialect == Dialect::Ros2;
        if is_cdr {
            out.put_bytes(0, out.len().wrapping_neg() % 4);
        }
        out.put_u32_le((text.len() + usize::from(is_cdr)) as u32);
        out.put_slice(text.as_bytes());
        if is_cdr {
            out.put_u8(0);
        }
    }

    /// Divides the payload of a topic into the time, if the type has one, and the message.
    ///
    /// # Errors
    /// Returns an error if the payload is shorter than a time.
    pub fn split(&self, payload: &Bytes) -> Result<(Option<Stamp>, Bytes), Malformed> {
        if !self.stamped {
            return Ok((None, payload.clone()));
        }
        let mut rest = payload.clone();
        if self.dialect == Dialect::Ros2 {
            if !rest.starts_with(&CDR_LITTLE_ENDIAN) {
                return Err(Malformed);
            }
            rest.advance(CDR_LITTLE_ENDIAN.len());
        }
        let seconds = rest.try_get_u32_le().map_err(|_| Malformed)?;
        let nanoseconds = rest.try_get_u32_le().map_err(|_| Malformed)?;
        Ok((Some(Stamp { seconds, nanoseconds }), rest))
    }
}

impl Stamp {
    /// Returns the octets before a message.
    #[must_use]
    pub fn write(self, dialect: Dialect) -> Bytes {
        let mut out = BytesMut::with_capacity(12);
        if dialect == Dialect::Ros2 {
            out.put_slice(&CDR_LITTLE_ENDIAN);
        }
        out.put_u32_le(self.seconds);
        out.put_u32_le(self.nanoseconds);
        out.freeze()
    }
}

/// Reads the fields of a type message.
struct Reader<'a> {
    dialect: Dialect,
    octets: &'a [u8],
    /// Octets read, those of the encapsulation header included.
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(dialect: Dialect, octets: &'a [u8]) -> Self {
        let at = if dialect == Dialect::Ros2 { CDR_LITTLE_ENDIAN.len() } else { 0 };
        Self { dialect, octets, at }
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let is_cdr = self.dialect == Dialect::Ros2;
        if is_cdr {
            // The header has four octets, so the alignment is that of the whole.
            self.take(self.at.wrapping_neg() % 4)?;
        }
        let length = self.take(4)?.first_chunk().map(|length| u32::from_le_bytes(*length)).ok_or(Malformed)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= DEFINITION_OCTETS_MAX + 1);
        let text = self.take(length.ok_or(Malformed)?)?;
        let text = match (is_cdr, text) {
            (true, [text @ .., 0]) | (false, text) => text,
            (true, _) => return Err(Malformed),
        };
        String::from_utf8(text.to_vec()).map_err(|_| Malformed)
    }

    fn octet(&mut self) -> Result<u8, Malformed> {
        self.take(1)?.first().copied().ok_or(Malformed)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let taken = self.octets.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(taken)
    }
}
