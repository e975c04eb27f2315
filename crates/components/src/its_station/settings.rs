//! Settings of a station.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_its::access::{MacAddress, UDP_MULTICAST_GROUP, UDP_PORT};
use viaduct_messages::topic;
use viaduct_node::SettingError;
use viaduct_units::Position;

/// An ETSI ITS station: GeoNetworking, BTP, cooperative awareness and collective perception messages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItsStationSettings {
    /// Station ID (StationID, TS 102 894-2), 0 to 4 294 967 295. The link address is made from it where none is given.
    pub station_id: u32,
    /// Type of the station (StationType, TS 102 894-2), 0 to 31: 5 is a passenger car, 15 a roadside unit.
    #[serde(default = "default_station_type")]
    #[schemars(range(min = 0, max = 31))]
    pub station_type: u8,
    /// Address on the link, six octets as `02:00:00:00:03:e9`. Absent: 02:00 and the station ID.
    #[serde(default)]
    pub link_address: Option<String>,
    /// Where the station stands. A station needs it to send; one that only receives does not.
    #[serde(default)]
    pub position: Option<PlaceSettings>,
    /// Whether it sends GeoNetworking beacons while it has nothing else to send (EN 302 636-4-1, 10.3.6).
    #[serde(default)]
    pub beacons: bool,
    /// Where frames come from and go to.
    pub access: Access,
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
    /// Frames of a capture file, received again. What the station sends is dropped and counted.
    Replay(ReplaySettings),
}

/// UDP multicast as an access layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpMulticastSettings {
    /// Multicast group and port.
    #[serde(default = "default_group")]
    pub group: SocketAddrV4,
    /// The interface: its IPv4 address or its name. `127.0.0.1` keeps the packets on this machine.
    #[serde(default = "default_interface")]
    pub interface: String,
    /// Octets that the kernel may queue for the station, 4096 to 268 435 456. It gives at most
    /// `net.core.rmem_max`, or twice this where the process may (CAP_NET_ADMIN).
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

/// A capture file as an access layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    /// The capture: pcap or pcapng of Ethernet frames. A relative path starts where the program was started.
    pub file: PathBuf,
    /// When the frames come.
    #[serde(default)]
    pub pace: Pace,
    /// Whether the capture starts again when it has ended.
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
    /// What the station could not do comes out here (`viaduct.its.V2xError`): each refused request, and of dropped frames
    /// two a second for each reason, with the number of those that it stands for.
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

fn default_group() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(UDP_MULTICAST_GROUP), UDP_PORT)
}

fn default_interface() -> String {
    "127.0.0.1".to_owned()
}

const fn default_receive_buffer() -> usize {
    4 << 20
}

impl Default for UdpMulticastSettings {
    fn default() -> Self {
        Self { group: default_group(), interface: default_interface(), receive_buffer_octets: default_receive_buffer() }
    }
}

impl ItsStationSettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let range = |key: &str, problem: String| Err(SettingError::new(key, problem));
        if self.station_type > 31 {
            return range("station_type", format!("{} is not within 0 to 31", self.station_type));
        }
        if let Some(place) = &self.position {
            place.check("position")?;
        }
        self.mac_address()?;
        for (key, name) in [("topics.rx", &self.topics.rx), ("topics.tx", &self.topics.tx)] {
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        if self.topics.send.is_some() && self.position.is_none() {
            return range("position", "a station that sends needs a position".to_owned());
        }
        match &self.access {
            Access::UdpMulticast(udp) => udp.check("access.udp_multicast"),
            Access::Replay(replay) => replay.check(),
        }
    }

    /// The link address, given or made from the station ID.
    pub(super) fn mac_address(&self) -> Result<MacAddress, SettingError> {
        match &self.link_address {
            None => Ok(mac_of_station(self.station_id)),
            Some(text) => parse_mac(text).ok_or_else(|| {
                SettingError::new("link_address", format!("`{text}` is not six octets as `02:00:00:00:03:e9`"))
            }),
        }
    }
}

/// A locally administered address that holds the station ID.
pub(crate) fn mac_of_station(station_id: u32) -> MacAddress {
    let [a, b, c, d] = station_id.to_be_bytes();
    MacAddress([0x02, 0x00, a, b, c, d])
}

fn parse_mac(text: &str) -> Option<MacAddress> {
    let octets: Option<Vec<u8>> = text.split(':').map(hex_pair).collect();
    octets.and_then(|octets| octets.try_into().ok()).map(MacAddress)
}

/// One octet of two hexadecimal digits; `from_str_radix` alone would take a sign.
fn hex_pair(pair: &str) -> Option<u8> {
    let digits = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(pair, 16).ok().filter(|_| digits)
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

impl UdpMulticastSettings {
    pub(crate) fn check(&self, key: &str) -> Result<(), SettingError> {
        if !self.group.ip().is_multicast() {
            let problem = format!("{} is not a multicast address (224.0.0.0 to 239.255.255.255)", self.group.ip());
            return Err(SettingError::new(format!("{key}.group"), problem));
        }
        if !(4096..=268_435_456).contains(&self.receive_buffer_octets) {
            let problem = format!("{} is not within 4096 to 268435456", self.receive_buffer_octets);
            return Err(SettingError::new(format!("{key}.receive_buffer_octets"), problem));
        }
        Ok(())
    }
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
    fn a_link_address_is_six_pairs() {
        assert_eq!(parse_mac("02:00:00:00:03:e9"), Some(MacAddress([2, 0, 0, 0, 3, 0xE9])));
        assert_eq!(mac_of_station(1001), MacAddress([2, 0, 0, 0, 3, 0xE9]));
        for bad in
            ["", "02:00:00:00:03", "02:00:00:00:03:e9:00", "2:0:0:0:3:e9", "02-00-00-00-03-e9", "02:00:00:00:03:+9"]
        {
            assert_eq!(parse_mac(bad), None, "{bad}");
        }
    }
}
