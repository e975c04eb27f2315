//! Inbound routes: what applications publish on a broker becomes requests to send on the bus.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Meta, Publisher, Qos};
use viaduct_etsi::JsonError;
use viaduct_its::dialect::Dialect;
use viaduct_its::facilities::MessageKind;
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::{ReplyTo, V2xSendRequest};
use viaduct_mqtt::QoS;
use viaduct_mqtt::broker::ClientPublishEvent;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_units::Now;

use super::answer::{self, Refusal, Wanted};
use super::dialect::DialectSetting;
use super::hops;
use super::route::{Message, Target, Template};
use super::subscription;
use super::typed::{InboundType, Sink};
use crate::rate_limiter::RateLimiter;
use crate::v2x::request;

/// Inbound routes of one component at most.
const ROUTES_MAX: usize = 16;
/// Answers of one route each second; the refusals that are not answered are counted in the next one that is.
const ANSWERS_PER_SECOND_MAX: u32 = 50;
/// Octets of a text at most: many times what the longest V2X message takes, and read at once by who serves a connection.
const TEXT_OCTETS_MAX: usize = 64 * 1024;
/// How far the clock of who publishes may be ahead of that of this node.
const AHEAD_MAX: std::time::Duration = std::time::Duration::from_secs(2);
/// What a route offers: a station takes them at once, and one that does not must not hold up the broker.
const OFFERED: Qos = Qos::reliable(1024, std::time::Duration::ZERO);

/// One route from topics of MQTT to a topic of the bus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundRoute {
    /// MQTT topic filter (`+` and `#` are wildcards), in which `{node}` is the node's name and `{component}` this
    /// component's. What it matches is JSON of what `type` says. No topic may match the filters of two routes.
    pub from: String,
    /// Topic of the bus: where a station reads what it is asked to send, or what its services are told.
    pub to: String,
    /// Content of the text. Types other than V2X messages have the field names of their schema (`latitude_deg`).
    #[serde(default)]
    pub r#type: InboundType,
    /// Quality of service of the answers, and what a bridge asks of its broker for the requests: 0 (at most once) or 1
    /// (at least once).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub qos: u8,
    /// In which JSON V2X messages are written.
    #[serde(default)]
    pub dialect: DialectSetting,
    /// Which V2X message it is: `cam`, `cpm`, and so on. Absent: what the last level of the topic says, where it is one
    /// of these, or else the message itself.
    #[serde(default)]
    pub message: Option<String>,
    /// MQTT topic for the answers to what cannot be read or is not taken, with the same placeholders as `from`. An answer
    /// goes there unless the request has a response topic (MQTT 5). Absent: `from` up to its first wildcard, its last
    /// level replaced by `error`: `v/error` for `v/in/+`.
    #[serde(default)]
    pub errors: Option<String>,
}

/// Checks the setting `inbound`.
pub(crate) fn check(routes: &[InboundRoute]) -> Result<(), SettingError> {
    if routes.len() > ROUTES_MAX {
        return Err(SettingError::new("inbound", format!("{} routes, more than {ROUTES_MAX}", routes.len())));
    }
    for (index, route) in routes.iter().enumerate() {
        let wrong = |key: &str, problem: String| SettingError::new(format!("inbound.{index}.{key}"), problem);
        topic::check_name(&route.to).map_err(|error| wrong("to", error.to_string()))?;
        if route.qos > 1 {
            return Err(wrong("qos", format!("{} is not 0 or 1", route.qos)));
        }
        kind(route).map_err(|problem| wrong("message", problem))?;
        check_dialect(route).map_err(|(key, problem)| wrong(key, problem))?;
        let filter = filter(route, "node", "component").map_err(|problem| wrong("from", problem))?;
        let errors = errors(route, &filter, "node", "component").map_err(|problem| wrong("errors", problem))?;
        let filters = routes.iter().filter_map(|other| self::filter(other, "node", "component").ok());
        if let Some(own) = filters.into_iter().find(|filter| viaduct_mqtt::topic_matches_filter(&errors, filter)) {
            return Err(wrong(
                "errors",
                format!("`{errors}` is one of the topics `{own}`, so answers would come in again"),
            ));
        }
    }
    check_overlaps(&routes.iter().filter_map(|route| filter(route, "node", "component").ok()).collect::<Vec<_>>())
}

/// What only V2X messages have is not said of another type, where nobody would read it.
fn check_dialect(route: &InboundRoute) -> Result<(), (&'static str, String)> {
    let problem = || "only a V2X message has it (`type: v2x_message`)".to_owned();
    if route.r#type == InboundType::V2xMessage {
        return Ok(());
    }
    if route.message.is_some() {
        return Err(("message", problem()));
    }
    if route.dialect == DialectSetting::Viaduct { Ok(()) } else { Err(("dialect", problem())) }
}

/// No topic comes in by two routes.
fn check_overlaps(filters: &[String]) -> Result<(), SettingError> {
    for (index, filter) in filters.iter().enumerate() {
        let before = filters.iter().take(index).position(|before| subscription::overlap(before, filter));
        if let Some(before) = before {
            let problem = format!("`{filter}` and the `from` of `inbound.{before}` match the same topics");
            return Err(SettingError::new(format!("inbound.{index}.from"), problem));
        }
    }
    Ok(())
}

fn kind(route: &InboundRoute) -> Result<Option<MessageKind>, String> {
    let Some(label) = &route.message else {
        return Ok(None);
    };
    MessageKind::from_label(label).map(Some).ok_or_else(|| {
        let known: Vec<&str> = MessageKind::ALL.iter().map(|kind| kind.label()).collect();
        format!("there is no `{label}`; there are {}", known.join(", "))
    })
}

fn filter(route: &InboundRoute, node: &str, component: &str) -> Result<String, String> {
    let filter = Template::parse_without_topic(&route.from)?.expand(node, component, "");
    viaduct_mqtt::validate_topic_filter(&filter).map_err(|_| format!("`{filter}` is not an MQTT topic filter"))?;
    if filter.starts_with("$share/") {
        return Err(format!("`{filter}` would share the messages with others; every request comes in here"));
    }
    Ok(filter)
}

fn errors(route: &InboundRoute, filter: &str, node: &str, component: &str) -> Result<String, String> {
    let errors = match &route.errors {
        Some(template) => Template::parse_without_topic(template)?.expand(node, component, ""),
        None => default_errors(filter),
    };
    if answer::is_topic(&errors) { Ok(errors) } else { Err(format!("`{errors}` is not a topic to publish on")) }
}

/// `v/error` for `v/in/+` and for `v/denm`.
fn default_errors(filter: &str) -> String {
    let mut levels: Vec<&str> = filter.split('/').take_while(|level| !matches!(*level, "+" | "#")).collect();
    levels.pop();
    levels.push("error");
    levels.join("/")
}

/// Adds what the routes publish.
pub(crate) fn edges(routes: &[InboundRoute], edges: Edges) -> Edges {
    routes.iter().enumerate().fold(edges, |edges, (index, route)| {
        route.r#type.publishes(edges, &format!("inbound.{index}.to"), &route.to, OFFERED)
    })
}

/// The inbound routes of one component. Messages received = requested + refused by reason + unrouted.
pub(crate) struct Inbound {
    routes: Vec<Entrance>,
    /// The node and the component, by which an answer of a station finds back.
    component: String,
    counts: Counts,
}

struct Entrance {
    filter: String,
    qos: QoS,
    dialect: Dialect,
    kind: Option<MessageKind>,
    output: Output,
    errors: Arc<Target>,
    /// Held for a count only: a broker's clients are served side by side.
    answers: Mutex<RateLimiter>,
}

/// What an application has published.
pub(crate) struct Request<'a> {
    topic: &'a str,
    text: &'a [u8],
    wanted: Wanted,
    /// The way of its message before it came here, where it says so.
    way: Option<Meta>,
}

impl<'a> From<&'a PublishPacket> for Request<'a> {
    fn from(packet: &'a PublishPacket) -> Self {
        let way = packet.properties.get_user_property_value(hops::PROPERTY).and_then(|text| hops::parse(text).ok());
        Self { topic: &packet.topic_name, text: &packet.payload, wanted: Wanted::of(packet), way }
    }
}

impl<'a> From<&'a ClientPublishEvent> for Request<'a> {
    /// The broker does not tell the user properties, so its way begins here.
    fn from(event: &'a ClientPublishEvent) -> Self {
        let wanted = Wanted::new(event.response_topic.as_deref(), event.correlation_data.as_ref());
        Self { topic: &event.topic, text: &event.payload, wanted, way: None }
    }
}

/// Where a route leads.
enum Output {
    /// To a station, to be sent.
    Requests(Publisher<V2xSendRequest>),
    /// To services.
    Services(Sink),
}

struct Counts {
    received: Counter,
    requested: Counter,
    /// Messages that no route asked for.
    unrouted: Counter,
    unanswered: Counter,
    refused: [(&'static str, Counter); REASONS.len()],
}

/// The labels of [`Refusal`].
const REASONS: [&str; 6] = ["syntax", "missing", "unknown_member", "wrong_value", "too_long", "station_busy"];

impl Inbound {
    pub(crate) fn open<C: Component>(routes: &[InboundRoute], context: &Context<C>) -> Result<Self, StartError> {
        let routes = routes.iter().enumerate().map(|(index, route)| Entrance::open(index, route, context));
        let routes = routes.collect::<Result<Vec<_>, _>>()?;
        // Once more, with the names of the node and the component in the filters.
        check_overlaps(&routes.iter().map(|route| route.filter.clone()).collect::<Vec<_>>())?;
        Ok(Self {
            routes,
            component: format!("{}/{}", context.node(), context.name()),
            counts: Counts {
                received: context.counter("received"),
                requested: context.counter("requested"),
                unrouted: context.counter("unrouted"),
                unanswered: context.counter("unanswered"),
                refused: REASONS.map(|reason| (reason, context.counter_for("refused", reason))),
            },
        })
    }

    /// The filter of each route and its quality of service.
    pub(crate) fn filters(&self) -> impl ExactSizeIterator<Item = (&str, QoS)> {
        self.routes.iter().map(|route| (&*route.filter, route.qos))
    }

    /// Whether a topic comes in.
    pub(crate) fn wants(&self, topic: &str) -> bool {
        self.routes.iter().any(|route| viaduct_mqtt::topic_matches_filter(topic, &route.filter))
    }

    /// An answer finds no room.
    pub(crate) fn leave_unanswered(&self) {
        self.counts.unanswered.increment();
    }

    /// Takes a message in: it becomes a request on the bus, or an answer to who published it.
    pub(crate) fn take<'a>(&self, request: impl Into<Request<'a>>, now: Now) -> Option<Message> {
        let request = request.into();
        self.counts.received.increment();
        let matches = |route: &&Entrance| viaduct_mqtt::topic_matches_filter(request.topic, &route.filter);
        let Some(route) = self.routes.iter().find(matches) else {
            self.counts.unrouted.increment();
            return None;
        };
        // An answer on a topic that comes in here would come in again.
        let comes_in = self.wants(&request.wanted.topic);
        let wanted = if comes_in { Wanted { topic: String::new(), ..request.wanted } } else { request.wanted };
        let request = Request { wanted, ..request };
        match self.take_by(route, &request, now) {
            Ok(()) => {
                self.counts.requested.increment();
                None
            }
            Err(refusal) => {
                self.counts.refuse(&refusal);
                let answer = route.answer(&refusal, request, now);
                if answer.is_none() {
                    self.counts.unanswered.increment();
                }
                answer
            }
        }
    }

    fn take_by(&self, route: &Entrance, request: &Request<'_>, now: Now) -> Result<(), Refusal> {
        if request.text.len() > TEXT_OCTETS_MAX {
            return Err(Refusal::TooLong { octets: request.text.len(), max: TEXT_OCTETS_MAX });
        }
        let reply_to = ReplyTo {
            component: self.component.clone(),
            request_topic: request.topic.to_owned(),
            topic: request.wanted.topic.clone(),
            correlation: request.wanted.correlation.clone(),
        };
        // A way that begins in the future is none.
        let way = request.way.filter(|way| way.origin.since(now.tai) <= AHEAD_MAX);
        route.take(request, &way.unwrap_or_else(|| Meta::from_origin(now.tai)), reply_to)
    }
}

impl Entrance {
    fn open<C: Component>(index: usize, route: &InboundRoute, context: &Context<C>) -> Result<Self, StartError> {
        let wrong = |key: &str, problem| SettingError::new(format!("inbound.{index}.{key}"), problem);
        let (node, component) = (context.node(), context.name());
        let filter = filter(route, node, component).map_err(|problem| wrong("from", problem))?;
        let errors = errors(route, &filter, node, component).map_err(|problem| wrong("errors", problem))?;
        let qos = if route.qos == 0 { QoS::AtMostOnce } else { QoS::AtLeastOnce };
        Ok(Self {
            filter,
            qos,
            dialect: route.dialect.dialect(),
            kind: kind(route).map_err(|problem| wrong("message", problem))?,
            output: match route.r#type.open(&route.to, OFFERED, context)? {
                Some(sink) => Output::Services(sink),
                None => Output::Requests(context.publisher(&route.to, OFFERED)?),
            },
            errors: Arc::new(Target::json(errors, qos)),
            answers: Mutex::new(RateLimiter::new(ANSWERS_PER_SECOND_MAX)),
        })
    }

    fn take(&self, request: &Request<'_>, meta: &Meta, reply_to: ReplyTo) -> Result<(), Refusal> {
        match &self.output {
            Output::Services(sink) => sink(request.text, meta, reply_to),
            Output::Requests(publisher) => {
                let wanted = V2xSendRequest { reply_to: Some(reply_to), ..self.read(request)? };
                Ok(publisher.try_publish_from(meta, wanted)?)
            }
        }
    }

    fn read(&self, request: &Request<'_>) -> Result<V2xSendRequest, JsonError> {
        let named = || request.topic.rsplit('/').next().and_then(MessageKind::from_label);
        let wanted = self.dialect.read_request(self.kind.or_else(named), request.text)?;
        Ok(request::to_bus(&wanted))
    }

    fn answer(&self, refusal: &Refusal, request: Request<'_>, now: Now) -> Option<Message> {
        let count = self.answers.lock().unwrap_or_else(PoisonError::into_inner).admit(now.mono)?;
        let Wanted { topic, correlation } = request.wanted;
        let target = match topic.is_empty() {
            true => Arc::clone(&self.errors),
            false => Arc::new(Target::json(topic, self.qos)),
        };
        let payload = answer::write(refusal, request.topic, now.tai, count);
        Some(Message { target, payload, meta: Meta::from_origin(now.tai), correlation })
    }
}

impl Counts {
    fn refuse(&self, refusal: &Refusal) {
        let counter = self.refused.iter().find(|(reason, _)| *reason == refusal.label());
        counter.into_iter().for_each(|(_, counter)| counter.increment());
    }
}

#[cfg(test)]
mod tests {
    use viaduct_bus::PublishError;
    use viaduct_etsi::JsonProblem;

    use super::*;

    fn route(from: &str, errors: Option<&str>) -> InboundRoute {
        InboundRoute {
            from: from.into(),
            to: "its/send".into(),
            r#type: InboundType::V2xMessage,
            qos: 1,
            dialect: DialectSetting::Viaduct,
            message: None,
            errors: errors.map(Into::into),
        }
    }

    #[test]
    fn answers_go_beside_what_came_in() {
        for (filter, expected) in
            [("vanetza/in/+", "vanetza/error"), ("v/car/denm", "v/car/error"), ("#", "error"), ("in/#", "error")]
        {
            assert_eq!(default_errors(filter), expected);
        }
    }

    #[test]
    fn wrong_routes_are_refused_with_the_key() {
        for (wrong, expected) in [
            (route("v/#/x", None), "`inbound.0.from`: `v/#/x` is not an MQTT topic filter"),
            (route("$share/g/v/+", None), "`inbound.0.from`: `$share/g/v/+` would share the messages with others"),
            (route("v/{topic}", None), "`inbound.0.from`: there is no `{topic}`"),
            (route("#", None), "`inbound.0.errors`: `error` is one of the topics `#`"),
            (route("v/{node}/+", Some("v/{node}/error")), "`inbound.0.errors`: `v/node/error` is one of the topics"),
            (route("v/in/+", Some("v/+")), "`inbound.0.errors`: `v/+` is not a topic to publish on"),
            (InboundRoute { qos: 2, ..route("v/in/+", None) }, "`inbound.0.qos`: 2 is not 0 or 1"),
            (
                InboundRoute { to: "its/*".into(), ..route("v/in/+", None) },
                "`inbound.0.to`: `its/*` is not a topic name",
            ),
            (
                InboundRoute { message: Some("cat".into()), ..route("v/in/+", None) },
                "`inbound.0.message`: there is no `cat`",
            ),
            (
                InboundRoute { r#type: InboundType::VehicleState, message: Some("cam".into()), ..route("v/in", None) },
                "`inbound.0.message`: only a V2X message has it",
            ),
            (
                InboundRoute {
                    r#type: InboundType::EventRequest,
                    dialect: DialectSetting::VanetzaNap,
                    ..route("v/in", None)
                },
                "`inbound.0.dialect`: only a V2X message has it",
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
    fn every_problem_has_its_counter() {
        let problems = [
            JsonProblem::Syntax(String::new()),
            JsonProblem::Missing,
            JsonProblem::Unknown,
            JsonProblem::Mismatch { expected: String::new(), got: String::new() },
        ];
        let text = |problem| Refusal::Text(JsonError { path: String::new(), problem });
        let full = PublishError::QueueFull { topic: "its/send".into(), subscribers: Vec::new() };
        let others = [Refusal::TooLong { octets: 2, max: 1 }, full.into()];
        let labels: Vec<_> = problems.map(text).into_iter().chain(others).map(|refusal| refusal.label()).collect();
        assert_eq!(labels, REASONS);
    }
}
