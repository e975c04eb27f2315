//! A decoded packet as the message that travels on the bus.

use bytes::Bytes;
use viaduct_its::Received;
use viaduct_its::facilities::{MessageKind, Summary};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{
    AccessLayer, Direction, Edition, MessageType, Position, SecurityState, V2xMessage,
};
use viaduct_units::{MetresPerSecond, Tai};

/// The bus's name of a message's type.
#[must_use]
pub(crate) const fn message_type(kind: MessageKind) -> MessageType {
    match kind {
        MessageKind::Cam => MessageType::Cam,
        MessageKind::Denm => MessageType::Denm,
        MessageKind::Cpm => MessageType::Cpm,
        MessageKind::Vam => MessageType::Vam,
        MessageKind::Ivim => MessageType::Ivim,
        MessageKind::Mapem => MessageType::Mapem,
        MessageKind::Spatem => MessageType::Spatem,
        MessageKind::Srem => MessageType::Srem,
        MessageKind::Ssem => MessageType::Ssem,
    }
}

/// The protocols' name of a message's type, where this station has the type.
#[must_use]
pub(crate) const fn message_kind(kind: MessageType) -> Option<MessageKind> {
    match kind {
        MessageType::Cam => Some(MessageKind::Cam),
        MessageType::Denm => Some(MessageKind::Denm),
        MessageType::Cpm => Some(MessageKind::Cpm),
        MessageType::Vam => Some(MessageKind::Vam),
        MessageType::Ivim => Some(MessageKind::Ivim),
        MessageType::Mapem => Some(MessageKind::Mapem),
        MessageType::Spatem => Some(MessageKind::Spatem),
        MessageType::Srem => Some(MessageKind::Srem),
        MessageType::Ssem => Some(MessageKind::Ssem),
        _ => None,
    }
}

const fn edition(kind: MessageKind) -> Edition {
    match kind {
        MessageKind::Cam => Edition::CamTs103900V231,
        MessageKind::Denm => Edition::DenmTs103831V231,
        MessageKind::Cpm => Edition::CpmTs103324V211,
        MessageKind::Vam => Edition::VamTs1033003V231,
        MessageKind::Ivim => Edition::IvimTs103301V221,
        MessageKind::Mapem => Edition::MapemTs103301V221,
        MessageKind::Spatem => Edition::SpatemTs103301V221,
        MessageKind::Srem => Edition::SremTs103301V221,
        MessageKind::Ssem => Edition::SsemTs103301V221,
    }
}

/// A moment of a replayed capture, moved to now by `shift_ns`.
pub(crate) fn shifted(moment: Tai, shift_ns: i64) -> Tai {
    Tai::from_nanos(moment.nanos().saturating_add(shift_ns))
}

/// A message as it is received or sent: everything but what only a packet has (addresses, port).
///
/// `shift_ns` moves the times of a replayed capture to now; it is 0 otherwise.
#[must_use]
pub fn sent_or_received(
    direction: Direction,
    kind: MessageKind,
    summary: &Summary,
    payload: Bytes,
    (at, shift_ns): (Tai, i64),
) -> V2xMessage {
    let told = |moment: Tai| timestamp(shifted(moment, shift_ns));
    V2xMessage {
        direction: direction.into(),
        r#type: message_type(kind).into(),
        edition: edition(kind).into(),
        station_id: summary.station_id,
        station_type: u32::from(summary.station_type.unwrap_or(0)),
        reception_time: Some(told(at)),
        generation_time: summary.generation.map(told),
        position: summary.position.map(|position| Position {
            latitude_deg: position.latitude.value(),
            longitude_deg: position.longitude.value(),
            altitude_m: summary.altitude.map(viaduct_units::Metres::value),
        }),
        speed_mps: summary.speed.map(MetresPerSecond::value),
        heading_deg: summary.heading.map(viaduct_units::Degrees::value),
        security: SecurityState::Unsecured.into(),
        btp_port: u32::from(kind.btp_port()),
        payload,
        ..V2xMessage::default()
    }
}

/// A received packet as the message that travels on the bus.
#[must_use]
pub fn received_message(packet: &Received, receiver: &str, access: AccessLayer, shift_ns: i64) -> V2xMessage {
    let time = (packet.reception, shift_ns);
    let message = sent_or_received(Direction::Received, packet.kind, &packet.summary, packet.payload.clone(), time);
    let summary = &packet.summary;
    let source = &packet.source;
    V2xMessage {
        link_address: Bytes::copy_from_slice(&packet.link_source.0),
        geonet_address: Bytes::copy_from_slice(&source.address.0),
        receiver: receiver.to_owned(),
        access: access.into(),
        btp_port: u32::from(packet.btp_port),
        // A CPM does not say type, speed and heading of its station; the packet that carried it does. Its speed is
        // negative for a station that drives backwards, and here it is the amount.
        station_type: u32::from(summary.station_type.unwrap_or_else(|| source.address.station_type())),
        speed_mps: Some(summary.speed.map_or_else(|| source.speed.value().abs(), MetresPerSecond::value)),
        heading_deg: summary.heading.or(source.heading).map(viaduct_units::Degrees::value),
        ..message
    }
}
