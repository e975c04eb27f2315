//! The in-process message bus: topics, samples, buffer pools, quality of service, executors, and statistics of all of
//! them.
//!
//! A publisher enqueues each sample directly in the bounded queue of every subscriber and wakes that subscriber's
//! executor. There is no dispatcher thread. A [`Sample`] holds a shared value or its encoded bytes. One is converted to
//! the other at most once, on the reader's thread, so a component can relay types that are not compiled into it.
//!
//! ```
//! use viaduct_bus::{Bus, Qos};
//! use viaduct_messages::foxglove::Log;
//!
//! let bus = Bus::new("vehicle-1");
//! let logs = bus.subscribe::<Log>("log", Qos::keep_last(8), "reader")?;
//! let publisher = bus.publisher::<Log>("log", Qos::keep_last(8), "writer")?;
//! publisher.publish(Log { message: "hello".into(), ..Default::default() })?;
//! assert_eq!(logs.try_recv().map(|sample| sample.message.clone()).as_deref(), Some("hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate contains no sockets, no configuration and no tokio. It reads two files, the kernel's account of a pool's
//! pages and its boot identifier. [`clock`] is the only module of the project's lower layers that reads a clock.

mod bus;
mod callbacks;
pub mod clock;
mod deadline;
mod encoded;
mod endpoint;
mod error;
mod events;
mod executor;
mod futex;
mod latency;
mod limits;
mod lock;
pub mod memory;
mod meta;
mod monitor;
mod notify;
mod pool;
mod prefetch;
mod publisher;
mod qos;
mod queue;
mod registry;
mod sample;
mod scheduling;
mod stats;
mod subscriber;
mod subscription;
mod sync;
mod topic;
mod total;
mod type_info;
mod writer;

pub use bus::Bus;
pub use callbacks::{CallbackSnapshot, TimerSnapshot};
pub use clock::{Clock, ManualClock};
pub use encoded::Encoded;
pub use error::{ObserveError, OpenError, PublishError};
pub use events::{Events, QosEvent};
pub use executor::{CallbackGroup, CallbackPanic, Executor, GroupBuilder, Timers, TooManyGroups};
pub use latency::{LATENCY_BOUNDS_US, Percentiles};
pub use limits::OBSERVERS_MAX;
pub use meta::{ClockState, HOPS_MAX, HopKind, HopName, HopStamp, Meta};
pub use pool::{
    LOAN_BYTES_MAX, Loan, LoanError, POOL_BUFFERS_MAX, POOL_BYTES_MAX, PoolError, PoolSize, PoolSnapshot,
    RegionSnapshot,
};
pub use publisher::{Publisher, UntypedPublisher};
pub use qos::{BLOCK_DEFAULT, DEPTH_MAX, Durability, History, Liveliness, Qos, QosMismatch, Reliability};
pub use sample::{Sample, UntypedSample};
pub use scheduling::{Priority, Scheduling, SchedulingError, SchedulingPolicy};
pub use stats::{
    BusSnapshot, Counter, CounterSnapshot, Gauge, GaugeSnapshot, Hop, HopSnapshot, PublisherSnapshot,
    SubscriptionSnapshot, TopicSnapshot,
};
pub use subscriber::{Observer, Recv, Subscriber, UntypedSubscriber};
pub use subscription::DropReason;
pub use type_info::{MessageFormat, TypeInfo, Undecodable};
