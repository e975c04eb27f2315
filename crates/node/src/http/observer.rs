//! Readers for those who look at a bus from outside: few, and none that the data path waits for.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use viaduct_bus::{Bus, OpenError, Qos, UntypedSample, UntypedSubscriber};
use viaduct_messages::topic;

/// Observers that a node has at a time.
const OBSERVERS_MAX: usize = 4;

/// Places for observers of one bus.
#[derive(Clone)]
pub(super) struct Observers {
    bus: Bus,
    places: Arc<Semaphore>,
}

/// Reads the newest sample of a topic or pattern; nobody is woken and nobody waits for it. Its place is free again when
/// it is dropped.
pub(super) struct Observer {
    reader: UntypedSubscriber,
    _place: OwnedSemaphorePermit,
}

/// Why somebody may not observe.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ObserveError {
    /// The text is not a pattern.
    #[error(transparent)]
    Pattern(OpenError),
    /// The name is that of no topic. A pattern may wait for topics to come; a name would make the topic.
    #[error("the node has no topic `{0}`")]
    NoTopic(String),
    /// All places are taken.
    #[error("{OBSERVERS_MAX} observers look at this node already, and more would cost the data path; end one of them")]
    Full,
}

impl Observers {
    pub(super) fn of(bus: &Bus) -> Self {
        Self { bus: bus.clone(), places: Arc::new(Semaphore::new(OBSERVERS_MAX)) }
    }

    /// Opens a topic, or all topics of a pattern that are there or will come.
    pub(super) fn observe(&self, pattern: &str) -> Result<Observer, ObserveError> {
        topic::check_pattern(pattern).map_err(|error| ObserveError::Pattern(OpenError::Name(error)))?;
        if topic::is_name(pattern) && !self.bus.snapshot().topics.iter().any(|known| known.topic == pattern) {
            return Err(ObserveError::NoTopic(pattern.to_owned()));
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| ObserveError::Full)?;
        let opened = self.bus.subscribe_untyped(pattern, Qos::keep_last(1), "observer");
        Ok(Observer { reader: opened.map_err(ObserveError::Pattern)?, _place: place })
    }
}

impl Observer {
    /// The newest sample, where there is one that was not read yet.
    pub(super) fn try_recv(&self) -> Option<UntypedSample> {
        self.reader.try_recv()
    }
}
