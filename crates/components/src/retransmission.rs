//! The setting `timers` of protocols for constrained devices.

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_units::retransmission::Profile;

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

impl Timers {
    /// Returns the waits of MQTT-SN.
    pub(crate) const fn mqttsn(self) -> Profile {
        match self {
            Self::Standard => viaduct_mqttsn::STANDARD,
            Self::Adaptive => Profile::ADAPTIVE,
        }
    }

    /// Returns the waits of CoAP.
    pub(crate) const fn coap(self) -> Profile {
        match self {
            Self::Standard => viaduct_coap::settings::STANDARD,
            Self::Adaptive => viaduct_coap::settings::ADAPTIVE,
        }
    }
}
