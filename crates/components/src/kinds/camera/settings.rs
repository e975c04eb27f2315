//! Settings of a camera.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_messages::topic;
use viaduct_node::{QosPreset, QosSettings, SettingError};

use super::directory::Recording;
use super::picture::SIDE_MAX;
use super::quality::QualityLimits;
use super::scene::Mount;
use super::v4l2::DeviceSettings;
use crate::motion::road::RoadNetwork;

/// Length of the largest picture of a recording, if it is not set.
const RECORDED_OCTETS: usize = 1 << 20;
/// Largest length of a picture.
const OCTETS_MAX: usize = 16 << 20;
/// Smallest payload of the source `raw`.
const RAW_OCTETS_MIN: usize = 64;

/// A camera that publishes pictures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CameraSettings {
    /// Topic of the pictures (`foxglove.CompressedImage`).
    pub topic: String,
    /// Source of the pictures.
    pub source: SourceSettings,
    /// Pictures per second, 0.1 to 120. Default: 10. With `v4l2`, the nearest rate that the device offers, at most this one.
    #[serde(default = "default_rate")]
    #[schemars(range(min = 0.1, max = 120.0))]
    pub rate_hz: f64,
    /// Index of the camera in the mark and in the frame segment, 0 to 15. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 15))]
    pub index: u8,
    /// Frame of reference of the pictures. Default: the name of the component.
    #[serde(default)]
    pub frame_id: Option<String>,
    /// Quality of the pictures.
    #[serde(default)]
    pub jpeg: JpegSettings,
    /// Topic of the camera's budget (`viaduct.vehicle.CameraBudget`). Absent: no limit. Not allowed with `raw`.
    #[serde(default)]
    pub budget: Option<String>,
    /// Largest picture in bytes, 1024 to 16777216: the size of the pool's buffers. Default: one byte for each pixel and 65536, or
    /// 1048576 with `directory`. Not allowed with `raw`.
    #[serde(default)]
    #[schemars(range(min = 1024, max = 16_777_216))]
    pub octets_max: Option<usize>,
    /// Offered quality of service. Default: the preset `sensor_data`.
    #[serde(default = "default_qos")]
    pub qos: QosSettings,
}

const fn default_rate() -> f64 {
    10.0
}

fn default_qos() -> QosSettings {
    QosSettings::preset(QosPreset::SensorData)
}

/// Source of the pictures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceSettings {
    /// A road scene.
    Synthetic(SyntheticSettings),
    /// Recorded JPEG files.
    Directory(DirectorySettings),
    /// A camera of the system with Motion JPEG.
    V4l2(V4l2Settings),
    /// A payload of a fixed size that is not a picture, for measurements.
    Raw(RawSettings),
}

/// A road scene: the roads of a network with marks, trees, houses and other vehicles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SyntheticSettings {
    /// Width in pixels, 64 to 4096. Default: 640. The mark needs 448.
    #[schemars(range(min = 64, max = 4096))]
    pub width: usize,
    /// Height in pixels, 64 to 4096. Default: 480.
    #[schemars(range(min = 64, max = 4096))]
    pub height: usize,
    /// Place of the camera in the vehicle. Default: `front`.
    pub view: ViewSetting,
    /// Topic of the vehicle's state (`viaduct.vehicle.VehicleState`). Absent: the vehicle drives a tour at 10 m/s; all cameras of a
    /// machine show the same tour.
    pub state: Option<String>,
    /// Road network: a GeoJSON file, as for kind `fleet`. Absent: the built-in town.
    pub roads: Option<PathBuf>,
    /// If `true`, the machine-readable mark with frame number and capture time is drawn. Default: `true`.
    pub mark: bool,
}

impl Default for SyntheticSettings {
    fn default() -> Self {
        Self { width: 640, height: 480, view: ViewSetting::Front, state: None, roads: None, mark: true }
    }
}

/// Place of a camera in the vehicle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewSetting {
    /// Behind the windscreen, ahead.
    #[default]
    Front,
    /// At the left side, to the left.
    Left,
    /// At the right side, to the right.
    Right,
    /// At the rear, backwards.
    Rear,
}

/// Recorded JPEG files.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySettings {
    /// Directory with files `*.jpg` or `*.jpeg`. They are published in the order of their names, and repeated.
    pub path: PathBuf,
}

/// A camera of the system (Video4Linux).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct V4l2Settings {
    /// Device: `/dev/video0`, or a name in `/dev/v4l/by-id` that remains the same after a restart. If it is missing, the camera
    /// connects when it appears.
    pub device: PathBuf,
    /// Width in pixels, 64 to 4096. Default: 640. The device selects the nearest size that it offers.
    #[serde(default = "default_width")]
    #[schemars(range(min = 64, max = 4096))]
    pub width: usize,
    /// Height in pixels, 64 to 4096. Default: 480.
    #[serde(default = "default_height")]
    #[schemars(range(min = 64, max = 4096))]
    pub height: usize,
}

const fn default_width() -> usize {
    640
}

const fn default_height() -> usize {
    480
}

/// A payload of a fixed size.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawSettings {
    /// Size of a payload in bytes, 64 to 16777216. Default: 374000.
    #[serde(default = "default_raw")]
    #[schemars(range(min = 64, max = 16_777_216))]
    pub octets: usize,
}

const fn default_raw() -> usize {
    374_000
}

/// Quality of the pictures. Under a budget, the quality decreases first, then the size, then the rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JpegSettings {
    /// JPEG quality, 1 to 100. Default: 75. Pictures of `directory` and `v4l2` are published as they are if the budget permits.
    #[schemars(range(min = 1, max = 100))]
    pub quality: u8,
    /// Lowest quality under a budget, 1 to 100. Default: 25.
    #[schemars(range(min = 1, max = 100))]
    pub quality_min: u8,
    /// Smallest size under a budget. Default: `half`. The mark is drawn only if the width is at least 448 pixels.
    pub size_min: SmallestSize,
}

impl Default for JpegSettings {
    fn default() -> Self {
        Self { quality: 75, quality_min: 25, size_min: SmallestSize::Half }
    }
}

/// Smallest size of a picture under a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SmallestSize {
    /// The configured size.
    Full,
    /// Three fourths of width and height.
    ThreeFourths,
    /// Half of width and height.
    Half,
}

impl JpegSettings {
    pub(super) const fn limits(&self) -> QualityLimits {
        let fourths_min = match self.size_min {
            SmallestSize::Full => 4,
            SmallestSize::ThreeFourths => 3,
            SmallestSize::Half => 2,
        };
        QualityLimits { least: self.quality_min, most: self.quality, fourths_min }
    }

    fn check(&self) -> Result<(), SettingError> {
        for (key, value) in [("jpeg.quality", self.quality), ("jpeg.quality_min", self.quality_min)] {
            if !(1..=100).contains(&value) {
                return Err(SettingError::new(key, format!("{value} is not within 1 to 100")));
            }
        }
        if self.quality_min > self.quality {
            let problem = format!("{} is above `jpeg.quality`, {}", self.quality_min, self.quality);
            return Err(SettingError::new("jpeg.quality_min", problem));
        }
        Ok(())
    }
}

impl ViewSetting {
    pub(super) fn mount(self) -> Mount {
        let mount = |yaw_deg: f64, behind: f64, up: f64, field_deg: f64| Mount {
            yaw_rad: yaw_deg.to_radians(),
            pitch_rad: 5f64.to_radians(),
            behind,
            up,
            field_rad: field_deg.to_radians(),
            hood: self == Self::Front,
        };
        match self {
            Self::Front => mount(0.0, 1.6, 1.4, 75.0),
            Self::Left => mount(-90.0, 2.0, 1.2, 85.0),
            Self::Right => mount(90.0, 2.0, 1.2, 85.0),
            Self::Rear => mount(180.0, 4.5, 1.1, 75.0),
        }
    }
}

impl CameraSettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let name = |key: &str, name: &str| {
            topic::check_name(name).map_err(|error| SettingError::new(key.to_owned(), error.to_string()))
        };
        name("topic", &self.topic)?;
        if let Some(budget) = &self.budget {
            name("budget", budget)?;
        }
        if !(0.1..=120.0).contains(&self.rate_hz) {
            return Err(SettingError::new("rate_hz", format!("{} is not within 0.1 to 120", self.rate_hz)));
        }
        if self.index > 15 {
            return Err(SettingError::new("index", format!("{} is not within 0 to 15", self.index)));
        }
        self.jpeg.check()?;
        self.check_octets()?;
        self.source.check()?;
        self.qos.resolve("qos").map(drop)
    }

    fn check_octets(&self) -> Result<(), SettingError> {
        if let SourceSettings::Raw(_) = self.source {
            let wrong = |key| Err(SettingError::new(key, "not allowed with `source: raw`, whose size is fixed"));
            if self.budget.is_some() {
                return wrong("budget");
            }
            if self.octets_max.is_some() {
                return wrong("octets_max");
            }
        }
        match self.octets_max {
            Some(octets) => in_range("octets_max", octets, 1024, OCTETS_MAX),
            None => Ok(()),
        }
    }

    /// Returns the largest length of a picture in bytes.
    pub(super) fn octets_max(&self) -> usize {
        let pixels = |width: usize, height: usize| (width * height + 65_536).min(OCTETS_MAX);
        let of_source = match &self.source {
            SourceSettings::Synthetic(synthetic) => pixels(synthetic.width, synthetic.height),
            SourceSettings::V4l2(device) => pixels(device.width, device.height),
            SourceSettings::Directory(_) => RECORDED_OCTETS,
            SourceSettings::Raw(raw) => raw.octets,
        };
        self.octets_max.unwrap_or(of_source)
    }

    /// Checks files of the machine.
    pub(super) fn check_machine(&self) -> Result<(), SettingError> {
        match &self.source {
            SourceSettings::Synthetic(synthetic) => synthetic.load_roads().map(drop),
            SourceSettings::Directory(directory) => directory.open().map(drop),
            SourceSettings::V4l2(_) | SourceSettings::Raw(_) => Ok(()),
        }
    }
}

impl SourceSettings {
    fn check(&self) -> Result<(), SettingError> {
        match self {
            Self::Synthetic(synthetic) => {
                in_range("source.synthetic.width", synthetic.width, 64, SIDE_MAX)?;
                in_range("source.synthetic.height", synthetic.height, 64, SIDE_MAX)?;
                let wrong = |error: topic::NameError| SettingError::new("source.synthetic.state", error.to_string());
                synthetic.state.as_deref().map_or(Ok(()), |state| topic::check_name(state).map_err(wrong))
            }
            Self::Directory(_) => Ok(()),
            Self::V4l2(device) => {
                in_range("source.v4l2.width", device.width, 64, SIDE_MAX)?;
                in_range("source.v4l2.height", device.height, 64, SIDE_MAX)
            }
            Self::Raw(raw) => in_range("source.raw.octets", raw.octets, RAW_OCTETS_MIN, OCTETS_MAX),
        }
    }
}

impl SyntheticSettings {
    pub(super) fn load_roads(&self) -> Result<RoadNetwork, SettingError> {
        let inner = |error: SettingError| SettingError::new(format!("source.synthetic.{}", error.key), error.problem);
        RoadNetwork::load(self.roads.as_deref()).map_err(inner)
    }
}

impl DirectorySettings {
    pub(super) fn open(&self) -> Result<Recording, SettingError> {
        Recording::open(&self.path).map_err(|error| SettingError::new("source.directory.path", error.to_string()))
    }
}

impl V4l2Settings {
    pub(super) fn device(&self, rate_hz: f64) -> DeviceSettings {
        DeviceSettings { path: self.device.clone(), width: self.width as u32, height: self.height as u32, rate_hz }
    }
}

fn in_range(key: &str, value: usize, least: usize, most: usize) -> Result<(), SettingError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SettingError::new(key, format!("{value} is not within {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rest: &serde_json::Value) -> CameraSettings {
        let mut all = serde_json::json!({ "topic": "camera/front", "source": { "synthetic": {} } });
        let more = rest.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        for (rest, key) in [
            (serde_json::json!({}), None),
            (serde_json::json!({ "topic": "camera/*" }), Some("topic")),
            (serde_json::json!({ "budget": "" }), Some("budget")),
            (serde_json::json!({ "rate_hz": 0.0 }), Some("rate_hz")),
            (serde_json::json!({ "index": 16 }), Some("index")),
            (serde_json::json!({ "jpeg": { "quality": 0 } }), Some("jpeg.quality")),
            (serde_json::json!({ "jpeg": { "quality": 20 } }), Some("jpeg.quality_min")),
            (serde_json::json!({ "octets_max": 1000 }), Some("octets_max")),
            (serde_json::json!({ "source": { "synthetic": { "width": 63 } } }), Some("source.synthetic.width")),
            (serde_json::json!({ "source": { "synthetic": { "state": "a/*" } } }), Some("source.synthetic.state")),
            (
                serde_json::json!({ "source": { "v4l2": { "device": "x", "height": 5000 } } }),
                Some("source.v4l2.height"),
            ),
            (serde_json::json!({ "source": { "raw": {} } }), None),
            (serde_json::json!({ "source": { "raw": { "octets": 63 } } }), Some("source.raw.octets")),
            (serde_json::json!({ "source": { "raw": {} }, "budget": "b" }), Some("budget")),
            (serde_json::json!({ "source": { "raw": {} }, "octets_max": 4096 }), Some("octets_max")),
            (serde_json::json!({ "qos": { "depth": 0 } }), Some("qos.depth")),
        ] {
            let refused = settings(&rest).check().err().map(|error| error.key);
            assert_eq!(refused.as_deref(), key, "{rest}");
        }
    }

    #[test]
    fn files_of_the_machine_are_checked_but_a_missing_device_is_not() {
        let wrong = |source: serde_json::Value| {
            settings(&serde_json::json!({ "source": source })).check_machine().err().map(|error| error.key)
        };
        let synthetic = serde_json::json!({ "synthetic": { "roads": "/no/such/file" } });
        assert_eq!(wrong(synthetic).as_deref(), Some("source.synthetic.roads"));
        let directory = serde_json::json!({ "directory": { "path": "/no/such/directory" } });
        assert_eq!(wrong(directory).as_deref(), Some("source.directory.path"));
        assert_eq!(wrong(serde_json::json!({ "v4l2": { "device": "/dev/no-such-camera" } })), None);
    }
}
