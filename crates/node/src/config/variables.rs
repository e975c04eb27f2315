//! Environment variables in values: `${NAME}` and `${NAME:-default}`.

/// Returns the value of an environment variable, or `None` if it is not set.
pub(crate) type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Returns the variables of this process. One that is not UTF-8 counts as not set.
pub(crate) fn of_process() -> Box<Variables<'static>> {
    Box::new(|name| std::env::var(name).ok())
}

/// Replaces `${NAME}` by the variable, `${NAME:-default}` by the default if the variable is unset or empty, and `$${`
/// by `${`. Returns `None` if the text has none of these. The text that a variable brings in is not searched again.
///
/// # Errors
/// Returns an error if a variable without a default is not set, or a `${` is not closed or names no variable.
pub(crate) fn expand(text: &str, variables: &Variables<'_>) -> Result<Option<String>, String> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = (&rest[..start], &rest[start + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = reference;
            continue;
        }
        out.push_str(before);
        let Some(end) = reference.find('}') else {
            return Err("`${` without `}`; write `$${` for a plain `${`".to_owned());
        };
        out.push_str(&value(&reference[..end], variables)?);
        rest = &reference[end + 1..];
    }
    out.push_str(rest);
    Ok(Some(out))
}

/// Returns the value of `NAME` or `NAME:-default`.
fn value(reference: &str, variables: &Variables<'_>) -> Result<String, String> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!("`${{{reference}}}` names no variable; expected ${{NAME}} or ${{NAME:-default}}"));
    }
    match (variables(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => {
            Err(format!("the environment variable `{name}` is not set; set it, or write ${{{name}:-default}}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<Option<String>, String> {
        expand(text, &|name| match name {
            "HOST" => Some("edge".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOST}".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_variable_is_replaced_and_an_empty_one_gets_its_default() {
        for (text, result) in [
            ("mqtt://${HOST}:1883", "mqtt://edge:1883"),
            ("${HOST}-${HOST}", "edge-edge"),
            ("${PORT:-8080}", "8080"),
            ("${EMPTY:-8080}", "8080"),
            ("${HOST:-other}", "edge"),
            ("${EMPTY}", ""),
            ("${PORT:-}", ""),
            ("${PORT:-a:-b}", "a:-b"),
            ("${NESTED}", "${HOST}"),
            ("$${HOST} costs $5", "${HOST} costs $5"),
        ] {
            assert_eq!(expanded(text), Ok(Some(result.to_owned())), "{text}");
        }
        assert_eq!(expanded("its/rx/* $5 {topic}"), Ok(None));
    }

    #[test]
    fn a_variable_that_is_not_set_is_an_error_with_its_name() {
        let unset = "the environment variable `PORT` is not set; set it, or write ${PORT:-default}";
        assert_eq!(expanded("http://${PORT}/"), Err(unset.to_owned()));
        for text in ["${}", "${1}", "${A B}", "${:-x}", "${HOST"] {
            assert!(expanded(text).is_err(), "{text}");
        }
    }
}
