//! Selection of the objects for the next CPM (TS 103 324 V2.1.1, 6.1.2.3), and their order (6.1.3).

use std::{collections::BTreeMap, time::Duration};

use viaduct_units::{Degrees, MetresPerSecond, Mono};

use super::PerceivedObject;
use crate::facilities::{
    cpm::{ObjectClass, VruProfileAndSubprofile},
    services::motion::{DIRECTION_CHANGE, Motion, POSITION_CHANGE, SPEED_CHANGE, angle_between},
};

/// `T_GenCpmMax` (table F.1): longest time after which an object is included again.
pub const T_GEN_CPM_MAX: Duration = Duration::from_millis(1000);
/// `ObjectPerceptionQualityThreshold` (table F.1): objects of this quality or less are not included.
pub const OBJECT_PERCEPTION_QUALITY_THRESHOLD: u8 = 3;
/// Minimum speed at which the direction of the movement is used. The value is not from the standard.
const DIRECTION_SPEED_MIN: MetresPerSecond = MetresPerSecond(0.1);

/// The two types of objects that the rules distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectType {
    /// Type-A: pedestrians, cyclists, animals, groups and other things.
    A,
    /// Type-B: vehicles and motorcyclists.
    B,
}

impl ObjectType {
    /// Returns the type by the most probable class. An object without class is treated as a vehicle, because the rules
    /// for its movement suit any object.
    pub(super) fn of(object: &PerceivedObject) -> Self {
        let probability = |(_, confidence): &&(ObjectClass, Option<f64>)| confidence.unwrap_or(0.0);
        let class = object.object.classes.iter().max_by(|a, b| probability(a).total_cmp(&probability(b)));
        match class.map(|(class, _)| class) {
            None
            | Some(
                ObjectClass::VehicleSubClass(_) | ObjectClass::VruSubClass(VruProfileAndSubprofile::Motorcyclist(_)),
            ) => Self::B,
            Some(_) => Self::A,
        }
    }
}

/// State of an object in the last CPM that included it.
#[derive(Clone, Copy, Debug)]
struct Included {
    at: Mono,
    motion: Motion,
}

/// Last included states of the objects that are currently perceived.
#[derive(Debug, Default)]
pub(super) struct Inclusion {
    included: BTreeMap<u16, Included>,
}

impl Inclusion {
    /// Removes objects that are no longer perceived. If they are perceived again, they are new.
    pub(super) fn keep_only(&mut self, perceived: &[PerceivedObject]) {
        let mut ids: Vec<u16> = perceived.iter().map(|object| object.object.id).collect();
        ids.sort_unstable();
        self.included.retain(|id, _| ids.binary_search(id).is_ok());
    }

    /// Returns the objects to include at a generation event, those with the highest utility first.
    pub(super) fn select<'a>(&self, at: Mono, perceived: &'a [PerceivedObject]) -> Vec<&'a PerceivedObject> {
        let all_of_type_a = perceived.iter().any(|object| {
            is_good_enough(object)
                && ObjectType::of(object) == ObjectType::A
                && self.age(at, object) >= Some(T_GEN_CPM_MAX / 2)
        });
        let mut selected: Vec<&PerceivedObject> = perceived
            .iter()
            .filter(|object| is_good_enough(object) && self.is_due(at, object, all_of_type_a))
            .collect();
        selected.sort_by(|a, b| self.utility(at, b).total_cmp(&self.utility(at, a)));
        selected
    }

    /// Records that a generation event included an object.
    pub(super) fn note_included(&mut self, at: Mono, object: &PerceivedObject) {
        self.included.insert(object.object.id, Included { at, motion: motion(object) });
    }

    fn is_due(&self, at: Mono, object: &PerceivedObject, all_of_type_a: bool) -> bool {
        let Some(included) = self.included.get(&object.object.id) else {
            return true;
        };
        match ObjectType::of(object) {
            ObjectType::A => all_of_type_a,
            ObjectType::B => {
                motion(object).change_since(&included.motion).is_some() || at.since(included.at) >= T_GEN_CPM_MAX
            }
        }
    }

    /// Returns the time since the object was included, or `None` if it was not.
    fn age(&self, at: Mono, object: &PerceivedObject) -> Option<Duration> {
        self.included.get(&object.object.id).map(|included| at.since(included.at))
    }

    /// Returns the object's utility for other stations (object utility function): quality, change of position, speed
    /// and direction, and time since it was included, each from 0 to 1. A new object has the maximum change.
    fn utility(&self, at: Mono, object: &PerceivedObject) -> f64 {
        let quality = object.object.quality.map_or(1.0, |quality| f64::from(quality) / 15.0);
        let Some(included) = self.included.get(&object.object.id) else {
            return quality + 4.0;
        };
        let part = |change: f64, threshold: f64| (change / threshold).min(1.0);
        let (here, before) = (motion(object), included.motion);
        let moved = here.position.zip(before.position).map_or(0.0, |(a, b)| a.distance(b).value());
        let faster = here.speed.zip(before.speed).map_or(0.0, |(a, b)| (a - b).value().abs());
        let turned = here.heading.zip(before.heading).map_or(0.0, |(a, b)| angle_between(a, b).value());
        quality
            + part(moved, POSITION_CHANGE.value())
            + part(faster, SPEED_CHANGE.value())
            + part(turned, DIRECTION_CHANGE.value())
            + part(at.since(included.at).as_secs_f64(), T_GEN_CPM_MAX.as_secs_f64())
    }
}

/// Objects without quality are included.
pub(super) fn is_good_enough(object: &PerceivedObject) -> bool {
    object.object.quality.is_none_or(|quality| quality > OBJECT_PERCEPTION_QUALITY_THRESHOLD)
}

/// Returns position, ground speed and direction of the ground velocity.
fn motion(object: &PerceivedObject) -> Motion {
    let velocity = object.object.velocity.map(|[east, north]| (east.value(), north.value()));
    let speed = velocity.map(|(east, north)| MetresPerSecond(east.hypot(north)));
    let direction = |(east, north): (f64, f64)| Degrees(east.atan2(north).to_degrees()).normalised();
    let heading = velocity.filter(|_| speed > Some(DIRECTION_SPEED_MIN)).map(direction);
    Motion { position: Some(object.position), speed, heading }
}
