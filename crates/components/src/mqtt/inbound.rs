//! Inbound routes: what applications publish on the broker becomes requests to send on the bus.

use std::sync::Arc;

use mqtt5::QoS;
use mqtt5::packet::publish::PublishPacket;
use mqtt5::packet::suback::SubAckReasonCode;
use mqtt5::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Meta, Publisher, Qos};
use viaduct_etsi::JsonError;
use viaduct_its::dialect::Dialect;
use viaduct_its::facilities::MessageKind;
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::{ReplyTo, V2xSendRequest};
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_units::Now;

use super::answer::{self, Refusal, Wanted};
use super::dialect::DialectSetting;
use super::hops;
use super::route::{Message, Target, Template};
use super::subscription;
use super::typed::{InboundType, Sink};
use crate::allowance::Allowance;
use crate::its_station::request;

/// Inbound routes of one component at most.
const ROUTES_MAX: usize = 16;
/// Answers of one route each second; the refusals that are not answered are counted in the next one that is.
const ANSWERS_PER_SECOND_MAX: u32 = 50;
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
    /// What the text is. All but V2X messages are in protobuf's JSON mapping.
    #[serde(default)]
    pub r#type: InboundType,
    /// Quality of service that is asked of the broker: 0 (at most once) or 1 (at least once).
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
        if let Some(own) = filters.into_iter().find(|filter| mqtt5::topic_matches_filter(&errors, filter)) {
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
    mqtt5::validate_topic_filter(&filter).map_err(|_| format!("`{filter}` is not an MQTT topic filter"))?;
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
    answers: Allowance,
}

/// Where a route leads.
enum Output {
    /// To a station, to be sent.
    Requests(Publisher<V2xSendRequest>),
    /// To services.
    Services(Sink),
}

struct Counts {
    /// Connections on which the broker took every subscription.
    subscribed: Counter,
    /// Subscriptions that the broker did not take: those routes are deaf until the next connection.
    subscriptions_refused: Counter,
    received: Counter,
    requested: Counter,
    /// Messages that no route asked for.
    unrouted: Counter,
    unanswered: Counter,
    refused: [(&'static str, Counter); REASONS.len()],
}

/// The labels of [`Refusal`].
const REASONS: [&str; 5] = ["syntax", "missing", "unknown_member", "wrong_value", "station_busy"];

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
                subscribed: context.counter("subscribed"),
                subscriptions_refused: context.counter("subscriptions_refused"),
                received: context.counter("received"),
                requested: context.counter("requested"),
                unrouted: context.counter("unrouted"),
                unanswered: context.counter("unanswered"),
                refused: REASONS.map(|reason| (reason, context.counter_for("refused", reason))),
            },
        })
    }

    /// What is asked of the broker on each connection; `None` without a route.
    ///
    /// Retained messages are not asked for: a request is for now.
    pub(crate) fn subscription(&self, packet_id: u16) -> Option<SubscribePacket> {
        let subscribe = |packet: SubscribePacket, route: &Entrance| {
            let mut options = SubscriptionOptions { qos: route.qos, no_local: true, ..SubscriptionOptions::default() };
            options.retain_handling = mqtt5::packet::subscribe_options::RetainHandling::DoNotSend;
            packet.add_filter_with_options(TopicFilter::with_options(route.filter.clone(), options))
        };
        let packet = self.routes.iter().fold(SubscribePacket::new(packet_id), subscribe);
        (!self.routes.is_empty()).then_some(packet)
    }

    /// What the broker said to each filter of the subscription, in their order. A route without its subscription is deaf;
    /// the connection is still good for the others, and asking again would not change the broker's mind.
    pub(crate) fn subscribed(&self, codes: &[SubAckReasonCode]) {
        let refused = codes.iter().enumerate().filter_map(|(index, code)| Some((index, subscription::refusal(*code)?)));
        let mut count = 0;
        for (index, reason) in refused {
            count += 1;
            let (key, filter) = (format!("inbound.{index}.from"), self.routes.get(index).map(|route| &*route.filter));
            tracing::warn!(component = self.component, key, filter, reason, "the broker refuses a subscription");
        }
        self.counts.subscriptions_refused.add(count);
        if count == 0 {
            self.counts.subscribed.increment();
        }
    }

    /// Takes a message in: it becomes a request on the bus, or an answer to who published it.
    pub(crate) fn take(&mut self, packet: &PublishPacket, now: Now) -> Option<Message> {
        self.counts.received.increment();
        let wanted = self.wanted(packet);
        let matches = |route: &&mut Entrance| mqtt5::topic_matches_filter(&packet.topic_name, &route.filter);
        let Some(route) = self.routes.iter_mut().find(matches) else {
            self.counts.unrouted.increment();
            return None;
        };
        let way = packet.properties.get_user_property_value(hops::PROPERTY).and_then(|text| hops::parse(text).ok());
        let meta = way.unwrap_or_else(|| Meta::from_origin(now.tai));
        let reply_to = ReplyTo {
            component: self.component.clone(),
            request_topic: packet.topic_name.clone(),
            topic: wanted.topic.clone(),
            correlation: wanted.correlation.clone(),
        };
        match route.take(packet, &meta, reply_to) {
            Ok(()) => {
                self.counts.requested.increment();
                None
            }
            Err(refusal) => {
                self.counts.refuse(&refusal);
                let answer = route.answer(&refusal, &packet.topic_name, wanted, now);
                if answer.is_none() {
                    self.counts.unanswered.increment();
                }
                answer
            }
        }
    }

    /// Where the request wants its answer. An answer on a topic that comes in here would come in again.
    fn wanted(&self, packet: &PublishPacket) -> Wanted {
        let wanted = Wanted::of(packet);
        let comes_in = self.routes.iter().any(|route| mqtt5::topic_matches_filter(&wanted.topic, &route.filter));
        if comes_in { Wanted { topic: String::new(), ..wanted } } else { wanted }
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
            answers: Allowance::new(ANSWERS_PER_SECOND_MAX),
        })
    }

    fn take(&self, packet: &PublishPacket, meta: &Meta, reply_to: ReplyTo) -> Result<(), Refusal> {
        match &self.output {
            Output::Services(sink) => sink(&packet.payload, meta, reply_to),
            Output::Requests(publisher) => {
                let request = V2xSendRequest { reply_to: Some(reply_to), ..self.read(packet)? };
                Ok(publisher.try_publish_from(meta, request)?)
            }
        }
    }

    fn read(&self, packet: &PublishPacket) -> Result<V2xSendRequest, JsonError> {
        let named = || packet.topic_name.rsplit('/').next().and_then(MessageKind::from_label);
        let request = self.dialect.read_request(self.kind.or_else(named), &packet.payload)?;
        Ok(request::to_bus(&request))
    }

    fn answer(&mut self, refusal: &Refusal, topic: &str, wanted: Wanted, now: Now) -> Option<Message> {
        let count = self.answers.one(now.mono)?;
        let target = match wanted.topic.is_empty() {
            true => Arc::clone(&self.errors),
            false => Arc::new(Target::json(wanted.topic, self.qos)),
        };
        let payload = answer::write(refusal, topic, now.tai, count);
        Some(Message { target, payload, meta: Meta::from_origin(now.tai), correlation: wanted.correlation })
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
        let labels: Vec<_> =
            problems.map(text).into_iter().chain([full.into()]).map(|refusal| refusal.label()).collect();
        assert_eq!(labels, REASONS);
    }
}
