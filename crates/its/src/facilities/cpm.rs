//! Collective perception message, TS 103 324 V2.1.1.

use std::time::Duration;

use viaduct_etsi::cpm_ts103324_v211::{Cpm, CpmContainer};
use viaduct_units::{Degrees, Tai, TimestampIts};

use super::{Summary, scale};

/// A reference time further from the reception than this is taken for no time at all: senders in the field put a wrapped
/// 16-bit counter into the field.
const REFERENCE_TIME_OFFSET_MAX: Duration = Duration::from_secs(24 * 3600);

/// What nearly everybody asks a CPM for. Its station type and speed are not in the message.
#[must_use]
pub fn summary(cpm: &Cpm, reception: Tai) -> Summary {
    let at = &cpm.management_container.reference_position;
    Summary {
        station_id: cpm.header.station_id.0,
        station_type: None,
        generation: generation(cpm.management_container.reference_time.0, reception),
        position: scale::position(at.latitude.0, at.longitude.0),
        altitude: scale::altitude(at.altitude.altitude_value.0),
        speed: None,
        heading: cpm.containers.iter().find_map(orientation),
    }
}

/// How many objects the message describes (it may have perceived more).
#[must_use]
pub fn object_count(cpm: &Cpm) -> usize {
    cpm.containers
        .iter()
        .map(|container| match container {
            CpmContainer::PerceivedObject(objects) => objects.perceived_objects.0.len(),
            _ => 0,
        })
        .sum()
}

/// `referenceTime` has all bits of `TimestampIts`, so there is nothing to widen.
fn generation(reference_time: u64, reception: Tai) -> Option<Tai> {
    let moment = TimestampIts(reference_time).tai();
    let offset = moment.since(reception).max(reception.since(moment));
    (offset <= REFERENCE_TIME_OFFSET_MAX).then_some(moment)
}

fn orientation(container: &CpmContainer) -> Option<Degrees> {
    match container {
        CpmContainer::OriginatingVehicle(vehicle) => scale::heading(vehicle.orientation_angle.value.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_time_far_from_the_reception_is_none() {
        let reception = TimestampIts(650_000_000_000).tai();
        assert_eq!(generation(649_999_999_900, reception), Some(TimestampIts(649_999_999_900).tai()));
        assert_eq!(generation(650_000_000_100, reception), Some(TimestampIts(650_000_000_100).tai()));
        assert_eq!(generation(40_172, reception), None);
        assert_eq!(generation((1 << 42) - 1, reception), None);
    }
}
