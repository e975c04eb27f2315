//! Names of the bits of each BIT STRING (TS 102 894-2; ISO/TS 19091), the first bit first.

/// Names of bits.
type Names = &'static [&'static str];

pub(super) const ACCELERATION_CONTROL: Names = &[
    "brakePedalEngaged",
    "gasPedalEngaged",
    "emergencyBrakeEngaged",
    "collisionWarningEngaged",
    "accEngaged",
    "cruiseControlEngaged",
    "speedLimiterEngaged",
];
pub(super) const ALLOWED_MANEUVERS: Names = &[
    "maneuverStraightAllowed",
    "maneuverLeftAllowed",
    "maneuverRightAllowed",
    "maneuverUTurnAllowed",
    "maneuverLeftTurnOnRedAllowed",
    "maneuverRightTurnOnRedAllowed",
    "maneuverLaneChangeAllowed",
    "maneuverNoStoppingAllowed",
    "yieldAllwaysRequired",
    "goWithHalt",
    "caution",
    "reserved1",
];
pub(super) const DAY_OF_WEEK: Names =
    &["unused", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
pub(super) const EMERGENCY_PRIORITY: Names = &["requestForRightOfWay", "requestForFreeCrossingAtATrafficLight"];
pub(super) const ENERGY_STORAGE_TYPE: Names = &[
    "hydrogenStorage",
    "electricEnergyStorage",
    "liquidPropaneGas",
    "compressedNaturalGas",
    "diesel",
    "gasoline",
    "ammonia",
];
pub(super) const EXTERIOR_LIGHTS: Names = &[
    "lowBeamHeadlightsOn",
    "highBeamHeadlightsOn",
    "leftTurnSignalOn",
    "rightTurnSignalOn",
    "daytimeRunningLightsOn",
    "reverseLightOn",
    "fogLightOn",
    "parkingLightsOn",
];
pub(super) const INTERSECTION_STATUS_OBJECT: Names = &[
    "manualControlIsEnabled",
    "stopTimeIsActivated",
    "failureFlash",
    "preemptIsActive",
    "signalPriorityIsActive",
    "fixedTimeOperation",
    "trafficDependentOperation",
    "standbyOperation",
    "failureMode",
    "off",
    "recentMAPmessageUpdate",
    "recentChangeInMAPassignedLanesIDsUsed",
    "noValidMAPisAvailableAtThisTime",
    "noValidSPATisAvailableAtThisTime",
];
pub(super) const LANE_ATTRIBUTES_BARRIER: Names = &[
    "median-RevocableLane",
    "median",
    "whiteLineHashing",
    "stripedLines",
    "doubleStripedLines",
    "trafficCones",
    "constructionBarrier",
    "trafficChannels",
    "lowCurbs",
    "highCurbs",
];
pub(super) const LANE_ATTRIBUTES_BIKE: Names = &[
    "bikeRevocableLane",
    "pedestrianUseAllowed",
    "isBikeFlyOverLane",
    "fixedCycleTime",
    "biDirectionalCycleTimes",
    "isolatedByBarrier",
    "unsignalizedSegmentsPresent",
];
pub(super) const LANE_ATTRIBUTES_CROSSWALK: Names = &[
    "crosswalkRevocableLane",
    "bicyleUseAllowed",
    "isXwalkFlyOverLane",
    "fixedCycleTime",
    "biDirectionalCycleTimes",
    "hasPushToWalkButton",
    "audioSupport",
    "rfSignalRequestPresent",
    "unsignalizedSegmentsPresent",
];
pub(super) const LANE_ATTRIBUTES_PARKING: Names = &[
    "parkingRevocableLane",
    "parallelParkingInUse",
    "headInParkingInUse",
    "doNotParkZone",
    "parkingForBusUse",
    "parkingForTaxiUse",
    "noPublicParkingUse",
];
pub(super) const LANE_ATTRIBUTES_SIDEWALK: Names =
    &["sidewalk-RevocableLane", "bicyleUseAllowed", "isSidewalkFlyOverLane", "walkBikes"];
pub(super) const LANE_ATTRIBUTES_STRIPING: Names = &[
    "stripeToConnectingLanesRevocableLane",
    "stripeDrawOnLeft",
    "stripeDrawOnRight",
    "stripeToConnectingLanesLeft",
    "stripeToConnectingLanesRight",
    "stripeToConnectingLanesAhead",
];
pub(super) const LANE_ATTRIBUTES_TRACKED_VEHICLE: Names = &[
    "spec-RevocableLane",
    "spec-commuterRailRoadTrack",
    "spec-lightRailRoadTrack",
    "spec-heavyRailRoadTrack",
    "spec-otherRailType",
];
pub(super) const LANE_ATTRIBUTES_VEHICLE: Names = &[
    "isVehicleRevocableLane",
    "isVehicleFlyOverLane",
    "hovLaneUseOnly",
    "restrictedToBusUse",
    "restrictedToTaxiUse",
    "restrictedFromPublicUse",
    "hasIRbeaconCoverage",
    "permissionOnRequest",
];
pub(super) const LANE_DIRECTION: Names = &["ingressPath", "egressPath"];
pub(super) const LANE_SHARING: Names = &[
    "overlappingLaneDescriptionProvided",
    "multipleLanesTreatedAsOneLane",
    "otherNonMotorizedTrafficTypes",
    "individualMotorizedVehicleTraffic",
    "busVehicleTraffic",
    "taxiVehicleTraffic",
    "pedestriansTraffic",
    "cyclistVehicleTraffic",
    "trackedVehicleTraffic",
    "pedestrianTraffic",
];
pub(super) const LIGHT_BAR_SIREN_IN_USE: Names = &["lightBarActivated", "sirenActivated"];
pub(super) const MATRIX_INCLUDED_COMPONENTS: Names = &[
    "xPosition",
    "yPosition",
    "zPosition",
    "xVelocityOrVelocityMagnitude",
    "yVelocityOrVelocityDirection",
    "zSpeed",
    "xAccelOrAccelMagnitude",
    "yAccelOrAccelDirection",
    "zAcceleration",
    "zAngle",
    "yAngle",
    "xAngle",
    "zAngularVelocity",
];
pub(super) const POSITION_OF_OCCUPANTS: Names = &[
    "row1LeftOccupied",
    "row1RightOccupied",
    "row1MidOccupied",
    "row1NotDetectable",
    "row1NotPresent",
    "row2LeftOccupied",
    "row2RightOccupied",
    "row2MidOccupied",
    "row2NotDetectable",
    "row2NotPresent",
    "row3LeftOccupied",
    "row3RightOccupied",
    "row3MidOccupied",
    "row3NotDetectable",
    "row3NotPresent",
    "row4LeftOccupied",
    "row4RightOccupied",
    "row4MidOccupied",
    "row4NotDetectable",
    "row4NotPresent",
];
pub(super) const SENSOR_TYPES: Names = &[
    "undefined",
    "radar",
    "lidar",
    "monovideo",
    "stereovision",
    "nightvision",
    "ultrasonic",
    "pmd",
    "inductionLoop",
    "sphericalCamera",
    "uwb",
    "acoustic",
    "localAggregation",
    "itsAggregation",
];
pub(super) const SPECIAL_TRANSPORT_TYPE: Names = &["heavyLoad", "excessWidth", "excessLength", "excessHeight"];
pub(super) const STORED_INFORMATION_TYPE: Names = &["undefined", "staticDb", "dynamicDb", "realTimeDb", "map"];
pub(super) const TRANSIT_VEHICLE_STATUS: Names =
    &["loading", "anADAuse", "aBikeLoad", "doorOpen", "charging", "atStopLine"];
pub(super) const VRU_CLUSTER_PROFILES: Names = &["pedestrian", "bicyclist", "motorcyclist", "animal"];
pub(super) const VRU_SPECIFIC_EXTERIOR_LIGHTS: Names =
    &["unavailable", "backFlashLight", "helmetLight", "armLight", "legLight", "wheelLight"];
