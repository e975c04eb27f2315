//! Requests to send a message.

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::StationId;

use crate::{
    btp::BtpKind,
    facilities::MessageKind,
    geonet::{Area, GnAddress, Lifetime, TrafficClass, mib::ITS_GN_MAX_PACKET_LIFETIME},
};

/// Octets of the station ID in every message (`ItsPduHeader`, TS 102 894-2).
const STATION_ID: std::ops::Range<usize> = 2..6;

/// A message to send (BTP-Data.request and GN-DATA.request in one; EN 302 636-5-1, annex A, and EN 302 636-4-1, annex J).
#[derive(Clone, Debug, PartialEq)]
pub struct SendRequest {
    /// Kind of the message; determines the BTP destination port.
    pub kind: MessageKind,
    /// BTP type, A or B.
    pub btp: BtpKind,
    /// The message in UPER.
    pub payload: Bytes,
    /// Destination.
    pub destination: Destination,
    /// Traffic class.
    pub traffic_class: TrafficClass,
    /// Lifetime of the packet.
    pub lifetime: Lifetime,
    /// Repetition of the packet, or `None` to send it once.
    pub repetition: Option<Repetition>,
}

/// Destination of a message; determines the packet transport type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Destination {
    /// All stations in radio range (SHB).
    SingleHop,
    /// All stations within a number of hops (TSB), 1 to 255.
    Hops(u8),
    /// All stations in the area (GBC).
    Area(Area),
    /// Any one station in the area (GAC).
    AnyIn(Area),
    /// One station (GUC).
    Station(GnAddress),
}

impl Destination {
    /// Returns `true` if a repetition sends the same packet, whose lifetime limits the repetition. Otherwise each
    /// repetition is a new packet.
    pub(crate) const fn repeats_same_packet(self) -> bool {
        match self {
            Self::Hops(_) | Self::Area(_) | Self::AnyIn(_) => true,
            Self::SingleHop | Self::Station(_) => false,
        }
    }
}

impl std::fmt::Display for Destination {
    /// Formats the destination as a phrase for people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SingleHop => f.write_str("all stations within one hop"),
            Self::Hops(1) => f.write_str("all stations within 1 hop"),
            Self::Hops(hops) => write!(f, "all stations within {hops} hops"),
            Self::Area(area) => write!(f, "all stations in {area}"),
            Self::AnyIn(area) => write!(f, "any one station in {area}"),
            Self::Station(address) => write!(f, "station {address}"),
        }
    }
}

/// Repetition of a packet (EN 302 636-4-1, annex J.2: repetition interval, maximum repetition time).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Interval between two packets.
    pub interval: Duration,
    /// Total duration of the repetition.
    pub duration: Duration,
}

impl SendRequest {
    /// Returns a single-hop broadcast with the default traffic class and lifetime of the message kind.
    #[must_use]
    pub const fn single_hop(kind: MessageKind, payload: Bytes) -> Self {
        Self::to(Destination::SingleHop, kind, payload)
    }

    /// Returns a request to send a message once, over BTP-B, with the default traffic class and lifetime of the message
    /// kind.
    #[must_use]
    pub const fn to(destination: Destination, kind: MessageKind, payload: Bytes) -> Self {
        Self {
            kind,
            btp: BtpKind::B { destination_port_info: 0 },
            payload,
            destination,
            traffic_class: kind.traffic_class(),
            lifetime: kind.lifetime(),
            repetition: None,
        }
    }

    /// Returns the default lifetime of a packet: that of the message kind. If the same packet is repeated, the duration
    /// of the repetition is added, limited to `itsGnMaxPacketLifetime`.
    #[must_use]
    pub fn default_lifetime(kind: MessageKind, destination: Destination, repetition: Option<Repetition>) -> Lifetime {
        match (kind.lifetime(), repetition) {
            (lifetime, Some(repetition)) if destination.repeats_same_packet() => {
                let longest = ITS_GN_MAX_PACKET_LIFETIME.duration();
                Lifetime::at_least(repetition.duration.saturating_add(lifetime.duration()).min(longest))
            }
            (lifetime, _) => lifetime,
        }
    }

    /// Returns a requested lifetime as a value of the lifetime field: rounded to the nearest value, or up if the same
    /// packet is repeated.
    #[must_use]
    pub fn requested_lifetime(
        requested: Duration,
        destination: Destination,
        repetition: Option<Repetition>,
    ) -> Lifetime {
        if repetition.is_some() && destination.repeats_same_packet() {
            Lifetime::at_least(requested)
        } else {
            Lifetime::from_duration(requested)
        }
    }

    /// Returns the request with the given station ID in the message, if the message has station ID 0.
    #[must_use]
    pub fn from_station(mut self, station_id: StationId) -> Self {
        if self.payload.get(STATION_ID) == Some(&[0; 4]) {
            let mut whole = self.payload.to_vec();
            if let Some(octets) = whole.get_mut(STATION_ID) {
                octets.copy_from_slice(&station_id.0.to_be_bytes());
            }
            self.payload = whole.into();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::{Metres, Position, StationType};

    use super::*;
    use crate::{access::MacAddress, geonet::Shape};

    #[test]
    fn missing_station_id_is_filled_in() {
        let of = |payload: &'static [u8]| {
            SendRequest::single_hop(MessageKind::Cam, Bytes::from_static(payload))
                .from_station(StationId(0x0102_0304))
                .payload
        };
        assert_eq!(&of(&[2, 2, 0, 0, 0, 0, 7])[..], [2, 2, 1, 2, 3, 4, 7]);
        assert_eq!(&of(&[2, 2, 0, 0, 0, 9, 7])[..], [2, 2, 0, 0, 0, 9, 7]);
        assert_eq!(&of(&[2, 2, 0])[..], [2, 2, 0]);
    }

    #[test]
    fn destination_is_formatted_for_people() {
        let area = Area { centre: Position::new(48.5, -1.25), shape: Shape::Circle { radius: Metres(300.0) } };
        let address = GnAddress::new(StationType::PASSENGER_CAR, MacAddress([2, 0, 0, 0, 0, 1]));
        for (destination, text) in [
            (Destination::SingleHop, "all stations within one hop".to_owned()),
            (Destination::Hops(1), "all stations within 1 hop".to_owned()),
            (Destination::Hops(3), "all stations within 3 hops".to_owned()),
            (Destination::Area(area), "all stations in a circle of radius 300 m around 48.5, -1.25".to_owned()),
            (Destination::AnyIn(area), "any one station in a circle of radius 300 m around 48.5, -1.25".to_owned()),
            (Destination::Station(address), format!("station {address}")),
        ] {
            assert_eq!(destination.to_string(), text);
        }
    }
}
