//! Settings of the GeoNetworking router: part of its management information base (EN 302 636-4-1, annex H).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use viaduct_its::Acceptance;
use viaduct_its::geonet::mib::{AreaForwardingAlgorithm, LocalGnAddrConfMethod, NonAreaForwardingAlgorithm};
use viaduct_its::geonet::{Lifetime, Mib, TrafficClass};
use viaduct_node::SettingError;
use viaduct_units::Metres;

/// GeoNetworking: the constants of EN 302 636-4-1, annex H, named as there but without `itsGn`. The defaults are those of the
/// standard.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GeonetSettings {
    /// Forwarding of a packet within its area (`itsGnAreaForwardingAlgorithm`).
    pub area_forwarding: AreaForwarding,
    /// Forwarding of a packet towards its area or station (`itsGnNonAreaForwardingAlgorithm`).
    pub non_area_forwarding: NonAreaForwarding,
    /// Default hop limit of a packet (`itsGnDefaultHopLimit`), 1 to 255.
    #[schemars(range(min = 1, max = 255))]
    pub hop_limit: u8,
    /// Greedy forwarding skips a neighbour from which nothing was received for longer than this, in milliseconds, 100 to 600000.
    /// An addition to the standard. Absent: every known neighbour is used, as in the standard.
    #[schemars(range(min = 100, max = 600_000))]
    pub greedy_neighbour_age_max_ms: Option<u32>,
    /// Greedy forwarding skips a neighbour that is farther away than this, in metres, 1 to 65535. An addition to the standard.
    /// Absent: neighbours at the end of the radio range are used, as in the standard.
    #[schemars(range(min = 1, max = 65_535))]
    pub greedy_neighbour_distance_max_m: Option<u32>,
    /// Radio range that contention-based forwarding assumes, in metres (`itsGnDefaultMaxCommunicationRange`), 1 to 65535. Set it to
    /// the real range of the radio for the best choice of forwarders.
    #[schemars(range(min = 1, max = 65_535))]
    pub max_communication_range_m: u32,
    /// Shortest contention time of a packet, in milliseconds (`itsGnCbfMinTime`), 1 to 10000, at most `cbf_max_time_ms`.
    #[schemars(range(min = 1, max = 10_000))]
    pub cbf_min_time_ms: u32,
    /// Longest contention time of a packet, in milliseconds (`itsGnCbfMaxTime`), 1 to 10000.
    #[schemars(range(min = 1, max = 10_000))]
    pub cbf_max_time_ms: u32,
    /// Size of the buffer of contending packets, in octets (`itsGnCbfPacketBufferSize`), up to 16777216.
    #[schemars(range(max = 16_777_216))]
    pub cbf_packet_buffer_octets: u32,
    /// Size of the buffer of unicast packets that wait for a neighbour, in octets (`itsGnUcForwardingPacketBufferSize`), up to 16777216.
    #[schemars(range(max = 16_777_216))]
    pub uc_forwarding_packet_buffer_octets: u32,
    /// Size of the buffer of broadcast packets that wait for a neighbour, in octets (`itsGnBcForwardingPacketBufferSize`), up to 16777216.
    #[schemars(range(max = 16_777_216))]
    pub bc_forwarding_packet_buffer_octets: u32,
    /// Size of the buffer of packets that wait for the location of their destination, in octets (`itsGnLocationServicePacketBufferSize`), up to 16777216.
    #[schemars(range(max = 16_777_216))]
    pub location_service_packet_buffer_octets: u32,
    /// Time between two location requests, in milliseconds (`itsGnLocationServiceRetransmitTimer`), 10 to 60000.
    #[schemars(range(min = 10, max = 60_000))]
    pub location_service_retransmit_timer_ms: u32,
    /// Repetitions of a location request (`itsGnLocationServiceMaxRetrans`), 0 to 255.
    pub location_service_max_retrans: u8,
    /// Time without other transmissions after which a beacon is sent, in milliseconds (`itsGnBeaconServiceRetransmitTimer`), 100 to
    /// 600000. Up to a quarter of it is added at random (`itsGnBeaconServiceMaxJitter`).
    #[schemars(range(min = 100, max = 600_000))]
    pub beacon_service_retransmit_timer_ms: u32,
    /// Lifetime of an entry of the location table, in milliseconds (`itsGnLifetimeLocTE`), 100 to 600000.
    #[schemars(range(min = 100, max = 600_000))]
    pub lifetime_loc_te_ms: u32,
    /// Sequence numbers remembered for each station (`itsGnDPLLength`), 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub dpl_length: u16,
    /// Lifetime of beacons and of the location service's packets, in seconds (`itsGnDefaultPacketLifetime`), 1 to 600. Above 63 s it is
    /// rounded up to a multiple of 10 s, as the field requires.
    #[schemars(range(min = 1, max = 600))]
    pub default_packet_lifetime_s: u32,
    /// Traffic class of beacons and of the location service's packets (`itsGnDefaultTrafficClass`), 0 to 255.
    pub default_traffic_class: u8,
    /// Accepts packets of GeoNetworking version 0 (EN 302 636-4-1 V1.2.1) too, which some roadside units still send. Sent packets
    /// have version 1. An addition; the standard drops them.
    pub accept_version_0: bool,
    /// Maximum data rate of one source that is forwarded, in octets per second (`itsGnMaxPacketDataRate`), 1000 to 100000000.
    #[schemars(range(min = 1000, max = 100_000_000))]
    pub max_packet_data_rate: u32,
    /// Weight of the past in the average of a source's data rate, in percent (`itsGnMaxPacketDataRateEmaBeta`), 1 to 99.
    #[schemars(range(min = 1, max = 99))]
    pub max_packet_data_rate_ema_beta: u8,
    /// Minimum interval between two repetitions, in milliseconds (`itsGnMinPacketRepetitionInterval`), 10 to 60000.
    #[schemars(range(min = 10, max = 60_000))]
    pub min_packet_repetition_interval_ms: u32,
}

/// Forwarding of a packet within its area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AreaForwarding {
    /// Every station sends the packet once (annex F.2).
    Simple,
    /// The station that is farthest from the sender sends first, which cancels the transmission of the others (annex F.3).
    #[default]
    Contention,
}

/// Forwarding of a packet towards its area or station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NonAreaForwarding {
    /// The packet is sent to the neighbour that is nearest to the destination (annex E.2).
    #[default]
    Greedy,
    /// The station that is nearest to the destination sends first, which cancels the transmission of the others (annex E.3).
    Contention,
}

impl Default for GeonetSettings {
    /// Returns the values of annex H.
    fn default() -> Self {
        Self {
            area_forwarding: AreaForwarding::default(),
            non_area_forwarding: NonAreaForwarding::default(),
            hop_limit: 10,
            greedy_neighbour_age_max_ms: None,
            greedy_neighbour_distance_max_m: None,
            max_communication_range_m: 1000,
            cbf_min_time_ms: 1,
            cbf_max_time_ms: 100,
            cbf_packet_buffer_octets: 256 * 1024,
            uc_forwarding_packet_buffer_octets: 256 * 1024,
            bc_forwarding_packet_buffer_octets: 1024 * 1024,
            location_service_packet_buffer_octets: 1024,
            location_service_retransmit_timer_ms: 1000,
            location_service_max_retrans: 10,
            beacon_service_retransmit_timer_ms: 3000,
            lifetime_loc_te_ms: 20_000,
            dpl_length: 8,
            default_packet_lifetime_s: 60,
            default_traffic_class: 0,
            accept_version_0: false,
            max_packet_data_rate: 100_000,
            max_packet_data_rate_ema_beta: 90,
            min_packet_repetition_interval_ms: 100,
        }
    }
}

impl GeonetSettings {
    pub(super) fn check(self) -> Result<(), SettingError> {
        let buffer = (0, 16 << 20);
        let optional = |key, value: Option<u32>, range| value.map(|value| (key, value, range));
        let always = [
            ("hop_limit", self.hop_limit.into(), (1, 255)),
            ("max_communication_range_m", self.max_communication_range_m, (1, 65_535)),
            ("cbf_max_time_ms", self.cbf_max_time_ms, (1, 10_000)),
            ("cbf_min_time_ms", self.cbf_min_time_ms, (1, self.cbf_max_time_ms)),
            ("cbf_packet_buffer_octets", self.cbf_packet_buffer_octets, buffer),
            ("uc_forwarding_packet_buffer_octets", self.uc_forwarding_packet_buffer_octets, buffer),
            ("bc_forwarding_packet_buffer_octets", self.bc_forwarding_packet_buffer_octets, buffer),
            ("location_service_packet_buffer_octets", self.location_service_packet_buffer_octets, buffer),
            ("location_service_retransmit_timer_ms", self.location_service_retransmit_timer_ms, (10, 60_000)),
            ("beacon_service_retransmit_timer_ms", self.beacon_service_retransmit_timer_ms, (100, 600_000)),
            ("lifetime_loc_te_ms", self.lifetime_loc_te_ms, (100, 600_000)),
            ("dpl_length", self.dpl_length.into(), (1, 256)),
            ("default_packet_lifetime_s", self.default_packet_lifetime_s, (1, 600)),
            ("max_packet_data_rate", self.max_packet_data_rate, (1000, 100_000_000)),
            ("max_packet_data_rate_ema_beta", self.max_packet_data_rate_ema_beta.into(), (1, 99)),
            ("min_packet_repetition_interval_ms", self.min_packet_repetition_interval_ms, (10, 60_000)),
        ];
        let greedy = [
            optional("greedy_neighbour_age_max_ms", self.greedy_neighbour_age_max_ms, (100, 600_000)),
            optional("greedy_neighbour_distance_max_m", self.greedy_neighbour_distance_max_m, (1, 65_535)),
        ];
        for (key, value, (min, max)) in always.into_iter().chain(greedy.into_iter().flatten()) {
            if !(min..=max).contains(&value) {
                return Err(SettingError::new(
                    format!("geonet.{key}"),
                    format!("{value} is not within {min} to {max}"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the router's management information base. The address is configured and does not change.
    pub(in super::super) fn mib(self) -> Mib {
        let millis = |value: u32| Duration::from_millis(value.into());
        let standard = Mib::default();
        // 60 s has two encodings on the wire; the standard's value keeps the encoding of the standard.
        let default_packet_lifetime = match Duration::from_secs(self.default_packet_lifetime_s.into()) {
            lifetime if lifetime == standard.default_packet_lifetime.duration() => standard.default_packet_lifetime,
            lifetime => Lifetime::at_least(lifetime),
        };
        let octets = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        Mib {
            local_gn_addr_conf_method: LocalGnAddrConfMethod::Managed,
            lifetime_loc_te: millis(self.lifetime_loc_te_ms),
            location_service_max_retrans: self.location_service_max_retrans,
            location_service_retransmit_timer: millis(self.location_service_retransmit_timer_ms),
            location_service_packet_buffer_size: octets(self.location_service_packet_buffer_octets),
            beacon_service_retransmit_timer: millis(self.beacon_service_retransmit_timer_ms),
            beacon_service_max_jitter: millis(self.beacon_service_retransmit_timer_ms) / 4,
            default_hop_limit: self.hop_limit,
            dpl_length: self.dpl_length.into(),
            default_packet_lifetime,
            max_packet_data_rate: self.max_packet_data_rate.into(),
            max_packet_data_rate_ema_beta: f64::from(self.max_packet_data_rate_ema_beta) / 100.0,
            min_packet_repetition_interval: millis(self.min_packet_repetition_interval_ms),
            non_area_forwarding_algorithm: match self.non_area_forwarding {
                NonAreaForwarding::Greedy => NonAreaForwardingAlgorithm::Greedy,
                NonAreaForwarding::Contention => NonAreaForwardingAlgorithm::ContentionBased,
            },
            greedy_neighbour_age_max: self.greedy_neighbour_age_max_ms.map(millis),
            greedy_neighbour_distance_max: self.greedy_neighbour_distance_max_m.map(|metres| Metres(metres.into())),
            area_forwarding_algorithm: match self.area_forwarding {
                AreaForwarding::Simple => AreaForwardingAlgorithm::Simple,
                AreaForwarding::Contention => AreaForwardingAlgorithm::ContentionBased,
            },
            cbf_min_time: millis(self.cbf_min_time_ms),
            cbf_max_time: millis(self.cbf_max_time_ms),
            default_max_communication_range: Metres(self.max_communication_range_m.into()),
            uc_forwarding_packet_buffer_size: octets(self.uc_forwarding_packet_buffer_octets),
            bc_forwarding_packet_buffer_size: octets(self.bc_forwarding_packet_buffer_octets),
            cbf_packet_buffer_size: octets(self.cbf_packet_buffer_octets),
            default_traffic_class: TrafficClass(self.default_traffic_class),
            acceptance: Acceptance { version_0: self.accept_version_0, ..Acceptance::default() },
            ..standard
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
    fn defaults_are_those_of_the_standard() {
        let managed = Mib { local_gn_addr_conf_method: LocalGnAddrConfMethod::Managed, ..Mib::default() };
        assert_eq!(settings("{}").mib(), managed);
    }

    #[test]
    fn settings_reach_the_router() {
        let mib = settings(r#"{"area_forwarding":"simple","non_area_forwarding":"contention","hop_limit":3}"#).mib();
        assert_eq!(mib.area_forwarding_algorithm, AreaForwardingAlgorithm::Simple);
        assert_eq!(mib.non_area_forwarding_algorithm, NonAreaForwardingAlgorithm::ContentionBased);
        assert_eq!(mib.default_hop_limit, 3);
        let text = r#"{"max_communication_range_m":500,"greedy_neighbour_age_max_ms":1500,
            "beacon_service_retransmit_timer_ms":1000,"max_packet_data_rate_ema_beta":50,"default_packet_lifetime_s":100}"#;
        let mib = settings(text).mib();
        assert_eq!(mib.default_max_communication_range, Metres(500.0));
        assert_eq!(mib.greedy_neighbour_age_max, Some(Duration::from_millis(1500)));
        assert_eq!(mib.max_packet_data_rate_ema_beta.to_bits(), 0.5_f64.to_bits());
        assert_eq!(mib.beacon_service_max_jitter, Duration::from_millis(250));
        assert_eq!(mib.default_packet_lifetime.duration(), Duration::from_secs(100));
    }

    #[test]
    fn a_hop_limit_is_at_least_one() {
        assert_eq!(settings(r#"{"hop_limit":0}"#).check().unwrap_err().key, "geonet.hop_limit");
        assert_eq!(settings(r#"{"hop_limit":255}"#).check(), Ok(()));
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        for (text, problem) in [
            (r#"{"cbf_min_time_ms":50,"cbf_max_time_ms":49}"#, "geonet.cbf_min_time_ms: 50 is not within 1 to 49"),
            (r#"{"dpl_length":257}"#, "geonet.dpl_length: 257 is not within 1 to 256"),
            (
                r#"{"greedy_neighbour_distance_max_m":0}"#,
                "geonet.greedy_neighbour_distance_max_m: 0 is not within 1 to 65535",
            ),
            (
                r#"{"cbf_packet_buffer_octets":16777217}"#,
                "geonet.cbf_packet_buffer_octets: 16777217 is not within 0 to 16777216",
            ),
        ] {
            let error = settings(text).check().unwrap_err();
            assert_eq!(format!("{}: {}", error.key, error.problem), problem);
        }
    }
}
