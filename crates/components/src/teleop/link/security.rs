//! Settings of the protection of datagrams.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::SettingError;

use crate::net::secure::{Credentials, CredentialsError, SecuritySettings};

/// Key of the settings with the keys.
const KEYS: &str = "security.keys";

/// Protection of the datagrams.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    /// None. Permitted only if both ends are on this machine.
    None,
    /// Encryption and authentication with the keys of both ends (Noise IK, X25519, AES-256-GCM). `peers` has exactly one item, the
    /// other end.
    Keys(SecuritySettings),
}

impl Security {
    /// Refuses keys that are not possible, and addresses that another machine can reach if nothing protects the datagrams. `key` is
    /// the setting with the address.
    pub(crate) fn check(&self, key: &str, address: SocketAddr) -> Result<(), SettingError> {
        match self {
            Self::None if address.ip().is_loopback() => Ok(()),
            Self::None => {
                let problem = format!(
                    "{address} is not on this machine (127.0.0.1), which `security: none` requires; `security: keys` permits any address"
                );
                Err(SettingError::new(key, problem))
            }
            Self::Keys(settings) => check_keys(settings),
        }
    }

    /// Refuses an address of the peer, which is another setting.
    pub(crate) fn check_no_address(&self, key: &str) -> Result<(), SettingError> {
        let Self::Keys(settings) = self else { return Ok(()) };
        if settings.peers.iter().all(|peer| peer.address.is_none()) {
            return Ok(());
        }
        Err(SettingError::new(
            format!("{KEYS}.peers.0.address"),
            format!("remove this address: the setting `{key}` is the address of this peer"),
        ))
    }

    /// Reads the keys, or returns `None` if nothing protects the datagrams.
    ///
    /// # Errors
    /// A file cannot be read, or is malformed.
    pub(crate) fn load(&self) -> Result<Option<Credentials>, SettingError> {
        let Self::Keys(settings) = self else { return Ok(None) };
        settings.load().map(Some).map_err(|error| match error {
            CredentialsError::Setting(error) => error,
            CredentialsError::PrivateKey(cause) => SettingError::new(format!("{KEYS}.private_key"), cause.to_string()),
            CredentialsError::OwnKey(_) => SettingError::new(format!("{KEYS}.peers.0.public_key"), error.to_string()),
            CredentialsError::RolesUnreadable { .. } | CredentialsError::RolesInvalid { .. } => {
                SettingError::new(format!("{KEYS}.roles"), error.to_string())
            }
        })
    }
}

fn check_keys(settings: &SecuritySettings) -> Result<(), SettingError> {
    settings.check(KEYS)?;
    if settings.peers.len() > 1 {
        let problem = format!("{} peers; a remote drive has one vehicle and one desk", settings.peers.len());
        return Err(SettingError::new(format!("{KEYS}.peers"), problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::secure::{PeerSettings, PrivateKey, SystemRandom};

    const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    fn keys(private_key: &std::path::Path) -> SecuritySettings {
        let peer = PeerSettings { name: "desk".to_owned(), public_key: KEY.to_owned(), address: None };
        SecuritySettings { private_key: private_key.to_owned(), peers: vec![peer], roles: None }
    }

    #[test]
    fn without_protection_only_addresses_of_this_machine_are_permitted() {
        for (address, permitted) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("192.168.1.7:1", false),
            ("[::]:1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Security::None.check("listen", address).is_ok(), permitted, "{address}");
            assert_eq!(Security::Keys(keys("x".as_ref())).check("listen", address), Ok(()), "{address}");
        }
    }

    #[test]
    fn keys_that_are_not_possible_are_refused_with_their_setting() {
        let refused = |change: &dyn Fn(&mut SecuritySettings)| {
            let mut settings = keys("x".as_ref());
            change(&mut settings);
            let security = Security::Keys(settings);
            let checked = security.check("listen", "0.0.0.0:1".parse().unwrap());
            checked.and_then(|()| security.check_no_address("desk")).unwrap_err().to_string()
        };
        let other = PeerSettings {
            name: "other".to_owned(),
            public_key: "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=".to_owned(),
            address: None,
        };
        for (error, expected) in [
            (refused(&|settings| settings.peers.clear()), "`security.keys.peers`: 0 peers"),
            (
                refused(&|settings| settings.peers.push(other.clone())),
                "`security.keys.peers`: 2 peers; a remote drive has",
            ),
            (
                refused(&|settings| settings.peers[0].public_key.clear()),
                "`security.keys.peers.0.public_key`: expected a key",
            ),
            (
                refused(&|settings| settings.peers[0].address = "192.0.2.1:1".parse().ok()),
                "`security.keys.peers.0.address`: remove this address: the setting `desk` is the address of this peer",
            ),
        ] {
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_key_file_that_cannot_be_used_is_named_with_the_remedy() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vehicle.key");
        let failed = |security: &Security| security.load().unwrap_err().to_string();
        let security = Security::Keys(keys(&path));
        let missing = failed(&security);
        assert!(missing.starts_with("`security.keys.private_key`: cannot read the private key"), "{missing}");
        assert!(missing.contains("vehicle.key") && missing.contains("No such file"), "{missing}");

        PrivateKey::generate(&mut SystemRandom::default()).unwrap().write_new(&path).unwrap();
        assert_eq!(security.load().unwrap().map(|credentials| credentials.peers.len()), Some(1));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = failed(&security);
        assert!(open.starts_with("`security.keys.private_key`: ") && open.contains("chmod 600"), "{open}");

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "no key\n").unwrap();
        assert!(failed(&security).contains("contains no private key"));

        let mut own = keys(&path);
        std::fs::remove_file(&path).unwrap();
        let key = PrivateKey::generate(&mut SystemRandom::default()).unwrap();
        key.write_new(&path).unwrap();
        own.peers[0].public_key = key.public_key().to_string();
        assert!(failed(&Security::Keys(own)).starts_with("`security.keys.peers.0.public_key`: the peer `desk` has"));

        let roles = SecuritySettings { roles: Some(folder.path().join("roles")), ..keys(&path) };
        assert!(failed(&Security::Keys(roles)).starts_with("`security.keys.roles`: cannot read the roles"));
        assert!(Security::None.load().unwrap().is_none());
    }
}
