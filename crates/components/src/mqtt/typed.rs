//! Inputs of applications for the services of a station: JSON texts on MQTT that become messages on the bus.

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Meta, Qos};
use viaduct_messages::Message;
use viaduct_messages::viaduct::its::{EventRequest, ReplyTo, V2xSendRequest};
use viaduct_messages::viaduct::perception::PerceivedObjects;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_v2x_json::protobuf::Reader;

use super::answer::Refusal;

/// The content of the texts of an inbound route, which decides the type of its topic on the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboundType {
    /// A V2X message to send (`viaduct.its.V2xSendRequest`).
    #[default]
    V2xMessage,
    /// Position and movement of the station (`viaduct.vehicle.VehicleState`).
    VehicleState,
    /// Objects that its sensors track (`viaduct.perception.PerceivedObjects`).
    PerceivedObjects,
    /// An event to report, or its end (`viaduct.its.EventRequest`).
    EventRequest,
}

/// Publishes the message in a text, with the address for the answer if the services reject it. Returns the reason if the
/// text cannot be read or published.
pub(super) type Sink = Box<dyn Fn(&[u8], &Meta, ReplyTo) -> Result<(), Refusal> + Send + Sync>;

impl InboundType {
    /// Declares the topic with its type.
    pub(super) fn publishes(self, edges: Edges, setting: &str, topic: &str, qos: Qos) -> Edges {
        match self {
            Self::V2xMessage => edges.publishes::<V2xSendRequest>(setting, topic, qos),
            Self::VehicleState => edges.publishes::<VehicleState>(setting, topic, qos),
            Self::PerceivedObjects => edges.publishes::<PerceivedObjects>(setting, topic, qos),
            Self::EventRequest => edges.publishes::<EventRequest>(setting, topic, qos),
        }
    }

    /// Opens the publisher for texts of this type. Returns `None` for V2X messages, which have their own readers.
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

/// Sets the address for the answer. An address in the text is ignored, because only the broker identifies the client.
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
