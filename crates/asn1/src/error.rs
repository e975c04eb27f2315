//! Why octets or a text are not a message.

use crate::limits::ERROR_DETAIL_MAX;

/// Why octets are not a message in UPER, or a message cannot be written in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UperError {
    /// The octets break the rules of the encoding or a constraint of the type.
    #[error("not a {message} in UPER: {detail}")]
    Invalid {
        /// The message and its edition.
        message: &'static str,
        /// What the codec found.
        detail: String,
    },
    /// The message is complete and whole octets follow it.
    #[error("{octets} octets follow the {message}")]
    Trailing {
        /// The message and its edition.
        message: &'static str,
        /// How many octets.
        octets: usize,
    },
    /// A container of a known type is broken.
    #[error("container {id} of the {message}: {detail}")]
    Container {
        /// The message and its edition.
        message: &'static str,
        /// `CpmContainerId`.
        id: u8,
        /// What the codec found.
        detail: String,
    },
    /// The value breaks a constraint of its type. The caller is at fault.
    #[error("the {message} cannot be encoded: {detail}")]
    Unencodable {
        /// The message and its edition.
        message: &'static str,
        /// What the codec found.
        detail: String,
    },
}

/// Why a text is not the JSON form of a message, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", location(path))]
pub struct JsonError {
    /// The member, from the root of the text: `cam.camParameters.basicContainer.stationType`; empty for the root itself.
    pub path: String,
    /// What is wrong with it.
    pub problem: JsonProblem,
}

impl JsonError {
    /// The same error in a text whose member `member` holds the text that it is about.
    #[must_use]
    pub fn inside(self, member: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{member}{dot}{}", self.path), ..self }
    }

    /// The same error with a path that starts below a member instead of at the root.
    pub fn below(self, member: &str) -> Self {
        let path = match self.path.strip_prefix(member) {
            Some(rest) => rest.trim_start_matches('.').to_owned(),
            None => self.path,
        };
        Self { path, ..self }
    }
}

/// What is wrong with a value of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// The text is not JSON, or exceeds one of [`crate::limits`].
    #[error("{0}")]
    Syntax(String),
    /// The member has to be there.
    #[error("this member is missing")]
    Missing,
    /// The type has no such member.
    #[error("there is no member of this name")]
    Unknown,
    /// The value is not what the type asks for.
    #[error("expected {expected}, got {got}")]
    Mismatch {
        /// What the type asks for.
        expected: String,
        /// The value, shortened.
        got: String,
    },
}

impl JsonProblem {
    /// The kind of problem as counters have it.
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

fn location(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// A codec's explanation, cut so that no input can make it long.
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
    fn an_error_says_where_and_what() {
        let problem = JsonProblem::Mismatch { expected: "an integer from 0 to 255".into(), got: "256".into() };
        let at_member = JsonError { path: "header.messageId".into(), problem: problem.clone() };
        assert_eq!(at_member.to_string(), "header.messageId: expected an integer from 0 to 255, got 256");
        assert_eq!(
            JsonError { path: String::new(), problem }.to_string(),
            "expected an integer from 0 to 255, got 256"
        );
    }
}
