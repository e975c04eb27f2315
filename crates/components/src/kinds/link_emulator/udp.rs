//! The relay of UDP datagrams.

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::select_all;
use viaduct_bus::{Counter, clock};
use viaduct_netem::{Duplex, LinkSettings, link::overhead};
use viaduct_node::{Context, StartError, Stop};
use viaduct_units::{Mono, Rng};

use super::direction::{Direction, FIGURES_PERIOD, Figures, invalid};
use super::{LinkEmulator, LinkEmulatorSettings};
use crate::counter_mirror::CounterMirror;
use crate::net::timer::PreciseTimer;
use crate::net::udp_socket::{DATAGRAM_OCTETS_MAX, Received, UdpCounters, UdpSettings, UdpSocket, UnsentReason};
use crate::teleop::periodic::Periodic;
use viaduct_units::RateLimiter;

/// Datagrams that wait for the kernel, by socket.
const SEND_QUEUE_MAX: usize = 1024;
/// Time without a datagram after which another client may take the place of a client.
const IDLE: Duration = Duration::from_secs(10);
/// Datagrams delivered before the sockets are read again.
const DELIVERIES_MAX: usize = 256;
/// Largest number of warnings per second.
const LOGGED_PER_SECOND: u32 = 1;
/// Octets of the client's number at the end of each datagram in the link. They count as part of the headers.
const NUMBER_OCTETS: u16 = 4;

/// The relay.
pub(super) struct Relay {
    /// Socket towards the clients.
    front: UdpSocket,
    clients: Clients,
    links: Duplex<Direction>,
    /// Octets of the headers that each datagram has on a real link, less those of the client's number.
    header_octets: u16,
    timer: PreciseTimer,
    figures: Duplex<Figures>,
    sockets: CounterMirror<SocketDrop>,
    upkeep: Periodic,
    stop: Stop,
}

/// The clients, each with a port towards the server.
struct Clients {
    server: SocketAddr,
    settings: UdpSettings,
    clients_max: usize,
    clients: Vec<Client>,
    /// Number of the next client.
    next: u32,
    /// Drops of the sockets of former clients.
    former: [u64; SocketDrop::ALL.len()],
    full: Counter,
    no_socket: Counter,
    stranger: Counter,
    gone: Counter,
    logged: RateLimiter,
}

struct Client {
    /// A number that no later client has.
    number: u32,
    address: SocketAddr,
    /// Socket towards the server.
    socket: UdpSocket,
    /// Time of the latest datagram.
    active: Mono,
}

/// An input of the relay.
enum Input {
    Clients,
    Server(u32),
    Due,
    Stop,
}

/// A reason for which a socket has not passed a datagram on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketDrop {
    Kernel,
    Unsent(UnsentReason),
}

impl Relay {
    /// Opens the socket for clients. Must be called inside the runtime.
    pub(super) fn open(
        settings: &LinkEmulatorSettings,
        links: Duplex<LinkSettings>,
        context: &Context<LinkEmulator>,
    ) -> Result<Self, StartError> {
        let socket = UdpSettings {
            receive_buffer_octets: settings.receive_buffer_octets,
            datagram_octets_max: DATAGRAM_OCTETS_MAX,
            queue_max: SEND_QUEUE_MAX,
        };
        let failed = |cause| StartError::io(format!("cannot open a UDP socket on {}", settings.listen), cause);
        let front = UdpSocket::bind(settings.listen, &socket).map_err(failed)?;
        let address = front.local_address().map_err(failed)?;
        tracing::info!(component = context.name(), %address, to = %settings.to, "emulated link is open");
        let mut seeds = Rng::new(settings.seed.unwrap_or_else(|| context.seed()));
        let headers = if settings.listen.is_ipv4() { overhead::IPV4_UDP } else { overhead::IPV6_UDP };
        Ok(Self {
            front,
            clients: Clients::new(settings, socket, context),
            links: Duplex {
                a_to_b: Direction::new(links.a_to_b, seeds.next_u64()).map_err(invalid)?,
                b_to_a: Direction::new(links.b_to_a, seeds.next_u64()).map_err(invalid)?,
            },
            header_octets: headers - NUMBER_OCTETS,
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
            figures: Duplex { a_to_b: Figures::open("a_to_b", context), b_to_a: Figures::open("b_to_a", context) },
            sockets: SocketDrop::mirror(context),
            upkeep: Periodic::new(clock::mono(), FIGURES_PERIOD),
            stop: context.stop(),
        })
    }

    /// Passes datagrams until the component is asked to stop or a socket fails.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            self.timer.set(Some(self.due()))?;
            match self.next_input(&mut batch).await? {
                Input::Clients => self.take_from_clients(&mut batch),
                Input::Server(client) => self.take_from_server(client, &mut batch),
                Input::Due => {}
                Input::Stop => break,
            }
            self.deliver();
            let now = clock::mono();
            if self.upkeep.is_due(now) {
                self.show_figures();
            }
        }
        self.show_figures();
        Ok(())
    }

    fn due(&self) -> Mono {
        let links = [self.links.a_to_b.due(), self.links.b_to_a.due()];
        links.into_iter().flatten().fold(self.upkeep.due(), Mono::min)
    }

    async fn next_input(&mut self, batch: &mut Vec<Received>) -> io::Result<Input> {
        let Self { front, clients, timer, stop, .. } = self;
        let mut from_server = Vec::new();
        // The order is random, so that a flood from one side does not silence the other one.
        tokio::select! {
            () = stop.asked() => Ok(Input::Stop),
            expired = timer.expired() => expired.map(|()| Input::Due),
            received = front.receive(batch) => received.map(|()| Input::Clients),
            received = clients.receive(&mut from_server) => {
                batch.append(&mut from_server);
                received.map(Input::Server)
            }
        }
    }

    fn take_from_clients(&mut self, batch: &mut Vec<Received>) {
        for Received { from, octets, at } in batch.drain(..) {
            if let Some(number) = self.clients.number_of(from, at) {
                self.links.a_to_b.push(at, with_number(&octets, number), self.header_octets);
            }
        }
    }

    fn take_from_server(&mut self, number: u32, batch: &mut Vec<Received>) {
        for Received { from, octets, at } in batch.drain(..) {
            if from == self.clients.server {
                self.links.b_to_a.push(at, with_number(&octets, number), self.header_octets);
            } else {
                self.clients.stranger.increment();
            }
        }
    }

    /// Passes datagrams that are due to the sockets.
    fn deliver(&mut self) {
        let server = self.clients.server;
        for _ in 0..DELIVERIES_MAX {
            let now = clock::mono();
            let (there, back) = (self.links.a_to_b.poll(now), self.links.b_to_a.poll(now));
            if there.is_none() && back.is_none() {
                break;
            }
            if let Some((client, datagram)) = there.and_then(|tagged| self.clients.split(tagged, now)) {
                client.socket.push(server, datagram);
            }
            if let Some((client, datagram)) = back.and_then(|tagged| self.clients.split(tagged, now)) {
                self.front.push(client.address, datagram);
            }
        }
        self.front.flush();
        for client in &mut self.clients.clients {
            client.socket.flush();
        }
    }

    fn show_figures(&mut self) {
        for (figures, link) in
            [(&mut self.figures.a_to_b, &self.links.a_to_b), (&mut self.figures.b_to_a, &self.links.b_to_a)]
        {
            figures.sync(|total| link.total(total));
            figures.show(&link.lateness);
        }
        self.front.count_kernel_drops();
        self.clients.count_kernel_drops();
        self.sockets.sync(|drop| drop.total(self.front.counters()) + self.clients.total(*drop));
    }
}

impl Clients {
    fn new(settings: &LinkEmulatorSettings, socket: UdpSettings, context: &Context<LinkEmulator>) -> Self {
        let dropped = |reason| context.counter_for("clients_dropped", reason);
        Self {
            server: settings.to,
            settings: socket,
            clients_max: settings.clients_max,
            clients: Vec::new(),
            next: 0,
            former: [0; SocketDrop::ALL.len()],
            full: dropped("clients_full"),
            no_socket: dropped("no_socket"),
            stranger: dropped("stranger"),
            gone: dropped("client_gone"),
            logged: RateLimiter::new(LOGGED_PER_SECOND),
        }
    }

    /// Returns the number of a client. A new client gets a place if there is one. Otherwise the datagram is counted.
    fn number_of(&mut self, address: SocketAddr, now: Mono) -> Option<u32> {
        if let Some(client) = self.clients.iter_mut().find(|client| client.address == address) {
            client.active = now;
            return Some(client.number);
        }
        if !self.has_place(now) {
            self.full.increment();
            return None;
        }
        let any: IpAddr =
            if self.server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        match UdpSocket::bind(SocketAddr::new(any, 0), &self.settings) {
            Ok(socket) => {
                let number = self.next;
                self.next = self.next.wrapping_add(1);
                self.clients.push(Client { number, address, socket, active: now });
                Some(number)
            }
            Err(error) => {
                self.no_socket.increment();
                if let Some(datagrams) = self.logged.admit(now) {
                    tracing::warn!(%error, datagrams, "no socket for a new client");
                }
                None
            }
        }
    }

    /// Returns `true` if there is a place for one more client. Takes the place of a client that is idle.
    fn has_place(&mut self, now: Mono) -> bool {
        if self.clients.len() < self.clients_max {
            return true;
        }
        let idle = self.clients.iter().position(|client| now.since(client.active) >= IDLE);
        let Some(idle) = idle else { return false };
        let mut client = self.clients.swap_remove(idle);
        client.socket.count_kernel_drops();
        for (sum, drop) in self.former.iter_mut().zip(SocketDrop::ALL) {
            *sum += drop.total(client.socket.counters());
        }
        true
    }

    /// Waits until the server has sent datagrams to a client. Returns the number of the client.
    async fn receive(&mut self, batch: &mut Vec<Received>) -> io::Result<u32> {
        if self.clients.is_empty() {
            return pending().await;
        }
        let waits = self.clients.iter_mut().map(|client| {
            Box::pin(async {
                let mut own = Vec::new();
                client.socket.receive(&mut own).await.map(|()| (client.number, own))
            })
        });
        let (number, received) = select_all(waits).await.0?;
        *batch = received;
        Ok(number)
    }

    /// Returns the client of a datagram from the link, and the datagram without the number.
    fn split(&mut self, mut tagged: Bytes, now: Mono) -> Option<(&mut Client, Bytes)> {
        let number = tagged.split_off(tagged.len().saturating_sub(NUMBER_OCTETS.into()));
        let number = number.as_ref().try_into().map(u32::from_be_bytes).ok();
        let Some(client) = self.clients.iter_mut().find(|client| Some(client.number) == number) else {
            self.gone.increment();
            return None;
        };
        client.active = client.active.max(now);
        Some((client, tagged))
    }

    fn count_kernel_drops(&mut self) {
        for client in &mut self.clients {
            client.socket.count_kernel_drops();
        }
    }

    /// Returns a total of the sockets of present and former clients.
    fn total(&self, drop: SocketDrop) -> u64 {
        let former = SocketDrop::ALL.iter().zip(self.former).find(|(reason, _)| **reason == drop);
        let present = self.clients.iter().map(|client| drop.total(client.socket.counters()));
        former.map_or(0, |(_, sum)| sum) + present.sum::<u64>()
    }
}

impl SocketDrop {
    /// All reasons.
    const ALL: [Self; 1 + UnsentReason::ALL.len()] = [
        Self::Kernel,
        Self::Unsent(UnsentReason::Refused),
        Self::Unsent(UnsentReason::TooLong),
        Self::Unsent(UnsentReason::Unreachable),
        Self::Unsent(UnsentReason::NoBuffer),
        Self::Unsent(UnsentReason::QueueFull),
        Self::Unsent(UnsentReason::Failed),
    ];

    fn mirror(context: &Context<LinkEmulator>) -> CounterMirror<Self> {
        CounterMirror::new(Self::ALL, |drop| context.counter_for("sockets_dropped", drop.label()))
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Unsent(reason) => reason.label(),
        }
    }

    fn total(self, counters: &UdpCounters) -> u64 {
        match self {
            Self::Kernel => counters.kernel_drops,
            Self::Unsent(reason) => counters.unsent(reason),
        }
    }
}

/// Appends the number of a client.
fn with_number(datagram: &Bytes, number: u32) -> Bytes {
    let mut tagged = BytesMut::with_capacity(datagram.len() + usize::from(NUMBER_OCTETS));
    tagged.extend_from_slice(datagram);
    tagged.extend_from_slice(&number.to_be_bytes());
    tagged.freeze()
}
