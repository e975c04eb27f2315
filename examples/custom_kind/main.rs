//! A kind of your own beside Viaduct's kinds: the program joins the tables and starts a node from a config file.
//!
//! ```sh
//! cargo run --bin example-custom-kind examples/custom_kind/node.yaml
//! ```

use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Publisher, Qos, Recv, Sample};
use viaduct_messages::foxglove::{Log, PointCloud};
use viaduct_messages::topic;
use viaduct_node::{CallbackContext, Component, Context, Edges, Graph, Kind, Node, SettingError, StartError};

/// The row of the new kind.
const POINT_COUNTER: Kind =
    Kind::of::<PointCounter>("point_counter", "Counts the points of point clouds.", "topic: lidar/points");

const REPORT_TOPIC: &str = "counter/report";

/// Settings of a [`PointCounter`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PointCounterSettings {
    /// Topic of type `foxglove.PointCloud`.
    topic: String,
    /// Number of clouds between two reports, at least 1. Default 10.
    #[serde(default = "default_report_every")]
    #[schemars(range(min = 1))]
    report_every: u64,
}

const fn default_report_every() -> u64 {
    10
}

/// A component that counts points and publishes a report after every `report_every` clouds.
struct PointCounter {
    report_every: u64,
    clouds: u64,
    points: u64,
    reports: Publisher<Log>,
}

impl Component for PointCounter {
    type Settings = PointCounterSettings;

    fn check(settings: &PointCounterSettings) -> Result<(), SettingError> {
        topic::check_name(&settings.topic).map_err(|error| SettingError::new("topic", error.to_string()))?;
        if settings.report_every == 0 {
            return Err(SettingError::new("report_every", "0 is less than 1"));
        }
        Ok(())
    }

    fn edges(settings: &PointCounterSettings) -> Edges {
        Edges::default().reads::<PointCloud>("topic", &settings.topic, Qos::sensor_data()).publishes::<Log>(
            "",
            REPORT_TOPIC,
            Qos::sensor_data(),
        )
    }

    fn start(settings: PointCounterSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let clouds = context.subscribe::<PointCloud>(&settings.topic, Qos::sensor_data())?;
        context.on(clouds, Self::count);
        Ok(Self {
            report_every: settings.report_every,
            clouds: 0,
            points: 0,
            reports: context.publisher(REPORT_TOPIC, Qos::sensor_data())?,
        })
    }
}

impl PointCounter {
    #[expect(clippy::needless_pass_by_value, reason = "a callback owns its sample")]
    fn count(&mut self, cloud: Sample<PointCloud>, callback: &mut CallbackContext) {
        self.clouds += 1;
        self.points += cloud.data.len() as u64 / u64::from(cloud.point_stride.max(1));
        if !self.clouds.is_multiple_of(self.report_every) {
            return;
        }
        let message = format!("{} points in {} clouds", self.points, self.clouds);
        if let Err(error) = self.reports.publish_from(cloud.meta(), Log { message, ..Log::default() }) {
            callback.fail(error);
        }
    }
}

#[expect(clippy::print_stdout, reason = "the output of the example")]
fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("usage: example-custom-kind FILE")?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let kinds = [viaduct_components::KINDS, &[POINT_COUNTER]].concat();
    let runtime = tokio::runtime::Runtime::new()?;
    let node = Node::start(Graph::resolve(&file, &text, &kinds)?, runtime.handle())?;
    let reports = node.bus().subscribe::<Log>(REPORT_TOPIC, Qos::keep_last(8), "example")?;
    for _ in 0..2 {
        let Recv::Sample(report) = reports.recv_timeout(Duration::from_secs(10)) else {
            anyhow::bail!("no report within 10 s");
        };
        println!("{}", report.message);
    }
    node.stop();
    Ok(())
}
