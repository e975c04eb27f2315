//! MQTT: the embedded broker at the receiver's end, and a client for each camera at the sender's.

use std::sync::Arc;

use tokio::runtime::Runtime;
use viaduct_mqtt::client::Client;
use viaduct_mqtt::{ConnectOptions, QoS, SubscribeOptions};
use viaduct_node::Node;

use super::arrivals::Arrivals;
use super::paced::{Parallel, Write};
use super::{Receiver, Sender};
use crate::drive::frame::Header;
use crate::drive::job::{Arrived, Job};
use crate::error::BenchError;
use crate::nodes::{connect_mqtt, runtime, start};

/// A client that publishes the frames of a camera.
struct Publisher {
    runtime: Arc<Runtime>,
    client: Client,
    topic: String,
    acknowledged: bool,
}

pub(super) fn open_sender(job: &Job) -> Result<impl Sender + use<>, BenchError> {
    let runtime = Arc::new(runtime()?);
    let acknowledged = qos(job) == QoS::AtLeastOnce;
    let publishers = (0..job.cameras).map(|camera| {
        let client = runtime.block_on(connect_mqtt(&format!("bench-camera-{camera}"), job.address().into()))?;
        let topic = format!("camera/{camera}");
        Ok(Publisher { runtime: Arc::clone(&runtime), client, topic, acknowledged })
    });
    Parallel::start(job, publishers.collect::<Result<Vec<_>, BenchError>>()?)
}

fn qos(job: &Job) -> QoS {
    if job.variant.as_deref() == Some("1") { QoS::AtLeastOnce } else { QoS::AtMostOnce }
}

impl Write for Publisher {
    fn write(&mut self, frame: &[u8]) -> std::io::Result<()> {
        let publish = if self.acknowledged {
            self.client.publish_qos1(&self.topic, frame.to_vec())
        } else {
            self.client.publish_qos0(&self.topic, frame.to_vec())
        };
        self.runtime.block_on(publish).map_err(std::io::Error::other)
    }
}

/// The broker and its subscriber.
pub(super) struct Broker {
    arrivals: Arrivals,
    runtime: Runtime,
    client: Client,
    node: Node,
}

pub(super) fn open_receiver(job: &Job) -> Result<Broker, BenchError> {
    let runtime = runtime()?;
    let config = format!(
        "node: desk\ncomponents:\n  broker: {{ kind: mqtt_broker, settings: {{ listen: \"{}\", anonymous: true }} }}\n",
        job.address()
    );
    let node = start("desk.yaml", &config, &runtime)?;
    let arrivals = Arrivals::new(job);
    let theirs = arrivals.clone();
    let client = runtime.block_on(async {
        let client = Client::new(ConnectOptions::new("bench-desk"));
        let address = format!("mqtt://{}", job.address());
        client.connect(&address).await.map_err(BenchError::part("cannot connect by MQTT"))?;
        let options = SubscribeOptions { qos: qos(job), ..SubscribeOptions::default() };
        let take = move |message: viaduct_mqtt::Message| {
            if let Some(header) = Header::read(&message.payload) {
                theirs.add(&header);
            }
        };
        client.subscribe("camera/+", options, take).await.map_err(BenchError::part("cannot subscribe by MQTT"))?;
        Ok::<_, BenchError>(client)
    })?;
    Ok(Broker { arrivals, runtime, client, node })
}

impl Receiver for Broker {
    fn finish(self: Box<Self>, job: &Job) -> Result<Arrived, BenchError> {
        self.arrivals.drain(job);
        let arrived = self.arrivals.take();
        // An error is ignored: the node stops next.
        let _ = self.runtime.block_on(self.client.disconnect());
        self.node.stop();
        Ok(arrived)
    }
}
