//! The setting `timers` of protocols for constrained devices.

use schemars::JsonSchema;
use serde::Deserialize;

/// Waits before a message without an answer is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timers {
    /// The fixed waits of the specification: 2 to 3 s, doubled four times for CoAP; 10 s, four times for MQTT-SN.
    #[default]
    Standard,
    /// Waits from measured round trips: RFC 6298 with Karn's rule, and the weak estimate of CoCoA. For links that lose packets.
    Adaptive,
}
