//! A vehicle and a desk, each in a node of its own, and the relay between them.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_bus::{Qos, Recv, Subscriber};
use viaduct_messages::viaduct::teleop::DrivingEvent;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{Graph, Node};

use super::PATIENCE;
use super::page::Page;
use super::relay::Relay;

pub(crate) const ADA: &str = "token-of-the-driver-ada";
pub(crate) const BOB: &str = "token-of-the-driver-bob";
pub(crate) const ROOM: &str = "token-of-the-observers";

/// Protection of the two ends, as YAML.
pub(crate) struct Security {
    pub(crate) vehicle: String,
    pub(crate) desk: String,
}

impl Security {
    pub(crate) fn none() -> Self {
        Self { vehicle: "none".to_owned(), desk: "none".to_owned() }
    }
}

pub(crate) struct Drive {
    vehicle: Node,
    desk: Node,
    pub(crate) relay: Relay,
    /// Address of the page.
    http: SocketAddr,
    /// Address of the desk's datagrams.
    pub(crate) datagrams: SocketAddr,
    pub(crate) events: Subscriber<DrivingEvent>,
    pub(crate) states: Subscriber<VehicleState>,
    pub(crate) runtime: Runtime,
    /// The tests share two cores, and a driver who is late loses control.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Drive {
    pub(crate) fn start(security: &Security) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (http, datagrams) = (free_tcp(), free_udp());
        let relay = Relay::start(runtime.handle(), datagrams);
        let desk = node(&runtime, &desk_text(http, datagrams, &security.desk));
        let vehicle = node(&runtime, &vehicle_text(relay.address, &security.vehicle));
        let events = vehicle.bus().subscribe("teleop/events", Qos::keep_last(256), "test").unwrap();
        let states = vehicle.bus().subscribe("vehicle/state", Qos::keep_last(1), "test").unwrap();
        Self { vehicle, desk, relay, http, datagrams, events, states, runtime, _alone: alone }
    }

    /// Opens a page, and waits until it sees the vehicle.
    pub(crate) fn page(&self, token: &str) -> Page {
        let page = Page::open(self.runtime.handle(), self.http, token);
        page.wait("link", |state| state["link"]["connected"] == true);
        page.frames(0, 1);
        page
    }

    /// Opens a page without a vehicle.
    pub(crate) fn lonely_page(&self, token: &str) -> Page {
        Page::open(self.runtime.handle(), self.http, token)
    }

    /// Returns the value of a counter of the vehicle's end.
    pub(crate) fn at_vehicle(&self, name: &str, reason: Option<&str>) -> u64 {
        count(&self.vehicle, "drive", name, reason)
    }

    /// Returns the value of a counter of the desk.
    pub(crate) fn at_desk(&self, name: &str, reason: Option<&str>) -> u64 {
        count(&self.desk, "desk", name, reason)
    }

    /// Waits until the speed of the vehicle, as it measures it, fulfils the condition.
    pub(crate) fn wait_for_speed(&self, what: &str, condition: impl Fn(f64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let speed = self.speed();
            if condition(speed) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: the speed is {speed} m/s");
        }
    }

    /// Returns the next measured speed of the vehicle.
    pub(crate) fn speed(&self) -> f64 {
        match self.states.recv_timeout(PATIENCE) {
            Recv::Sample(state) => state.speed_mps.unwrap_or(f64::NAN),
            other => panic!("no state of the vehicle: {other:?}"),
        }
    }

    /// Publishes a state of the vehicle beside those of the model.
    pub(crate) fn publish_state(&self, state: VehicleState) {
        let publisher = self.vehicle.bus().publisher("vehicle/state", Qos::keep_last(1), "test").unwrap();
        publisher.publish(state).unwrap();
    }

    /// Returns the events so far: the new states, each with its reason, and the other events.
    pub(crate) fn events(&self) -> Vec<String> {
        let mut all = Vec::new();
        while let Recv::Sample(event) = self.events.recv_timeout(Duration::ZERO) {
            all.push(match event.event.as_str() {
                "state" => format!("{} {}", event.to, event.reason),
                other => other.to_owned(),
            });
        }
        all
    }

    pub(crate) fn stop(self) {
        for mut node in [self.vehicle, self.desk] {
            assert!(node.try_failed().is_none());
            assert!(node.stop());
        }
    }
}

/// Waits until a number fulfils the condition.
pub(crate) fn eventually(what: &str, number: impl Fn() -> u64, condition: impl Fn(u64) -> bool) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let value = number();
        if condition(value) {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: {value}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the value of a counter: the sum of all reasons if none is given.
pub(crate) fn count(node: &Node, component: &str, name: &str, reason: Option<&str>) -> u64 {
    let snapshot = node.bus().snapshot();
    let rows = snapshot.counters.iter().filter(|row| row.component == component && row.name == name);
    rows.filter(|row| reason.is_none() || row.reason.as_deref() == reason).map(|row| row.value).sum()
}

pub(crate) fn node(runtime: &Runtime, text: &str) -> Node {
    let graph =
        Graph::resolve("node.yaml", text, viaduct_components::KINDS).unwrap_or_else(|errors| panic!("{errors}"));
    Node::start(graph, runtime.handle()).unwrap()
}

pub(crate) fn free_tcp() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub(crate) fn free_udp() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Returns the file of a desk. Its times are those of a machine that is busy with other tests.
fn desk_text(http: SocketAddr, listen: SocketAddr, security: &str) -> String {
    format!(
        r#"
node: desk
components:
  desk:
    kind: teleop_desk
    settings:
      listen: {listen}
      security: {security}
      http: {http}
      login:
        people:
          - {{ name: Ada, role: driver, token: {ADA} }}
          - {{ name: Bob, role: driver, token: {BOB} }}
          - {{ name: Control room, role: observer, token: {ROOM} }}
      vehicle: {{ hold_ms: 100, ramp_ms: 1000, stop_ms: 1500 }}
      cameras: [ {{ name: front, place: front }}, {{ name: rear, place: rear }} ]
      input_timeout_ms: 1000
      picture_timeout_ms: 5000
      link_timeout_ms: 1000
"#
    )
}

fn vehicle_text(desk: SocketAddr, security: &str) -> String {
    let camera = |name: &str, index: u8| {
        format!(
            "  {name}:\n    kind: camera\n    settings: {{ topic: camera/{name}, index: {index}, rate_hz: 5, \
             source: {{ synthetic: {{ width: 448, height: 64, view: {name}, state: vehicle/state }} }} }}\n"
        )
    };
    let cameras = camera("front", 0) + &camera("rear", 1);
    format!(
        r#"
node: vehicle
components:
{cameras}  model:
    kind: vehicle_model
    settings: {{ topic: vehicle/state, commands: vehicle/drive, command_timeout_ms: 2000 }}
  drive:
    kind: teleop_vehicle
    settings:
      desk: {desk}
      security: {security}
      vehicle: vehicle/state
      vehicle_timeout_ms: 2000
      cameras: [ {{ topic: camera/front, lifespan_ms: 2000 }}, {{ topic: camera/rear, lifespan_ms: 2000 }} ]
      link_timeout_ms: 1000
      driving: {{ hold_after_ms: 100, ramp_after_ms: 150, stop_after_ms: 1200, blind_after_ms: 2000, latency_distance_m: 20 }}
"#
    )
}
