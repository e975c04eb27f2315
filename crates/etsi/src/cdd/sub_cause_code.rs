//! Sub-cause codes, one module for each cause ([`super::CauseCodeChoice`]). In each module, 0 is "unavailable".

/// Sub-cause codes of cause 1, `trafficCondition1`.
pub mod traffic_condition {
    /// `increasedVolumeOfTraffic`.
    pub const INCREASED_VOLUME_OF_TRAFFIC: u8 = 1;
    /// `trafficJamSlowlyIncreasing`.
    pub const TRAFFIC_JAM_SLOWLY_INCREASING: u8 = 2;
    /// `trafficJamIncreasing`.
    pub const TRAFFIC_JAM_INCREASING: u8 = 3;
    /// `trafficJamStronglyIncreasing`.
    pub const TRAFFIC_JAM_STRONGLY_INCREASING: u8 = 4;
    /// `trafficJam`.
    pub const TRAFFIC_JAM: u8 = 5;
    /// `trafficJamSlightlyDecreasing`.
    pub const TRAFFIC_JAM_SLIGHTLY_DECREASING: u8 = 6;
    /// `trafficJamDecreasing`.
    pub const TRAFFIC_JAM_DECREASING: u8 = 7;
    /// `trafficJamStronglyDecreasing`.
    pub const TRAFFIC_JAM_STRONGLY_DECREASING: u8 = 8;
    /// `trafficJamStable`.
    pub const TRAFFIC_JAM_STABLE: u8 = 9;
}

/// Sub-cause codes of cause 2, `accident2`.
pub mod accident {
    /// `multiVehicleAccident`.
    pub const MULTI_VEHICLE_ACCIDENT: u8 = 1;
    /// `heavyAccident`.
    pub const HEAVY_ACCIDENT: u8 = 2;
    /// `accidentInvolvingLorry`.
    pub const ACCIDENT_INVOLVING_LORRY: u8 = 3;
    /// `accidentInvolvingBus`.
    pub const ACCIDENT_INVOLVING_BUS: u8 = 4;
    /// `accidentInvolvingHazardousMaterials`.
    pub const ACCIDENT_INVOLVING_HAZARDOUS_MATERIALS: u8 = 5;
    /// `accidentOnOppositeLane-deprecated`.
    pub const ACCIDENT_ON_OPPOSITE_LANE_DEPRECATED: u8 = 6;
    /// `unsecuredAccident`.
    pub const UNSECURED_ACCIDENT: u8 = 7;
    /// `assistanceRequested`.
    pub const ASSISTANCE_REQUESTED: u8 = 8;
}

/// Sub-cause codes of cause 3, `roadworks3`.
pub mod roadworks {
    /// `roadOrCarriagewayClosure`.
    pub const ROAD_OR_CARRIAGEWAY_CLOSURE: u8 = 1;
    /// `roadMarkingWork-deprecated`.
    pub const ROAD_MARKING_WORK_DEPRECATED: u8 = 2;
    /// `movingLaneClosure`.
    pub const MOVING_LANE_CLOSURE: u8 = 3;
    /// `stationaryLaneClosure`.
    pub const STATIONARY_LANE_CLOSURE: u8 = 4;
    /// `streetCleaning-deprecated`.
    pub const STREET_CLEANING_DEPRECATED: u8 = 5;
    /// `winterService-deprecated`.
    pub const WINTER_SERVICE_DEPRECATED: u8 = 6;
    /// `setupPhase`.
    pub const SETUP_PHASE: u8 = 7;
    /// `remodellingPhase`.
    pub const REMODELLING_PHASE: u8 = 8;
    /// `dismantlingPhase`.
    pub const DISMANTLING_PHASE: u8 = 9;
    /// `carriagewayCrossover`.
    pub const CARRIAGEWAY_CROSSOVER: u8 = 10;
}

/// Sub-cause codes of cause 5, `impassability5`.
pub mod impassability {
    /// `flooding`.
    pub const FLOODING: u8 = 1;
    /// `dangerOfAvalanches`.
    pub const DANGER_OF_AVALANCHES: u8 = 2;
    /// `blastingOfAvalanches`.
    pub const BLASTING_OF_AVALANCHES: u8 = 3;
    /// `landslips`.
    pub const LANDSLIPS: u8 = 4;
    /// `chemicalSpillage`.
    pub const CHEMICAL_SPILLAGE: u8 = 5;
    /// `winterClosure`.
    pub const WINTER_CLOSURE: u8 = 6;
    /// `sinkhole`.
    pub const SINKHOLE: u8 = 7;
    /// `earthquakeDamage`.
    pub const EARTHQUAKE_DAMAGE: u8 = 8;
    /// `fallenTrees`.
    pub const FALLEN_TREES: u8 = 9;
    /// `rockfalls`.
    pub const ROCKFALLS: u8 = 10;
    /// `sewerOverflow`.
    pub const SEWER_OVERFLOW: u8 = 11;
    /// `stormDamage`.
    pub const STORM_DAMAGE: u8 = 12;
    /// `subsidence`.
    pub const SUBSIDENCE: u8 = 13;
    /// `burstPipe`.
    pub const BURST_PIPE: u8 = 14;
    /// `burstWaterMain`.
    pub const BURST_WATER_MAIN: u8 = 15;
    /// `fallenPowerCables`.
    pub const FALLEN_POWER_CABLES: u8 = 16;
    /// `snowDrifts`.
    pub const SNOW_DRIFTS: u8 = 17;
}

/// Sub-cause codes of cause 6, `adhesion6`.
pub mod adhesion {
    /// `heavyFrostOnRoad`.
    pub const HEAVY_FROST_ON_ROAD: u8 = 1;
    /// `fuelOnRoad`.
    pub const FUEL_ON_ROAD: u8 = 2;
    /// `mudOnRoad`.
    pub const MUD_ON_ROAD: u8 = 3;
    /// `snowOnRoad`.
    pub const SNOW_ON_ROAD: u8 = 4;
    /// `iceOnRoad`.
    pub const ICE_ON_ROAD: u8 = 5;
    /// `blackIceOnRoad`.
    pub const BLACK_ICE_ON_ROAD: u8 = 6;
    /// `oilOnRoad`.
    pub const OIL_ON_ROAD: u8 = 7;
    /// `looseChippings`.
    pub const LOOSE_CHIPPINGS: u8 = 8;
    /// `instantBlackIce`.
    pub const INSTANT_BLACK_ICE: u8 = 9;
    /// `roadsSalted`.
    pub const ROADS_SALTED: u8 = 10;
    /// `flooding`.
    pub const FLOODING: u8 = 11;
    /// `waterOnRoad`.
    pub const WATER_ON_ROAD: u8 = 12;
}

/// Sub-cause codes of cause 9, `hazardousLocation-SurfaceCondition9`.
pub mod hazardous_location_surface_condition {
    /// `rockfalls`.
    pub const ROCKFALLS: u8 = 1;
    /// `earthquakeDamage-deprecated`.
    pub const EARTHQUAKE_DAMAGE_DEPRECATED: u8 = 2;
    /// `sinkhole`.
    pub const SINKHOLE: u8 = 3;
    /// `subsidence`.
    pub const SUBSIDENCE: u8 = 4;
    /// `snowDrifts-deprecated`.
    pub const SNOW_DRIFTS_DEPRECATED: u8 = 5;
    /// `stormDamage-deprecated`.
    pub const STORM_DAMAGE_DEPRECATED: u8 = 6;
    /// `burstPipe-deprecated`.
    pub const BURST_PIPE_DEPRECATED: u8 = 7;
    /// `lava`.
    pub const LAVA: u8 = 8;
    /// `fallingIce-deprecated`.
    pub const FALLING_ICE_DEPRECATED: u8 = 9;
    /// `fire`.
    pub const FIRE: u8 = 10;
    /// `flooding-deprecated`.
    pub const FLOODING_DEPRECATED: u8 = 11;
    /// `wearAndTear`.
    pub const WEAR_AND_TEAR: u8 = 12;
}

/// Sub-cause codes of cause 10, `hazardousLocation-ObstacleOnTheRoad10`.
pub mod hazardous_location_obstacle_on_the_road {
    /// `shedLoad`.
    pub const SHED_LOAD: u8 = 1;
    /// `partsOfVehicles`.
    pub const PARTS_OF_VEHICLES: u8 = 2;
    /// `partsOfTyres`.
    pub const PARTS_OF_TYRES: u8 = 3;
    /// `bigObjects`.
    pub const BIG_OBJECTS: u8 = 4;
    /// `fallenTrees`.
    pub const FALLEN_TREES: u8 = 5;
    /// `hubCaps`.
    pub const HUB_CAPS: u8 = 6;
    /// `waitingVehicles-deprecated`.
    pub const WAITING_VEHICLES_DEPRECATED: u8 = 7;
}

/// Sub-cause codes of cause 11, `hazardousLocation-AnimalOnTheRoad11`.
pub mod hazardous_location_animal_on_the_road {
    /// `wildAnimals`.
    pub const WILD_ANIMALS: u8 = 1;
    /// `herdOfAnimals`.
    pub const HERD_OF_ANIMALS: u8 = 2;
    /// `smallAnimals`.
    pub const SMALL_ANIMALS: u8 = 3;
    /// `largeAnimals`.
    pub const LARGE_ANIMALS: u8 = 4;
    /// `wildAnimalsSmall`.
    pub const WILD_ANIMALS_SMALL: u8 = 5;
    /// `wildAnimalsLarge`.
    pub const WILD_ANIMALS_LARGE: u8 = 6;
    /// `domesticAnimals`.
    pub const DOMESTIC_ANIMALS: u8 = 7;
    /// `domesticAnimalsSmall`.
    pub const DOMESTIC_ANIMALS_SMALL: u8 = 8;
    /// `domesticAnimalsLarge`.
    pub const DOMESTIC_ANIMALS_LARGE: u8 = 9;
}

/// Sub-cause codes of cause 12, `humanPresenceOnTheRoad12`.
pub mod human_presence_on_the_road {
    /// `childrenOnRoadway`.
    pub const CHILDREN_ON_ROADWAY: u8 = 1;
    /// `cyclistOnRoadway`.
    pub const CYCLIST_ON_ROADWAY: u8 = 2;
    /// `motorcyclistOnRoadway`.
    pub const MOTORCYCLIST_ON_ROADWAY: u8 = 3;
    /// `pedestrian`.
    pub const PEDESTRIAN: u8 = 4;
    /// `ordinary-pedestrian`.
    pub const ORDINARY_PEDESTRIAN: u8 = 5;
    /// `road-worker`.
    pub const ROAD_WORKER: u8 = 6;
    /// `first-responder`.
    pub const FIRST_RESPONDER: u8 = 7;
    /// `lightVruVehicle`.
    pub const LIGHT_VRU_VEHICLE: u8 = 8;
    /// `bicyclist`.
    pub const BICYCLIST: u8 = 9;
    /// `wheelchair-user`.
    pub const WHEELCHAIR_USER: u8 = 10;
    /// `horse-and-rider`.
    pub const HORSE_AND_RIDER: u8 = 11;
    /// `rollerskater`.
    pub const ROLLERSKATER: u8 = 12;
    /// `e-scooter`.
    pub const E_SCOOTER: u8 = 13;
    /// `personal-transporter`.
    pub const PERSONAL_TRANSPORTER: u8 = 14;
    /// `pedelec`.
    pub const PEDELEC: u8 = 15;
    /// `speed-pedelec`.
    pub const SPEED_PEDELEC: u8 = 16;
    /// `ptw`.
    pub const PTW: u8 = 17;
    /// `moped`.
    pub const MOPED: u8 = 18;
    /// `motorcycle`.
    pub const MOTORCYCLE: u8 = 19;
    /// `motorcycle-and-sidecar-right`.
    pub const MOTORCYCLE_AND_SIDECAR_RIGHT: u8 = 20;
    /// `motorcycle-and-sidecar-left`.
    pub const MOTORCYCLE_AND_SIDECAR_LEFT: u8 = 21;
}

/// Sub-cause codes of cause 14, `wrongWayDriving14`.
pub mod wrong_way_driving {
    /// `wrongLane-deprecated`.
    pub const WRONG_LANE_DEPRECATED: u8 = 1;
    /// `wrongDirection`.
    pub const WRONG_DIRECTION: u8 = 2;
}

/// Sub-cause codes of cause 15, `rescueRecoveryAndMaintenanceWorkInProgress15`.
pub mod rescue_recovery_and_maintenance_work_in_progress {
    /// `emergencyVehicles`.
    pub const EMERGENCY_VEHICLES: u8 = 1;
    /// `rescueHelicopterLanding`.
    pub const RESCUE_HELICOPTER_LANDING: u8 = 2;
    /// `policeActivityOngoing`.
    pub const POLICE_ACTIVITY_ONGOING: u8 = 3;
    /// `medicalEmergencyOngoing`.
    pub const MEDICAL_EMERGENCY_ONGOING: u8 = 4;
    /// `childAbductionInProgress-deprecated`.
    pub const CHILD_ABDUCTION_IN_PROGRESS_DEPRECATED: u8 = 5;
    /// `prioritizedVehicle`.
    pub const PRIORITIZED_VEHICLE: u8 = 6;
    /// `rescueAndRecoveryVehicle`.
    pub const RESCUE_AND_RECOVERY_VEHICLE: u8 = 7;
}

/// Sub-cause codes of cause 17, `adverseWeatherCondition-Wind17`.
pub mod adverse_weather_condition_wind {
    /// `strongWinds`.
    pub const STRONG_WINDS: u8 = 1;
    /// `damagingHail-deprecated`.
    pub const DAMAGING_HAIL_DEPRECATED: u8 = 2;
    /// `hurricane`.
    pub const HURRICANE: u8 = 3;
    /// `thunderstorm`.
    pub const THUNDERSTORM: u8 = 4;
    /// `tornado`.
    pub const TORNADO: u8 = 5;
    /// `blizzard`.
    pub const BLIZZARD: u8 = 6;
}

/// Sub-cause codes of cause 18, `adverseWeatherCondition-Visibility18`.
pub mod adverse_weather_condition_visibility {
    /// `fog`.
    pub const FOG: u8 = 1;
    /// `smoke`.
    pub const SMOKE: u8 = 2;
    /// `snowfall`.
    pub const SNOWFALL: u8 = 3;
    /// `rain`.
    pub const RAIN: u8 = 4;
    /// `hail`.
    pub const HAIL: u8 = 5;
    /// `lowSunGlare`.
    pub const LOW_SUN_GLARE: u8 = 6;
    /// `sandstorms`.
    pub const SANDSTORMS: u8 = 7;
    /// `swarmsOfInsects`.
    pub const SWARMS_OF_INSECTS: u8 = 8;
}

/// Sub-cause codes of cause 19, `adverseWeatherCondition-Precipitation19`.
pub mod adverse_weather_condition_precipitation {
    /// `rain`.
    pub const RAIN: u8 = 1;
    /// `snowfall`.
    pub const SNOWFALL: u8 = 2;
    /// `hail`.
    pub const HAIL: u8 = 3;
}

/// Sub-cause codes of cause 26, `slowVehicle26`.
pub mod slow_vehicle {
    /// `maintenanceVehicle`.
    pub const MAINTENANCE_VEHICLE: u8 = 1;
    /// `vehiclesSlowingToLookAtAccident`.
    pub const VEHICLES_SLOWING_TO_LOOK_AT_ACCIDENT: u8 = 2;
    /// `abnormalLoad`.
    pub const ABNORMAL_LOAD: u8 = 3;
    /// `abnormalWideLoad`.
    pub const ABNORMAL_WIDE_LOAD: u8 = 4;
    /// `convoy`.
    pub const CONVOY: u8 = 5;
    /// `winterMaintenanceSnowplough`.
    pub const WINTER_MAINTENANCE_SNOWPLOUGH: u8 = 6;
    /// `deicing-deprecated`.
    pub const DEICING_DEPRECATED: u8 = 7;
    /// `winterMaintenanceAdhesionImprovement`.
    pub const WINTER_MAINTENANCE_ADHESION_IMPROVEMENT: u8 = 8;
}

/// Sub-cause codes of cause 27, `dangerousEndOfQueue27`.
pub mod dangerous_end_of_queue {
    /// `suddenEndOfQueue`.
    pub const SUDDEN_END_OF_QUEUE: u8 = 1;
    /// `queueOverHill`.
    pub const QUEUE_OVER_HILL: u8 = 2;
    /// `queueAroundBend`.
    pub const QUEUE_AROUND_BEND: u8 = 3;
    /// `queueInTunnel`.
    pub const QUEUE_IN_TUNNEL: u8 = 4;
}

/// Sub-cause codes of cause 91, `vehicleBreakdown91`.
pub mod vehicle_breakdown {
    /// `lackOfFuel`.
    pub const LACK_OF_FUEL: u8 = 1;
    /// `lackOfBatteryPower`.
    pub const LACK_OF_BATTERY_POWER: u8 = 2;
    /// `engineProblem`.
    pub const ENGINE_PROBLEM: u8 = 3;
    /// `transmissionProblem`.
    pub const TRANSMISSION_PROBLEM: u8 = 4;
    /// `engineCoolingProblem`.
    pub const ENGINE_COOLING_PROBLEM: u8 = 5;
    /// `brakingSystemProblem`.
    pub const BRAKING_SYSTEM_PROBLEM: u8 = 6;
    /// `steeringProblem`.
    pub const STEERING_PROBLEM: u8 = 7;
    /// `tyrePuncture-deprecated`.
    pub const TYRE_PUNCTURE_DEPRECATED: u8 = 8;
    /// `tyrePressureProblem`.
    pub const TYRE_PRESSURE_PROBLEM: u8 = 9;
    /// `vehicleOnFire`.
    pub const VEHICLE_ON_FIRE: u8 = 10;
}

/// Sub-cause codes of cause 92, `postCrash92`.
pub mod post_crash {
    /// `accidentWithoutECallTriggered`.
    pub const ACCIDENT_WITHOUT_ECALL_TRIGGERED: u8 = 1;
    /// `accidentWithECallManuallyTriggered`.
    pub const ACCIDENT_WITH_ECALL_MANUALLY_TRIGGERED: u8 = 2;
    /// `accidentWithECallAutomaticallyTriggered`.
    pub const ACCIDENT_WITH_ECALL_AUTOMATICALLY_TRIGGERED: u8 = 3;
    /// `accidentWithECallTriggeredWithoutAccessToCellularNetwork`.
    pub const ACCIDENT_WITH_ECALL_TRIGGERED_WITHOUT_ACCESS_TO_CELLULAR_NETWORK: u8 = 4;
}

/// Sub-cause codes of cause 93, `humanProblem93`.
pub mod human_problem {
    /// `glycemiaProblem`.
    pub const GLYCEMIA_PROBLEM: u8 = 1;
    /// `heartProblem`.
    pub const HEART_PROBLEM: u8 = 2;
    /// `unresponsiveDriver`.
    pub const UNRESPONSIVE_DRIVER: u8 = 3;
}

/// Sub-cause codes of cause 94, `stationaryVehicle94`.
pub mod stationary_vehicle {
    /// `humanProblem-deprecated`.
    pub const HUMAN_PROBLEM_DEPRECATED: u8 = 1;
    /// `vehicleBreakdown`.
    pub const VEHICLE_BREAKDOWN: u8 = 2;
    /// `postCrash`.
    pub const POST_CRASH: u8 = 3;
    /// `publicTransportStop`.
    pub const PUBLIC_TRANSPORT_STOP: u8 = 4;
    /// `carryingDangerousGoods`.
    pub const CARRYING_DANGEROUS_GOODS: u8 = 5;
    /// `vehicleOnFire`.
    pub const VEHICLE_ON_FIRE: u8 = 6;
}

/// Sub-cause codes of cause 95, `emergencyVehicleApproaching95`.
pub mod emergency_vehicle_approaching {
    /// `emergencyVehicleApproaching`.
    pub const EMERGENCY_VEHICLE_APPROACHING: u8 = 1;
    /// `prioritizedVehicleApproaching`.
    pub const PRIORITIZED_VEHICLE_APPROACHING: u8 = 2;
}

/// Sub-cause codes of cause 96, `hazardousLocation-DangerousCurve96`.
pub mod hazardous_location_dangerous_curve {
    /// `dangerousLeftTurnCurve`.
    pub const DANGEROUS_LEFT_TURN_CURVE: u8 = 1;
    /// `dangerousRightTurnCurve`.
    pub const DANGEROUS_RIGHT_TURN_CURVE: u8 = 2;
    /// `multipleCurvesStartingWithUnknownTurningDirection`.
    pub const MULTIPLE_CURVES_STARTING_WITH_UNKNOWN_TURNING_DIRECTION: u8 = 3;
    /// `multipleCurvesStartingWithLeftTurn`.
    pub const MULTIPLE_CURVES_STARTING_WITH_LEFT_TURN: u8 = 4;
    /// `multipleCurvesStartingWithRightTurn`.
    pub const MULTIPLE_CURVES_STARTING_WITH_RIGHT_TURN: u8 = 5;
}

/// Sub-cause codes of cause 97, `collisionRisk97`.
pub mod collision_risk {
    /// `longitudinalCollisionRisk`.
    pub const LONGITUDINAL_COLLISION_RISK: u8 = 1;
    /// `crossingCollisionRisk`.
    pub const CROSSING_COLLISION_RISK: u8 = 2;
    /// `lateralCollisionRisk`.
    pub const LATERAL_COLLISION_RISK: u8 = 3;
    /// `vulnerableRoadUser`.
    pub const VULNERABLE_ROAD_USER: u8 = 4;
    /// `collisionRiskWithPedestrian`.
    pub const COLLISION_RISK_WITH_PEDESTRIAN: u8 = 5;
    /// `collisionRiskWithCyclist`.
    pub const COLLISION_RISK_WITH_CYCLIST: u8 = 6;
    /// `collisionRiskWithMotorVehicle`.
    pub const COLLISION_RISK_WITH_MOTOR_VEHICLE: u8 = 7;
    /// `erraticDriving`.
    pub const ERRATIC_DRIVING: u8 = 8;
    /// `recklessDriving`.
    pub const RECKLESS_DRIVING: u8 = 9;
}

/// Sub-cause codes of cause 98, `signalViolation98`.
pub mod signal_violation {
    /// `stopSignViolation`.
    pub const STOP_SIGN_VIOLATION: u8 = 1;
    /// `trafficLightViolation`.
    pub const TRAFFIC_LIGHT_VIOLATION: u8 = 2;
    /// `turningRegulationViolation`.
    pub const TURNING_REGULATION_VIOLATION: u8 = 3;
}

/// Sub-cause codes of cause 99, `dangerousSituation99`.
pub mod dangerous_situation {
    /// `emergencyElectronicBrakeEngaged`.
    pub const EMERGENCY_ELECTRONIC_BRAKE_ENGAGED: u8 = 1;
    /// `preCrashSystemEngaged`.
    pub const PRE_CRASH_SYSTEM_ENGAGED: u8 = 2;
    /// `espEngaged`.
    pub const ESP_ENGAGED: u8 = 3;
    /// `absEngaged`.
    pub const ABS_ENGAGED: u8 = 4;
    /// `aebEngaged`.
    pub const AEB_ENGAGED: u8 = 5;
    /// `brakeWarningEngaged`.
    pub const BRAKE_WARNING_ENGAGED: u8 = 6;
    /// `collisionRiskWarningEngaged`.
    pub const COLLISION_RISK_WARNING_ENGAGED: u8 = 7;
    /// `riskMitigationFunctionEngaged`.
    pub const RISK_MITIGATION_FUNCTION_ENGAGED: u8 = 8;
}

/// Sub-cause codes of cause 100, `railwayLevelCrossing100`.
pub mod railway_level_crossing {
    /// `doNotCrossAbnormalSituation`.
    pub const DO_NOT_CROSS_ABNORMAL_SITUATION: u8 = 1;
    /// `closed`.
    pub const CLOSED: u8 = 2;
    /// `unguarded`.
    pub const UNGUARDED: u8 = 3;
    /// `nominal`.
    pub const NOMINAL: u8 = 4;
    /// `trainApproaching`.
    pub const TRAIN_APPROACHING: u8 = 5;
}
