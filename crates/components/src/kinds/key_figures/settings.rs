//! Settings of the kind `key_figures`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::SettingError;

use super::check_topic;
use crate::figures::path::{Offloading, Path, Point, STAGES_MAX, Stage};

/// Live key figures of messages that leave the node and come back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyFiguresSettings {
    /// Topic of the returned messages, of any type: the list of objects that was detected in the cloud.
    pub topic: String,
    /// Topic of the source, of any type. Its messages are only counted, so that missing ones are known. Absent: losses are not
    /// measured.
    #[serde(default)]
    pub source: Option<String>,
    /// Names of the components at the eleven default stages.
    #[serde(default)]
    pub hops: HopsSettings,
    /// First point of the path, if `stages` is set: a component and `published`, `taken`, `sent` or `received`, such as
    /// `velodyne published`.
    #[serde(default)]
    pub start: Option<String>,
    /// Stages in the order of flow, instead of the default ones; 1 to 15. Each begins where the one before it ends.
    #[serde(default)]
    pub stages: Vec<StageSettings>,
    /// Number of newest messages over which statistics are computed, 1 to 100000. Default: 600, a minute at 10 Hz.
    #[serde(default = "default_window")]
    #[schemars(range(min = 1, max = 100_000))]
    pub window: u32,
    /// Time after which a message that has not come back is missing, in milliseconds, 1 to 600000. A message that comes back after it is
    /// late. Default: 1000.
    #[serde(default = "default_deadline")]
    #[schemars(range(min = 1, max = 600_000))]
    pub deadline_ms: u32,
    /// Topics of the figures: `TO/window` for the statistics, once a second, and `TO/message` for each message. Default: `figures`.
    #[serde(default = "default_to")]
    pub to: String,
    /// Files with the keys of the benchmarking suite of `mqtt_client`. Absent: none.
    #[serde(default)]
    pub files: Option<FilesSettings>,
}

/// Names of the components of a function that a vehicle offloads to a cloud.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HopsSettings {
    /// The source in the vehicle. Default: `velodyne`.
    pub source: String,
    /// The interface of the vehicle to the cloud. Default: `uplink`.
    pub vehicle: String,
    /// The interface of the cloud to the vehicle. Default: `bridge`.
    pub cloud: String,
    /// The function in the cloud. Default: `detector`.
    pub detection: String,
}

impl Default for HopsSettings {
    fn default() -> Self {
        let [source, vehicle, cloud, detection] = ["velodyne", "uplink", "bridge", "detector"].map(str::to_owned);
        Self { source, vehicle, cloud, detection }
    }
}

/// A stage of the path.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageSettings {
    /// Name of the stage, for example `detection`.
    pub name: String,
    /// Point at which the stage ends: `detector published`. A stage from `sent` to `received` is the way between two machines.
    pub to: String,
}

/// Files of the figures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesSettings {
    /// Folder, which is created. It gets `NAME_metrics.json`, rewritten once a second, and `NAME_timestamps.csv`.
    pub folder: PathBuf,
    /// Name of the experiment, in the names of the files. An earlier experiment of that name is replaced.
    #[serde(default = "default_name")]
    pub name: String,
    /// Maximum number of messages in `NAME_timestamps.csv`, 1 to 10000000. Default: 36000, an hour at 10 Hz.
    #[serde(default = "default_samples_max")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub samples_max: u32,
}

const fn default_window() -> u32 {
    600
}

const fn default_deadline() -> u32 {
    1_000
}

fn default_to() -> String {
    "figures".to_owned()
}

fn default_name() -> String {
    "figures".to_owned()
}

const fn default_samples_max() -> u32 {
    36_000
}

impl KeyFiguresSettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        check_topic("topic", &self.topic)?;
        if let Some(source) = &self.source {
            check_topic("source", source)?;
        }
        check_topic("to", &super::window_topic(&self.to))?;
        check_range("window", self.window, 1, 100_000)?;
        check_range("deadline_ms", self.deadline_ms, 1, 600_000)?;
        if let Some(files) = &self.files {
            files.check()?;
        }
        self.path("figures").map(|_| ())
    }

    /// Returns the path, whose last default stage ends at `reader`.
    pub(super) fn path(&self, reader: &str) -> Result<Path, SettingError> {
        let wrong = |key: String, problem: String| SettingError::new(key, problem);
        let Some(start) = &self.start else {
            if !self.stages.is_empty() {
                return Err(wrong("start".to_owned(), "required with `stages`".to_owned()));
            }
            let HopsSettings { source, vehicle, cloud, detection } = &self.hops;
            return Ok(Path::offloading(Offloading { source, vehicle, cloud, function: detection, reader }));
        };
        if self.stages.is_empty() || self.stages.len() > STAGES_MAX {
            let problem = format!("{} stages; expected 1 to {STAGES_MAX}", self.stages.len());
            return Err(wrong("stages".to_owned(), problem));
        }
        let start = Point::parse(start).map_err(|error| wrong("start".to_owned(), error.to_string()))?;
        let stages = self.stages.iter().enumerate().map(|(index, stage)| {
            if stage.name.is_empty() || self.stages[..index].iter().any(|other| other.name == stage.name) {
                return Err(wrong(format!("stages.{index}.name"), "expected a unique name".to_owned()));
            }
            let to = Point::parse(&stage.to);
            let to = to.map_err(|error| wrong(format!("stages.{index}.to"), error.to_string()))?;
            Ok(Stage { name: stage.name.clone(), to })
        });
        Ok(Path::new(start, stages.collect::<Result<_, _>>()?))
    }
}

impl FilesSettings {
    fn check(&self) -> Result<(), SettingError> {
        let is_name_octet = |octet: u8| octet.is_ascii_alphanumeric() || b"_-.".contains(&octet);
        if self.name.is_empty() || self.name.starts_with('.') || !self.name.bytes().all(is_name_octet) {
            let problem = format!("`{}` is not a name of letters, digits, `_`, `-` and `.`", self.name);
            return Err(SettingError::new("files.name", problem));
        }
        check_range("files.samples_max", self.samples_max, 1, 10_000_000)
    }
}

fn check_range(key: &str, value: u32, min: u32, max: u32) -> Result<(), SettingError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(SettingError::new(key, format!("{value} is not within {min} to {max}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(more: &Value) -> Option<String> {
        let mut settings = json!({ "topic": "objects" });
        for (key, value) in more.as_object().unwrap() {
            settings[key] = value.clone();
        }
        let settings: KeyFiguresSettings = serde_json::from_value(settings).unwrap();
        settings.check().err().map(|error| error.key)
    }

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        let stage = |name: &str, to: &str| json!({ "name": name, "to": to });
        let stages = json!([stage("a", "x taken"), stage("b", "x published")]);
        assert_eq!(refused(&json!({})), None);
        assert_eq!(refused(&json!({ "start": "s published", "stages": stages })), None);
        for (more, key) in [
            (json!({ "topic": "a b" }), "topic"),
            (json!({ "source": "#" }), "source"),
            (json!({ "to": "" }), "to"),
            (json!({ "window": 0 }), "window"),
            (json!({ "deadline_ms": 600_001 }), "deadline_ms"),
            (json!({ "stages": stages }), "start"),
            (json!({ "start": "s published" }), "stages"),
            (json!({ "start": "s", "stages": stages }), "start"),
            (json!({ "start": "s published", "stages": [stage("a", "x")] }), "stages.0.to"),
            (
                json!({ "start": "s published", "stages": [stage("a", "x taken"), stage("a", "y taken")] }),
                "stages.1.name",
            ),
            (json!({ "files": { "folder": "f", "name": "../x" } }), "files.name"),
            (json!({ "files": { "folder": "f", "samples_max": 0 } }), "files.samples_max"),
        ] {
            assert_eq!(refused(&more).as_deref(), Some(key), "{more}");
        }
    }
}
