//! The in-process message bus: topics, samples, buffer pools, quality of service, executors, and the measuring of all
//! of it.
//!
//! Publishing pushes straight into each subscriber's bounded queue and wakes that subscriber's executor: one hop and no
//! dispatcher thread. A [`Sample`] is opaque: its body is a shared value or encoded octets, and one becomes the other at
//! most once, on the reader's thread, so a component that knows only type names can relay a type that the binary has
//! never heard of.
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
//! What is not here: sockets, files, configuration, tokio. The clock is read here and nowhere below ([`clock::now`]).

mod bus;
pub mod clock;
mod encoded;
mod executor;
mod meta;
mod pool;
mod publisher;
mod qos;
mod sample;
mod stats;
mod subscriber;
mod sync;
mod topic;
mod type_info;

pub use bus::{Bus, OpenError};
pub use encoded::Encoded;
pub use executor::{
    CallbackGroup, CallbackPanic, CallbackSnapshot, Executor, GroupBuilder, Priority, Scheduling, SchedulingError,
    SchedulingPolicy, TimerSnapshot, Timers, TooManyGroups,
};
pub use meta::{HOPS_MAX, HopName, HopStamp, Meta};
pub use pool::{Loan, LoanError};
pub use publisher::{PublishError, Publisher, UntypedPublisher};
pub use qos::{Durability, History, Qos, QosMismatch, Reliability};
pub use sample::{Sample, UntypedSample};
pub use stats::{
    BusSnapshot, Counter, CounterSnapshot, Hop, HopSnapshot, Percentiles, SubscriptionSnapshot, TopicSnapshot,
};
pub use subscriber::{DropReason, Recv, Subscriber, UntypedSubscriber};
pub use type_info::{TypeInfo, Undecodable};
