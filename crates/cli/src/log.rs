//! The log on stderr: level, format and colours.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The MQTT library, which logs what this program logs already.
const LIBRARY: &str = "mqtt5";

/// Options of the log, for every command.
#[derive(clap::Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogOptions {
    /// Lowest level that is logged on stderr: off, error, warn, info, debug or trace. A list of `TARGET=LEVEL` sets it by
    /// module, as in RUST_LOG. Default: RUST_LOG, or `info` if that is not set.
    #[arg(long = "log", value_name = "LEVEL", global = true, value_parser = parse_filter)]
    level: Option<Targets>,
    /// Format of the log. Colours appear only in `text` on a terminal, and not if NO_COLOR is set.
    #[arg(long = "log-format", value_name = "FORMAT", global = true, value_enum, default_value = "text")]
    format: Format,
}

/// Format of a log line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// One readable line for each event.
    Text,
    /// One JSON object for each event, with its fields as members.
    Json,
}

/// Starts the log.
pub(crate) fn start(options: &LogOptions) {
    let layer = fmt::layer().with_writer(std::io::stderr).with_target(false).log_internal_errors(false);
    let registry = tracing_subscriber::registry().with(filter(options.level.as_ref()));
    match options.format {
        Format::Text => registry.with(layer.with_ansi(has_colours())).init(),
        Format::Json => registry.with(layer.json().flatten_event(true).with_ansi(false)).init(),
    }
}

/// Returns `true` if stderr is a terminal and NO_COLOR (no-color.org) is unset or empty.
fn has_colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the filter of `--log`, else of RUST_LOG, else `info`.
fn filter(level: Option<&Targets>) -> Targets {
    let of_environment = || std::env::var("RUST_LOG").ok().and_then(|text| parse_filter(&text).ok());
    let filter = level.cloned().or_else(of_environment);
    filter.unwrap_or_else(|| without_library(Targets::new().with_default(LevelFilter::INFO)))
}

/// Returns the filter without events of the MQTT library, unless it names the library.
fn without_library(filter: Targets) -> Targets {
    let is_named = filter.iter().any(|(target, _)| target.starts_with(LIBRARY));
    if is_named { filter } else { filter.with_target(LIBRARY, LevelFilter::OFF) }
}

/// Parses the value of `--log` or RUST_LOG. A word that is neither a level nor has a `=` is rejected. It would otherwise be taken
/// as the name of a module, and a mistyped level would silence the log.
fn parse_filter(text: &str) -> Result<Targets, String> {
    for directive in text.split(',') {
        let is_level = !directive.is_empty() && directive.parse::<LevelFilter>().is_ok();
        if !is_level && !directive.contains('=') {
            return Err(format!("`{directive}` is not off, error, warn, info, debug, trace or TARGET=LEVEL"));
        }
    }
    text.parse().map(without_library).map_err(|error: tracing_subscriber::filter::ParseError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_or_a_list_by_module_is_accepted() {
        for text in ["debug", "off", "warn,viaduct_bus=trace", "viaduct_components::its_station=debug"] {
            assert!(parse_filter(text).is_ok(), "{text}");
        }
        for text in ["", "debgu", "info,debgu", "viaduct_bus=loud"] {
            assert!(parse_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_mqtt_library_is_quiet_unless_it_is_named() {
        let warning = LevelFilter::WARN.into_level().unwrap();
        let logs = |filter: &str| parse_filter(filter).unwrap().would_enable("mqtt5::broker", &warning);
        assert!(!logs("debug"));
        assert!(logs("info,mqtt5=warn"));
    }
}
