//! Settings of a station and their checks. The rest of the station depends on this module; this module depends on none of it.

mod dcc;
mod geonet;
mod services;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_its::access::{AddressError, MacAddress};
use viaduct_its::geonet::Mib;
use viaduct_its::{Acceptance, SecurityPolicy};
use viaduct_messages::topic;
use viaduct_node::SettingError;
use viaduct_units::{Position, StationId, StationType};

pub use self::dcc::{AdaptiveSettings, Dcc};
pub use self::geonet::{AreaForwarding, GeonetSettings, NonAreaForwarding};
pub use self::services::{
    CaServiceSettings, CpServiceSettings, DenServiceSettings, LdmQuerySettings, LdmSettings, SensorSettings,
    SensorTypeSetting, ServicesSettings, VaServiceSettings, VehicleRoleSetting, VruProfileSetting,
};
use crate::capture::Capture;
use crate::net::{EthernetSettings, UdpMulticastSettings};

/// An ETSI ITS station: GeoNetworking, BTP and facilities. It publishes received CAM, DENM, CPM, VAM, IVIM, MAPEM, SPATEM, SREM
/// and SSEM on the bus, and sends those that it reads from the bus. Services generate CAM, DENM, CPM and VAM on their own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItsStationSettings {
    /// Station ID (StationID, TS 102 894-2), 0 to 4 294 967 295. The default link address contains it.
    pub station_id: u32,
    /// Type of the station (StationType, TS 102 894-2), 0 to 31: 5 is a passenger car, 15 a roadside unit.
    #[serde(default = "default_station_type")]
    #[schemars(range(min = 0, max = 31))]
    pub station_type: u8,
    /// Link address, six octets as in `02:00:00:00:03:e9`. Absent: the address of the Ethernet interface, or 02:00 followed by the
    /// station ID if the access layer has no address.
    #[serde(default)]
    pub link_address: Option<String>,
    /// Position of a fixed station. To send, a station needs either this or, if it moves, `services.vehicle`.
    #[serde(default)]
    pub position: Option<PlaceSettings>,
    /// Sends GeoNetworking beacons while there is nothing else to send (EN 302 636-4-1, 10.3.6).
    #[serde(default)]
    pub beacons: bool,
    /// Access layer: the source and destination of frames.
    pub access: Access,
    /// Filter of received frames by sender.
    #[serde(default)]
    pub filter: FilterSettings,
    /// Writes the frames that the station receives and sends to a file. Absent: no file.
    #[serde(default)]
    pub capture: Option<CaptureSettings>,
    /// Constants of GeoNetworking.
    #[serde(default)]
    pub geonet: GeonetSettings,
    /// Treatment of signed packets.
    #[serde(default)]
    pub security: SecuritySettings,
    /// Congestion control. Absent: frames are sent at once, for a wire or a radio with its own congestion control.
    #[serde(default)]
    pub dcc: Option<Dcc>,
    /// Services that generate messages on their own. Absent: only messages from `topics.send` are sent.
    #[serde(default)]
    pub services: Option<ServicesSettings>,
    /// Topics of the station.
    #[serde(default)]
    pub topics: Topics,
}

/// Security of packets (IEEE 1609.2, TS 103 097). Sent packets are not signed yet.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySettings {
    /// Treatment of signed packets that are received.
    pub policy: SecurityPolicySetting,
}

/// Treatment of signed packets that are received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecurityPolicySetting {
    /// Signed packets are dropped and counted (`secured_not_verified`).
    #[default]
    None,
    /// Signed packets are accepted without verifying signature or certificate. Their messages are marked as `unverified` and carry
    /// the digest of the certificate. They are delivered, and not forwarded to other stations.
    Unverified,
}

/// Access layer: the source and destination of frames.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Access {
    /// Ethernet frames in UDP datagrams to a multicast group, as Vanetza's socktap sends them.
    UdpMulticast(UdpMulticastSettings),
    /// Ethernet frames of ethertype 0x8947 on a network interface. Needs CAP_NET_RAW.
    Ethernet(EthernetSettings),
    /// Frames of a capture file, replayed. Sent frames are dropped and counted.
    Replay(ReplaySettings),
}

/// Filter of received frames by sender. Other frames are counted (`filtered`) and not decoded.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FilterSettings {
    /// Link addresses of the only senders that are accepted, as in `02:00:00:00:03:e9`. Empty: every sender.
    pub accept_from: Vec<String>,
    /// Link addresses of senders that are ignored.
    pub ignore_from: Vec<String>,
}

/// A capture file of the frames that a station receives and sends, in pcap format with nanoseconds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureSettings {
    /// Path of the file. An existing file is overwritten. A relative path starts at the working directory of the program.
    pub file: PathBuf,
    /// Maximum size of the file in bytes, 1024 to 1 099 511 627 776. Further frames are counted and not written.
    #[serde(default = "default_capture_octets")]
    #[schemars(range(min = 1024, max = 1_099_511_627_776_u64))]
    pub max_octets: u64,
}

/// A capture file as an access layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    /// The capture: pcap or pcapng, also compressed with gzip. Link types: Ethernet (with or without VLAN tags), IEEE 802.11
    /// (with or without radiotap), Linux cooked (v1 and v2). A relative path starts at the working directory of the program.
    pub file: PathBuf,
    /// Pace of the frames.
    #[serde(default)]
    pub pace: Pace,
    /// Restarts the capture at its end. The station then deletes everything received.
    #[serde(default)]
    pub repeat: bool,
}

/// Pace of the frames of a capture.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// At the intervals at which they were captured.
    #[default]
    Recorded,
    /// A fixed number of frames per second, above 0 to 1 000 000.
    RateHz(f64),
}

/// A position on WGS 84.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceSettings {
    /// Degrees north, -90 to 90.
    #[schemars(range(min = -90.0, max = 90.0))]
    pub latitude_deg: f64,
    /// Degrees east, -180 to 180.
    #[schemars(range(min = -180.0, max = 180.0))]
    pub longitude_deg: f64,
}

/// Topics of a station.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Topics {
    /// Prefix of the topics of received messages: `its/rx/cam`.
    pub rx: String,
    /// Prefix of the topics of sent messages: `its/tx/cam`.
    pub tx: String,
    /// Topic of messages to send (`viaduct.its.V2xSendRequest`). Absent: the station sends only what its services generate.
    pub send: Option<String>,
    /// Topic of error reports (`viaduct.its.V2xError`): rejected requests and inputs (at most 50/s for each type and reason), and
    /// dropped frames (at most 2/s for each reason; not `own_packet` and `duplicate` on UDP multicast). Each report contains the number of events that it represents.
    pub errors: String,
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            rx: topic::ITS_RX.to_owned(),
            tx: topic::ITS_TX.to_owned(),
            send: None,
            errors: topic::ITS_ERRORS.to_owned(),
        }
    }
}

const fn default_station_type() -> u8 {
    15
}

const fn default_capture_octets() -> u64 {
    1 << 30
}

impl ItsStationSettings {
    /// Returns `true` if the station sends messages: requested ones or those of its services.
    pub(super) const fn sends(&self) -> bool {
        self.topics.send.is_some() || self.services.is_some()
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let range = |key: &str, problem: String| Err(SettingError::new(key, problem));
        if self.station_type > 31 {
            return range("station_type", format!("{} is not within 0 to 31", self.station_type));
        }
        if let Some(place) = &self.position {
            place.check("position")?;
        }
        self.configured_address()?;
        self.filter.accepted()?;
        self.filter.ignored()?;
        self.geonet.check()?;
        if let Some(dcc) = self.dcc {
            dcc.check()?;
        }
        self.topics.check()?;
        if let Some(services) = &self.services {
            services.check(StationType(self.station_type), self.position.is_some())?;
        } else if self.topics.send.is_some() && self.position.is_none() {
            return range("position", "a station that sends needs a position".to_owned());
        }
        if let Some(capture) = &self.capture {
            capture.check(&self.access)?;
        }
        match &self.access {
            Access::UdpMulticast(udp) => udp.check("access.udp_multicast"),
            Access::Ethernet(ethernet) => ethernet.check("access.ethernet"),
            Access::Replay(replay) => replay.check(),
        }
    }

    /// Returns the constants of GeoNetworking, with the packets that the station accepts.
    pub(super) fn mib(&self) -> Mib {
        let mib = self.geonet.mib();
        let security = match self.security.policy {
            SecurityPolicySetting::None => SecurityPolicy::None,
            SecurityPolicySetting::Unverified => SecurityPolicy::Unverified,
        };
        Mib { acceptance: Acceptance { security, ..mib.acceptance }, ..mib }
    }

    /// Returns the link address, or `None` if it is not configured.
    pub(super) fn configured_address(&self) -> Result<Option<MacAddress>, SettingError> {
        self.link_address.as_deref().map(|text| parse_mac("link_address", text)).transpose()
    }
}

/// Returns a locally administered address that contains the station ID.
#[must_use]
pub fn mac_of_station(station_id: StationId) -> MacAddress {
    let [a, b, c, d] = station_id.0.to_be_bytes();
    MacAddress([0x02, 0x00, a, b, c, d])
}

/// Parses the link address in the setting `key`.
fn parse_mac(key: &str, text: &str) -> Result<MacAddress, SettingError> {
    text.parse().map_err(|error: AddressError| SettingError::new(key, format!("`{text}` is not {}", error.expected)))
}

impl FilterSettings {
    /// Returns the addresses in `accept_from`.
    pub(super) fn accepted(&self) -> Result<BTreeSet<MacAddress>, SettingError> {
        parse_macs("filter.accept_from", &self.accept_from)
    }

    /// Returns the addresses in `ignore_from`.
    pub(super) fn ignored(&self) -> Result<BTreeSet<MacAddress>, SettingError> {
        parse_macs("filter.ignore_from", &self.ignore_from)
    }
}

fn parse_macs(key: &str, addresses: &[String]) -> Result<BTreeSet<MacAddress>, SettingError> {
    let parse = |(index, text): (usize, &String)| parse_mac(&format!("{key}.{index}"), text);
    addresses.iter().enumerate().map(parse).collect()
}

impl Topics {
    fn check(&self) -> Result<(), SettingError> {
        let always = [("topics.rx", &self.rx), ("topics.tx", &self.tx), ("topics.errors", &self.errors)];
        for (key, name) in always.into_iter().chain(self.send.iter().map(|name| ("topics.send", name))) {
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        Ok(())
    }
}

impl PlaceSettings {
    /// Returns the position as a quantity.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position::new(self.latitude_deg, self.longitude_deg)
    }

    pub(crate) fn check(&self, key: &str) -> Result<(), SettingError> {
        for (name, value, limit) in
            [("latitude_deg", self.latitude_deg, 90.0), ("longitude_deg", self.longitude_deg, 180.0)]
        {
            if !(-limit..=limit).contains(&value) {
                return Err(SettingError::new(
                    format!("{key}.{name}"),
                    format!("{value} is not within -{limit} to {limit}"),
                ));
            }
        }
        Ok(())
    }
}

impl Access {
    /// Checks that this machine has the interface or the capture.
    pub(super) fn check_machine(&self) -> Result<(), SettingError> {
        match self {
            Self::UdpMulticast(_) => Ok(()),
            Self::Ethernet(ethernet) => ethernet.check_machine("access.ethernet"),
            Self::Replay(replay) => replay.check_machine(),
        }
    }
}

impl CaptureSettings {
    fn check(&self, access: &Access) -> Result<(), SettingError> {
        if !(1024..=1 << 40).contains(&self.max_octets) {
            let problem = format!("{} is not within 1024 to 1099511627776", self.max_octets);
            return Err(SettingError::new("capture.max_octets", problem));
        }
        let same = |replay: &ReplaySettings| is_same_file(&replay.file, &self.file);
        if matches!(access, Access::Replay(replay) if same(replay)) {
            let problem = format!("{} is the capture that is replayed", self.file.display());
            return Err(SettingError::new("capture.file", problem));
        }
        Ok(())
    }
}

/// Returns `true` if both paths are equal or lead to the same existing file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl ReplaySettings {
    fn check(&self) -> Result<(), SettingError> {
        if let Pace::RateHz(rate) = self.pace
            && !(rate > 0.0 && rate <= 1e6)
        {
            let problem = format!("{rate} is not above 0 and at most 1000000");
            return Err(SettingError::new("access.replay.pace.rate_hz", problem));
        }
        Ok(())
    }

    /// Checks that the file is a capture whose first frame the node can read.
    fn check_machine(&self) -> Result<(), SettingError> {
        let wrong = |problem| SettingError::new("access.replay.file", problem);
        // A pipe is not opened, because its writer waits for one reader only.
        if std::fs::metadata(&self.file).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(wrong(format!("{} is not a file", self.file.display())));
        }
        let mut capture = Capture::open(&self.file).map_err(|error| wrong(error.to_string()))?;
        match capture.next() {
            Some(Err(error)) => Err(wrong(error.to_string())),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayed_capture_is_not_overwritten() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let replay = ReplaySettings { file: file.path().to_owned(), pace: Pace::Recorded, repeat: false };
        let capture = |file: &Path| CaptureSettings { file: file.to_owned(), max_octets: default_capture_octets() };
        let access = Access::Replay(replay);
        let detour = file.path().parent().unwrap().join(".").join(file.path().file_name().unwrap());
        assert_eq!(capture(&detour).check(&access).unwrap_err().key, "capture.file");
        assert_eq!(capture(Path::new("other.pcap")).check(&access), Ok(()));
    }

    #[test]
    fn each_topic_is_a_name() {
        let pattern = || "its/*".to_owned();
        let wrong = |topics: Topics| topics.check().unwrap_err().key;
        assert_eq!(wrong(Topics { rx: pattern(), ..Topics::default() }), "topics.rx");
        assert_eq!(wrong(Topics { tx: pattern(), ..Topics::default() }), "topics.tx");
        assert_eq!(wrong(Topics { errors: pattern(), ..Topics::default() }), "topics.errors");
        assert_eq!(wrong(Topics { send: Some(pattern()), ..Topics::default() }), "topics.send");
        assert_eq!(Topics::default().check(), Ok(()));
    }

    #[test]
    fn a_link_address_is_six_pairs_of_digits() {
        assert_eq!(parse_mac("link_address", "02:00:00:00:03:e9"), Ok(MacAddress([2, 0, 0, 0, 3, 0xE9])));
        assert_eq!(mac_of_station(StationId(1001)), MacAddress([2, 0, 0, 0, 3, 0xE9]));
        assert_eq!(parse_mac("link_address", "02-00-00-00-03-e9"), Ok(MacAddress([2, 0, 0, 0, 3, 0xE9])));
        for bad in ["", "02:00:00:00:03", "02:00:00:00:03:e9:00", "2:0:0:0:3:e9", "02:00:00:00:03:+9"] {
            assert!(parse_mac("link_address", bad).is_err(), "{bad}");
        }
    }
}
