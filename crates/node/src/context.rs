//! The interface of a node to its components: while they start, and in each callback.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use viaduct_bus::{
    Bus, Counter, Events, Gauge, GroupBuilder, Hop, OpenError, Publisher, Qos, QosEvent, Sample, SchedulingError,
    Subscriber, TypeInfo, UntypedPublisher, UntypedSample, UntypedSubscriber,
};
use viaduct_messages::Message;
use viaduct_units::Now;

use crate::component::Edge;
use crate::listen::{Gate, GateLimits};
use crate::running::{FailureCause, Failures, IoTask};
use crate::stop::Stop;

/// A component's view of its node while it starts.
pub struct Context<C> {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Edge>,
    pub(crate) bus: Bus,
    pub(crate) runtime: Handle,
    pub(crate) stop: Stop,
    pub(crate) failures: Failures,
    pub(crate) group: GroupBuilder<C>,
    pub(crate) tasks: Vec<IoTask>,
    pub(crate) threads: Vec<std::thread::JoinHandle<()>>,
}

impl<C: Send + 'static> Context<C> {
    /// Returns the component's name in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the node's name.
    #[must_use]
    pub fn node(&self) -> &str {
        self.bus.node()
    }

    /// Returns the node's bus, for reading its statistics.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Returns a number that differs between components and is the same at every start, to seed machines with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        // FNV-1a, which is the same on every machine and in every version.
        let bytes = self.bus.node().bytes().chain([0]).chain(self.name.bytes());
        bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }

    /// Returns the input of a setting as the graph has resolved it, or `None` if [`Component::edges`](crate::Component::edges) declares
    /// none.
    #[must_use]
    pub fn input(&self, setting: &str) -> Option<&Edge> {
        self.inputs.iter().find(|input| input.setting == setting)
    }

    /// Opens a topic for publishing.
    ///
    /// # Errors
    /// Returns the errors of [`Bus::publisher`].
    pub fn publisher<M: Message>(&self, topic: &str, qos: Qos) -> Result<Publisher<M>, OpenError> {
        self.bus.publisher(topic, qos, &self.name)
    }

    /// Opens a topic for publishing encoded messages of a type that this binary need not know.
    ///
    /// # Errors
    /// Returns the errors of [`Bus::publisher_untyped`].
    pub fn publisher_untyped(&self, topic: &str, info: TypeInfo, qos: Qos) -> Result<UntypedPublisher, OpenError> {
        self.bus.publisher_untyped(topic, info, qos, &self.name)
    }

    /// Opens a topic or a pattern for reading.
    ///
    /// # Errors
    /// Returns the errors of [`Bus::subscribe`].
    pub fn subscribe<M: Message>(&self, pattern: &str, qos: Qos) -> Result<Subscriber<M>, OpenError> {
        self.bus.subscribe(pattern, qos, &self.name)
    }

    /// Opens a topic or a pattern for reading without knowing the type.
    ///
    /// # Errors
    /// Returns the errors of [`Bus::subscribe_untyped`].
    pub fn subscribe_untyped(&self, pattern: &str, qos: Qos) -> Result<UntypedSubscriber, OpenError> {
        self.bus.subscribe_untyped(pattern, qos, &self.name)
    }

    /// Calls `callback` with each sample of the subscription.
    ///
    /// The callback receives the component, the sample, and a [`CallbackContext`] with the time. It must not block.
    ///
    /// # Examples
    /// A component that publishes its input again, with the origin and the hops of the input:
    ///
    /// ```
    /// use viaduct_bus::Qos;
    /// use viaduct_messages::foxglove::Log;
    /// # use viaduct_node::{Component, Context, Edges, StartError};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct RelaySettings {}
    /// # struct Relay;
    ///
    /// # impl Component for Relay {
    /// # type Settings = RelaySettings;
    /// # fn edges(_: &RelaySettings) -> Edges { Edges::default() }
    /// fn start(_settings: RelaySettings, context: &mut Context<Relay>) -> Result<Relay, StartError> {
    ///     let output = context.publisher::<Log>("log/relayed", Qos::ros_default())?;
    ///     let input = context.subscribe::<Log>("log", Qos::ros_default())?;
    ///     context.on(input, move |_relay, sample, out| {
    ///         if let Err(error) = output.publish_from(sample.meta(), (*sample).clone()) {
    ///             out.fail(error);
    ///         }
    ///     });
    ///     Ok(Relay)
    /// }
    /// # }
    /// ```
    pub fn on<M, F>(&mut self, subscriber: Subscriber<M>, mut callback: F)
    where
        M: Message,
        F: FnMut(&mut C, Sample<M>, &mut CallbackContext) + Send + 'static,
    {
        let failures = self.failures.clone();
        self.group.on(subscriber, move |component, sample, now| {
            CallbackContext::lend(&failures, now, |out| callback(component, sample, out));
        });
    }

    /// Calls `callback` with each sample of topics of any type.
    pub fn on_untyped<F>(&mut self, subscriber: UntypedSubscriber, mut callback: F)
    where
        F: FnMut(&mut C, UntypedSample, &mut CallbackContext) + Send + 'static,
    {
        let failures = self.failures.clone();
        self.group.on_untyped(subscriber, move |component, sample, now| {
            CallbackContext::lend(&failures, now, |out| callback(component, sample, out));
        });
    }

    /// Calls `callback` with each event of the quality of service of a publisher or a subscriber.
    pub fn on_event<F>(&mut self, events: Events, mut callback: F)
    where
        F: FnMut(&mut C, QosEvent, &mut CallbackContext) + Send + 'static,
    {
        let failures = self.failures.clone();
        self.group.on_event(events, move |component, event, now| {
            CallbackContext::lend(&failures, now, |out| callback(component, event, out));
        });
    }

    /// Calls `callback` every `period`.
    pub fn every<F>(&mut self, period: Duration, mut callback: F)
    where
        F: FnMut(&mut C, &mut CallbackContext) + Send + 'static,
    {
        let failures = self.failures.clone();
        self.group
            .every(period, move |component, now| CallbackContext::lend(&failures, now, |out| callback(component, out)));
    }

    /// Runs async I/O beside the callbacks. The future ends after [`Stop::asked`] returns; an error from it stops the
    /// node.
    pub fn spawn_io<F, E>(&mut self, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display + 'static,
    {
        let failures = self.failures.clone();
        let running = self.runtime.spawn(future_as_text(future));
        let watched = running.abort_handle();
        let watcher = self.runtime.spawn(async move {
            match running.await {
                Ok(Ok(())) => {}
                Ok(Err(cause)) => failures.report(FailureCause::Io(cause)),
                Err(ended) if ended.is_panic() => {
                    failures.report(FailureCause::Panic(panic_text(&*ended.into_panic())));
                }
                Err(_) => {}
            }
        });
        self.tasks.push(IoTask { watcher, watched });
    }

    /// Runs blocking I/O on a separate thread. The thread checks [`Stop::is_asked`] between two waits of at most 100
    /// ms; an error from it stops the node.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn spawn_thread<F, E>(&mut self, body: F) -> Result<(), SchedulingError>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
        E: std::fmt::Display,
    {
        let failures = self.failures.clone();
        let guarded = move || match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => failures.report(FailureCause::Io(cause.to_string())),
            Err(panic) => failures.report(FailureCause::Panic(panic_text(&*panic))),
        };
        let thread = std::thread::Builder::new().name(self.name.clone()).spawn(guarded);
        self.threads.push(thread.map_err(|cause| SchedulingError::Spawn { name: self.name.clone(), cause })?);
        Ok(())
    }

    /// Returns the signal that requests the end of the component.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Returns a counter of this component.
    #[must_use]
    pub fn counter(&self, name: &str) -> Counter {
        self.bus.counter(&self.name, name, None)
    }

    /// Returns a counter of this component for one of several reasons.
    #[must_use]
    pub fn counter_for(&self, name: &str, reason: &str) -> Counter {
        self.bus.counter(&self.name, name, Some(reason))
    }

    /// Returns what admits the connections of a listener of this component.
    #[must_use]
    pub fn gate(&self, limits: GateLimits) -> Gate {
        Gate::new(&self.bus, &self.name, limits)
    }

    /// Returns a gauge of this component. Its name ends with its unit: `round_trip_ms`.
    #[must_use]
    pub fn gauge(&self, name: &str) -> Gauge {
        self.bus.gauge(&self.name, name, None)
    }

    /// Returns a gauge of one part of this component, for example a camera.
    #[must_use]
    pub fn gauge_for(&self, name: &str, part: &str) -> Gauge {
        self.bus.gauge(&self.name, name, Some(part))
    }

    /// Returns the hop at which this component measures messages that it does not publish again.
    #[must_use]
    pub fn hop(&self) -> Hop {
        self.bus.hop(&self.name)
    }

    /// Returns the hop at which one part of this component, for example a camera, measures messages.
    #[must_use]
    pub fn hop_for(&self, part: &str) -> Hop {
        self.bus.hop(part)
    }
}

/// The state that a callback gets beside its message.
pub struct CallbackContext {
    /// Time at which the callback began.
    pub now: Now,
    failure: Option<String>,
}

impl CallbackContext {
    fn lend(failures: &Failures, now: Now, call: impl FnOnce(&mut Self)) {
        let mut out = Self { now, failure: None };
        call(&mut out);
        if let Some(cause) = out.failure {
            failures.report(FailureCause::Io(cause));
        }
    }

    /// Ends the node after this callback, because the component cannot continue.
    pub fn fail(&mut self, cause: impl std::fmt::Display) {
        self.failure = Some(cause.to_string());
    }
}

async fn future_as_text<E: std::fmt::Display>(future: impl Future<Output = Result<(), E>>) -> Result<(), String> {
    future.await.map_err(|cause| cause.to_string())
}

/// Returns the text of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}
