//! Inbound routes of a bridge with their subscriptions at the broker.

use viaduct_bus::Counter;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use viaduct_mqtt::packet::subscribe_options::RetainHandling;
use viaduct_node::{Component, Context, StartError};
use viaduct_units::Now;

use crate::mqtt::inbound::{Filter, Inbound, InboundRouteSettings};
use crate::mqtt::route::Message;
use crate::mqtt::subscription;

/// The inbound routes of a bridge and the state of their subscriptions.
pub(crate) struct Subscribed {
    inbound: Inbound,
    /// Connections on which the broker accepted every subscription.
    subscribed: Counter,
    /// Subscriptions that the broker rejected. Their routes receive nothing until the next connection.
    refused: Counter,
    /// Name of the component, for log lines.
    name: String,
}

impl Subscribed {
    pub(crate) fn open<C: Component>(
        routes: &[InboundRouteSettings],
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            inbound: Inbound::open(routes, context)?,
            subscribed: context.counter("subscribed"),
            refused: context.counter("subscriptions_refused"),
            name: context.name().to_owned(),
        })
    }

    /// Returns the SUBSCRIBE packet for a new connection, or `None` if there is no route. Retained requests of applications are
    /// excluded, because they are outdated.
    pub(crate) fn packet(&self, packet_id: u16) -> Option<SubscribePacket> {
        let mut filters = self.inbound.filters().peekable();
        filters.peek()?;
        let packet = filters.fold(SubscribePacket::new(packet_id), |packet, Filter { text, qos, retained }| {
            let mut options = SubscriptionOptions { qos, no_local: true, ..SubscriptionOptions::default() };
            options.retain_handling =
                if retained { RetainHandling::SendAtSubscribe } else { RetainHandling::DoNotSend };
            packet.add_filter_with_options(TopicFilter::with_options(text.to_owned(), options))
        });
        Some(packet)
    }

    /// Handles the reason codes of a SUBACK, one per filter and in their order. If the broker rejects a subscription, that route
    /// receives nothing. The connection is kept for the other routes.
    pub(crate) fn answered(&self, codes: &[SubAckReasonCode]) {
        let mut count = 0;
        for (index, code) in codes.iter().enumerate() {
            if let Some(reason) = subscription::refusal(*code) {
                count += 1;
                let filter = self.inbound.filters().nth(index).map(|filter| filter.text);
                tracing::warn!(component = self.name, filter, reason, "MQTT broker rejected a subscription");
            }
        }
        self.refused.add(count);
        if count == 0 {
            self.subscribed.increment();
        }
    }

    /// Handles a message; see [`Inbound::take`].
    pub(crate) fn take(&self, packet: &PublishPacket, now: Now) -> Option<Message> {
        self.inbound.take(packet, now)
    }
}
