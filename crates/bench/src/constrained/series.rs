//! A series of messages, one after the other or of many clients.

use std::time::{Duration, Instant};

use super::client::{Sender, Traffic};
use crate::error::BenchError;

/// The result of a series.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Time of each delivered message in microseconds, in the order of sending.
    pub(super) samples: Vec<f64>,
    pub(super) undelivered: u64,
    pub(super) traffic: Traffic,
    /// Time of connection, registration and the first message in microseconds, for MQTT-SN.
    pub(super) connect: Option<f64>,
    /// Time of the first message after that, or of a client without a connection, in microseconds. It is not among the samples.
    pub(super) first: Option<f64>,
}

impl Series {
    /// Joins the series of several clients.
    pub(super) fn join(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |mut sum, one| {
            sum.samples.extend(one.samples);
            sum.undelivered += one.undelivered;
            sum.traffic.datagrams += one.traffic.datagrams;
            sum.traffic.octets += one.traffic.octets;
            sum.traffic.retransmissions += one.traffic.retransmissions;
            sum
        })
    }

    pub(super) fn messages(&self) -> u64 {
        self.samples.len() as u64 + self.undelivered
    }
}

/// Sends messages one after the other, at most for a time.
pub(super) fn consecutive(sender: &mut dyn Sender, count: usize, time_max: Duration) -> Result<Series, BenchError> {
    let before = sender.traffic();
    let mut series = Series { samples: Vec::with_capacity(count), ..Series::default() };
    let deadline = Instant::now() + time_max;
    for _ in 0..count {
        match sender.send()? {
            Some(time) => series.samples.push(time.as_secs_f64() * 1e6),
            None => series.undelivered += 1,
        }
        if Instant::now() > deadline {
            break;
        }
    }
    let after = sender.traffic();
    series.traffic = Traffic {
        datagrams: after.datagrams - before.datagrams,
        octets: after.octets - before.octets,
        retransmissions: after.retransmissions - before.retransmissions,
    };
    Ok(series)
}

/// Sends messages of several clients at the same time, each one after the other. The clients are created by their number.
pub(super) fn parallel<S: Sender>(
    clients: usize,
    count: usize,
    time_max: Duration,
    create: impl Fn(usize) -> Result<S, BenchError> + Sync,
) -> Result<Series, BenchError> {
    let all: Result<Vec<Series>, BenchError> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let create = &create;
                scope.spawn(move || consecutive(&mut create(number)?, count, time_max))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    all.map(Series::join)
}
