//! The producer: a thread on another core than the publisher's that fills messages before the tick, as the driver of
//! a sensor does.

use std::hint::black_box;
use std::ops::DerefMut;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::BenchError;
use crate::floor::{self, Pace, WARM_UP};
use crate::sys::{self, Placement, ThreadUsage};

/// A thread that fills one buffer at a time.
pub(super) struct Producer<B> {
    empty: SyncSender<B>,
    full: Receiver<B>,
    thread: JoinHandle<Result<ThreadUsage, BenchError>>,
}

impl<B: DerefMut<Target = [u8]> + Send + 'static> Producer<B> {
    pub(super) fn start(content: Vec<u8>, placement: &Placement) -> Result<Self, BenchError> {
        let (empty, to_fill) = sync_channel::<B>(1);
        let (filled, full) = sync_channel(1);
        let work = move || {
            let mut warm = ThreadUsage::now();
            for (number, mut buffer) in to_fill.into_iter().enumerate() {
                if number == WARM_UP {
                    warm = ThreadUsage::now();
                }
                fill(&mut buffer, &content);
                if filled.send(buffer).is_err() {
                    break;
                }
            }
            ThreadUsage::now().since(warm)
        };
        Ok(Self { empty, full, thread: floor::spawn_placed("bench-producer", placement, work)? })
    }

    /// Passes a buffer to the producer.
    pub(super) fn refill(&self, buffer: B) -> Result<(), BenchError> {
        self.empty.send(buffer).map_err(Self::ended)
    }

    /// Waits until the last buffer is full and returns it.
    pub(super) fn take(&self) -> Result<B, BenchError> {
        self.full.recv().map_err(Self::ended)
    }

    /// Ends the thread. Returns its cost after the warm-up.
    pub(super) fn finish(self) -> Result<ThreadUsage, BenchError> {
        drop((self.empty, self.full));
        floor::join("bench-producer", self.thread)?
    }

    fn ended<E>(_: E) -> BenchError {
        BenchError::broken("the producer", "its thread has ended")
    }
}

pub(super) fn fill(buffer: &mut [u8], content: &[u8]) {
    black_box(buffer).copy_from_slice(black_box(content));
}

/// A pace that has one buffer filled before each tick, as a publisher of loans does.
pub(super) struct ProducerPace {
    producer: Producer<Vec<u8>>,
    buffer: Vec<u8>,
}

impl ProducerPace {
    pub(super) fn start(bytes: usize, placement: &Placement) -> Result<Self, BenchError> {
        let content = vec![0x5A_u8; bytes];
        Ok(Self { buffer: content.clone(), producer: Producer::start(content, placement)? })
    }
}

impl Pace for ProducerPace {
    fn wait(&mut self, tick: Duration) -> Result<Duration, BenchError> {
        self.producer.refill(std::mem::take(&mut self.buffer))?;
        sys::sleep_until(tick);
        let woke = sys::monotonic();
        self.buffer = self.producer.take()?;
        Ok(woke)
    }

    fn end(self) -> Result<(), BenchError> {
        self.producer.finish().map(drop)
    }
}
