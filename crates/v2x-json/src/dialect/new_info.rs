//! Detection of messages with new information about their station.

use std::{collections::BTreeMap, time::Duration};

use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, Tai};

use viaduct_its::{facilities::Summary, limits::NEW_INFO_STATIONS_MAX};

/// Differences that trigger a new CAM (EN 302 637-2, 6.1.3). vanetza-nap uses the same values.
const DISTANCE: Metres = Metres(4.0);
const SPEED: MetresPerSecond = MetresPerSecond(0.5);
const HEADING: Degrees = Degrees(4.0);
const AGE: Duration = Duration::from_secs(1);

/// Last reported state of each station.
#[derive(Debug, Default)]
pub struct NewInfo {
    /// States by station ID, at most [`NEW_INFO_STATIONS_MAX`].
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
    /// Returns `true` if the message differs from the last reported state of its station, and stores its state as the
    /// new reference. Returns `true` for every message without position, speed or heading.
    pub fn observe(&mut self, message: &Summary, at: Tai) -> bool {
        let (Some(position), Some(speed), Some(heading)) = (message.position, message.speed, message.heading) else {
            return true;
        };
        let state = State { at, position, speed, heading };
        let is_new = self.stations.get(&message.station_id).is_none_or(|last| last.differs_from(&state));
        if is_new {
            self.store(message.station_id, state);
        }
        is_new
    }

    /// Stores the state of a station. If the limit is reached, a new station is not stored, so its next message
    /// counts as new.
    fn store(&mut self, station_id: StationId, state: State) {
        if let Some(stored) = self.stations.get_mut(&station_id) {
            *stored = state;
            return;
        }
        if self.stations.len() >= NEW_INFO_STATIONS_MAX {
            // The next message of these stations counts as new in any case.
            self.stations.retain(|_, last| last.time_difference(&state) < AGE);
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
            || self.time_difference(next) >= AGE
    }

    /// Returns the absolute time difference: the clock may step back, so either can be later.
    fn time_difference(&self, other: &Self) -> Duration {
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
    fn a_change_of_state_or_a_second_is_new() {
        let mut info = NewInfo::default();
        assert!(info.observe(&summary(1, 359.0), millis(0)), "first message");
        assert!(!info.observe(&summary(1, 359.0), millis(100)));
        assert!(!info.observe(&summary(1, 2.0), millis(200)), "3 degrees, over north");
        assert!(info.observe(&summary(1, 3.0), millis(300)), "4 degrees");
        let moved = Summary { position: Some(Position::new(48.000_04, 11.0)), ..summary(1, 3.0) };
        assert!(info.observe(&moved, millis(400)), "4.4 m");
        let faster = Summary { speed: Some(MetresPerSecond(9.5)), ..moved };
        assert!(info.observe(&faster, millis(500)));
        assert!(!info.observe(&faster, millis(1499)));
        assert!(info.observe(&faster, millis(1500)), "a second");
        assert!(info.observe(&Summary { speed: None, ..faster }, millis(1501)), "no speed");
    }

    #[test]
    fn a_stored_station_stays_when_the_limit_is_reached() {
        let mut info = NewInfo::default();
        for station in 0..NEW_INFO_STATIONS_MAX as u32 {
            assert!(info.observe(&summary(station, 0.0), millis(0)));
        }
        assert!(info.observe(&summary(7, 10.0), millis(100)));
        assert!(!info.observe(&summary(7, 10.0), millis(200)), "its state is stored");
        assert!(info.observe(&summary(1_000_000, 0.0), millis(300)));
        assert!(info.observe(&summary(1_000_000, 0.0), millis(400)), "it was not stored");
        assert_eq!(info.stations.len(), NEW_INFO_STATIONS_MAX);
    }

    #[test]
    fn a_clock_that_steps_back_suppresses_no_message() {
        let mut info = NewInfo::default();
        for station in 0..NEW_INFO_STATIONS_MAX as u32 {
            assert!(info.observe(&summary(station, 0.0), millis(60_000)));
        }
        assert!(info.observe(&summary(7, 0.0), millis(0)));
        assert!(!info.observe(&summary(7, 0.0), millis(100)));
        assert!(info.observe(&summary(1_000_000, 0.0), millis(200)));
        assert_eq!(info.stations.len(), 2, "states from before the step are dropped");
    }

    #[test]
    fn the_number_of_stations_is_limited_and_old_ones_are_dropped() {
        let mut info = NewInfo::default();
        for station in 0..NEW_INFO_STATIONS_MAX as u32 + 10 {
            assert!(info.observe(&summary(station, 0.0), millis(0)));
        }
        assert_eq!(info.stations.len(), NEW_INFO_STATIONS_MAX);
        assert!(info.observe(&summary(1_000_000, 0.0), millis(2000)));
        assert_eq!(info.stations.len(), 1);
    }
}
