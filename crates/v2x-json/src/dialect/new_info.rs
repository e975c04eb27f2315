//! Whether a message tells something new about its station.

use std::{collections::BTreeMap, time::Duration};

use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, Tai};

use viaduct_its::{facilities::Summary, limits::NEW_INFO_STATIONS_MAX};

/// The differences that a new CAM is generated for (EN 302 637-2, 6.1.3), which vanetza-nap asks for too.
const DISTANCE: Metres = Metres(4.0);
const SPEED: MetresPerSecond = MetresPerSecond(0.5);
const HEADING: Degrees = Degrees(4.0);
const AGE: Duration = Duration::from_secs(1);

/// What was last told about each station.
#[derive(Debug, Default)]
pub struct NewInfo {
    /// By station ID, at most [`NEW_INFO_STATIONS_MAX`].
    stations: BTreeMap<StationId, State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    at: Tai,
    position: Position,
    speed: MetresPerSecond,
    heading: Degrees,
}

impl NewInfo {
    /// Whether the message tells something new; it is then what the next one is compared with. A message that does not say
    /// position, speed and heading always does.
    pub fn tells(&mut self, message: &Summary, at: Tai) -> bool {
        let (Some(position), Some(speed), Some(heading)) = (message.position, message.speed, message.heading) else {
            return true;
        };
        let state = State { at, position, speed, heading };
        let is_new = self.stations.get(&message.station_id).is_none_or(|last| last.differs_from(&state));
        if is_new {
            self.keep(message.station_id, state);
        }
        is_new
    }

    /// Where there is no room for a station, it is not kept: its next message is told as new.
    fn keep(&mut self, station_id: StationId, state: State) {
        if let Some(known) = self.stations.get_mut(&station_id) {
            *known = state;
            return;
        }
        if self.stations.len() >= NEW_INFO_STATIONS_MAX {
            // What is older than this is new in any case.
            self.stations.retain(|_, last| last.apart(&state) < AGE);
        }
        if self.stations.len() < NEW_INFO_STATIONS_MAX {
            self.stations.insert(station_id, state);
        }
    }
}

impl State {
    fn differs_from(&self, next: &Self) -> bool {
        let turn = (next.heading.value() - self.heading.value()).abs() % 360.0;
        self.position.distance(next.position) >= DISTANCE
            || (next.speed.value() - self.speed.value()).abs() >= SPEED.value()
            || turn.min(360.0 - turn) >= HEADING.value()
            || self.apart(next) >= AGE
    }

    /// Time between them, whichever is later: the moments are those of a clock that may step back.
    fn apart(&self, other: &Self) -> Duration {
        self.at.since(other.at).max(other.at.since(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(station: u32, heading_deg: f64) -> Summary {
        Summary {
            station_id: StationId(station),
            station_type: None,
            generation: None,
            position: Some(Position::new(48.0, 11.0)),
            altitude: None,
            speed: Some(MetresPerSecond(10.0)),
            heading: Some(Degrees(heading_deg)),
        }
    }

    fn millis(count: i64) -> Tai {
        Tai::from_nanos(count * 1_000_000)
    }

    #[test]
    fn a_station_that_moved_turned_or_waited_tells_something_new() {
        let mut info = NewInfo::default();
        assert!(info.tells(&summary(1, 359.0), millis(0)), "the first one");
        assert!(!info.tells(&summary(1, 359.0), millis(100)));
        assert!(!info.tells(&summary(1, 2.0), millis(200)), "3 degrees, over north");
        assert!(info.tells(&summary(1, 3.0), millis(300)), "4 degrees");
        let moved = Summary { position: Some(Position::new(48.000_04, 11.0)), ..summary(1, 3.0) };
        assert!(info.tells(&moved, millis(400)), "4.4 m");
        let faster = Summary { speed: Some(MetresPerSecond(9.5)), ..moved };
        assert!(info.tells(&faster, millis(500)));
        assert!(!info.tells(&faster, millis(1499)));
        assert!(info.tells(&faster, millis(1500)), "a second");
        assert!(info.tells(&Summary { speed: None, ..faster }, millis(1501)), "it does not say");
    }

    #[test]
    fn a_known_station_is_kept_where_there_is_no_room_for_others() {
        let mut info = NewInfo::default();
        for station in 0..NEW_INFO_STATIONS_MAX as u32 {
            assert!(info.tells(&summary(station, 0.0), millis(0)));
        }
        assert!(info.tells(&summary(7, 10.0), millis(100)));
        assert!(!info.tells(&summary(7, 10.0), millis(200)), "it is known where it was last");
        assert!(info.tells(&summary(1_000_000, 0.0), millis(300)));
        assert!(info.tells(&summary(1_000_000, 0.0), millis(400)), "it was not kept");
        assert_eq!(info.stations.len(), NEW_INFO_STATIONS_MAX);
    }

    #[test]
    fn a_clock_that_steps_back_silences_nobody() {
        let mut info = NewInfo::default();
        for station in 0..NEW_INFO_STATIONS_MAX as u32 {
            assert!(info.tells(&summary(station, 0.0), millis(60_000)));
        }
        assert!(info.tells(&summary(7, 0.0), millis(0)));
        assert!(!info.tells(&summary(7, 0.0), millis(100)));
        assert!(info.tells(&summary(1_000_000, 0.0), millis(200)));
        assert_eq!(info.stations.len(), 2, "what the clock said before is old");
    }

    #[test]
    fn the_memory_has_a_bound_and_forgets_the_old() {
        let mut info = NewInfo::default();
        for station in 0..NEW_INFO_STATIONS_MAX as u32 + 10 {
            assert!(info.tells(&summary(station, 0.0), millis(0)));
        }
        assert_eq!(info.stations.len(), NEW_INFO_STATIONS_MAX);
        assert!(info.tells(&summary(1_000_000, 0.0), millis(2000)));
        assert_eq!(info.stations.len(), 1);
    }
}
