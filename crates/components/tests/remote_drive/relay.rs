//! A relay between vehicle and desk: an emulated link in each direction, which a test can cut, change and record.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use viaduct_bus::clock;
use viaduct_netem::{Link, LinkSettings};
use viaduct_units::Mono;

/// Largest number of datagrams that are recorded in each direction.
const RECORDED_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToVehicle,
    ToDesk,
}

/// A change by the test.
enum Change {
    Cut(bool),
    Link(Direction, LinkSettings),
    Inject(Direction, Bytes),
}

pub(crate) struct Relay {
    /// Address that the vehicle regards as the desk's one.
    pub(crate) address: SocketAddr,
    changes: UnboundedSender<Change>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    vehicle: Option<SocketAddr>,
    to_vehicle: Vec<Bytes>,
    to_desk: Vec<Bytes>,
}

impl Seen {
    fn of(&mut self, direction: Direction) -> &mut Vec<Bytes> {
        match direction {
            Direction::ToVehicle => &mut self.to_vehicle,
            Direction::ToDesk => &mut self.to_desk,
        }
    }
}

impl Relay {
    /// Starts a relay to the desk without loss and delay.
    pub(crate) fn start(runtime: &Handle, desk: SocketAddr) -> Self {
        let (changes, changed) = unbounded_channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (front, back) = runtime.block_on(async {
            (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap())
        });
        let address = front.local_addr().unwrap();
        let work = Work {
            front,
            back,
            desk,
            cut: false,
            to_vehicle: Link::starting_at(clock::mono(), LinkSettings::default(), 1).unwrap(),
            to_desk: Link::starting_at(clock::mono(), LinkSettings::default(), 2).unwrap(),
            changed,
            seen: seen.clone(),
        };
        runtime.spawn(work.run());
        Self { address, changes, seen }
    }

    fn change(&self, change: Change) {
        assert!(self.changes.send(change).is_ok(), "the relay has ended");
    }

    /// Drops everything in both directions.
    pub(crate) fn cut(&self) {
        self.change(Change::Cut(true));
    }

    pub(crate) fn restore(&self) {
        self.change(Change::Cut(false));
    }

    /// Changes the link of one direction.
    pub(crate) fn set(&self, direction: Direction, settings: LinkSettings) {
        self.change(Change::Link(direction, settings));
    }

    /// Delivers a datagram as if it had come from the other end.
    pub(crate) fn inject(&self, direction: Direction, datagram: Bytes) {
        self.change(Change::Inject(direction, datagram));
    }

    /// Returns the first datagrams of a direction.
    pub(crate) fn recorded(&self, direction: Direction) -> Vec<Bytes> {
        self.seen.lock().unwrap().of(direction).clone()
    }

    /// Returns the address of the vehicle's socket.
    pub(crate) fn vehicle(&self) -> SocketAddr {
        self.seen.lock().unwrap().vehicle.expect("the vehicle has sent")
    }
}

struct Work {
    /// Socket towards the vehicle.
    front: UdpSocket,
    /// Socket towards the desk.
    back: UdpSocket,
    desk: SocketAddr,
    cut: bool,
    to_vehicle: Link,
    to_desk: Link,
    changed: UnboundedReceiver<Change>,
    seen: Arc<Mutex<Seen>>,
}

impl Work {
    async fn run(mut self) {
        let (mut one, mut other) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            let due = [&self.to_vehicle, &self.to_desk].into_iter().filter_map(Link::poll_timeout).min();
            tokio::select! {
                Ok((octets, from)) = self.front.recv_from(&mut one) => {
                    self.seen.lock().unwrap().vehicle = Some(from);
                    self.handle(Direction::ToDesk, &one[..octets]);
                }
                Ok((octets, _)) = self.back.recv_from(&mut other) => self.handle(Direction::ToVehicle, &other[..octets]),
                () = until(due) => {}
                change = self.changed.recv() => match change {
                    Some(change) => self.apply(change).await,
                    None => return,
                },
            }
            self.deliver().await;
        }
    }

    fn handle(&mut self, direction: Direction, datagram: &[u8]) {
        let datagram = Bytes::copy_from_slice(datagram);
        let mut seen = self.seen.lock().unwrap();
        let recorded = seen.of(direction);
        if recorded.len() < RECORDED_MAX {
            recorded.push(datagram.clone());
        }
        if self.cut {
            return;
        }
        match direction {
            Direction::ToVehicle => self.to_vehicle.handle_packet(clock::mono(), datagram),
            Direction::ToDesk => self.to_desk.handle_packet(clock::mono(), datagram),
        }
    }

    async fn apply(&mut self, change: Change) {
        match change {
            Change::Cut(cut) => self.cut = cut,
            Change::Link(Direction::ToVehicle, settings) => {
                self.to_vehicle.set_settings(clock::mono(), settings).unwrap();
            }
            Change::Link(Direction::ToDesk, settings) => self.to_desk.set_settings(clock::mono(), settings).unwrap(),
            Change::Inject(direction, datagram) => self.send(direction, &datagram).await,
        }
    }

    async fn deliver(&mut self) {
        while let Some(datagram) = self.to_vehicle.poll_deliver(clock::mono()) {
            self.send(Direction::ToVehicle, &datagram).await;
        }
        while let Some(datagram) = self.to_desk.poll_deliver(clock::mono()) {
            self.send(Direction::ToDesk, &datagram).await;
        }
    }

    async fn send(&self, direction: Direction, datagram: &[u8]) {
        // A node that has stopped receives nothing.
        let _ = match direction {
            Direction::ToDesk => self.back.send_to(datagram, self.desk).await,
            Direction::ToVehicle => {
                let Some(vehicle) = self.seen.lock().unwrap().vehicle else { return };
                self.front.send_to(datagram, vehicle).await
            }
        };
    }
}

async fn until(due: Option<Mono>) {
    match due {
        Some(due) => tokio::time::sleep(due.since(clock::mono())).await,
        None => tokio::time::sleep(Duration::from_secs(3600)).await,
    }
}
