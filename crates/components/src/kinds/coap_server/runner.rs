//! The task of the server: datagrams, samples and answers of the proxy.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};
use viaduct_bus::{Counter, clock};
use viaduct_coap::codec::Code;
use viaduct_coap::settings::{AddressCheck, Limits, Notifications};
use viaduct_coap::tcp::Connection;
use viaduct_coap::{EndReason, Endpoint, Event, ExchangeId, ObservationId, Response};
use viaduct_node::{Component, Context, StartError, Stop};

use super::proxy::{self, Answer, Forwarded};
use super::resources::Resources;
use super::service::{Outcome, Service, ServiceCounters, answered};
use super::tcp::{self, Arrived, Tcp};
use super::{AddressCheckSetting, LimitSettings, Settings};
use crate::coap;
use crate::machine_counters::MachineCounters;
use crate::net::port::{Arrival, Port, earlier};
use crate::net::timer::PreciseTimer;

/// Requests that are passed on at a time. More are answered 5.03.
const FORWARDED_MAX: usize = 64;
/// Octets over TCP that are handled before the requests in them are answered. They have at most 32 requests, fewer than may be
/// unanswered.
const PART_OCTETS: usize = 64;
/// Interval at which counters are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// The way on which a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp(tcp::Number),
}

/// The task.
pub(super) struct Runner {
    port: Port,
    endpoint: Endpoint,
    tcp: Tcp,
    service: Service,
    /// Observations by path.
    observers: HashMap<String, Vec<(Transport, ObservationId)>>,
    /// Requests that were passed on.
    forwarded: JoinSet<(Transport, ExchangeId, Answer)>,
    timer: PreciseTimer,
    count: Interval,
    stop: Stop,
    counters: Counters,
}

struct Counters {
    endpoint: MachineCounters<Endpoint>,
    observations: Counter,
    notifications: Counter,
    ended: [Counter; EndReason::ALL.len()],
}

impl Runner {
    /// Opens the socket and the topics. Must be called inside the runtime.
    pub(super) fn open<C: Component>(settings: &Settings, context: &Context<C>) -> Result<Self, StartError> {
        let port = Port::server(settings.listen, settings.receive_buffer_octets, settings.dtls.as_ref(), context)?;
        if let Ok(address) = port.local_address() {
            tracing::info!(component = context.name(), %address, "CoAP server listens");
        }
        let mut count = tokio::time::interval(COUNT_PERIOD);
        count.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let service = Service {
            resources: Resources::open(&settings.resources, context)?,
            proxy: settings.proxy.clone(),
            counters: ServiceCounters {
                requests: context.counter("requests"),
                published: context.counter("published"),
                forwarded: context.counter("forwarded"),
                responses: ["success", "client_error", "server_error"]
                    .map(|class| context.counter_for("responses", class)),
            },
        };
        let machine = machine(settings);
        let mut endpoint = Endpoint::new(machine.clone(), context.seed());
        endpoint.set_resources(service.links());
        Ok(Self {
            port,
            tcp: Tcp::open(settings.tcp, settings.limits.connections_max, machine, endpoint.totals(), context)?,
            endpoint,
            service,
            observers: HashMap::new(),
            forwarded: JoinSet::new(),
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
            count,
            stop: context.stop(),
            counters: Counters::open(context),
        })
    }

    /// Runs until the stop of the component is requested.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let mut payloads = Vec::new();
        loop {
            let datagrams = earlier(self.endpoint.poll_timeout(), self.port.poll_timeout());
            self.timer.set(earlier(datagrams, self.tcp.poll_timeout()))?;
            tokio::select! {
                biased;
                () = self.stop.asked() => break,
                arrived = self.port.receive(&mut payloads) => arrived?,
                expired = self.timer.expired() => {
                    expired?;
                    self.handle_timeout(&mut payloads);
                }
                Some(done) = self.forwarded.join_next() => self.take_answer(done),
                changed = self.service.resources.next() => match changed {
                    Some(path) => self.take_sample(&path),
                    None => break,
                },
                arrived = self.tcp.next() => self.take_connection(arrived?),
                _ = self.count.tick() => self.sync_counters(),
            }
            for (from, payload) in payloads.drain(..) {
                self.endpoint.handle_datagram(clock::mono(), from, &payload);
                // A response that follows at once is sent with the acknowledgement.
                self.handle_events(Transport::Udp);
            }
            self.settle(Transport::Udp);
        }
        self.sync_counters();
        Ok(())
    }

    /// Handles what has happened on the connections over TCP.
    fn take_connection(&mut self, arrived: Arrived) {
        let number = match arrived {
            Arrived::Client(stream, peer) => self.tcp.connect(stream, peer, self.service.links()),
            Arrived::Octets(number, octets) => {
                // Requests that arrive together are answered one after the other.
                for part in octets.chunks(PART_OCTETS) {
                    let Some(machine) = self.tcp.machine(number) else { return };
                    machine.handle_octets(clock::mono(), part);
                    self.handle_events(Transport::Tcp(number));
                }
                Some(number)
            }
            Arrived::End(number) => {
                self.tcp.machine(number).into_iter().for_each(Connection::handle_end);
                Some(number)
            }
        };
        number.into_iter().for_each(|number| self.settle(Transport::Tcp(number)));
    }

    fn handle_timeout(&mut self, payloads: &mut Vec<Arrival>) {
        let now = clock::mono();
        self.port.handle_timeout(now, payloads);
        self.endpoint.handle_timeout(now);
        for number in self.tcp.handle_timeout(now) {
            self.settle(Transport::Tcp(number));
        }
    }

    /// Handles the events of a machine and sends what it has to send.
    fn settle(&mut self, transport: Transport) {
        self.handle_events(transport);
        match transport {
            Transport::Udp => {
                while let Some((to, datagram)) = self.endpoint.poll_transmit() {
                    self.port.push(to, datagram);
                }
                self.port.flush();
            }
            Transport::Tcp(number) => self.flush_connection(number, true),
        }
    }

    /// Writes what a connection has to send. If `is_last` is `false`, more follows soon. If it was closed, its observations end.
    fn flush_connection(&mut self, number: tcp::Number, is_last: bool) {
        if !self.tcp.flush(number, is_last) {
            return;
        }
        let mut ended = 0;
        self.observers.retain(|_, observers| {
            let before = observers.len();
            observers.retain(|(transport, _)| *transport != Transport::Tcp(number));
            ended += before - observers.len();
            !observers.is_empty()
        });
        if let Some(counter) = self.counters.ended.get(EndReason::Closed as usize) {
            (0..ended).for_each(|_| counter.increment());
        }
    }

    fn handle_events(&mut self, transport: Transport) {
        while let Some(event) = match transport {
            Transport::Udp => self.endpoint.poll_event(),
            Transport::Tcp(number) => self.tcp.machine(number).and_then(Connection::poll_event),
        } {
            match event {
                Event::Request { id, request, observe } => {
                    match self.service.handle(&request) {
                        Outcome::Respond(response, path) => self.respond(transport, id, response, observe.zip(path)),
                        Outcome::Forward(forwarded) => self.forward(transport, id, forwarded),
                    }
                    // Large responses to many requests must not wait all at once.
                    if let Transport::Tcp(number) = transport {
                        self.flush_connection(number, false);
                    }
                }
                Event::ObservationEnded { id, reason } => self.forget(transport, id, reason),
                // This end sends no requests.
                Event::Response { .. } | Event::Notification { .. } | Event::Failed { .. } | Event::Pong { .. } => {}
            }
        }
    }

    fn forward(&mut self, transport: Transport, id: ExchangeId, forwarded: Forwarded) {
        match self.service.proxy.clone() {
            Some(proxy) if self.forwarded.len() < FORWARDED_MAX => {
                self.forwarded.spawn(async move { (transport, id, proxy::forward(&proxy, forwarded).await) });
            }
            _ => {
                let text = "too many requests are being passed on";
                let response = Response::diagnostic(Code::SERVICE_UNAVAILABLE, text);
                self.service.counters.respond(&response);
                self.respond(transport, id, response, None);
            }
        }
    }

    /// Answers a request, and begins the observation that it asks for.
    fn respond(
        &mut self,
        transport: Transport,
        id: ExchangeId,
        response: Response,
        observed: Option<(ObservationId, String)>,
    ) {
        let now = clock::mono();
        let is_observed = observed.is_some();
        match transport {
            Transport::Udp if is_observed => self.endpoint.respond_observed(now, id, response),
            Transport::Udp => self.endpoint.respond(now, id, response),
            Transport::Tcp(number) => match self.tcp.machine(number) {
                Some(machine) if is_observed => machine.respond_observed(now, id, response),
                Some(machine) => machine.respond(now, id, response),
                None => {}
            },
        }
        if let Some((observation, path)) = observed {
            self.add_observer(transport, observation, path);
        }
    }

    /// Adds an observer to a path, if its observation has begun.
    fn add_observer(&mut self, transport: Transport, observation: ObservationId, path: String) {
        let has_begun = match transport {
            Transport::Udp => self.endpoint.is_observed(observation),
            Transport::Tcp(number) => self.tcp.machine(number).is_some_and(|machine| machine.is_observed(observation)),
        };
        // A client may register again with the same identity.
        let observers = self.observers.get(&path).map_or(&[][..], Vec::as_slice);
        if has_begun && !observers.contains(&(transport, observation)) {
            self.observers.entry(path).or_default().push((transport, observation));
            self.counters.observations.increment();
        }
    }

    fn take_answer(&mut self, done: Result<(Transport, ExchangeId, Answer), tokio::task::JoinError>) {
        // A task that panicked leaves its request without an answer, which the client notices.
        if let Ok((transport, id, answer)) = done {
            let response = answered(answer);
            self.service.counters.respond(&response);
            self.respond(transport, id, response, None);
            self.settle(transport);
        }
    }

    /// Notifies the observers of a path. One whose topic is new is listed from now on.
    fn take_sample(&mut self, path: &str) {
        let observers = self.observers.get(path).cloned().unwrap_or_default();
        if !observers.is_empty() {
            let (state, now) = (self.service.state(path), clock::mono());
            for (transport, observation) in observers {
                self.counters.notifications.increment();
                match transport {
                    Transport::Udp => self.endpoint.notify(now, observation, state.clone()),
                    Transport::Tcp(number) => {
                        if let Some(machine) = self.tcp.machine(number) {
                            machine.notify(now, observation, state.clone());
                        }
                        self.settle(transport);
                    }
                }
            }
        }
        if self.service.resources.take_is_new() {
            let links = self.service.links();
            self.tcp.set_resources(&links);
            self.endpoint.set_resources(links);
        }
    }

    fn forget(&mut self, transport: Transport, id: ObservationId, reason: EndReason) {
        if let Some(counter) = self.counters.ended.get(reason as usize) {
            counter.increment();
        }
        self.observers.retain(|_, observers| {
            observers.retain(|observer| *observer != (transport, id));
            !observers.is_empty()
        });
    }

    fn sync_counters(&mut self) {
        self.port.sync_counters();
        self.counters.endpoint.sync(&self.endpoint);
    }
}

impl Counters {
    fn open<C: Component>(context: &Context<C>) -> Self {
        Self {
            endpoint: coap::endpoint_counters(context),
            observations: context.counter("observations"),
            notifications: context.counter("notifications"),
            ended: EndReason::ALL.map(|reason| context.counter_for("observations_ended", reason.label())),
        }
    }
}

/// Returns the settings of the machine.
fn machine(settings: &Settings) -> viaduct_coap::Settings {
    let LimitSettings {
        peers_max,
        observations_per_peer_max,
        observations_max,
        payload_octets_max,
        transfer_octets_max,
        ..
    } = settings.limits;
    viaduct_coap::Settings {
        retransmission: settings.timers.coap(),
        q_block: true,
        notifications: Notifications { confirmable: settings.confirm_notifications, ..Notifications::default() },
        address_check: match settings.address_check {
            _ if settings.dtls.is_some() => AddressCheck::Off,
            AddressCheckSetting::SmallBlocks => AddressCheck::SmallBlocks,
            AddressCheckSetting::Echo => AddressCheck::Echo,
            AddressCheckSetting::Ping => AddressCheck::Ping,
            AddressCheckSetting::Off => AddressCheck::Off,
        },
        limits: Limits {
            peers: peers_max,
            observations_per_peer: observations_per_peer_max,
            observations: observations_max,
            body_octets: payload_octets_max,
            bodies_octets: usize::try_from(transfer_octets_max).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        ..viaduct_coap::Settings::default()
    }
}
