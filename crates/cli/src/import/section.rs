//! The keys of a file of another program. Each key is taken once; those that are left have no counterpart.

use std::str::FromStr;

use viaduct_node::config::{Yaml, YamlEntry};

/// A parameter that the node does not have, or has in another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Warning {
    /// Line of the parameter, counted from 1.
    pub(super) line: u64,
    /// Its path, joined by dots.
    pub(super) key: String,
    /// The difference, and what to do.
    pub(super) text: String,
}

/// A map, or an empty one if the file does not have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    path: String,
    line: u64,
    entries: Vec<YamlEntry>,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    pub(super) value: T,
    key: String,
    line: u64,
}

impl Section {
    /// Returns the whole file, or `None` if it is not a map.
    pub(super) fn root(yaml: Yaml) -> Option<Self> {
        match yaml {
            Yaml::Map(entries) => Some(Self { path: String::new(), line: 1, entries }),
            Yaml::Scalar(_) | Yaml::Null | Yaml::List(_) => None,
        }
    }

    /// Returns `true` if the section has that key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Divides keys such as `broker/host` and `broker.host` into sections.
    pub(super) fn divide(&mut self, separator: char, names: &[&str]) {
        for YamlEntry { key, line, value } in std::mem::take(&mut self.entries) {
            match key.split_once(separator) {
                Some((name, rest)) if names.contains(&name) => {
                    let mut inner = self.section(name);
                    inner.line = inner.line.max(line);
                    inner.entries.push(YamlEntry { key: rest.to_owned(), line, value });
                    inner.divide(separator, &["tls", "last_will", "buffer"]);
                    self.put_back(name, inner);
                }
                _ => self.merge(YamlEntry { key, line, value }),
            }
        }
    }

    /// Adds an entry, to the section of the same name if there is one.
    fn merge(&mut self, entry: YamlEntry) {
        let section = self.entries.iter_mut().find(|other| other.key == entry.key).map(|other| &mut other.value);
        match (section, entry) {
            (Some(Yaml::Map(known)), YamlEntry { value: Yaml::Map(more), .. }) => known.extend(more),
            (_, entry) => self.entries.push(entry),
        }
    }

    fn put_back(&mut self, key: &str, section: Self) {
        self.entries.push(YamlEntry { key: key.to_owned(), line: section.line, value: Yaml::Map(section.entries) });
    }

    /// Takes the section `ros__parameters` of a node, below any number of namespaces.
    pub(super) fn parameters(&mut self) -> Option<Self> {
        if self.has("ros__parameters") {
            return Some(self.section("ros__parameters"));
        }
        let keys: Vec<String> = self.entries.iter().map(|entry| entry.key.clone()).collect();
        keys.into_iter().find_map(|key| {
            if !matches!(self.entries.iter().find(|entry| entry.key == key)?.value, Yaml::Map(_)) {
                return None;
            }
            let mut inner = self.section(&key);
            let found = inner.parameters();
            if found.is_none() || !inner.entries.is_empty() {
                self.put_back(&key, inner);
            }
            found
        })
    }

    fn take(&mut self, key: &str) -> Option<Found<Yaml>> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        let entry = self.entries.remove(index);
        Some(Found { value: entry.value, key: self.key(key), line: entry.line })
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Takes a section. Any other value stays, and has no counterpart.
    pub(super) fn section(&mut self, key: &str) -> Self {
        let is_section = |entry: &&YamlEntry| entry.key == key && matches!(entry.value, Yaml::Map(_));
        let absent = Self { path: self.key(key), line: self.line, entries: Vec::new() };
        if self.entries.iter().find(is_section).is_none() {
            return absent;
        }
        match self.take(key) {
            Some(Found { value: Yaml::Map(entries), key, line }) => Self { path: key, line, entries },
            _ => absent,
        }
    }

    /// Takes the sections of a list.
    pub(super) fn sections(&mut self, key: &str, warnings: &mut Vec<Warning>) -> Vec<Self> {
        let Some(found) = self.take(key) else { return Vec::new() };
        let Yaml::List(list) = found.value else {
            warnings.push(found.warning("expected a list; ignored"));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for YamlEntry { key, line, value } in list {
            let key = format!("{}.{key}", found.key);
            match value {
                Yaml::Map(entries) => sections.push(Self { path: key, line, entries }),
                _ => warnings.push(Warning { line, key, text: "expected a map; ignored".to_owned() }),
            }
        }
        sections
    }

    /// Returns `true` if the section has a list under that key.
    pub(super) fn has_list(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && matches!(entry.value, Yaml::List(_)))
    }

    /// Takes the texts of a list.
    pub(super) fn texts(&mut self, key: &str, warnings: &mut Vec<Warning>) -> Vec<Found<String>> {
        let Some(found) = self.take(key) else { return Vec::new() };
        let Yaml::List(list) = found.value else {
            warnings.push(found.warning("expected a list; ignored"));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for YamlEntry { key, line, value } in list {
            let key = format!("{}.{key}", found.key);
            match value {
                Yaml::Scalar(value) => texts.push(Found { value, key, line }),
                _ => warnings.push(Warning { line, key, text: "expected a text; ignored".to_owned() }),
            }
        }
        texts
    }

    /// Takes a text. An empty one counts as absent, as in ROS.
    pub(super) fn text(&mut self, key: &str, warnings: &mut Vec<Warning>) -> Option<Found<String>> {
        let found = self.take(key)?;
        match found.value {
            Yaml::Scalar(value) if !value.is_empty() => Some(Found { value, key: found.key, line: found.line }),
            Yaml::Scalar(_) | Yaml::Null => None,
            Yaml::List(_) | Yaml::Map(_) => {
                warnings.push(found.warning("expected a text; ignored"));
                None
            }
        }
    }

    /// Takes a number.
    pub(super) fn number<T: FromStr>(&mut self, key: &str, warnings: &mut Vec<Warning>) -> Option<Found<T>> {
        let text = self.text(key, warnings)?;
        match text.value.parse() {
            Ok(value) => Some(Found { value, key: text.key, line: text.line }),
            Err(_) => {
                let problem = format!("`{}` is not a number of this parameter; ignored", text.value);
                warnings.push(text.warning(&problem));
                None
            }
        }
    }

    /// Takes a switch.
    pub(super) fn switch(&mut self, key: &str, warnings: &mut Vec<Warning>) -> Option<Found<bool>> {
        let text = self.text(key, warnings)?;
        let value = match text.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => true,
            "false" | "no" | "off" | "0" => false,
            _ => {
                warnings.push(text.warning("expected `true` or `false`; ignored"));
                return None;
            }
        };
        Some(Found { value, key: text.key, line: text.line })
    }

    /// Takes a parameter without counterpart, and warns with the given text.
    pub(super) fn without(&mut self, key: &str, text: &str, warnings: &mut Vec<Warning>) {
        if let Some(found) = self.take(key) {
            warnings.push(found.warning(text));
        }
    }

    /// Adds a value that is the key of the section.
    pub(super) fn with(mut self, key: &str, name: &Found<String>) -> Self {
        let entry = YamlEntry { key: key.to_owned(), line: name.line, value: Yaml::Scalar(name.value.clone()) };
        self.line = if self.entries.is_empty() { name.line } else { self.line };
        self.entries.push(entry);
        self
    }

    /// Returns a warning about the section.
    pub(super) fn warning(&self, text: impl Into<String>) -> Warning {
        Warning { line: self.line, key: self.path.clone(), text: text.into() }
    }

    /// Warns of each parameter that is left.
    pub(super) fn finish(self, warnings: &mut Vec<Warning>) {
        for YamlEntry { key, line, value } in self.entries {
            let key = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
            match value {
                Yaml::Map(entries) | Yaml::List(entries) if !entries.is_empty() => {
                    Self { path: key, line, entries }.finish(warnings);
                }
                _ => warnings.push(Warning { line, key, text: "has no counterpart".to_owned() }),
            }
        }
    }
}

impl<T> Found<T> {
    /// Returns a warning about the parameter.
    pub(super) fn warning(&self, text: &str) -> Warning {
        Warning { line: self.line, key: self.key.clone(), text: text.to_owned() }
    }
}
