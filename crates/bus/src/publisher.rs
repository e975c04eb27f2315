//! The writing end of a topic.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;

use viaduct_messages::Message;
use viaduct_units::Tai;

use crate::bus::Inner;
use crate::clock;
use crate::encoded::Encoded;
use crate::meta::{HopName, Meta};
use crate::pool::{Loan, LoanError};
use crate::qos::{Qos, Reliability};
use crate::sample::Body;
use crate::subscriber::{DropReason, End};
use crate::topic::Topic;
use crate::type_info::TypeInfo;

/// Why not every subscriber got a sample. Those that had room did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Reliable subscribers whose queue stayed full; each counted the drop.
    #[error("topic `{topic}`: the queue of {} stayed full", subscribers.join(", "))]
    QueueFull {
        /// The topic.
        topic: String,
        /// The components that missed the sample.
        subscribers: Vec<String>,
    },
}

/// Publishes messages of type `M` on one topic.
pub struct Publisher<M> {
    inner: UntypedPublisher,
    message: PhantomData<fn(M)>,
}

impl<M: Message> Publisher<M> {
    pub(crate) fn new(inner: UntypedPublisher) -> Self {
        Self { inner, message: PhantomData }
    }

    /// Lends a buffer from the topic's pool, to be filled in place.
    ///
    /// # Errors
    /// The pool's buffers are all in use, or the length is more than one of them has.
    pub fn loan(&self, length: usize) -> Result<Loan, LoanError> {
        self.inner.topic.pool.lend(&self.inner.topic.name, length)
    }

    /// Publishes a message that has its origin here, now. Waits where a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// A reliable subscriber did not get it.
    pub fn publish(&self, message: M) -> Result<(), PublishError> {
        self.publish_from(&Meta::from_origin(clock::tai()), message)
    }

    /// Publishes a message that was made from another one: it inherits the cause's origin and stamps.
    ///
    /// # Errors
    /// A reliable subscriber did not get it.
    pub fn publish_from(&self, cause: &Meta, message: M) -> Result<(), PublishError> {
        self.inner.deliver(self.body(cause, message), Wait::Block)
    }

    /// Publishes without ever waiting, for `async` code and for those who would rather lose than wait.
    ///
    /// # Errors
    /// A reliable subscriber's queue is full now.
    pub fn try_publish_from(&self, cause: &Meta, message: M) -> Result<(), PublishError> {
        self.inner.deliver(self.body(cause, message), Wait::Never)
    }

    /// Publishes and gives way to other tasks while a reliable subscriber's queue is full.
    pub async fn publish_async(&self, cause: &Meta, message: M) {
        self.inner.deliver_async(self.body(cause, message)).await;
    }

    fn body(&self, cause: &Meta, message: M) -> Body {
        let UntypedPublisher { topic, type_info, .. } = &self.inner;
        Body::typed(Arc::clone(&topic.name), Arc::clone(type_info), self.inner.meta(cause), Arc::new(message))
    }
}

/// How long a publisher waits for a reliable subscriber.
#[derive(Clone, Copy)]
enum Wait {
    Block,
    Never,
}

/// Publishes octets on one topic, of a type that this binary need not know.
pub struct UntypedPublisher {
    pub(crate) id: u64,
    pub(crate) topic: Arc<Topic>,
    pub(crate) type_info: Arc<TypeInfo>,
    pub(crate) qos: Qos,
    pub(crate) hop: HopName,
    pub(crate) bus: Arc<Inner>,
}

impl UntypedPublisher {
    /// Publishes an encoded message that was made from another one. Waits where a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// A reliable subscriber did not get it.
    pub fn publish_from(&self, cause: &Meta, message: Encoded) -> Result<(), PublishError> {
        self.deliver(self.body(cause, message), Wait::Block)
    }

    /// The same, without ever waiting.
    ///
    /// # Errors
    /// A reliable subscriber's queue is full now.
    pub fn try_publish_from(&self, cause: &Meta, message: Encoded) -> Result<(), PublishError> {
        self.deliver(self.body(cause, message), Wait::Never)
    }

    /// Publishes and gives way to other tasks while a reliable subscriber's queue is full.
    pub async fn publish_async(&self, cause: &Meta, message: Encoded) {
        self.deliver_async(self.body(cause, message)).await;
    }

    fn body(&self, cause: &Meta, message: Encoded) -> Body {
        Body::encoded(Arc::clone(&self.topic.name), Arc::clone(&self.type_info), self.meta(cause), message)
    }

    /// The cause's meta with this publisher's stamp; the hop up to here is recorded.
    fn meta(&self, cause: &Meta) -> Meta {
        let now = clock::now();
        let mut meta = *cause;
        self.record_hop(&meta, now.tai);
        meta.stamp(self.hop, now.tai);
        meta.published = now.mono;
        meta.sequence = self.topic.next_sequence();
        meta
    }

    fn record_hop(&self, cause: &Meta, now: Tai) {
        let last = cause.last();
        self.bus.stats.record_hop(last.hop, self.hop, now.since(last.at));
    }

    fn deliver(&self, body: Body, wait: Wait) -> Result<(), PublishError> {
        let body = Arc::new(body);
        let full = self.topic.push(&body, &self.qos);
        let missed: Vec<String> = full
            .iter()
            .filter(|end| !deliver_late(end, &body, &wait))
            .map(|end| end.subscription.owner.to_string())
            .collect();
        if missed.is_empty() {
            Ok(())
        } else {
            Err(PublishError::QueueFull { topic: self.topic.name.to_string(), subscribers: missed })
        }
    }

    async fn deliver_async(&self, body: Body) {
        let body = Arc::new(body);
        for end in self.topic.push(&body, &self.qos) {
            poll_fn(|context| {
                let pushed = end.subscription.poll_push(end.queued(&body), context);
                if pushed.is_ok() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }
}

/// Second try for a reliable subscriber that had no room; whether it got the sample.
fn deliver_late(end: &End, body: &Arc<Body>, wait: &Wait) -> bool {
    let block = match (wait, end.subscription.qos.reliability) {
        (Wait::Block, Reliability::Reliable { block }) => block,
        _ => std::time::Duration::ZERO,
    };
    match end.subscription.push_blocking(end.queued(body), block) {
        Ok(()) => true,
        Err(refused) => {
            refused.account.count_drop(DropReason::QueueFull);
            false
        }
    }
}

impl Drop for UntypedPublisher {
    fn drop(&mut self) {
        self.topic.remove_publisher(self.id);
    }
}
