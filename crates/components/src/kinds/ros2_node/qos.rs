//! Quality of service that fits the discovered peers.

use std::time::Duration;

use viaduct_bus::{Durability, Qos, Reliability};

/// Returns the quality of service with which a subscription receives from all of these publishers: reliable and transient local if all
/// of them are. Deadline, lifespan and liveliness are not requested.
pub(super) fn for_publishers<'a>(offered: impl Iterator<Item = &'a Qos>) -> Qos {
    let mut qos = Qos::ros_default();
    let mut is_transient = None;
    for one in offered {
        if one.reliability == Reliability::BestEffort {
            qos.reliability = Reliability::BestEffort;
        }
        is_transient = Some(is_transient.unwrap_or(true) && one.durability == Durability::TransientLocal);
    }
    if is_transient == Some(true) { qos.transient_local() } else { qos }
}

/// Returns the quality of service with which a publication serves all of these subscribers: reliable, and the strongest of what they
/// request.
pub(super) fn for_subscribers<'a>(requested: impl Iterator<Item = &'a Qos>) -> Qos {
    let mut qos = Qos::ros_default();
    for one in requested {
        qos.durability = qos.durability.max(one.durability);
        qos.deadline = shortest(qos.deadline, one.deadline);
        qos.liveliness = qos.liveliness.max(one.liveliness);
        qos.lease = shortest(qos.lease, one.lease);
    }
    qos
}

/// Returns the time that a writer waits for slow readers.
#[cfg(feature = "ros2")]
pub(super) const fn max_blocking_time(qos: &Qos) -> Duration {
    match qos.reliability {
        Reliability::Reliable { block } => block,
        Reliability::BestEffort => Duration::ZERO,
    }
}

fn shortest<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_requests_what_all_publishers_offer() {
        let (volatile, latched, sensor) =
            (Qos::ros_default(), Qos::ros_default().transient_local(), Qos::sensor_data());
        for (offered, expected) in [
            (vec![], volatile),
            (vec![latched], latched),
            (vec![latched, volatile], volatile),
            (vec![volatile, sensor], Qos::keep_last(10)),
            (vec![sensor.transient_local()], Qos::keep_last(10).transient_local()),
            (vec![volatile.deadline(Duration::from_secs(1))], volatile),
        ] {
            let qos = for_publishers(offered.iter());
            assert_eq!(qos, expected, "{offered:?}");
            assert!(offered.iter().all(|one| one.serves(&qos).is_ok()));
        }
    }

    #[test]
    fn a_publication_serves_all_subscribers() {
        let second = Duration::from_secs(1);
        let requested = [
            Qos::sensor_data(),
            Qos::ros_default().transient_local().deadline(second * 2),
            Qos::ros_default().deadline(second),
            Qos::ros_default().manual_liveliness(second * 3),
        ];
        let qos = for_subscribers(requested.iter());
        assert!(requested.iter().all(|one| qos.serves(one).is_ok()), "{qos:?}");
        assert_eq!((qos.deadline, qos.lease), (Some(second), Some(second * 3)));
        assert_eq!(for_subscribers([].iter()), Qos::ros_default());
    }
}
