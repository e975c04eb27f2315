//! Settings of congestion control.

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::SettingError;

/// Data rates of ITS-G5 on a channel of 10 MHz (EN 302 663).
const DATA_RATES_KBPS: [u32; 8] = [3000, 4500, 6000, 9000, 12_000, 18_000, 24_000, 27_000];

/// Congestion control, for a station whose access layer is a shared radio channel.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Dcc {
    /// The adaptive approach of TS 102 687, 5.4: frames wait until the station may use the channel again.
    Adaptive(AdaptiveSettings),
}

/// The adaptive approach.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveSettings {
    /// Data rate of the channel in kbit/s: 3000, 4500, 6000, 9000, 12000, 18000, 24000 or 27000.
    pub data_rate_kbps: u32,
}

impl Default for AdaptiveSettings {
    fn default() -> Self {
        Self { data_rate_kbps: 6000 }
    }
}

impl Dcc {
    pub(super) fn check(self) -> Result<(), SettingError> {
        let Self::Adaptive(AdaptiveSettings { data_rate_kbps: rate }) = self;
        if DATA_RATES_KBPS.contains(&rate) {
            return Ok(());
        }
        let problem = format!("{rate} is not a data rate of ITS-G5; expected one of {DATA_RATES_KBPS:?}");
        Err(SettingError::new("dcc.adaptive.data_rate_kbps", problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_rate_is_one_of_the_radio() {
        let check = |data_rate_kbps| Dcc::Adaptive(AdaptiveSettings { data_rate_kbps }).check();
        assert!(DATA_RATES_KBPS.into_iter().all(|rate| check(rate) == Ok(())));
        assert_eq!(check(5000).unwrap_err().key, "dcc.adaptive.data_rate_kbps");
    }
}
