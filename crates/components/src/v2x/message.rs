//! Conversion of a decoded packet to a message of the bus.

use bytes::Bytes;
use viaduct_its::facilities::{MessageKind, Summary};
use viaduct_its::{Received, Security};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{
    AccessLayer, Direction, Edition, MessageType, Position, SecurityState, V2xMessage,
};
use viaduct_units::{MetresPerSecond, Tai};

/// Returns the type of the bus for a message kind.
#[must_use]
pub(crate) fn message_type(kind: MessageKind) -> MessageType {
    MessageType::from_message_id(kind.message_id())
}

/// Returns the message kind for a type of the bus, or `None` if stations do not support the type.
#[must_use]
pub(crate) fn message_kind(message_type: MessageType) -> Option<MessageKind> {
    MessageKind::from_message_id(message_type.message_id())
}

fn edition(kind: MessageKind) -> Edition {
    Edition::of(message_type(kind), kind.edition())
}

/// Returns the security of a packet as messages of the bus contain it.
pub(crate) const fn security_state(security: Security) -> SecurityState {
    match security {
        Security::Unsecured => SecurityState::Unsecured,
        Security::Unverified { .. } => SecurityState::Unverified,
    }
}

/// Shifts a time of a replayed capture by `shift_ns` nanoseconds.
pub(crate) fn shifted(moment: Tai, shift_ns: i64) -> Tai {
    Tai::from_nanos(moment.nanos().saturating_add(shift_ns))
}

/// Returns a received or sent message, without the members that only a packet has (addresses, port).
///
/// `shift_ns` shifts the times of a replayed capture to now; it is 0 otherwise.
#[must_use]
pub fn sent_or_received(
    direction: Direction,
    kind: MessageKind,
    summary: &Summary,
    payload: Bytes,
    (at, shift_ns): (Tai, i64),
) -> V2xMessage {
    let shifted_timestamp = |moment: Tai| timestamp(shifted(moment, shift_ns));
    V2xMessage {
        direction: direction.into(),
        r#type: message_type(kind).into(),
        edition: edition(kind).into(),
        station_id: summary.station_id.into(),
        station_type: summary.station_type.unwrap_or_default().into(),
        reception_time: Some(shifted_timestamp(at)),
        generation_time: summary.generation.map(shifted_timestamp),
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

/// Converts a received packet to a message of the bus.
#[must_use]
pub fn received_message(packet: &Received, receiver: &str, access: AccessLayer, shift_ns: i64) -> V2xMessage {
    let time = (packet.reception, shift_ns);
    let message = sent_or_received(Direction::Received, packet.kind, &packet.summary, packet.payload.clone(), time);
    let summary = &packet.summary;
    let source = &packet.source;
    let signer_digest = match packet.security {
        Security::Unsecured => Bytes::new(),
        Security::Unverified { signer } => Bytes::copy_from_slice(&signer.0),
    };
    V2xMessage {
        link_address: Bytes::copy_from_slice(&packet.link_source.0),
        geonet_address: Bytes::copy_from_slice(&source.address.0),
        receiver: receiver.to_owned(),
        access: access.into(),
        security: security_state(packet.security).into(),
        signer_digest,
        btp_port: u32::from(packet.btp_port),
        // A CPM does not contain type, speed and heading of its station, but its packet does. The speed in the packet is
        // negative for a station that drives backwards; here it is the magnitude.
        station_type: summary.station_type.unwrap_or_else(|| source.address.station_type()).into(),
        speed_mps: Some(summary.speed.map_or_else(|| source.speed.value().abs(), MetresPerSecond::value)),
        heading_deg: summary.heading.or(source.heading).map(viaduct_units::Degrees::value),
        ..message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_type_and_an_edition_on_the_bus() {
        for kind in MessageKind::ALL {
            assert_eq!(message_type(kind).topic_level(), kind.label());
            assert_eq!(message_kind(message_type(kind)), Some(kind));
            assert_eq!(edition(kind).label(), kind.edition());
        }
        assert_eq!(message_kind(MessageType::Unknown), None);
    }
}
