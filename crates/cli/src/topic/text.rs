//! Formats of numbers, times and JSON values.

use serde_json::Value;

/// Returns a time with three digits, in us, ms or s.
pub(super) fn time(microseconds: f64) -> String {
    let (value, unit) = match microseconds {
        us if us < 999.5 => (us, "us"),
        us if us < 999.5e3 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Returns a rate with three digits.
pub(super) fn rate(hz: f64) -> String {
    three_digits(hz)
}

/// Returns a number with at least three digits. From the bounds on, rounding would add a digit.
fn three_digits(value: f64) -> String {
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}

/// Returns a JSON value on one line: `reliability best_effort, history (keep_last 5)`.
pub(super) fn inline(value: &Value) -> String {
    let nested = |value: &Value| {
        let text = inline(value);
        if value.is_object() { format!("({text})") } else { text }
    };
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(nested).collect::<Vec<_>>().join(", "),
        // The value of an only member needs no parentheses: `history (keep_all limit 4096)`.
        Value::Object(members) if members.len() == 1 => {
            members.iter().map(|(name, value)| format!("{name} {}", inline(value))).collect()
        }
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name} {}", nested(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Prints texts; on a terminal each replaces the previous one.
pub(super) struct Screen {
    in_place: bool,
    height: usize,
}

impl Screen {
    pub(super) fn new() -> Self {
        use std::io::IsTerminal as _;
        Self { in_place: std::io::stdout().is_terminal(), height: 0 }
    }

    /// Prints the text.
    pub(super) fn show(&mut self, text: &str) -> anyhow::Result<()> {
        let up = if self.in_place && self.height > 0 { format!("\x1b[{}A\x1b[J", self.height) } else { String::new() };
        self.height = text.trim_end().lines().count();
        crate::output::print_line(format_args!("{up}{}", text.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_have_three_digits_and_a_unit_that_fits() {
        for (microseconds, text) in [
            (0.0, "0.00 us"),
            (5.25, "5.25 us"),
            (42.5, "42.5 us"),
            (999.0, "999 us"),
            (1500.0, "1.50 ms"),
            (2.5e6, "2.50 s"),
        ] {
            assert_eq!(time(microseconds), text);
        }
        assert_eq!([time(999.9), time(999.9e3)], ["1.00 ms", "1.00 s"]);
        assert_eq!([rate(0.5), rate(9.999), rate(99.99), rate(1234.4)], ["0.50", "10.0", "100", "1234"]);
    }

    #[test]
    fn a_json_value_is_one_line() {
        let qos = json!({ "depth": 5, "history": { "keep_last": 5 }, "names": ["a", { "b": true }] });
        assert_eq!(inline(&qos), "depth 5, history (keep_last 5), names a, (b true)");
        let qos = json!({ "history": { "keep_all": { "limit": 4096 } }, "reliability": "reliable" });
        assert_eq!(inline(&qos), "history (keep_all limit 4096), reliability reliable");
    }
}
