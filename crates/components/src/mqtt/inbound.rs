//! Inbound routes: messages that applications publish on a broker become messages of the bus.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, HopName, Meta, Publisher, Qos};
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_its::facilities::MessageKind;
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::{ReplyTo, V2xSendRequest};
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{Properties, QoS};
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_units::Now;
use viaduct_v2x_json::dialect::Dialect;

use super::answer::{self, Refusal, ReplyAddress};
use super::dialect::DialectSetting;
use super::hops::{self, Arrived};
use super::message::{Message, Target};
use super::native::Header;
use super::queue::{PATTERNS_MAX, Permit};
use super::receipt::Receipt;
use super::route::Template;
use super::samples::{Destination, Received, SampleOutput};
use super::typed::{InboundType, Sink};
use super::{check_qos, subscription};
use crate::encoding::Encoding;
use crate::v2x::request;
use viaduct_units::RateLimiter;

/// Longest topic level in an answer, in characters.
const LEVEL_CHARACTERS_MAX: usize = 64;
/// Maximum number of inbound routes of a component.
const ROUTES_MAX: usize = 16;
/// Maximum number of answers of one route per second. The next answer includes the number of rejections that were not
/// answered.
const ANSWERS_PER_SECOND_MAX: u32 = 50;
/// Maximum length of a text in octets: many times the longest V2X message. A text is parsed on the task that serves the connection.
const TEXT_OCTETS_MAX: usize = 64 * 1024;
/// Maximum lead of the publisher's clock over the clock of this node.
const AHEAD_MAX: std::time::Duration = std::time::Duration::from_secs(2);
/// Quality of service of the topics of the bus: a full queue rejects the message at once, so that it does not block the broker.
const OFFERED: Qos = Qos::reliable(1024, std::time::Duration::ZERO);

/// A route from MQTT topics to a topic of the bus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundRouteSettings {
    /// MQTT topic filter (`+` and `#` are wildcards) with the placeholders `{node}`, the name of the node, and `{component}`, the name
    /// of this component. The messages are JSON texts as selected by `type`. No topic may match the filters of two routes.
    pub from: String,
    /// MQTT topic filters of the topics that the route takes, of those that match `from`; at most 64. Others are refused (`denied`).
    /// Default: all.
    #[serde(default)]
    pub allow: Vec<String>,
    /// MQTT topic filters of topics that the route refuses (`denied`); at most 64. They have precedence over `allow`. Default: none.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Topic of the bus: the topic of a station's send requests or of an input of its services, or any topic for samples. For samples, a
    /// level may be a placeholder: `{node}`, `{component}`, `{leaf}` is the last level of the MQTT topic, and `{topic}` is the MQTT topic
    /// (only as the last level). A route creates at most 64 topics; messages of others are refused (`too_many_topics`), as are those whose
    /// names the bus does not allow (`invalid_topic`).
    pub to: String,
    /// Encoding of the messages. With `json`, they are requests of applications or messages of the type that `type` names. With `primitive`,
    /// they are plain texts of a type of std_msgs. With `native` and `mqtt_client`, they are samples of any type, which the sender
    /// announces on another topic.
    #[serde(default)]
    pub encoding: Encoding,
    /// Content of the text. Types other than V2X messages have the field names of their schema (`latitude_deg`).
    #[serde(default)]
    pub r#type: InboundType,
    /// File with the definition of a type of ROS and of all types that it uses, in the format of `gendeps --cat`. Default: the definition
    /// of a common type.
    #[serde(default)]
    pub definition_file: Option<PathBuf>,
    /// Quality of service of the answers, and of the subscription of a bridge: 0 (at most once), 1 (at least once) or 2 (exactly once).
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    pub qos: u8,
    /// JSON dialect of V2X messages.
    #[serde(default)]
    pub dialect: DialectSetting,
    /// Type of the V2X message: `cam`, `cpm`, and so on. Absent: the last level of the topic if it is one of these, otherwise the type
    /// in the message itself.
    #[serde(default)]
    pub message: Option<String>,
    /// MQTT topic for answers to invalid or rejected messages, with the same placeholders as `from`. A response topic of the request
    /// (MQTT 5) has precedence. Absent: `from` up to its first wildcard, with its last level replaced by `error`: `v/error` for
    /// `v/in/+`.
    #[serde(default)]
    pub errors: Option<String>,
}

/// Checks the setting `inbound`.
pub(crate) fn check(routes: &[InboundRouteSettings]) -> Result<(), SettingError> {
    if routes.len() > ROUTES_MAX {
        return Err(SettingError::new("inbound", format!("{} routes; at most {ROUTES_MAX} are allowed", routes.len())));
    }
    for (index, route) in routes.iter().enumerate() {
        let wrong = |key: &str, problem: String| SettingError::new(format!("inbound.{index}.{key}"), problem);
        check_to(route).map_err(|problem| wrong("to", problem))?;
        check_filters(&route.allow).map_err(|problem| wrong("allow", problem))?;
        check_filters(&route.deny).map_err(|problem| wrong("deny", problem))?;
        check_qos(route.qos).map_err(|problem| wrong("qos", problem))?;
        check_encoding(route).map_err(|(key, problem)| wrong(key, problem))?;
        kind(route).map_err(|problem| wrong("message", problem))?;
        check_dialect(route).map_err(|(key, problem)| wrong(key, problem))?;
        let filter = filter(route, "node", "component").map_err(|problem| wrong("from", problem))?;
        let errors = errors(route, &filter, "node", "component").map_err(|problem| wrong("errors", problem))?;
        let filters = routes.iter().filter_map(|other| self::filter(other, "node", "component").ok());
        let is_answered = route.encoding.sample_format().is_none();
        let own = filters.into_iter().find(|filter| viaduct_mqtt::topic_matches_filter(&errors, filter));
        if let Some(own) = own.filter(|_| is_answered) {
            return Err(wrong(
                "errors",
                format!("`{errors}` matches the filter `{own}`, so answers would be received as requests"),
            ));
        }
    }
    check_overlaps(&routes.iter().filter_map(|route| filters(route, "node", "component").ok()).collect::<Vec<_>>())
}

fn check_to(route: &InboundRouteSettings) -> Result<(), String> {
    if route.to.contains(['{', '}']) {
        return match route.encoding.sample_format() {
            Some(_) => Destination::parse(&route.to, "node", "component").map(|_| ()),
            None => Err("placeholders are allowed only with `encoding: native` or `encoding: mqtt_client`".to_owned()),
        };
    }
    topic::check_name(&route.to).map_err(|error| error.to_string())
}

fn check_filters(filters: &[String]) -> Result<(), String> {
    if filters.len() > PATTERNS_MAX {
        return Err(format!("{} filters; at most {PATTERNS_MAX} are allowed", filters.len()));
    }
    match filters.iter().find(|filter| viaduct_mqtt::validate_topic_filter(filter).is_err()) {
        Some(filter) => Err(format!("`{filter}` is not an MQTT topic filter")),
        None => Ok(()),
    }
}

/// Returns the filters of a route: that of its messages, and that of their types if they need one.
fn filters(route: &InboundRouteSettings, node: &str, component: &str) -> Result<Vec<String>, String> {
    let messages = filter(route, node, component)?;
    let types = route.encoding.sample_format().map(|format| format.type_topic(&messages));
    Ok([Some(messages), types].into_iter().flatten().collect())
}

/// Checks that settings for requests are not used with samples.
fn check_encoding(route: &InboundRouteSettings) -> Result<(), (&'static str, String)> {
    if route.encoding == Encoding::Protobuf {
        return Err(("encoding", "expected `json`, `primitive`, `native` or `mqtt_client`".to_owned()));
    }
    if matches!(route.encoding, Encoding::Json | Encoding::Primitive) {
        let definition = if route.definition_file.is_some() { Ok(()) } else { Err("set `definition_file`") };
        route.r#type.check(route.encoding, definition).map_err(|problem| ("type", problem))?;
    }
    if route.definition_file.is_some() && !(route.r#type.is_ros() && route.encoding == Encoding::Json) {
        return Err(("definition_file", "allowed only with a type of ROS and `encoding: json`".to_owned()));
    }
    if route.encoding == Encoding::Primitive {
        return Ok(());
    }
    let unused = [
        ("type", route.r#type != InboundType::V2xMessage),
        ("dialect", route.dialect != DialectSetting::Viaduct),
        ("message", route.message.is_some()),
        ("errors", route.errors.is_some()),
    ];
    match unused.into_iter().find(|(_, is_set)| *is_set && route.encoding != Encoding::Json) {
        Some((key, _)) => Err((key, "allowed only with `encoding: json`".to_owned())),
        None => Ok(()),
    }
}

/// Checks that settings for V2X messages are not used with another type.
fn check_dialect(route: &InboundRouteSettings) -> Result<(), (&'static str, String)> {
    let problem = || "allowed only with `type: v2x_message`".to_owned();
    if route.r#type == InboundType::V2xMessage {
        return Ok(());
    }
    if route.message.is_some() {
        return Err(("message", problem()));
    }
    if route.dialect == DialectSetting::Viaduct { Ok(()) } else { Err(("dialect", problem())) }
}

/// Checks that no topic matches the filters of two routes.
fn check_overlaps(routes: &[Vec<String>]) -> Result<(), SettingError> {
    for (index, filters) in routes.iter().enumerate() {
        let overlap = |filter: &String, other: &Vec<String>| other.iter().any(|one| subscription::overlap(one, filter));
        let before = |filter: &String| routes.iter().take(index).position(|other| overlap(filter, other));
        if let Some((filter, before)) = filters.iter().find_map(|filter| Some((filter, before(filter)?))) {
            let problem = format!("`{filter}` and the `from` of `inbound.{before}` match the same topics");
            return Err(SettingError::new(format!("inbound.{index}.from"), problem));
        }
    }
    Ok(())
}

fn kind(route: &InboundRouteSettings) -> Result<Option<MessageKind>, String> {
    let Some(label) = &route.message else {
        return Ok(None);
    };
    MessageKind::from_label(label).map(Some).ok_or_else(|| {
        let known: Vec<&str> = MessageKind::ALL.iter().map(|kind| kind.label()).collect();
        format!("unknown message `{label}`; expected one of {}", known.join(", "))
    })
}

fn filter(route: &InboundRouteSettings, node: &str, component: &str) -> Result<String, String> {
    let filter = Template::parse_without_topic(&route.from)?.expand(node, component, "");
    viaduct_mqtt::validate_topic_filter(&filter).map_err(|_| format!("`{filter}` is not an MQTT topic filter"))?;
    if filter.starts_with("$share/") {
        return Err(format!("`{filter}` is a shared subscription, which would not receive every request"));
    }
    Ok(filter)
}

fn errors(route: &InboundRouteSettings, filter: &str, node: &str, component: &str) -> Result<String, String> {
    let errors = match &route.errors {
        Some(template) => Template::parse_without_topic(template)?.expand(node, component, ""),
        None => default_errors(filter),
    };
    if answer::is_topic(&errors) { Ok(errors) } else { Err(format!("`{errors}` is not a topic to publish on")) }
}

/// Returns `v/error` for `v/in/+` and for `v/denm`.
fn default_errors(filter: &str) -> String {
    let mut levels: Vec<&str> = filter.split('/').take_while(|level| !matches!(*level, "+" | "#")).collect();
    levels.pop();
    levels.push("error");
    levels.join("/")
}

/// Adds the topics that the routes publish.
pub(crate) fn edges(routes: &[InboundRouteSettings], edges: Edges) -> Edges {
    routes.iter().enumerate().fold(edges, |edges, (index, route)| {
        let setting = format!("inbound.{index}.to");
        match route.encoding.sample_format() {
            Some(_) => {
                let to = Destination::parse(&route.to, "node", "component");
                edges.publishes_untyped(&setting, &to.map_or_else(|_| route.to.clone(), |to| to.pattern()), OFFERED)
            }
            None => route.r#type.publishes(edges, &setting, &route.to, OFFERED),
        }
    })
}

/// The inbound routes of a component. Messages received = requested + refused by reason + unrouted.
pub(crate) struct Inbound {
    routes: Vec<InboundRoute>,
    /// `node/component`, which routes answers of a station back to this component.
    component: String,
    /// Name of this component in stamps.
    hop: HopName,
    counts: Counts,
}

/// The filter of a subscription.
pub(crate) struct Filter<'a> {
    pub(crate) text: &'a str,
    pub(crate) qos: QoS,
    /// `true` if retained messages are wanted.
    pub(crate) retained: bool,
}

struct InboundRoute {
    filter: String,
    /// Filter of the type topics, if messages need a type.
    types: Option<String>,
    qos: QoS,
    allow: Vec<String>,
    deny: Vec<String>,
    dialect: Dialect,
    kind: Option<MessageKind>,
    output: Output,
    errors: Arc<Target>,
    /// Rate limit of answers. The lock is held only to count, because the clients of a broker are served concurrently.
    answers: Mutex<RateLimiter>,
}

/// A message that an application has published.
pub(crate) struct Request<'a> {
    topic: &'a str,
    text: &'a Bytes,
    reply_address: ReplyAddress,
    /// Hop metadata of the message, if it has any.
    hops: Option<Arrived>,
    /// Properties of MQTT 5.
    properties: &'a Properties,
    /// `true` if the broker has kept the message from a time before the subscription.
    is_retained: bool,
}

impl<'a> From<&'a PublishPacket> for Request<'a> {
    fn from(packet: &'a PublishPacket) -> Self {
        let hops = hops::of(|name| packet.properties.get_user_property_value(name)).and_then(Result::ok);
        Self {
            topic: &packet.topic_name,
            text: &packet.payload,
            reply_address: ReplyAddress::of(packet),
            hops,
            properties: &packet.properties,
            is_retained: packet.retain,
        }
    }
}

/// Destination of a route.
enum Output {
    /// The send requests of a station.
    Requests(Publisher<V2xSendRequest>),
    /// An input of the services.
    Services(Sink),
    /// A topic of any type.
    Samples(Box<SampleOutput>),
}

impl Output {
    fn open<C: Component>(
        (index, route): (usize, &InboundRouteSettings),
        bytes_max: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        if let Some(format) = route.encoding.sample_format() {
            let to = Destination::parse(&route.to, context.node(), context.name())
                .map_err(|problem| SettingError::new(format!("inbound.{index}.to"), problem))?;
            return Ok(Self::Samples(Box::new(SampleOutput::new(format, to, OFFERED, bytes_max, context))));
        }
        let opened =
            route.r#type.open((&route.to, OFFERED), route.encoding, route.definition_file.as_deref(), context)?;
        Ok(match opened {
            Some(sink) => Self::Services(sink),
            None => Self::Requests(context.publisher(&route.to, OFFERED)?),
        })
    }
}

struct Counts {
    received: Counter,
    requested: Counter,
    /// Messages that match no route.
    unrouted: Counter,
    unanswered: Counter,
    refused: [(&'static str, Counter); REASONS.len()],
}

/// The labels of [`Refusal`], and [`OUTDATED`].
const REASONS: [&str; 19] = [
    "syntax",
    "missing",
    "unknown_member",
    "wrong_value",
    "unknown_topic",
    "too_long",
    "station_busy",
    "unknown_type",
    "malformed_type",
    "malformed_message",
    "other_type",
    "queue_full",
    "malformed_property",
    "unknown_codec",
    "malformed_compression",
    "invalid_topic",
    "too_many_topics",
    "denied",
    OUTDATED,
];

/// Label of retained requests. With MQTT 3.1.1, a client cannot exclude them when it subscribes.
const OUTDATED: &str = "outdated";

impl Inbound {
    /// Opens the routes. `bytes_max` is the length of the longest sample after it was decompressed.
    pub(crate) fn open<C: Component>(
        routes: &[InboundRouteSettings],
        bytes_max: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let routes = routes.iter().enumerate().map(|route| InboundRoute::open(route, bytes_max, context));
        let routes = routes.collect::<Result<Vec<_>, _>>()?;
        // Checked again with the real names of the node and the component in the filters.
        check_overlaps(&routes.iter().map(InboundRoute::filters).collect::<Vec<_>>())?;
        Ok(Self {
            routes,
            component: format!("{}/{}", context.node(), context.name()),
            hop: HopName::new(context.name()),
            counts: Counts {
                received: context.counter("received"),
                requested: context.counter("requested"),
                unrouted: context.counter("unrouted"),
                unanswered: context.counter("unanswered"),
                refused: REASONS.map(|reason| (reason, context.counter_for("refused", reason))),
            },
        })
    }

    /// Returns the filters of the routes. Those of types come first, so that a type arrives before its messages.
    pub(crate) fn filters(&self) -> impl Iterator<Item = Filter<'_>> {
        let types = self.routes.iter().filter_map(|route| {
            let text = route.types.as_deref()?;
            Some(Filter { text, qos: route.qos, retained: true })
        });
        let messages = self.routes.iter().map(|route| Filter {
            text: &route.filter,
            qos: route.qos,
            retained: route.takes_retained(),
        });
        types.chain(messages)
    }

    /// Returns `true` if a route matches the topic.
    pub(crate) fn matches(&self, topic: &str) -> bool {
        self.routes.iter().any(|route| route.matches(topic))
    }

    /// Counts an answer that could not be sent.
    pub(crate) fn count_unanswered(&self) {
        self.counts.unanswered.increment();
    }

    /// Handles a message: publishes it on the bus, or returns the answer to its publisher.
    pub(crate) fn take<'a>(&self, request: impl Into<Request<'a>>, now: Now) -> Option<Message> {
        let request = request.into();
        self.counts.received.increment();
        let Some(route) = self.routes.iter().find(|route| route.matches(request.topic)) else {
            self.counts.unrouted.increment();
            return None;
        };
        if request.is_retained && !route.takes_retained() {
            self.counts.refuse(OUTDATED);
            return None;
        }
        // An answer on a topic of an inbound route would be received as a request.
        let mut request = request;
        if self.matches(&request.reply_address.topic) {
            request.reply_address.topic.clear();
        }
        match self.take_by(route, &request, now) {
            Ok(()) => {
                self.counts.requested.increment();
                None
            }
            Err(refusal) => {
                self.counts.refuse(refusal.label());
                if matches!(route.output, Output::Samples(_)) || matches!(refusal, Refusal::Denied) {
                    tracing::debug!(topic = request.topic, error = %refusal, "MQTT message refused");
                    return None;
                }
                let answer = route.answer(&refusal, request, now);
                if answer.is_none() {
                    self.counts.unanswered.increment();
                }
                answer
            }
        }
    }

    /// Counts a message that is longer than a packet may be.
    pub(crate) fn refuse_long(&self) {
        self.counts.received.increment();
        self.counts.refuse("too_long");
    }

    fn take_by(&self, route: &InboundRoute, request: &Request<'_>, now: Now) -> Result<(), Refusal> {
        if !route.allows(request.topic) {
            return Err(Refusal::Denied);
        }
        // Hop metadata with an origin in the future is ignored.
        let hops = request.hops.filter(|hops| hops.meta.origin.since(now.tai) <= AHEAD_MAX);
        let meta = hops.map_or_else(|| Meta::from_origin(now.tai), |hops| hops.received(self.hop, now.tai));
        if let Output::Samples(output) = &route.output {
            let header = Header::read(request.properties)?;
            return output.take(Received { topic: request.topic, payload: request.text, meta: &meta, header: &header });
        }
        if request.text.len() > TEXT_OCTETS_MAX {
            return Err(Refusal::TooLong { octets: request.text.len(), max: TEXT_OCTETS_MAX });
        }
        let reply_to = ReplyTo {
            component: self.component.clone(),
            request_topic: request.topic.to_owned(),
            topic: request.reply_address.topic.clone(),
            correlation: request.reply_address.correlation.clone(),
        };
        route.take(request, &meta, reply_to)
    }
}

impl InboundRoute {
    fn open<C: Component>(
        (index, route): (usize, &InboundRouteSettings),
        bytes_max: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let wrong = |key: &str, problem| SettingError::new(format!("inbound.{index}.{key}"), problem);
        let (node, component) = (context.node(), context.name());
        let filter = filter(route, node, component).map_err(|problem| wrong("from", problem))?;
        let errors = errors(route, &filter, node, component).map_err(|problem| wrong("errors", problem))?;
        let qos = QoS::from(route.qos);
        Ok(Self {
            qos,
            dialect: route.dialect.dialect(),
            kind: kind(route).map_err(|problem| wrong("message", problem))?,
            types: route.encoding.sample_format().map(|format| format.type_topic(&filter)),
            output: Output::open((index, route), bytes_max, context)?,
            allow: route.allow.clone(),
            deny: route.deny.clone(),
            filter,
            errors: Arc::new(Target::json(errors, qos)),
            answers: Mutex::new(RateLimiter::new(ANSWERS_PER_SECOND_MAX)),
        })
    }

    /// Returns `true` if the lists of the route admit a topic, or the topic of a type topic.
    fn allows(&self, topic: &str) -> bool {
        let topic = match &self.output {
            Output::Samples(output) => output.topic_of(topic),
            _ => topic,
        };
        let any = |filters: &[String]| filters.iter().any(|filter| viaduct_mqtt::topic_matches_filter(topic, filter));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }

    /// Returns `true` if messages that the broker has kept are of use. Requests of applications are outdated.
    const fn takes_retained(&self) -> bool {
        matches!(self.output, Output::Samples(_))
    }

    fn filters(&self) -> Vec<String> {
        [Some(&self.filter), self.types.as_ref()].into_iter().flatten().cloned().collect()
    }

    fn matches(&self, topic: &str) -> bool {
        let filters = [Some(&self.filter), self.types.as_ref()];
        filters.into_iter().flatten().any(|filter| viaduct_mqtt::topic_matches_filter(topic, filter))
    }

    fn take(&self, request: &Request<'_>, meta: &Meta, reply_to: ReplyTo) -> Result<(), Refusal> {
        match &self.output {
            // They are taken above.
            Output::Samples(_) => Ok(()),
            Output::Services(sink) => sink(request.text, meta, reply_to),
            Output::Requests(publisher) => {
                let request = V2xSendRequest { reply_to: Some(reply_to), ..self.read(request)? };
                Ok(publisher.try_publish_from(meta, request)?)
            }
        }
    }

    fn read(&self, request: &Request<'_>) -> Result<V2xSendRequest, Refusal> {
        let level = request.topic.rsplit('/').next().unwrap_or_default();
        let kind = self.kind.or_else(|| MessageKind::from_label(level));
        match self.dialect.read_request(kind, request.text) {
            Ok(send_request) => Ok(request::to_bus(&send_request)),
            // Neither the text nor the topic contains the type, and the topic should.
            Err(error) if kind.is_none() && is_without_type(&error) && self.topics_name_the_type() => {
                Err(Refusal::UnknownTopic { level: level.chars().take(LEVEL_CHARACTERS_MAX).collect() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `true` if the last level of the topics is a wildcard, which stands for the type of the message.
    fn topics_name_the_type(&self) -> bool {
        self.filter.ends_with(['+', '#'])
    }

    fn answer(&self, refusal: &Refusal, request: Request<'_>, now: Now) -> Option<Message> {
        let count = self.answers.lock().unwrap_or_else(PoisonError::into_inner).admit(now.mono)?;
        let ReplyAddress { topic, correlation } = request.reply_address;
        let target = if topic.is_empty() { Arc::clone(&self.errors) } else { Arc::new(Target::json(topic, self.qos)) };
        let payload = answer::write(refusal, request.topic, now.tai, count);
        Some(Message {
            target,
            payload,
            meta: Meta::from_origin(now.tai),
            correlation,
            properties: Vec::new(),
            key: None,
            permit: Permit::default(),
            receipt: Receipt::default(),
        })
    }
}

/// Returns `true` if the text is rejected because its message type is unknown.
fn is_without_type(error: &JsonError) -> bool {
    error.path == "header.messageId" && error.problem == JsonProblem::Missing
}

impl Counts {
    fn refuse(&self, label: &str) {
        if let Some((_, counter)) = self.refused.iter().find(|(reason, _)| *reason == label) {
            counter.increment();
        }
    }
}

#[cfg(test)]
mod tests {
    use viaduct_bus::PublishError;

    use super::*;

    fn route(from: &str, errors: Option<&str>) -> InboundRouteSettings {
        InboundRouteSettings {
            from: from.into(),
            allow: Vec::new(),
            deny: Vec::new(),
            to: "its/send".into(),
            encoding: Encoding::Json,
            r#type: InboundType::V2xMessage,
            definition_file: None,
            qos: 1,
            dialect: DialectSetting::Viaduct,
            message: None,
            errors: errors.map(Into::into),
        }
    }

    #[test]
    fn the_default_error_topic_is_next_to_the_requests() {
        for (filter, expected) in
            [("vanetza/in/+", "vanetza/error"), ("v/car/denm", "v/car/error"), ("#", "error"), ("in/#", "error")]
        {
            assert_eq!(default_errors(filter), expected);
        }
    }

    #[test]
    fn invalid_routes_are_rejected_with_the_key() {
        for (wrong, expected) in [
            (route("v/#/x", None), "`inbound.0.from`: `v/#/x` is not an MQTT topic filter"),
            (route("$share/g/v/+", None), "`inbound.0.from`: `$share/g/v/+` is a shared subscription"),
            (route("v/{topic}", None), "`inbound.0.from`: unknown placeholder `{topic}`"),
            (route("#", None), "`inbound.0.errors`: `error` matches the filter `#`"),
            (route("v/{node}/+", Some("v/{node}/error")), "`inbound.0.errors`: `v/node/error` matches the filter"),
            (route("v/in/+", Some("v/+")), "`inbound.0.errors`: `v/+` is not a topic to publish on"),
            (InboundRouteSettings { qos: 3, ..route("v/in/+", None) }, "`inbound.0.qos`: 3 is not 0, 1 or 2"),
            (
                InboundRouteSettings { to: "its/*".into(), ..route("v/in/+", None) },
                "`inbound.0.to`: `its/*` is not a topic name",
            ),
            (
                InboundRouteSettings { to: "v/{topic}".into(), ..route("v/in/+", None) },
                "`inbound.0.to`: placeholders are allowed only with `encoding: native` or",
            ),
            (
                InboundRouteSettings { message: Some("cat".into()), ..route("v/in/+", None) },
                "`inbound.0.message`: unknown message `cat`",
            ),
            (
                InboundRouteSettings {
                    r#type: InboundType::VehicleState,
                    message: Some("cam".into()),
                    ..route("v/in", None)
                },
                "`inbound.0.message`: allowed only with `type: v2x_message`",
            ),
            (
                InboundRouteSettings {
                    r#type: InboundType::EventRequest,
                    dialect: DialectSetting::VanetzaNap,
                    ..route("v/in", None)
                },
                "`inbound.0.dialect`: allowed only with `type: v2x_message`",
            ),
        ] {
            let error = check(&[wrong]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let answered = |from| route(from, Some("v/error"));
        let error = check(&[answered("v/in/cam"), answered("v/in/+")]).unwrap_err().to_string();
        assert!(error.starts_with("`inbound.1.from`: `v/in/+` and the `from` of `inbound.0` match"), "{error}");
        assert!(check(&[route("v/{node}/in/+", None), route("w/denm", Some("v/{node}/errors"))]).is_ok());
    }

    #[test]
    fn every_problem_has_a_counter() {
        let problems = [
            JsonProblem::Syntax(String::new()),
            JsonProblem::Missing,
            JsonProblem::Unknown,
            JsonProblem::Mismatch { expected: String::new(), got: String::new() },
        ];
        let text = |problem| Refusal::Text(JsonError { path: String::new(), problem });
        let full = PublishError::QueueFull { topic: "its/send".into(), subscribers: Vec::new() };
        let others = [
            Refusal::UnknownTopic { level: "foo".into() },
            Refusal::TooLong { octets: 2, max: 1 },
            full.clone().into(),
            Refusal::UnknownType { topic: String::new() },
            Refusal::MalformedType { topic: String::new() },
            Refusal::MalformedMessage { type_info: String::new() },
            Refusal::OtherType(String::new()),
            Refusal::QueueFull(full),
            Refusal::MalformedProperty { name: "a" },
            Refusal::UnknownCodec { name: String::new() },
            Refusal::MalformedCompression,
            Refusal::InvalidTopic(String::new()),
            Refusal::TooManyTopics { max: 1 },
            Refusal::Denied,
        ];
        let labels = problems.map(text).into_iter().chain(others).map(|refusal| refusal.label());
        let labels: Vec<_> = labels.chain([OUTDATED]).collect();
        assert_eq!(labels, REASONS);
    }
}
