//! What of the router's management information base a config may set (EN 302 636-4-1, annex H).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use viaduct_its::geonet::Mib;
use viaduct_its::geonet::mib::{
    AreaForwardingAlgorithm, ITS_GN_DEFAULT_HOP_LIMIT, LocalGnAddrConfMethod, NonAreaForwardingAlgorithm,
};
use viaduct_node::SettingError;

/// GeoNetworking. What is absent is as the standard has it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GeonetSettings {
    /// How a packet spreads within its area (`itsGnAreaForwardingAlgorithm`).
    pub area_forwarding: AreaForwarding,
    /// How a packet gets to its area or station (`itsGnNonAreaForwardingAlgorithm`).
    pub non_area_forwarding: NonAreaForwarding,
    /// Hops of a packet for which nobody says how many (`itsGnDefaultHopLimit`), 1 to 255.
    #[schemars(range(min = 1, max = 255))]
    pub hop_limit: u8,
}

/// How a packet spreads within its area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AreaForwarding {
    /// Everybody sends it once (annex F.2).
    Simple,
    /// Whoever is farthest from the sender sends first, and the others then do not (annex F.3).
    #[default]
    Contention,
}

/// How a packet gets to its area or station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NonAreaForwarding {
    /// To the neighbour that is nearest to the destination (annex E.2).
    #[default]
    Greedy,
    /// Whoever is nearest to the destination sends first, and the others then do not (annex E.3).
    Contention,
}

impl Default for GeonetSettings {
    fn default() -> Self {
        Self {
            area_forwarding: AreaForwarding::default(),
            non_area_forwarding: NonAreaForwarding::default(),
            hop_limit: ITS_GN_DEFAULT_HOP_LIMIT,
        }
    }
}

impl GeonetSettings {
    pub(super) fn check(self) -> Result<(), SettingError> {
        if self.hop_limit == 0 {
            return Err(SettingError::new("geonet.hop_limit", "0 is not within 1 to 255".to_owned()));
        }
        Ok(())
    }

    /// The router's constants; the address is that of the config and stays.
    pub(super) fn mib(self) -> Mib {
        Mib {
            local_gn_addr_conf_method: LocalGnAddrConfMethod::Managed,
            default_hop_limit: self.hop_limit,
            area_forwarding_algorithm: match self.area_forwarding {
                AreaForwarding::Simple => AreaForwardingAlgorithm::Simple,
                AreaForwarding::Contention => AreaForwardingAlgorithm::ContentionBased,
            },
            non_area_forwarding_algorithm: match self.non_area_forwarding {
                NonAreaForwarding::Greedy => NonAreaForwardingAlgorithm::Greedy,
                NonAreaForwarding::Contention => NonAreaForwardingAlgorithm::ContentionBased,
            },
            ..Mib::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> GeonetSettings {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_absent_is_as_the_standard_has_it() {
        let managed = Mib { local_gn_addr_conf_method: LocalGnAddrConfMethod::Managed, ..Mib::default() };
        assert_eq!(settings("{}").mib(), managed);
    }

    #[test]
    fn what_is_said_is_what_the_router_does() {
        let mib = settings(r#"{"area_forwarding":"simple","non_area_forwarding":"contention","hop_limit":3}"#).mib();
        assert_eq!(mib.area_forwarding_algorithm, AreaForwardingAlgorithm::Simple);
        assert_eq!(mib.non_area_forwarding_algorithm, NonAreaForwardingAlgorithm::ContentionBased);
        assert_eq!(mib.default_hop_limit, 3);
    }

    #[test]
    fn a_packet_needs_a_hop() {
        assert_eq!(settings(r#"{"hop_limit":0}"#).check().unwrap_err().key, "geonet.hop_limit");
        assert_eq!(settings(r#"{"hop_limit":255}"#).check(), Ok(()));
    }
}
