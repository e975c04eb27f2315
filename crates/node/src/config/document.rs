//! Reads settings types out of a file and collects all its mistakes.
//!
//! A reader of a type stops at its first mistake. To find the next ones, the document reports the mistake, rejects the
//! entry that has it, and reads again without it. Mistakes that only follow from a rejected entry are not reported.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use strsim::damerau_levenshtein;

use super::de::{Cause, ItemReader, ReadError};
use super::error::{ConfigError, Place, Problem};
use super::tree::{BadEntry, Found, Item, Tree, Value};
use super::variables::Variables;
use crate::component::SettingError;
use crate::kind::EDITS_MAX;

/// Maximum size of a config file in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A file with the mistakes that were found so far.
pub(crate) struct Document {
    file: String,
    tree: Tree,
    problems: Vec<Problem>,
    rejected: Vec<Rejected>,
}

/// An entry that is wrong and skipped.
struct Rejected {
    path: Vec<String>,
    /// `true` if the value is a single scalar of a key that exists, so that the rest of the settings keeps its meaning.
    is_scalar: bool,
    /// `true` if the type has no such field, or the key occurs twice. Other mistakes at the same path are then still
    /// reported.
    is_unknown: bool,
}

/// A check of settings that were read. It stops at the first mistake.
pub(crate) type Check<T> = fn(&T) -> Result<(), SettingError>;

/// Settings that were read.
pub(crate) struct Read<T> {
    pub(crate) value: T,
    /// `true` if nothing was rejected.
    pub(crate) complete: bool,
}

impl Document {
    /// Parses a file.
    ///
    /// # Errors
    /// Returns an error if the text is not YAML, or not a map. The rest of such a file cannot be checked.
    pub(crate) fn parse(file: &str, text: &str, variables: &Variables<'_>) -> Result<Self, ConfigError> {
        if text.len() > FILE_BYTES_MAX {
            let problem = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
            return Err(ConfigError::new(file, &Problem::new("", problem)));
        }
        let mut bad = Vec::new();
        let tree = Tree::parse(text, variables, &mut bad).map_err(|problem| ConfigError::new(file, &problem))?;
        let mut document = Self { file: file.to_owned(), tree, problems: Vec::new(), rejected: Vec::new() };
        for BadEntry { path, problem, is_duplicate } in bad {
            document.problems.push(problem);
            document.rejected.push(Rejected { path, is_scalar: true, is_unknown: is_duplicate });
        }
        Ok(document)
    }

    /// Reads the value at a path, an empty map if the file does not have it. Reports all its mistakes, including those
    /// that the checks find one after the other, with keys below the path. Returns `None` if a required key is missing.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        at: &[&str],
        schema: fn() -> schemars::Schema,
        checks: &[Check<T>],
    ) -> Option<Read<T>> {
        let mut checks = checks.iter();
        let mut complete = true;
        let mut check = checks.next();
        loop {
            match self.read_once::<T>(at) {
                Err(error) => {
                    if !self.reject_value(at, error, schema) {
                        return None;
                    }
                }
                Ok(value) => {
                    let rejected = loop {
                        match check.map(|check| check(&value)) {
                            None => break false,
                            Some(Err(error)) if self.reject_setting(at, &error) => break true,
                            // The file does not have the key, so that this check would find the same error again.
                            Some(Err(_)) => complete = false,
                            Some(Ok(())) => {}
                        }
                        check = checks.next();
                    };
                    if !rejected {
                        return Some(Read { value, complete: complete && self.is_complete(at) });
                    }
                }
            }
        }
    }

    fn read_once<T: DeserializeOwned>(&self, at: &[&str]) -> Result<T, ReadError> {
        let absent = Item { place: Place { line: 1, column: 1 }, value: Value::Map(Vec::new()) };
        let item = at.iter().try_fold(&self.tree.root, |item, key| {
            item.entries().find(|entry| entry.key == *key).map(|entry| &entry.item)
        });
        let item = item.filter(|item| !matches!(&item.value, Value::Scalar(scalar) if scalar.is_null()));
        T::deserialize(ItemReader(item.unwrap_or(&absent)))
    }

    /// Reports an error of a value and rejects its entry. Returns `false` if nothing can be read without it.
    fn reject_value(&mut self, at: &[&str], error: ReadError, schema: fn() -> schemars::Schema) -> bool {
        let place = error.place;
        let problem = error.problem.clone();
        let cause = error.cause.clone();
        let mut path: Vec<String> = at.iter().map(|key| (*key).to_owned()).collect();
        path.extend(error.into_path());
        let is_root = path.len() == at.len();
        match &cause {
            Cause::Missing(field) => {
                for field in self.missing_fields(&path, field, schema) {
                    let place = self.tree.place(&path);
                    let text = format!("missing field `{field}`");
                    self.push(Problem { key: path.join("."), text, place });
                }
                if path.is_empty() && *field == "node" {
                    // A file without a name is checked like one with a name.
                    self.tree.assume("node", "node");
                    return true;
                }
            }
            Cause::Unknown => self.push(Problem { key: path.join("."), text: problem, place }),
            Cause::Value if self.is_follow_up(&path, &problem) => {}
            Cause::Value => {
                let place = place.or_else(|| self.tree.place(&path));
                self.push(Problem { key: path.join("."), text: problem, place });
            }
        }
        !is_root && self.reject(path, cause == Cause::Unknown)
    }

    /// Reports an error that a component found in its settings and rejects the entry. Returns `false` if the file does
    /// not have the key, so that the component would find the same error again.
    fn reject_setting(&mut self, at: &[&str], error: &SettingError) -> bool {
        let key = match (at.is_empty(), error.key.is_empty()) {
            (true, _) => error.key.clone(),
            (false, true) => at.join("."),
            (false, false) => format!("{}.{}", at.join("."), error.key),
        };
        self.report(&key, error.problem.clone());
        let found = self.tree.find(&key);
        let is_there = found.item.is_some();
        let path = found.path;
        is_there && path.len() > at.len() && self.reject(path, false)
    }

    /// Reports a problem of a key, unless it follows from an entry that is rejected.
    pub(crate) fn report(&mut self, key: &str, text: impl Into<String>) {
        let text = text.into();
        // In a list, the index of the component and that of the file differ if an entry before it is rejected.
        let Found { place, mut path, rest, .. } = self.tree.find(key);
        // An unknown key may be meant to be the one that is absent.
        let parent = &path;
        let is_beside_unknown = |rejected: &Rejected| {
            rejected.is_unknown && rejected.path.len() == parent.len() + 1 && rejected.path.starts_with(parent)
        };
        if !rest.is_empty() && self.rejected.iter().any(is_beside_unknown) {
            return;
        }
        path.extend(rest.split('.').filter(|key| !key.is_empty()).map(str::to_owned));
        if !self.is_follow_up(&path, &text) {
            self.push(Problem { key: path.join("."), text, place });
        }
    }

    fn push(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn reject(&mut self, path: Vec<String>, is_unknown: bool) -> bool {
        let is_scalar = matches!(self.tree.item(&path).map(|item| &item.value), Some(Value::Scalar(_)));
        if !self.tree.reject(&path) {
            return false;
        }
        self.rejected.push(Rejected { path, is_scalar, is_unknown });
        true
    }

    /// Returns `true` if a rejected entry lies above or below the path, or if the problem names one.
    fn is_follow_up(&self, path: &[String], problem: &str) -> bool {
        self.rejected.iter().any(|rejected| {
            let shared = rejected.path.len().min(path.len());
            let is_related = shared > 0 && rejected.path[..shared] == path[..shared];
            // Without the rejected entry of a list, the list may be too short.
            let is_key = |key: &&String| key.parse::<usize>().is_err();
            let name = rejected.path.iter().rev().find(is_key).map_or("", String::as_str);
            is_related && !rejected.is_unknown || problem.contains(&format!("`{name}`"))
        })
    }

    /// Returns the required fields that a map does not have, including `field`. Fields that were rejected, and fields
    /// that an unknown key seems to mean, are omitted.
    fn missing_fields(&self, path: &[String], field: &str, schema: fn() -> schemars::Schema) -> Vec<String> {
        let item = self.tree.item(path);
        let present: Vec<&str> = item.into_iter().flat_map(Item::entries).map(|entry| entry.key.as_str()).collect();
        let rejected: Vec<&Rejected> = self
            .rejected
            .iter()
            .filter(|rejected| rejected.path.len() == path.len() + 1 && rejected.path.starts_with(path))
            .collect();
        let is_follow_up = |name: &str| {
            rejected.iter().any(|rejected| {
                let key = rejected.path.last().map_or("", String::as_str);
                key == name || rejected.is_unknown && damerau_levenshtein(key, name) <= EDITS_MAX
            })
        };
        let mut names = required_fields(&schema().to_value(), field, &present);
        names.retain(|name| !present.contains(&name.as_str()) && !is_follow_up(name));
        names
    }

    /// Returns `true` if no entry at or below the path is rejected.
    fn is_complete(&self, at: &[&str]) -> bool {
        !self.rejected.iter().any(|rejected| starts_with(&rejected.path, at))
    }

    /// Returns `true` if a component may publish other topics when its settings are corrected. This is so if a rejected
    /// entry is not a single value, has an unknown key, or is one of the `settings`.
    pub(crate) fn is_doubtful(&self, at: &[&str], settings: &[&str]) -> bool {
        self.rejected.iter().filter(|rejected| starts_with(&rejected.path, at)).any(|rejected| {
            let key = rejected.path[at.len()..].join(".");
            !rejected.is_scalar || rejected.is_unknown || settings.contains(&key.as_str())
        })
    }

    /// Returns `true` if a component is rejected as a whole, or its kind.
    pub(crate) fn lacks_components(&self) -> bool {
        self.rejected.iter().any(|Rejected { path, .. }| {
            path[0] == "components" && (path.len() <= 2 || path.len() == 3 && path[2] == "kind")
        })
    }

    /// Returns `true` if the key at the path, or one below it, is rejected.
    pub(crate) fn has_rejected(&self, at: &[&str]) -> bool {
        !self.is_complete(at)
    }

    /// Returns all mistakes by place.
    pub(crate) fn into_errors(mut self) -> Vec<ConfigError> {
        self.problems.sort_by_key(|problem| problem.place);
        self.problems.into_iter().map(|problem| ConfigError::new(&self.file, &problem)).collect()
    }

    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

fn starts_with(path: &[String], at: &[&str]) -> bool {
    path.len() >= at.len() && path.iter().zip(at).all(|(key, other)| key == other)
}

/// Returns all required fields of the type that requires `field` and has the present fields. Returns only `field` if
/// the schema has several such types.
fn required_fields(schema: &Json, field: &str, present: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    collect_required(schema, field, present, &mut found);
    found.sort();
    found.dedup();
    match <[Vec<String>; 1]>::try_from(found) {
        Ok([fields]) => fields,
        Err(_) => vec![field.to_owned()],
    }
}

fn collect_required(schema: &Json, field: &str, present: &[&str], found: &mut Vec<Vec<String>>) {
    match schema {
        Json::Object(members) => {
            let names = |key: &str| members.get(key).and_then(Json::as_array).into_iter().flatten();
            let required: Vec<String> = names("required").filter_map(Json::as_str).map(str::to_owned).collect();
            let has = |name: &&str| members.get("properties").is_some_and(|properties| properties.get(name).is_some());
            if required.iter().any(|name| name == field) && present.iter().all(has) {
                found.push(required);
            }
            for below in members.values() {
                collect_required(below, field, present, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect_required(item, field, present, found)),
        _ => {}
    }
}
