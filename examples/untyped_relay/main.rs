//! A relay between two buses that forwards messages of any type, also of types that it was not compiled with.
//!
//! The relay copies no payload and decodes nothing: a sample carries its type's name and schema, its encoded bytes and the
//! times at which it passed each component.
//!
//! ```sh
//! cargo run --bin example-untyped-relay
//! ```

use std::collections::HashMap;
use std::time::Duration;

use viaduct_bus::{Bus, HopKind, HopStamp, Qos, Recv, UntypedPublisher, UntypedSample, UntypedSubscriber};
use viaduct_messages::foxglove::Log;
use viaduct_messages::viaduct::vehicle::VehicleState;

const QOS: Qos = Qos::keep_last(16);

/// A relay of every topic below a pattern from one bus to another.
struct Relay {
    from: UntypedSubscriber,
    to: Bus,
    publishers: HashMap<String, UntypedPublisher>,
}

impl Relay {
    fn new(from: &Bus, pattern: &str, to: Bus) -> anyhow::Result<Self> {
        Ok(Self { from: from.subscribe_untyped(pattern, QOS, "relay")?, to, publishers: HashMap::new() })
    }

    /// Forwards every sample that is queued. Returns their number.
    fn forward(&mut self) -> anyhow::Result<usize> {
        let mut forwarded = 0;
        while let Some(sample) = self.from.try_recv() {
            let publisher = self.publisher(&sample)?;
            publisher.publish_from(sample.meta(), sample.encoded().clone())?;
            forwarded += 1;
        }
        Ok(forwarded)
    }

    /// Returns the publisher of the sample's topic; opens it with the sample's type if it is the topic's first sample.
    fn publisher(&mut self, sample: &UntypedSample) -> anyhow::Result<&UntypedPublisher> {
        if !self.publishers.contains_key(sample.topic()) {
            let info = sample.type_info().as_ref().clone();
            let publisher = self.to.publisher_untyped(sample.topic(), info, QOS, "relay")?;
            self.publishers.insert(sample.topic().to_owned(), publisher);
        }
        Ok(&self.publishers[sample.topic()])
    }
}

#[expect(clippy::print_stdout, reason = "the output of the example")]
fn main() -> anyhow::Result<()> {
    let (vehicle, logger) = (Bus::new("vehicle"), Bus::new("logger"));
    let mut relay = Relay::new(&vehicle, "vehicle/*", logger.clone())?;
    let states = logger.subscribe::<VehicleState>("vehicle/state", QOS, "reader")?;

    vehicle
        .publisher("vehicle/state", QOS, "driver")?
        .publish(VehicleState { speed_mps: Some(13.9), ..VehicleState::default() })?;
    vehicle
        .publisher("vehicle/log", QOS, "driver")?
        .publish(Log { message: "lights on".to_owned(), ..Log::default() })?;

    println!("forwarded {} samples", relay.forward()?);
    let Recv::Sample(state) = states.recv_timeout(Duration::from_secs(10)) else {
        anyhow::bail!("the vehicle's state did not arrive");
    };
    let published = |stamp: &&HopStamp| stamp.kind() == HopKind::Published;
    let path: Vec<String> = state.meta().stamps().iter().filter(published).map(|stamp| stamp.hop.to_string()).collect();
    println!("speed {:.1} m/s, passed {}", state.speed_mps(), path.join(" -> "));
    Ok(())
}
