//! Events of the desk: for the pages, on a topic, and on disk.

use serde::Serialize;
use viaduct_bus::{Meta, Publisher, Qos};
use viaduct_messages::foxglove::Log;
use viaduct_messages::foxglove::log::Level as LogLevel;
use viaduct_messages::its::timestamp;
use viaduct_node::{Context, StartError};
use viaduct_units::Now;
use viaduct_v2x_json::timestamp_text;

use super::TeleopDesk;
use super::messages::{Level, event};
use super::pages::Pages;
use super::time::tai_us;
use crate::teleop::event_log::EventLog;
use viaduct_units::RateLimiter;

/// Events logged in a second by the node's log. The topic and the file have all of them.
const LOGGED_PER_SECOND: u32 = 10;
/// Quality of service of the topic.
pub(super) const OFFERED: Qos = Qos::keep_last(256);

/// The outputs of events.
pub(super) struct Events {
    publisher: Publisher<Log>,
    log: Option<EventLog>,
    desk: String,
    logged: RateLimiter,
}

/// An event on disk.
#[derive(Serialize)]
struct Line<'a> {
    time: &'a str,
    level: Level,
    event: &'a str,
    text: &'a str,
}

impl Events {
    pub(super) fn new(topic: &str, log: Option<EventLog>, context: &Context<TeleopDesk>) -> Result<Self, StartError> {
        let desk = format!("{}/{}", context.node(), context.name());
        Ok(Self {
            publisher: context.publisher(topic, OFFERED)?,
            log,
            desk,
            logged: RateLimiter::new(LOGGED_PER_SECOND),
        })
    }

    /// Publishes an event and sends it to all pages.
    pub(super) fn emit(&mut self, now: Now, pages: &Pages, level: Level, code: &'static str, text: &str) {
        let message = event(tai_us(now.tai), level, code, text);
        for (_, page) in pages.iter() {
            page.mailbox.add_event(message.clone());
        }
        if let Some(events) = self.logged.admit(now.mono) {
            tracing::info!(code, text, events, "desk event");
        }
        if let Some(log) = &self.log {
            let time = timestamp_text(now.tai);
            // The type has no maps with keys that are not texts, so this does not fail.
            log.write(serde_json::to_string(&Line { time: &time, level, event: code, text }).unwrap_or_default());
        }
        let of_log = match level {
            Level::Info => LogLevel::Info,
            Level::Warning => LogLevel::Warning,
            Level::Alarm => LogLevel::Error,
        };
        let entry = Log {
            timestamp: Some(timestamp(now.tai)),
            level: of_log.into(),
            message: format!("{code}: {text}"),
            name: self.desk.clone(),
            file: String::new(),
            line: 0,
        };
        // A subscriber whose queue is full counts the drop.
        let _ = self.publisher.try_publish_from(Meta::from_origin(now.tai), entry);
    }
}
