//! Delivery of new messages to live clients: one bounded queue per client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::Notify;

use crate::cache::{Entry, Filter};
use crate::sync::{lock, read, write};

/// The clients of the live streams.
#[derive(Debug)]
pub(crate) struct Live {
    clients_max: usize,
    queue_max: usize,
    clients: RwLock<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    list: Vec<Arc<Client>>,
    /// `true` after the server has stopped: further subscriptions are rejected.
    closed: bool,
}

#[derive(Debug)]
struct Client {
    filter: Filter,
    queue: Mutex<Queue>,
    /// Notified when the queue changes.
    wake: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Arc<Entry>>,
    /// Messages dropped because the queue was full, not yet reported to the client.
    lost: u64,
    closed: bool,
}

/// An item that a client receives.
#[derive(Clone, Debug)]
pub(crate) enum Delivery {
    /// A message.
    Message(Arc<Entry>),
    /// Number of messages lost before the next one.
    Lost(u64),
}

/// A client's subscription. Dropping it frees the place for another client.
#[derive(Debug)]
pub(crate) struct Subscription {
    live: Arc<Live>,
    client: Arc<Client>,
}

/// The maximum number of clients is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Live {
    pub(crate) fn new(clients_max: usize, queue_max: usize) -> Self {
        Self { clients_max, queue_max: queue_max.max(1), clients: RwLock::default() }
    }

    /// Returns the capacity of a client's queue.
    pub(crate) fn queue_max(&self) -> usize {
        self.queue_max
    }

    /// Adds a client, which receives the messages published from now on.
    ///
    /// # Errors
    /// Returns [`Full`] if there are too many clients, or if the server stops.
    pub(crate) fn subscribe(self: &Arc<Self>, filter: Filter) -> Result<Subscription, Full> {
        let mut clients = write(&self.clients);
        if clients.closed || clients.list.len() >= self.clients_max {
            return Err(Full);
        }
        let client = Arc::new(Client { filter, queue: Mutex::default(), wake: Notify::new() });
        clients.list.push(client.clone());
        Ok(Subscription { live: self.clone(), client })
    }

    /// Enqueues the message for each client whose filter admits it.
    pub(crate) fn publish(&self, entry: &Arc<Entry>) {
        for client in read(&self.clients).list.iter().filter(|client| client.filter.admits(entry)) {
            client.push(entry, self.queue_max);
        }
    }

    /// Ends every stream and rejects further clients.
    pub(crate) fn close(&self) {
        let mut clients = write(&self.clients);
        clients.closed = true;
        for client in &clients.list {
            lock(&client.queue).closed = true;
            client.wake.notify_one();
        }
    }

    /// Returns the present number of clients.
    pub(crate) fn clients(&self) -> usize {
        read(&self.clients).list.len()
    }
}

impl Client {
    fn push(&self, entry: &Arc<Entry>, queue_max: usize) {
        let mut queue = lock(&self.queue);
        if queue.entries.len() >= queue_max {
            queue.entries.pop_front();
            queue.lost += 1;
        }
        queue.entries.push_back(entry.clone());
        drop(queue);
        self.wake.notify_one();
    }
}

impl Queue {
    /// Returns the next delivery, or `None` if the queue is empty. Lost messages come first, because they are older than all
    /// that are queued.
    fn take(&mut self) -> Option<Delivery> {
        match std::mem::take(&mut self.lost) {
            0 => self.entries.pop_front().map(Delivery::Message),
            lost => Some(Delivery::Lost(lost)),
        }
    }
}

impl Subscription {
    /// Waits for the next delivery. Returns `None` when the stream has ended.
    pub(crate) async fn next(&self) -> Option<Delivery> {
        loop {
            {
                let mut queue = lock(&self.client.queue);
                if queue.closed {
                    return None;
                }
                if let Some(delivery) = queue.take() {
                    return Some(delivery);
                }
            }
            self.client.wake.notified().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        write(&self.live.clients).list.retain(|client| !Arc::ptr_eq(client, &self.client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::message;
    use crate::cache::{CacheLimits, MemoryCache};
    use viaduct_messages::viaduct::its::MessageType;

    fn entry(cache: &MemoryCache, station: u32) -> Arc<Entry> {
        cache.insert(&message(station, MessageType::Cam, 0, None)).unwrap()
    }

    #[tokio::test]
    async fn a_slow_client_loses_the_oldest_messages_and_receives_their_number() {
        let (live, cache) = (Arc::new(Live::new(2, 3)), MemoryCache::new(CacheLimits::default()));
        let slow = live.subscribe(Filter::ALL).unwrap();
        let picky = live.subscribe(Filter { station: Some(4), ..Filter::ALL }).unwrap();
        for station in 1..=5 {
            live.publish(&entry(&cache, station));
        }
        assert!(matches!(slow.next().await, Some(Delivery::Lost(2))));
        for station in 3..=5 {
            let Some(Delivery::Message(entry)) = slow.next().await else { panic!("no message {station}") };
            assert_eq!(entry.station_id(), station);
        }
        assert!(matches!(picky.next().await, Some(Delivery::Message(entry)) if entry.station_id() == 4));
    }

    #[tokio::test]
    async fn places_are_limited_freed_and_closed() {
        let live = Arc::new(Live::new(1, 3));
        let first = live.subscribe(Filter::ALL).unwrap();
        assert_eq!(live.subscribe(Filter::ALL).unwrap_err(), Full);
        drop(first);
        let second = live.subscribe(Filter::ALL).unwrap();
        live.close();
        assert!(second.next().await.is_none());
        drop(second);
        assert_eq!(live.subscribe(Filter::ALL).unwrap_err(), Full);
        assert_eq!(live.clients(), 0);
    }
}
