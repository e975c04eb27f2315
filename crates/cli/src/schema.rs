//! `viaduct schema`: the JSON schema of a whole config file.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use viaduct_node::Kind;
use viaduct_node::config::NodeFile;

use crate::kinds;
use crate::output::print_line;

/// Pattern of a text with a variable. Such a text is allowed in place of a number, a switch or a choice.
const VARIABLE: &str = r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-.*)?\}";

/// Options of `viaduct schema`; there are none.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    print_line(serde_json::to_string_pretty(&schema(&kinds()))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the schema (draft 2020-12) of a node's file with the settings of these kinds.
fn schema(kinds: &[Kind]) -> Value {
    let mut root = NodeFile::schema().to_value();
    let mut definitions = root["$defs"].as_object().cloned().unwrap_or_default();
    let mut choices = Vec::new();
    for kind in kinds {
        let settings = settings_of(kind, &mut definitions);
        choices.push(json!({
            "if": { "properties": { "kind": { "const": kind.name } }, "required": ["kind"] },
            "then": { "properties": { "settings": settings } },
        }));
    }
    let names: Vec<Value> =
        kinds.iter().map(|kind| json!({ "const": kind.name, "description": kind.summary })).collect();
    let entry = &mut definitions["ComponentEntry"];
    entry["properties"]["kind"] = json!({ "description": entry["properties"]["kind"]["description"], "oneOf": names });
    // Without settings, those of an empty map apply.
    entry["properties"]["settings"] = json!({ "description": entry["properties"]["settings"]["description"] });
    entry["allOf"] = Value::Array(choices);
    root["$defs"] = Value::Object(definitions);
    root["title"] = "Viaduct node".into();
    allow_variables(&mut root);
    root
}

/// Returns the schema of a kind's settings and moves its definitions to those of the file, with the kind in their
/// names.
fn settings_of(kind: &Kind, definitions: &mut Map<String, Value>) -> Value {
    let mut settings = kind.schema().to_value();
    prefix_references(&mut settings, kind.name);
    if let Some(members) = settings.as_object_mut() {
        members.remove("$schema");
        if let Some(Value::Object(own)) = members.remove("$defs") {
            definitions.extend(own.into_iter().map(|(name, value)| (format!("{}.{name}", kind.name), value)));
        }
    }
    definitions.insert(kind.name.to_owned(), settings);
    let reference = json!({ "$ref": format!("#/$defs/{}", kind.name) });
    json!({ "anyOf": [reference, { "type": "null" }] })
}

fn prefix_references(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => {
                        *target = target.replace("#/$defs/", &format!("#/$defs/{prefix}."));
                    }
                    other => prefix_references(other, prefix),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prefix_references(item, prefix)),
        _ => {}
    }
}

/// Allows a text with a variable wherever a number, a switch, a choice or a text with a pattern is expected.
fn allow_variables(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(allow_variables),
        Value::Object(members) => {
            members.values_mut().for_each(allow_variables);
            if is_restricted_scalar(members) {
                let mut outer = Map::new();
                for name in ["description", "default"] {
                    if let Some(value) = members.remove(name) {
                        outer.insert(name.to_owned(), value);
                    }
                }
                let inner = Value::Object(std::mem::take(members));
                outer.insert("anyOf".to_owned(), json!([inner, { "type": "string", "pattern": VARIABLE }]));
                *members = outer;
            }
        }
        _ => {}
    }
}

/// Returns `true` if the schema is that of a scalar other than free text, so that a variable may replace it.
fn is_restricted_scalar(members: &Map<String, Value>) -> bool {
    let types: Vec<&str> = match members.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_scalar = types.iter().any(|name| ["integer", "number", "boolean"].contains(name));
    let is_form =
        types.contains(&"string") && ["enum", "pattern", "format"].iter().any(|key| members.contains_key(*key));
    is_scalar || is_form
}
