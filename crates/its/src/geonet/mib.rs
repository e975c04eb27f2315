//! Management information base, EN 302 636-4-1 V1.4.1, annex H. Names are the standard's, in Rust's case; what never changes
//! while a station runs and never differs between stations is a constant, the rest is a field of [`Mib`].

use std::time::Duration;

use viaduct_units::Metres;

use super::{Lifetime, TrafficClass};
use crate::Acceptance;

/// `itsGnProtocolVersion`: version of the protocol that the basic header carries.
pub const ITS_GN_PROTOCOL_VERSION: u8 = 1;
/// `itsGnMaxSduSize`: octets of a payload, `1 500 - itsGnMaxGeoNetworkingHeaderSize - 14`.
pub const ITS_GN_MAX_SDU_SIZE: usize = 1398;
/// `itsGnMaxGeoNetworkingHeaderSize`: octets of the largest header without security.
pub const ITS_GN_MAX_GEO_NETWORKING_HEADER_SIZE: usize = 88;
/// `itsGnMinUpdateFrequencyEPV`: the ego position vector is renewed at least this often.
pub const ITS_GN_MIN_UPDATE_FREQUENCY_EPV: Duration = Duration::from_millis(1000);
/// `itsGnPaiInterval`: a position is accurate where its 95 % confidence is within this distance.
pub const ITS_GN_PAI_INTERVAL: Metres = Metres(80.0);
/// `itsGnLifetimeLocTE`: how long a station is remembered.
pub const ITS_GN_LIFETIME_LOC_TE: Duration = Duration::from_secs(20);
/// `itsGnLocationServiceMaxRetrans`: how often a location request is repeated.
pub const ITS_GN_LOCATION_SERVICE_MAX_RETRANS: u8 = 10;
/// `itsGnLocationServiceRetransmitTimer`: time between two location requests.
pub const ITS_GN_LOCATION_SERVICE_RETRANSMIT_TIMER: Duration = Duration::from_millis(1000);
/// `itsGnLocationServicePacketBufferSize`: octets that wait for the location of their destination.
pub const ITS_GN_LOCATION_SERVICE_PACKET_BUFFER_SIZE: usize = 1024;
/// `itsGnBeaconServiceRetransmitTimer`: a station that sends nothing else sends a beacon after this time.
pub const ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER: Duration = Duration::from_millis(3000);
/// `itsGnBeaconServiceMaxJitter`: a quarter of the timer, added at random so that stations do not fall into step.
pub const ITS_GN_BEACON_SERVICE_MAX_JITTER: Duration = Duration::from_millis(750);
/// `itsGnDefaultHopLimit`: hops of a packet for which nobody says how many.
pub const ITS_GN_DEFAULT_HOP_LIMIT: u8 = 10;
/// `itsGnDPLLength`: sequence numbers that are remembered of each source.
pub const ITS_GN_DPL_LENGTH: usize = 8;
/// `itsGnMaxPacketLifetime`: 600 s.
pub const ITS_GN_MAX_PACKET_LIFETIME: Lifetime = Lifetime::from_parts(6, 3);
/// `itsGnDefaultPacketLifetime`: 60 s.
pub const ITS_GN_DEFAULT_PACKET_LIFETIME: Lifetime = Lifetime::from_parts(6, 2);
/// `itsGnMaxPacketDataRate`: octets a second of one source that are forwarded (100 kByte/s).
pub const ITS_GN_MAX_PACKET_DATA_RATE: f64 = 100_000.0;
/// `itsGnMaxPacketDataRateEmaBeta`: weight of the past in the average of a source's data rate (90 %).
pub const ITS_GN_MAX_PACKET_DATA_RATE_EMA_BETA: f64 = 0.9;
/// `itsGnMaxGeoAreaSize`: size of an area that packets are sent and forwarded to (10 km2), in square metres.
pub const ITS_GN_MAX_GEO_AREA_SIZE_M2: f64 = 10e6;
/// `itsGnMinPacketRepetitionInterval`: shortest time from one repetition to the next.
pub const ITS_GN_MIN_PACKET_REPETITION_INTERVAL: Duration = Duration::from_millis(100);
/// `itsGnCbfMinTime`: shortest time that a packet contends.
pub const ITS_GN_CBF_MIN_TIME: Duration = Duration::from_millis(1);
/// `itsGnCbfMaxTime`: longest time that a packet contends.
pub const ITS_GN_CBF_MAX_TIME: Duration = Duration::from_millis(100);
/// `itsGnDefaultMaxCommunicationRange`: how far a radio reaches, as contention assumes it.
pub const ITS_GN_DEFAULT_MAX_COMMUNICATION_RANGE: Metres = Metres(1000.0);
/// `itsGnUcForwardingPacketBufferSize`: 256 kByte.
pub const ITS_GN_UC_FORWARDING_PACKET_BUFFER_SIZE: usize = 256 * 1024;
/// `itsGnBcForwardingPacketBufferSize`: 1024 kByte.
pub const ITS_GN_BC_FORWARDING_PACKET_BUFFER_SIZE: usize = 1024 * 1024;
/// `itsGnCbfPacketBufferSize`: 256 kByte.
pub const ITS_GN_CBF_PACKET_BUFFER_SIZE: usize = 256 * 1024;
/// `itsGnDefaultTrafficClass`.
pub const ITS_GN_DEFAULT_TRAFFIC_CLASS: TrafficClass = TrafficClass(0);

/// `itsGnLocalAddrConfMethod`: where the station's address comes from (clause 10.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalGnAddrConfMethod {
    /// The station makes it from its link address, and makes another one when somebody else has the same.
    Auto,
    /// It was set by hand (M = 1) and stays, whoever else has it.
    Managed,
}

/// `itsGnNonAreaForwardingAlgorithm`: how a packet gets to an area or a station (annex E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonAreaForwardingAlgorithm {
    /// `GREEDY`: to the neighbour that is nearest to the destination (annex E.2).
    Greedy,
    /// `CBF`: whoever is nearest to the destination sends first, and the others then do not (annex E.3).
    ContentionBased,
}

/// `itsGnAreaForwardingAlgorithm`: how a packet spreads within its area (annex F).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaForwardingAlgorithm {
    /// `SIMPLE`: everybody sends it once (annex F.2).
    Simple,
    /// `CBF`: whoever is farthest from the sender sends first, and the others then do not (annex F.3).
    ContentionBased,
}

/// What may be set for a station. The default of each field is the standard's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mib {
    /// `itsGnLocalAddrConfMethod`. The standard's default is `AUTO`; [`crate::Station::new`] takes `MANAGED`, since its
    /// caller names the address.
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
    /// Own addition, not of annex H: greedy forwarding passes over a neighbour that was not heard directly for longer. `None`,
    /// the standard's behaviour: it takes whoever is in the location table, though most will have driven away by then.
    pub greedy_neighbour_age_max: Option<Duration>,
    /// Own addition, not of annex H: greedy forwarding passes over a neighbour that is farther away. `None`, the standard's
    /// behaviour: it prefers those at the end of the range, whom the radio reaches seldom.
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

    /// Values of annex H that the wire formats round.
    #[test]
    fn lifetimes_are_those_of_the_annex() {
        assert_eq!(ITS_GN_MAX_PACKET_LIFETIME.duration(), Duration::from_secs(600));
        assert_eq!(ITS_GN_DEFAULT_PACKET_LIFETIME.duration(), Duration::from_secs(60));
        assert_eq!(ITS_GN_BEACON_SERVICE_MAX_JITTER, ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER / 4);
    }

    /// The algorithms that the annex names as defaults, and the choices that its numbers stand for.
    #[test]
    fn defaults_are_those_of_the_annex() {
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
