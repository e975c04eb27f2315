//! Settings of the connection to the broker, and of topics, that the files of all programs have.

use super::plan::{Map, Setting};
use super::section::{Found, Section, Warning};

/// Most messages of QoS 1 and 2 in flight.
const IN_FLIGHT_MAX: u32 = 10_000;
const MESSAGES_MAX: u64 = 1_000_000;
const KEEP_ALIVE_S_MAX: f64 = 3600.0;
/// The file of a password, which is not copied into the node file.
const PASSWORD_FILE: &str = "mqtt.password";

pub(super) fn text(key: &'static str, found: Option<Found<String>>) -> Option<(&'static str, Setting)> {
    Some((key, Setting::Text(found?.value)))
}

pub(super) fn plain(key: &'static str, value: &impl ToString) -> (&'static str, Setting) {
    (key, Setting::Plain(value.to_string()))
}

/// Adds a map of settings, if it has any.
pub(super) fn push_map(settings: &mut Map, key: &'static str, inner: Map) {
    if !inner.is_empty() {
        settings.push((key, Setting::Map(inner)));
    }
}

/// Takes user and password. The password belongs into a file of its own.
pub(super) fn credentials(section: &mut Section, names: [&str; 2], settings: &mut Map, warnings: &mut Vec<Warning>) {
    let user = section.text(names[0], warnings);
    let password = section.text(names[1], warnings);
    let has_user = user.is_some();
    settings.extend(text("username", user));
    let Some(password) = password else { return };
    if !has_user {
        warnings.push(password.warning("is not used without a user"));
        return;
    }
    let file = PASSWORD_FILE;
    warnings.push(password.warning(&format!("is not copied: write it into the first line of the file `{file}`")));
    settings.push(("password_file", Setting::Text(file.to_owned())));
}

/// Takes the keep alive in seconds.
pub(super) fn keep_alive(
    section: &mut Section,
    key: &str,
    default: f64,
    warnings: &mut Vec<Warning>,
) -> (&'static str, Setting) {
    let found = section.number::<f64>(key, warnings);
    let seconds = found.as_ref().map_or(default, |found| found.value);
    let rounded = if seconds.is_finite() { seconds.round().clamp(1.0, KEEP_ALIVE_S_MAX) } else { default };
    if let Some(found) = found.filter(|found| found.value != rounded) {
        warnings.push(
            found.warning(&format!(
                "`keep_alive_s` is {rounded}: a whole number of seconds from 1 to {KEEP_ALIVE_S_MAX}"
            )),
        );
    }
    plain("keep_alive_s", &rounded)
}

/// Takes the largest number of messages in flight.
pub(super) fn in_flight(
    section: &mut Section,
    key: &str,
    warnings: &mut Vec<Warning>,
) -> Option<(&'static str, Setting)> {
    let found = section.number::<u32>(key, warnings)?;
    let value = found.value.clamp(1, IN_FLIGHT_MAX);
    if value != found.value {
        warnings.push(found.warning(&format!("`in_flight_max` is {value}: 1 to {IN_FLIGHT_MAX}")));
    }
    Some(plain("in_flight_max", &value))
}

/// Takes the largest number of messages that wait.
pub(super) fn messages(
    section: &mut Section,
    key: &str,
    warnings: &mut Vec<Warning>,
) -> Option<(&'static str, Setting)> {
    let found = section.number::<u64>(key, warnings)?;
    if found.value == 0 {
        return None;
    }
    let value = found.value.min(MESSAGES_MAX);
    if value != found.value {
        warnings.push(found.warning(&format!("`messages_max` is {value}: 1 to {MESSAGES_MAX}")));
    }
    Some(plain("messages_max", &value))
}

/// Takes the last will.
pub(super) fn will(
    mut section: Section,
    names: [&str; 3],
    default: &str,
    settings: &mut Map,
    warnings: &mut Vec<Warning>,
) {
    let topic = section.text("topic", warnings);
    let payload = section.text(names[0], warnings);
    let (qos, retain) = (section.number::<u8>(names[1], warnings), section.switch(names[2], warnings));
    if let Some(topic) = topic {
        let payload = payload.map_or_else(|| default.to_owned(), |found| found.value);
        let mut will = vec![("topic", Setting::Text(topic.value)), ("payload", Setting::Text(payload))];
        will.extend(qos.map(|found| plain("qos", &found.value)));
        will.extend(retain.map(|found| plain("retain", &found.value)));
        settings.push(("will", Setting::Map(will)));
    } else if let Some(payload) = payload {
        warnings.push(payload.warning("is not used without a topic"));
    }
    section.finish(warnings);
}

/// Returns the address of a broker.
pub(super) fn broker(host: &str, port: u16, scheme: &str) -> Setting {
    let is_ipv6 = host.contains(':') && !host.starts_with('[');
    let host = if is_ipv6 { format!("[{host}]") } else { host.to_owned() };
    Setting::Text(format!("{scheme}://{host}:{port}"))
}
