//! From one application to another through two real nodes, as their files describe them.
//!
//! ```text
//!                 node car                                       node edge
//! JSON -- TCP --> mqtt_broker - its_station -- UDP multicast --> its_station - mqtt_broker -- TCP --> JSON
//! ```
//!
//! The time starts before the application gives its message to its MQTT client and ends when the other one has it in its
//! hands. One message is under way at a time.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use viaduct_its::facilities::Message;
use viaduct_mqtt::client::Client;
use viaduct_node::Node;
use viaduct_v2x_json::dialect::Dialect;

use super::numbered::NumberedCam;
use super::stages::{Access, Floors};
use super::{Options, end_to_end, paced};
use crate::error::BenchError;
use crate::floor::{WARM_UP, micros};
use crate::paper;
use crate::report::{Beside, Row};

/// The row.
pub(super) const ROW: &str = "viaduct.station_to_station";

/// TCP connections on the way: a broker's own routes need none.
const CONNECTIONS: u32 = 2;

/// What a note says of it.
pub(super) const NOTE: &str = "viaduct.station_to_station: an application publishes a CAM as JSON on the broker of one node, \
    its station sends it by UDP multicast on loopback, and a subscriber of the other node's broker has it; the paper's \
    figure is its total, which has MQTT on the receiving side only; the floor is a frame by UDP and the text by TCP twice";

/// A row for each dialect.
pub(super) fn rows(cam: &Message, floors: &Floors, options: &Options) -> Result<Vec<Row>, BenchError> {
    let runtime = end_to_end::runtime()?;
    let of = |dialect| measure(dialect, cam, floors, options, &runtime);
    [Dialect::Viaduct, Dialect::VanetzaNap].into_iter().map(of).collect()
}

/// The name that configs have for it.
const fn label(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Viaduct => "viaduct",
        Dialect::VanetzaNap => "vanetza_nap",
    }
}

fn measure(
    dialect: Dialect,
    cam: &Message,
    floors: &Floors,
    options: &Options,
    runtime: &Runtime,
) -> Result<Row, BenchError> {
    let mut text = Vec::new();
    cam.write_json_in(dialect.style(), &mut text);
    let cam = NumberedCam::of(&text)?;
    let road = Road::open(dialect, runtime)?;
    let measured = road.run(&cam, floors.pace().rate_hz, options, runtime);
    road.close(runtime);
    let (latencies, lost) = measured?;
    let params = json!({
        "dialect": label(dialect),
        "access": Access::UdpMulticast.label(),
        "rate_hz": floors.pace().rate_hz,
        "cores": floors.pace().cores.label(),
    });
    let beside = Beside {
        paper: Some(paper::total_us()),
        floor: floors.way(Access::UdpMulticast, CONNECTIONS),
        ..Beside::default()
    };
    Ok(Row { beside, ..Row::latencies(ROW, &params, latencies, lost) })
}

/// Two nodes, and an application at each.
struct Road {
    car: Node,
    edge: Node,
    application: Client,
    reader: Client,
    /// Number of each message that the second application got, and when.
    seen: mpsc::Receiver<(u16, Instant)>,
}

impl Road {
    fn open(dialect: Dialect, runtime: &Runtime) -> Result<Self, BenchError> {
        let group = end_to_end::free_group()?;
        let listen = end_to_end::free_tcp_address()?;
        let edge = end_to_end::start("edge.yaml", &edge(listen, &group, dialect), runtime)?;
        let (signs, seen) = mpsc::channel();
        let take = move |message: viaduct_mqtt::Message| {
            let now = Instant::now();
            if let Some(number) = NumberedCam::number(&message.payload) {
                // Nobody listens any more once the last message was given up.
                let _ = signs.send((number, now));
            }
        };
        let reader = runtime.block_on(end_to_end::subscribe_mqtt(listen, take))?;
        let listen = end_to_end::free_tcp_address()?;
        let car = end_to_end::start("car.yaml", &car(listen, &group, dialect), runtime)?;
        let application = runtime.block_on(end_to_end::connect_mqtt("bench-application", listen))?;
        Ok(Self { car, edge, application, reader, seen })
    }

    /// The latencies in microseconds, and how many were lost; the first ones warm up and do not count.
    fn run(
        &self,
        cam: &NumberedCam,
        rate_hz: u32,
        options: &Options,
        runtime: &Runtime,
    ) -> Result<(Vec<f64>, u64), BenchError> {
        let (mut latencies, mut lost) = (Vec::with_capacity(options.paced_packets), 0);
        paced::each(WARM_UP + options.paced_packets, rate_hz, |index, number| {
            match self.send(cam.text(number), number, runtime)? {
                _ if index < WARM_UP => {}
                Some(latency) => latencies.push(micros(latency)),
                None => lost += 1,
            }
            Ok(())
        })?;
        Ok((latencies, lost))
    }

    /// How long one message takes; `None` where it does not come.
    fn send(&self, text: Vec<u8>, number: u16, runtime: &Runtime) -> Result<Option<Duration>, BenchError> {
        let start = Instant::now();
        let published = runtime.block_on(self.application.publish_qos0("send/cam", text));
        published.map_err(BenchError::part("cannot publish by MQTT"))?;
        while let Ok((seen, at)) = self.seen.recv_timeout(paced::PATIENCE.saturating_sub(start.elapsed())) {
            if seen == number {
                return Ok(Some(at.saturating_duration_since(start)));
            }
        }
        Ok(None)
    }

    fn close(self, runtime: &Runtime) {
        // The nodes that they would say goodbye to stop next.
        drop(runtime.block_on(self.application.disconnect()));
        drop(runtime.block_on(self.reader.disconnect()));
        self.car.stop();
        self.edge.stop();
    }
}

/// The node that sends what an application publishes.
fn car(listen: SocketAddr, group: &str, dialect: Dialect) -> String {
    format!(
        "node: car\ncomponents:\n  \
         broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\", \
           inbound: [ {{ from: send/+, to: its/send, dialect: {} }} ] }} }}\n  \
         station: {{ kind: its_station, settings: {{ station_id: 911, station_type: 5, \
           position: {{ latitude_deg: 48.2625, longitude_deg: 11.6675 }}, \
           access: {{ udp_multicast: {group} }}, topics: {{ send: its/send }} }} }}\n",
        label(dialect)
    )
}

/// The node that gives what it receives to an application.
fn edge(listen: SocketAddr, group: &str, dialect: Dialect) -> String {
    format!(
        "node: edge\ncomponents:\n  \
         station: {{ kind: its_station, settings: {{ station_id: 901, access: {{ udp_multicast: {group} }} }} }}\n  \
         broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\", \
           routes: [ {{ from: its/rx/*, to: \"{{topic}}\", dialect: {} }} ] }} }}\n",
        label(dialect)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::its::corpus;

    #[test]
    fn a_message_goes_through_both_nodes_in_both_dialects() {
        let _alone = crate::measuring_alone();
        let options = Options { paced_packets: 5, ..Options::default() };
        let cam = corpus::vectors().unwrap().cam().unwrap().message.clone();
        let rows = rows(&cam, &Floors::default(), &options).unwrap();
        assert_eq!(rows.iter().map(|row| (row.n, row.lost)).collect::<Vec<_>>(), [(5, Some(0)); 2]);
    }
}
