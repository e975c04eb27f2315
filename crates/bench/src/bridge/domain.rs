//! The domain of ROS 2 in which the programs of a setup find each other.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

/// Domains above 100 have ports that Linux gives to other programs.
const DOMAINS: u16 = 100;
/// Ports of DDS: of the first domain, from one domain to the next, and of the claim within a domain, which no participant reaches.
const FIRST_PORT: u16 = 7400;
const PORTS: u16 = 250;
const CLAIM_PORT: u16 = 230;
/// Configuration of Cyclone DDS for the ends: that of the nodes.
const NETWORK: &str = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>\
     <AllowMulticast>false</AllowMulticast></General>\
     <Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery>\
     <Internal><SocketReceiveBufferSize max=\"8 MiB\"/></Internal></Domain></CycloneDDS>";

/// A domain on the loopback interface that no other bench uses.
pub(super) struct Domain {
    number: u16,
    /// Keeps a port of the domain as long as it is used.
    _claim: UdpSocket,
}

impl Domain {
    /// Claims a domain.
    pub(super) fn claim() -> Result<Self, String> {
        let claim = |number| UdpSocket::bind((Ipv4Addr::LOCALHOST, FIRST_PORT + PORTS * number + CLAIM_PORT));
        let claimed = (1..=DOMAINS).find_map(|number| Some(Self { number, _claim: claim(number).ok()? }));
        claimed.ok_or_else(|| "there is no free domain of ROS 2".to_owned())
    }

    /// Returns the settings with which a node joins the domain.
    pub(super) fn settings(&self) -> String {
        format!("domain: {}\n      interface: lo\n      multicast: false\n      peers: [ 127.0.0.1 ]", self.number)
    }

    /// Sets the environment of an end.
    pub(super) fn set(&self, command: &mut Command) {
        command.env("ROS_DOMAIN_ID", self.number.to_string()).env("CYCLONEDDS_URI", NETWORK);
    }
}
