//! Management information base (MIB), EN 302 636-4-1 V1.4.1, annex H. Names are those of the standard, in the case of
//! Rust. Values that never change and are equal for all stations are constants; all others are fields of [`Mib`].

use std::time::Duration;

use viaduct_units::Metres;

use super::{Lifetime, TrafficClass};
use crate::Acceptance;

/// `itsGnProtocolVersion`: protocol version in the basic header.
pub const ITS_GN_PROTOCOL_VERSION: u8 = 1;
/// `itsGnMaxSduSize`: largest payload in octets, `1 500 - itsGnMaxGeoNetworkingHeaderSize - 14`.
pub const ITS_GN_MAX_SDU_SIZE: usize = 1398;
/// `itsGnMaxGeoNetworkingHeaderSize`: largest header without security, in octets.
pub const ITS_GN_MAX_GEO_NETWORKING_HEADER_SIZE: usize = 88;
/// `itsGnMinUpdateFrequencyEPV`: longest interval between updates of the ego position vector.
pub const ITS_GN_MIN_UPDATE_FREQUENCY_EPV: Duration = Duration::from_millis(1000);
/// `itsGnPaiInterval`: a position is accurate if its 95 % confidence is within this distance.
pub const ITS_GN_PAI_INTERVAL: Metres = Metres(80.0);
/// `itsGnLifetimeLocTE`: lifetime of an entry of the location table.
pub const ITS_GN_LIFETIME_LOC_TE: Duration = Duration::from_secs(20);
/// `itsGnLocationServiceMaxRetrans`: maximum number of repetitions of a location request.
pub const ITS_GN_LOCATION_SERVICE_MAX_RETRANS: u8 = 10;
/// `itsGnLocationServiceRetransmitTimer`: time between two location requests.
pub const ITS_GN_LOCATION_SERVICE_RETRANSMIT_TIMER: Duration = Duration::from_millis(1000);
/// `itsGnLocationServicePacketBufferSize`: octets of packets that wait for the location of their destination.
pub const ITS_GN_LOCATION_SERVICE_PACKET_BUFFER_SIZE: usize = 1024;
/// `itsGnBeaconServiceRetransmitTimer`: a station that sends nothing else sends a beacon after this time.
pub const ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER: Duration = Duration::from_millis(3000);
/// `itsGnBeaconServiceMaxJitter`: random addition to the timer, up to a quarter of it, so that beacons of stations do
/// not synchronise.
pub const ITS_GN_BEACON_SERVICE_MAX_JITTER: Duration = Duration::from_millis(750);
/// `itsGnDefaultHopLimit`: hop limit of a packet if the request contains none.
pub const ITS_GN_DEFAULT_HOP_LIMIT: u8 = 10;
/// `itsGnDPLLength`: sequence numbers remembered per source.
pub const ITS_GN_DPL_LENGTH: usize = 8;
/// `itsGnMaxPacketLifetime`: 600 s.
pub const ITS_GN_MAX_PACKET_LIFETIME: Lifetime = Lifetime::from_parts(6, 3);
/// `itsGnDefaultPacketLifetime`: 60 s.
pub const ITS_GN_DEFAULT_PACKET_LIFETIME: Lifetime = Lifetime::from_parts(6, 2);
/// `itsGnMaxPacketDataRate`: data rate of a source up to which its packets are forwarded, in octets per second (100
/// kByte/s).
pub const ITS_GN_MAX_PACKET_DATA_RATE: f64 = 100_000.0;
/// `itsGnMaxPacketDataRateEmaBeta`: weight of the past in the average of a source's data rate (90 %).
pub const ITS_GN_MAX_PACKET_DATA_RATE_EMA_BETA: f64 = 0.9;
/// `itsGnMaxGeoAreaSize`: largest area to which packets are sent and forwarded (10 km2), in square metres.
pub const ITS_GN_MAX_GEO_AREA_SIZE_M2: f64 = 10e6;
/// `itsGnMinPacketRepetitionInterval`: shortest interval between two repetitions.
pub const ITS_GN_MIN_PACKET_REPETITION_INTERVAL: Duration = Duration::from_millis(100);
/// `itsGnCbfMinTime`: shortest time that a packet contends.
pub const ITS_GN_CBF_MIN_TIME: Duration = Duration::from_millis(1);
/// `itsGnCbfMaxTime`: longest time that a packet contends.
pub const ITS_GN_CBF_MAX_TIME: Duration = Duration::from_millis(100);
/// `itsGnDefaultMaxCommunicationRange`: radio range assumed by contention-based forwarding.
pub const ITS_GN_DEFAULT_MAX_COMMUNICATION_RANGE: Metres = Metres(1000.0);
/// `itsGnUcForwardingPacketBufferSize`: 256 kByte.
pub const ITS_GN_UC_FORWARDING_PACKET_BUFFER_SIZE: usize = 256 * 1024;
/// `itsGnBcForwardingPacketBufferSize`: 1024 kByte.
pub const ITS_GN_BC_FORWARDING_PACKET_BUFFER_SIZE: usize = 1024 * 1024;
/// `itsGnCbfPacketBufferSize`: 256 kByte.
pub const ITS_GN_CBF_PACKET_BUFFER_SIZE: usize = 256 * 1024;
/// `itsGnDefaultTrafficClass`.
pub const ITS_GN_DEFAULT_TRAFFIC_CLASS: TrafficClass = TrafficClass(0);

/// `itsGnLocalAddrConfMethod`: origin of the station's address (clause 10.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalGnAddrConfMethod {
    /// The address is made from the link address. The station makes another one if another station uses the same.
    Auto,
    /// The address was configured manually (M = 1) and never changes.
    Managed,
}

/// `itsGnNonAreaForwardingAlgorithm`: forwarding towards an area or a station (annex E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonAreaForwardingAlgorithm {
    /// `GREEDY`: to the neighbour nearest to the destination (annex E.2).
    Greedy,
    /// `CBF`: the station nearest to the destination sends first, and suppresses the others (annex E.3).
    ContentionBased,
}

/// `itsGnAreaForwardingAlgorithm`: forwarding within the destination area (annex F).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaForwardingAlgorithm {
    /// `SIMPLE`: each station sends the packet once (annex F.2).
    Simple,
    /// `CBF`: the station farthest from the sender sends first, and suppresses the others (annex F.3).
    ContentionBased,
}

/// Configurable protocol constants of a station. The default of each field is that of the standard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mib {
    /// `itsGnLocalAddrConfMethod`. The default of the standard is `AUTO`; [`crate::Station::new`] uses `MANAGED`, since
    /// its caller provides the address.
    pub local_gn_addr_conf_method: LocalGnAddrConfMethod,
    /// `itsGnLifetimeLocTE`, 20 s.
    pub lifetime_loc_te: Duration,
    /// `itsGnLocationServiceMaxRetrans`, 10.
    pub location_service_max_retrans: u8,
    /// `itsGnLocationServiceRetransmitTimer`, 1 s.
    pub location_service_retransmit_timer: Duration,
    /// `itsGnLocationServicePacketBufferSize`, 1024 octets.
    pub location_service_packet_buffer_size: usize,
    /// `itsGnBeaconServiceRetransmitTimer`, 3 s.
    pub beacon_service_retransmit_timer: Duration,
    /// `itsGnBeaconServiceMaxJitter`, 750 ms.
    pub beacon_service_max_jitter: Duration,
    /// `itsGnDefaultHopLimit`, 10; 1 to 255.
    pub default_hop_limit: u8,
    /// `itsGnDPLLength`, 8; at most [`crate::limits::DPL_LENGTH_MAX`].
    pub dpl_length: usize,
    /// `itsGnMaxPacketLifetime`, 600 s.
    pub max_packet_lifetime: Lifetime,
    /// `itsGnDefaultPacketLifetime`, 60 s: of beacons and packets of the location service.
    pub default_packet_lifetime: Lifetime,
    /// `itsGnMaxPacketDataRate` in octets a second, 100 000.
    pub max_packet_data_rate: f64,
    /// `itsGnMaxPacketDataRateEmaBeta` as a part of 1, 0.9.
    pub max_packet_data_rate_ema_beta: f64,
    /// `itsGnMaxGeoAreaSize` in square metres, 10 000 000.
    pub max_geo_area_size_m2: f64,
    /// `itsGnMinPacketRepetitionInterval`, 100 ms.
    pub min_packet_repetition_interval: Duration,
    /// `itsGnNonAreaForwardingAlgorithm`, `GREEDY`.
    pub non_area_forwarding_algorithm: NonAreaForwardingAlgorithm,
    /// Maximum age of a neighbour for greedy forwarding: a neighbour whose last direct frame is older is skipped. This
    /// limit is not part of annex H. `None` is the behaviour of the standard, which considers each entry of the
    /// location table, even if the station has probably left.
    pub greedy_neighbour_age_max: Option<Duration>,
    /// Maximum distance of a neighbour for greedy forwarding: a more distant neighbour is skipped. This limit is not
    /// part of annex H. `None` is the behaviour of the standard, which prefers neighbours at the edge of the radio
    /// range, where reception is poor.
    pub greedy_neighbour_distance_max: Option<Metres>,
    /// `itsGnAreaForwardingAlgorithm`, `CBF`.
    pub area_forwarding_algorithm: AreaForwardingAlgorithm,
    /// `itsGnCbfMinTime`, 1 ms.
    pub cbf_min_time: Duration,
    /// `itsGnCbfMaxTime`, 100 ms.
    pub cbf_max_time: Duration,
    /// `itsGnDefaultMaxCommunicationRange`, 1000 m.
    pub default_max_communication_range: Metres,
    /// `itsGnUcForwardingPacketBufferSize`, 262 144 octets.
    pub uc_forwarding_packet_buffer_size: usize,
    /// `itsGnBcForwardingPacketBufferSize`, 1 048 576 octets.
    pub bc_forwarding_packet_buffer_size: usize,
    /// `itsGnCbfPacketBufferSize`, 262 144 octets.
    pub cbf_packet_buffer_size: usize,
    /// `itsGnDefaultTrafficClass`, 0: of beacons and packets of the location service.
    pub default_traffic_class: TrafficClass,
    /// Signed packets and versions that are accepted. [`SecurityPolicy::Unverified`](crate::SecurityPolicy) corresponds to
    /// `itsGnSnDecapResultHandling` `NON-STRICT`.
    pub acceptance: Acceptance,
}

impl Default for Mib {
    fn default() -> Self {
        Self {
            local_gn_addr_conf_method: LocalGnAddrConfMethod::Auto,
            lifetime_loc_te: ITS_GN_LIFETIME_LOC_TE,
            location_service_max_retrans: ITS_GN_LOCATION_SERVICE_MAX_RETRANS,
            location_service_retransmit_timer: ITS_GN_LOCATION_SERVICE_RETRANSMIT_TIMER,
            location_service_packet_buffer_size: ITS_GN_LOCATION_SERVICE_PACKET_BUFFER_SIZE,
            beacon_service_retransmit_timer: ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER,
            beacon_service_max_jitter: ITS_GN_BEACON_SERVICE_MAX_JITTER,
            default_hop_limit: ITS_GN_DEFAULT_HOP_LIMIT,
            dpl_length: ITS_GN_DPL_LENGTH,
            max_packet_lifetime: ITS_GN_MAX_PACKET_LIFETIME,
            default_packet_lifetime: ITS_GN_DEFAULT_PACKET_LIFETIME,
            max_packet_data_rate: ITS_GN_MAX_PACKET_DATA_RATE,
            max_packet_data_rate_ema_beta: ITS_GN_MAX_PACKET_DATA_RATE_EMA_BETA,
            max_geo_area_size_m2: ITS_GN_MAX_GEO_AREA_SIZE_M2,
            min_packet_repetition_interval: ITS_GN_MIN_PACKET_REPETITION_INTERVAL,
            non_area_forwarding_algorithm: NonAreaForwardingAlgorithm::Greedy,
            greedy_neighbour_age_max: None,
            greedy_neighbour_distance_max: None,
            area_forwarding_algorithm: AreaForwardingAlgorithm::ContentionBased,
            cbf_min_time: ITS_GN_CBF_MIN_TIME,
            cbf_max_time: ITS_GN_CBF_MAX_TIME,
            default_max_communication_range: ITS_GN_DEFAULT_MAX_COMMUNICATION_RANGE,
            uc_forwarding_packet_buffer_size: ITS_GN_UC_FORWARDING_PACKET_BUFFER_SIZE,
            bc_forwarding_packet_buffer_size: ITS_GN_BC_FORWARDING_PACKET_BUFFER_SIZE,
            cbf_packet_buffer_size: ITS_GN_CBF_PACKET_BUFFER_SIZE,
            default_traffic_class: ITS_GN_DEFAULT_TRAFFIC_CLASS,
            acceptance: Acceptance::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lifetimes and the jitter have the values of the annex.
    #[test]
    fn lifetimes_match_the_annex() {
        assert_eq!(ITS_GN_MAX_PACKET_LIFETIME.duration(), Duration::from_secs(600));
        assert_eq!(ITS_GN_DEFAULT_PACKET_LIFETIME.duration(), Duration::from_secs(60));
        assert_eq!(ITS_GN_BEACON_SERVICE_MAX_JITTER, ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER / 4);
    }

    /// The default algorithms and limits are those of the annex.
    #[test]
    fn defaults_match_the_annex() {
        let mib = Mib::default();
        assert_eq!(mib.local_gn_addr_conf_method, LocalGnAddrConfMethod::Auto);
        assert_eq!(mib.non_area_forwarding_algorithm, NonAreaForwardingAlgorithm::Greedy);
        assert_eq!(mib.area_forwarding_algorithm, AreaForwardingAlgorithm::ContentionBased);
        assert_eq!((mib.default_hop_limit, mib.dpl_length), (10, 8));
        assert_eq!((mib.cbf_min_time.as_millis(), mib.cbf_max_time.as_millis()), (1, 100));
        assert_eq!((mib.max_geo_area_size_m2, mib.max_packet_data_rate), (10e6, 100e3));
        let buffers = [mib.uc_forwarding_packet_buffer_size, mib.bc_forwarding_packet_buffer_size];
        assert_eq!((buffers, mib.cbf_packet_buffer_size), ([256 << 10, 1024 << 10], 256 << 10));
        assert_eq!(mib.location_service_packet_buffer_size, 1024);
    }
}
