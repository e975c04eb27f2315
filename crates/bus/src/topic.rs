//! A topic: its type, its ends, and what it keeps for those who come late.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::pool::Pool;
use crate::qos::{Durability, Qos};
use crate::sample::Body;
use crate::stats::{TopicSnapshot, Total};
use crate::subscriber::{Account, DropReason, End, Subscription};
use crate::type_info::TypeInfo;

pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    /// Set by the first publisher or typed subscriber.
    pub(crate) type_info: OnceLock<Arc<TypeInfo>>,
    pub(crate) pool: Pool,
    pub(crate) published: Total,
    /// Samples that some subscription lost, also those of subscriptions that have ended.
    pub(crate) dropped: Arc<Total>,
    sequence: AtomicU64,
    pub(crate) ends: RwLock<Ends>,
    /// Newest samples of transient-local publishers, oldest first.
    kept: Mutex<VecDeque<Arc<Body>>>,
}

/// Who publishes and who reads.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) publishers: Vec<PublisherEnd>,
    /// Replaced as a whole, so that a publisher takes the list along and pushes without the lock.
    pub(crate) subscriptions: Arc<[End]>,
}

#[derive(Clone)]
pub(crate) struct PublisherEnd {
    pub(crate) id: u64,
    pub(crate) owner: Arc<str>,
    pub(crate) qos: Qos,
}

impl Topic {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            type_info: OnceLock::new(),
            pool: Pool::default(),
            published: Total::default(),
            dropped: Arc::default(),
            sequence: AtomicU64::new(0),
            ends: RwLock::default(),
            kept: Mutex::default(),
        }
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Pushes a sample to every subscriber; those that must not miss it and have no room are given back.
    pub(crate) fn push(&self, body: &Arc<Body>, offered: &Qos) -> Vec<End> {
        self.published.add(1);
        let readers = self.keep_and_list_readers(body, offered);
        let full = |end: &&End| end.subscription.push(end.queued(body)).is_err();
        readers.iter().filter(full).cloned().collect()
    }

    /// One step under the lock: who joins before it is in the list, who joins after it finds the sample kept. The lock is
    /// free again when samples are pushed, because an inline reader runs there and may leave the topic.
    fn keep_and_list_readers(&self, body: &Arc<Body>, offered: &Qos) -> Arc<[End]> {
        let ends = self.ends.read().unwrap_or_else(PoisonError::into_inner);
        if offered.durability == Durability::TransientLocal {
            self.keep(body, offered.depth());
        }
        Arc::clone(&ends.subscriptions)
    }

    fn keep(&self, body: &Arc<Body>, depth: usize) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.len() >= depth {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(body));
    }

    /// Adds a reader; one that asked for transient local first gets what is kept.
    ///
    /// The write lock makes this one step for publishers: nothing is kept twice or missed in between.
    pub(crate) fn add_subscription(&self, subscription: &Arc<Subscription>) {
        let end = End { subscription: Arc::clone(subscription), account: Account::of_topic(&self.dropped) };
        let mut ends = self.ends.write().unwrap_or_else(PoisonError::into_inner);
        if subscription.qos.durability == Durability::TransientLocal {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            for body in kept.iter().skip(kept.len().saturating_sub(subscription.qos.depth())) {
                // A fresh queue has room for its own depth, but a pattern's fills from several topics.
                if let Err(refused) = subscription.enqueue(end.queued(body)) {
                    refused.account.count_drop(DropReason::QueueFull);
                }
            }
        }
        ends.subscriptions = ends.subscriptions.iter().chain([&end]).cloned().collect();
        drop(ends);
        subscription.wake();
    }

    pub(crate) fn remove_subscription(&self, subscription: &Arc<Subscription>) {
        let mut ends = self.ends.write().unwrap_or_else(PoisonError::into_inner);
        let others = ends.subscriptions.iter().filter(|other| !Arc::ptr_eq(&other.subscription, subscription));
        ends.subscriptions = others.cloned().collect();
    }

    pub(crate) fn remove_publisher(&self, id: u64) {
        self.ends.write().unwrap_or_else(PoisonError::into_inner).publishers.retain(|end| end.id != id);
    }

    pub(crate) fn snapshot(&self) -> TopicSnapshot {
        let ends = self.ends.read().unwrap_or_else(PoisonError::into_inner);
        TopicSnapshot {
            topic: self.name.to_string(),
            type_name: self.type_info.get().map(|info| info.full_name().to_owned()),
            publishers: ends.publishers.iter().map(|end| end.owner.to_string()).collect(),
            published: self.published.value(),
            rate_hz: self.published.rate_hz(),
            dropped: self.dropped.value(),
            pool: self.pool.snapshot(),
            subscriptions: ends.subscriptions.iter().map(End::snapshot).collect(),
        }
    }
}
