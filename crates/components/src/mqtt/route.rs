//! Routes from topics of the bus to MQTT topics.

use std::collections::HashMap;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::JoinHandle;
use viaduct_bus::{Counter, Gauge, Meta, TypeInfo, UntypedSample, UntypedSubscriber, clock};
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::V2xError;
use viaduct_mqtt::QoS;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_units::{Mono, Now};

use super::compression::choice::{Choice, Plan};
use super::compression::{self, Codec, Compressed, Compression, Compressor, Measured};
use super::dialect::DialectSetting;
use super::message::{Message, Target};
use super::native::{self, Property, Sequence};
use super::queue::{self, Admission, Filter, Permit, Permits, QueuePolicy};
use super::receipt::Receipt;
use super::samples::{self, ANNOUNCE_PERIOD};
use super::{answer, check_qos};
use crate::encoding::{EncodeError, Encoder, Encoding};

/// Maximum number of routes of a component.
const ROUTES_MAX: usize = 64;
/// Maximum length of a template, in octets.
const TEMPLATE_OCTETS_MAX: usize = 512;

/// Type of the error reports of stations, which may be published on a response topic.
const V2X_ERROR: &str = "viaduct.its.V2xError";

/// A route from topics of the bus to MQTT topics.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Topic of the bus, or pattern: `*` matches one level, `**` as the last level matches all remaining levels.
    pub from: String,
    /// Patterns of the topics that the route takes, of those that match `from`; at most 64. Default: all.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Patterns of topics that the route does not take; at most 64. They have precedence over `allow`. Default: none.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Rate limit of each topic in Hz, above 0 to 100000. Samples above it are dropped (`rate_limited`). Default: no limit.
    #[serde(default)]
    #[schemars(range(max = 100_000))]
    pub rate_hz: Option<f64>,
    /// Queue between the bus and the connection: `latest`, `keep: N` or `block: N`. Default: all samples go into the outbox at once, whose
    /// limits then apply; the newest 1024 wait on the bus for that, and no more than 32 MiB of the buffers of a pool.
    #[serde(default)]
    pub queue: Option<QueuePolicy>,
    /// MQTT topic with placeholders: `{node}` is the name of the node, `{component}` the name of this component, `{topic}` the topic of
    /// the bus and `{leaf}` its last level. At most 512 octets, without `+`, `#`, NUL, or `$` at the beginning.
    #[serde(default = "default_to")]
    pub to: String,
    /// Quality of service: 0 (at most once), 1 (at least once) or 2 (exactly once).
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    pub qos: u8,
    /// Encoding of the messages.
    #[serde(default)]
    pub encoding: Encoding,
    /// With the encoding `mqtt_client`: each message begins with the time at which it is sent. Default: `false`.
    #[serde(default)]
    pub inject_timestamp: bool,
    /// With the encoding `native` and MQTT 5: compression of the messages.
    #[serde(default)]
    pub compression: Compression,
    /// With `compression: planes` or `auto`: the coordinates x, y and z of point clouds are rounded to multiples of this length in metres,
    /// above 0 to 1. Clouds of rotating lidars remain exact. Default: the compression is lossless.
    #[serde(default)]
    #[schemars(range(max = 1))]
    pub resolution_m: Option<f32>,
    /// JSON dialect of V2X messages.
    #[serde(default)]
    pub dialect: DialectSetting,
    /// Retain flag: the broker keeps the last message of each MQTT topic for late subscribers.
    #[serde(default)]
    pub retain: bool,
}

fn default_to() -> String {
    "{node}/{topic}".to_owned()
}

/// Checks the setting `routes`.
pub(crate) fn check(routes: &[Route]) -> Result<(), SettingError> {
    if routes.len() > ROUTES_MAX {
        return Err(SettingError::new("routes", format!("{} routes; at most {ROUTES_MAX} are allowed", routes.len())));
    }
    for (index, route) in routes.iter().enumerate() {
        let wrong = |key: &str, problem: String| SettingError::new(format!("routes.{index}.{key}"), problem);
        topic::check_pattern(&route.from).map_err(|error| wrong("from", error.to_string()))?;
        check_target(route).map_err(|problem| wrong("to", problem))?;
        check_qos(route.qos).map_err(|problem| wrong("qos", problem))?;
        queue::check_patterns(&route.allow).map_err(|problem| wrong("allow", problem))?;
        queue::check_patterns(&route.deny).map_err(|problem| wrong("deny", problem))?;
        route.rate_hz.map_or(Ok(()), queue::check_rate).map_err(|problem| wrong("rate_hz", problem))?;
        route.queue.map_or(Ok(()), QueuePolicy::check).map_err(|problem| wrong("queue", problem))?;
        check_compression(route).map_err(|(key, problem)| wrong(key, problem))?;
        if route.inject_timestamp && route.encoding != Encoding::MqttClient {
            return Err(wrong("inject_timestamp", "allowed only with `encoding: mqtt_client`".to_owned()));
        }
    }
    Ok(())
}

fn check_compression(route: &Route) -> Result<(), (&'static str, String)> {
    if route.compression != Compression::None && route.encoding != Encoding::Native {
        return Err(("compression", "allowed only with `encoding: native`".to_owned()));
    }
    let Some(resolution_m) = route.resolution_m else { return Ok(()) };
    if !matches!(route.compression, Compression::Planes | Compression::Auto) {
        return Err(("resolution_m", "allowed only with `compression: planes` or `auto`".to_owned()));
    }
    if resolution_m > 0.0 && resolution_m <= 1.0 {
        return Ok(());
    }
    Err(("resolution_m", format!("{resolution_m} is not above 0 and at most 1")))
}

fn check_target(route: &Route) -> Result<(), String> {
    let template = Template::parse(&route.to)?;
    // If only the last level is a wildcard, `{leaf}` distinguishes the topics.
    let leaves = route.from.strip_suffix("/*").is_some_and(topic::is_name) && template.pieces.contains(&Piece::Leaf);
    let many = !topic::is_name(&route.from) && !leaves;
    if many && !template.pieces.contains(&Piece::Topic) {
        return Err(format!("`{}` matches several topics, so `{{topic}}` is required to distinguish them", route.from));
    }
    // The values of placeholders contain no character that MQTT forbids, but the text around them may.
    let example = template.expand("node", "component", "topic");
    if example.starts_with('$') {
        return Err("topics that begin with `$` are reserved for the broker".to_owned());
    }
    viaduct_mqtt::validate_topic_name(&example).map_err(|_| {
        format!("`{example}` is not a topic to publish on: it is empty or contains a wildcard (`+`, `#`) or a NUL")
    })
}

/// Adds the topics that the routes read.
pub(crate) fn edges(routes: &[Route], edges: Edges) -> Edges {
    routes
        .iter()
        .enumerate()
        .fold(edges, |edges, (index, route)| queue::reads(edges, &setting(index), &route.from, route.queue))
}

/// Returns the setting of a route's input.
fn setting(index: usize) -> String {
    format!("routes.{index}.from")
}

/// A text with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Node,
    Component,
    Topic,
    Leaf,
}

impl Template {
    /// Parses a template in which `{topic}` and `{leaf}` are not allowed.
    pub(crate) fn parse_without_topic(text: &str) -> Result<Self, String> {
        let template = Self::parse(text)?;
        match template.pieces.iter().find_map(|piece| match piece {
            Piece::Topic => Some("topic"),
            Piece::Leaf => Some("leaf"),
            _ => None,
        }) {
            Some(name) => Err(format!("unknown placeholder `{{{name}}}`; expected `{{node}}` or `{{component}}`")),
            None => Ok(template),
        }
    }

    /// Returns the pattern of the topics of the bus that the template can create. The placeholders stand for whole levels.
    pub(super) fn pattern(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Node | Piece::Component | Piece::Leaf => "*".to_owned(),
            Piece::Topic => "**".to_owned(),
            Piece::Text(text) => text.clone(),
        };
        self.pieces.iter().map(piece).collect()
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > TEMPLATE_OCTETS_MAX {
            return Err(format!("{} octets; at most {TEMPLATE_OCTETS_MAX} are allowed", text.len()));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a `{` has no `}`")?;
            pieces.push(Piece::text(before)?);
            pieces.push(match name {
                "node" => Piece::Node,
                "component" => Piece::Component,
                "topic" => Piece::Topic,
                "leaf" => Piece::Leaf,
                _ => {
                    return Err(format!(
                        "unknown placeholder `{{{name}}}`; expected `{{node}}`, `{{component}}`, `{{topic}}` or `{{leaf}}`"
                    ));
                }
            });
            rest = after;
        }
        pieces.push(Piece::text(rest)?);
        Ok(Self { pieces })
    }

    /// Replaces the placeholders.
    pub(crate) fn expand(&self, node: &str, component: &str, topic: &str) -> String {
        let text = |piece| match piece {
            &Piece::Node => node,
            &Piece::Component => component,
            &Piece::Topic => topic,
            &Piece::Leaf => topic.rsplit('/').next().unwrap_or(topic),
            Piece::Text(text) => text,
        };
        self.pieces.iter().map(text).collect()
    }
}

impl Piece {
    fn text(text: &str) -> Result<Self, String> {
        if text.contains('}') {
            return Err("a `}` has no `{`".to_owned());
        }
        Ok(Self::Text(text.to_owned()))
    }
}

/// The subscriptions of all routes of a component.
pub(crate) struct Inputs {
    node: String,
    component: String,
    inputs: Vec<Input>,
    /// Index of the route that is polled first, so that a busy route does not starve the others.
    first: usize,
    /// Samples of all routes that a rate limit has dropped, and that count as taken.
    taken: Counter,
    rate_limited: Counter,
    /// Run of this process in the numbers of messages.
    run: u32,
    /// Goodput of the connection in octets per second, if it is known.
    goodput: Option<f64>,
    /// `true` when the samples that wait are taken without further delay.
    is_draining: bool,
    counts: CompressionCounts,
}

/// What users see of compression.
struct CompressionCounts {
    compressed: Counter,
    /// Messages of routes with compression that were sent as they are.
    plain: Counter,
    goodput: Gauge,
    /// Original size by compressed size of the last compressed message.
    ratio: Gauge,
}

struct Input {
    subscriber: UntypedSubscriber,
    filter: Filter,
    permits: Permits,
    /// `true` if the payload of a message is copied, so that it does not hold a buffer of the topic's pool.
    copies: bool,
    route: Route,
    template: Template,
    encoder: Encoder,
    /// Destinations by topic of the bus, with the type whose name is in the content type. The number of topics is limited by the bus.
    targets: HashMap<String, (Arc<TypeInfo>, Arc<Target>)>,
    /// Types that were announced, with the time, by topic of the bus.
    announced: HashMap<String, (Arc<TypeInfo>, Mono)>,
    /// Properties and number of the next message of the native format, by topic of the bus.
    streams: HashMap<String, Stream>,
    /// Choices of `compression: auto`, by topic of the bus.
    choices: HashMap<String, Choice>,
    /// `None` while it is in use.
    compressor: Option<Compressor>,
    /// The sample that is being compressed. The next one follows when it is done, so that the order is kept.
    job: Option<Job>,
}

/// The messages of the native format of one topic.
struct Stream {
    info: Arc<TypeInfo>,
    /// Properties of the type.
    properties: Vec<Property>,
    next: u64,
}

/// A compression on a thread of its own.
struct Job {
    sample: UntypedSample,
    handle: JoinHandle<Done>,
}

/// The result of a compression.
struct Done {
    compressor: Compressor,
    compressed: Option<Compressed>,
    measured: Vec<(Codec, Measured)>,
}

/// A sample and the route that it belongs to.
pub(crate) struct Taken {
    index: usize,
    sample: UntypedSample,
    compressed: Option<Compressed>,
}

impl Input {
    /// Returns how a sample is to be compressed.
    fn plan(&mut self, sample: &UntypedSample, goodput: Option<f64>) -> Plan {
        match self.route.compression {
            Compression::None => Plan::Plain,
            Compression::Zstd => Plan::One(Codec::Zstd),
            Compression::Planes => Plan::PlanesOrZstd,
            Compression::Auto => {
                let choice = self.choices.entry(sample.topic().to_owned()).or_default();
                choice.plan(sample.encoded().len(), goodput, clock::mono())
            }
        }
    }

    /// Begins to compress a sample. Returns it if there is no compressor.
    fn begin(&mut self, sample: UntypedSample, plan: Plan) -> Option<UntypedSample> {
        let resolution_m = self.route.resolution_m;
        let compressor = self.compressor.take().or_else(|| Compressor::new(resolution_m).ok());
        let Some(mut compressor) = compressor else { return Some(sample) };
        let own = sample.clone();
        let handle = tokio::task::spawn_blocking(move || {
            let info = own.type_info();
            let kind = (info.format(), info.full_name());
            let (compressed, measured) = compression::run(&mut compressor, plan, kind, &own.encoded().to_bytes());
            Done { compressor, compressed, measured }
        });
        self.job = Some(Job { sample, handle });
        None
    }

    /// Takes the result of the compression, if there is one.
    fn poll_job(&mut self, context: &mut TaskContext<'_>) -> Poll<Option<(UntypedSample, Option<Compressed>)>> {
        let Some(job) = &mut self.job else { return Poll::Ready(None) };
        let Poll::Ready(ended) = Pin::new(&mut job.handle).poll(context) else { return Poll::Pending };
        let Some(Job { sample, .. }) = self.job.take() else { return Poll::Ready(None) };
        // A compression that has ended in any other way than by its result is no reason to lose the sample.
        let Ok(Done { compressor, compressed, measured }) = ended else { return Poll::Ready(Some((sample, None))) };
        self.compressor = Some(compressor);
        if let Some(choice) = self.choices.get_mut(sample.topic()) {
            choice.observe(sample.encoded().len(), &measured);
        }
        Poll::Ready(Some((sample, compressed)))
    }

    /// Returns the payload of a message. Adds the properties of a compressed one.
    fn payload(
        &mut self,
        taken: &Taken,
        counts: &CompressionCounts,
        properties: &mut Vec<Property>,
    ) -> Result<Bytes, EncodeError> {
        let Taken { sample, compressed, .. } = taken;
        if let Some(Compressed { codec, payload }) = compressed {
            let length = sample.encoded().len();
            properties.extend(native::of_codec(*codec, length));
            counts.compressed.increment();
            counts.ratio.set(length as f64 / payload.len().max(1) as f64);
            return Ok(payload.clone());
        }
        let Self { route, encoder, copies, .. } = self;
        let payload = encoder.encode((route.encoding, route.dialect.dialect()), sample)?;
        if route.compression != Compression::None {
            counts.plain.increment();
        }
        let stamp = if route.inject_timestamp { samples::stamp(sample.type_info(), clock::tai()) } else { None };
        Ok(match stamp {
            Some(stamp) => [stamp, payload].concat().into(),
            None if *copies => Bytes::copy_from_slice(&payload),
            None => payload,
        })
    }

    /// Returns the destination of the messages of a topic.
    fn target(&mut self, sample: &UntypedSample, node: &str, component: &str) -> Arc<Target> {
        let info = sample.type_info();
        if let Some((_, target)) = self.targets.get(sample.topic()).filter(|(known, _)| Arc::ptr_eq(known, info)) {
            return Arc::clone(target);
        }
        let route = &self.route;
        let target = Arc::new(Target {
            topic: self.template.expand(node, component, sample.topic()),
            qos: route.qos(),
            retain: route.retain,
            encoding: route.encoding,
            content_type: route.encoding.content_type(info.full_name()),
        });
        self.targets.insert(sample.topic().to_owned(), (Arc::clone(info), Arc::clone(&target)));
        target
    }

    /// Returns the properties of a message of the native format.
    fn properties(&mut self, sample: &UntypedSample, run: u32) -> Vec<Property> {
        let info = sample.type_info();
        let stream = match self.streams.get_mut(sample.topic()) {
            Some(stream) => stream,
            None => {
                let stream = Stream { info: Arc::clone(info), properties: native::of_type(info), next: 0 };
                self.streams.entry(sample.topic().to_owned()).or_insert(stream)
            }
        };
        if !Arc::ptr_eq(&stream.info, info) {
            (stream.info, stream.properties) = (Arc::clone(info), native::of_type(info));
        }
        let mut properties = stream.properties.clone();
        properties.push(native::of_sequence(Sequence { run, number: stream.next }));
        stream.next += 1;
        properties
    }
}

impl Inputs {
    pub(crate) fn open<C: Component>(routes: Vec<Route>, context: &Context<C>) -> Result<Self, StartError> {
        let open = |(index, route): (usize, Route)| {
            let wrong = |problem| SettingError::new(format!("routes.{index}.to"), problem);
            let resolved = context.input(&setting(index));
            let qos = resolved.map_or_else(|| queue::input(route.queue), |input| input.qos);
            Ok(Input {
                subscriber: context.subscribe_untyped(&route.from, qos)?,
                filter: Filter::new(&route.allow, &route.deny, route.rate_hz),
                permits: Permits::new(route.queue),
                copies: route.queue.is_none() && resolved.is_some_and(|input| input.is_pooled),
                template: Template::parse(&route.to).map_err(wrong)?,
                route,
                encoder: Encoder::default(),
                targets: HashMap::new(),
                announced: HashMap::new(),
                streams: HashMap::new(),
                choices: HashMap::new(),
                compressor: None,
                job: None,
            })
        };
        let inputs = routes.into_iter().enumerate().map(open).collect::<Result<Vec<Input>, StartError>>()?;
        let (node, component) = (context.node().to_owned(), context.name().to_owned());
        let (taken, rate_limited) = (context.counter("taken"), context.counter_for("dropped", "rate_limited"));
        let counts = CompressionCounts {
            compressed: context.counter("compressed"),
            plain: context.counter("not_compressed"),
            goodput: context.gauge("goodput_bytes_per_second"),
            ratio: context.gauge("compression_ratio"),
        };
        // Two runs of a sender differ in the time of their start.
        let run = (clock::tai().nanos() >> 20) as u32;
        let (goodput, is_draining) = (None, false);
        Ok(Self { node, component, inputs, first: 0, taken, rate_limited, run, goodput, is_draining, counts })
    }

    /// Returns the next sample of any route, or `None` if none is waiting.
    pub(crate) fn try_next(&mut self) -> Option<Taken> {
        match self.poll_next(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(taken) => taken,
            Poll::Pending => None,
        }
    }

    /// Waits for the next sample of any route. Returns `None` if the bus is closed. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Taken> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut TaskContext<'_>) -> Poll<Option<Taken>> {
        let mut open = false;
        for index in self.in_turn() {
            match self.poll_input(index, context) {
                Poll::Ready(Some(taken)) => {
                    self.first = index + 1;
                    return Poll::Ready(Some(taken));
                }
                Poll::Ready(None) => {}
                Poll::Pending => open = true,
            }
        }
        // Without a route, wait forever instead of reporting the end.
        if open || self.inputs.is_empty() { Poll::Pending } else { Poll::Ready(None) }
    }

    fn poll_input(&mut self, index: usize, context: &mut TaskContext<'_>) -> Poll<Option<Taken>> {
        loop {
            if self.is_draining
                && let Some(job) = self.inputs[index].job.take()
            {
                // There is no time for the result.
                return Poll::Ready(Some(Taken { index, sample: job.sample, compressed: None }));
            }
            match self.inputs[index].poll_job(context) {
                Poll::Ready(Some((sample, compressed))) => {
                    return Poll::Ready(Some(Taken { index, sample, compressed }));
                }
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
            // A message that leaves the outbox ends the wait, because the caller handles it.
            if !self.inputs[index].permits.has_room() {
                return Poll::Pending;
            }
            // The future may be dropped after a poll: the subscription keeps the waker.
            let polled = pin!(self.inputs[index].subscriber.recv()).poll(context);
            let sample = match polled {
                Poll::Ready(Some(sample)) if self.admits(index, &sample) => sample,
                Poll::Ready(Some(_)) => continue,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            let goodput = self.goodput;
            let input = &mut self.inputs[index];
            let plan = if self.is_draining { Plan::Plain } else { input.plan(&sample, goodput) };
            let sample = if plan == Plan::Plain { Some(sample) } else { input.begin(sample, plan) };
            if let Some(sample) = sample {
                return Poll::Ready(Some(Taken { index, sample, compressed: None }));
            }
        }
    }

    /// Returns `true` if a route compresses by the goodput of the connection.
    pub(crate) fn wants_goodput(&self) -> bool {
        self.inputs.iter().any(|input| input.route.compression == Compression::Auto)
    }

    /// Takes the goodput of the connection in octets per second; `None` if it is not known.
    pub(crate) fn set_goodput(&mut self, goodput: Option<f64>) {
        self.goodput = goodput;
        self.counts.goodput.set(goodput.unwrap_or(f64::NAN));
    }

    /// Returns `true` if a route takes a sample. Counts a sample that its rate limit drops.
    fn admits(&mut self, index: usize, sample: &UntypedSample) -> bool {
        let admission = self.inputs[index].filter.admit(sample.topic(), clock::mono);
        if admission == Admission::RateLimited {
            self.taken.increment();
            self.rate_limited.increment();
        }
        admission == Admission::Admitted
    }

    /// Lifts the limits of the queues, so that the samples that wait can be taken.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
        for input in &mut self.inputs {
            input.permits.lift();
        }
    }

    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.inputs.len());
        (0..count).map(move |offset| (first + offset) % count)
    }

    /// Returns the quality of service of a sample's route.
    pub(crate) fn qos(&self, taken: &Taken) -> QoS {
        self.inputs[taken.index].route.qos()
    }

    /// Forgets which types were announced, because a connection is new.
    pub(crate) fn connected(&mut self) {
        for input in &mut self.inputs {
            input.announced.clear();
        }
    }

    /// Returns the message that announces the type of a sample, or `None` if none is due or the route's encoding has none.
    pub(crate) fn announcement(&self, taken: &Taken, now: Now) -> Option<Message> {
        let Self { node, component, inputs, .. } = self;
        let Input { route, template, announced, .. } = &inputs[taken.index];
        let format = route.encoding.sample_format()?;
        let (topic, info) = (taken.sample.topic(), taken.sample.type_info());
        let is_due =
            |(known, at): &(Arc<TypeInfo>, Mono)| !known.is_same(info) || now.mono.since(*at) >= ANNOUNCE_PERIOD;
        if !announced.get(topic).is_none_or(is_due) {
            return None;
        }
        let payload = format.write_type(info, route.inject_timestamp)?;
        let target = Arc::new(Target {
            topic: format.type_topic(&template.expand(node, component, topic)),
            qos: route.qos(),
            retain: true,
            encoding: route.encoding,
            content_type: route.encoding.content_type(""),
        });
        Some(Message {
            target,
            payload,
            meta: Meta::from_origin(now.tai),
            correlation: Bytes::new(),
            properties: Vec::new(),
            key: None,
            permit: Permit::default(),
            receipt: Receipt::default(),
        })
    }

    /// Records that the type of a sample was announced.
    pub(crate) fn announced(&mut self, taken: &Taken, now: Now) {
        let (topic, info) = (taken.sample.topic().to_owned(), Arc::clone(taken.sample.type_info()));
        self.inputs[taken.index].announced.insert(topic, (info, now.mono));
    }

    /// Encodes a sample as configured by its route.
    pub(crate) fn message(&mut self, taken: &Taken) -> Result<Message, EncodeError> {
        let Self { node, component, inputs, counts, run, .. } = self;
        let (sample, input) = (&taken.sample, &mut inputs[taken.index]);
        let (meta, permit) = (sample.meta(), input.permits.take());
        if let Some((topic, correlation)) = answer_of(sample, node, component) {
            // The application expects JSON, whatever the encoding of the route is.
            let payload = input.encoder.encode((Encoding::Json, input.route.dialect.dialect()), sample)?;
            let target = Arc::new(Target::json(topic, input.route.qos()));
            return Ok(Message {
                target,
                payload,
                meta,
                correlation,
                properties: Vec::new(),
                key: None,
                permit,
                receipt: Receipt::default(),
            });
        }
        let mut properties =
            if input.route.encoding == Encoding::Native { input.properties(sample, *run) } else { Vec::new() };
        let payload = input.payload(taken, counts, &mut properties)?;
        let target = input.target(sample, node, component);
        Ok(Message {
            target,
            payload,
            meta,
            correlation: Bytes::new(),
            properties,
            key: None,
            permit,
            receipt: Receipt::default(),
        })
    }
}

/// Returns response topic and correlation data of the request that an error report is about. Returns `None` for any
/// other sample, for a request of another component, and for a request without a response topic.
fn answer_of(sample: &UntypedSample, node: &str, component: &str) -> Option<(String, Bytes)> {
    if !sample.type_info().is_protobuf(V2X_ERROR) {
        return None;
    }
    let reply = sample.typed::<V2xError>().ok()?.reply_to.clone()?;
    let ours = reply.component.split_once('/') == Some((node, component));
    (ours && answer::is_topic(&reply.topic)).then_some((reply.topic, reply.correlation))
}

impl Route {
    fn qos(&self) -> QoS {
        QoS::from(self.qos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(from: &str, to: &str) -> Route {
        let (encoding, dialect) = (Encoding::Json, DialectSetting::Viaduct);
        Route {
            from: from.into(),
            allow: Vec::new(),
            deny: Vec::new(),
            rate_hz: None,
            queue: None,
            to: to.into(),
            qos: 0,
            encoding,
            compression: Compression::None,
            resolution_m: None,
            dialect,
            retain: false,
            inject_timestamp: false,
        }
    }

    #[test]
    fn a_template_is_expanded() {
        let template = Template::parse("v/{node}/{component}/{topic}/x").unwrap();
        assert_eq!(template.expand("car", "uplink", "its/rx/cam"), "v/car/uplink/its/rx/cam/x");
        assert_eq!(Template::parse("vanetza/out/{leaf}").unwrap().expand("a", "b", "its/rx/cam"), "vanetza/out/cam");
        assert_eq!(Template::parse("fixed").unwrap().expand("a", "b", "c"), "fixed");
    }

    #[test]
    fn invalid_routes_are_rejected_with_the_key() {
        let long = "x".repeat(513);
        for (from, to, expected) in [
            ("its/r*", "{topic}", "`routes.0.from`: `its/r*` is not a topic name"),
            ("a", "v/{vehicle}", "`routes.0.to`: unknown placeholder `{vehicle}`"),
            ("a", "v/{topic", "`routes.0.to`: a `{` has no `}`"),
            ("a", "v/topic}", "`routes.0.to`: a `}` has no `{`"),
            ("a", "v/+/{topic}", "`routes.0.to`: `v/+/topic` is not a topic to publish on"),
            ("a", "v/#", "`routes.0.to`: `v/#` is not a topic to publish on"),
            ("a", "v\0", "`routes.0.to`: `v\0` is not a topic to publish on"),
            ("a", "", "`routes.0.to`: `` is not a topic to publish on"),
            ("a", "$SYS/x", "`routes.0.to`: topics that begin with `$` are reserved"),
            ("its/**", "{leaf}", "`routes.0.to`: `its/**` matches several topics"),
            ("its/*", "v", "`routes.0.to`: `its/*` matches several topics"),
            ("a", &long, "`routes.0.to`: 513 octets; at most 512"),
        ] {
            let error = check(&[route(from, to)]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let qos = Route { qos: 3, ..route("a", "b") };
        assert_eq!(check(&[route("a", "b"), qos]).unwrap_err().to_string(), "`routes.1.qos`: 3 is not 0, 1 or 2");
        for (wrong, expected) in [
            (Route { queue: Some(QueuePolicy::Keep(0)), ..route("a", "b") }, "`routes.0.queue`: 0 is not within 1 to"),
            (Route { rate_hz: Some(0.0), ..route("a", "b") }, "`routes.0.rate_hz`: 0 is not above 0"),
            (Route { allow: vec!["a/+".into()], ..route("a", "b") }, "`routes.0.allow`: `a/+` is not a topic name"),
            (
                Route { compression: Compression::Zstd, ..route("a", "b") },
                "`routes.0.compression`: allowed only with `encoding: native`",
            ),
            (Route { resolution_m: Some(0.1), ..route("a", "b") }, "`routes.0.resolution_m`: allowed only with"),
            (
                Route {
                    compression: Compression::Auto,
                    encoding: Encoding::Native,
                    resolution_m: Some(f32::NAN),
                    ..route("a", "b")
                },
                "`routes.0.resolution_m`: NaN is not above 0",
            ),
            (Route { deny: vec!["".into()], ..route("a", "b") }, "`routes.0.deny`: `` is not a topic name"),
        ] {
            let error = check(&[wrong]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(check(&[route("its/rx/*", "v/{node}/{topic}"), route("its/rx/*", "vanetza/out/{leaf}")]).is_ok());
        let many = vec![route("a", "b"); 65];
        assert_eq!(check(&many).unwrap_err().to_string(), "`routes`: 65 routes; at most 64 are allowed");
    }
}
