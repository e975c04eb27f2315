//! The task of the client.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};
use viaduct_bus::{Counter, Gauge, clock};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqttsn::client::{
    Client, ClientEvent, ClientRefusal, ClientSettings, ClientState, Failure, Outcome, Publication, RequestError,
    RequestId, Topic,
};
use viaduct_mqttsn::codec::{Qos, ReturnCode, ShortTopic};
use viaduct_node::{Component, Context, StartError, Stop};

use super::Settings;
use crate::machine_counters::MachineCounters;
use crate::mqtt::inbound::{Filter, Inbound};
use crate::mqtt::message::Message;
use crate::mqtt::route::{Inputs, Taken};
use crate::mqttsn::{self, Group, message, qos};
use crate::net::port::{Port, earlier};
use crate::net::timer::PreciseTimer;
use crate::retransmission::Timers;

/// Size of the kernel's receive buffer in bytes.
const RECEIVE_BUFFER_OCTETS: usize = 1 << 20;
/// Longest message from the gateway in octets.
const MESSAGE_OCTETS_MAX: usize = 65_507;
/// Longest client identifier that every gateway accepts, in octets.
const CLIENT_ID_OCTETS: usize = 23;
/// Wait after the gateway has refused something because of congestion. The specification has five minutes.
const ADAPTIVE_CONGESTION_WAIT: Duration = Duration::from_secs(10);
/// Time without an answer after which the silence is logged.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Interval at which counters are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);
/// Maximum time for the last messages when the node stops. The node as a whole has two seconds.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Maximum time for the answer to DISCONNECT after that.
const LEAVE_TIME_MAX: Duration = Duration::from_millis(200);

/// The task.
pub(super) struct Runner {
    settings: Settings,
    client: Client,
    port: Port,
    discovery: Option<Group>,
    inputs: Inputs,
    inbound: Inbound,
    /// Messages that wait for their outcome. They hold a place in the queue of their route.
    waiting: HashMap<RequestId, Message>,
    /// Filters of subscriptions that wait for their outcome.
    subscribing: HashMap<RequestId, String>,
    timer: PreciseTimer,
    count: Interval,
    stop: Stop,
    counters: Counters,
    name: String,
    /// Time of the start, or `None` after a gateway has answered or its silence was logged.
    started: Option<Instant>,
}

struct Counters {
    machine: MachineCounters<Client>,
    taken: Counter,
    unencodable: Counter,
    too_large: Counter,
    refused: Counter,
    stopped: Counter,
    unanswered: Counter,
    connected: Gauge,
    round_trip: Gauge,
}

impl Runner {
    /// Opens the socket and the routes. Must be called inside the runtime.
    pub(super) fn open<C: Component>(settings: Settings, context: &Context<C>) -> Result<Self, StartError> {
        let client = Client::new(machine(&settings, context), context.seed());
        let mut count = tokio::time::interval(COUNT_PERIOD);
        count.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Without a gateway there is no DTLS, and the address has no meaning.
        let gateway = settings.gateway.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let port = Port::client(gateway, RECEIVE_BUFFER_OCTETS, settings.dtls.as_ref(), context)?;
        let discovery = settings.discovery.as_ref().map(|one| Group::open(one.group, &one.interface, &port));
        Ok(Self {
            client: client.map_err(|error| StartError::Other(error.to_string()))?,
            port,
            discovery: discovery.transpose()?,
            inputs: Inputs::open(settings.routes.clone(), context)?,
            inbound: Inbound::open(&settings.inbound, MESSAGE_OCTETS_MAX, context)?,
            waiting: HashMap::new(),
            subscribing: HashMap::new(),
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
            count,
            stop: context.stop(),
            counters: Counters::open(context),
            name: context.name().to_owned(),
            started: Some(Instant::now()),
            settings,
        })
    }

    /// Runs until the stop of the component is requested.
    pub(super) async fn run(mut self) -> io::Result<()> {
        self.begin();
        let (mut payloads, mut deadline) = (Vec::new(), None);
        loop {
            self.settle();
            let is_stopping = deadline.is_some();
            if is_stopping && self.waiting.is_empty() {
                break;
            }
            self.timer.set(earlier(self.client.poll_timeout(), self.port.poll_timeout()))?;
            let has_room = !is_stopping && self.client.pending() < self.settings.queue;
            tokio::select! {
                biased;
                () = at(deadline) => break,
                () = self.stop.asked(), if !is_stopping => {
                    self.drain();
                    deadline = Some(Instant::now() + FLUSH_TIME_MAX);
                }
                arrived = self.port.receive(&mut payloads) => arrived?,
                arrived = mqttsn::receive(self.discovery.as_mut()) => payloads.extend(arrived?),
                expired = self.timer.expired() => {
                    expired?;
                    let now = clock::mono();
                    self.port.handle_timeout(now, &mut payloads);
                    self.client.handle_timeout(now);
                }
                taken = self.inputs.next(), if has_room => match taken {
                    Some(taken) => self.publish(&taken),
                    None => deadline = Some(Instant::now() + FLUSH_TIME_MAX),
                },
                _ = self.count.tick() => {
                    self.report_silence();
                    self.sync_counters();
                }
            }
            for (from, payload) in payloads.drain(..) {
                self.client.handle_datagram(clock::mono(), from, &payload);
            }
        }
        self.drop_waiting();
        self.leave(&mut payloads).await?;
        self.sync_counters();
        Ok(())
    }

    /// Connects, or looks for a gateway, and subscribes.
    fn begin(&mut self) {
        let now = clock::mono();
        if self.settings.gateway.is_none() {
            self.client.search(now, 0);
        }
        // A new client can connect, and its queue is empty.
        _ = self.client.connect(now, self.settings.gateway);
        for Filter { text, qos, .. } in self.inbound.filters() {
            let wanted = Qos::from_level(qos as u8).unwrap_or_default();
            match self.client.subscribe(now, topic(text, &self.settings), wanted) {
                Ok(id) => _ = self.subscribing.insert(id, text.to_owned()),
                Err(error) => tracing::error!(component = self.name, filter = text, %error, "cannot subscribe"),
            }
        }
    }

    /// Takes the remaining samples: the publishers have stopped, so no more will arrive.
    fn drain(&mut self) {
        self.inputs.drain();
        while let Some(taken) = self.inputs.try_next() {
            self.publish(&taken);
        }
    }

    /// Publishes a sample, and its type before it if it is not announced.
    fn publish(&mut self, taken: &Taken) {
        let now = clock::now();
        if let Some(announcement) = self.inputs.announcement(taken, now) {
            self.counters.taken.increment();
            if self.send(announcement) {
                self.inputs.announced(taken, now);
            }
        }
        self.counters.taken.increment();
        match self.inputs.message(taken) {
            Ok(message) => _ = self.send(message),
            Err(error) => {
                tracing::debug!(component = self.name, %error, "message cannot be encoded");
                self.counters.unencodable.increment();
            }
        }
    }

    /// Passes a message to the machine. Returns `false` if it was dropped.
    fn send(&mut self, message: Message) -> bool {
        let now = clock::mono();
        if matches!(self.client.state(), ClientState::Asleep | ClientState::Awake) {
            // It sleeps again when the messages are sent.
            _ = self.client.resume(now);
        }
        let publication = Publication {
            topic: topic(&message.target.topic, &self.settings),
            payload: message.payload.clone(),
            qos: Qos::from_level(message.target.qos as u8).unwrap_or_default(),
            retain: message.target.retain,
        };
        match self.client.publish(now, publication) {
            Ok(id) => {
                self.waiting.insert(id, message);
                true
            }
            Err(error) => {
                let counter =
                    if error == RequestError::TooLarge { &self.counters.too_large } else { &self.counters.refused };
                counter.increment();
                tracing::debug!(component = self.name, topic = message.target.topic, %error, "message cannot be sent");
                false
            }
        }
    }

    /// Handles the events of the machine and sends its datagrams.
    fn settle(&mut self) {
        let mut failed = Failed::default();
        while let Some(event) = self.client.poll_event() {
            self.handle(event, &mut failed);
        }
        failed.report(&self.name);
        if let Some(seconds) = self.settings.sleep_s
            && self.client.state() == ClientState::Active
            && self.client.pending() == 0
        {
            // It is active.
            _ = self.client.sleep(clock::mono(), Duration::from_secs(seconds.into()));
        }
        while let Some(transmit) = self.client.poll_transmit() {
            mqttsn::send(transmit, &mut self.port, self.discovery.as_ref());
        }
        self.port.flush();
    }

    /// Logs once that no gateway has answered since the start.
    fn report_silence(&mut self) {
        if self.started.take_if(|started| started.elapsed() >= SILENCE_MAX).is_some() {
            let component = &self.name;
            match self.settings.gateway {
                Some(gateway) => tracing::warn!(component, %gateway, "the MQTT-SN gateway does not answer; retrying"),
                None => tracing::warn!(component, "no MQTT-SN gateway was found yet; retrying"),
            }
        }
    }

    fn handle(&mut self, event: ClientEvent, failed: &mut Failed) {
        if matches!(event, ClientEvent::Connected { .. } | ClientEvent::Refused { .. }) {
            self.started = None;
        }
        let component = &self.name;
        match event {
            ClientEvent::Connected { gateway } => {
                self.counters.connected.set(1.0);
                tracing::info!(component, %gateway, "connected to the MQTT-SN gateway");
            }
            ClientEvent::Refused { code: ReturnCode::Congestion } => {
                tracing::warn!(component, "the MQTT-SN gateway refuses the connection because of congestion; retrying");
            }
            ClientEvent::Refused { code } => {
                tracing::error!(component, ?code, "the MQTT-SN gateway refuses the connection; there are no retries");
            }
            ClientEvent::Lost { gateway } => {
                self.counters.connected.set(0.0);
                tracing::warn!(component, %gateway, "no connection to the MQTT-SN gateway; retrying");
            }
            ClientEvent::Disconnected => self.counters.connected.set(0.0),
            ClientEvent::Finished { request, result } => self.finished(request, result, failed),
            ClientEvent::Message(received) => {
                let packet = PublishPacket::new(&*received.topic, received.payload, qos(received.qos));
                // There is no topic for answers of a route.
                if self.inbound.take(&packet.with_retain(received.retain), clock::now()).is_some() {
                    self.counters.unanswered.increment();
                }
            }
            ClientEvent::GatewayFound { id, address } => {
                tracing::info!(component, id, %address, "an MQTT-SN gateway was found");
            }
            ClientEvent::Asleep | ClientEvent::GatewayForgotten { .. } => {}
        }
    }

    fn finished(&mut self, request: RequestId, result: Result<Outcome, Failure>, failed: &mut Failed) {
        let (message, filter) = (self.waiting.remove(&request), self.subscribing.remove(&request));
        let Err(failure) = result else { return };
        if let Some(message) = message {
            self.counters.refused.increment();
            failed.add(&message, failure);
        }
        if let Some(filter) = filter.filter(|_| failure != Failure::Disconnected) {
            tracing::error!(component = self.name, filter, reason = %failure, "cannot subscribe");
        }
    }

    /// Drops the messages without an outcome at the stop. The machine reports them as failed when it leaves the gateway.
    fn drop_waiting(&mut self) {
        let messages = self.waiting.drain().count() as u64;
        self.counters.stopped.add(messages);
        if messages > 0 {
            let reason = match self.client.state() {
                ClientState::Disconnected | ClientState::Connecting => "there is no connection to the gateway",
                _ => "the gateway has not acknowledged them in time",
            };
            tracing::warn!(component = self.name, messages, reason, "messages are dropped at the stop");
        }
    }

    /// Ends the connection, so that no will is published.
    async fn leave(&mut self, payloads: &mut Vec<crate::net::port::Arrival>) -> io::Result<()> {
        // A client without a connection has nothing to end.
        if self.client.disconnect(clock::mono()).is_err() {
            return Ok(());
        }
        self.settle();
        let deadline = Instant::now() + LEAVE_TIME_MAX;
        while self.client.state() == ClientState::Leaving {
            tokio::select! {
                arrived = self.port.receive(payloads) => arrived?,
                () = tokio::time::sleep_until(deadline) => break,
            }
            for (from, payload) in payloads.drain(..) {
                self.client.handle_datagram(clock::mono(), from, &payload);
            }
            self.settle();
        }
        Ok(())
    }

    fn sync_counters(&mut self) {
        self.port.sync_counters();
        self.counters.machine.sync(&self.client);
        let round_trip = self.client.round_trip();
        self.counters.round_trip.set(round_trip.map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0));
    }
}

/// Messages that have failed at the same time. If the gateway refuses the connection, these are all.
#[derive(Default)]
struct Failed {
    messages: u64,
    /// Topic of the first message, and the reason.
    first: Option<(String, Failure)>,
}

impl Failed {
    fn add(&mut self, message: &Message, failure: Failure) {
        self.messages += 1;
        self.first.get_or_insert_with(|| (message.target.topic.clone(), failure));
    }

    /// Logs the messages, if there are any.
    fn report(self, component: &str) {
        let Self { messages, first } = self;
        if let Some((topic, failure)) = first {
            tracing::warn!(component, messages, first_topic = topic, reason = %failure, "messages are dropped");
        }
    }
}

/// Returns the topic as it is sent: by its predefined identifier, its two octets, or its name.
fn topic(name: &str, settings: &Settings) -> Topic {
    if let Some(predefined) = settings.predefined.iter().find(|predefined| predefined.topic == name) {
        return Topic::Predefined(predefined.id);
    }
    let short = name.as_bytes().try_into().ok().and_then(ShortTopic::new);
    match short.filter(|_| !name.contains(['+', '#'])) {
        Some(short) => Topic::Short(short),
        None => Topic::from(name),
    }
}

/// Returns the settings of the machine.
fn machine<C: Component>(settings: &Settings, context: &Context<C>) -> ClientSettings {
    let mut client_id = settings.client_id.clone().unwrap_or_else(|| format!("{}-{}", context.node(), context.name()));
    client_id.truncate(client_id.floor_char_boundary(CLIENT_ID_OCTETS));
    ClientSettings {
        client_id,
        clean: settings.clean,
        keep_alive: Duration::from_secs(settings.keep_alive_s.into()),
        will: settings.will.as_ref().map(|will| {
            message(&will.topic, will.payload.clone().into_bytes().into(), QoS::from(will.qos), will.retain)
        }),
        retransmission: settings.timers.mqttsn(),
        congestion_wait: match settings.timers {
            Timers::Standard => ClientSettings::default().congestion_wait,
            Timers::Adaptive => ADAPTIVE_CONGESTION_WAIT,
        },
        predefined: settings.predefined.iter().map(|one| (one.id, one.topic.as_str().into())).collect(),
        // Announcements and the samples that remain at the stop come on top.
        queue_max: settings.queue.saturating_mul(2) + 1024,
        queue_octets_max: 64 << 20,
        ..ClientSettings::default()
    }
}

/// Waits until `deadline`, or forever if there is none.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl Counters {
    fn open<C: Component>(context: &Context<C>) -> Self {
        let machine = MachineCounters::new(context, |totals| {
            totals.one("messages", |client: &Client| client.counters().messages);
            totals.one("published", |client| client.counters().published);
            totals.one("retransmissions", |client| client.counters().retransmissions);
            totals.one("duplicates", |client| client.counters().duplicates);
            totals.one("connections", |client| client.counters().connections);
            totals.one("lost", |client| client.counters().lost);
            totals.each("datagrams_refused", &ClientRefusal::ALL, ClientRefusal::label, |client, reason| {
                client.counters().refused(reason)
            });
        });
        let dropped = |reason| context.counter_for("dropped", reason);
        Self {
            machine,
            taken: context.counter("taken"),
            unencodable: dropped("unencodable"),
            too_large: dropped("too_large"),
            refused: dropped("refused"),
            stopped: dropped("stopped"),
            unanswered: context.counter("answers_dropped"),
            connected: context.gauge("connected"),
            round_trip: context.gauge("round_trip_ms"),
        }
    }
}
