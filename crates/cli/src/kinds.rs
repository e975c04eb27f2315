//! `viaduct kinds [KIND]`: the reference of the settings, from the settings themselves.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::{Map, Value, json};
use viaduct_node::{Kind, find_kind};

use crate::kinds;
use crate::output::print_line;

/// Which kind, and in which form.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Show the settings of this kind.
    kind: Option<String>,
    /// Print JSON: the list with summaries, or the JSON schema of the kind's settings.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the whole reference as Markdown (docs/reference/kinds.md is made of it).
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let kinds = kinds();
    let text = match &arguments.kind {
        _ if arguments.markdown => markdown(&kinds),
        None if arguments.json => list_json(&kinds)?,
        None => list(&kinds),
        Some(name) => {
            let kind = match find_kind(&kinds, name) {
                Ok(kind) => kind,
                Err(close) if close.is_empty() => bail!("there is no kind `{name}`; `viaduct kinds` lists them"),
                Err(close) => bail!("there is no kind `{name}`; did you mean `{}`?", close.join("` or `")),
            };
            if arguments.json { serde_json::to_string_pretty(&kind.schema())? } else { settings(kind) }
        }
    };
    print_line(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn list(kinds: &[Kind]) -> String {
    let width = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    kinds.iter().map(|kind| format!("{:width$}  {}\n", kind.name, kind.summary)).collect()
}

fn list_json(kinds: &[Kind]) -> serde_json::Result<String> {
    let rows: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({ "kind": kind.name, "summary": kind.summary, "settings": kind.schema() }))
        .collect();
    serde_json::to_string_pretty(&rows)
}

fn settings(kind: &Kind) -> String {
    let mut text = format!("{}: {}\n\n", kind.name, kind.summary);
    for row in rows(kind) {
        let _ = writeln!(text, "  {}  ({}{})", row.key, row.shape, row.default_clause());
        for line in row.doc.lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

fn markdown(kinds: &[Kind]) -> String {
    let mut text =
        "# Config reference\n\nMade by `viaduct kinds --markdown` from the settings types; a test compares it. \
        Keys with a dot are nested; `[]` is a list; `NAME` is a name of your own.\n\n# The file of a node\n\n"
            .to_owned();
    table(&mut text, &rows_of(&viaduct_node::config::NodeFile::schema().to_value()));
    text.push_str("\n# Kinds of components\n\nWhat stands under `settings` of a component.\n");
    for kind in kinds {
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\nSmallest settings: `{}`\n\n",
            kind.name,
            kind.summary,
            one_line(kind.example)
        );
        table(&mut text, &rows(kind));
    }
    text
}

fn table(text: &mut String, rows: &[Row]) {
    text.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for row in rows {
        let default = row.default.as_deref().map_or_else(|| row.absence().to_owned(), |value| format!("`{value}`"));
        let doc = row.doc.replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {} | {default} | {doc} |", row.key, row.shape.replace('|', "\\|"));
    }
}

fn one_line(yaml: &str) -> String {
    if yaml.is_empty() { "(none)".to_owned() } else { yaml.replace('\n', "; ") }
}

/// One setting.
struct Row {
    key: String,
    shape: String,
    default: Option<String>,
    required: bool,
    doc: String,
}

impl Row {
    const fn absence(&self) -> &'static str {
        if self.required { "required" } else { "absent" }
    }

    fn default_clause(&self) -> String {
        match &self.default {
            Some(value) => format!(", default {value}"),
            None => format!(", {}", self.absence()),
        }
    }
}

fn rows(kind: &Kind) -> Vec<Row> {
    rows_of(&kind.schema().to_value())
}

fn rows_of(schema: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    collect(schema, schema, "", &mut rows);
    rows
}

/// Walks a JSON schema; nesting is as deep as the settings types are.
fn collect(root: &Value, schema: &Value, prefix: &str, rows: &mut Vec<Row>) {
    let schema = resolve(root, schema);
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let none = Map::new();
    for (name, property) in schema["properties"].as_object().unwrap_or(&none) {
        let resolved = resolve(root, property);
        let key = format!("{prefix}{name}");
        let doc =
            [&property["description"], &resolved["description"]].into_iter().find_map(Value::as_str).unwrap_or("");
        let default = property.get("default").filter(|value| !value.is_null()).map(ToString::to_string);
        rows.push(Row {
            shape: shape(root, property),
            // The default of a nested object is that of its parts, which are rows of their own.
            default: default.map(|value| if resolved.get("properties").is_some() { "{}".to_owned() } else { value }),
            required: required.contains(&name.as_str()),
            doc: doc.to_owned(),
            key: key.clone(),
        });
        collect_below(root, resolved, &key, rows);
    }
}

fn collect_below(root: &Value, schema: &Value, key: &str, rows: &mut Vec<Row>) {
    if schema.get("properties").is_some() {
        collect(root, schema, &format!("{key}."), rows);
    }
    if schema.get("items").is_some() {
        collect(root, &schema["items"], &format!("{key}[]."), rows);
    }
    if schema["additionalProperties"].is_object() {
        let (key, each) = (format!("{key}.NAME"), resolve(root, &schema["additionalProperties"]));
        collect_below(root, each, &key, rows);
    }
    for alternatives in ["oneOf", "anyOf"] {
        for alternative in schema[alternatives].as_array().into_iter().flatten() {
            let alternative = resolve(root, alternative);
            if let Some(properties) = alternative["properties"].as_object() {
                // A variant of an enum: its single property is its name, and what is said of it is said of the variant.
                let first = rows.len();
                collect(root, &json!({ "properties": properties }), &format!("{key}."), rows);
                let is_variant = properties.len() == 1;
                if let Some(variant) = rows.get_mut(first).filter(|row| is_variant && row.doc.is_empty()) {
                    variant.doc = alternative["description"].as_str().unwrap_or_default().to_owned();
                }
            }
        }
    }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
    target.map_or(schema, |name| &root["$defs"][name])
}

/// The type of a setting in a few words.
fn shape(root: &Value, property: &Value) -> String {
    let schema = resolve(root, property);
    if let Some(name) = schema["const"].as_str() {
        return format!("`{name}`");
    }
    if let Some(names) = schema["enum"].as_array() {
        return names
            .iter()
            .map(|name| format!("`{}`", name.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" | ");
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(several) = schema[alternatives].as_array() {
            let shapes: Vec<String> = several
                .iter()
                .filter(|one| one["type"] != "null")
                .map(|one| match resolve(root, one)["properties"].as_object() {
                    Some(variant) if several.len() > 1 && variant.len() == 1 => {
                        format!("`{}`", variant.keys().next().map_or("", String::as_str))
                    }
                    _ => shape(root, one),
                })
                .collect();
            return shapes.join(" | ");
        }
    }
    let kind = match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(several) => {
            let names: Vec<&str> = several.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            names.join(" | ")
        }
        _ => "any".to_owned(),
    };
    if kind == "array" { format!("list of {}", shape(root, &schema["items"])) } else { kind }
}
