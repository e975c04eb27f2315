//! The task of the server: datagrams, samples and answers of the proxy.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};
use viaduct_bus::{Counter, clock};
use viaduct_coap::codec::Code;
use viaduct_coap::settings::{AddressCheck, Limits, Notifications};
use viaduct_coap::{EndReason, Endpoint, Event, ExchangeId, ObservationId, Response};
use viaduct_node::{Component, Context, StartError, Stop};

use super::proxy::{self, Answer};
use super::resources::Resources;
use super::service::{Outcome, Service, ServiceCounters, answered};
use super::{AddressCheckSetting, LimitSettings, Settings};
use crate::coap;
use crate::machine_counters::MachineCounters;
use crate::net::socket_counters;
use crate::net::timer::PreciseTimer;
use crate::net::udp_socket::{DATAGRAM_OCTETS_MAX, Received, UdpSettings, UdpSocket};

/// Datagrams that wait until the kernel takes them.
const QUEUE_MAX: usize = 4096;
/// Requests that are passed on at a time. More are answered 5.03.
const FORWARDED_MAX: usize = 64;
/// Interval at which counters are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// The task.
pub(super) struct Runner {
    socket: UdpSocket,
    endpoint: Endpoint,
    service: Service,
    /// Observations by path.
    observers: HashMap<String, Vec<ObservationId>>,
    /// Requests that were passed on.
    forwarded: JoinSet<(ExchangeId, Answer)>,
    timer: PreciseTimer,
    count: Interval,
    stop: Stop,
    counters: Counters,
}

struct Counters {
    socket: MachineCounters<UdpSocket>,
    endpoint: MachineCounters<Endpoint>,
    observations: Counter,
    notifications: Counter,
    ended: [Counter; EndReason::ALL.len()],
}

impl Runner {
    /// Opens the socket and the topics. Must be called inside the runtime.
    pub(super) fn open<C: Component>(settings: &Settings, context: &Context<C>) -> Result<Self, StartError> {
        let udp = UdpSettings {
            receive_buffer_octets: settings.receive_buffer_octets,
            datagram_octets_max: DATAGRAM_OCTETS_MAX,
            queue_max: QUEUE_MAX,
        };
        let failed = |cause| StartError::io(format!("cannot open a UDP socket on {}", settings.listen), cause);
        let socket = UdpSocket::bind(settings.listen, &udp).map_err(failed)?;
        let (component, address) = (context.name(), socket.local_address().map_err(failed)?);
        tracing::info!(component, %address, "CoAP server listens");
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
        let mut endpoint = Endpoint::new(machine(settings), context.seed());
        endpoint.set_resources(service.links());
        Ok(Self {
            socket,
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
        let mut received = Vec::new();
        loop {
            self.timer.set(self.endpoint.poll_timeout())?;
            tokio::select! {
                biased;
                () = self.stop.asked() => break,
                arrived = self.socket.receive(&mut received) => {
                    arrived?;
                    self.take_datagrams(&mut received);
                }
                expired = self.timer.expired() => {
                    expired?;
                    self.endpoint.handle_timeout(clock::mono());
                    self.settle();
                }
                Some(done) = self.forwarded.join_next() => self.take_answer(done),
                changed = self.service.resources.next() => match changed {
                    Some(path) => self.take_sample(&path),
                    None => break,
                },
                _ = self.count.tick() => self.sync_counters(),
            }
        }
        self.sync_counters();
        Ok(())
    }

    fn take_datagrams(&mut self, received: &mut Vec<Received>) {
        for Received { from, octets, .. } in received.drain(..) {
            self.endpoint.handle_datagram(clock::mono(), from, &octets);
            // A response that follows at once is sent with the acknowledgement.
            self.handle_events();
        }
        self.settle();
    }

    /// Handles the events of the machine and sends its datagrams.
    fn settle(&mut self) {
        self.handle_events();
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            self.socket.push(to, datagram);
        }
        self.socket.flush();
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Request { id, request, observe } => match self.service.handle(&request) {
                    Outcome::Respond(response, path) => self.respond(id, response, observe.zip(path)),
                    Outcome::Forward(forwarded) => match self.service.proxy.clone() {
                        Some(proxy) if self.forwarded.len() < FORWARDED_MAX => {
                            self.forwarded.spawn(async move { (id, proxy::forward(&proxy, forwarded).await) });
                        }
                        _ => {
                            let text = "too many requests are being passed on";
                            self.respond_forwarded(id, Response::diagnostic(Code::SERVICE_UNAVAILABLE, text));
                        }
                    },
                },
                Event::ObservationEnded { id, reason } => self.forget(id, reason),
                // This endpoint sends no requests.
                Event::Response { .. } | Event::Notification { .. } | Event::Failed { .. } | Event::Pong { .. } => {}
            }
        }
    }

    fn respond(&mut self, id: ExchangeId, response: Response, observed: Option<(ObservationId, String)>) {
        let now = clock::mono();
        match observed {
            Some((observation, path)) => {
                // A client may register again with the same identity.
                let observers = self.observers.entry(path).or_default();
                if !observers.contains(&observation) {
                    observers.push(observation);
                    self.counters.observations.increment();
                }
                self.endpoint.respond_observed(now, id, response);
            }
            None => self.endpoint.respond(now, id, response),
        }
    }

    fn respond_forwarded(&mut self, id: ExchangeId, response: Response) {
        self.service.counters.respond(&response);
        self.endpoint.respond(clock::mono(), id, response);
    }

    fn take_answer(&mut self, done: Result<(ExchangeId, Answer), tokio::task::JoinError>) {
        // A task that panicked leaves its request without an answer, which the client notices.
        if let Ok((id, answer)) = done {
            self.respond_forwarded(id, answered(answer));
            self.settle();
        }
    }

    /// Notifies the observers of a path. One whose path is new is listed from now on.
    fn take_sample(&mut self, path: &str) {
        let observers = self.observers.get(path).map_or(&[][..], Vec::as_slice);
        if !observers.is_empty() {
            let state = self.service.state(path);
            let now = clock::mono();
            for observation in observers {
                self.endpoint.notify(now, *observation, state.clone());
                self.counters.notifications.increment();
            }
        }
        if self.service.resources.take_is_new() {
            self.endpoint.set_resources(self.service.links());
        }
        self.settle();
    }

    fn forget(&mut self, id: ObservationId, reason: EndReason) {
        if let Some(counter) = self.counters.ended.get(reason as usize) {
            counter.increment();
        }
        self.observers.retain(|_, observers| {
            observers.retain(|observation| *observation != id);
            !observers.is_empty()
        });
    }

    fn sync_counters(&mut self) {
        self.socket.count_kernel_drops();
        self.counters.socket.sync(&self.socket);
        self.counters.endpoint.sync(&self.endpoint);
    }
}

impl Counters {
    fn open<C: Component>(context: &Context<C>) -> Self {
        Self {
            socket: socket_counters(context),
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
