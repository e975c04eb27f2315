//! The fields of each SEQUENCE or CHOICE that are quantities or BIT STRINGs with named bits, sorted by type name.
//!
//! A name has the same kind in every edition of this project.

use viaduct_asn1::json::scaled::{FieldKind, LegacyNames, Quantity, TypeFields};

use super::{bits as b, legacy_names, quantities as q};

const fn quantity(quantity: &'static Quantity) -> FieldKind {
    FieldKind::Quantity(quantity)
}

const fn bits(names: &'static [&'static str]) -> FieldKind {
    FieldKind::Bits(names)
}

const fn legacy(names: &'static LegacyNames) -> FieldKind {
    FieldKind::LegacyNames(names)
}

/// Types with their members.
pub(super) const FIELD_KINDS: &[TypeFields] = &[
    ("AbsolutePosition", &[("latitude", quantity(&q::LATITUDE)), ("longitude", quantity(&q::LONGITUDE))]),
    ("AbsolutePositionWAltitude", &[("latitude", quantity(&q::LATITUDE)), ("longitude", quantity(&q::LONGITUDE))]),
    (
        "AccelerationComponent",
        &[("value", quantity(&q::ACCELERATION_VALUE)), ("confidence", quantity(&q::ACCELERATION_CONFIDENCE))],
    ),
    ("AccelerationMagnitude", &[("accelerationConfidence", quantity(&q::ACCELERATION_CONFIDENCE))]),
    ("Altitude", &[("altitudeValue", quantity(&q::ALTITUDE_VALUE))]),
    (
        "AutomatedVehicleRule",
        &[
            ("automatedVehicleMaxSpeedLimit", quantity(&q::SPEED_VALUE)),
            ("automatedVehicleMinSpeedLimit", quantity(&q::SPEED_VALUE)),
            ("automatedVehicleSpeedRecommendation", quantity(&q::SPEED_VALUE)),
        ],
    ),
    (
        "BasicVehicleContainerHighFrequency",
        &[("vehicleWidth", quantity(&q::VEHICLE_WIDTH)), ("accelerationControl", bits(b::ACCELERATION_CONTROL))],
    ),
    ("BasicVehicleContainerLowFrequency", &[("exteriorLights", bits(b::EXTERIOR_LIGHTS))]),
    (
        "CartesianAngle",
        &[("value", quantity(&q::CARTESIAN_ANGLE_VALUE)), ("confidence", quantity(&q::ANGLE_CONFIDENCE))],
    ),
    (
        "CartesianCoordinateWithConfidence",
        &[("value", quantity(&q::CARTESIAN_COORDINATE)), ("confidence", quantity(&q::COORDINATE_CONFIDENCE))],
    ),
    (
        "CartesianPosition3d",
        &[
            ("xCoordinate", quantity(&q::CARTESIAN_COORDINATE)),
            ("yCoordinate", quantity(&q::CARTESIAN_COORDINATE)),
            ("zCoordinate", quantity(&q::CARTESIAN_COORDINATE)),
        ],
    ),
    (
        "CenDsrcTollingZone",
        &[("protectedZoneLatitude", quantity(&q::LATITUDE)), ("protectedZoneLongitude", quantity(&q::LONGITUDE))],
    ),
    ("CircularShape", &[("radius", quantity(&q::STANDARD_LENGTH_12B)), ("height", quantity(&q::STANDARD_LENGTH_12B))]),
    ("ConnectingLane", &[("maneuver", bits(b::ALLOWED_MANEUVERS))]),
    (
        "DeltaPosition",
        &[("deltaLatitude", quantity(&q::DELTA_LATITUDE)), ("deltaLongitude", quantity(&q::DELTA_LATITUDE))],
    ),
    (
        "DeltaReferencePosition",
        &[
            ("deltaLatitude", quantity(&q::DELTA_LATITUDE)),
            ("deltaLongitude", quantity(&q::DELTA_LATITUDE)),
            ("deltaAltitude", quantity(&q::DELTA_ALTITUDE)),
        ],
    ),
    (
        "EllipticalShape",
        &[
            ("semiMajorAxisLength", quantity(&q::STANDARD_LENGTH_12B)),
            ("semiMinorAxisLength", quantity(&q::STANDARD_LENGTH_12B)),
            ("orientation", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("height", quantity(&q::STANDARD_LENGTH_12B)),
        ],
    ),
    (
        "EmergencyContainer",
        &[("lightBarSirenInUse", bits(b::LIGHT_BAR_SIREN_IN_USE)), ("emergencyPriority", bits(b::EMERGENCY_PRIORITY))],
    ),
    ("FullPositionVector", &[("long", quantity(&q::LONGITUDE)), ("lat", quantity(&q::LATITUDE))]),
    ("GenericLane", &[("maneuvers", bits(b::ALLOWED_MANEUVERS))]),
    (
        "GeoPosition",
        &[
            ("latitude", quantity(&q::LATITUDE)),
            ("longitude", quantity(&q::LONGITUDE)),
            ("altitude", quantity(&q::ALTITUDE_VALUE)),
        ],
    ),
    ("GeoPositionWAltitude", &[("latitude", quantity(&q::LATITUDE)), ("longitude", quantity(&q::LONGITUDE))]),
    ("GeoPositionWoAltitude", &[("latitude", quantity(&q::LATITUDE)), ("longitude", quantity(&q::LONGITUDE))]),
    ("GeographicLocationContainer", &[("referencePositionTime", quantity(&q::TIMESTAMP_ITS))]),
    ("GlcPart", &[("zoneHeading", quantity(&q::HEADING_VALUE))]),
    (
        "Heading",
        &[("headingValue", quantity(&q::HEADING_VALUE)), ("headingConfidence", quantity(&q::HEADING_CONFIDENCE))],
    ),
    ("ImpactReductionContainer", &[("positionOfOccupants", bits(b::POSITION_OF_OCCUPANTS))]),
    ("InterferenceManagementInfoPerChannel", &[("expiryTime", quantity(&q::TIMESTAMP_ITS))]),
    (
        "InterferenceManagementZoneDefinition",
        &[
            ("interferenceManagementZoneLatitude", quantity(&q::LATITUDE)),
            ("interferenceManagementZoneLongitude", quantity(&q::LONGITUDE)),
        ],
    ),
    ("InternationalSignApplicablePeriod", &[("dateRangeOfWeek", bits(b::DAY_OF_WEEK))]),
    ("IntersectionState", &[("status", bits(b::INTERSECTION_STATUS_OBJECT))]),
    (
        "IviManagementContainer",
        &[
            ("timeStamp", quantity(&q::TIMESTAMP_ITS)),
            ("validFrom", quantity(&q::TIMESTAMP_ITS)),
            ("validTo", quantity(&q::TIMESTAMP_ITS)),
        ],
    ),
    ("Ivim", &[("header", legacy(&legacy_names::HEADER))]),
    ("LaneAttributes", &[("directionalUse", bits(b::LANE_DIRECTION)), ("sharedWith", bits(b::LANE_SHARING))]),
    (
        "LaneTypeAttributes",
        &[
            ("vehicle", bits(b::LANE_ATTRIBUTES_VEHICLE)),
            ("crosswalk", bits(b::LANE_ATTRIBUTES_CROSSWALK)),
            ("bikeLane", bits(b::LANE_ATTRIBUTES_BIKE)),
            ("sidewalk", bits(b::LANE_ATTRIBUTES_SIDEWALK)),
            ("median", bits(b::LANE_ATTRIBUTES_BARRIER)),
            ("striping", bits(b::LANE_ATTRIBUTES_STRIPING)),
            ("trackedVehicle", bits(b::LANE_ATTRIBUTES_TRACKED_VEHICLE)),
            ("parking", bits(b::LANE_ATTRIBUTES_PARKING)),
        ],
    ),
    (
        "LateralAcceleration",
        &[
            ("lateralAccelerationValue", quantity(&q::ACCELERATION_VALUE)),
            ("lateralAccelerationConfidence", quantity(&q::ACCELERATION_CONFIDENCE)),
        ],
    ),
    ("LoadType", &[("specialTransportType", bits(b::SPECIAL_TRANSPORT_TYPE))]),
    (
        "LongitudinalAcceleration",
        &[
            ("longitudinalAccelerationValue", quantity(&q::ACCELERATION_VALUE)),
            ("longitudinalAccelerationConfidence", quantity(&q::ACCELERATION_CONFIDENCE)),
        ],
    ),
    (
        "LowerTriangularPositiveSemidefiniteMatrix",
        &[("componentsIncludedIntheMatrix", bits(b::MATRIX_INCLUDED_COMPONENTS))],
    ),
    ("MAPEM", &[("header", legacy(&legacy_names::HEADER))]),
    (
        "ManagementContainer",
        &[
            ("referenceTime", quantity(&q::TIMESTAMP_ITS)),
            ("detectionTime", quantity(&q::TIMESTAMP_ITS)),
            ("timeStamp", quantity(&q::TIMESTAMP_ITS)),
            ("validFrom", quantity(&q::TIMESTAMP_ITS)),
            ("validTo", quantity(&q::TIMESTAMP_ITS)),
        ],
    ),
    (
        "MetaInformation",
        &[
            ("usedDetectionInformation", bits(b::SENSOR_TYPES)),
            ("usedStoredInformation", bits(b::STORED_INFORMATION_TYPE)),
        ],
    ),
    ("NodeLLmD64b", &[("lon", quantity(&q::LONGITUDE)), ("lat", quantity(&q::LATITUDE))]),
    ("ObjectDimension", &[("value", quantity(&q::OBJECT_DIMENSION_VALUE))]),
    (
        "PathPointPredicted",
        &[
            ("deltaLatitude", quantity(&q::DELTA_LATITUDE)),
            ("deltaLongitude", quantity(&q::DELTA_LATITUDE)),
            ("deltaAltitude", quantity(&q::DELTA_ALTITUDE)),
        ],
    ),
    (
        "PlatooningRule",
        &[
            ("platoonMaxSpeedLimit", quantity(&q::SPEED_VALUE)),
            ("platoonMinSpeedLimit", quantity(&q::SPEED_VALUE)),
            ("platoonSpeedRecommendation", quantity(&q::SPEED_VALUE)),
        ],
    ),
    ("PolygonalShape", &[("height", quantity(&q::STANDARD_LENGTH_12B))]),
    (
        "PosConfidenceEllipse",
        &[
            ("semiMajorConfidence", quantity(&q::SEMI_AXIS_LENGTH)),
            ("semiMinorConfidence", quantity(&q::SEMI_AXIS_LENGTH)),
            ("semiMajorOrientation", quantity(&q::HEADING_VALUE)),
        ],
    ),
    ("Position3D", &[("lat", quantity(&q::LATITUDE)), ("long", quantity(&q::LONGITUDE))]),
    (
        "PositionConfidenceEllipse",
        &[
            ("semiMajorAxisLength", quantity(&q::SEMI_AXIS_LENGTH)),
            ("semiMinorAxisLength", quantity(&q::SEMI_AXIS_LENGTH)),
        ],
    ),
    ("PreCrashContainer", &[("estimatedBrakingDistance", quantity(&q::STANDARD_LENGTH_12B))]),
    (
        "ProtectedCommunicationZone",
        &[
            ("expiryTime", quantity(&q::TIMESTAMP_ITS)),
            ("protectedZoneLatitude", quantity(&q::LATITUDE)),
            ("protectedZoneLongitude", quantity(&q::LONGITUDE)),
        ],
    ),
    (
        "RadialShape",
        &[
            ("range", quantity(&q::STANDARD_LENGTH_12B)),
            ("horizontalOpeningAngleStart", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("horizontalOpeningAngleEnd", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("verticalOpeningAngleStart", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("verticalOpeningAngleEnd", quantity(&q::CARTESIAN_ANGLE_VALUE)),
        ],
    ),
    (
        "RadialShapeDetails",
        &[
            ("range", quantity(&q::STANDARD_LENGTH_12B)),
            ("horizontalOpeningAngleStart", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("horizontalOpeningAngleEnd", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("verticalOpeningAngleStart", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("verticalOpeningAngleEnd", quantity(&q::CARTESIAN_ANGLE_VALUE)),
        ],
    ),
    (
        "RectangularShape",
        &[
            ("semiLength", quantity(&q::STANDARD_LENGTH_12B)),
            ("semiBreadth", quantity(&q::STANDARD_LENGTH_12B)),
            ("orientation", quantity(&q::CARTESIAN_ANGLE_VALUE)),
            ("height", quantity(&q::STANDARD_LENGTH_12B)),
        ],
    ),
    ("ReferencePosition", &[("latitude", quantity(&q::LATITUDE)), ("longitude", quantity(&q::LONGITUDE))]),
    (
        "ReferencePositionWithConfidence",
        &[("latitude", quantity(&q::LATITUDE)), ("longitude", quantity(&q::LONGITUDE))],
    ),
    ("RequestorDescription", &[("transitStatus", bits(b::TRANSIT_VEHICLE_STATUS))]),
    ("RescueContainer", &[("lightBarSirenInUse", bits(b::LIGHT_BAR_SIREN_IN_USE))]),
    ("RoadWorksContainerBasic", &[("lightBarSirenInUse", bits(b::LIGHT_BAR_SIREN_IN_USE))]),
    ("RoadWorksContainerExtended", &[("lightBarSirenInUse", bits(b::LIGHT_BAR_SIREN_IN_USE))]),
    ("SPATEM", &[("header", legacy(&legacy_names::HEADER))]),
    ("SREM", &[("header", legacy(&legacy_names::HEADER))]),
    ("SSEM", &[("header", legacy(&legacy_names::HEADER))]),
    ("SafetyCarContainer", &[("lightBarSirenInUse", bits(b::LIGHT_BAR_SIREN_IN_USE))]),
    ("SignalHeadLocation", &[("nodeZ", quantity(&q::DELTA_ALTITUDE))]),
    (
        "SpecialTransportContainer",
        &[
            ("specialTransportType", bits(b::SPECIAL_TRANSPORT_TYPE)),
            ("lightBarSirenInUse", bits(b::LIGHT_BAR_SIREN_IN_USE)),
        ],
    ),
    ("Speed", &[("speedValue", quantity(&q::SPEED_VALUE)), ("speedConfidence", quantity(&q::SPEED_CONFIDENCE))]),
    ("StationaryVehicleContainer", &[("energyStorageType", bits(b::ENERGY_STORAGE_TYPE))]),
    ("SteeringWheelAngle", &[("steeringWheelAngleValue", quantity(&q::STEERING_WHEEL_ANGLE_VALUE))]),
    ("TrailerData", &[("trailerWidth", quantity(&q::VEHICLE_WIDTH))]),
    ("Vam", &[("header", legacy(&legacy_names::HEADER))]),
    ("VamParameters", &[("basicContainer", legacy(&legacy_names::BASIC_CONTAINER))]),
    ("VehicleLength", &[("vehicleLengthValue", quantity(&q::VEHICLE_LENGTH_VALUE))]),
    ("VehicleLengthV2", &[("vehicleLengthValue", quantity(&q::VEHICLE_LENGTH_VALUE))]),
    ("VehicleMovementControl", &[("accelerationControl", bits(b::ACCELERATION_CONTROL))]),
    (
        "VelocityComponent",
        &[("value", quantity(&q::VELOCITY_COMPONENT_VALUE)), ("confidence", quantity(&q::SPEED_CONFIDENCE))],
    ),
    (
        "VerticalAcceleration",
        &[
            ("verticalAccelerationValue", quantity(&q::ACCELERATION_VALUE)),
            ("verticalAccelerationConfidence", quantity(&q::ACCELERATION_CONFIDENCE)),
        ],
    ),
    ("VruClusterInformation", &[("clusterProfiles", bits(b::VRU_CLUSTER_PROFILES))]),
    (
        "VruExteriorLights",
        &[("vehicular", bits(b::EXTERIOR_LIGHTS)), ("vruSpecific", bits(b::VRU_SPECIFIC_EXTERIOR_LIGHTS))],
    ),
    ("VruHighFrequencyContainer", &[("heading", legacy(&legacy_names::HEADING))]),
    ("YawRate", &[("yawRateValue", quantity(&q::YAW_RATE_VALUE))]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_the_binary_search() {
        assert!(FIELD_KINDS.is_sorted_by(|(one, _), (other, _)| one < other));
    }
}
