//! Mistakes of a config file: file, line, column, key and problem.

use std::borrow::Cow;
use std::fmt;

/// Longest quoted value in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// Longest key in characters.
const KEY_CHARS_MAX: usize = 200;

/// Line and column, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A problem of a key, not yet of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) text: String,
    /// The place, if it is not that of the key.
    pub(crate) place: Option<Place>,
}

impl Problem {
    /// Returns a problem of the key at that path, joined by dots.
    pub(crate) fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { key: key.into(), text: text.into(), place: None }
    }

    pub(crate) fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }
}

/// One mistake of a config file. Displays as `vehicle.yaml:7:5: components.station.kind: there is no kind ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: String,
    place: Option<Place>,
    key: String,
    problem: String,
}

impl ConfigError {
    pub(crate) fn new(file: &str, problem: &Problem) -> Self {
        let key = shortened(&escaped(&problem.key), KEY_CHARS_MAX).into_owned();
        let quoted = |(index, part)| if index % 2 == 1 { shortened(part, QUOTED_CHARS_MAX) } else { part.into() };
        let text = escaped(&problem.text);
        let parts: Vec<Cow<'_, str>> = text.split('`').enumerate().map(quoted).collect();
        Self { file: file.to_owned(), place: problem.place, key, problem: parts.join("`") }
    }

    /// Returns the file as the caller named it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line, counted from 1, or `None` if the problem has no place in the file.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.place.map(|place| place.line)
    }

    /// Returns the column in characters, counted from 1, or `None` if the problem has no place in the file.
    #[must_use]
    pub fn column(&self) -> Option<u64> {
        self.place.map(|place| place.column)
    }

    /// Returns the path of the key, joined by dots; empty if the problem is that of the whole file.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the problem and the expected value.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

/// Returns the text with control characters as escapes: a terminal would obey them.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect::<String>().into()
}

/// Returns at most the first characters of a text.
fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(Place { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// All mistakes of one or more config files, at least one, sorted by file and place. Displays one line for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    pub(crate) fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.dedup();
        Self(errors)
    }

    /// Returns the error of a file that cannot be read at all.
    #[must_use]
    pub fn unreadable(file: &str, cause: &std::io::Error) -> Self {
        Self(vec![ConfigError::new(file, &Problem::new("", format!("cannot be read: {cause}")))])
    }

    /// Returns the mistakes in the order of files and places.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
