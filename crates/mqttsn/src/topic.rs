//! Topic names and filters.

use crate::limits::TOPIC_OCTETS_MAX;

/// Returns `true` if a text is a topic name: not empty, not too long, without wildcards and without U+0000.
#[must_use]
pub fn is_topic_name(name: &str) -> bool {
    (1..=TOPIC_OCTETS_MAX).contains(&name.len()) && !name.contains(['#', '+', '\0'])
}

/// Returns `true` if a text is a topic filter: each wildcard is a whole level, and `#` is the last one.
#[must_use]
pub fn is_topic_filter(filter: &str) -> bool {
    let level_is_valid = |level: &str| level.len() == 1 || !level.contains(['#', '+']);
    let hash_is_last = filter.find('#').is_none_or(|at| at + 1 == filter.len());
    (1..=TOPIC_OCTETS_MAX).contains(&filter.len())
        && !filter.contains('\0')
        && hash_is_last
        && filter.split('/').all(level_is_valid)
}

/// Returns `true` if a filter contains a wildcard.
#[must_use]
pub fn has_wildcard(filter: &str) -> bool {
    filter.contains(['#', '+'])
}

/// Returns `true` if a filter matches a topic name (MQTT 3.1.1, 4.7).
#[must_use]
pub fn matches(filter: &str, name: &str) -> bool {
    if name.starts_with('$') && filter.starts_with(['#', '+']) {
        return false;
    }
    let (mut levels, mut names) = (filter.split('/'), name.split('/'));
    loop {
        match (levels.next(), names.next()) {
            (Some("#"), _) | (None, None) => return true,
            (Some("+"), Some(_)) => (),
            (Some(level), Some(name)) if level == name => (),
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_in_mqtt() {
        let matching = [("a/b", "a/b"), ("a/+", "a/b"), ("a/#", "a"), ("#", "a/b"), ("+/+", "/b"), ("a/+", "a/")];
        let other = [("a/b", "a/c"), ("a/+", "a"), ("a/+", "a/b/c"), ("#", "$SYS/x"), ("+/x", "$SYS/x"), ("a", "a/b")];
        assert!(matching.into_iter().all(|(filter, name)| matches(filter, name)));
        assert!(!other.into_iter().any(|(filter, name)| matches(filter, name)));
        assert!(matches("$SYS/#", "$SYS/x"));
    }

    #[test]
    fn wildcards_are_whole_levels() {
        assert!(["a", "+", "#", "a/+/b", "a/#", "/"].into_iter().all(is_topic_filter));
        assert!(!["", "a#", "#/a", "a+/b", "a/b+", "a\0"].into_iter().any(is_topic_filter));
        assert!(is_topic_name("a/b") && !["", "a/+", "#", "\0"].into_iter().any(is_topic_name));
    }
}
