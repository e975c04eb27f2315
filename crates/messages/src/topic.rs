//! Names of topics, and patterns that match them.
//!
//! A name is 1 to 16 levels joined by `/`. A level consists of letters, digits, `_`, `-` and `.`. In a pattern, `*` matches
//! exactly one level. `**` is allowed only as the last level and matches any number of levels, including none.

/// Prefix of received messages: `its/rx/cam`. The last level is [`crate::viaduct::its::MessageType::topic_level`].
pub const ITS_RX: &str = "its/rx";
/// Prefix of messages that stations of the node sent: `its/tx/cam`.
pub const ITS_TX: &str = "its/tx";
/// Topic of the errors of the node's stations: `viaduct.its.V2xError`.
pub const ITS_ERRORS: &str = "its/errors";

/// Largest number of levels of a name.
const LEVELS_MAX: usize = 16;
/// Largest length of a name in bytes.
const LENGTH_MAX: usize = 128;

/// The reason for which a text is not a topic name or not a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    name: String,
    problem: &'static str,
}

impl std::fmt::Display for NameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not a topic name: {}", self.name, self.problem)
    }
}

impl std::error::Error for NameError {}

/// Checks the name of a topic.
///
/// # Errors
/// Returns the first rule that the name violates.
pub fn check_name(name: &str) -> Result<(), NameError> {
    check(name, |level| level.bytes().all(is_name_byte))
}

/// Checks a pattern.
///
/// # Errors
/// Returns the first rule that the pattern violates.
pub fn check_pattern(pattern: &str) -> Result<(), NameError> {
    check(pattern, |level| matches!(level, "*" | "**") || level.bytes().all(is_name_byte))?;
    let before_last = pattern.rsplit_once('/').map_or("", |(before, _)| before);
    if before_last.split('/').any(|level| level == "**") {
        return Err(NameError { name: pattern.to_owned(), problem: "`**` may only be the last level" });
    }
    Ok(())
}

/// Returns `true` if the pattern is the name of one topic.
#[must_use]
pub fn is_name(pattern: &str) -> bool {
    !pattern.contains('*')
}

/// Returns `true` if the topic name matches the pattern.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut levels = name.split('/');
    for expected in pattern.split('/') {
        match (expected, levels.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (expected, Some(level)) if expected == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Returns `true` if a topic name can match both patterns.
#[must_use]
pub fn overlap(one: &str, other: &str) -> bool {
    let (mut ones, mut others) = (one.split('/'), other.split('/'));
    loop {
        match (ones.next(), others.next()) {
            (None, None) | (Some("**"), _) | (_, Some("**")) => return true,
            (Some(a), Some(b)) if a == b || a == "*" || b == "*" => {}
            _ => return false,
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn check(name: &str, level_ok: impl Fn(&str) -> bool) -> Result<(), NameError> {
    let problem = if name.len() > LENGTH_MAX {
        "it is longer than 128 bytes"
    } else if name.split('/').count() > LEVELS_MAX {
        "it has more than 16 levels"
    } else if name.split('/').any(str::is_empty) {
        "a level is empty"
    } else if !name.split('/').all(level_ok) {
        "a level may contain only letters, digits, `_`, `-` and `.`"
    } else {
        return Ok(());
    };
    Err(NameError { name: name.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_are_checked() {
        for good in ["its/rx/cam", "lidar", "a.b/c-d/e_f"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/its", "its/", "a//b", "its/rx/*", "its/#", "ä", &"x".repeat(129), &["a"; 17].join("/")] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        for good in ["its/rx/*", "**", "its/**", "*/points"] {
            assert_eq!(check_pattern(good), Ok(()), "{good}");
        }
        for bad in ["its/**/cam", "its/r*", "its/+"] {
            assert!(check_pattern(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_match_whole_levels() {
        for (pattern, name, expected) in [
            ("its/rx/cam", "its/rx/cam", true),
            ("its/rx/*", "its/rx/cam", true),
            ("its/*", "its/rx/cam", false),
            ("its/**", "its/rx/cam", true),
            ("its/**", "its", true),
            ("**", "anything/at/all", true),
            ("its/rx/*", "its/rx", false),
            ("its/rx", "its/rx/cam", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_overlap_if_a_name_can_match_both() {
        for (one, other, expected) in [
            ("its/rx/*", "its/*/cam", true),
            ("its/rx/*", "its/tx/*", false),
            ("its/**", "its/rx/cam", true),
            ("a", "a/b", false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
            assert_eq!(overlap(other, one), expected, "{other} {one}");
        }
    }
}
