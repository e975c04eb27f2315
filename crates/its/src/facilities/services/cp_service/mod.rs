//! CP service: CPMs with the objects that a station perceives (TS 103 324 V2.1.1, clause 6).
//!
//! A machine in virtual time: its inputs are the own state and the perceived objects, its output the content of each
//! CPM that is due.
//!
//! Not included:
//!
//! - redundancy mitigation by the value of information (annex E, optional)
//! - prediction of the next event (6.1.2.3, a permission)
//! - multi-channel operation (annex D)
//! - assembly by perception regions (6.1.3)

mod assembly;
mod inclusion;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use viaduct_units::{Mono, Now, Position, StationId, StationType};

pub use self::inclusion::{OBJECT_PERCEPTION_QUALITY_THRESHOLD, T_GEN_CPM_MAX};
use self::{
    assembly::{Assembly, assemble},
    inclusion::{Inclusion, is_good_enough},
};
use super::{VehicleState, schedule::Schedule};
use crate::{
    facilities::{
        Offset,
        cpm::{CpmInput, OBJECTS_MAX, Object, Origin, PerceptionRegion, Sensor},
    },
    limits::PAYLOAD_OCTETS_MAX,
};

/// `T_GenCpmMin` of a vehicle (table F.1).
pub const T_GEN_CPM_MIN: Duration = Duration::from_millis(100);
/// `T_AddSensorInformation` (table F.1): time after which the sensors are included again.
pub const T_ADD_SENSOR_INFORMATION: Duration = Duration::from_millis(1000);
/// `MaxPerceptionRegions` (table F.1).
pub const MAX_PERCEPTION_REGIONS: usize = 8;
/// Maximum age of an object in a CPM: its time is at most 2047 ms from the reference time.
pub const MEASUREMENT_AGE_MAX: Duration = Duration::from_secs(2);

/// An object that the station perceives.
#[derive(Clone, Debug, PartialEq)]
pub struct PerceivedObject {
    /// Position at the time of measurement.
    pub position: Position,
    /// All other data. Its offset is calculated from the position when it is included.
    pub object: Object,
}

/// Settings of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpSettings {
    /// Identifier of the station.
    pub station_id: StationId,
    /// `StationType` (TS 102 894-2): 5 is a passenger car, 15 a roadside unit.
    pub station_type: StationType,
    /// `T_GenCpm`: time from one generation event to the next, within `T_GenCpmMin` and `T_GenCpmMax`.
    pub t_gen_cpm: Duration,
    /// `MTU_CPM`: octets of a message.
    pub octets_max: usize,
}

impl CpSettings {
    /// Returns the standard's defaults for a passenger car.
    #[must_use]
    pub const fn new(station_id: StationId) -> Self {
        Self {
            station_id,
            station_type: StationType::PASSENGER_CAR,
            t_gen_cpm: T_GEN_CPM_MIN,
            octets_max: PAYLOAD_OCTETS_MAX,
        }
    }
}

/// Counters of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpCounters {
    /// CPMs that were generated.
    pub generated: u64,
    /// Objects in these CPMs.
    pub objects_sent: u64,
    /// Objects beyond the 255 object ids of a message.
    pub objects_beyond_limit: u64,
    /// Objects whose measurement was too old. Each counts once, because it is then removed.
    pub objects_too_old: u64,
    /// Objects that did not fit, once for each generation event. They are due again at the next one.
    pub objects_postponed: u64,
    /// Objects that fit no message, once for each generation event: one of their classes is invalid, or they are larger
    /// than a message.
    pub objects_unsendable: u64,
    /// Objects with a quality of at most [`OBJECT_PERCEPTION_QUALITY_THRESHOLD`], once for each generation event.
    pub objects_below_quality: u64,
    /// Generation events whose message omits invalid sensors or regions.
    pub sensing_omitted: u64,
    /// Generation events without a CPM, because the own state was older than [`super::STATE_AGE_MAX`].
    pub state_too_old: u64,
}

/// The CP service of one station.
#[derive(Debug)]
pub struct CpService {
    settings: CpSettings,
    /// Movement of the station; `None` until it is set.
    state: Option<VehicleState>,
    /// Perceived objects, at most 255.
    objects: Vec<PerceivedObject>,
    sensors: Vec<Sensor>,
    regions: Vec<PerceptionRegion>,
    inclusion: Inclusion,
    /// Time of the last generation event with the sensors.
    sensors_sent: Option<Mono>,
    /// Times of the generation events.
    events: Schedule,
    counters: CpCounters,
}

impl CpService {
    /// Creates a service without perceived objects.
    #[must_use]
    pub fn new(settings: CpSettings) -> Self {
        let t_gen_cpm = settings.t_gen_cpm.clamp(T_GEN_CPM_MIN, T_GEN_CPM_MAX);
        Self {
            settings,
            state: None,
            objects: Vec::new(),
            sensors: Vec::new(),
            regions: Vec::new(),
            inclusion: Inclusion::default(),
            sensors_sent: None,
            events: Schedule::new(t_gen_cpm, t_gen_cpm),
            counters: CpCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> CpCounters {
        self.counters
    }

    /// Sets the movement of the station. The first one starts the generation events.
    pub fn set_vehicle(&mut self, now: Now, state: &VehicleState) {
        self.state = Some(*state);
        if state.position.is_some() {
            self.events.start(now.mono);
        }
    }

    /// Sets the sensors. Their areas are relative to the reference position.
    pub fn set_sensors(&mut self, sensors: Vec<Sensor>) {
        self.sensors = sensors;
        self.sensors_sent = None;
    }

    /// Sets the regions in which objects would be perceived at present. They are sent together with the sensors. Those
    /// beyond [`MAX_PERCEPTION_REGIONS`] are ignored.
    pub fn set_regions(&mut self, mut regions: Vec<PerceptionRegion>) {
        regions.truncate(MAX_PERCEPTION_REGIONS);
        self.regions = regions;
    }

    /// Sets all objects that are perceived now. An object keeps its number as long as it is perceived.
    pub fn set_objects(&mut self, mut objects: Vec<PerceivedObject>) {
        let beyond = objects.len().saturating_sub(OBJECTS_MAX);
        self.counters.objects_beyond_limit += u64::try_from(beyond).unwrap_or(u64::MAX);
        objects.truncate(OBJECTS_MAX);
        self.inclusion.keep_only(&objects);
        self.objects = objects;
    }

    /// Sets the minimum time between generation events that the channel allows.
    pub fn set_t_gen_cpm(&mut self, interval: Duration) {
        let interval = self.settings.t_gen_cpm.max(interval).clamp(T_GEN_CPM_MIN, T_GEN_CPM_MAX);
        self.events.set_interval(interval);
        self.events.set_least(interval);
    }

    /// Handles one generation event if it is due. Returns the CPMs that are due, 0 to 8.
    pub fn handle_timeout(&mut self, now: Now) -> Vec<CpmInput> {
        let Some(at) = self.events.take_due(now.mono) else {
            return Vec::new();
        };
        let Some((state, position)) = self.state.and_then(|state| Some((state, state.position?))) else {
            return Vec::new();
        };
        if !state.is_current(now) {
            self.counters.state_too_old += 1;
            return Vec::new();
        }
        let messages = self.generate(at, &state, position);
        if !messages.is_empty() {
            self.events.note_message(at, now.mono);
        }
        messages
    }

    /// Returns the time at which [`Self::handle_timeout`] is to be called, or `None` before the first state.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.events.due()
    }

    fn generate(&mut self, at: Mono, state: &VehicleState, position: Position) -> Vec<CpmInput> {
        let fresh = self.fresh_objects(state);
        let below_quality = fresh.iter().filter(|object| !is_good_enough(object)).count();
        self.counters.objects_below_quality += u64::try_from(below_quality).unwrap_or(u64::MAX);
        let selected = self.inclusion.select(at, &fresh);
        let first = self.first_message(at, state, fresh.len());
        if selected.is_empty() && first.sensors.is_empty() {
            return Vec::new();
        }
        let relative: Vec<Object> = selected.iter().map(|object| relative_to(object, position)).collect();
        let assembly = assemble(&first, &relative, self.settings.octets_max);
        self.note_included(at, &selected, &assembly);
        if !first.sensors.is_empty() {
            self.sensors_sent = Some(at);
        }
        self.count(&assembly);
        assembly.messages
    }

    /// Records the objects that the messages include.
    fn note_included(&mut self, at: Mono, selected: &[&PerceivedObject], assembly: &Assembly) {
        let ids: BTreeSet<u16> = assembly.messages.iter().flat_map(|it| &it.objects).map(|object| object.id).collect();
        for object in selected.iter().filter(|object| ids.contains(&object.object.id)) {
            self.inclusion.note_included(at, object);
        }
    }

    /// Returns the objects that are recent enough for the reference time. The others are removed, since their sensor no
    /// longer reports.
    fn fresh_objects(&mut self, state: &VehicleState) -> Vec<PerceivedObject> {
        let apart = |object: &PerceivedObject| {
            let measured = object.object.measurement;
            measured.since(state.time).max(state.time.since(measured))
        };
        let before = self.objects.len();
        self.objects.retain(|object| apart(object) <= MEASUREMENT_AGE_MAX);
        if self.objects.len() < before {
            self.counters.objects_too_old += u64::try_from(before - self.objects.len()).unwrap_or(u64::MAX);
            self.inclusion.keep_only(&self.objects);
        }
        self.objects.clone()
    }

    /// Returns a message without objects, with the sensors and regions if they are due (6.1.2.2).
    fn first_message(&self, at: Mono, state: &VehicleState, perceived: usize) -> CpmInput {
        let sensors_due = self.sensors_sent.is_none_or(|sent| at.since(sent) >= T_ADD_SENSOR_INFORMATION);
        let origin = if self.settings.station_type.is_roadside_unit() {
            Origin::RoadsideUnit { map: None }
        } else {
            Origin::Vehicle { orientation: state.heading, orientation_confidence: state.heading_confidence }
        };
        CpmInput {
            position: state.position,
            position_confidence: state.position_confidence,
            altitude: state.altitude,
            altitude_confidence: state.altitude_confidence,
            sensors: if sensors_due { self.sensors.clone() } else { Vec::new() },
            regions: if sensors_due { self.regions.clone() } else { Vec::new() },
            objects_perceived: u8::try_from(perceived).ok(),
            ..CpmInput::new(self.settings.station_id, state.time, origin)
        }
    }

    fn count(&mut self, assembly: &Assembly) {
        let counted = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let objects = assembly.messages.iter().map(|message| message.objects.len()).sum();
        self.counters.generated += counted(assembly.messages.len());
        self.counters.objects_sent += counted(objects);
        self.counters.objects_postponed += counted(assembly.left_out);
        self.counters.objects_unsendable += counted(assembly.unsendable);
        self.counters.sensing_omitted += u64::from(assembly.sensing_omitted);
    }
}

/// Returns the object as a CPM contains it: relative to the reference position.
fn relative_to(object: &PerceivedObject, reference: Position) -> Object {
    let z = object.object.offset.z;
    Object { offset: Offset { z, ..Offset::between(reference, object.position) }, ..object.object.clone() }
}
