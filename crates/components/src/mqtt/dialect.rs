//! The setting `dialect` of a route.

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_v2x_json::dialect::Dialect;

/// JSON dialect of a V2X message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialectSetting {
    /// The dialect of Viaduct: ASN.1 names and raw integers.
    #[default]
    Viaduct,
    /// The dialect of vanetza-nap: its envelope and scaled units.
    VanetzaNap,
}

impl DialectSetting {
    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Self::Viaduct => Dialect::Viaduct,
            Self::VanetzaNap => Dialect::VanetzaNap,
        }
    }
}
