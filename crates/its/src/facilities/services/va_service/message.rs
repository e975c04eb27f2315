//! Conversion between the service's content and VAMs (TS 103 300-3, clause 7).

use std::time::Duration;

use viaduct_etsi::{
    cdd,
    vam_ts103300_3_v231::{Vam, types::VruClusterOperationContainer},
};
use viaduct_units::{Metres, StationId, StationType};

use super::{
    ClusterInformation, ClusterOperation, LeaveReason, MAX_CLUSTER_DISTANCE, ReceivedVam, VamContent, VruProfile,
};
use crate::facilities::{
    Shape,
    messages::scale,
    vam::{
        self, Cluster, ClusterBreakupReason, ClusterLeaveReason, VamInput, VruLowFrequency, VruProfileAndSubprofile,
        VruSubProfileAnimal, VruSubProfileBicyclist, VruSubProfileMotorcyclist, VruSubProfilePedestrian,
    },
};

/// `DeltaTimeQuarterSecond` in a second.
const QUARTERS_PER_SECOND: f64 = 4.0;
/// `StandardLength12b` in a metre.
const TENTHS_PER_METRE: f64 = 10.0;

impl VruProfile {
    const fn station_type(self) -> StationType {
        match self {
            Self::Pedestrian => StationType::PEDESTRIAN,
            Self::BicyclistAndLightVruVehicle => StationType::CYCLIST,
            Self::Motorcyclist => StationType::MOTORCYCLE,
            Self::Animal => StationType::ANIMAL,
        }
    }

    const fn with_subprofile(self) -> VruProfileAndSubprofile {
        match self {
            Self::Pedestrian => VruProfileAndSubprofile::Pedestrian(VruSubProfilePedestrian::UNAVAILABLE),
            Self::BicyclistAndLightVruVehicle => {
                VruProfileAndSubprofile::BicyclistAndLightVruVehicle(VruSubProfileBicyclist::UNAVAILABLE)
            }
            Self::Motorcyclist => VruProfileAndSubprofile::Motorcyclist(VruSubProfileMotorcyclist::UNAVAILABLE),
            Self::Animal => VruProfileAndSubprofile::Animal(VruSubProfileAnimal::UNAVAILABLE),
        }
    }
}

impl VamContent {
    /// Returns the input for building the VAM.
    #[must_use]
    pub fn input(&self) -> VamInput {
        let state = &self.state;
        let low_frequency = VruLowFrequency {
            profile: self.profile.with_subprofile(),
            size_class: None,
            exterior_lights: Some((state.exterior_lights, 0)),
        };
        VamInput {
            station_type: self.profile.station_type(),
            position: state.position,
            position_confidence: state.position_confidence,
            altitude: state.altitude,
            altitude_confidence: state.altitude_confidence,
            heading: state.heading,
            heading_confidence: state.heading_confidence,
            speed: state.speed,
            speed_confidence: state.speed_confidence,
            longitudinal_acceleration: state.longitudinal_acceleration,
            lateral_acceleration: state.lateral_acceleration,
            yaw_rate: state.yaw_rate,
            low_frequency: self.low_frequency.then_some(low_frequency),
            cluster: self.cluster.map(cluster),
            cluster_operation: self.operation.map(cluster_operation),
            ..VamInput::new(self.station_id, state.time)
        }
    }
}

fn cluster(it: ClusterInformation) -> Cluster {
    Cluster { id: it.id, area: Shape::circle(it.radius), size: it.cardinality, profiles: None }
}

fn cluster_operation(it: ClusterOperation) -> vam::ClusterOperation {
    let nothing = vam::ClusterOperation::default();
    match it {
        ClusterOperation::Join { id, left } => vam::ClusterOperation { join: Some((id, left)), ..nothing },
        ClusterOperation::Leave { id, reason } => {
            vam::ClusterOperation { leave: Some((id, leave_reason(reason))), ..nothing }
        }
        ClusterOperation::Breakup { left } => {
            let reason = ClusterBreakupReason::CLUSTERING_PURPOSE_COMPLETED;
            vam::ClusterOperation { breakup: Some((reason, left)), ..nothing }
        }
    }
}

const fn leave_reason(reason: LeaveReason) -> ClusterLeaveReason {
    match reason {
        LeaveReason::NotProvided => ClusterLeaveReason::NOT_PROVIDED,
        LeaveReason::ClusterLeaderLost => ClusterLeaveReason::CLUSTER_LEADER_LOST,
        LeaveReason::ClusterDisbandedByLeader => ClusterLeaveReason::CLUSTER_DISBANDED_BY_LEADER,
        LeaveReason::OutOfClusterBoundingBox => ClusterLeaveReason::OUT_OF_CLUSTER_BOUNDING_BOX,
        LeaveReason::OutOfClusterSpeedRange => ClusterLeaveReason::OUT_OF_CLUSTER_SPEED_RANGE,
        LeaveReason::CancelledJoin => ClusterLeaveReason::CANCELLED_JOIN,
        LeaveReason::FailedJoin => ClusterLeaveReason::FAILED_JOIN,
    }
}

/// Reasons that this service never sends are treated as not provided.
const fn leave_reason_of(reason: ClusterLeaveReason) -> LeaveReason {
    match reason {
        ClusterLeaveReason::CLUSTER_LEADER_LOST => LeaveReason::ClusterLeaderLost,
        ClusterLeaveReason::CLUSTER_DISBANDED_BY_LEADER => LeaveReason::ClusterDisbandedByLeader,
        ClusterLeaveReason::OUT_OF_CLUSTER_BOUNDING_BOX => LeaveReason::OutOfClusterBoundingBox,
        ClusterLeaveReason::OUT_OF_CLUSTER_SPEED_RANGE => LeaveReason::OutOfClusterSpeedRange,
        ClusterLeaveReason::CANCELLED_JOIN => LeaveReason::CancelledJoin,
        ClusterLeaveReason::FAILED_JOIN => LeaveReason::FailedJoin,
        _ => LeaveReason::NotProvided,
    }
}

impl From<&Vam> for ReceivedVam {
    fn from(vam: &Vam) -> Self {
        let parameters = &vam.vam.vam_parameters;
        let at = &parameters.basic_container.reference_position;
        let movement = &parameters.vru_high_frequency_container;
        let cluster = parameters.vru_cluster_information_container.as_deref();
        Self {
            station_id: StationId(vam.header.station_id.0),
            position: scale::position(at.latitude.0, at.longitude.0),
            speed: scale::speed(movement.speed.speed_value.0),
            heading: scale::heading(movement.heading.value.0),
            cluster: cluster.and_then(|container| cluster_of(&container.vru_cluster_information)),
            operation: parameters.vru_cluster_operation_container.as_ref().and_then(operation_of),
        }
    }
}

/// Returns the cluster, or `None` if it has no number: such a cluster cannot be joined. A shape other than a circle is
/// treated as a circle of [`MAX_CLUSTER_DISTANCE`].
fn cluster_of(information: &cdd::VruClusterInformation) -> Option<ClusterInformation> {
    let radius = match information.cluster_bounding_box_shape.as_deref() {
        Some(cdd::Shape::Circular(circle)) => Metres(f64::from(circle.radius.0) / TENTHS_PER_METRE),
        _ => MAX_CLUSTER_DISTANCE,
    };
    Some(ClusterInformation {
        id: information.cluster_id?.0,
        radius,
        cardinality: information.cluster_cardinality_size.0,
    })
}

fn operation_of(container: &VruClusterOperationContainer) -> Option<ClusterOperation> {
    let time = |quarters: u8| Duration::from_secs_f64(f64::from(quarters) / QUARTERS_PER_SECOND);
    let join = container
        .cluster_join_info
        .map(|join| ClusterOperation::Join { id: join.cluster_id.0, left: time(join.join_time.0) });
    let leave = container.cluster_leave_info.map(|leave| ClusterOperation::Leave {
        id: leave.cluster_id.0,
        reason: leave_reason_of(leave.cluster_leave_reason),
    });
    let breakup = container.cluster_breakup_info.map(|it| ClusterOperation::Breakup { left: time(it.breakup_time.0) });
    breakup.or(leave).or(join)
}
