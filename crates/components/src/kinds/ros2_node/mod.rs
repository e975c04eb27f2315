//! Kind `ros2_node`: a node of ROS 2, without a ROS installation.
//!
//! It subscribes to topics of ROS and publishes their messages on the bus, and the reverse. The type and its hash come from the
//! discovery of DDS and messages pass as their CDR octets, so messages of any type pass, also of types that this binary does not have.
//!
//! Settings and their checks are part of each build. The node itself needs the feature `ros2`, which builds Cyclone DDS.
//!
//! | module | purpose |
//! |---|---|
//! | `settings` | settings and their checks |
//! | `network` | the configuration of Cyclone DDS for a domain |
//! | `qos` | quality of service that fits the discovered peers |
//! | `node` | start, and the thread that waits for messages and discovery |
//! | `discovery` | endpoints of peers by topic |
//! | `subscription` | messages of DDS: from ROS to the bus |
//! | `publication` | messages of the bus: from the bus to ROS |
//! | `graph` | the topic that shows the node to `ros2 node list` |
//! | `sys` | Cyclone DDS |

#[cfg(feature = "ros2")]
mod counters;
#[cfg(feature = "ros2")]
mod discovery;
#[cfg(feature = "ros2")]
mod graph;
#[cfg(any(test, feature = "ros2"))]
mod network;
#[cfg(feature = "ros2")]
mod node;
#[cfg(feature = "ros2")]
mod publication;
#[cfg(any(test, feature = "ros2"))]
mod qos;
mod settings;
#[cfg(feature = "ros2")]
mod subscription;
#[cfg(feature = "ros2")]
mod sys;

use viaduct_bus::Qos;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};

pub use settings::{Distribution, PublicationSettings, Ros2NodeSettings, SubscriptionSettings};

/// Quality of service of subscriptions on the bus.
const OFFERED: Qos = Qos::keep_last(8);

/// A node. All its work is in its threads.
pub struct Ros2Node;

impl Component for Ros2Node {
    type Settings = Ros2NodeSettings;

    fn check(settings: &Ros2NodeSettings) -> Result<(), SettingError> {
        settings.check()
    }

    fn check_machine(settings: &Ros2NodeSettings) -> Result<(), SettingError> {
        settings.check_machine()
    }

    fn edges(settings: &Ros2NodeSettings) -> Edges {
        let mut edges = Edges::default();
        for (index, one) in settings.subscriptions.iter().enumerate() {
            edges = edges.publishes_untyped(&format!("subscriptions.{index}.to"), &one.to, OFFERED);
        }
        for (index, one) in settings.publications.iter().enumerate() {
            edges = edges.reads_untyped(&format!("publications.{index}.from"), &one.from, Qos::keep_last(one.queue));
        }
        edges
    }

    #[cfg(feature = "ros2")]
    fn start(settings: Ros2NodeSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        node::start(&settings, context)
    }

    #[cfg(not(feature = "ros2"))]
    fn start(_: Ros2NodeSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Err(StartError::Other(
            "this binary was built without ROS 2; build one with `make build-ros2`, or `cargo build --release -p viaduct-cli \
             --features ros2` (needs cmake and libclang)"
                .into(),
        ))
    }
}
