//! Settings of a station's services.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use viaduct_its::facilities::ca_service::{CaSettings, N_GEN_CAM, T_GEN_CAM_RSU_MIN};
use viaduct_its::facilities::cam::{
    EmergencyContainer, LightBarSirenInUse, RescueContainer, RoadWorksContainerBasic, SafetyCarContainer,
    SpecialVehicleContainer, VehicleRole,
};
use viaduct_its::facilities::cp_service::{CpSettings, T_GEN_CPM_MAX, T_GEN_CPM_MIN};
use viaduct_its::facilities::cpm::{SENSORS_MAX, Sensor, SensorType};
use viaduct_its::facilities::den_service::DenSettings;
use viaduct_its::facilities::ldm::ClockTolerance;
use viaduct_its::facilities::va_service::{VaSettings, VruProfile};
use viaduct_its::facilities::{FacilitiesSettings, MessageKind, Offset, Outline, Shape};
use viaduct_messages::topic;
use viaduct_node::SettingError;
use viaduct_units::{Degrees, Metres, StationId, StationType};

/// A full turn in tenths of a degree.
const ALL_AROUND: i32 = 3600;

/// Maximum number of queries of one map.
const QUERIES_MAX: usize = 16;

/// Services of the facilities layer. Each generates messages by the rules of its standard. A service that is absent is off; `{}`
/// enables it with the defaults of the standard.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServicesSettings {
    /// Cooperative awareness (TS 103 900): CAMs, from the station's movement.
    pub ca: Option<CaServiceSettings>,
    /// Collective perception (TS 103 324): CPMs, from perceived objects.
    pub cp: Option<CpServiceSettings>,
    /// Environmental notification (TS 103 831): DENMs, from events of applications; tracks the events of other stations.
    pub den: Option<DenServiceSettings>,
    /// Vulnerable road user awareness (TS 103 300-3): VAMs, from the station's movement.
    pub va: Option<VaServiceSettings>,
    /// Local dynamic map (EN 302 895): all valid objects, as one message on a topic.
    pub ldm: Option<LdmSettings>,
    /// Topic of the station's movement (`viaduct.vehicle.VehicleState`). Absent: the station stands at `position`.
    pub vehicle: Option<String>,
    /// Topic of perceived objects (`viaduct.perception.PerceivedObjects`), for `cp`.
    pub objects: Option<String>,
    /// Topic of events (`viaduct.its.EventRequest`), for `den`.
    pub events: Option<String>,
    /// Topic on which `den` publishes changes of the events of other stations (`viaduct.its.EventNotice`).
    pub notices: String,
}

impl Default for ServicesSettings {
    fn default() -> Self {
        Self {
            ca: None,
            cp: None,
            den: None,
            va: None,
            ldm: None,
            vehicle: None,
            objects: None,
            events: None,
            notices: "its/events".to_owned(),
        }
    }
}

/// Cooperative awareness.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CaServiceSettings {
    /// Length of the vehicle in metres, above 0 to 102.2. Absent: unavailable in CAMs.
    pub length_m: Option<f64>,
    /// Width of the vehicle in metres, above 0 to 6.1. Absent: unavailable in CAMs.
    pub width_m: Option<f64>,
    /// CAMs sent at the shorter interval after a change of movement, before the interval returns to the longest (`N_GenCam`),
    /// 1 to 3. Absent: 3.
    #[schemars(range(min = 1, max = 3))]
    pub n_gen_cam: Option<u8>,
    /// Interval of a roadside unit (`station_type` 15) in milliseconds, 1000 to 3 600 000. Absent: 1000.
    #[schemars(range(min = 1000, max = 3_600_000))]
    pub roadside_interval_ms: Option<u64>,
    /// Special role of the vehicle; needs `services.vehicle`. Its CAMs contain the state of light bar and siren from that topic.
    /// Absent: none.
    pub role: Option<VehicleRoleSetting>,
}

/// A special role of a vehicle (VehicleRole, TS 102 894-2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VehicleRoleSetting {
    /// Road works.
    RoadWork,
    /// Rescue, such as a breakdown service.
    Rescue,
    /// Police, fire brigade, ambulance.
    Emergency,
    /// Safety car, such as the escort of an abnormal load.
    SafetyCar,
}

/// Collective perception.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CpServiceSettings {
    /// Interval between generation events in milliseconds (`T_GenCpm`), 100 to 1000. Absent: 100.
    #[schemars(range(min = 100, max = 1000))]
    pub period_ms: Option<u64>,
    /// The station's sensors, at most 128. CPMs describe them once per second. Empty: not described.
    #[schemars(length(max = 128))]
    pub sensors: Vec<SensorSettings>,
}

/// A sensor and its field of view (SensorInformation, TS 103 324).
///
/// Directions are counter-clockwise, from straight ahead for a vehicle and from east for a roadside unit.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SensorSettings {
    /// Number of the sensor at this station, 0 to 255.
    pub id: u8,
    /// Type of the sensor.
    pub r#type: SensorTypeSetting,
    /// Range in metres, 0.1 to 409.5. Absent: CPMs do not describe the field of view.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 409.5))]
    pub range_m: Option<f64>,
    /// Start of the field of view in degrees, 0 to 360. Absent together with `end_deg`: the field of view is a full
    /// circle.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 360.0))]
    pub start_deg: Option<f64>,
    /// End of the field of view in degrees, 0 to 360. From 0 to 360 is a full circle.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 360.0))]
    pub end_deg: Option<f64>,
    /// Mounting position ahead of the reference position in metres (for a roadside unit: east of it), -327 to 327. Used only with
    /// `range_m`.
    #[serde(default)]
    #[schemars(range(min = -327.0, max = 327.0))]
    pub x_m: f64,
    /// Mounting position to the left of the reference position in metres (for a roadside unit: north of it), -327 to 327. Used only
    /// with `range_m`.
    #[serde(default)]
    #[schemars(range(min = -327.0, max = 327.0))]
    pub y_m: f64,
    /// Probability that an object in the field of view is perceived, 0.01 to 1. Absent: unavailable in CPMs.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 1.0))]
    pub confidence: Option<f64>,
    /// Objects hide other objects that are behind them (shadowing).
    #[serde(default)]
    pub shadowing: bool,
}

/// Kind of a sensor (SensorType, TS 102 894-2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SensorTypeSetting {
    /// Any other type.
    Undefined,
    /// Radar.
    Radar,
    /// Lidar.
    Lidar,
    /// Monocular camera.
    Monovideo,
    /// Stereo camera.
    Stereovision,
    /// Infrared camera.
    Nightvision,
    /// Ultrasound.
    Ultrasonic,
    /// Time-of-flight camera (photonic mixing device).
    Pmd,
    /// Induction loop in the road.
    InductionLoop,
    /// 360-degree camera.
    SphericalCamera,
    /// Ultra-wideband radio.
    Uwb,
    /// Microphones.
    Acoustic,
    /// Fusion of several sensors of the station.
    LocalAggregation,
    /// Fusion of the sensors of the station with received messages.
    ItsAggregation,
    /// Radio tags.
    Rfid,
}

/// Environmental notification.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DenServiceSettings {
    /// Forwards DENMs of other stations that no longer repeat them (keep-alive forwarding).
    pub keep_alive_forwarding: bool,
}

/// Vulnerable road user awareness.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VaServiceSettings {
    /// Profile of the road user.
    pub profile: VruProfileSetting,
    /// Creates and joins clusters.
    pub clustering: bool,
}

/// A vulnerable road user.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VruProfileSetting {
    /// Profile 1.
    #[default]
    Pedestrian,
    /// Profile 2: bicycles and light vehicles.
    Bicyclist,
    /// Profile 3.
    Motorcyclist,
    /// Profile 4.
    Animal,
}

/// Local dynamic map.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LdmSettings {
    /// Topic of the map (`viaduct.its.LocalDynamicMap`).
    pub topic: String,
    /// Interval between messages in milliseconds, 100 to 60 000.
    #[schemars(range(min = 100, max = 60_000))]
    pub period_ms: u64,
    /// Objects farther from the station than this are not kept, in metres, 1 to 65 535. Absent: no limit.
    #[schemars(range(min = 1, max = 65_535))]
    pub radius_m: Option<u32>,
    /// Queries of the map, each published on a separate topic at the interval of the map; at most 16.
    #[schemars(length(max = 16))]
    pub queries: Vec<LdmQuerySettings>,
    /// Stations with a wrong clock whose times the map corrects. A station with a constant offset of whole seconds is reported once in
    /// the log and on the topic of errors, in any case. Its messages keep the times as sent.
    pub clock_tolerance: ClockToleranceSetting,
}

/// Clock offsets of other stations that the local dynamic map corrects. An offset is detected by four messages (CAM, CPM, VAM) in a
/// row.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockToleranceSetting {
    /// None: if a station is late by more than 2 s, its awareness messages are too old for the map.
    Off,
    /// Stations that ignore the leap seconds since 2004, as Vanetza and many stations in the field do: they are 5 s late.
    #[default]
    LeapSeconds,
    /// Any constant offset of whole seconds, late or early.
    AnyWholeSecond,
}

impl From<ClockToleranceSetting> for ClockTolerance {
    fn from(setting: ClockToleranceSetting) -> Self {
        match setting {
            ClockToleranceSetting::Off => Self::Off,
            ClockToleranceSetting::LeapSeconds => Self::LeapSeconds,
            ClockToleranceSetting::AnyWholeSecond => Self::AnyWholeSecond,
        }
    }
}

impl Default for LdmSettings {
    fn default() -> Self {
        Self {
            topic: "its/ldm".to_owned(),
            period_ms: 1000,
            radius_m: None,
            queries: Vec::new(),
            clock_tolerance: ClockToleranceSetting::default(),
        }
    }
}

/// A query of the map. An object must match every condition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LdmQuerySettings {
    /// Topic of the result (`viaduct.its.LocalDynamicMap`).
    pub topic: String,
    /// Only objects from messages of these types: `cam`, `denm`, and so on. Empty: all types.
    #[serde(default)]
    pub types: Vec<String>,
    /// Only objects from messages of this station.
    #[serde(default)]
    pub station_id: Option<u32>,
    /// Only objects within this distance of the station, in metres, 1 to 65 535. Nothing is published while the position of the
    /// station is unknown.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65_535))]
    pub within_m: Option<u32>,
    /// Only objects whose time is at most this long ago, in milliseconds, 1 to 86 400 000.
    #[serde(default)]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub newer_than_ms: Option<u32>,
    /// Excludes objects from the station's own messages.
    #[serde(default)]
    pub only_others: bool,
}

impl From<VruProfileSetting> for VruProfile {
    fn from(profile: VruProfileSetting) -> Self {
        match profile {
            VruProfileSetting::Pedestrian => Self::Pedestrian,
            VruProfileSetting::Bicyclist => Self::BicyclistAndLightVruVehicle,
            VruProfileSetting::Motorcyclist => Self::Motorcyclist,
            VruProfileSetting::Animal => Self::Animal,
        }
    }
}

impl VehicleRoleSetting {
    /// Returns the role and its container of a CAM.
    pub(in super::super) fn container(self, light_bar: bool, siren: bool) -> (VehicleRole, SpecialVehicleContainer) {
        let light_bar_siren_in_use = LightBarSirenInUse::from_octet(u8::from(light_bar) << 7 | u8::from(siren) << 6);
        match self {
            Self::RoadWork => {
                let (roadworks_sub_cause_code, closed_lanes) = (None, None);
                let container =
                    RoadWorksContainerBasic { roadworks_sub_cause_code, light_bar_siren_in_use, closed_lanes };
                (VehicleRole::RoadWork, SpecialVehicleContainer::RoadWorksContainerBasic(container))
            }
            Self::Rescue => {
                let container = RescueContainer { light_bar_siren_in_use };
                (VehicleRole::Rescue, SpecialVehicleContainer::RescueContainer(container))
            }
            Self::Emergency => {
                let (incident_indication, emergency_priority) = (None, None);
                let container = EmergencyContainer { light_bar_siren_in_use, incident_indication, emergency_priority };
                (VehicleRole::Emergency, SpecialVehicleContainer::EmergencyContainer(container))
            }
            Self::SafetyCar => {
                let (incident_indication, traffic_rule, speed_limit) = (None, None, None);
                let container =
                    SafetyCarContainer { light_bar_siren_in_use, incident_indication, traffic_rule, speed_limit };
                (VehicleRole::SafetyCar, SpecialVehicleContainer::SafetyCarContainer(container))
            }
        }
    }
}

impl From<SensorTypeSetting> for SensorType {
    fn from(kind: SensorTypeSetting) -> Self {
        match kind {
            SensorTypeSetting::Undefined => Self::UNDEFINED,
            SensorTypeSetting::Radar => Self::RADAR,
            SensorTypeSetting::Lidar => Self::LIDAR,
            SensorTypeSetting::Monovideo => Self::MONOVIDEO,
            SensorTypeSetting::Stereovision => Self::STEREOVISION,
            SensorTypeSetting::Nightvision => Self::NIGHTVISION,
            SensorTypeSetting::Ultrasonic => Self::ULTRASONIC,
            SensorTypeSetting::Pmd => Self::PMD,
            SensorTypeSetting::InductionLoop => Self::INDUCTION_LOOP,
            SensorTypeSetting::SphericalCamera => Self::SPHERICAL_CAMERA,
            SensorTypeSetting::Uwb => Self::UWB,
            SensorTypeSetting::Acoustic => Self::ACOUSTIC,
            SensorTypeSetting::LocalAggregation => Self::LOCAL_AGGREGATION,
            SensorTypeSetting::ItsAggregation => Self::ITS_AGGREGATION,
            SensorTypeSetting::Rfid => Self::RFID,
        }
    }
}

impl SensorSettings {
    fn check(&self, key: &str) -> Result<(), SettingError> {
        for (name, value, min, max) in [
            ("range_m", self.range_m, 0.1, 409.5),
            ("start_deg", self.start_deg, 0.0, 360.0),
            ("end_deg", self.end_deg, 0.0, 360.0),
            ("x_m", Some(self.x_m), -327.0, 327.0),
            ("y_m", Some(self.y_m), -327.0, 327.0),
            ("confidence", self.confidence, 0.01, 1.0),
        ] {
            if let Some(value) = value
                && !(min..=max).contains(&value)
            {
                return Err(SettingError::new(
                    format!("{key}.{name}"),
                    format!("{value} is not within {min} to {max}"),
                ));
            }
        }
        let angles = (self.start_deg.is_some(), self.end_deg.is_some());
        if angles.0 != angles.1 {
            let problem = "`start_deg` and `end_deg` must be given together";
            return Err(SettingError::new(key, problem));
        }
        if self.view().is_some_and(|(start, end)| (end - start) % ALL_AROUND == 0 && end - start != ALL_AROUND) {
            let problem = "the field of view is empty; use 0 to 360 for all around";
            return Err(SettingError::new(format!("{key}.end_deg"), problem));
        }
        if angles.0 && self.range_m.is_none() {
            return Err(SettingError::new(format!("{key}.range_m"), "required with `start_deg` and `end_deg`"));
        }
        if (self.x_m != 0.0 || self.y_m != 0.0) && self.range_m.is_none() {
            let problem = "required with `x_m` and `y_m`";
            return Err(SettingError::new(format!("{key}.range_m"), problem));
        }
        Ok(())
    }

    /// Returns start and end of the field of view in tenths of a degree, as in messages.
    fn view(&self) -> Option<(i32, i32)> {
        let tenths = |degrees: f64| (degrees * 10.0).round() as i32;
        self.start_deg.map(tenths).zip(self.end_deg.map(tenths))
    }

    /// Returns the sensor as the CP service needs it.
    fn sensor(&self) -> Sensor {
        Sensor {
            id: self.id,
            kind: self.r#type.into(),
            area: self.range_m.map(|range| self.area(Metres(range))),
            confidence: self.confidence,
            shadowing: self.shadowing,
        }
    }

    fn area(&self, range: Metres) -> Shape {
        let outline = match self.start_deg.zip(self.end_deg) {
            // Degrees wrap, so a sector from 0 to 360 would be empty.
            Some((start, end)) if self.view().is_some_and(|(start, end)| end - start != ALL_AROUND) => {
                Outline::Sector { range, start: Degrees(start), end: Degrees(end) }
            }
            _ => Outline::Circle { radius: range },
        };
        let centre = Offset { x: Metres(self.x_m), y: Metres(self.y_m), z: None };
        Shape { centre: (centre != Offset::default()).then_some(centre), outline, height: None }
    }
}

impl CpServiceSettings {
    fn check(&self) -> Result<(), SettingError> {
        if let Some(period) = self.period_ms {
            within("services.cp.period_ms", period, millis(T_GEN_CPM_MIN), millis(T_GEN_CPM_MAX))?;
        }
        if self.sensors.len() > SENSORS_MAX {
            let problem = format!("{} sensors; at most {SENSORS_MAX} are allowed", self.sensors.len());
            return Err(SettingError::new("services.cp.sensors", problem));
        }
        for (index, sensor) in self.sensors.iter().enumerate() {
            let key = format!("services.cp.sensors.{index}");
            sensor.check(&key)?;
            if self.sensors.iter().take(index).any(|before| before.id == sensor.id) {
                return Err(SettingError::new(
                    format!("{key}.id"),
                    format!("{} is already used by another sensor", sensor.id),
                ));
            }
        }
        Ok(())
    }

    pub(in super::super) fn sensors(&self) -> Vec<Sensor> {
        self.sensors.iter().map(SensorSettings::sensor).collect()
    }
}

impl ServicesSettings {
    /// Checks the settings for a station of the given type. `has_position` is `true` if the station has the setting `position`.
    pub(super) fn check(&self, station_type: StationType, has_position: bool) -> Result<(), SettingError> {
        if let Some(ca) = &self.ca {
            ca.check(station_type)?;
            if ca.role.is_some() && self.vehicle.is_none() {
                let problem = "needs `services.vehicle`, which contains the state of light bar and siren";
                return Err(SettingError::new("services.ca.role", problem));
            }
        }
        if let Some(cp) = &self.cp {
            cp.check()?;
        }
        if let Some(ldm) = &self.ldm {
            ldm.check()?;
        }
        self.check_topics()?;
        if self.vehicle.is_some() && station_type.is_roadside_unit() {
            let problem = "15 is a roadside unit, which stands at its `position`; with `services.vehicle` use another \
                           type, such as 5 for a passenger car";
            return Err(SettingError::new("station_type", problem));
        }
        if self.vehicle.is_some() && has_position {
            let problem = "not allowed with `services.vehicle`, which contains the position";
            return Err(SettingError::new("position", problem));
        }
        if self.vehicle.is_none() && !has_position {
            let problem = "a station with services needs either `position` or `services.vehicle`";
            return Err(SettingError::new("position", problem));
        }
        if self.cp.is_some() && self.objects.is_none() {
            let problem = "required by `services.cp`: the topic of the perceived objects";
            return Err(SettingError::new("services.objects", problem));
        }
        Ok(())
    }

    /// Checks that the topics are names and that the service that reads each of them is on.
    fn check_topics(&self) -> Result<(), SettingError> {
        let topics = [
            ("services.vehicle", self.vehicle.as_ref(), None),
            ("services.objects", self.objects.as_ref(), Some(("cp", self.cp.is_some()))),
            ("services.events", self.events.as_ref(), Some(("den", self.den.is_some()))),
            ("services.notices", Some(&self.notices), None),
        ];
        for (key, name, service) in topics {
            let Some(name) = name else { continue };
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
            if let Some((service, false)) = service {
                return Err(SettingError::new(key, format!("needs `services.{service}`, which is off")));
            }
        }
        Ok(())
    }

    /// Returns the settings of the state machine.
    pub(in super::super) fn facilities(&self, station_id: StationId, station_type: StationType) -> FacilitiesSettings {
        FacilitiesSettings {
            ca: self.ca.as_ref().map(|ca| ca.machine(station_id, station_type)),
            cp: self.cp.as_ref().map(|cp| CpSettings {
                station_type,
                t_gen_cpm: cp.period_ms.map_or(T_GEN_CPM_MIN, Duration::from_millis),
                ..CpSettings::new(station_id)
            }),
            den: self.den.as_ref().map(|den| DenSettings {
                station_id,
                station_type,
                keep_alive_forwarding: den.keep_alive_forwarding,
            }),
            va: self.va.as_ref().map(|va| VaSettings {
                profile: va.profile.into(),
                clustering: va.clustering,
                ..VaSettings::new(station_id)
            }),
            clock_tolerance: self.ldm.as_ref().map(|ldm| ldm.clock_tolerance.into()).unwrap_or_default(),
        }
    }
}

impl CaServiceSettings {
    fn check(&self, station_type: StationType) -> Result<(), SettingError> {
        if self.role.is_some() && station_type.is_roadside_unit() {
            let problem = "not allowed for `station_type` 15: only a vehicle has a role";
            return Err(SettingError::new("services.ca.role", problem));
        }
        for (key, value, max) in
            [("services.ca.length_m", self.length_m, 102.2), ("services.ca.width_m", self.width_m, 6.1)]
        {
            if let Some(value) = value
                && !(value > 0.0 && value <= max)
            {
                return Err(SettingError::new(key, format!("{value} is not above 0 and at most {max}")));
            }
        }
        if let Some(count) = self.n_gen_cam {
            within("services.ca.n_gen_cam", count.into(), 1, N_GEN_CAM.into())?;
        }
        match self.roadside_interval_ms {
            Some(interval) => {
                within("services.ca.roadside_interval_ms", interval, millis(T_GEN_CAM_RSU_MIN), 3_600_000)
            }
            None => Ok(()),
        }
    }

    fn machine(&self, station_id: StationId, station_type: StationType) -> CaSettings {
        let standard = CaSettings::new(station_id);
        CaSettings {
            station_type,
            length: self.length_m.map(Metres),
            width: self.width_m.map(Metres),
            n_gen_cam: self.n_gen_cam.unwrap_or(standard.n_gen_cam),
            roadside_interval: self.roadside_interval_ms.map_or(standard.roadside_interval, Duration::from_millis),
            ..standard
        }
    }
}

impl LdmSettings {
    fn check(&self) -> Result<(), SettingError> {
        topic::check_name(&self.topic).map_err(|error| SettingError::new("services.ldm.topic", error.to_string()))?;
        within("services.ldm.period_ms", self.period_ms, 100, 60_000)?;
        within("services.ldm.radius_m", self.radius_m.unwrap_or(1).into(), 1, 65_535)?;
        let key = "services.ldm.queries";
        if self.queries.len() > QUERIES_MAX {
            let count = self.queries.len();
            return Err(SettingError::new(key, format!("{count} queries; at most {QUERIES_MAX} are allowed")));
        }
        for (number, query) in self.queries.iter().enumerate() {
            query.check(&format!("{key}.{number}"))?;
            let before = self.queries.iter().take(number).map(|query| &query.topic).chain([&self.topic]);
            if let Some(topic) = before.into_iter().find(|topic| **topic == query.topic) {
                let problem = format!("`{topic}` is already used by the map or an earlier query");
                return Err(SettingError::new(format!("{key}.{number}.topic"), problem));
            }
        }
        Ok(())
    }
}

impl LdmQuerySettings {
    fn check(&self, key: &str) -> Result<(), SettingError> {
        topic::check_name(&self.topic).map_err(|error| SettingError::new(format!("{key}.topic"), error.to_string()))?;
        if let Some(unknown) = self.types.iter().find(|label| MessageKind::from_label(label).is_none()) {
            let known = MessageKind::ALL.map(MessageKind::label).join(", ");
            return Err(SettingError::new(
                format!("{key}.types"),
                format!("unknown type `{unknown}`; expected one of {known}"),
            ));
        }
        within(&format!("{key}.within_m"), self.within_m.unwrap_or(1).into(), 1, 65_535)?;
        within(&format!("{key}.newer_than_ms"), self.newer_than_ms.unwrap_or(1).into(), 1, 86_400_000)
    }

    /// Returns the message types of the query.
    pub(in super::super) fn kinds(&self) -> Vec<MessageKind> {
        self.types.iter().filter_map(|label| MessageKind::from_label(label)).collect()
    }
}

fn within(key: &str, value: u64, min: u64, max: u64) -> Result<(), SettingError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SettingError::new(key, format!("{value} is not within {min} to {max}")))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensor_that_sees_all_around_has_a_circle() {
        let sees = |angles: &str| {
            let text = format!("{{\"id\":1,\"type\":\"lidar\",\"range_m\":100{angles}}}");
            let settings: SensorSettings = serde_json::from_str(&text).unwrap();
            settings.check("sensor").unwrap();
            settings.sensor().area.unwrap().outline
        };
        let circle = Outline::Circle { radius: Metres(100.0) };
        assert_eq!((sees(""), sees(",\"start_deg\":0,\"end_deg\":360")), (circle.clone(), circle));
        let ahead = Outline::Sector { range: Metres(100.0), start: Degrees(315.0), end: Degrees(45.0) };
        assert_eq!(sees(",\"start_deg\":315,\"end_deg\":45"), ahead);
    }
}
