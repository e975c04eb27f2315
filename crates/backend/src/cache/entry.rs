//! One cached message: the fields that indexes and filters read, its GeoJSON text and its payload.

use std::io::Write as _;

use axum::body::Bytes;
use viaduct_messages::viaduct::its::{Edition, MessageType, V2xMessage};
use viaduct_units::{Position, Tai};
use viaduct_v2x_json::write_message;

use super::{Cursor, Rejected};

/// Largest size of one message, in bytes. An ITS message of one packet is below 2 KiB, so 128 KiB rejects only nonsense.
pub const ENTRY_BYTES_MAX: usize = 128 * 1024;

/// Overhead of the allocator and the reference count for one entry, in bytes.
const ALLOCATION_BYTES: usize = 48;

/// A message in the cache. It never changes, so readers keep it without a lock.
///
/// The GeoJSON text without the decoded ETSI message is written once, at insertion. Decoded messages are not kept here; the
/// HTTP API keeps those requested recently. Measured on two shared cores with a CAM of 241 octets (23 path points):
///
/// | | us |
/// |---|---|
/// | insertion, including the text | 4 to 5.5 |
/// | writing the text (460 bytes) / copying it for a request | 1.6 / 0.04 |
/// | decoding the message and writing its JSON (3.5 kB) | 7.9 |
/// | request for 100 decoded messages (400 kB): decoded for this request / kept from an earlier one | 894 / 47 |
///
/// So the text saves time from the first request on. A decoded message in each entry would triple the cost of an
/// insertion. The same memory would hold a quarter of the messages, which have 1.05 kB each at present.
///
/// ```text
/// bytes: | geometry {..} | properties {..       | payload |
///        0               properties_at          payload_at
/// ```
#[derive(Debug)]
pub struct Entry {
    seq: u64,
    reception: Tai,
    position: Option<Position>,
    speed_mps: Option<f64>,
    heading_deg: Option<f64>,
    station_id: u32,
    station_type: Option<u32>,
    kind: MessageType,
    edition: Edition,
    properties_at: u32,
    payload_at: u32,
    bytes: Box<[u8]>,
}

impl Entry {
    /// Creates an entry from a message. The sequence number is 0 until [`Self::numbered`] sets it.
    ///
    /// # Errors
    /// Returns [`Rejected::NoReceptionTime`] or [`Rejected::TooLarge`].
    pub(super) fn prepare(message: &V2xMessage) -> Result<Self, Rejected> {
        let reception = message.reception().ok_or(Rejected::NoReceptionTime)?;
        let addresses = message.link_address.len() + message.geonet_address.len();
        let variable = message.payload.len() + message.receiver.len() + addresses * 3;
        if variable > ENTRY_BYTES_MAX {
            return Err(Rejected::TooLarge);
        }
        let altitude_m = message.position.and_then(|at| at.altitude_m).filter(|metres| metres.is_finite());
        // JSON cannot represent NaN and infinity, so such positions and motions count as unknown.
        let bare = V2xMessage {
            position: None,
            link_address: Bytes::new(),
            geonet_address: Bytes::new(),
            speed_mps: message.speed_mps.filter(|speed| speed.is_finite()),
            heading_deg: message.heading_deg.filter(|heading| heading.is_finite()),
            ..message.clone()
        };
        let position = message.place().filter(on_earth);
        let mut bytes = Vec::with_capacity(640 + message.payload.len());
        let (properties_at, payload_at) =
            write_texts(&bare, message, position, altitude_m, &mut bytes).map_err(|_| Rejected::TooLarge)?;
        bytes.extend_from_slice(&message.payload);
        if bytes.len() > ENTRY_BYTES_MAX {
            return Err(Rejected::TooLarge);
        }
        Ok(Self {
            seq: 0,
            reception,
            position,
            speed_mps: bare.speed_mps,
            heading_deg: bare.heading_deg,
            station_id: message.station_id,
            // TS 102 894-2: 0 is unknown.
            station_type: Some(message.station_type).filter(|&known| known != 0),
            kind: message.r#type(),
            edition: message.edition(),
            properties_at,
            payload_at,
            bytes: bytes.into_boxed_slice(),
        })
    }

    /// Returns the entry with its sequence number.
    pub(super) fn numbered(self, seq: u64) -> Self {
        Self { seq, ..self }
    }

    /// Returns the sequence number, which counts from 1 in the order of insertion.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the time at which the message was received, or passed to the access layer if the node sent it.
    #[must_use]
    pub fn reception(&self) -> Tai {
        self.reception
    }

    /// Returns the message's place in the order of results.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor { reception: self.reception, seq: self.seq }
    }

    /// Returns the reference position, or `None` if the message has no valid one.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns the speed over ground in metres per second.
    #[must_use]
    pub fn speed_mps(&self) -> Option<f64> {
        self.speed_mps
    }

    /// Returns the heading in degrees clockwise from north, 0 up to 360.
    #[must_use]
    pub fn heading_deg(&self) -> Option<f64> {
        self.heading_deg
    }

    /// Returns the station id in the message's header.
    #[must_use]
    pub fn station_id(&self) -> u32 {
        self.station_id
    }

    /// Returns the type of the station (`TrafficParticipantType`, TS 102 894-2), or `None` if it is unknown.
    #[must_use]
    pub fn station_type(&self) -> Option<u32> {
        self.station_type
    }

    /// Returns the type of the message.
    #[must_use]
    pub fn kind(&self) -> MessageType {
        self.kind
    }

    /// Returns the edition of the standard that defines the encoding of the payload.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// Returns the message in UPER.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.payload_at as usize..]
    }

    /// Returns the memory of the entry, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + ALLOCATION_BYTES + self.bytes.len()
    }

    /// Appends the GeoJSON feature to `out`. `message` is the decoded ETSI message as JSON; if it is empty, the feature has no
    /// member `message`.
    pub fn write_feature(&self, message: &[u8], out: &mut Vec<u8>) {
        // Writing into a Vec cannot fail.
        let _ = write!(out, "{{\"type\":\"Feature\",\"id\":{},\"geometry\":", self.seq);
        out.extend_from_slice(self.geometry());
        out.extend_from_slice(b",\"properties\":");
        self.write_properties(message, out);
        out.push(b'}');
    }

    /// Appends only the feature's `properties` to `out`.
    pub fn write_properties(&self, message: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[self.properties_at as usize..self.payload_at as usize]);
        if !message.is_empty() {
            out.extend_from_slice(b",\"message\":");
            out.extend_from_slice(message);
        }
        out.push(b'}');
    }

    /// Returns the feature's `geometry` as JSON: a point, or `null`.
    #[must_use]
    pub fn geometry(&self) -> &[u8] {
        &self.bytes[..self.properties_at as usize]
    }
}

/// Returns `true` if latitude and longitude are within their ranges.
fn on_earth(position: &Position) -> bool {
    viaduct_units::BoundingBox::WORLD.contains(*position)
}

/// Appends the geometry, and the properties without their closing brace. Returns the offsets at which the properties start and
/// end.
///
/// `bare` is the message without position and addresses: the geometry replaces the position, and the addresses are written
/// with hyphens.
fn write_texts(
    bare: &V2xMessage,
    message: &V2xMessage,
    position: Option<Position>,
    altitude_m: Option<f64>,
    out: &mut Vec<u8>,
) -> Result<(u32, u32), serde_json::Error> {
    write_geometry(position, altitude_m, out)?;
    let properties_at = out.len();
    write_message(bare, None, out);
    out.pop();
    write_address("link_address", &message.link_address, out);
    write_address("geonet_address", &message.geonet_address, out);
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Ok((offset(properties_at), offset(out.len())))
}

/// Appends an address as `"name":"02-00-00-00-03-fc"`, unless it is empty.
///
/// With colons in their place, OGR (GDAL) takes some addresses for times and loses all but three octets.
fn write_address(name: &str, octets: &[u8], out: &mut Vec<u8>) {
    // Writing into a Vec cannot fail.
    for (index, octet) in octets.iter().enumerate() {
        let _ = if index == 0 { write!(out, ",\"{name}\":\"{octet:02x}") } else { write!(out, "-{octet:02x}") };
    }
    if !octets.is_empty() {
        out.push(b'"');
    }
}

fn write_geometry(
    position: Option<Position>,
    altitude_m: Option<f64>,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let Some(Position { latitude, longitude }) = position else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    out.extend_from_slice(b"{\"type\":\"Point\",\"coordinates\":");
    match altitude_m {
        Some(altitude_m) => serde_json::to_writer(&mut *out, &[longitude.value(), latitude.value(), altitude_m])?,
        None => serde_json::to_writer(&mut *out, &[longitude.value(), latitude.value()])?,
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_messages::its::timestamp;
    use viaduct_messages::viaduct::its;

    fn cam() -> V2xMessage {
        V2xMessage {
            direction: its::Direction::Received.into(),
            r#type: MessageType::Cam.into(),
            station_id: 100,
            station_type: 5,
            reception_time: Some(timestamp(Tai::from_unix_nanos(1_726_061_434_092_870_123))),
            position: Some(its::Position { latitude_deg: 45.5, longitude_deg: 7.25, altitude_m: Some(269.5) }),
            link_address: vec![2, 0, 0, 0, 3, 0xFC].into(),
            payload: vec![2, 2, 0].into(),
            ..Default::default()
        }
    }

    fn feature(entry: &Entry, message: &[u8]) -> String {
        let mut out = Vec::new();
        entry.write_feature(message, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_feature_has_the_envelope_as_properties_and_its_position_as_geometry() {
        let entry = Entry::prepare(&cam()).unwrap().numbered(7);
        assert_eq!(
            feature(&entry, b"{\"cam\":{}}"),
            "{\"type\":\"Feature\",\"id\":7,\"geometry\":{\"type\":\"Point\",\"coordinates\":[7.25,45.5,269.5]},\
             \"properties\":{\"direction\":\"received\",\"type\":\"cam\",\"edition\":\"unknown\",\"station_id\":100,\
             \"station_type\":5,\"access\":\"unknown\",\"security\":\"unknown\",\
             \"reception_time\":\"2024-09-11T13:30:34.092870Z\",\"link_address\":\"02-00-00-00-03-fc\",\
             \"message\":{\"cam\":{}}}}"
        );
        assert_eq!(entry.payload(), [2, 2, 0]);
    }

    #[test]
    fn an_invalid_position_or_number_is_unknown() {
        let mut message = cam();
        message.speed_mps = Some(f64::NAN);
        message.position = Some(its::Position { latitude_deg: 90.5, longitude_deg: 7.25, altitude_m: None });
        let entry = Entry::prepare(&message).unwrap();
        assert_eq!(entry.position(), None);
        assert!(feature(&entry, b"").contains("\"geometry\":null"));
        assert!(!feature(&entry, b"").contains("speed_mps"));
    }

    #[test]
    fn a_message_without_time_or_of_absurd_size_is_rejected() {
        let timeless = V2xMessage { reception_time: None, ..cam() };
        assert_eq!(Entry::prepare(&timeless).unwrap_err(), Rejected::NoReceptionTime);
        for huge in [
            V2xMessage { payload: vec![0; ENTRY_BYTES_MAX].into(), ..cam() },
            V2xMessage { geonet_address: vec![0; ENTRY_BYTES_MAX].into(), ..cam() },
        ] {
            assert_eq!(Entry::prepare(&huge).unwrap_err(), Rejected::TooLarge);
        }
    }
}
