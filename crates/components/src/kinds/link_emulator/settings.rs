//! Settings of the kind `link_emulator`.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_netem::{
    Duplex, LinkConfig, LinkSettings, LinksConfig, Probability,
    config::BottleneckConfig,
    link::{Loss, Order, Outages, Reorder},
};
use viaduct_node::SettingError;

use crate::link::resolve_link;
use crate::net::default_receive_buffer;
use crate::teleop::within;

/// A relay that emulates a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEmulatorSettings {
    /// Address for clients, the end `a` of the link; port 0 selects a free port.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Address of the server, the end `b` of the link.
    #[schemars(with = "String")]
    pub to: SocketAddr,
    /// Protocol of clients and server. Default: `udp`.
    #[serde(default)]
    pub protocol: RelayProtocol,
    /// Profile and settings of each direction of the link. Default: a perfect link.
    #[serde(default)]
    pub links: LinksConfig,
    /// Seed of losses and delays. Absent: the component's own, which follows from the seed of the node.
    pub seed: Option<u64>,
    /// Maximum number of clients or connections at a time, 1 to 256. If it is reached, a UDP client that has not sent or received a
    /// datagram for 10 s is replaced. Default: 16.
    #[serde(default = "default_clients")]
    #[schemars(range(min = 1, max = 256))]
    pub clients_max: usize,
    /// Size of the receive buffer of each UDP socket in bytes, 4096 to 268435456. The kernel limits it to `net.core.rmem_max`.
    /// Default: 4194304.
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

const fn default_clients() -> usize {
    16
}

/// Protocol of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RelayProtocol {
    /// UDP: datagrams with all properties of the link.
    #[default]
    Udp,
    /// TCP: streams of octets with rate and delay.
    Tcp,
}

impl LinkEmulatorSettings {
    /// Checks what does not depend on files.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        within("clients_max", self.clients_max as f64, 1.0, 256.0)?;
        within("receive_buffer_octets", self.receive_buffer_octets as f64, 4096.0, 268_435_456.0)?;
        if self.to.port() == 0 {
            return Err(SettingError::new("to", format!("{} has no port", self.to)));
        }
        if self.listen == self.to {
            return Err(SettingError::new("to", format!("{} is the address of `listen`", self.to)));
        }
        let links = self.links.links();
        for (direction, link) in [("a_to_b", &links.a_to_b), ("b_to_a", &links.b_to_a)] {
            if self.protocol == RelayProtocol::Tcp {
                check_for_tcp(direction, link)?;
            }
            // A file of a trace is read by `resolve` only.
            if !matches!(link.bottleneck, BottleneckConfig::Trace(_)) {
                resolve_direction(direction, link)?;
            }
        }
        Ok(())
    }

    /// Returns the settings of each direction. Reads the files of traces.
    pub(super) fn resolve(&self) -> Result<Duplex<LinkSettings>, SettingError> {
        let links = self.links.links();
        Ok(Duplex {
            a_to_b: resolve_direction("a_to_b", &links.a_to_b)?,
            b_to_a: resolve_direction("b_to_a", &links.b_to_a)?,
        })
    }
}

fn resolve_direction(direction: &str, link: &LinkConfig) -> Result<LinkSettings, SettingError> {
    let problem = |error: viaduct_netem::config::LinkConfigError| format!("{direction}.{}: {error}", error.key());
    resolve_link(link).map_err(|error| SettingError::new("links", problem(error)))
}

/// Refuses what a relay above TCP cannot emulate.
fn check_for_tcp(direction: &str, link: &LinkConfig) -> Result<(), SettingError> {
    for (setting, is_set) in [
        ("loss", link.loss != Loss::None),
        ("outages", link.outages != Outages::None),
        ("duplicate", link.duplicate != Probability::ZERO),
        ("reorder", link.reorder != Reorder::default()),
        ("delay.order: free", link.delay.order == Order::Free),
    ] {
        if is_set {
            let problem = format!(
                "{direction} has `{setting}`, which a relay above TCP cannot emulate: use `viaduct link up`, or a profile with \
                 rate and delay only"
            );
            return Err(SettingError::new("links", problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(changes: &Value) -> Option<String> {
        let mut settings = json!({ "listen": "127.0.0.1:1", "to": "127.0.0.1:2" });
        for (key, value) in changes.as_object().unwrap() {
            settings[key] = value.clone();
        }
        let settings: LinkEmulatorSettings = serde_json::from_value(settings).unwrap();
        settings.check().err().map(|error| error.to_string())
    }

    #[test]
    fn invalid_settings_are_refused_with_their_key() {
        for (changes, problem) in [
            (json!({}), None),
            (json!({ "links": { "profile": "lossy-5", "a_to_b": { "delay": { "base_ms": 10 } } } }), None),
            (json!({ "protocol": "tcp", "links": { "profile": "5g" } }), None),
            (json!({ "to": "127.0.0.1:0" }), Some("`to`: 127.0.0.1:0 has no port")),
            (json!({ "to": "127.0.0.1:1" }), Some("`to`: 127.0.0.1:1 is the address of `listen`")),
            (json!({ "clients_max": 0 }), Some("`clients_max`: 0 is not within 1 to 256")),
            (
                json!({ "links": { "b_to_a": { "bottleneck": { "rate": { "mbps": 0 } } } } }),
                Some("`links`: b_to_a.bottleneck.rate.mbps: the rate is 0 Mbit/s, but must be 0.000001 to 1000000"),
            ),
            (
                json!({ "protocol": "tcp", "links": { "profile": "lossy-5" } }),
                Some("`links`: a_to_b has `loss`, which a relay above TCP cannot emulate"),
            ),
            (
                json!({ "protocol": "tcp", "links": { "profile": "outage" } }),
                Some("`links`: a_to_b has `outages`, which a relay above TCP cannot emulate"),
            ),
        ] {
            let refused = refused(&changes);
            let is_expected = match (&refused, problem) {
                (Some(refused), Some(problem)) => refused.starts_with(problem),
                (refused, problem) => refused.is_none() && problem.is_none(),
            };
            assert!(is_expected, "{changes}: {refused:?}");
        }
    }
}
