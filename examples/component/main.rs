//! Two components on one bus: a vehicle that accelerates, and a monitor that publishes a warning if it is too fast.
//!
//! ```sh
//! cargo run --bin example-component
//! ```

use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Publisher, Qos, Recv, Sample};
use viaduct_messages::foxglove::Log;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{CallbackContext, Component, Context, Edges, Graph, Kind, Node, SettingError, StartError};

/// The node's config. A real node reads it from a file.
const CONFIG: &str = "
node: example
components:
  vehicle:
    kind: vehicle
    settings: { acceleration_mps2: 50 }
  monitor:
    kind: speed_monitor
    settings: { limit_mps: 13.9 }
";

/// Every kind that the config may name.
const KINDS: &[Kind] = &[
    Kind::of::<Vehicle>("vehicle", "Accelerates from standstill.", "acceleration_mps2: 1"),
    Kind::of::<SpeedMonitor>("speed_monitor", "Warns if the vehicle is too fast.", "limit_mps: 13.9"),
];

const STATE_TOPIC: &str = "vehicle/state";
const WARNING_TOPIC: &str = "vehicle/warnings";
const STEP: Duration = Duration::from_millis(20);

/// Settings of a [`Vehicle`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VehicleSettings {
    /// Acceleration in metres per second squared.
    acceleration_mps2: f64,
}

/// A vehicle that accelerates and publishes its state every 20 ms.
struct Vehicle {
    acceleration_mps2: f64,
    speed_mps: f64,
    states: Publisher<VehicleState>,
}

impl Component for Vehicle {
    type Settings = VehicleSettings;

    fn edges(_: &VehicleSettings) -> Edges {
        Edges::default().publishes::<VehicleState>("", STATE_TOPIC, Qos::sensor_data())
    }

    fn start(settings: VehicleSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        context.every(STEP, Self::step);
        Ok(Self {
            acceleration_mps2: settings.acceleration_mps2,
            speed_mps: 0.0,
            states: context.publisher(STATE_TOPIC, Qos::sensor_data())?,
        })
    }
}

impl Vehicle {
    fn step(&mut self, callback: &mut CallbackContext) {
        self.speed_mps += self.acceleration_mps2 * STEP.as_secs_f64();
        let state = VehicleState { speed_mps: Some(self.speed_mps), ..VehicleState::default() };
        if let Err(error) = self.states.publish(state) {
            callback.fail(error);
        }
    }
}

/// Settings of a [`SpeedMonitor`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpeedMonitorSettings {
    /// Highest permitted speed in metres per second, more than 0.
    limit_mps: f64,
}

/// A component that reads the vehicle's state and publishes a warning for each state above the limit.
struct SpeedMonitor {
    limit_mps: f64,
    warnings: Publisher<Log>,
    received: Counter,
}

impl Component for SpeedMonitor {
    type Settings = SpeedMonitorSettings;

    fn check(settings: &SpeedMonitorSettings) -> Result<(), SettingError> {
        if settings.limit_mps > 0.0 {
            return Ok(());
        }
        Err(SettingError::new("limit_mps", format!("{} is not more than 0", settings.limit_mps)))
    }

    fn edges(_: &SpeedMonitorSettings) -> Edges {
        Edges::default().reads::<VehicleState>("", STATE_TOPIC, Qos::sensor_data()).publishes::<Log>(
            "",
            WARNING_TOPIC,
            Qos::sensor_data(),
        )
    }

    fn start(settings: SpeedMonitorSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let states = context.subscribe::<VehicleState>(STATE_TOPIC, Qos::sensor_data())?;
        context.on(states, Self::check_speed);
        Ok(Self {
            limit_mps: settings.limit_mps,
            warnings: context.publisher(WARNING_TOPIC, Qos::sensor_data())?,
            received: context.counter("received"),
        })
    }
}

impl SpeedMonitor {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn check_speed(&mut self, state: Sample<VehicleState>, callback: &mut CallbackContext) {
        self.received.increment();
        let Some(speed_mps) = state.speed_mps.filter(|speed_mps| *speed_mps > self.limit_mps) else {
            return;
        };
        let message = format!("{speed_mps:.0} m/s is above the limit of {} m/s", self.limit_mps);
        let warning = Log { message, ..Log::default() };
        // The warning inherits the state's origin and hop stamps, so its latency counts from the state's creation.
        if let Err(error) = self.warnings.publish_from(state.meta(), warning) {
            callback.fail(error);
        }
    }
}

#[expect(clippy::print_stdout, reason = "the output of the example")]
fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let graph = Graph::resolve("example.yaml", CONFIG, KINDS)?;
    let node = Node::start(graph, runtime.handle())?;
    let warnings = node.bus().subscribe::<Log>(WARNING_TOPIC, Qos::keep_last(8), "example")?;
    for _ in 0..3 {
        let Recv::Sample(warning) = warnings.recv_timeout(Duration::from_secs(10)) else {
            anyhow::bail!("no warning within 10 s");
        };
        println!("{}", warning.message);
    }
    node.stop().then_some(()).context("the node did not stop cleanly")
}
