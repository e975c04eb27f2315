//! A client and a server in virtual time.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_coap::codec::{Code, ContentFormat, Message, OptionNumber};
use viaduct_coap::{Endpoint, Event, ExchangeId, ObservationId, Request, RequestId, Resource, Response, Settings};
use viaduct_netem::link::{Delay, Loss};
use viaduct_netem::{DatagramMachine, LinkSettings, Pair, PairSettings, Probability};
use viaduct_units::Mono;

pub const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4000);
pub const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 4000);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn at(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

/// A client that collects its events.
pub struct Robot {
    pub endpoint: Endpoint,
    pub events: Vec<(Mono, Event)>,
}

impl Robot {
    pub fn new(settings: Settings) -> Self {
        Self { endpoint: Endpoint::new(settings, 11), events: vec![] }
    }

    fn settle(&mut self, now: Mono) {
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push((now, event));
        }
    }

    pub fn responses(&self) -> Vec<(RequestId, Response)> {
        let response = |event: &Event| match event {
            Event::Response { id, response } => Some((*id, response.clone())),
            _ => None,
        };
        self.events.iter().filter_map(|(_, event)| response(event)).collect()
    }

    pub fn notifications(&self) -> Vec<Bytes> {
        let payload = |event: &Event| match event {
            Event::Notification { response, .. } => Some(response.payload.clone()),
            _ => None,
        };
        self.events.iter().filter_map(|(_, event)| payload(event)).collect()
    }

    pub fn only_response(&self) -> Response {
        let responses = self.responses();
        assert_eq!(responses.len(), 1, "{:?}", self.events);
        responses[0].1.clone()
    }
}

impl DatagramMachine for Robot {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.endpoint.handle_datagram(now, from, datagram);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.endpoint.handle_timeout(now);
        self.settle(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.endpoint.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.endpoint.poll_timeout()
    }
}

/// A server with resources that store what is PUT, append what is POSTed, and can be observed.
///
/// `/slow` is answered after 200 ms, `/blob` is a body of its `size` in the query, `/number` counts its POSTs.
pub struct Edge {
    pub endpoint: Endpoint,
    pub requests: Vec<Request>,
    pub ended: Vec<Event>,
    pub values: BTreeMap<String, Bytes>,
    pub observers: BTreeMap<ObservationId, String>,
    delayed: VecDeque<(Mono, ExchangeId, Response)>,
}

impl Edge {
    pub fn new(settings: Settings) -> Self {
        let mut endpoint = Endpoint::new(settings, 22);
        let mut pose = Resource::new("pose");
        pose.observable = true;
        pose.types = vec!["robot.pose".to_owned()];
        endpoint.set_resources(vec![pose, Resource::new("blob")]);
        Self {
            endpoint,
            requests: vec![],
            ended: vec![],
            values: BTreeMap::new(),
            observers: BTreeMap::new(),
            delayed: VecDeque::new(),
        }
    }

    pub fn set(&mut self, now: Mono, path: &str, value: impl Into<Bytes>) {
        let value = value.into();
        self.values.insert(path.to_owned(), value.clone());
        for (id, _) in self.observers.clone().into_iter().filter(|(_, observed)| observed == path) {
            self.endpoint.notify(now, id, Response::content(ContentFormat::TEXT, value.clone()));
        }
    }

    fn settle(&mut self, now: Mono) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Request { id, request, observe } => {
                    self.requests.push(request.clone());
                    self.answer(now, id, &request, observe);
                }
                Event::ObservationEnded { id, .. } => {
                    self.observers.remove(&id);
                    self.ended.push(event);
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, now: Mono, id: ExchangeId, request: &Request, observe: Option<ObservationId>) {
        let path = request.path_string();
        let response = self.response(request, &path);
        match observe {
            _ if path == "slow" => self.delayed.push_back((now.plus(ms(200)), id, response)),
            Some(observation) if response.code.is_success() => {
                self.observers.insert(observation, path);
                self.endpoint.respond_observed(now, id, response);
            }
            _ => self.endpoint.respond(now, id, response),
        }
    }

    fn response(&mut self, request: &Request, path: &str) -> Response {
        match request.method {
            Code::GET if path == "blob" => Response::content(ContentFormat::OCTET_STREAM, blob(size_of_query(request))),
            Code::GET if path == "slow" => Response::content(ContentFormat::TEXT, "slow"),
            Code::GET => match self.values.get(path) {
                Some(value) => Response::content(ContentFormat::TEXT, value.clone()),
                None => Response::new(Code::NOT_FOUND),
            },
            Code::PUT => {
                self.values.insert(path.to_owned(), request.payload.clone());
                Response::new(Code::CHANGED)
            }
            Code::POST if path == "echo" => {
                Response::new(Code::CHANGED).with_payload(ContentFormat::OCTET_STREAM, request.payload.clone())
            }
            Code::POST => {
                let count = self.requests.len().to_string();
                Response::new(Code::CREATED).with_option(OptionNumber::LOCATION_PATH, Bytes::from(count))
            }
            Code::DELETE => {
                self.values.remove(path);
                Response::new(Code::DELETED)
            }
            _ => Response::new(Code::METHOD_NOT_ALLOWED),
        }
    }
}

pub fn blob(octets: usize) -> Bytes {
    (0..octets).map(|index| (index * 7 + index / 251) as u8).collect()
}

fn size_of_query(request: &Request) -> usize {
    let sizes = request.query().filter_map(|item| std::str::from_utf8(item).ok()?.strip_prefix("size=")?.parse().ok());
    sizes.last().unwrap_or(0)
}

impl DatagramMachine for Edge {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.endpoint.handle_datagram(now, from, datagram);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        while self.delayed.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, id, response)) = self.delayed.pop_front() else { break };
            self.endpoint.respond(now, id, response);
        }
        self.endpoint.handle_timeout(now);
        self.settle(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.endpoint.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        let delayed = self.delayed.front().map(|(at, ..)| *at);
        [delayed, self.endpoint.poll_timeout()].into_iter().flatten().min()
    }
}

/// Returns a client and a server over a link with 10 ms in each direction and a share of lost datagrams.
pub fn pair(settings: Settings, loss: f64, seed: u64) -> Pair<Robot, Edge> {
    pair_of(settings.clone(), settings, loss, seed)
}

pub fn pair_of(client: Settings, server: Settings, loss: f64, seed: u64) -> Pair<Robot, Edge> {
    let link = LinkSettings {
        loss: Loss::Independent(Probability::new(loss).unwrap()),
        delay: Delay { base: ms(10), ..Delay::default() },
        ..LinkSettings::default()
    };
    let settings = PairSettings { address_a: CLIENT, address_b: SERVER, seed, ..PairSettings::symmetric(link) };
    Pair::new(settings, Robot::new(client), Edge::new(server)).unwrap()
}

/// Returns the messages that an endpoint sends now, as text of type, code and token length.
pub fn sent(endpoint: &mut Endpoint) -> Vec<Bytes> {
    std::iter::from_fn(|| endpoint.poll_transmit()).map(|(_, datagram)| datagram).collect()
}

pub fn parse(datagram: &Bytes) -> Message<'_> {
    Message::parse(datagram).unwrap()
}
