//! `viaduct import FILE`: config files of other ROS-MQTT bridges as a node file.
//!
//! | module | purpose |
//! |---|---|
//! | `section` | keys of the file, and warnings about those that have no counterpart |
//! | `mqtt_client` | files of mqtt_client, for ROS 1 and ROS 2 |
//! | `mqtt_bridge` | files of mqtt_bridge |
//! | `client` | settings that both have |
//! | `plan` | the node file |

mod client;
mod mqtt_bridge;
mod mqtt_client;
mod plan;
mod section;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use viaduct_node::Checks;
use viaduct_node::config::parse_yaml;
use viaduct_ros::definitions;
use viaduct_ros::msg::{Dialect, TypeName};

use crate::FAILED;
use crate::files::{self, Refused};
use crate::output::{print_line, print_note};
use plan::{Ros, Setting};
use section::{Section, Warning};

/// The warning about a type of JSON texts whose definition is not known.
const NO_DEFINITION: &str = "is not a common type: set `definition_file` of its inbound route";

/// A file of mqtt_client or mqtt_bridge.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Parameters of mqtt_client (for ROS 1 or ROS 2) or of mqtt_bridge (YAML); `-` reads stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Node file to write. It must not exist. Default: stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The program that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    MqttClient(Ros),
    MqttBridge,
}

/// A node file, with the differences from the file that it was made from.
struct Imported {
    source: Source,
    text: String,
    warnings: Vec<Warning>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (file, text) = files::read(std::slice::from_ref(&arguments.file))?.remove(0);
    let imported = import(&file, &text)?;
    for Warning { line, key, text } in &imported.warnings {
        let key = if key.is_empty() { String::new() } else { format!(" {key}:") };
        print_note(format_args!("{file}:{line}:{key} {text}"));
    }
    let node = format!("# Made from {file} ({}) by `viaduct import`.\n{}", imported.source, imported.text);
    match &arguments.output {
        Some(path) => write_new(path, &node)?,
        None => print_line(node.trim_end())?,
    }
    let name = arguments.output.as_ref().map_or_else(|| "output".to_owned(), |path| path.display().to_string());
    if let Err(refused) = files::resolve(&[(name, node)], Checks::File) {
        print_note(format_args!("{refused}\nviaduct: the node file needs these changes before it can run"));
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

fn write_new(path: &PathBuf, text: &str) -> anyhow::Result<()> {
    let mut file = std::fs::File::create_new(path).with_context(|| format!("cannot create {}", path.display()))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

fn import(file: &str, text: &str) -> Result<Imported, Refused> {
    let root = Section::root(parse_yaml(file, text)?);
    let unknown = || Refused::argument(format!("{file} is neither a file of mqtt_client nor one of mqtt_bridge"));
    let mut root = root.ok_or_else(unknown)?;
    let mut warnings = Vec::new();
    let (source, plan) = match source(&mut root).ok_or_else(unknown)? {
        (Source::MqttClient(ros), section) => (Source::MqttClient(ros), mqtt_client::plan(ros, section, &mut warnings)),
        (Source::MqttBridge, section) => (Source::MqttBridge, mqtt_bridge::plan(section, &mut warnings)),
    };
    root.finish(&mut warnings);
    if plan.to_mqtt.is_empty() && plan.to_ros.is_empty() {
        return Err(Refused::argument(format!("{file} has no topic that can be bridged")));
    }
    let text = plan.write(&mut warnings);
    warnings.sort_by_key(|warning| warning.line);
    Ok(Imported { source, text, warnings })
}

/// Returns the program of a file, with the section that has its parameters.
fn source(root: &mut Section) -> Option<(Source, Section)> {
    if let Some(mut parameters) = root.parameters() {
        parameters.divide('.', &["broker", "client"]);
        return Some((Source::MqttClient(Ros::Two), parameters));
    }
    root.divide('/', &["broker", "client", "bridge"]);
    if root.has_list("bridge") || root.has("mqtt") {
        return Some((Source::MqttBridge, std::mem::take(root)));
    }
    root.has("bridge").then(|| (Source::MqttClient(Ros::One), std::mem::take(root)))
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MqttClient(Ros::One) => "mqtt_client, ROS 1",
            Self::MqttClient(Ros::Two) => "mqtt_client, ROS 2",
            Self::MqttBridge => "mqtt_bridge",
        })
    }
}

/// Returns the setting of an inbound route for the type of its texts.
fn text_type(ros: Ros, name: &str) -> (&'static str, Setting) {
    let version = match ros {
        Ros::One => "ros1",
        Ros::Two => "ros2",
    };
    let name = TypeName::parse(name).map_or_else(|| name.to_owned(), |name| name.to_string());
    ("type", Setting::Map(vec![(version, Setting::Text(name))]))
}

/// Returns `true` if the definition of a type is known.
fn is_common(ros: Ros, name: &str) -> bool {
    let dialect = match ros {
        Ros::One => Dialect::Ros1,
        Ros::Two => Dialect::Ros2,
    };
    TypeName::parse(name).is_some_and(|name| definitions::find(&name, dialect).is_some())
}

/// Returns `true` if the topic can be a topic of a route, whose braces are placeholders.
fn check_mqtt_topic(section: &Section, topic: &str, warnings: &mut Vec<Warning>) -> bool {
    if topic.contains(['{', '}']) {
        warnings.push(
            section.warning(format!("`{topic}` has braces, which are placeholders in a route; the topic is left out")),
        );
        return false;
    }
    true
}

/// Returns the name of a topic of ROS from the root, and warns if the name depends on the node.
fn global_name(section: &Section, topic: &str, warnings: &mut Vec<Warning>) -> String {
    if topic.starts_with('/') {
        return topic.to_owned();
    }
    let name = format!("/{}", topic.trim_start_matches(['~', '/']));
    let text = format!(
        "`{topic}` depends on the node's name or namespace; `{name}` is used, correct it if the topic is another one"
    );
    warnings.push(section.warning(text));
    name
}
