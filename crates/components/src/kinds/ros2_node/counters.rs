//! Counters of a node.
//!
//! From ROS: `received` = `published` + `received_dropped`. To ROS: `taken` = `sent` + `taken_dropped`.

use viaduct_bus::Counter;
use viaduct_node::{Component, Context};

/// Counters of a node.
pub(super) struct Counters {
    /// Messages from publishers.
    pub(super) received: Counter,
    /// Messages from publishers that were published on the bus.
    pub(super) published: Counter,
    /// Messages from publishers without an encapsulation header of CDR.
    pub(super) malformed: Counter,
    /// Messages from publishers that are longer than permitted.
    pub(super) received_too_long: Counter,
    /// Messages from publishers of another type than that of the topic.
    pub(super) received_other_type: Counter,
    /// Messages from publishers for which the queue of a subscriber of the bus was full.
    pub(super) bus_full: Counter,
    /// Messages for which the `keep_all` history of a best-effort subscription had no room.
    pub(super) lost: Counter,
    /// Publishers that were found.
    pub(super) publishers: Counter,
    /// Publishers of another type than that of the topic.
    pub(super) publishers_other_type: Counter,
    /// Publishers that offer less than the quality of service of the settings.
    pub(super) publishers_qos: Counter,
    /// Publishers beyond the limit of a topic.
    pub(super) publishers_too_many: Counter,
    /// Messages of publishers that were later than their deadline.
    pub(super) received_late: Counter,
    /// Messages from the bus.
    pub(super) taken: Counter,
    /// Messages from the bus that were sent.
    pub(super) sent: Counter,
    /// Messages from the bus that are not in the format of ROS 2.
    pub(super) other_format: Counter,
    /// Messages from the bus of another type than that of the settings.
    pub(super) taken_other_type: Counter,
    /// Messages from the bus that are longer than permitted.
    pub(super) taken_too_long: Counter,
    /// Messages from the bus that a slow reliable subscriber blocked.
    pub(super) timeout: Counter,
    /// Messages from the bus that DDS refused.
    pub(super) failed: Counter,
    /// Messages from the bus that were left when the component stopped.
    pub(super) stopped: Counter,
    /// Subscribers that were found.
    pub(super) subscribers: Counter,
    /// Subscribers of another type than that of the topic.
    pub(super) subscribers_other_type: Counter,
    /// Subscribers that request more than the quality of service of the settings.
    pub(super) subscribers_qos: Counter,
    /// Subscribers beyond the limit of a topic.
    pub(super) subscribers_too_many: Counter,
    /// Messages to subscribers that were later than their deadline.
    pub(super) sent_late: Counter,
}

impl Counters {
    pub(super) fn new<C: Component>(context: &Context<C>) -> Self {
        Self {
            received: context.counter("received"),
            published: context.counter("published"),
            malformed: context.counter_for("received_dropped", "malformed"),
            received_too_long: context.counter_for("received_dropped", "too_long"),
            received_other_type: context.counter_for("received_dropped", "other_type"),
            bus_full: context.counter_for("received_dropped", "queue_full"),
            lost: context.counter("lost"),
            publishers: context.counter("publishers_found"),
            publishers_other_type: context.counter_for("publishers_refused", "other_type"),
            publishers_qos: context.counter_for("publishers_refused", "qos"),
            publishers_too_many: context.counter_for("publishers_refused", "too_many"),
            received_late: context.counter_for("deadlines_missed", "received"),
            taken: context.counter("taken"),
            sent: context.counter("sent"),
            other_format: context.counter_for("taken_dropped", "other_format"),
            taken_other_type: context.counter_for("taken_dropped", "other_type"),
            taken_too_long: context.counter_for("taken_dropped", "too_long"),
            timeout: context.counter_for("taken_dropped", "timeout"),
            failed: context.counter_for("taken_dropped", "failed"),
            stopped: context.counter_for("taken_dropped", "stopped"),
            subscribers: context.counter("subscribers_found"),
            subscribers_other_type: context.counter_for("subscribers_refused", "other_type"),
            subscribers_qos: context.counter_for("subscribers_refused", "qos"),
            subscribers_too_many: context.counter_for("subscribers_refused", "too_many"),
            sent_late: context.counter_for("deadlines_missed", "sent"),
        }
    }
}
