//! Summaries of the messages of infrastructure services (TS 103 301 V2.2.1).
//!
//! None of them contains the type of its station.

use viaduct_etsi::{
    ivim_ts103301_v221::{self as ivi, Ivim},
    mapem_ts103301_v221::{Mapem, types as dsrc},
    spatem_ts103301_v221::Spatem,
    srem_ts103301_v221::Srem,
    ssem_ts103301_v221::Ssem,
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, Tai, TimestampIts};

use super::{Summary, minute_of_year, scale};

/// `Elevation`: unknown.
const ELEVATION_UNKNOWN: i32 = -4096;
/// `Elevation` is in tenths of a metre.
const PER_METRE: f64 = 10.0;
/// `Angle`: unavailable.
const ANGLE_UNAVAILABLE: u16 = 28_800;
/// `Angle` is in eightieths of a degree.
const PER_DEGREE: f64 = 80.0;
/// `Velocity`: unavailable.
const VELOCITY_UNAVAILABLE: u16 = 8191;
/// `Velocity` is in units of 2 cm/s.
const PER_METRE_PER_SECOND: f64 = 50.0;

/// Returns the summary of an IVIM. Its position is that of its first geographic location container.
pub(in crate::facilities) fn ivim(ivim: &Ivim, _reception: Tai) -> Summary {
    let containers = ivim.ivi.optional.as_ref().map_or(&[][..], |containers| &containers.0);
    let at = containers.iter().find_map(|container| match container {
        ivi::types::IviContainer::glc(location) => Some(&location.reference_position),
        _ => None,
    });
    Summary {
        generation: ivim.ivi.mandatory.time_stamp.as_ref().map(|time| TimestampIts(time.0).tai()),
        position: at.and_then(|at| scale::position(at.latitude.0, at.longitude.0)),
        altitude: at.and_then(|at| scale::altitude(at.altitude.altitude_value.0)),
        ..bare(StationId(ivim.header.station_id.0))
    }
}

/// Returns the summary of a MAPEM. Its position is that of its first intersection, or else of its first road segment.
/// The time in a MAPEM is that of the map, with a resolution of a minute, so the summary has none.
pub(in crate::facilities) fn mapem(mapem: &Mapem, _reception: Tai) -> Summary {
    let intersections = mapem.map.intersections.as_ref().and_then(|list| list.0.first());
    let segments = mapem.map.road_segments.as_ref().and_then(|list| list.0.first());
    let at = intersections.map(|intersection| &intersection.ref_point).or(segments.map(|segment| &segment.ref_point));
    Summary {
        position: at.and_then(position),
        altitude: at.and_then(elevation),
        ..bare(StationId(mapem.header.station_id.0))
    }
}

/// Returns the summary of a SPATEM. Its time is that of its first intersection. Only a MAPEM contains the position.
pub(in crate::facilities) fn spatem(spatem: &Spatem, reception: Tai) -> Summary {
    let first = spatem.spat.intersections.0.first();
    let minute = first.and_then(|state| state.moy.as_ref()).or(spatem.spat.time_stamp.as_ref());
    let second = first.and_then(|state| state.time_stamp.as_ref());
    let generation = minute.zip(second).and_then(|(minute, second)| moment(minute, second, reception));
    Summary { generation, ..bare(StationId(spatem.header.station_id.0)) }
}

/// Returns the summary of a SREM. Its position is that of the requestor.
pub(in crate::facilities) fn srem(srem: &Srem, reception: Tai) -> Summary {
    let at = srem.srm.requestor.position.as_ref();
    let minute = srem.srm.time_stamp.as_ref();
    Summary {
        generation: minute.and_then(|minute| moment(minute, &srem.srm.second, reception)),
        position: at.and_then(|at| position(&at.position)),
        altitude: at.and_then(|at| elevation(&at.position)),
        speed: at.and_then(|at| at.speed.as_ref()).and_then(|speed| velocity(speed.speed.0)),
        heading: at.and_then(|at| at.heading.as_ref()).and_then(|heading| angle(heading.0)),
        ..bare(StationId(srem.header.station_id.0))
    }
}

/// Returns the summary of a SSEM, which has a time but no position.
pub(in crate::facilities) fn ssem(ssem: &Ssem, reception: Tai) -> Summary {
    let minute = ssem.ssm.time_stamp.as_ref();
    let generation = minute.and_then(|minute| moment(minute, &ssem.ssm.second, reception));
    Summary { generation, ..bare(StationId(ssem.header.station_id.0)) }
}

/// Returns a summary with the station only.
const fn bare(station_id: StationId) -> Summary {
    Summary {
        station_id,
        station_type: None,
        generation: None,
        position: None,
        altitude: None,
        speed: None,
        heading: None,
    }
}

fn moment(minute: &dsrc::MinuteOfTheYear, second: &dsrc::DSecond, reception: Tai) -> Option<Tai> {
    minute_of_year::moment(minute.0, second.0, reception)
}

fn position(at: &dsrc::Position3D) -> Option<Position> {
    scale::position(at.lat.0, at.long.0)
}

fn elevation(at: &dsrc::Position3D) -> Option<Metres> {
    let elevation = at.elevation.as_ref()?.0;
    (elevation != ELEVATION_UNKNOWN).then(|| Metres(f64::from(elevation) / PER_METRE))
}

fn velocity(value: u16) -> Option<MetresPerSecond> {
    (value != VELOCITY_UNAVAILABLE).then(|| MetresPerSecond(f64::from(value) / PER_METRE_PER_SECOND))
}

fn angle(value: u16) -> Option<Degrees> {
    (value != ANGLE_UNAVAILABLE).then(|| Degrees(f64::from(value) / PER_DEGREE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facilities::{Message, MessageKind};

    /// 2026-11-22 07:00:00 UTC, minute 468 420 of its year.
    const RECEPTION_S: i64 = 1_795_330_800;

    fn summary(kind: MessageKind, json: &str) -> Summary {
        let message = Message::from_json(kind, json.as_bytes()).unwrap();
        let message = Message::decode(kind, &message.encode().unwrap()).unwrap();
        message.summary(Tai::from_unix_nanos(RECEPTION_S * 1_000_000_000))
    }

    fn unix_ms(summary: &Summary) -> Option<i64> {
        summary.generation.map(|moment| moment.unix_nanos() / 1_000_000)
    }

    #[test]
    fn an_ivim_has_the_position_of_its_first_location() {
        let summary = summary(
            MessageKind::Ivim,
            r#"{"header":{"protocolVersion":2,"messageId":6,"stationId":77},"ivi":{
                "mandatory":{"serviceProviderId":{"countryCode":"B480","providerIdentifier":5},
                    "iviIdentificationNumber":1,"timeStamp":692348000000,"iviStatus":0},
                "optional":[{"glc":{"referencePosition":{"latitude":450000000,"longitude":75000000,
                    "positionConfidenceEllipse":{"semiMajorConfidence":4095,"semiMinorConfidence":4095,
                    "semiMajorOrientation":3601},"altitude":{"altitudeValue":26980,
                    "altitudeConfidence":"unavailable"}},"parts":[{"zoneId":1}]}}]}}"#,
        );
        assert_eq!((summary.station_id, summary.station_type), (StationId(77), None));
        assert_eq!(summary.generation, Some(TimestampIts(692_348_000_000).tai()));
        assert_eq!((summary.position, summary.altitude), (Some(Position::new(45.0, 7.5)), Some(Metres(269.8))));
    }

    #[test]
    fn a_mapem_has_the_position_of_its_first_intersection() {
        let summary = summary(
            MessageKind::Mapem,
            r#"{"header":{"protocolVersion":2,"messageId":5,"stationId":78},"map":{"timeStamp":468420,
                "msgIssueRevision":0,"intersections":[{"id":{"id":3},"revision":1,
                "refPoint":{"lat":450000000,"long":75000000,"elevation":-5},
                "laneSet":[{"laneID":1,"laneAttributes":{"directionalUse":"80","sharedWith":"0000",
                "laneType":{"vehicle":{"value":"00","length":8}}},"nodeList":{"nodes":[
                {"delta":{"node-XY1":{"x":1,"y":-1}}},{"delta":{"node-XY1":{"x":0,"y":5}}}]}}]}]}}"#,
        );
        assert_eq!((summary.position, summary.altitude), (Some(Position::new(45.0, 7.5)), Some(Metres(-0.5))));
        assert_eq!((summary.station_id, summary.generation), (StationId(78), None));
    }

    #[test]
    fn a_spatem_has_the_time_of_its_first_intersection() {
        let text = |times: &str| {
            format!(
                r#"{{"header":{{"protocolVersion":2,"messageId":4,"stationId":79}},"spat":{{"intersections":[
                {{"id":{{"id":3}},"revision":1,"status":"0000",{times}"states":[{{"signalGroup":1,"state-time-speed":[
                {{"eventState":"stop-And-Remain","timing":{{"minEndTime":10}}}}]}}]}}]}}}}"#
            )
        };
        let timed = summary(MessageKind::Spatem, &text(r#""moy":468420,"timeStamp":250,"#));
        assert_eq!((unix_ms(&timed), timed.position), (Some(RECEPTION_S * 1000 + 250), None));
        let timeless = summary(MessageKind::Spatem, &text(r#""moy":468420,"timeStamp":65535,"#));
        assert_eq!((timeless.station_id, timeless.generation), (StationId(79), None));
        assert_eq!(summary(MessageKind::Spatem, &text("")).generation, None);
    }

    #[test]
    fn a_srem_has_the_position_of_its_requestor() {
        let text = |heading: u16, speed: u16| {
            format!(
                r#"{{"header":{{"protocolVersion":2,"messageId":9,"stationId":80}},"srm":{{"timeStamp":468419,
                "second":59999,"requestor":{{"id":{{"stationID":80}},"position":{{"position":{{"lat":450000000,
                "long":75000000,"elevation":-4096}},"heading":{heading},
                "speed":{{"transmisson":"forwardGears","speed":{speed}}}}}}}}}}}"#
            )
        };
        let known = summary(MessageKind::Srem, &text(7200, 500));
        assert_eq!(unix_ms(&known), Some(RECEPTION_S * 1000 - 1));
        assert_eq!((known.position, known.altitude), (Some(Position::new(45.0, 7.5)), None));
        assert_eq!((known.heading, known.speed), (Some(Degrees(90.0)), Some(MetresPerSecond(10.0))));
        let unknown = summary(MessageKind::Srem, &text(28_800, 8191));
        assert_eq!((unknown.heading, unknown.speed), (None, None));
    }

    #[test]
    fn a_ssem_has_a_time() {
        let summary = summary(
            MessageKind::Ssem,
            r#"{"header":{"protocolVersion":2,"messageId":10,"stationId":81},"ssm":{"timeStamp":468420,"second":1000,
                "status":[{"sequenceNumber":1,"id":{"id":3},"sigStatus":[{"inboundOn":{"lane":1},
                "status":"granted"}]}]}}"#,
        );
        assert_eq!((summary.station_id, unix_ms(&summary)), (StationId(81), Some(RECEPTION_S * 1000 + 1000)));
    }
}
