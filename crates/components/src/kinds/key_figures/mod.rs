//! Kind `key_figures`: live key figures of messages that leave the node, are processed elsewhere and come back.
//!
//! The stages of a message are the differences of its stamps, so that nothing has to be installed between them. The figures appear on two
//! topics, as gauges, and in files with the keys of the benchmarking suite of `mqtt_client`.
//!
//! Counters: `received` = `measured` + `dropped` by reason (`without_point`), `late`, `repeated`, and `file_lost` for lines that the disk
//! was too slow for.

mod files;
mod gauges;
mod settings;
mod suite;

use std::time::Duration;

use viaduct_bus::{Counter, Meta, Publisher, Qos, UntypedSample};
use viaduct_messages::its::timestamp;
use viaduct_messages::topic;
use viaduct_messages::viaduct::figures as messages;
use viaduct_node::{CallbackContext, Component, Context, Edges, SettingError, StartError};
use viaduct_units::Now;

use self::files::Files;
use self::gauges::Gauges;
pub use self::settings::{FilesSettings, HopsSettings, KeyFiguresSettings, StageSettings};
use crate::figures::loss::{Losses, Return};
use crate::figures::path::{Path, Trace};
use crate::figures::window::{Figures, Statistics, Window};

/// Queue of the returned messages.
const RETURNED: Qos = Qos::keep_last(16);
/// Queue of the source, whose messages may be large.
const SOURCE: Qos = Qos::keep_last(4);
/// Quality of service of the figures.
const OFFERED: Qos = Qos::keep_last(16);
/// Period of the figures.
const PERIOD: Duration = Duration::from_secs(1);

/// The component.
pub struct KeyFigures {
    topic: String,
    path: Path,
    size: usize,
    window: Window,
    losses: Option<Losses>,
    latest: Option<Trace>,
    figures: Publisher<messages::KeyFigures>,
    round_trips: Publisher<messages::RoundTrip>,
    gauges: Gauges,
    files: Option<Files>,
    received: Counter,
    measured: Counter,
    without_point: Counter,
    late: Counter,
    repeated: Counter,
    /// `true` after the first message without a point, so that it is logged once.
    is_logged: bool,
}

impl Component for KeyFigures {
    type Settings = KeyFiguresSettings;

    fn check(settings: &KeyFiguresSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn edges(settings: &KeyFiguresSettings) -> Edges {
        let edges = Edges::default().reads_untyped("topic", &settings.topic, RETURNED);
        let edges = match &settings.source {
            Some(source) => edges.reads_untyped("source", source, SOURCE),
            None => edges,
        };
        edges
            .publishes::<messages::KeyFigures>("to", &window_topic(&settings.to), OFFERED)
            .publishes::<messages::RoundTrip>("to", &message_topic(&settings.to), OFFERED)
    }

    fn start(settings: KeyFiguresSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let path = settings.path(context.name())?;
        if let Some(source) = &settings.source {
            let samples = context.subscribe_untyped(source, SOURCE)?;
            context.on_untyped(samples, Self::sent);
        }
        let samples = context.subscribe_untyped(&settings.topic, RETURNED)?;
        context.on_untyped(samples, Self::returned);
        context.every(PERIOD, |component, out| component.publish(out.now));
        let deadline = Duration::from_millis(settings.deadline_ms.into());
        let size = settings.window as usize;
        let files = settings.files.as_ref().map(|files| Files::open(files, &path, context)).transpose()?;
        Ok(Self {
            window: Window::new(size),
            size,
            losses: settings.source.is_some().then(|| Losses::new(deadline, size)),
            latest: None,
            figures: context.publisher(&window_topic(&settings.to), OFFERED)?,
            round_trips: context.publisher(&message_topic(&settings.to), OFFERED)?,
            gauges: Gauges::new(&path, context),
            files,
            received: context.counter("received"),
            measured: context.counter("measured"),
            without_point: context.counter_for("dropped", "without_point"),
            late: context.counter("late"),
            repeated: context.counter("repeated"),
            is_logged: false,
            topic: settings.topic,
            path,
        })
    }

    fn stop(&mut self) {
        self.write_metrics();
    }
}

fn window_topic(to: &str) -> String {
    format!("{to}/window")
}

fn message_topic(to: &str) -> String {
    format!("{to}/message")
}

impl KeyFigures {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn sent(&mut self, sample: UntypedSample, out: &mut CallbackContext) {
        let Meta { origin, sequence, .. } = sample.meta();
        if let Some(losses) = &mut self.losses {
            losses.sent(origin, sequence, out.now.mono);
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn returned(&mut self, sample: UntypedSample, out: &mut CallbackContext) {
        self.received.increment();
        let meta = sample.meta();
        let sequence = self.account(&meta, out.now);
        let trace = match self.path.trace(meta.stamps()) {
            Ok(trace) => trace,
            Err(point) => {
                self.without_point.increment();
                if !std::mem::replace(&mut self.is_logged, true) {
                    let (topic, stamps) = (&self.topic, meta.stamps());
                    tracing::warn!(topic, %point, ?stamps, "a returned message has not passed a point of the path");
                }
                return;
            }
        };
        self.measured.increment();
        self.window.push(&trace);
        if let Some(files) = &self.files {
            files.write_row(suite::row(&trace));
        }
        let round_trip = messages::RoundTrip {
            sequence,
            origin: Some(timestamp(meta.origin)),
            stages_ms: trace.partials_ms(),
            total_ms: trace.total_ms(),
            differences_ms: trace.differences_ms().collect(),
        };
        // No subscriber of figures may delay the messages that are measured; the bus counts the loss.
        let _ = self.round_trips.try_publish_from(meta, round_trip);
        self.latest = Some(trace);
    }

    /// Marks a message of the source as returned. Returns its number, or 0 if it is not known.
    fn account(&mut self, meta: &Meta, now: Now) -> u64 {
        match self.losses.as_mut().map(|losses| losses.returned(meta.origin, now.mono)) {
            None | Some(Return::Unknown) => 0,
            Some(Return::InTime(sequence)) => sequence,
            Some(Return::Late(sequence)) => {
                self.late.increment();
                sequence
            }
            Some(Return::Again(sequence)) => {
                self.repeated.increment();
                sequence
            }
        }
    }

    fn publish(&mut self, now: Now) {
        let loss = self.losses.as_ref().map(|losses| losses.loss(now.mono));
        let figures = self.window.figures();
        self.gauges.set(figures.as_ref(), loss);
        let message = messages::KeyFigures {
            loss: loss.map(|loss| messages::Loss { sent: loss.sent, missing: loss.missing, late: loss.late }),
            ..self.message(now, figures)
        };
        // As for the messages.
        let _ = self.figures.try_publish_from(Meta::from_origin(now.tai), message);
        self.write_metrics();
    }

    fn message(&self, now: Now, figures: Option<Figures>) -> messages::KeyFigures {
        let message = messages::KeyFigures {
            time: Some(timestamp(now.tai)),
            topic: self.topic.clone(),
            count: self.window.len() as u32,
            window: self.size as u32,
            ..messages::KeyFigures::default()
        };
        let Some(figures) = figures else {
            return message;
        };
        let stages = self.path.stages().iter().zip(self.path.crossings()).zip(figures.stages);
        let stage = |((stage, is_communication), figures): ((&crate::figures::path::Stage, bool), _)| {
            let crate::figures::window::StageFigures { latency, recent_ms, one_way, clock_error_ms } = figures;
            messages::StageFigures {
                name: stage.name.clone(),
                is_communication,
                latency: Some(statistics(latency)),
                recent_ms,
                one_way: one_way.map(statistics),
                clock_error_ms,
            }
        };
        messages::KeyFigures {
            stages: stages.map(stage).collect(),
            total: Some(statistics(figures.total)),
            total_quantiles_ms: figures.total_quantiles_ms,
            total_recent_ms: figures.total_recent_ms,
            communication_ms: figures.communication_ms,
            clock_offset: figures
                .clock_offset
                .map(|offset| messages::ClockOffset { offset_ms: offset.offset_ms, error_ms: offset.error_ms }),
            ..message
        }
    }

    fn write_metrics(&self) {
        if let (Some(files), Some(latest)) = (&self.files, &self.latest) {
            files.write_metrics(suite::metrics(&self.path, &self.window, latest));
        }
    }
}

fn statistics(of: Statistics) -> messages::Statistics {
    let Statistics { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms } = of;
    messages::Statistics { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms }
}

/// Checks the name of a topic.
fn check_topic(key: &str, name: &str) -> Result<(), SettingError> {
    topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))
}
