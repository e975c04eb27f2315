//! What applications tell the services of a station by MQTT: messages of the bus in protobuf's JSON mapping.

use std::marker::PhantomData;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Meta, Qos};
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_messages::Message;
use viaduct_messages::viaduct::its::{EventRequest, ReplyTo, V2xSendRequest};
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

use super::answer::Refusal;

/// Characters of an error's text, and of a member's name in it.
const CHARACTERS_MAX: usize = 240;

/// What the text of an inbound route is, and so the type of its topic of the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboundType {
    /// A V2X message that is to be sent (`viaduct.its.V2xSendRequest`).
    #[default]
    V2xMessage,
    /// How the station moves (`viaduct.vehicle.VehicleState`).
    VehicleState,
    /// What it perceives (`viaduct.perception.PerceivedObjects`).
    PerceivedObjects,
    /// An event, or its end (`viaduct.its.EventRequest`).
    EventRequest,
}

/// Publishes what a text says, or tells why not. Where a refusal of the services goes, is said beside the text.
pub(super) type Sink = Box<dyn Fn(&[u8], &Meta, ReplyTo) -> Result<(), Refusal> + Send + Sync>;

impl InboundType {
    /// Adds the topic with its type.
    pub(super) fn publishes(self, edges: Edges, setting: &str, topic: &str, qos: Qos) -> Edges {
        match self {
            Self::V2xMessage => edges.publishes::<V2xSendRequest>(setting, topic, qos),
            Self::VehicleState => edges.publishes::<VehicleState>(setting, topic, qos),
            Self::PerceivedObjects => edges.publishes::<PerceivedObjects>(setting, topic, qos),
            Self::EventRequest => edges.publishes::<EventRequest>(setting, topic, qos),
        }
    }

    /// Where texts of the type go; `None` for V2X messages, which have readers of their own.
    pub(super) fn open<C: Component>(
        self,
        topic: &str,
        qos: Qos,
        context: &Context<C>,
    ) -> Result<Option<Sink>, StartError> {
        match self {
            Self::V2xMessage => Ok(None),
            Self::VehicleState => sink(topic, qos, context, state_with_reply).map(Some),
            Self::PerceivedObjects => sink(topic, qos, context, objects_with_reply).map(Some),
            Self::EventRequest => sink(topic, qos, context, event_with_reply).map(Some),
        }
    }
}

/// What the text says about its answer does not count: the broker knows who asked.
fn event_with_reply(request: EventRequest, reply_to: ReplyTo) -> EventRequest {
    EventRequest { reply_to: Some(reply_to), ..request }
}

fn state_with_reply(mut state: VehicleState, reply_to: ReplyTo) -> VehicleState {
    state.reply_to = Some(reply_to);
    state
}

fn objects_with_reply(objects: PerceivedObjects, reply_to: ReplyTo) -> PerceivedObjects {
    PerceivedObjects { reply_to: Some(reply_to), ..objects }
}

fn sink<M: Message, C: Component>(
    topic: &str,
    qos: Qos,
    context: &Context<C>,
    complete: fn(M, ReplyTo) -> M,
) -> Result<Sink, StartError> {
    let publisher = context.publisher::<M>(topic, qos)?;
    let reader =
        Reader::new().ok_or_else(|| SettingError::new("inbound", format!("{} has no schema", M::full_name())))?;
    Ok(Box::new(move |text, meta, reply_to| {
        Ok(publisher.try_publish_from(meta, complete(reader.read(text)?, reply_to))?)
    }))
}

/// Reads texts of one type.
pub(crate) struct Reader<M> {
    schema: MessageDescriptor,
    reads: PhantomData<fn() -> M>,
}

impl<M: Message> Reader<M> {
    /// `None` where the type has no schema.
    pub(crate) fn new() -> Option<Self> {
        let schema = DescriptorPool::decode(M::DESCRIPTOR_SET).ok()?.get_message_by_name(&M::full_name())?;
        Some(Self { schema, reads: PhantomData })
    }

    /// Members may be named as in the schema (`latitude_deg`) or in lowerCamelCase; one that the type does not have is an
    /// error.
    pub(crate) fn read(&self, text: &[u8]) -> Result<M, JsonError> {
        let wrong =
            |problem: String| JsonError { path: String::new(), problem: JsonProblem::Syntax(shortened(&problem)) };
        let mut reader = serde_json::Deserializer::from_slice(text);
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
        let message = DynamicMessage::deserialize(self.schema.clone(), tracked);
        let message = message.map_err(|error| at(&track.path().to_string(), &error.to_string()))?;
        reader.end().map_err(|error| wrong(error.to_string()))?;
        message.transcode_to().map_err(|error| wrong(error.to_string()))
    }
}

/// The error of a reader that stopped at a path.
fn at(path: &str, words: &str) -> JsonError {
    let path = if matches!(path, "." | "?") { "" } else { path };
    match unknown_member(words) {
        Some(name) => {
            let error = JsonError { path: shortened(name), problem: JsonProblem::Unknown };
            if path.is_empty() { error } else { error.inside(path) }
        }
        None => JsonError { path: shortened(path), problem: JsonProblem::Syntax(shortened(words)) },
    }
}

/// The member that the reader says its type does not have: the path ends above it.
fn unknown_member(words: &str) -> Option<&str> {
    words.strip_prefix("unrecognized field name '")?.rsplit_once('\'').map(|(name, _)| name)
}

/// Cut so that no input can make an answer long.
fn shortened(text: &str) -> String {
    text.chars().take(CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use viaduct_messages::viaduct::its::event_request::Action;
    use viaduct_messages::viaduct::perception::ObjectClass;

    use super::*;

    fn parse<M: Message>(text: &str) -> Result<M, String> {
        Reader::new().unwrap().read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_names_members_as_the_schema_or_as_json_does() {
        for text in [
            r#"{"position":{"latitude_deg":45.5,"longitude_deg":7.25},"speed_mps":3}"#,
            r#"{"position":{"latitudeDeg":45.5,"longitudeDeg":7.25},"speedMps":3.0}"#,
        ] {
            let state: VehicleState = parse(text).unwrap();
            let place = state.position.unwrap();
            assert_eq!((place.latitude_deg, place.longitude_deg, state.speed_mps), (45.5, 7.25, Some(3.0)));
        }
    }

    #[test]
    fn objects_and_events_are_read() {
        let text = r#"{"time":"2026-11-22T08:00:00Z","objects":[{"id":7,"class":"PEDESTRIAN"}]}"#;
        let objects: PerceivedObjects = parse(text).unwrap();
        assert_eq!((objects.time.is_some(), objects.objects[0].class()), (true, ObjectClass::Pedestrian));
        let event: EventRequest = parse(r#"{"name":"jam","report":{"cause":1}}"#).unwrap();
        assert!(matches!(event.action, Some(Action::Report(event)) if event.cause == 1));
        let end: EventRequest = parse(r#"{"name":"jam","end":{}}"#).unwrap();
        assert!(matches!(end.action, Some(Action::End(_))));
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        for (text, words) in [
            ("", "EOF"),
            ("{", "EOF"),
            ("{} {}", "trailing"),
            (r#"{"speed":3}"#, "speed: there is no member of this name"),
            (r#"{"position":{"latitude":3}}"#, "position.latitude: there is no member of this name"),
            (r#"{"speed_mps":"fast"}"#, "speed_mps: invalid float"),
            (r#"{"lights":{"fog":3}}"#, "lights.fog: invalid type"),
            (r#"{"time":"yesterday"}"#, "time: "),
        ] {
            let error = parse::<VehicleState>(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn no_text_makes_an_error_long() {
        let member = "x".repeat(60_000);
        let error = parse::<VehicleState>(&format!("{{\"{member}\":1}}")).unwrap_err();
        assert!(error.len() < 2 * CHARACTERS_MAX, "{}", error.len());
    }
}
