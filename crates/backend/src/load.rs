//! A load for measurements: the traffic of a town, and the three questions that are asked about it.
//!
//! The town is 0.3 by 0.3 degrees at 45 degrees north; its stations stand still at places drawn from a seed, and send a CAM
//! each in turn.

use bytes::Bytes;
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{self, Direction, Edition, MessageType, V2xMessage};
use viaduct_units::{BoundingBox, Tai};

use crate::cache::{Filter, Query};

const SOUTH_DEG: f64 = 45.0;
const WEST_DEG: f64 = 7.0;
const SIDE_DEG: f64 = 0.3;

/// A side of the box of [`Load::in_box`], in degrees: some cells of the index.
const BOX_DEG: f64 = 0.02;

/// The traffic of a town.
#[derive(Clone, Debug)]
pub struct Load {
    /// Stations, at least 1.
    pub stations: u32,
    /// Messages of all stations in a second, at least 1.
    pub rate_hz: u32,
    /// When the first message is received.
    pub start: Tai,
    /// Where the stations stand.
    pub seed: u64,
    /// The CAM that every station sends, in UPER of TS 103 900 V2.3.1.
    pub cam: Bytes,
}

impl Load {
    /// The message with that number, from 0.
    #[must_use]
    pub fn message(&self, number: u64) -> V2xMessage {
        let station = u32::try_from(number % u64::from(self.stations.max(1))).unwrap_or_default();
        let (latitude_deg, longitude_deg) = self.place(station);
        V2xMessage {
            direction: Direction::Received.into(),
            r#type: MessageType::Cam.into(),
            edition: Edition::CamTs103900V231.into(),
            station_id: station,
            station_type: 5,
            link_address: Bytes::from_static(&[0x48, 0xA9, 0x8A, 0x90, 0x82, 0x7F]),
            geonet_address: Bytes::from_static(&[0x14, 0, 0x48, 0xA9, 0x8A, 0x90, 0x82, 0x7F]),
            receiver: "edge/station".to_owned(),
            reception_time: Some(timestamp(self.time(number))),
            generation_time: Some(timestamp(self.time(number))),
            position: Some(its::Position { latitude_deg, longitude_deg, altitude_m: Some(269.5) }),
            speed_mps: Some(13.25),
            heading_deg: Some(270.5),
            payload: self.cam.clone(),
            ..Default::default()
        }
    }

    /// A question for 100 messages from the time of that message on.
    #[must_use]
    pub fn since(&self, number: u64) -> Query {
        Query { from: Some(self.time(number)), ..hundred(Filter::ALL) }
    }

    /// A question for 100 messages of the station that sent that message.
    #[must_use]
    pub fn of_station(&self, number: u64) -> Query {
        let station = u32::try_from(number % u64::from(self.stations.max(1))).ok();
        hundred(Filter { station, ..Filter::ALL })
    }

    /// A question for 100 messages from around the station that sent that message.
    #[must_use]
    pub fn in_box(&self, number: u64) -> Query {
        let (latitude, longitude) =
            self.place(u32::try_from(number % u64::from(self.stations.max(1))).unwrap_or_default());
        let half = BOX_DEG / 2.0;
        let bbox = BoundingBox::new(longitude - half, latitude - half, longitude + half, latitude + half).ok();
        hundred(Filter { bbox, ..Filter::ALL })
    }

    fn time(&self, number: u64) -> Tai {
        let nanos = u128::from(number) * 1_000_000_000 / u128::from(self.rate_hz.max(1));
        Tai::from_nanos(self.start.nanos().saturating_add(i64::try_from(nanos).unwrap_or(i64::MAX)))
    }

    /// Latitude and longitude of a station.
    fn place(&self, station: u32) -> (f64, f64) {
        let draw = scramble(self.seed ^ u64::from(station));
        let part = |bits: u64| (bits & 0xFFFF_FFFF) as f64 / 4_294_967_296.0;
        (SOUTH_DEG + SIDE_DEG * part(draw), WEST_DEG + SIDE_DEG * part(draw >> 32))
    }
}

fn hundred(filter: Filter) -> Query {
    Query { filter, from: None, to: None, after: None, limit: 100 }
}

/// One step of SplitMix64: numbers that look drawn, the same for the same seed.
fn scramble(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Cache as _, CacheLimits, MemoryCache};

    #[test]
    fn the_three_questions_have_answers() {
        let load = Load { stations: 50, rate_hz: 100, start: Tai::from_nanos(0), seed: 1, cam: Bytes::new() };
        let cache = MemoryCache::new(CacheLimits::default());
        for number in 0..10_000 {
            cache.insert(&load.message(number)).unwrap();
        }
        let since = cache.query(&load.since(5000)).entries;
        assert_eq!((since.len(), since[0].seq()), (100, 5001));
        assert!(cache.query(&load.of_station(7)).entries.iter().all(|entry| entry.station_id() == 7));
        assert_eq!(cache.query(&load.in_box(7)).entries.len(), 100);
    }
}
