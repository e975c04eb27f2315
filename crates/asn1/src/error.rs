//! Errors of the codecs.

use crate::limits::ERROR_DETAIL_MAX;

/// The reason why octets are not a message in UPER, or why a message cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UperError {
    /// The octets break the rules of the encoding or a constraint of the type.
    #[error("not a {message} in UPER: {}{detail}{}", location(path), position(*bit))]
    Invalid {
        /// The message and its edition.
        message: &'static str,
        /// The wrong element from the root of the message: `cam.camParameters.basicContainer.stationType`. Elements of a
        /// list have no index, alternatives of a CHOICE no name.
        path: String,
        /// The explanation of the codec.
        detail: String,
        /// Position of the last bit that was read, counted from 0. Only [`crate::uper::explain`] finds it.
        bit: Option<usize>,
    },
    /// The message is complete and whole octets follow it.
    #[error("{octets} octets follow the {message}")]
    Trailing {
        /// The message and its edition.
        message: &'static str,
        /// Number of octets.
        octets: usize,
    },
    /// A container of a known type is broken.
    #[error("container {id} of the {message}: {detail}")]
    Container {
        /// The message and its edition.
        message: &'static str,
        /// `CpmContainerId`.
        id: u8,
        /// The wrong element and the explanation of the codec.
        detail: String,
    },
    /// The value breaks a constraint of its type. The caller is at fault.
    #[error("the {message} cannot be encoded: {detail}")]
    Unencodable {
        /// The message and its edition.
        message: &'static str,
        /// The explanation of the codec.
        detail: String,
    },
}

impl UperError {
    /// Returns the error of the container `id` whose octets this error is about.
    #[must_use]
    pub fn of_container(self, id: u8) -> Self {
        match self {
            Self::Invalid { message, path, detail, bit } => {
                let detail = format!("{}{detail}{}", location(&path), position(bit));
                Self::Container { message, id, detail }
            }
            Self::Trailing { message, octets } => {
                Self::Container { message, id, detail: format!("{octets} octets follow its content") }
            }
            Self::Unencodable { message, detail } => Self::Container { message, id, detail },
            other @ Self::Container { .. } => other,
        }
    }
}

/// The reason why a text is not the JSON form of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", location(path))]
pub struct JsonError {
    /// The wrong member, from the root of the text: `cam.camParameters.basicContainer.stationType`. Empty for the root.
    pub path: String,
    /// The problem with the member.
    pub problem: JsonProblem,
}

impl JsonError {
    /// Returns the same error for a text that contains this one in its member `member`.
    #[must_use]
    pub fn inside(self, member: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{member}{dot}{}", self.path), ..self }
    }

    /// Returns the same error with a path that starts below a member instead of at the root.
    pub fn below(self, member: &str) -> Self {
        let path = match self.path.strip_prefix(member) {
            Some(rest) => rest.trim_start_matches('.').to_owned(),
            None => self.path,
        };
        Self { path, ..self }
    }
}

/// The problem with a value of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// The text is not JSON, or exceeds one of [`crate::limits`].
    #[error("{0}")]
    Syntax(String),
    /// A required member is missing.
    #[error("this member is missing")]
    Missing,
    /// The type has no such member.
    #[error("there is no member of this name")]
    Unknown,
    /// The value does not fit the type.
    #[error("expected {expected}, got {got}")]
    Mismatch {
        /// The values that the type allows.
        expected: String,
        /// The value, shortened.
        got: String,
    },
}

impl JsonProblem {
    /// Returns the name of the problem in counters.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "syntax",
            Self::Missing => "missing",
            Self::Unknown => "unknown_member",
            Self::Mismatch { .. } => "wrong_value",
        }
    }
}

/// Returns the path of a member in front of a problem, or nothing for the root.
fn location(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

fn position(bit: Option<usize>) -> String {
    bit.map_or_else(String::new, |bit| format!(" (at bit {bit})"))
}

/// Returns the explanation of a codec, shortened so that no input can make it long.
pub(crate) fn detail(cause: &impl std::fmt::Display) -> String {
    let mut text = cause.to_string();
    if let Some((cut, _)) = text.char_indices().find(|(at, _)| *at >= ERROR_DETAIL_MAX) {
        text.truncate(cut);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_explanation_is_cut_between_characters() {
        let long = "ä".repeat(1000);
        assert!(detail(&long).len() <= ERROR_DETAIL_MAX + 4);
        assert_eq!(detail(&"short"), "short");
    }

    #[test]
    fn an_error_names_the_member_and_the_problem() {
        let problem = JsonProblem::Mismatch { expected: "an integer from 0 to 255".into(), got: "256".into() };
        let at_member = JsonError { path: "header.messageId".into(), problem: problem.clone() };
        assert_eq!(at_member.to_string(), "header.messageId: expected an integer from 0 to 255, got 256");
        assert_eq!(
            JsonError { path: String::new(), problem }.to_string(),
            "expected an integer from 0 to 255, got 256"
        );
    }
}
