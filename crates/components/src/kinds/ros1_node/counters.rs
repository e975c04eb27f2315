//! Counters of a node.
//!
//! From ROS: `received` = `published` + `received_dropped`. To ROS, for each message of the bus: `taken` = `offered` +
//! `taken_dropped`. To ROS, for each message and subscriber: `queued` = `sent` + `sent_dropped` + those that still wait.

use viaduct_bus::Counter;
use viaduct_node::{Component, Context};

/// Counters of a node.
pub(super) struct Counters {
    /// Messages from publishers.
    pub(super) received: Counter,
    /// Messages from publishers that were published on the bus.
    pub(super) published: Counter,
    /// Messages from publishers that do not fit the definition of their type.
    pub(super) malformed: Counter,
    /// Messages from publishers for which the queue of a subscriber of the bus was full.
    pub(super) bus_full: Counter,
    /// Connections to publishers.
    pub(super) connected: Counter,
    /// Attempts to connect to a publisher that failed.
    pub(super) failed: Counter,
    /// Publishers of another type than that of the topic.
    pub(super) other_type: Counter,
    /// Publishers beyond the limit of a topic.
    pub(super) too_many_publishers: Counter,
    /// Messages from the bus.
    pub(super) taken: Counter,
    /// Messages from the bus that were put into the queues of all ROS subscribers.
    pub(super) offered: Counter,
    /// Messages from the bus that are not in the format of ROS 1.
    pub(super) other_format: Counter,
    /// Messages from the bus that are longer than 4 GiB.
    pub(super) too_long: Counter,
    /// Messages that were put into the queue of a ROS subscriber, counted for each subscriber.
    pub(super) queued: Counter,
    /// Queued messages that were written to the connection.
    pub(super) sent: Counter,
    /// Queued messages that a newer one replaced, because the queue was full.
    pub(super) queue_full: Counter,
    /// Queued messages that were left when the connection ended.
    pub(super) disconnected: Counter,
    /// Subscribers that were accepted.
    pub(super) subscribers: Counter,
    /// Subscribers that were refused, by reason.
    pub(super) subscribers_refused: Counter,
}

impl Counters {
    pub(super) fn new<C: Component>(context: &Context<C>) -> Self {
        Self {
            received: context.counter("received"),
            published: context.counter("published"),
            malformed: context.counter_for("received_dropped", "malformed"),
            bus_full: context.counter_for("received_dropped", "queue_full"),
            connected: context.counter("publishers_connected"),
            failed: context.counter_for("publishers_refused", "connection_failed"),
            other_type: context.counter_for("publishers_refused", "other_type"),
            too_many_publishers: context.counter_for("publishers_refused", "too_many"),
            taken: context.counter("taken"),
            offered: context.counter("offered"),
            other_format: context.counter_for("taken_dropped", "other_format"),
            too_long: context.counter_for("taken_dropped", "too_long"),
            queued: context.counter("queued"),
            sent: context.counter("sent"),
            queue_full: context.counter_for("sent_dropped", "queue_full"),
            disconnected: context.counter_for("sent_dropped", "disconnected"),
            subscribers: context.counter("subscribers_connected"),
            subscribers_refused: context.counter_for("subscribers_refused", "handshake"),
        }
    }
}
