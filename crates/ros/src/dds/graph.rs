//! The nodes of a participant, as they are published on the topic `ros_discovery_info`.
//!
//! One participant carries several nodes of ROS 2, and DDS does not know them. Each participant publishes
//! `rmw_dds_common/msg/ParticipantEntitiesInfo`: its identifier, and for each node its name and the identifiers of its readers and
//! writers. An identifier (Gid) is a GUID of 16 octets. It has 24 octets up to Humble and 16 from Iron on.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Topic of the message in DDS.
pub const PARTICIPANT_ENTITIES_TOPIC: &str = "ros_discovery_info";
/// Type of the message in DDS.
pub const PARTICIPANT_ENTITIES_TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

/// Longest namespace and name of a node: `string<=256` of the definition.
const TEXT_OCTETS_MAX: usize = 256;
/// Octets of padding that may follow a message of DDS.
const PADDING_MAX: usize = 3;
/// The encapsulation header of CDR in little-endian order.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// The identifier of a participant, a reader or a writer in DDS.
pub type Guid = [u8; 16];

/// The length of identifiers in the message. The DDS type has the same name with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidForm {
    /// 24 octets, the last eight of them zero: up to Humble.
    Humble,
    /// 16 octets: from Iron on.
    Iron,
}

/// The nodes of one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantEntities {
    /// The participant.
    pub participant: Guid,
    /// Its nodes.
    pub nodes: Vec<NodeEntities>,
}

/// One node with its readers and writers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntities {
    /// Namespace: `/` or `/car`.
    pub namespace: String,
    /// Name without the namespace.
    pub name: String,
    /// Readers: the subscriptions.
    pub readers: Vec<Guid>,
    /// Writers: the publications.
    pub writers: Vec<Guid>,
}

impl GidForm {
    const fn octets(self) -> usize {
        match self {
            Self::Humble => 24,
            Self::Iron => 16,
        }
    }
}

impl ParticipantEntities {
    /// Returns the message with its encapsulation header.
    #[must_use]
    pub fn write(&self, form: GidForm) -> Bytes {
        let mut out = Writer { out: BytesMut::new(), form };
        out.gid(&self.participant);
        out.count(self.nodes.len());
        for node in &self.nodes {
            out.text(&node.namespace);
            out.text(&node.name);
            out.gids(&node.readers);
            out.gids(&node.writers);
        }
        [&HEADER[..], &out.out].concat().into()
    }

    /// Reads a message with its encapsulation header, and recognizes the length of its identifiers. Returns `None` if it is not one.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<(Self, GidForm)> {
        let (header, body) = octets.split_at_checked(HEADER.len())?;
        let is_little_endian = match header {
            [0, 0, ..] => false,
            [0, 1, ..] => true,
            _ => return None,
        };
        [GidForm::Iron, GidForm::Humble].into_iter().find_map(|form| {
            let mut reader = Reader { body, at: 0, is_little_endian, form };
            let read = reader.participant()?;
            (body.len() - reader.at <= PADDING_MAX).then_some((read, form))
        })
    }
}

/// Writes the message without its header.
struct Writer {
    out: BytesMut,
    form: GidForm,
}

impl Writer {
    fn gid(&mut self, gid: &Guid) {
        self.out.put_slice(gid);
        self.out.put_bytes(0, self.form.octets() - gid.len());
    }

    fn gids(&mut self, gids: &[Guid]) {
        self.count(gids.len());
        for gid in gids {
            self.gid(gid);
        }
    }

    fn text(&mut self, text: &str) {
        self.count(text.len() + 1);
        self.out.put_slice(text.as_bytes());
        self.out.put_u8(0);
    }

    fn count(&mut self, count: usize) {
        self.out.put_bytes(0, self.out.len().next_multiple_of(4) - self.out.len());
        self.out.put_u32_le(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// Reads the message without its header.
struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    is_little_endian: bool,
    form: GidForm,
}

impl<'a> Reader<'a> {
    fn participant(&mut self) -> Option<ParticipantEntities> {
        let participant = self.gid()?;
        let nodes = self.list(Self::node)?;
        Some(ParticipantEntities { participant, nodes })
    }

    fn node(&mut self) -> Option<NodeEntities> {
        let (namespace, name) = (self.text()?, self.text()?);
        Some(NodeEntities { namespace, name, readers: self.list(Self::gid)?, writers: self.list(Self::gid)? })
    }

    /// Reads a list. Each element has octets of its own, so the list is not longer than the message.
    fn list<T>(&mut self, element: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| element(self)).collect()
    }

    fn gid(&mut self) -> Option<Guid> {
        let gid = self.take(self.form.octets())?;
        let (guid, rest) = gid.split_first_chunk()?;
        rest.iter().all(|octet| *octet == 0).then_some(*guid)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.count()?).ok()?;
        let (last, text) = self.take(length)?.split_last()?;
        (*last == 0 && text.len() <= TEXT_OCTETS_MAX).then(|| String::from_utf8(text.to_vec()).ok())?
    }

    fn count(&mut self) -> Option<u32> {
        self.at = self.at.next_multiple_of(4);
        let octets = *self.take(4)?.first_chunk()?;
        Some(if self.is_little_endian { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) })
    }

    fn take(&mut self, octets: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(octets)?;
        let taken = self.body.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities() -> ParticipantEntities {
        let node = |name: &str, readers| NodeEntities {
            namespace: "/".to_owned(),
            name: name.to_owned(),
            readers: vec![[3; 16]; readers],
            writers: vec![[4; 16]],
        };
        ParticipantEntities { participant: [7; 16], nodes: vec![node("talker", 0), node("bridge", 2)] }
    }

    #[test]
    fn a_message_is_read_as_written_in_both_forms() {
        let none = ParticipantEntities { participant: [7; 16], nodes: Vec::new() };
        for form in [GidForm::Humble, GidForm::Iron] {
            for written in [entities(), none.clone()] {
                let octets = written.write(form);
                assert_eq!(ParticipantEntities::parse(&octets), Some((written.clone(), form)), "{octets:?}");
                let padded = [&octets[..], &[0, 0]].concat();
                assert_eq!(ParticipantEntities::parse(&padded), Some((written, form)));
            }
        }
    }

    #[test]
    fn a_message_has_the_layout_of_cdr() {
        let node = NodeEntities {
            namespace: "/".to_owned(),
            name: "ab".to_owned(),
            readers: Vec::new(),
            writers: vec![[2; 16]],
        };
        let octets = ParticipantEntities { participant: [1; 16], nodes: vec![node] }.write(GidForm::Iron);
        let texts = b"\x02\0\0\0/\0\0\0\x03\0\0\0ab\0\0";
        let expected = [&HEADER[..], &[1; 16], &[1, 0, 0, 0], texts, &[0, 0, 0, 0], &[1, 0, 0, 0], &[2; 16]].concat();
        assert_eq!(&octets[..], &expected[..]);
    }

    #[test]
    fn other_octets_are_not_a_message() {
        let octets = entities().write(GidForm::Iron);
        for length in 0..octets.len() {
            assert_eq!(ParticipantEntities::parse(&octets[..length]), None, "{length}");
        }
        let mut huge = octets.to_vec();
        huge[20..24].fill(0xFF);
        assert_eq!(ParticipantEntities::parse(&huge), None);
        assert_eq!(ParticipantEntities::parse(b"\0\x07\0\0"), None);
    }
}
