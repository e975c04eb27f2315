//! What a station is asked to send.

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::StationId;

use crate::{
    btp::BtpKind,
    facilities::MessageKind,
    geonet::{Area, GnAddress, Lifetime, TrafficClass, mib::ITS_GN_MAX_PACKET_LIFETIME},
};

/// Where the station ID lies in every message (`ItsPduHeader`, TS 102 894-2).
const STATION_ID: std::ops::Range<usize> = 2..6;

/// A message to send (BTP-Data.request and GN-DATA.request in one; EN 302 636-5-1, annex A, and EN 302 636-4-1, annex J).
#[derive(Clone, Debug, PartialEq)]
pub struct SendRequest {
    /// Which message it is; decides the BTP destination port.
    pub kind: MessageKind,
    /// Which BTP it travels in.
    pub btp: BtpKind,
    /// The message in UPER.
    pub payload: Bytes,
    /// Who it is for.
    pub destination: Destination,
    /// Traffic class.
    pub traffic_class: TrafficClass,
    /// How long its packet may travel.
    pub lifetime: Lifetime,
    /// Sends the same packet again and again, where it is asked for.
    pub repetition: Option<Repetition>,
}

/// Who a message is for; decides the packet transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Destination {
    /// Everybody in reach (SHB).
    SingleHop,
    /// Everybody within a number of hops (TSB), 1 to 255.
    Hops(u8),
    /// Every station in the area (GBC).
    Area(Area),
    /// Any one station in the area (GAC).
    AnyIn(Area),
    /// One station (GUC).
    Station(GnAddress),
}

impl Destination {
    /// Whether a repetition is the same packet, which ends with its lifetime; else it is a new one each time.
    pub(crate) const fn is_repeated_as_it_was(self) -> bool {
        match self {
            Self::Hops(_) | Self::Area(_) | Self::AnyIn(_) => true,
            Self::SingleHop | Self::Station(_) => false,
        }
    }
}

impl std::fmt::Display for Destination {
    /// For people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SingleHop => f.write_str("everybody in reach"),
            Self::Hops(hops) => write!(f, "everybody within {hops} hops"),
            Self::Area(area) => write!(f, "every station in {area}"),
            Self::AnyIn(area) => write!(f, "any station in {area}"),
            Self::Station(address) => write!(f, "station {address}"),
        }
    }
}

/// Repetition of a packet (EN 302 636-4-1, annex J.2: repetition interval, maximum repetition time).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Time from one packet to the next.
    pub interval: Duration,
    /// How long it goes on.
    pub duration: Duration,
}

impl SendRequest {
    /// A single-hop broadcast with the traffic class and lifetime that the message's facility asks for.
    #[must_use]
    pub const fn single_hop(kind: MessageKind, payload: Bytes) -> Self {
        Self::to(Destination::SingleHop, kind, payload)
    }

    /// A message for somebody, with the traffic class and lifetime that the message's facility asks for, once, in BTP-B.
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

    /// The lifetime of a packet for which nobody says one: what the message's facility asks for. A packet that is repeated as it was
    /// lives for that time after its last repetition, but not longer than `itsGnMaxPacketLifetime`.
    #[must_use]
    pub fn default_lifetime(kind: MessageKind, destination: Destination, repetition: Option<Repetition>) -> Lifetime {
        match (kind.lifetime(), repetition) {
            (lifetime, Some(repetition)) if destination.is_repeated_as_it_was() => {
                let longest = ITS_GN_MAX_PACKET_LIFETIME.duration();
                Lifetime::at_least(repetition.duration.saturating_add(lifetime.duration()).min(longest))
            }
            (lifetime, _) => lifetime,
        }
    }

    /// A lifetime that somebody says, as the field has it: rounded, but never to less where a packet is repeated as it was.
    #[must_use]
    pub fn said_lifetime(said: Duration, destination: Destination, repetition: Option<Repetition>) -> Lifetime {
        if repetition.is_some() && destination.is_repeated_as_it_was() {
            Lifetime::at_least(said)
        } else {
            Lifetime::from_duration(said)
        }
    }

    /// The request with the station's own ID in its message, where the message says 0.
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
    fn a_message_without_a_station_gets_the_stations_own() {
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
    fn a_person_reads_who_a_message_is_for() {
        let area = Area { centre: Position::new(48.5, -1.25), shape: Shape::Circle { radius: Metres(300.0) } };
        let address = GnAddress::new(StationType::PASSENGER_CAR, MacAddress([2, 0, 0, 0, 0, 1]));
        for (destination, text) in [
            (Destination::SingleHop, "everybody in reach".to_owned()),
            (Destination::Hops(3), "everybody within 3 hops".to_owned()),
            (Destination::Area(area), "every station in a circle of radius 300 m around 48.5, -1.25".to_owned()),
            (Destination::AnyIn(area), "any station in a circle of radius 300 m around 48.5, -1.25".to_owned()),
            (Destination::Station(address), format!("station {address}")),
        ] {
            assert_eq!(destination.to_string(), text);
        }
    }
}
