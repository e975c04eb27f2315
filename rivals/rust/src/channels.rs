//! Rivals that are channels between two threads. The message is an `Arc` of a buffer from a pool.

use disruptor::{
    BusySpin, EventPoller, Polling, Producer, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
};
use tokio::sync::broadcast::error::RecvError;

use crate::measure::{DEPTH, Inlet, Message, Outlet};

impl Outlet for crossbeam_channel::Sender<Message> {
    fn send(&mut self, message: Message) -> bool {
        crossbeam_channel::Sender::send(self, message).is_ok()
    }
}

impl Inlet for crossbeam_channel::Receiver<Message> {
    fn recv(&mut self) -> Option<Message> {
        crossbeam_channel::Receiver::recv(self).ok()
    }
}

impl Outlet for kanal::Sender<Message> {
    fn send(&mut self, message: Message) -> bool {
        kanal::Sender::send(self, message).is_ok()
    }
}

impl Inlet for kanal::Receiver<Message> {
    fn recv(&mut self) -> Option<Message> {
        kanal::Receiver::recv(self).ok()
    }
}

impl Outlet for flume::Sender<Message> {
    fn send(&mut self, message: Message) -> bool {
        flume::Sender::send(self, message).is_ok()
    }
}

impl Inlet for flume::Receiver<Message> {
    fn recv(&mut self) -> Option<Message> {
        flume::Receiver::recv(self).ok()
    }
}

impl Outlet for thingbuf::mpsc::blocking::Sender<Option<Message>> {
    fn send(&mut self, message: Message) -> bool {
        thingbuf::mpsc::blocking::Sender::send(self, Some(message)).is_ok()
    }
}

impl Inlet for thingbuf::mpsc::blocking::Receiver<Option<Message>> {
    fn recv(&mut self) -> Option<Message> {
        thingbuf::mpsc::blocking::Receiver::recv(self).flatten()
    }
}

impl Outlet for tokio::sync::broadcast::Sender<Message> {
    fn send(&mut self, message: Message) -> bool {
        tokio::sync::broadcast::Sender::send(self, message).is_ok()
    }
}

impl Inlet for tokio::sync::broadcast::Receiver<Message> {
    /// Continues after overwritten messages, which are counted as lost.
    fn recv(&mut self) -> Option<Message> {
        loop {
            match self.blocking_recv() {
                Ok(message) => return Some(message),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// The reader of a disruptor.
pub type Poller = EventPoller<Option<Message>, SingleProducerBarrier>;

/// The writer of a disruptor.
pub type Ring = SingleProducer<Option<Message>, SingleConsumerBarrier>;

/// Creates a disruptor of few slots. A slot holds its message until it is reused, so fewer slots need fewer buffers.
pub fn disruptor() -> (Ring, Poller) {
    let (poller, builder) = disruptor::build_single_producer(DEPTH / 4, || None, BusySpin).new_event_poller();
    (builder.build(), poller)
}

impl Outlet for Ring {
    fn send(&mut self, message: Message) -> bool {
        self.publish(|slot| *slot = Some(message));
        true
    }
}

impl Inlet for Poller {
    const POLLS: bool = true;

    fn recv(&mut self) -> Option<Message> {
        loop {
            match self.take(1) {
                Ok(mut events) => {
                    if let Some(message) = (&mut events).next() {
                        return message.clone();
                    }
                }
                Err(Polling::NoEvents) => std::hint::spin_loop(),
                Err(Polling::Shutdown) => return None,
            }
        }
    }
}
