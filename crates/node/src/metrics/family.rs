//! Metrics of the same name with their help, type and samples, in the text format of Prometheus (version 0.0.4).

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use viaduct_bus::{LATENCY_BOUNDS_US, Percentiles};

use super::Labels;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// All metrics of a scrape by name.
#[derive(Default)]
pub(super) struct Families(BTreeMap<String, Family>);

/// The samples of one name.
struct Family {
    kind: Kind,
    help: String,
    samples: BTreeMap<Labels, Sample>,
}

enum Sample {
    Number(f64),
    Histogram(Box<Percentiles>),
}

impl Families {
    /// Adds a number. It replaces an earlier one of the same name and labels.
    pub(super) fn number(&mut self, name: &str, kind: Kind, help: &str, labels: Labels, value: f64) {
        self.add(name, kind, help, labels, Sample::Number(value));
    }

    /// Adds a distribution of durations.
    pub(super) fn histogram(&mut self, name: &str, help: &str, labels: Labels, durations: &Percentiles) {
        self.add(name, Kind::Histogram, help, labels, Sample::Histogram(Box::new(*durations)));
    }

    fn add(&mut self, name: &str, kind: Kind, help: &str, labels: Labels, sample: Sample) {
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
        let new = || Family { kind, help: help.to_owned(), samples: BTreeMap::new() };
        self.0.entry(name).or_insert_with(new).samples.insert(labels, sample);
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, Family { kind, help, samples }) in &self.0 {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            writeln!(f, "# HELP {name} {}", help.replace('\\', "\\\\").replace('\n', "\\n"))?;
            writeln!(f, "# TYPE {name} {kind}")?;
            for (labels, sample) in samples {
                match sample {
                    Sample::Number(value) => writeln!(f, "{name}{} {value}", braced(labels, None))?,
                    Sample::Histogram(durations) => write_histogram(f, name, labels, durations)?,
                }
            }
        }
        Ok(())
    }
}

fn write_histogram(f: &mut fmt::Formatter<'_>, name: &str, labels: &Labels, durations: &Percentiles) -> fmt::Result {
    for (bound_us, count) in LATENCY_BOUNDS_US.iter().zip(&durations.at_most) {
        let bound = (f64::from(*bound_us) / 1e6).to_string();
        writeln!(f, "{name}_bucket{} {count}", braced(labels, Some(&bound)))?;
    }
    let count = durations.count;
    writeln!(f, "{name}_bucket{} {count}", braced(labels, Some("+Inf")))?;
    writeln!(f, "{name}_sum{} {}", braced(labels, None), durations.mean_us * count as f64 / 1e6)?;
    writeln!(f, "{name}_count{} {count}", braced(labels, None))
}

/// Returns `{label="value",...}`, with the upper bound of a bucket as the last one.
fn braced(labels: &Labels, bound: Option<&str>) -> String {
    let mut text = String::new();
    for (name, value) in labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound.map(|le| ("le", le))) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let separator = if text.is_empty() { '{' } else { ',' };
        // Writing into a String cannot fail.
        let _ = write!(text, "{separator}{name}=\"{value}\"");
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_help_type_and_escaped_labels() {
        let mut families = Families::default();
        let labels = vec![("topic", "a\"b\\c\n".to_owned())];
        families.number("x-y_total", Kind::Counter, "Help.", labels, 7.0);
        families.number("a", Kind::Gauge, "No labels.", Vec::new(), 0.5);
        let expected = "# HELP a No labels.\n# TYPE a gauge\na 0.5\n\
                        # HELP x_y_total Help.\n# TYPE x_y_total counter\nx_y_total{topic=\"a\\\"b\\\\c\\n\"} 7\n";
        assert_eq!(families.to_string(), expected);
    }

    #[test]
    fn a_histogram_has_cumulative_buckets_in_seconds() {
        let mut families = Families::default();
        let mut durations = Percentiles { count: 9, mean_us: 1_000.0, ..Percentiles::default() };
        durations.at_most.iter_mut().skip(3).for_each(|count| *count = 8);
        families.histogram("t_seconds", "Time.", vec![("to", "api".to_owned())], &durations);
        let text = families.to_string();
        for line in [
            "# TYPE t_seconds histogram",
            "t_seconds_bucket{to=\"api\",le=\"0.000001\"} 0",
            "t_seconds_bucket{to=\"api\",le=\"0.00001\"} 8",
            "t_seconds_bucket{to=\"api\",le=\"10\"} 8",
            "t_seconds_bucket{to=\"api\",le=\"+Inf\"} 9",
            "t_seconds_sum{to=\"api\"} 0.009",
            "t_seconds_count{to=\"api\"} 9",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
    }
}
