//! Changes of a link's settings: `delay.base_ms=50`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use viaduct_netem::LinkConfig;
use viaduct_node::config::read_yaml;

use crate::files::Refused;

/// Settings of which exactly one variant is set: a new variant replaces the present one.
const VARIANTS: [&str; 5] = ["bottleneck", "loss", "outages", "delay.jitter", "delay.correlation"];

/// A new value of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// Keys as in a config file, joined by dots.
    key: String,
    value: Value,
}

/// Returns the error of a wrong argument.
pub(crate) fn refused(problem: String) -> anyhow::Error {
    Refused::argument(problem).into()
}

impl Change {
    /// Parses `KEY=VALUE`.
    ///
    /// # Errors
    /// The text is not of that form, or the value is not YAML.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| refused(format!("`{text}` is not of the form KEY=VALUE, for example `delay.base_ms=50`")))?;
        let yaml = format!("value: {value}");
        let mut map: BTreeMap<String, Value> = read_yaml(key, &yaml).map_err(Refused::from)?;
        Ok(Self { key: key.to_owned(), value: map.remove("value").unwrap_or_default() })
    }
}

/// Returns the settings of a link with changes.
///
/// # Errors
/// A key or a value is unknown. The error lists those that are possible.
pub(crate) fn apply(config: &LinkConfig, changes: &[Change]) -> anyhow::Result<LinkConfig> {
    let mut tree = serde_json::to_value(config).context("settings without JSON")?;
    for change in changes {
        let keys: Vec<&str> = change.key.split('.').collect();
        replace(&mut tree, &keys, &mut String::new(), &change.value);
        // Checked one after the other, so that the error names the change.
        serde_json::from_value::<LinkConfig>(tree.clone())
            .map_err(|error| refused(format!("`{}`: {error}", change.key)))?;
    }
    serde_json::from_value(tree).context("invalid settings")
}

/// Replaces the value at a path. `path` is the part that leads to `tree`.
fn replace(tree: &mut Value, keys: &[&str], path: &mut String, value: &Value) {
    let Some((key, rest)) = keys.split_first() else {
        *tree = value.clone();
        return;
    };
    if !tree.is_object() {
        *tree = Value::Object(Map::new());
    }
    let Value::Object(map) = tree else { return };
    if VARIANTS.contains(&path.as_str()) {
        map.retain(|present, _| present == key);
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
    replace(map.entry(*key).or_insert(Value::Null), rest, path, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_netem::Profile;

    fn changed(texts: &[&str]) -> Result<Value, String> {
        let changes: Result<Vec<Change>, _> = texts.iter().map(|text| Change::parse(text)).collect();
        let applied = changes.and_then(|changes| apply(&Profile::Lossy5.config().a_to_b, &changes));
        applied.map(|config| serde_json::to_value(config).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_change_replaces_one_setting() {
        let config = changed(&["delay.base_ms=50", "bottleneck.rate.mbps=20", "delay.jitter.uniform_ms=2"]).unwrap();
        assert_eq!((&config["delay"]["base_ms"], &config["bottleneck"]["rate"]["mbps"]), (&50.0.into(), &20.0.into()));
        assert_eq!(config["bottleneck"]["rate"]["queue_octets"], 2_500_000);
        assert_eq!(config["loss"]["independent"], 0.05);
        assert_eq!(config["overhead_octets"], 38);
    }

    #[test]
    fn a_variant_replaces_the_present_one() {
        let config = changed(&["loss={ bursts: { loss: 0.1, packets: 4 } }", "loss.independent=0.2"]).unwrap();
        assert_eq!(config["loss"], serde_json::json!({ "independent": 0.2 }));
        assert_eq!(changed(&["loss=none"]).unwrap()["loss"], "none");
        assert_eq!(changed(&["bottleneck=none"]).unwrap()["bottleneck"], "none");
    }

    #[test]
    fn a_wrong_change_is_refused_with_what_is_possible() {
        for (text, parts) in [
            ("delay", vec!["`delay` is not of the form KEY=VALUE"]),
            ("dely.base_ms=1", vec!["`dely.base_ms`", "unknown field `dely`", "`bottleneck`", "`delay`"]),
            ("delay.base=1", vec!["unknown field `base`", "`base_ms`"]),
            ("loss=heavy", vec!["unknown variant `heavy`", "`independent`"]),
            ("loss.independent=2", vec!["2 is not a probability"]),
            ("delay={", vec!["delay"]),
        ] {
            let error = changed(&[text]).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
