//! The task of the client.

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};
use viaduct_bus::{Counter, Gauge, Meta, Qos, UntypedSample, UntypedSubscriber, clock};
use viaduct_coap::codec::{Code, OptionNumber};
use viaduct_coap::{Endpoint, Event, Failure, Request, RequestId, Response};
use viaduct_messages::viaduct::its::ReplyTo;
use viaduct_node::{Component, Context, StartError, Stop};
use viaduct_v2x_json::dialect::Dialect;

use super::{MethodSetting, OFFERED, ObserveSettings, RouteSettings, Settings};
use crate::coap;
use crate::encoding::Encoder;
use crate::machine_counters::MachineCounters;
use crate::mqtt::typed::Sink;
use crate::net::port::{Port, earlier};
use crate::net::timer::PreciseTimer;

/// Size of the kernel's receive buffer in bytes.
const RECEIVE_BUFFER_OCTETS: usize = 1 << 20;
/// Time without a response after which the silence is logged.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Characters of the server's text about an error in the log.
const TEXT_CHARACTERS_MAX: usize = 200;
/// Interval at which counters are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);
/// Waits before an observation begins again, the first and the longest.
const RETRY_S: [u64; 2] = [1, 30];
/// Maximum time for a response that follows the acknowledgement, or a request that is not acknowledged.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum time for the answers to the last requests when the node stops. The node as a whole has two seconds.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// The task.
pub(super) struct Runner {
    server: SocketAddr,
    port: Port,
    endpoint: Endpoint,
    routes: Vec<Route>,
    /// Route that is asked first for its next sample.
    first: usize,
    observed: Vec<Observed>,
    timer: PreciseTimer,
    tick: Interval,
    stop: Stop,
    counters: Counters,
    name: String,
    /// Time since which a request waits and no response has arrived.
    waiting: Option<Instant>,
    /// `true` after the silence of the server was logged.
    is_silent: bool,
}

struct Route {
    settings: RouteSettings,
    subscriber: UntypedSubscriber,
    encoder: Encoder,
    /// The request that is not answered yet.
    request: Option<RequestId>,
    /// `true` after a rejected request was logged.
    is_rejected: bool,
}

/// A resource of the server.
struct Observed {
    settings: ObserveSettings,
    sink: Sink,
    request: Option<RequestId>,
    /// Time at which the observation begins again, and the next wait in seconds.
    retry: (Instant, u64),
    /// `true` after the rejected observation was logged.
    is_rejected: bool,
}

struct Counters {
    endpoint: MachineCounters<Endpoint>,
    taken: Counter,
    delivered: Counter,
    unencodable: Counter,
    errors: [Counter; 2],
    failures: [Counter; Failure::ALL.len()],
    busy: Counter,
    notifications: Counter,
    published: Counter,
    refused: Counter,
    observations_failed: Counter,
    round_trip: Gauge,
}

impl Runner {
    /// Opens the socket and the topics. Must be called inside the runtime.
    pub(super) fn open<C: Component>(settings: &Settings, context: &Context<C>) -> Result<Self, StartError> {
        let mut tick = tokio::time::interval(COUNT_PERIOD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let machine = viaduct_coap::Settings {
            retransmission: settings.timers.coap(),
            window: settings.window,
            q_block: true,
            response_timeout: RESPONSE_TIME_MAX,
            ..viaduct_coap::Settings::default()
        };
        Ok(Self {
            server: settings.server,
            port: Port::client(settings.server, RECEIVE_BUFFER_OCTETS, settings.dtls.as_ref(), context)?,
            endpoint: Endpoint::new(machine, context.seed()),
            routes: settings.routes.iter().map(|route| Route::open(route, context)).collect::<Result<_, _>>()?,
            first: 0,
            observed: settings.observe.iter().map(|one| Observed::open(one, context)).collect::<Result<_, _>>()?,
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
            tick,
            stop: context.stop(),
            counters: Counters::open(context),
            name: context.name().to_owned(),
            waiting: None,
            is_silent: false,
        })
    }

    /// Runs until the stop of the component is requested.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let (mut deadline, mut payloads) = (None, Vec::new());
        loop {
            self.timer.set(earlier(self.endpoint.poll_timeout(), self.port.poll_timeout()))?;
            let is_stopping = deadline.is_some();
            if is_stopping && self.routes.iter().all(|route| route.request.is_none()) {
                break;
            }
            tokio::select! {
                biased;
                () = at(deadline) => break,
                () = self.stop.asked(), if !is_stopping => deadline = Some(Instant::now() + FLUSH_TIME_MAX),
                arrived = self.port.receive(&mut payloads) => arrived?,
                expired = self.timer.expired() => {
                    expired?;
                    let now = clock::mono();
                    self.port.handle_timeout(now, &mut payloads);
                    self.endpoint.handle_timeout(now);
                }
                taken = next_sample(&mut self.routes, &mut self.first), if !is_stopping => match taken {
                    Some((index, sample)) => self.send(index, &sample),
                    None => deadline = Some(Instant::now() + FLUSH_TIME_MAX),
                },
                _ = self.tick.tick() => {
                    self.observe();
                    self.check_silence();
                    self.sync_counters();
                }
            }
            for (from, payload) in payloads.drain(..) {
                self.endpoint.handle_datagram(clock::mono(), from, &payload);
            }
            self.settle();
        }
        for observed in &self.observed {
            if let Some(id) = observed.request {
                self.endpoint.cancel(clock::mono(), id);
            }
        }
        self.settle();
        self.sync_counters();
        Ok(())
    }

    /// Sends a sample.
    fn send(&mut self, index: usize, sample: &UntypedSample) {
        self.counters.taken.increment();
        let Some(route) = self.routes.get_mut(index) else { return };
        let Ok(payload) = route.encoder.encode((route.settings.encoding, Dialect::Viaduct), sample) else {
            return self.counters.unencodable.increment();
        };
        let format = coap::content_format(route.settings.encoding);
        let request = match route.settings.method {
            MethodSetting::Post => Request::post(&route.settings.to, format, payload),
            MethodSetting::Put => Request::put(&route.settings.to, format, payload),
        };
        let request = Request { confirmable: route.settings.confirm, ..request };
        match self.endpoint.request(clock::mono(), self.server, request) {
            Ok(id) => route.request = Some(id),
            Err(error) => {
                tracing::debug!(path = route.settings.to, %error, "a CoAP request is not sent");
                self.counters.busy.increment();
            }
        }
    }

    /// Begins the observations that have not begun.
    fn observe(&mut self) {
        for observed in self.observed.iter_mut().filter(|one| one.request.is_none() && one.retry.0 <= Instant::now()) {
            let accept = coap::content_format(observed.settings.encoding);
            let request = Request::get(&observed.settings.from).with_uint(OptionNumber::ACCEPT, accept.0.into());
            observed.request = self.endpoint.observe(clock::mono(), self.server, request).ok();
            observed.put_off();
        }
    }

    /// Handles the events of the machine and sends its datagrams.
    fn settle(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Response { id, response } => {
                    (self.waiting, self.is_silent) = (None, false);
                    self.answered(id, &response);
                }
                Event::Notification { id, response } => {
                    (self.waiting, self.is_silent) = (None, false);
                    self.notified(id, &response);
                }
                Event::Failed { id, failure } => self.failed(id, failure),
                Event::Request { id, .. } => {
                    let text = "this is a client";
                    self.endpoint.respond(clock::mono(), id, Response::diagnostic(Code::NOT_FOUND, text));
                }
                Event::ObservationEnded { .. } | Event::Pong { .. } => {}
            }
        }
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            self.port.push(to, datagram);
        }
        self.port.flush();
    }

    /// Handles the response to a request, or the end of an observation.
    fn answered(&mut self, id: RequestId, response: &Response) {
        if let Some(route) = self.routes.iter_mut().find(|route| route.request == Some(id)) {
            route.request = None;
            let [client_error, server_error] = &self.counters.errors;
            let counter = match response.code.class() {
                2 => &self.counters.delivered,
                4 => client_error,
                _ => server_error,
            };
            counter.increment();
            report_rejection((&self.name, &route.settings.to), response, &mut route.is_rejected);
            return;
        }
        self.notified(id, response);
        self.observation_ended(id);
    }

    /// Publishes the state of an observed resource.
    fn notified(&mut self, id: RequestId, response: &Response) {
        let Some(observed) = self.observed.iter_mut().find(|one| one.request == Some(id)) else { return };
        report_rejection((&self.name, &observed.settings.from), response, &mut observed.is_rejected);
        if response.code.class() != 2 {
            return;
        }
        observed.retry.1 = RETRY_S[0];
        self.counters.notifications.increment();
        match (observed.sink)(&response.payload, &Meta::from_origin(clock::tai()), ReplyTo::default()) {
            Ok(()) => self.counters.published.increment(),
            Err(refusal) => {
                tracing::debug!(path = observed.settings.from, %refusal, "the state of a resource is not published");
                self.counters.refused.increment();
            }
        }
    }

    /// Logs once that the server does not respond.
    fn check_silence(&mut self) {
        let waits =
            self.routes.iter().any(|route| route.request.is_some()) || self.observed.iter().any(Observed::waits);
        let since = self.waiting.filter(|_| waits).unwrap_or_else(Instant::now);
        self.waiting = waits.then_some(since);
        if since.elapsed() >= SILENCE_MAX && !std::mem::replace(&mut self.is_silent, true) {
            let (component, server) = (&self.name, self.server);
            tracing::warn!(component, %server, "the CoAP server does not respond; retrying");
        }
    }

    fn failed(&mut self, id: RequestId, failure: Failure) {
        if !std::mem::replace(&mut self.is_silent, true) {
            let (component, server, reason) = (&self.name, self.server, failure.label());
            tracing::warn!(component, %server, reason, "a CoAP request has no response; others are not logged until there is one");
        }
        if let Some(route) = self.routes.iter_mut().find(|route| route.request == Some(id)) {
            route.request = None;
            if let Some(counter) = self.counters.failures.get(failure as usize) {
                counter.increment();
            }
            return;
        }
        self.observation_ended(id);
    }

    fn observation_ended(&mut self, id: RequestId) {
        if let Some(observed) = self.observed.iter_mut().find(|one| one.request == Some(id)) {
            observed.request = None;
            self.counters.observations_failed.increment();
        }
    }

    fn sync_counters(&mut self) {
        self.port.sync_counters();
        self.counters.endpoint.sync(&self.endpoint);
        let round_trip = self.endpoint.round_trip(self.server);
        self.counters.round_trip.set(round_trip.map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0));
    }
}

/// Logs the first of several responses with an error about a path.
fn report_rejection((component, path): (&str, &str), response: &Response, is_rejected: &mut bool) {
    let is_error = response.code.class() != 2;
    if is_error && !*is_rejected {
        let (code, text) = (response.code, String::from_utf8_lossy(&response.payload));
        let text: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
        tracing::warn!(component, path, %code, text, "the CoAP server rejects a request; others for the path are not logged");
    }
    *is_rejected = is_error;
}

/// Waits until `deadline`, or forever if there is none.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next sample of a route whose request is answered. Returns `None` if the bus is closed.
async fn next_sample(routes: &mut [Route], first: &mut usize) -> Option<(usize, UntypedSample)> {
    poll_fn(|context| poll_sample(routes, first, context)).await
}

fn poll_sample(
    routes: &mut [Route],
    first: &mut usize,
    context: &mut TaskContext<'_>,
) -> Poll<Option<(usize, UntypedSample)>> {
    let (count, mut is_open) = (routes.len(), routes.is_empty());
    for index in (0..count).map(|offset| (*first + offset) % count) {
        let Some(route) = routes.get_mut(index) else { continue };
        if route.request.is_some() {
            is_open = true;
            continue;
        }
        // The future may be dropped after a poll: the subscription keeps the waker.
        match pin!(route.subscriber.recv()).poll(context) {
            Poll::Ready(Some(sample)) => {
                *first = index + 1;
                return Poll::Ready(Some((index, sample)));
            }
            Poll::Ready(None) => {}
            Poll::Pending => is_open = true,
        }
    }
    if is_open { Poll::Pending } else { Poll::Ready(None) }
}

impl Route {
    fn open<C: Component>(settings: &RouteSettings, context: &Context<C>) -> Result<Self, StartError> {
        let subscriber = context.subscribe_untyped(&settings.from, Qos::keep_last(settings.queue))?;
        Ok(Self {
            settings: settings.clone(),
            subscriber,
            encoder: Encoder::default(),
            request: None,
            is_rejected: false,
        })
    }
}

impl Observed {
    fn open<C: Component>(settings: &ObserveSettings, context: &Context<C>) -> Result<Self, StartError> {
        let opened = settings.r#type.open((&settings.to, OFFERED), settings.encoding, None, context)?;
        // `check` has rejected the types that have no sink.
        let sink = opened.ok_or_else(|| StartError::Other("an observed resource has no type".to_owned()))?;
        Ok(Self {
            settings: settings.clone(),
            sink,
            request: None,
            retry: (Instant::now(), RETRY_S[0]),
            is_rejected: false,
        })
    }

    /// Returns `true` if the observation was requested and no state has arrived. A state resets the wait between attempts.
    fn waits(&self) -> bool {
        self.request.is_some() && self.retry.1 > RETRY_S[0]
    }

    /// Sets the time of the next attempt, should this one fail.
    fn put_off(&mut self) {
        let (_, wait) = self.retry;
        self.retry = (Instant::now() + Duration::from_secs(wait), (2 * wait).min(RETRY_S[1]));
    }
}

impl Counters {
    fn open<C: Component>(context: &Context<C>) -> Self {
        let dropped = |reason| context.counter_for("dropped", reason);
        Self {
            endpoint: coap::endpoint_counters(context),
            taken: context.counter("taken"),
            delivered: context.counter("delivered"),
            unencodable: dropped("unencodable"),
            errors: ["client_error", "server_error"].map(dropped),
            failures: Failure::ALL.map(|failure| dropped(failure.label())),
            busy: dropped("not_sent"),
            notifications: context.counter("notifications"),
            published: context.counter("published"),
            refused: context.counter("notifications_refused"),
            observations_failed: context.counter("observations_failed"),
            round_trip: context.gauge("round_trip_ms"),
        }
    }
}
