//! The connections over TCP (RFC 8323).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use viaduct_bus::Counter;
use viaduct_coap::tcp::{Closed, Connection};
use viaduct_coap::{Resource, Totals};
use viaduct_node::listen::{Gate, GateLimits, Place};
use viaduct_node::{Component, Context, StartError};
use viaduct_units::{Mono, Rng};

/// Octets of a read.
const READ_OCTETS: usize = 16 << 10;
/// Reads of all connections that wait for the server.
const READS_MAX: usize = 64;
/// Writes of a connection that wait, and their octets. A client that reads more slowly is disconnected.
const WRITES_MAX: usize = 256;
const WRITE_OCTETS_MAX: usize = 4 << 20;
/// Octets up to which messages share a write.
const WRITE_OCTETS: usize = 64 << 10;
/// Reason for which the connection of a client that reads too slowly ends.
const SLOW: &str = "slow";
/// Time from the connection to the first octets of a client, which sends its CSM at once (RFC 8323, 5.3). One that is silent is disconnected.
const GREETING_TIME_MAX: Duration = Duration::from_secs(10);
/// Time for a write. A client that reads more slowly is disconnected.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);

/// Identity of a connection in this process.
pub(super) type Number = u64;

/// Input of a connection, with the number of the connection.
type Numbered = (Number, Read);

/// The connections.
pub(super) struct Tcp {
    listener: Option<TcpListener>,
    settings: viaduct_coap::Settings,
    random: Rng,
    gate: Gate,
    links: HashMap<Number, Link>,
    last: Number,
    reads: (mpsc::Sender<Numbered>, mpsc::Receiver<Numbered>),
    tasks: JoinSet<()>,
    totals: Totals,
    backlogs: Backlogs,
    accepted: Counter,
    /// Connections that have ended, by [`Closed`] and, last, those of slow clients.
    ended: [Counter; Closed::ALL.len() + 1],
}

struct Link {
    machine: Connection,
    writes: mpsc::Sender<Bytes>,
    /// Messages for the next write.
    output: BytesMut,
    backlog: Arc<Backlog>,
    task: AbortHandle,
}

/// Octets that wait for all clients to read, and their limit.
#[derive(Clone)]
struct Backlogs {
    octets: Arc<AtomicUsize>,
    octets_max: usize,
}

/// Octets that wait for a client to read.
struct Backlog {
    octets: AtomicUsize,
    all: Backlogs,
}

impl Backlog {
    /// Adds a write. Returns `false` if too much waits already. A short backlog is accepted in any case, so that the clients that read
    /// are served although others do not.
    fn add(&self, octets: usize) -> bool {
        let own = self.octets.fetch_add(octets, Ordering::Relaxed);
        let all = self.all.octets.fetch_add(octets, Ordering::Relaxed);
        own <= WRITE_OCTETS || (own <= WRITE_OCTETS_MAX && all <= self.all.octets_max)
    }

    fn remove(&self, octets: usize) {
        self.octets.fetch_sub(octets, Ordering::Relaxed);
        self.all.octets.fetch_sub(octets, Ordering::Relaxed);
    }
}

/// Frees what was not written.
impl Drop for Backlog {
    fn drop(&mut self) {
        let left = *self.octets.get_mut();
        self.all.octets.fetch_sub(left, Ordering::Relaxed);
    }
}

/// The client of a connection reads too slowly.
struct Slow;

impl Link {
    /// Passes the messages of the machine on. Short ones share a write, which waits for more if `is_last` is `false`.
    fn write(&mut self, is_last: bool) -> Result<(), Slow> {
        while let Some(message) = self.machine.poll_transmit() {
            self.output.extend_from_slice(&message);
            if self.output.len() >= WRITE_OCTETS {
                self.pass_on()?;
            }
        }
        if is_last && !self.output.is_empty() { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> Result<(), Slow> {
        let octets = self.output.split().freeze();
        let has_room = self.backlog.add(octets.len()) && self.writes.try_send(octets).is_ok();
        if has_room { Ok(()) } else { Err(Slow) }
    }
}

/// Input of a connection.
enum Read {
    Octets(Bytes),
    End,
}

/// Event of the listener or of a connection.
pub(super) enum Arrived {
    Client(TcpStream, SocketAddr),
    Octets(Number, Bytes),
    End(Number),
}

impl Tcp {
    /// Opens the listener, if there is an address. The connections share the totals. Must be called inside the runtime.
    pub(super) fn open<C: Component>(
        listen: Option<SocketAddr>,
        connections_max: usize,
        settings: viaduct_coap::Settings,
        totals: Totals,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let open = |address: SocketAddr| {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        let failed = |cause| {
            let address = listen.map(|address| address.to_string()).unwrap_or_default();
            StartError::io(format!("cannot listen on {address}"), cause)
        };
        let backlogs = Backlogs { octets: Arc::default(), octets_max: settings.limits.bodies_octets };
        let mut reasons = Closed::ALL.into_iter().map(Closed::label).chain([SLOW]);
        Ok(Self {
            listener: listen.map(open).transpose().map_err(failed)?,
            settings,
            random: Rng::new(context.seed().wrapping_add(1)),
            gate: context.gate(GateLimits::new(connections_max)),
            links: HashMap::new(),
            last: 0,
            reads: mpsc::channel(READS_MAX),
            tasks: JoinSet::new(),
            accepted: context.counter("connections"),
            ended: std::array::from_fn(|_| {
                context.counter_for("connections_ended", reasons.next().unwrap_or_default())
            }),
            totals,
            backlogs,
        })
    }

    /// Waits for a client, octets, or the end of a connection. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Arrived> {
        let Some(listener) = &self.listener else { return std::future::pending().await };
        loop {
            tokio::select! {
                biased;
                read = self.reads.1.recv() => match read {
                    Some((number, Read::Octets(octets))) => return Ok(Arrived::Octets(number, octets)),
                    Some((number, Read::End)) => return Ok(Arrived::End(number)),
                    // This end has a sender, too.
                    None => return std::future::pending().await,
                },
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => return Ok(Arrived::Client(stream, peer)),
                    // A client that has gone, or no file descriptor is left: others follow.
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
                },
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }

    /// Serves a client. Returns its connection, or `None` if there are too many, in total or from its address.
    pub(super) fn connect(&mut self, stream: TcpStream, peer: SocketAddr, resources: Vec<Resource>) -> Option<Number> {
        let place = self.gate.admit(&stream, peer)?;
        // Without it, a response may wait for the acknowledgement of the one before.
        _ = stream.set_nodelay(true);
        self.accepted.increment();
        self.last += 1;
        let number = self.last;
        let machine = Connection::new(self.settings.clone(), self.random.next_u64(), peer);
        let mut machine = machine.sharing(self.totals.clone());
        machine.set_resources(resources);
        let (writes, receiver) = mpsc::channel(WRITES_MAX);
        let backlog = Arc::new(Backlog { octets: AtomicUsize::new(0), all: self.backlogs.clone() });
        let writing = (receiver, Arc::clone(&backlog));
        let reads = self.reads.0.clone();
        // A connection that ends counts until its last octets are written.
        let task = self.tasks.spawn(async move {
            serve(number, stream, reads, writing).await;
            drop::<Place>(place);
        });
        self.links.insert(number, Link { machine, writes, output: BytesMut::new(), backlog, task });
        Some(number)
    }

    pub(super) fn machine(&mut self, number: Number) -> Option<&mut Connection> {
        self.links.get_mut(&number).map(|link| &mut link.machine)
    }

    /// Writes what the machine of a connection has to send, and closes the connection if it has ended or if the client reads too
    /// slowly. If `is_last` is `false`, more follows soon. Returns `true` if it was closed.
    pub(super) fn flush(&mut self, number: Number, is_last: bool) -> bool {
        let Some(link) = self.links.get_mut(&number) else { return false };
        let is_slow = link.write(is_last || link.machine.closed().is_some()).is_err();
        if is_slow {
            link.task.abort();
        }
        let reason = match link.machine.closed() {
            _ if is_slow => self.ended.last(),
            Some(closed) => self.ended.get(closed as usize),
            None => return false,
        };
        reason.into_iter().for_each(Counter::increment);
        // Without the sender, the task writes the rest and closes.
        self.links.remove(&number);
        true
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        self.links.values().filter_map(|link| link.machine.poll_timeout()).min()
    }

    /// Does the work that is due. Returns the connections with such work.
    pub(super) fn handle_timeout(&mut self, now: Mono) -> Vec<Number> {
        let due = self.links.iter_mut().filter(|(_, link)| link.machine.poll_timeout().is_some_and(|at| at <= now));
        due.map(|(number, link)| {
            link.machine.handle_timeout(now);
            *number
        })
        .collect()
    }

    pub(super) fn set_resources(&mut self, resources: &[Resource]) {
        for link in self.links.values_mut() {
            link.machine.set_resources(resources.to_vec());
        }
    }
}

/// Reads and writes a connection until it ends, or until the server drops its end.
async fn serve(
    number: Number,
    mut stream: TcpStream,
    reads: mpsc::Sender<Numbered>,
    (mut writes, backlog): (mpsc::Receiver<Bytes>, Arc<Backlog>),
) {
    let mut buffer = BytesMut::new();
    let (mut reader, mut writer) = stream.split();
    let reading = async {
        let mut time_max = GREETING_TIME_MAX;
        loop {
            buffer.reserve(READ_OCTETS);
            let read = tokio::time::timeout(time_max, reader.read_buf(&mut buffer)).await;
            time_max = Duration::MAX;
            match read.unwrap_or(Ok(0)) {
                Ok(0) | Err(_) => break,
                Ok(_) if reads.send((number, Read::Octets(buffer.split().freeze()))).await.is_err() => break,
                Ok(_) => {}
            }
        }
        // The server may have ended.
        _ = reads.send((number, Read::End)).await;
        std::future::pending::<()>().await;
    };
    let writing = async {
        while let Some(octets) = writes.recv().await {
            let written = tokio::time::timeout(WRITE_TIME_MAX, writer.write_all(&octets)).await;
            if !matches!(written, Ok(Ok(()))) {
                break;
            }
            backlog.remove(octets.len());
        }
        _ = writer.shutdown().await;
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
    // The server may have ended, or may know it.
    _ = reads.send((number, Read::End)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_clients_are_limited_one_by_one_and_together() {
        let all = Backlogs { octets: Arc::default(), octets_max: 2 * WRITE_OCTETS_MAX + 10 };
        let client = || Backlog { octets: AtomicUsize::new(0), all: all.clone() };
        let slow = [client(), client()];
        for one in &slow {
            assert!(one.add(WRITE_OCTETS_MAX) && one.add(1));
            assert!(!one.add(1), "the limit of one client");
        }
        let other = client();
        assert!(other.add(WRITE_OCTETS) && other.add(1), "a client that reads is served");
        assert!(!other.add(1), "the limit of all clients");
        drop(slow);
        assert_eq!(all.octets.load(Ordering::Relaxed), WRITE_OCTETS + 2);
        assert!(other.add(WRITE_OCTETS), "the end of a connection makes room");
        other.remove(2 * WRITE_OCTETS + 2);
        drop(other);
        assert_eq!(all.octets.load(Ordering::Relaxed), 0);
    }
}
