//! The configuration of Cyclone DDS for a domain.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::settings::{MESSAGE_BYTES_LIMIT, Ros2NodeSettings};

/// Returns the configuration for these settings. Variables of the environment have no effect on it.
pub(super) fn config(settings: &Ros2NodeSettings) -> String {
    let mut out = "<CycloneDDS><Domain><General>".to_owned();
    if let Some(interface) = &settings.interface {
        // The check of the settings has excluded characters that have a meaning in XML.
        let attribute = if interface.parse::<Ipv4Addr>().is_ok() { "address" } else { "name" };
        let _ = write!(out, "<Interfaces><NetworkInterface {attribute}=\"{interface}\"/></Interfaces>");
    }
    if !settings.multicast {
        out += "<AllowMulticast>false</AllowMulticast>";
    }
    out += "</General><Discovery>";
    if !settings.peers.is_empty() {
        // Peers send discovery to the ports of participant indices.
        out += "<ParticipantIndex>auto</ParticipantIndex><Peers>";
        for peer in &settings.peers {
            let _ = write!(out, "<Peer Address=\"{peer}\"/>");
        }
        out += "</Peers>";
    }
    // Publications wait for acknowledgements themselves, so that a stop has a time limit.
    out += "</Discovery><Internal><WriterLingerDuration>0 s</WriterLingerDuration>";
    // The system grants at most `net.core.rmem_max`. A message of 4 MB with its overhead fits, so that none of its datagrams is lost.
    out += "<SocketReceiveBufferSize max=\"8 MiB\"/>";
    let _ = write!(out, "<MaxSampleSize>{MESSAGE_BYTES_LIMIT} B</MaxSampleSize></Internal></Domain></CycloneDDS>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_settings_become_a_configuration() {
        let settings = |text: &str| serde_json::from_str::<Ros2NodeSettings>(text).unwrap();
        let text = config(&settings("{}"));
        assert!(text.starts_with("<CycloneDDS><Domain><General></General><Discovery></Discovery><Internal>"), "{text}");
        let text =
            config(&settings(r#"{ "interface": "eth0", "multicast": false, "peers": ["10.0.0.1", "10.0.0.2"] }"#));
        for part in [
            r#"<NetworkInterface name="eth0"/>"#,
            "<AllowMulticast>false</AllowMulticast>",
            "<ParticipantIndex>auto</ParticipantIndex>",
            r#"<Peers><Peer Address="10.0.0.1"/><Peer Address="10.0.0.2"/></Peers>"#,
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(config(&settings(r#"{ "interface": "10.0.0.1" }"#)).contains(r#"address="10.0.0.1""#));
    }
}
