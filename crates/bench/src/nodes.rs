//! Nodes and MQTT clients of a bench.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Runtime;
use viaduct_mqtt::ConnectOptions;
use viaduct_mqtt::client::Client;
use viaduct_node::{Graph, Kind, Node};

use crate::error::BenchError;

/// Maximum number of connection attempts; the broker may still be starting.
const CONNECT_TRIES: u32 = 50;

/// Starts the runtime of the measured nodes.
pub(crate) fn runtime() -> Result<Runtime, BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(BenchError::system("cannot start the runtime"))
}

/// Starts a node with this config.
pub(crate) fn start(file: &str, text: &str, runtime: &Runtime) -> Result<Node, BenchError> {
    let kinds: Vec<Kind> = [viaduct_components::KINDS, viaduct_backend::KINDS].concat();
    let graph = Graph::resolve(file, text, &kinds).map_err(BenchError::part("cannot resolve a node"))?;
    Node::start(graph, runtime.handle()).map_err(BenchError::part("cannot start a node"))
}

/// Connects a client to the broker.
pub(crate) async fn connect_mqtt(name: &str, address: SocketAddr) -> Result<Client, BenchError> {
    let client = Client::new(ConnectOptions::new(name));
    let mut tries = 0;
    while let Err(error) = client.connect(&format!("mqtt://{address}")).await {
        tries += 1;
        if tries >= CONNECT_TRIES {
            return Err(BenchError::part("cannot connect by MQTT")(error));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(client)
}
