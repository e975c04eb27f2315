//! Settings of a station. They are checked here; the rest of the station depends on this module, not the reverse.

mod dcc;
mod geonet;
mod services;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_its::access::MacAddress;
use viaduct_messages::topic;
use viaduct_node::SettingError;
use viaduct_units::Position;

pub use self::dcc::{AdaptiveSettings, Dcc};
pub use self::geonet::{AreaForwarding, GeonetSettings, NonAreaForwarding};
pub use self::services::{
    CaServiceSettings, CpServiceSettings, DenServiceSettings, LdmQuerySettings, LdmSettings, SensorSettings,
    SensorTypeSetting, ServicesSettings, VaServiceSettings, VehicleRoleSetting, VruProfileSetting,
};
use crate::net::{EthernetSettings, UdpMulticastSettings};

/// An ETSI ITS station: GeoNetworking, BTP and facilities. CAM, DENM, CPM, VAM, IVIM, MAPEM, SPATEM, SREM and SSEM go to the
/// bus and come from it, and services make the first four by themselves.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItsStationSettings {
    /// Station ID (StationID, TS 102 894-2), 0 to 4 294 967 295. The link address is made from it where none is given.
    pub station_id: u32,
    /// Type of the station (StationType, TS 102 894-2), 0 to 31: 5 is a passenger car, 15 a roadside unit.
    #[serde(default = "default_station_type")]
    #[schemars(range(min = 0, max = 31))]
    pub station_type: u8,
    /// Address on the link, six octets as `02:00:00:00:03:e9`. Absent: that of the Ethernet interface; where the access
    /// layer has none, 02:00 and the station ID.
    #[serde(default)]
    pub link_address: Option<String>,
    /// Where the station stands. A station needs it to send, or `services.vehicle` where it moves; one that only receives
    /// does not.
    #[serde(default)]
    pub position: Option<PlaceSettings>,
    /// Whether it sends GeoNetworking beacons while it has nothing else to send (EN 302 636-4-1, 10.3.6).
    #[serde(default)]
    pub beacons: bool,
    /// Where frames come from and go to.
    pub access: Access,
    /// Whose frames are looked at.
    #[serde(default)]
    pub filter: FilterSettings,
    /// Writes the frames that the station receives and sends to a file. Absent: no file.
    #[serde(default)]
    pub capture: Option<CaptureSettings>,
    /// GeoNetworking's constants.
    #[serde(default)]
    pub geonet: GeonetSettings,
    /// Congestion control. Absent: frames go out at once, as on a wire or where the radio has its own.
    #[serde(default)]
    pub dcc: Option<Dcc>,
    /// Services that make messages by themselves. Absent: messages only come from `topics.send`.
    #[serde(default)]
    pub services: Option<ServicesSettings>,
    /// Names of its topics.
    #[serde(default)]
    pub topics: Topics,
}

/// Where frames come from and go to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Access {
    /// Ethernet frames in UDP datagrams to a multicast group, as Vanetza's socktap sends them.
    UdpMulticast(UdpMulticastSettings),
    /// Ethernet frames of ethertype 0x8947 on a network interface. Needs CAP_NET_RAW.
    Ethernet(EthernetSettings),
    /// Frames of a capture file, received again. What the station sends is dropped and counted.
    Replay(ReplaySettings),
}

/// Whose frames a station looks at. Others are counted (`filtered`) and left unread.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FilterSettings {
    /// Link addresses of the only senders that are heard, as `02:00:00:00:03:e9`. Empty: every sender.
    pub accept_from: Vec<String>,
    /// Link addresses of senders that are not heard.
    pub ignore_from: Vec<String>,
}

/// A file of the frames that a station receives and sends: pcap with nanoseconds, as Wireshark reads it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureSettings {
    /// The file. One that is there is written anew. A relative path starts where the program was started.
    pub file: PathBuf,
    /// Octets that the file may have, 1024 to 1 099 511 627 776. Frames after that are counted and not written.
    #[serde(default = "default_capture_octets")]
    #[schemars(range(min = 1024, max = 1_099_511_627_776_u64))]
    pub max_octets: u64,
}

/// A capture file as an access layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    /// The capture: pcap or pcapng, also compressed with gzip. Link types: Ethernet (with or without VLAN tags), IEEE 802.11
    /// (with or without radiotap), Linux cooked (v1 and v2). A relative path starts where the program was started.
    pub file: PathBuf,
    /// When the frames come.
    #[serde(default)]
    pub pace: Pace,
    /// Whether the capture starts again when it has ended. The station then forgets what it has heard.
    #[serde(default)]
    pub repeat: bool,
}

/// When the frames of a capture come.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// At the distances at which they were captured.
    #[default]
    Recorded,
    /// So many a second, above 0 up to 1 000 000.
    RateHz(f64),
}

/// A place on WGS 84.
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

/// Names of a station's topics.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Topics {
    /// Received messages come out below this name: `its/rx/cam`.
    pub rx: String,
    /// Sent messages come out below this name: `its/tx/cam`.
    pub tx: String,
    /// Messages to send (`viaduct.its.V2xSendRequest`) are read here. Absent: the station only receives.
    pub send: Option<String>,
    /// What the station could not do comes out here (`viaduct.its.V2xError`): refused requests and inputs, fifty a second for
    /// each type and reason, and dropped frames, two a second for each reason, each with the number of those that it stands
    /// for.
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
    /// Whether messages of its own go out.
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
            services.check(self.station_type, self.position.is_some())?;
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

    /// The link address, where one is given.
    pub(super) fn configured_address(&self) -> Result<Option<MacAddress>, SettingError> {
        self.link_address.as_deref().map(|text| parse_mac("link_address", text)).transpose()
    }
}

/// A locally administered address that holds the station ID.
#[must_use]
pub fn mac_of_station(station_id: u32) -> MacAddress {
    let [a, b, c, d] = station_id.to_be_bytes();
    MacAddress([0x02, 0x00, a, b, c, d])
}

/// The link address in the setting of that key.
fn parse_mac(key: &str, text: &str) -> Result<MacAddress, SettingError> {
    let octets: Option<Vec<u8>> = text.split(':').map(hex_pair).collect();
    let octets = octets.and_then(|octets| octets.try_into().ok());
    octets
        .map(MacAddress)
        .ok_or_else(|| SettingError::new(key, format!("`{text}` is not six octets as `02:00:00:00:03:e9`")))
}

/// One octet of two hexadecimal digits; `from_str_radix` alone would take a sign.
fn hex_pair(pair: &str) -> Option<u8> {
    let digits = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(pair, 16).ok().filter(|_| digits)
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
    /// The place as a quantity.
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

/// Whether both paths are one file that is there, by whatever way.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl ReplaySettings {
    fn check(&self) -> Result<(), SettingError> {
        if let Pace::RateHz(rate) = self.pace
            && !(rate > 0.0 && rate <= 1e6)
        {
            let problem = format!("{rate} is not above 0 up to 1000000");
            return Err(SettingError::new("access.replay.pace.rate_hz", problem));
        }
        match std::fs::metadata(&self.file) {
            Ok(found) if found.is_file() => Ok(()),
            Ok(_) => Err(SettingError::new("access.replay.file", format!("{} is not a file", self.file.display()))),
            Err(cause) => {
                Err(SettingError::new("access.replay.file", format!("cannot read {}: {cause}", self.file.display())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayed_capture_is_not_written_over() {
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
    fn a_link_address_is_six_pairs() {
        assert_eq!(parse_mac("link_address", "02:00:00:00:03:e9"), Ok(MacAddress([2, 0, 0, 0, 3, 0xE9])));
        assert_eq!(mac_of_station(1001), MacAddress([2, 0, 0, 0, 3, 0xE9]));
        for bad in
            ["", "02:00:00:00:03", "02:00:00:00:03:e9:00", "2:0:0:0:3:e9", "02-00-00-00-03-e9", "02:00:00:00:03:+9"]
        {
            assert!(parse_mac("link_address", bad).is_err(), "{bad}");
        }
    }
}
