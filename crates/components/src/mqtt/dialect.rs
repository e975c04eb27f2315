//! The setting `dialect` of a route.

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_v2x_json::dialect::Dialect;

/// In which JSON a V2X message is written, or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialectSetting {
    /// Our own: ASN.1 names and raw integers.
    #[default]
    Viaduct,
    /// That of vanetza-nap: its envelope, and scaled units.
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
