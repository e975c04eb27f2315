//! The topics of a bus, by name, and the subscriptions to patterns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};

use viaduct_messages::topic as names;
use viaduct_units::Mono;

use crate::clock::Clock;
use crate::error::OpenError;
use crate::limits::TOPICS_MAX;
use crate::lock::{lock, read, write};
use crate::subscription::Subscription;
use crate::topic::Topic;
use crate::type_info::TypeInfo;

/// The table of topics. Lock order: `patterns`, then `topics`, then the writers of one topic.
pub(crate) struct Registry {
    topics: RwLock<BTreeMap<Arc<str>, Arc<Topic>>>,
    /// Subscriptions to a pattern; each new topic is added to those that match its name.
    patterns: Mutex<Vec<Arc<Subscription>>>,
    clock: Clock,
}

impl Registry {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { topics: RwLock::default(), patterns: Mutex::default(), clock }
    }

    /// Returns the topic of that name if its type is `wanted` or not set yet. Creates the topic if there is none, and
    /// adds it to the subscriptions with a matching pattern.
    pub(crate) fn topic(
        &self,
        name: &str,
        wanted: Option<&Arc<TypeInfo>>,
        owner: &str,
    ) -> Result<Arc<Topic>, OpenError> {
        let patterns = lock(&self.patterns);
        let mut topics = write(&self.topics);
        if let Some(known) = topics.get(name) {
            match wanted.and_then(|wanted| Some((wanted, known.other_type(wanted)?))) {
                // An unused topic may be opened again with another type.
                Some(_) if known.close_if_unused_and_unsized() => _ = topics.remove(name),
                Some((wanted, has)) if known.has_typed_end() => {
                    return Err(OpenError::other_type(name, owner, &has, wanted));
                }
                _ => return Ok(Arc::clone(known)),
            }
        }
        if topics.len() >= TOPICS_MAX {
            topics.retain(|_, topic| !topic.close_if_unused_and_unsized());
        }
        if topics.len() >= TOPICS_MAX {
            return Err(OpenError::TooManyTopics { topic: name.to_owned() });
        }
        let topic = Arc::new(Topic::new(name));
        for subscription in patterns.iter().filter(|reader| names::matches(&reader.pattern, name)) {
            // A new topic has no publisher that could offer too little or have kept samples.
            let _ = topic.add_subscription(subscription, None, self.clock.mono());
        }
        topics.insert(Arc::clone(&topic.name), Arc::clone(&topic));
        Ok(topic)
    }

    /// Reports missed deadlines and expired leases up to `now`. Returns the time of the next check, or `None` if
    /// nothing can be missed.
    pub(crate) fn check_deadlines(&self, now: Mono) -> Option<Mono> {
        self.all_topics().iter().filter_map(|topic| topic.check_deadlines(now)).min()
    }

    /// Removes a topic if it has no publisher and no subscription to exactly its name. Returns `true` if it was
    /// removed.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut topics = write(&self.topics);
        topics.get(name).is_some_and(|topic| topic.close_if_unused()) && topics.remove(name).is_some()
    }

    /// Registers a subscription to a pattern. Returns the present topics that match it.
    pub(crate) fn register_pattern(&self, subscription: &Arc<Subscription>) -> Vec<Arc<Topic>> {
        let mut patterns = lock(&self.patterns);
        patterns.push(Arc::clone(subscription));
        self.all_topics().into_iter().filter(|topic| names::matches(&subscription.pattern, &topic.name)).collect()
    }

    pub(crate) fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        lock(&self.patterns).retain(|other| !Arc::ptr_eq(other, subscription));
        for topic in self.all_topics() {
            topic.remove_subscription(subscription);
        }
    }

    pub(crate) fn all_topics(&self) -> Vec<Arc<Topic>> {
        read(&self.topics).values().cloned().collect()
    }

    pub(crate) fn all_patterns(&self) -> Vec<Arc<Subscription>> {
        lock(&self.patterns).clone()
    }
}
