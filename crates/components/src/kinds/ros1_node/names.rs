//! Names of nodes and topics of ROS.

/// Largest length of a name in bytes.
const BYTES_MAX: usize = 256;

/// Checks a global name: `/`, then levels of letters, digits and underscores, joined by `/`.
pub(super) fn check(name: &str) -> Result<(), String> {
    let levels = name.strip_prefix('/').ok_or_else(|| format!("`{name}` does not begin with `/`"))?;
    if name.len() <= BYTES_MAX && levels.split('/').all(is_level) {
        return Ok(());
    }
    Err(format!("`{name}` is not a name of ROS: expected letters, digits and `_`, with levels joined by `/`"))
}

/// Returns a name with `_` in place of the characters that a name cannot have.
pub(super) fn from_text(text: &str) -> String {
    let is_letter = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let level: String = text.chars().map(|character| if is_letter(character) { character } else { '_' }).collect();
    let prefix = if level.starts_with(|first: char| first.is_ascii_alphabetic()) { "" } else { "node_" };
    let mut name = format!("/{prefix}{level}");
    // Only ASCII characters are left.
    name.truncate(BYTES_MAX);
    name
}

fn is_level(level: &str) -> bool {
    !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_levels() {
        for good in ["/points", "/lidar/front/points_2", "/A1", "/uav/0/points", "/camera/_raw"] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["", "/", "points", "/a//b", "/a/", "/a b", "/a\0", "/ä", &format!("/{}", "a".repeat(256))] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_text_becomes_a_name() {
        for (text, name) in [("car-1_ros", "/car_1_ros"), ("1.a", "/node_1_a"), ("ä", "/node__")] {
            assert_eq!(from_text(text), name);
            assert_eq!(check(&from_text(text)), Ok(()));
        }
        assert_eq!(check(&from_text(&"x".repeat(1000))), Ok(()));
    }
}
