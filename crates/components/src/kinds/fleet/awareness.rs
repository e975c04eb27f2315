//! Generation of the CAMs of a simulated vehicle.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_its::facilities::ca_service::{CaService, CaSettings, T_GEN_CAM_MIN};
use viaduct_its::facilities::cam::{CamInput, LowFrequency, PathPoint};
use viaduct_its::facilities::{ConfidenceEllipse, VehicleState};
use viaduct_units::{Metres, Mono, Now, StationId, StationType};

use super::vehicle::Vehicle;

/// Minimum interval between low-frequency containers (EN 302 637-2, 6.1.3).
const LOW_FREQUENCY_PERIOD: Duration = Duration::from_millis(500);

/// Maximum number of points of a path history (EN 302 637-2 allows 40; field recordings have 5 to 23).
const PATH_POINTS_MAX: usize = 10;

/// Rule that triggers CAMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CamGeneration {
    /// At `rate_hz`, regardless of the movement: an even load.
    #[default]
    Fixed,
    /// By the rules of the CA service (EN 302 637-2, 6.1.3): 1/s to 10/s, depending on the movement of each vehicle.
    Rules,
}

impl CamGeneration {
    /// Returns the interval between the turns of a vehicle. With [`Self::Rules`], a turn checks the trigger conditions
    /// (`T_CheckCamGen`), and the service decides the time of the next one.
    pub(super) fn period(self, rate_hz: f64) -> Duration {
        match self {
            Self::Fixed => Duration::from_secs_f64(1.0 / rate_hz),
            Self::Rules => T_GEN_CAM_MIN,
        }
    }

    /// Returns the maximum interval of the timer that starts due turns: a late turn delays the next CAM.
    pub(super) const fn turn_max(self) -> Duration {
        match self {
            Self::Fixed => Duration::MAX,
            Self::Rules => Duration::from_millis(2),
        }
    }
}

/// The generator of the CAMs of one vehicle.
pub(super) enum Awareness {
    /// Each turn has a CAM.
    Fixed { low_frequency_due: Mono },
    /// The CA service decides.
    Rules(Box<CaService>),
}

impl Awareness {
    pub(super) fn new(generation: CamGeneration, station_id: StationId, vehicle: &Vehicle, now: Now) -> Self {
        match generation {
            CamGeneration::Fixed => Self::Fixed { low_frequency_due: now.mono },
            CamGeneration::Rules => Self::Rules(Box::new(CaService::new(CaSettings {
                station_type: StationType::PASSENGER_CAR,
                length: Some(vehicle.state().length),
                width: Some(vehicle.state().width),
                ..CaSettings::new(station_id)
            }))),
        }
    }

    /// Returns the time of the next turn, or `None` if it is one period after the last one.
    pub(super) fn next_turn(&self) -> Option<Mono> {
        match self {
            Self::Fixed { .. } => None,
            Self::Rules(service) => service.poll_timeout(),
        }
    }

    /// Returns the CAM of this turn, or `None` if none is due.
    pub(super) fn cam(&mut self, now: Now, station_id: StationId, vehicle: &Vehicle) -> Option<CamInput> {
        match self {
            Self::Fixed { low_frequency_due } => {
                let due = now.mono >= *low_frequency_due;
                if due {
                    *low_frequency_due = now.mono.plus(LOW_FREQUENCY_PERIOD);
                }
                Some(CamInput { low_frequency: due.then(|| low_frequency(vehicle)), ..cam(now, station_id, vehicle) })
            }
            Self::Rules(service) => {
                service.set_vehicle(now, &state(now, vehicle));
                service.handle_timeout(now).map(|(cam, _)| cam)
            }
        }
    }
}

/// Returns the movement of the vehicle as its positioning and its vehicle bus would report it.
fn state(now: Now, vehicle: &Vehicle) -> VehicleState {
    let state = vehicle.state();
    VehicleState {
        time: now.tai,
        position: Some(state.position),
        position_confidence: Some(ConfidenceEllipse::circle(Metres(1.0))),
        altitude: Some(state.altitude),
        speed: Some(state.speed),
        heading: Some(state.heading),
        longitudinal_acceleration: Some(state.acceleration),
        yaw_rate: Some(state.yaw_rate),
        ..VehicleState::default()
    }
}

fn cam(now: Now, station_id: StationId, vehicle: &Vehicle) -> CamInput {
    let state = state(now, vehicle);
    let size = vehicle.state();
    CamInput {
        station_type: StationType::PASSENGER_CAR,
        position: state.position,
        position_confidence: state.position_confidence,
        altitude: state.altitude,
        speed: state.speed,
        heading: state.heading,
        longitudinal_acceleration: state.longitudinal_acceleration,
        yaw_rate: state.yaw_rate,
        length: Some(size.length),
        width: Some(size.width),
        ..CamInput::new(station_id, now.tai)
    }
}

fn low_frequency(vehicle: &Vehicle) -> LowFrequency {
    let altitude = Some(vehicle.state().altitude);
    let point = |(position, travel_time)| PathPoint { position, altitude, travel_time: Some(travel_time) };
    LowFrequency { exterior_lights: 0, path_history: vehicle.path(PATH_POINTS_MAX).map(point).collect() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use viaduct_units::{Rng, Tai};

    use super::*;
    use crate::motion::road::RoadNetwork;

    /// Returns the times of the CAMs of one vehicle that drives alone for two minutes.
    fn drive(generation: CamGeneration, rate_hz: f64) -> Vec<Mono> {
        let roads = Arc::new(RoadNetwork::load(None).unwrap());
        let mut vehicle = Vehicle::new(roads, &mut Rng::new(7));
        let mut now = Now { mono: Mono(Duration::ZERO), tai: Tai::from_nanos(1_800_000_000_000_000_000) };
        let mut awareness = Awareness::new(generation, StationId(1), &vehicle, now);
        let (period, mut sent) = (generation.period(rate_hz), Vec::new());
        while now.mono < Mono(Duration::from_secs(120)) {
            vehicle.step(period, None);
            now = now.plus(period);
            sent.extend(awareness.cam(now, StationId(1), &vehicle).map(|_| now.mono));
        }
        sent
    }

    fn distances(sent: &[Mono]) -> Vec<Duration> {
        sent.windows(2).map(|pair| pair[1].since(pair[0])).collect()
    }

    /// EN 302 637-2, 6.1.3: turns with varying delays cost no CAM, and no CAM is sent too early.
    #[test]
    fn late_turns_do_not_slow_the_rules() {
        let roads = Arc::new(RoadNetwork::load(None).unwrap());
        let mut vehicle = Vehicle::new(roads, &mut Rng::new(7));
        let mut now = Now { mono: Mono(Duration::ZERO), tai: Tai::from_nanos(1_800_000_000_000_000_000) };
        let mut awareness = Awareness::new(CamGeneration::Rules, StationId(1), &vehicle, now);
        let mut sent = Vec::new();
        for late in [300, 100, 1_900, 0, 1_200, 1_100].into_iter().cycle().take(1_200) {
            sent.extend(awareness.cam(now, StationId(1), &vehicle).map(|_| now.mono));
            let due = awareness.next_turn().unwrap();
            let next = now.plus(due.plus(Duration::from_micros(late)).since(now.mono));
            vehicle.step(next.mono.since(now.mono), None);
            now = next;
        }
        let on_time = drive(CamGeneration::Rules, 10.0).len();
        assert!(sent.len() * 20 >= on_time * 19, "{} of {on_time}", sent.len());
        let distances = distances(&sent);
        assert!(distances.iter().all(|distance| *distance >= T_GEN_CAM_MIN), "{distances:?}");
    }

    #[test]
    fn a_fixed_rate_does_not_depend_on_the_movement() {
        let sent = drive(CamGeneration::Fixed, 5.0);
        assert_eq!(sent.len(), 600);
        assert!(distances(&sent).iter().all(|distance| *distance == Duration::from_millis(200)));
    }

    /// EN 302 637-2, 6.1.3: the rate is between 1 and 10 Hz and follows the movement.
    #[test]
    fn by_the_rules_the_rate_follows_the_movement() {
        let distances = distances(&drive(CamGeneration::Rules, 10.0));
        let (least, most) = (distances.iter().min().unwrap(), distances.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(100) && *most <= Duration::from_millis(1000), "{least:?} {most:?}");
        assert!(*most > 2 * *least, "{least:?} {most:?}");
    }
}
