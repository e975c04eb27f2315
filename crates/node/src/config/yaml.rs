//! YAML of other programs as a tree, with the line of each key.

use super::error::{ConfigError, ConfigErrors, Problem};
use super::tree::{BadEntry, Entry, Item, Tree, Value};

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Yaml {
    /// A text, a number or a switch, as it is written without its quotes.
    Scalar(String),
    /// An absent value.
    Null,
    /// A list, whose keys are the indices, counted from 0.
    List(Vec<YamlEntry>),
    /// A map, in the order of the file.
    Map(Vec<YamlEntry>),
}

/// A value below a map or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlEntry {
    /// Key, or index in a list.
    pub key: String,
    /// Line of the key, counted from 1.
    pub line: u64,
    /// Value.
    pub value: Yaml,
}

/// Parses a text. `file` is the name in errors. A `${NAME}` must be written as `$${NAME}`.
///
/// # Errors
/// All mistakes, with their places: the text is not YAML, has too many items, or a key occurs twice.
pub fn parse_yaml(file: &str, text: &str) -> Result<Yaml, ConfigErrors> {
    let mut bad = Vec::new();
    let tree = Tree::parse(text, &|_| None, &mut bad);
    let mut problems: Vec<Problem> = bad.into_iter().map(|BadEntry { problem, .. }| problem).collect();
    let tree = tree.map_err(|problem| problems.push(problem));
    match tree {
        Ok(tree) if problems.is_empty() => Ok(value(&tree.root)),
        _ => Err(ConfigErrors::new(problems.into_iter().map(|problem| ConfigError::new(file, &problem)).collect())),
    }
}

fn value(item: &Item) -> Yaml {
    match &item.value {
        Value::Scalar(scalar) if scalar.is_null() => Yaml::Null,
        Value::Scalar(scalar) => Yaml::Scalar(scalar.text.clone()),
        Value::List(list) => Yaml::List(list.iter().map(entry).collect()),
        Value::Map(map) => Yaml::Map(map.iter().map(entry).collect()),
    }
}

fn entry(entry: &Entry) -> YamlEntry {
    YamlEntry { key: entry.key.clone(), line: entry.place.line, value: value(&entry.item) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_line() {
        let Ok(Yaml::Map(entries)) = parse_yaml("a.yaml", "/**/*:\n  list: [a, ~]\nb: '1'\n") else { panic!() };
        assert_eq!(
            entries.iter().map(|entry| (entry.key.as_str(), entry.line)).collect::<Vec<_>>(),
            [("/**/*", 1), ("b", 3)]
        );
        let Yaml::Map(inner) = &entries[0].value else { panic!() };
        let Yaml::List(list) = &inner[0].value else { panic!() };
        assert_eq!((inner[0].line, list.len(), &list[1].value), (2, 2, &Yaml::Null));
        assert_eq!(entries[1].value, Yaml::Scalar("1".to_owned()));
    }

    #[test]
    fn mistakes_have_their_place() {
        let problem = |text| parse_yaml("a.yaml", text).unwrap_err().to_string();
        assert!(problem("a: 1\na: 2\n").starts_with("a.yaml:2:1: a: "), "{}", problem("a: 1\na: 2\n"));
        assert!(problem("a: [").starts_with("a.yaml:"));
        assert!(problem("").starts_with("a.yaml"));
    }
}
