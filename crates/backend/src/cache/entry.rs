//! One cached message: what indexes and filters read, and its octets.

use std::io::Write as _;

use viaduct_messages::viaduct::its::{Edition, MessageType, V2xMessage};
use viaduct_units::{Position, Tai};

use super::{Cursor, Rejected};

/// Octets that one message may take: an ITS message of one packet is below 2 KiB, so 128 KiB refuses only nonsense.
pub const ENTRY_OCTETS_MAX: usize = 128 * 1024;

/// What the allocator and the reference count add to an entry and its octets.
const ALLOCATION_OCTETS: usize = 48;

/// A message in the cache. It never changes, so a reader keeps it without a lock.
///
/// The GeoJSON text without the decoded ETSI message is written once, at insertion. The decoded message is not kept here;
/// the HTTP API keeps those that were asked for lately. Measured on two shared cores with a CAM of 241 octets (23 path points):
///
/// | | us |
/// |---|---|
/// | insertion, text included | 4 to 5.5 |
/// | writing the text (460 octets) / copying it for a request | 1.6 / 0.04 |
/// | decoding the message and writing its JSON (3.5 kB) | 7.9 |
/// | request of 100 with messages (400 kB): decoded for it / kept from an earlier one | 894 / 47 |
///
/// So the text pays from the first request on, and a decoded message kept with each entry would triple the cost of an
/// insertion and leave a quarter of the messages in the same memory (1.05 kB each as it is).
///
/// ```text
/// octets: | "geometry":{..} | "properties":{..     | payload |
///         0                 properties_at          payload_at
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
    octets: Box<[u8]>,
}

impl Entry {
    /// A message made ready to be cached; it gets its sequence number when it is.
    ///
    /// # Errors
    /// [`Rejected::NoReceptionTime`] and [`Rejected::TooLarge`].
    pub(super) fn prepare(message: &V2xMessage) -> Result<Self, Rejected> {
        let reception = message.reception().ok_or(Rejected::NoReceptionTime)?;
        let addresses = message.link_address.len() + message.geonet_address.len();
        let variable = message.payload.len() + message.receiver.len() + addresses * 3;
        if variable > ENTRY_OCTETS_MAX {
            return Err(Rejected::TooLarge);
        }
        let altitude_m = message.position.and_then(|at| at.altitude_m).filter(|metres| metres.is_finite());
        // Place and motion that are no numbers are unknown: JSON has no word for them.
        let bare = V2xMessage {
            position: None,
            speed_mps: message.speed_mps.filter(|speed| speed.is_finite()),
            heading_deg: message.heading_deg.filter(|heading| heading.is_finite()),
            ..message.clone()
        };
        let position = message.place().filter(on_earth);
        let mut octets = Vec::with_capacity(640 + message.payload.len());
        let (properties_at, payload_at) =
            write_texts(&bare, position, altitude_m, &mut octets).map_err(|_| Rejected::TooLarge)?;
        octets.extend_from_slice(&message.payload);
        if octets.len() > ENTRY_OCTETS_MAX {
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
            octets: octets.into_boxed_slice(),
        })
    }

    /// The same entry with its sequence number.
    pub(super) fn numbered(self, seq: u64) -> Self {
        Self { seq, ..self }
    }

    /// The sequence number: counts from 1 in the order of insertion.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When the message was received, or handed to the access layer.
    #[must_use]
    pub fn reception(&self) -> Tai {
        self.reception
    }

    /// The message's place in the order of results.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor { reception: self.reception, seq: self.seq }
    }

    /// The reference position, where there is one on earth.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Speed over ground in metres per second.
    #[must_use]
    pub fn speed_mps(&self) -> Option<f64> {
        self.speed_mps
    }

    /// Heading in degrees clockwise from north, 0 up to 360.
    #[must_use]
    pub fn heading_deg(&self) -> Option<f64> {
        self.heading_deg
    }

    /// Station ID in the message's own header.
    #[must_use]
    pub fn station_id(&self) -> u32 {
        self.station_id
    }

    /// Type of the station (`TrafficParticipantType`, TS 102 894-2).
    #[must_use]
    pub fn station_type(&self) -> Option<u32> {
        self.station_type
    }

    /// Type of the message.
    #[must_use]
    pub fn kind(&self) -> MessageType {
        self.kind
    }

    /// The standard's edition by which the payload is coded.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// The message in UPER.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.octets[self.payload_at as usize..]
    }

    /// Memory that the entry takes, in octets.
    #[must_use]
    pub fn octets(&self) -> usize {
        size_of::<Self>() + ALLOCATION_OCTETS + self.octets.len()
    }

    /// Appends the GeoJSON feature; `message` is the decoded ETSI message as JSON, empty to leave it out.
    pub fn write_feature(&self, message: &[u8], out: &mut Vec<u8>) {
        // Writing into a Vec cannot fail.
        let _ = write!(out, "{{\"type\":\"Feature\",\"id\":{},\"geometry\":", self.seq);
        out.extend_from_slice(self.geometry());
        out.extend_from_slice(b",\"properties\":");
        self.write_properties(message, out);
        out.push(b'}');
    }

    /// Appends the feature's `properties` alone.
    pub fn write_properties(&self, message: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets[self.properties_at as usize..self.payload_at as usize]);
        if !message.is_empty() {
            out.extend_from_slice(b",\"message\":");
            out.extend_from_slice(message);
        }
        out.push(b'}');
    }

    /// The feature's `geometry`: a point, or `null`.
    #[must_use]
    pub fn geometry(&self) -> &[u8] {
        &self.octets[..self.properties_at as usize]
    }
}

fn on_earth(position: &Position) -> bool {
    viaduct_units::BoundingBox::WORLD.contains(*position)
}

/// Writes geometry, and properties without their closing brace; returns where the properties start and where they end.
fn write_texts(
    message: &V2xMessage,
    position: Option<Position>,
    altitude_m: Option<f64>,
    out: &mut Vec<u8>,
) -> Result<(u32, u32), serde_json::Error> {
    write_geometry(position, altitude_m, out)?;
    let properties_at = out.len();
    message.write_json(None, out)?;
    out.pop();
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Ok((offset(properties_at), offset(out.len())))
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
             \"station_type\":5,\"receiver\":\"\",\"access\":\"unknown\",\"security\":\"unknown\",\
             \"reception_time\":\"2024-09-11T13:30:34.092870Z\",\"message\":{\"cam\":{}}}}"
        );
        assert_eq!(entry.payload(), [2, 2, 0]);
    }

    #[test]
    fn what_is_no_place_or_number_is_unknown() {
        let mut message = cam();
        message.speed_mps = Some(f64::NAN);
        message.position = Some(its::Position { latitude_deg: 90.5, longitude_deg: 7.25, altitude_m: None });
        let entry = Entry::prepare(&message).unwrap();
        assert_eq!(entry.position(), None);
        assert!(feature(&entry, b"").contains("\"geometry\":null"));
        assert!(!feature(&entry, b"").contains("speed_mps"));
    }

    #[test]
    fn a_message_without_time_or_of_absurd_size_is_refused() {
        let timeless = V2xMessage { reception_time: None, ..cam() };
        assert_eq!(Entry::prepare(&timeless).unwrap_err(), Rejected::NoReceptionTime);
        for huge in [
            V2xMessage { payload: vec![0; ENTRY_OCTETS_MAX].into(), ..cam() },
            V2xMessage { geonet_address: vec![0; ENTRY_OCTETS_MAX].into(), ..cam() },
        ] {
            assert_eq!(Entry::prepare(&huge).unwrap_err(), Rejected::TooLarge);
        }
    }
}
