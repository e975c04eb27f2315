//! Cause codes of events ([`super::CauseCodeChoice`]).

/// `trafficCondition1`.
pub const TRAFFIC_CONDITION: u8 = 1;
/// `accident2`.
pub const ACCIDENT: u8 = 2;
/// `roadworks3`.
pub const ROADWORKS: u8 = 3;
/// `detectedRoadworks4`.
pub const DETECTED_ROADWORKS: u8 = 4;
/// `impassability5`.
pub const IMPASSABILITY: u8 = 5;
/// `adhesion6`.
pub const ADHESION: u8 = 6;
/// `aquaplaning7`.
pub const AQUAPLANING: u8 = 7;
/// `hazardousLocation-SurfaceCondition9`.
pub const HAZARDOUS_LOCATION_SURFACE_CONDITION: u8 = 9;
/// `hazardousLocation-ObstacleOnTheRoad10`.
pub const HAZARDOUS_LOCATION_OBSTACLE_ON_THE_ROAD: u8 = 10;
/// `hazardousLocation-AnimalOnTheRoad11`.
pub const HAZARDOUS_LOCATION_ANIMAL_ON_THE_ROAD: u8 = 11;
/// `humanPresenceOnTheRoad12`.
pub const HUMAN_PRESENCE_ON_THE_ROAD: u8 = 12;
/// `wrongWayDriving14`.
pub const WRONG_WAY_DRIVING: u8 = 14;
/// `rescueRecoveryAndMaintenanceWorkInProgress15`.
pub const RESCUE_RECOVERY_AND_MAINTENANCE_WORK_IN_PROGRESS: u8 = 15;
/// `adverseWeatherCondition-Wind17`.
pub const ADVERSE_WEATHER_CONDITION_WIND: u8 = 17;
/// `adverseWeatherCondition-Visibility18`.
pub const ADVERSE_WEATHER_CONDITION_VISIBILITY: u8 = 18;
/// `adverseWeatherCondition-Precipitation19`.
pub const ADVERSE_WEATHER_CONDITION_PRECIPITATION: u8 = 19;
/// `violence20`.
pub const VIOLENCE: u8 = 20;
/// `slowVehicle26`.
pub const SLOW_VEHICLE: u8 = 26;
/// `dangerousEndOfQueue27`.
pub const DANGEROUS_END_OF_QUEUE: u8 = 27;
/// `publicTransportVehicleApproaching28`.
pub const PUBLIC_TRANSPORT_VEHICLE_APPROACHING: u8 = 28;
/// `dontPanic42`.
pub const DONT_PANIC: u8 = 42;
/// `vehicleBreakdown91`.
pub const VEHICLE_BREAKDOWN: u8 = 91;
/// `postCrash92`.
pub const POST_CRASH: u8 = 92;
/// `humanProblem93`.
pub const HUMAN_PROBLEM: u8 = 93;
/// `stationaryVehicle94`.
pub const STATIONARY_VEHICLE: u8 = 94;
/// `emergencyVehicleApproaching95`.
pub const EMERGENCY_VEHICLE_APPROACHING: u8 = 95;
/// `hazardousLocation-DangerousCurve96`.
pub const HAZARDOUS_LOCATION_DANGEROUS_CURVE: u8 = 96;
/// `collisionRisk97`.
pub const COLLISION_RISK: u8 = 97;
/// `signalViolation98`.
pub const SIGNAL_VIOLATION: u8 = 98;
/// `dangerousSituation99`.
pub const DANGEROUS_SITUATION: u8 = 99;
/// `railwayLevelCrossing100`.
pub const RAILWAY_LEVEL_CROSSING: u8 = 100;
