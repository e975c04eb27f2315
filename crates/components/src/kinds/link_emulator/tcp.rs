//! The relay of TCP connections.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use viaduct_bus::{Counter, clock};
use viaduct_netem::{Duplex, LinkSettings, link::Bottleneck};
use viaduct_node::{Context, StartError, Stop};
use viaduct_units::{Mono, Rng};

use super::direction::{Direction, FIGURES_PERIOD, Figures, Total, invalid};
use super::{LinkEmulator, LinkEmulatorSettings};
use crate::link::LatenessHistogram;
use crate::net::timer::PreciseTimer;
use viaduct_units::RateLimiter;

/// Octets of a piece of a stream: the payload of a TCP segment on Ethernet.
const PIECE_OCTETS: usize = 1448;
/// Octets of the headers of a segment: IPv4 (RFC 791), TCP (RFC 9293) and its time stamps (RFC 7323).
const HEADER_OCTETS: u16 = 20 + 20 + 12;
/// Pieces that a direction of a connection holds: 23 MB.
const PIECES_MAX: usize = 16_384;
/// Time after which a full link is looked at again.
const FULL_PERIOD: Duration = Duration::from_millis(1);
/// Largest number of warnings per second.
const LOGGED_PER_SECOND: u32 = 1;
/// Time limit for a connection to the server.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The relay.
pub(super) struct Relay {
    listener: TcpListener,
    server: SocketAddr,
    links: Duplex<LinkSettings>,
    seeds: Rng,
    clients_max: usize,
    connections: JoinSet<()>,
    pipes: Duplex<Arc<Pipes>>,
    clients: ClientCounters,
    logged: RateLimiter,
    figures: Duplex<Figures>,
    stop: Stop,
}

#[derive(Clone)]
struct ClientCounters {
    full: Counter,
    no_resources: Counter,
    no_server: Counter,
}

/// Totals of one direction of all connections.
struct Pipes(Mutex<Totals>);

struct Totals {
    received: u64,
    delivered: u64,
    lateness: LatenessHistogram,
}

/// One direction of a connection.
struct Pipe {
    direction: Direction,
    bottleneck: Bottleneck,
    totals: Arc<Pipes>,
    timer: PreciseTimer,
}

impl Relay {
    /// Opens the socket for clients. Must be called inside the runtime.
    pub(super) fn open(
        settings: &LinkEmulatorSettings,
        links: Duplex<LinkSettings>,
        context: &Context<LinkEmulator>,
    ) -> Result<Self, StartError> {
        let failed = |cause| StartError::io(format!("cannot listen on {}", settings.listen), cause);
        let listener = std::net::TcpListener::bind(settings.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(component = context.name(), %address, to = %settings.to, "emulated link is open");
        let dropped = |reason| context.counter_for("clients_dropped", reason);
        Ok(Self {
            listener,
            server: settings.to,
            links,
            seeds: Rng::new(settings.seed.unwrap_or_else(|| context.seed())),
            clients_max: settings.clients_max,
            connections: JoinSet::new(),
            pipes: Duplex { a_to_b: Pipes::new(), b_to_a: Pipes::new() },
            clients: ClientCounters {
                full: dropped("clients_full"),
                no_resources: dropped("no_resources"),
                no_server: dropped("no_server"),
            },
            logged: RateLimiter::new(LOGGED_PER_SECOND),
            figures: Duplex { a_to_b: Figures::open("a_to_b", context), b_to_a: Figures::open("b_to_a", context) },
            stop: context.stop(),
        })
    }

    /// Passes connections until the component is asked to stop.
    pub(super) async fn run(mut self) -> Result<(), StartError> {
        let mut upkeep = tokio::time::interval(FIGURES_PERIOD);
        loop {
            tokio::select! {
                () = self.stop.asked() => break,
                _ = upkeep.tick() => self.show_figures(),
                accepted = self.listener.accept() => match accepted {
                    Ok((client, _)) => self.connect(client),
                    // The client has gone, or there are too many open files.
                    Err(error) => {
                        if let Some(events) = self.logged.admit(clock::mono()) {
                            tracing::warn!(%error, events, "connection not accepted");
                        }
                        tokio::time::sleep(FULL_PERIOD).await;
                    }
                },
                Some(_) = self.connections.join_next() => {}
            }
        }
        self.show_figures();
        Ok(())
    }

    fn connect(&mut self, client: TcpStream) {
        if self.connections.len() >= self.clients_max {
            return self.clients.full.increment();
        }
        let Duplex { a_to_b: there, b_to_a: back } = match self.pipes() {
            Ok(pipes) => pipes,
            Err(error) => {
                // There may be too many open files. Connections that end make room for later ones.
                self.clients.no_resources.increment();
                if let Some(events) = self.logged.admit(clock::mono()) {
                    tracing::warn!(%error, events, "no link for a new connection");
                }
                return;
            }
        };
        let (server, no_server) = (self.server, self.clients.no_server.clone());
        self.connections.spawn(async move {
            match timeout(CONNECT_TIME_MAX, TcpStream::connect(server)).await {
                Ok(Ok(server)) => relay(client, server, there, back).await,
                _ => no_server.increment(),
            }
        });
    }

    /// Returns the two directions of a new connection.
    fn pipes(&mut self) -> Result<Duplex<Pipe>, StartError> {
        Ok(Duplex {
            a_to_b: self.pipe(&self.links.a_to_b.clone(), &self.pipes.a_to_b.clone())?,
            b_to_a: self.pipe(&self.links.b_to_a.clone(), &self.pipes.b_to_a.clone())?,
        })
    }

    fn pipe(&mut self, link: &LinkSettings, totals: &Arc<Pipes>) -> Result<Pipe, StartError> {
        Ok(Pipe {
            direction: Direction::new(link.clone(), self.seeds.next_u64()).map_err(invalid)?,
            bottleneck: link.bottleneck.clone(),
            totals: Arc::clone(totals),
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
        })
    }

    fn show_figures(&mut self) {
        for (figures, pipes) in
            [(&mut self.figures.a_to_b, &self.pipes.a_to_b), (&mut self.figures.b_to_a, &self.pipes.b_to_a)]
        {
            pipes.with(|totals| {
                figures.sync(|total| match total {
                    Total::Received => totals.received,
                    Total::Delivered => totals.delivered,
                    Total::Duplicated | Total::Dropped(_) => 0,
                });
                figures.show(&totals.lateness);
            });
        }
    }
}

impl Pipes {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Totals { received: 0, delivered: 0, lateness: LatenessHistogram::new() })))
    }

    fn with(&self, function: impl FnOnce(&mut Totals)) {
        // Totals stay valid if a thread panics.
        function(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Passes both directions of a connection until both have ended, or one has failed.
async fn relay(client: TcpStream, server: TcpStream, there: Pipe, back: Pipe) {
    // Without the option, small pieces would wait for acknowledgements (Nagle).
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    // An error means that one of the peers has gone. Dropping the sockets ends the connection of the other one.
    let _ = tokio::try_join!(there.run(from_client, to_server), back.run(from_server, to_client));
}

impl Pipe {
    /// Passes a stream until it ends.
    async fn run(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let mut piece = vec![0; PIECE_OCTETS];
        let mut is_open = true;
        loop {
            self.deliver(&mut to).await?;
            let (now, (pieces, _)) = (clock::mono(), self.direction.load(clock::mono()));
            if !is_open && pieces == 0 {
                return to.shutdown().await;
            }
            let has_room = self.has_room(now);
            let due = self.direction.due().map(|due| if has_room { due } else { due.min(now.plus(FULL_PERIOD)) });
            self.timer.set(due)?;
            tokio::select! {
                read = from.read(&mut piece), if is_open && has_room => match read? {
                    0 => is_open = false,
                    octets => self.take(piece.get(..octets).unwrap_or_default()),
                },
                expired = self.timer.expired(), if due.is_some() => expired?,
            }
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.direction.push(clock::mono(), Bytes::copy_from_slice(piece), HEADER_OCTETS);
        self.totals.with(|totals| totals.received += 1);
    }

    /// Writes the pieces that are due. While the receiver takes none, the link is not read either.
    async fn deliver(&mut self, to: &mut OwnedWriteHalf) -> io::Result<()> {
        while let Some((piece, late)) = self.direction.poll_late(clock::mono()) {
            to.write_all(&piece).await?;
            self.totals.with(|totals| {
                totals.delivered += 1;
                totals.lateness.record(late);
            });
        }
        Ok(())
    }

    /// Returns `true` if the link does not drop the next piece.
    fn has_room(&self, now: Mono) -> bool {
        let (pieces, queued) = self.direction.load(now);
        let capacity = match &self.bottleneck {
            Bottleneck::None => usize::MAX,
            Bottleneck::Rate { queue_octets, .. } | Bottleneck::Trace { queue_octets, .. } => *queue_octets,
        };
        let next = self.direction.wire_octets(PIECE_OCTETS, HEADER_OCTETS);
        pieces < PIECES_MAX && (queued == 0 || queued + next <= capacity)
    }
}
