//! The routes of a bridge: samples of the bus that are published, and messages of applications that are received.

use viaduct_bus::{Counter, clock};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use viaduct_mqtt::packet::subscribe_options::RetainHandling;
use viaduct_node::{Component, Context, StartError};

use crate::mqtt::client::{Application, DropReason, Outbox, Reception};
use crate::mqtt::inbound::{Filter, Inbound, InboundRouteSettings};
use crate::mqtt::route::{Inputs, Route, Taken};
use crate::mqtt::subscription;

/// The routes of a bridge.
pub(super) struct Bridge {
    inputs: Inputs,
    inbound: Inbound,
    /// Connections on which the broker accepted every subscription.
    subscribed: Counter,
    /// Subscriptions that the broker rejected. Their routes receive nothing until the next connection.
    refused: Counter,
    /// Name of the component, for log lines.
    name: String,
}

impl Bridge {
    pub(super) fn open<C: Component>(
        routes: Vec<Route>,
        inbound: &[InboundRouteSettings],
        sample_bytes_max: usize,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            inputs: Inputs::open(routes, context)?,
            inbound: Inbound::open(inbound, sample_bytes_max, context)?,
            subscribed: context.counter("subscribed"),
            refused: context.counter("subscriptions_refused"),
            name: context.name().to_owned(),
        })
    }
}

impl Application for Bridge {
    type Item = Taken;

    fn try_next(&mut self) -> Option<Taken> {
        self.inputs.try_next()
    }

    async fn next(&mut self) -> Option<Taken> {
        self.inputs.next().await
    }

    fn drain(&mut self) {
        self.inputs.drain();
    }

    fn wants_goodput(&self) -> bool {
        self.inputs.wants_goodput()
    }

    fn set_goodput(&mut self, goodput: Option<f64>) {
        self.inputs.set_goodput(goodput);
    }

    fn send(&mut self, taken: Taken, outbox: &mut Outbox) {
        let counts = outbox.counts();
        counts.taken.increment();
        if self.inputs.qos(&taken) == QoS::AtMostOnce && !outbox.is_connected() {
            // The outbox would drop it as well; this saves the encoding.
            return counts.drop_one(DropReason::Disconnected);
        }
        let now = clock::now();
        if let Some(announcement) = self.inputs.announcement(&taken, now) {
            counts.taken.increment();
            if outbox.accept(announcement) {
                self.inputs.announced(&taken, now);
            }
        }
        match self.inputs.message(&taken) {
            Ok(message) => _ = outbox.accept(message),
            Err(error) => {
                tracing::debug!(component = self.name, %error, "message cannot be encoded");
                outbox.counts().drop_one(DropReason::Unencodable);
            }
        }
    }

    fn connected(&mut self, _: bool) {
        self.inputs.connected();
    }

    /// Returns the SUBSCRIBE packet. Retained requests of applications are excluded, because they are outdated.
    fn subscribe(&self, packet_id: u16) -> Option<SubscribePacket> {
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

    /// Handles the reason codes of a SUBACK. If the broker rejects a subscription, that route receives nothing. The connection is kept
    /// for the other routes.
    fn subscribed(&mut self, codes: &[SubAckReasonCode]) {
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

    fn receive(&mut self, packet: &PublishPacket) -> Reception {
        Reception::Done(self.inbound.take(packet, clock::now()).map(Box::new))
    }

    fn refuse_long(&self, topic: &str) {
        tracing::debug!(component = self.name, topic, "MQTT message above `packet_bytes_max` refused");
        self.inbound.refuse_long();
    }
}
