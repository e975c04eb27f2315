//! The machines of a server and a gateway on a socket of their own thread: the protocol alone, without the bus and a broker.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_coap::codec::Code;
use viaduct_coap::{Endpoint, Event, Response};
use viaduct_mqttsn::Destination;
use viaduct_mqttsn::gateway::{Gateway, GatewayEvent, GatewaySettings, Mode};
use viaduct_units::Mono;

use crate::error::BenchError;
use crate::threads::Threads;

/// Wait after which a thread looks whether it shall end.
const POLL_PERIOD: Duration = Duration::from_millis(100);

/// A machine with one socket.
trait Machine: Send + 'static {
    fn handle(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes);
    fn handle_timeout(&mut self, now: Mono);
    fn timeout(&self) -> Option<Mono>;
    fn transmit(&mut self) -> Option<(SocketAddr, Bytes)>;
}

/// A thread that serves a machine until it is dropped.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    _threads: Threads,
}

/// Serves requests of CoAP, which are answered 2.04.
pub(super) fn coap() -> Result<Served, BenchError> {
    let settings = viaduct_coap::Settings::default();
    serve("bench-coap", Coap(Endpoint::new(settings, 1)))
}

/// Serves clients of MQTT-SN, whose messages are acknowledged at once.
pub(super) fn gateway() -> Result<Served, BenchError> {
    let settings = GatewaySettings { mode: Mode::Aggregating, advertise: None, ..GatewaySettings::default() };
    let gateway = Gateway::new(settings, 1).map_err(BenchError::part("cannot configure a gateway"))?;
    serve("bench-gateway", Sn(gateway))
}

fn serve(name: &str, mut machine: impl Machine) -> Result<Served, BenchError> {
    let failed = BenchError::system("cannot open a UDP socket");
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(&failed)?;
    let address = socket.local_addr().map_err(&failed)?;
    let mut threads = Threads::default();
    threads.add(name, move |stop| {
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let now = clock::mono();
            let wait =
                machine.timeout().map_or(POLL_PERIOD, |at| at.since(now)).clamp(Duration::from_micros(1), POLL_PERIOD);
            if socket.set_read_timeout(Some(wait)).is_err() {
                return;
            }
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let datagram = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
                    machine.handle(clock::mono(), from, &datagram);
                }
                Err(cause) if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    machine.handle_timeout(clock::mono());
                }
                // An earlier receiver does not listen any more.
                Err(_) => {}
            }
            while let Some((to, datagram)) = machine.transmit() {
                // A client that has gone does not answer.
                let _ = socket.send_to(&datagram, to);
            }
        }
    })?;
    Ok(Served { address, _threads: threads })
}

struct Coap(Endpoint);

impl Machine for Coap {
    fn handle(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.0.handle_datagram(now, from, datagram);
        while let Some(event) = self.0.poll_event() {
            if let Event::Request { id, .. } = event {
                self.0.respond(now, id, Response::new(Code::CHANGED));
            }
        }
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.0.handle_timeout(now);
    }

    fn timeout(&self) -> Option<Mono> {
        self.0.poll_timeout()
    }

    fn transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.0.poll_transmit()
    }
}

struct Sn(Gateway);

impl Machine for Sn {
    fn handle(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.0.handle_datagram(now, from, datagram);
        while let Some(event) = self.0.poll_event() {
            match event {
                GatewayEvent::Publish { token: Some(token), .. } => self.0.published(token, Ok(())),
                GatewayEvent::Record { token: Some(token), .. } => self.0.persisted(token),
                GatewayEvent::Subscribe { token, qos, .. } => self.0.subscribed(now, token, Ok(qos)),
                _ => {}
            }
        }
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.0.handle_timeout(now);
    }

    fn timeout(&self) -> Option<Mono> {
        self.0.poll_timeout()
    }

    fn transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        let transmit = self.0.poll_transmit()?;
        match transmit.to {
            Destination::Unicast(address) => Some((address, transmit.datagram)),
            Destination::Broadcast { .. } => None,
        }
    }
}
