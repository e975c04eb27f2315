//! Inbound routes of a bridge: they take what its broker sends to their subscriptions.

use viaduct_bus::Counter;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use viaduct_mqtt::packet::subscribe_options::RetainHandling;
use viaduct_node::{Component, Context, StartError};
use viaduct_units::Now;

use crate::mqtt::inbound::{Inbound, InboundRoute};
use crate::mqtt::route::Message;
use crate::mqtt::subscription;

/// The routes and what came of their subscriptions.
pub(crate) struct Subscribed {
    inbound: Inbound,
    /// Connections on which the broker took every subscription.
    subscribed: Counter,
    /// Subscriptions that the broker did not take: those routes are deaf until the next connection.
    refused: Counter,
    /// For logs.
    name: String,
}

impl Subscribed {
    pub(crate) fn open<C: Component>(routes: &[InboundRoute], context: &Context<C>) -> Result<Self, StartError> {
        Ok(Self {
            inbound: Inbound::open(routes, context)?,
            subscribed: context.counter("subscribed"),
            refused: context.counter("subscriptions_refused"),
            name: context.name().to_owned(),
        })
    }

    /// What is asked of the broker on each connection; `None` without a route.
    ///
    /// Retained messages are not asked for: a request is for now.
    pub(crate) fn packet(&self, packet_id: u16) -> Option<SubscribePacket> {
        let filters = self.inbound.filters();
        let any = filters.len() > 0;
        let packet = filters.fold(SubscribePacket::new(packet_id), |packet, (filter, qos)| {
            let mut options = SubscriptionOptions { qos, no_local: true, ..SubscriptionOptions::default() };
            options.retain_handling = RetainHandling::DoNotSend;
            packet.add_filter_with_options(TopicFilter::with_options(filter.to_owned(), options))
        });
        any.then_some(packet)
    }

    /// What the broker said to each filter of the subscription, in their order. A route without its subscription is deaf;
    /// the connection is still good for the others, and asking again would not change the broker's mind.
    pub(crate) fn answered(&self, codes: &[SubAckReasonCode]) {
        let refused = codes.iter().enumerate().filter_map(|(index, code)| Some((index, subscription::refusal(*code)?)));
        let mut count = 0;
        for (index, reason) in refused {
            count += 1;
            let filter = self.inbound.filters().nth(index).map(|(filter, _)| filter);
            let key = format!("inbound.{index}.from");
            tracing::warn!(component = self.name, key, filter, reason, "the broker refuses a subscription");
        }
        self.refused.add(count);
        if count == 0 {
            self.subscribed.increment();
        }
    }

    /// Takes a message in; see [`Inbound::take`].
    pub(crate) fn take(&self, packet: &PublishPacket, now: Now) -> Option<Message> {
        self.inbound.take(packet, now)
    }
}
