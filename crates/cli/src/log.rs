//! The log on stderr: level, format and colours.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Directive that silences the MQTT library. It applies unless the filter names `mqtt5`.
const QUIET_LIBRARY: &str = "mqtt5=off";

/// Options of the log, for every command.
#[derive(clap::Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogOptions {
    /// Lowest level that is logged on stderr: off, error, warn, info, debug or trace. A list of `TARGET=LEVEL` sets it by
    /// module, as in RUST_LOG. Default: RUST_LOG, or `info` if that is not set.
    #[arg(long = "log", value_name = "LEVEL", global = true, value_parser = check_filter)]
    level: Option<String>,
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
    let registry = tracing_subscriber::registry().with(filter(options.level.as_deref()));
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
fn filter(level: Option<&str>) -> EnvFilter {
    match level {
        Some(level) => EnvFilter::new(with_quiet_library(level)),
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(with_quiet_library("info"))),
    }
}

fn with_quiet_library(directives: &str) -> String {
    if directives.contains("mqtt5") { directives.to_owned() } else { format!("{directives},{QUIET_LIBRARY}") }
}

/// Checks the value of `--log`. A word that is neither a level nor has a `=` is rejected. It would otherwise be taken
/// as the name of a module, and a mistyped level would silence the log.
fn check_filter(text: &str) -> Result<String, String> {
    for directive in text.split(',') {
        let is_level = !directive.is_empty() && directive.parse::<LevelFilter>().is_ok();
        if !is_level && !directive.contains('=') {
            return Err(format!("`{directive}` is not off, error, warn, info, debug, trace or TARGET=LEVEL"));
        }
    }
    EnvFilter::builder().parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_or_a_list_by_module_is_accepted() {
        for text in ["debug", "off", "warn,viaduct_bus=trace", "viaduct_components::its_station=debug"] {
            assert_eq!(check_filter(text).as_deref(), Ok(text));
        }
        for text in ["", "debgu", "info,debgu", "viaduct_bus=loud"] {
            assert!(check_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_mqtt_library_is_quiet_unless_it_is_named() {
        assert_eq!(with_quiet_library("debug"), "debug,mqtt5=off");
        assert_eq!(with_quiet_library("info,mqtt5=warn"), "info,mqtt5=warn");
    }
}
