//! Latency from one application to another through two real nodes, started from configs.
//!
//! ```text
//!                 node car                                       node edge
//! JSON -- TCP --> mqtt_broker - its_station -- UDP multicast --> its_station - mqtt_broker -- TCP --> JSON
//! ```
//!
//! The time starts before the application passes the message to its MQTT client and ends when the other application
//! receives it. At most one message is in flight.

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
use crate::report::{References, Row};

/// Name of the row.
pub(super) const ROW: &str = "viaduct.station_to_station";

/// TCP connections on the path; a broker's own routes use none.
const CONNECTIONS: u32 = 2;

/// Note for the report.
pub(super) const NOTE: &str = "viaduct.station_to_station: an application publishes a CAM as JSON on the broker of one node, \
    its station sends it by UDP multicast on loopback, and a subscriber of the other node's broker receives it; the paper's \
    figure is its total, with MQTT on the receiving side only; the floor is a frame by UDP plus twice the text by TCP";

/// Returns a row for each dialect.
pub(super) fn rows(cam: &Message, floors: &Floors, options: &Options) -> Result<Vec<Row>, BenchError> {
    let runtime = end_to_end::runtime()?;
    let of = |dialect| measure(dialect, cam, floors, options, &runtime);
    [Dialect::Viaduct, Dialect::VanetzaNap].into_iter().map(of).collect()
}

/// Returns the dialect's name in configs.
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
    let nodes = TwoNodes::open(dialect, runtime)?;
    let measured = nodes.run(&cam, floors.pace().rate_hz, options, runtime);
    nodes.close(runtime);
    let (latencies, lost) = measured?;
    let params = json!({
        "dialect": label(dialect),
        "access": Access::UdpMulticast.label(),
        "rate_hz": floors.pace().rate_hz,
        "cores": floors.pace().cores.label(),
    });
    let references = References {
        paper: Some(paper::total_us()),
        floor: floors.path(Access::UdpMulticast, CONNECTIONS),
        ..References::default()
    };
    Ok(Row { references, ..Row::latencies(ROW, &params, latencies, lost) })
}

/// Two nodes with one application each.
struct TwoNodes {
    car: Node,
    edge: Node,
    application: Client,
    reader: Client,
    /// Number and arrival time of each message that the second application received.
    seen: mpsc::Receiver<(u16, Instant)>,
}

impl TwoNodes {
    fn open(dialect: Dialect, runtime: &Runtime) -> Result<Self, BenchError> {
        let group = end_to_end::free_group()?;
        let listen = end_to_end::free_tcp_address()?;
        let edge = end_to_end::start("edge.yaml", &edge(listen, &group, dialect), runtime)?;
        let (observations, seen) = mpsc::channel();
        let take = move |message: viaduct_mqtt::Message| {
            let now = Instant::now();
            if let Some(number) = NumberedCam::number(&message.payload) {
                // Fails after the last message has timed out, when the receiver is gone.
                let _ = observations.send((number, now));
            }
        };
        let reader = runtime.block_on(end_to_end::subscribe_mqtt(listen, take))?;
        let listen = end_to_end::free_tcp_address()?;
        let car = end_to_end::start("car.yaml", &car(listen, &group, dialect), runtime)?;
        let application = runtime.block_on(end_to_end::connect_mqtt("bench-application", listen))?;
        Ok(Self { car, edge, application, reader, seen })
    }

    /// Sends all messages. Returns the latencies in microseconds and the number of lost messages, both without the
    /// warm-up.
    fn run(
        &self,
        cam: &NumberedCam,
        rate_hz: u32,
        options: &Options,
        runtime: &Runtime,
    ) -> Result<(Vec<f64>, u64), BenchError> {
        let mut latencies = Vec::with_capacity(options.paced_packets);
        let mut lost = 0;
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

    /// Sends one message. Returns its latency, or `None` if it is lost.
    fn send(&self, text: Vec<u8>, number: u16, runtime: &Runtime) -> Result<Option<Duration>, BenchError> {
        let start = Instant::now();
        let published = runtime.block_on(self.application.publish_qos0("send/cam", text));
        published.map_err(BenchError::part("cannot publish by MQTT"))?;
        while let Ok((seen, at)) = self.seen.recv_timeout(paced::TIMEOUT.saturating_sub(start.elapsed())) {
            if seen == number {
                return Ok(Some(at.saturating_duration_since(start)));
            }
        }
        Ok(None)
    }

    fn close(self, runtime: &Runtime) {
        // Errors are ignored: the nodes stop next.
        drop(runtime.block_on(self.application.disconnect()));
        drop(runtime.block_on(self.reader.disconnect()));
        self.car.stop();
        self.edge.stop();
    }
}

/// Returns the config of the sending node.
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

/// Returns the config of the receiving node.
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
    fn sends_a_message_through_both_nodes_in_both_dialects() {
        let _lock = crate::measurement_lock();
        let options = Options { paced_packets: 5, ..Options::default() };
        let cam = corpus::vectors().unwrap().cam().unwrap().message.clone();
        let rows = rows(&cam, &Floors::default(), &options).unwrap();
        assert_eq!(rows.iter().map(|row| (row.n, row.lost)).collect::<Vec<_>>(), [(5, Some(0)); 2]);
    }
}
