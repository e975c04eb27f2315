//! What is wrong with a file: file, line, key, problem.

use serde_saphyr::{MessageFormatter as _, UserMessageFormatter};

use super::outline::{Outline, Place};

/// Characters of a refused value that an error repeats.
const SCALAR_CHARACTERS_MAX: usize = 40;

/// No plain scalar begins with one of these (YAML 1.2.2, 7.3.3).
const NOT_PLAIN: [char; 17] =
    [',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '\u{feff}'];

/// A config that is refused. Displays as `vehicle.yaml:7:5: components.station.kind: no kind ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    file: String,
    place: Option<Place>,
    key: String,
    problem: String,
}

/// A problem with the key that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    key: String,
    text: String,
}

impl Problem {
    /// The key at that path (joined by dots) has this problem.
    #[must_use]
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { key: key.into(), text: text.into() }
    }
}

impl ConfigError {
    /// A problem of a file whose text is not there to find the key in.
    #[must_use]
    pub fn new(file: &str, problem: Problem) -> Self {
        Self { file: file.to_owned(), place: None, key: problem.key, problem: problem.text }
    }

    /// A problem of a key; its place is looked up in the text.
    #[must_use]
    pub fn located(file: &str, text: &str, problem: Problem) -> Self {
        let place = Outline::of(text).and_then(|outline| outline.place(&problem.key));
        Self { place, ..Self::new(file, problem) }
    }

    /// The file could not be read at all.
    #[must_use]
    pub fn unreadable(file: &str, cause: &std::io::Error) -> Self {
        Self::new(file, Problem::new("", format!("cannot be read: {cause}")))
    }

    /// What the YAML reader says; the key is looked up by the place.
    pub(crate) fn from_yaml(file: &str, text: &str, error: &serde_saphyr::Error) -> Self {
        if text.trim().is_empty() {
            return Self::new(file, Problem::new("", "the file is empty; a node starts with `node: NAME`"));
        }
        let location = error.location();
        let place = location.map(Place::of);
        let key = place.and_then(|place| Outline::of(text).map(|outline| outline.path(place))).unwrap_or_default();
        let is_scalar = matches!(error.without_snippet(), serde_saphyr::Error::InvalidScalar { .. });
        let got = location.filter(|_| is_scalar).and_then(|location| scalar_at(text, location));
        let problem = plain(error) + &got.map_or_else(String::new, |got| format!(", got `{got}`"));
        Self { file: file.to_owned(), place, key, problem }
    }

    /// What is wrong with the settings of a component.
    pub(crate) fn from_settings(file: &str, text: &str, component: &str, error: &SettingsError) -> Self {
        match error {
            SettingsError::InFile(error) => Self::from_yaml(file, text, error),
            SettingsError::Absent(error) => {
                let key = format!("components.{component}.settings");
                Self::located(file, text, Problem::new(key, plain(error)))
            }
        }
    }
}

/// The plain scalar that stands there; `None` where something else does, or where it goes on in another line.
fn scalar_at(text: &str, location: serde_saphyr::Location) -> Option<String> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let end = start.checked_add(usize::try_from(location.span().byte_len()?).ok()?)?;
    let value = text.get(start..end)?.trim();
    let is_plain = !value.contains('\n') && !value.starts_with(NOT_PLAIN) && !["", "-", ":"].contains(&value);
    is_plain.then(|| value.chars().take(SCALAR_CHARACTERS_MAX).collect())
}

/// The message without the place, which stands before it already, and in words of the file instead of those of Rust.
fn plain(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    let error = error.without_snippet();
    match error {
        Error::InvalidScalar { ty, .. } => expected(ty),
        Error::InvalidBooleanStrict { .. } => expected("boolean"),
        Error::NullIntoString { .. } => "expected a text".to_owned(),
        Error::ExpectedStringKeyForExternallyTaggedEnum { .. }
        | Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            "expected one choice: `CHOICE`, or `CHOICE: ...` where it has settings".to_owned()
        }
        Error::UnexpectedValueForUnitEnumVariant { .. } => "this choice has no settings".to_owned(),
        Error::ExpectedMappingEndAfterEnumVariantValue { .. } => "expected one choice only".to_owned(),
        _ => UserMessageFormatter.format_message(error).into_owned(),
    }
}

/// What should stand where a value of this type does not.
fn expected(ty: &str) -> String {
    let integer = |least: i64, most: u64| format!("expected an integer from {least} to {most}");
    match ty {
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        "u64" => integer(0, u64::MAX),
        "i8" => integer(i8::MIN.into(), i8::MAX.unsigned_abs().into()),
        "i16" => integer(i16::MIN.into(), i16::MAX.unsigned_abs().into()),
        "i32" => integer(i32::MIN.into(), i32::MAX.unsigned_abs().into()),
        "i64" => integer(i64::MIN, i64::MAX.unsigned_abs()),
        "boolean" => "expected true or false".to_owned(),
        "floating point" => "expected a number".to_owned(),
        _ => format!("expected a value of type {ty}"),
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

/// Why settings cannot be read.
#[derive(Debug)]
pub(crate) enum SettingsError {
    /// They are in the file and wrong.
    InFile(serde_saphyr::Error),
    /// They are not in the file, and there is no default for all of them.
    Absent(serde_saphyr::Error),
}
