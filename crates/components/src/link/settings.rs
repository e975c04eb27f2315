//! Settings of an emulated link.

use std::path::Path;

use viaduct_netem::{Duplex, LinkConfig, LinkSettings, LinksConfig, config::LinkConfigError, link::DeliveryTrace};
use viaduct_node::files;

use super::LinkError;

/// Smallest MTU: each IPv4 host must accept packets of this size (RFC 791, 3.1).
pub(super) const MTU_MIN: u16 = 576;
/// Largest file of a trace: its limit of lines with ten characters each.
const TRACE_FILE_OCTETS_MAX: u64 = 10 * viaduct_netem::limits::TRACE_OPPORTUNITIES_MAX as u64;
/// Longest name of a link.
const NAME_CHARS_MAX: usize = 32;

/// Settings of an emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelSettings {
    /// Name of the link. Its namespaces are `NAME-a` and `NAME-b` in `/run/netns`. Default: none, and the namespaces have no name.
    pub name: Option<String>,
    /// Profile and settings of each direction. Default: a perfect link.
    pub links: LinksConfig,
    /// Seed of losses and delays. Default: 1.
    pub seed: u64,
    /// Largest IP packet in octets, 576 to 65535. Default: 1500.
    pub mtu: u16,
}

impl Default for TunnelSettings {
    fn default() -> Self {
        Self { name: None, links: LinksConfig::default(), seed: 1, mtu: 1500 }
    }
}

impl TunnelSettings {
    /// Checks the settings, and returns those of each direction.
    pub(super) fn resolve(&self) -> Result<Duplex<(LinkConfig, LinkSettings)>, LinkError> {
        if self.mtu < MTU_MIN {
            return Err(LinkError::Mtu(self.mtu));
        }
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        let links = self.links.links();
        Ok(Duplex {
            a_to_b: resolve_direction("a_to_b", links.a_to_b)?,
            b_to_a: resolve_direction("b_to_a", links.b_to_a)?,
        })
    }
}

/// Returns the settings of a direction together with their config.
pub(super) fn resolve_direction(
    direction: &'static str,
    config: LinkConfig,
) -> Result<(LinkConfig, LinkSettings), LinkError> {
    let settings = resolve_link(&config).map_err(|cause| LinkError::Config { direction, cause })?;
    Ok((config, settings))
}

/// Returns the settings of a link. Reads the file of its trace, if it has one.
///
/// # Errors
/// The invalid setting, or the problem with the trace.
pub fn resolve_link(config: &LinkConfig) -> Result<LinkSettings, LinkConfigError> {
    config.resolve(read_trace)
}

fn read_trace(path: &Path) -> Result<DeliveryTrace, String> {
    let text = files::read_text(path, TRACE_FILE_OCTETS_MAX).map_err(|error| error.to_string())?;
    DeliveryTrace::parse(&text).map_err(|error| error.to_string())
}

/// Checks the name of a link, which becomes part of file names.
///
/// # Errors
/// The name has other characters than a-z, 0-9, `-` and `_`, or is too long.
pub fn check_name(name: &str) -> Result<(), LinkError> {
    let permitted = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || matches!(octet, b'-' | b'_');
    if (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(permitted) {
        return Ok(());
    }
    Err(LinkError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_file_names() {
        assert!(["viaduct", "run-7", "a_b"].into_iter().all(|name| check_name(name).is_ok()));
        assert!(["", "..", "a/b", "A", "é", &"x".repeat(33)].into_iter().all(|name| check_name(name).is_err()));
    }

    #[test]
    fn a_trace_is_read_from_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1\n2\n10\n").unwrap();
        assert_eq!(read_trace(file.path()).unwrap().opportunities_ms(), [1, 2, 10]);
        std::fs::write(file.path(), "x").unwrap();
        assert!(read_trace(file.path()).unwrap_err().contains("line 1"));
        assert!(read_trace(Path::new("/nonexistent")).is_err());
    }
}
