//! Settings of encrypted datagrams: the own key, and the peers with their keys and roles.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_node::{SettingError, files};

use super::keys::{KeyFileError, PrivateKey, PublicKey};
use super::limits::{PEERS_MAX, ROLES_FILE_OCTETS_MAX};

/// The own key, and the peers that may connect. All other senders are ignored.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecuritySettings {
    /// File with the own private key, which `viaduct keys new FILE` writes. Other users must not have access to it.
    pub private_key: PathBuf,
    /// Peers, 1 to 64.
    #[schemars(length(min = 1, max = 64))]
    pub peers: Vec<PeerSettings>,
    /// File with the roles of peers: one line `NAME ROLE` for each, with the role `driver` or `observer`. A text after `#`
    /// is a comment. A peer that the file does not list is an observer. Default: none, all peers are drivers.
    #[serde(default)]
    pub roles: Option<PathBuf>,
}

/// A peer that may connect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerSettings {
    /// Name of the peer in logs and in the file of roles.
    pub name: String,
    /// Public key of the peer, which `viaduct keys public FILE` prints.
    pub public_key: String,
    /// Address of the peer. The end that has it opens the connection; the other end takes the address from authentic
    /// datagrams. One of the two ends needs it.
    #[serde(default)]
    pub address: Option<SocketAddr>,
}

/// Permission of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The peer receives pictures and state.
    #[default]
    Observer,
    /// The peer may also request control and send commands.
    Driver,
}

/// A peer, as an endpoint needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name in logs.
    pub name: String,
    /// Its identity.
    pub public_key: PublicKey,
    /// Address at which this end opens the connection, or `None` if the peer opens it.
    pub address: Option<SocketAddr>,
    /// Its permission.
    pub role: Role,
}

/// The own key and the peers, read from files.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The own key.
    pub private_key: PrivateKey,
    /// The peers.
    pub peers: Vec<Peer>,
}

/// A file of the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A setting is not possible.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The private key cannot be read.
    #[error(transparent)]
    PrivateKey(#[from] KeyFileError),
    /// A peer has the key of this end.
    #[error("the peer `{0}` has the public key of this end; it needs a key of its own")]
    OwnKey(String),
    /// The file of roles cannot be read.
    #[error("cannot read the roles `{}`: {cause}", path.display())]
    RolesUnreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// A line of the file of roles is not `NAME ROLE`.
    #[error("`{}`:{line}: {problem}", path.display())]
    RolesInvalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

impl SecuritySettings {
    /// Checks the settings without reading files. `key` is the path of these settings below those of the component.
    ///
    /// # Errors
    /// The first setting that is not possible.
    pub fn check(&self, key: &str) -> Result<(), SettingError> {
        let refuse = |name: String, problem: String| Err(SettingError::new(format!("{key}.{name}"), problem));
        if self.peers.is_empty() || self.peers.len() > PEERS_MAX {
            return refuse("peers".to_owned(), format!("{} peers is not within 1 to {PEERS_MAX}", self.peers.len()));
        }
        let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for (index, peer) in self.peers.iter().enumerate() {
            let name = peer.name.as_str();
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '#') {
                return refuse(format!("peers.{index}.name"), format!("`{name}` has a space or `#`, or is empty"));
            }
            if !names.insert(name) {
                return refuse(format!("peers.{index}.name"), format!("two peers have the name `{name}`"));
            }
            let public_key = match peer.public_key.parse::<PublicKey>() {
                Ok(public_key) => public_key,
                Err(error) => return refuse(format!("peers.{index}.public_key"), error.to_string()),
            };
            if !keys.insert(public_key) {
                return refuse(format!("peers.{index}.public_key"), "two peers have this key".to_owned());
            }
        }
        Ok(())
    }

    /// Reads the files.
    ///
    /// # Errors
    /// A setting is not possible, or a file cannot be read or is malformed.
    pub fn load(&self) -> Result<Credentials, CredentialsError> {
        self.check("security")?;
        let private_key = PrivateKey::read(&self.private_key)?;
        let own = private_key.public_key();
        let roles = self.roles.as_deref().map(|path| self.read_roles(path)).transpose()?;
        let mut peers = Vec::new();
        for PeerSettings { name, public_key, address } in &self.peers {
            let Ok(public_key) = public_key.parse() else { continue };
            if public_key == own {
                return Err(CredentialsError::OwnKey(name.clone()));
            }
            let listed = roles.as_ref().map(|roles| roles.get(name.as_str()).copied().unwrap_or_default());
            let role = listed.unwrap_or(Role::Driver);
            peers.push(Peer { name: name.clone(), public_key, address: *address, role });
        }
        Ok(Credentials { private_key, peers })
    }

    fn read_roles(&self, path: &Path) -> Result<BTreeMap<String, Role>, CredentialsError> {
        let unreadable = |cause| CredentialsError::RolesUnreadable { path: path.to_owned(), cause };
        let text = files::read_text(path, ROLES_FILE_OCTETS_MAX).map_err(unreadable)?;
        let mut roles = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let invalid = |problem| CredentialsError::RolesInvalid { path: path.to_owned(), line: index + 1, problem };
            let Some((name, role)) = parse_role(line).map_err(invalid)? else { continue };
            if self.peers.iter().all(|peer| peer.name != name) {
                return Err(invalid(format!("no peer has the name `{name}`")));
            }
            if roles.insert(name.to_owned(), role).is_some() {
                return Err(invalid(format!("`{name}` has a role already")));
            }
        }
        Ok(roles)
    }
}

/// Parses a line of the file of roles. Returns `None` for an empty line.
fn parse_role(line: &str) -> Result<Option<(&str, Role)>, String> {
    let line = line.split('#').next().unwrap_or_default();
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (None, _, _) => Ok(None),
        (Some(name), Some("driver"), None) => Ok(Some((name, Role::Driver))),
        (Some(name), Some("observer"), None) => Ok(Some((name, Role::Observer))),
        _ => Err("expected `NAME driver` or `NAME observer`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::SystemRandom;
    use super::*;

    /// A vehicle with the peers `a` and `b`, and its files.
    struct Files {
        folder: tempfile::TempDir,
        settings: SecuritySettings,
    }

    fn files() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SystemRandom::default();
        let private_key = folder.path().join("vehicle.key");
        PrivateKey::generate(&mut random).unwrap().write_new(&private_key).unwrap();
        let mut peer = |name: &str| PeerSettings {
            name: name.to_owned(),
            public_key: PrivateKey::generate(&mut random).unwrap().public_key().to_string(),
            address: None,
        };
        let peers = vec![peer("a"), peer("b")];
        Files { folder, settings: SecuritySettings { private_key, peers, roles: None } }
    }

    impl Files {
        fn load_with_roles(&mut self, roles: &str) -> Result<Vec<Role>, CredentialsError> {
            let path = self.folder.path().join("roles");
            fs::write(&path, roles).unwrap();
            self.settings.roles = Some(path);
            Ok(self.settings.load()?.peers.iter().map(|peer| peer.role).collect())
        }
    }

    #[test]
    fn a_peer_that_the_file_of_roles_does_not_list_is_an_observer() {
        let mut files = files();
        assert_eq!(
            files.load_with_roles("# desks\n\nb  driver  # until May\n").unwrap(),
            [Role::Observer, Role::Driver]
        );
        assert_eq!(files.load_with_roles("a driver\nb observer\n").unwrap(), [Role::Driver, Role::Observer]);
        files.settings.roles = None;
        assert!(files.settings.load().unwrap().peers.iter().all(|peer| peer.role == Role::Driver));
    }

    #[test]
    fn an_invalid_role_is_refused_with_its_line() {
        let mut files = files();
        for (text, line, expected) in [
            ("a driver\nb captain\n", 2, "expected `NAME driver`"),
            ("a\n", 1, "expected `NAME driver`"),
            ("a driver observer\n", 1, "expected `NAME driver`"),
            ("c driver\n", 1, "no peer has the name `c`"),
            ("a driver\n\na driver\n", 3, "`a` has a role already"),
        ] {
            let error = files.load_with_roles(text).unwrap_err().to_string();
            assert!(error.contains(&format!("roles`:{line}: ")) && error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn impossible_peers_are_refused_by_their_keys() {
        let Files { folder: _folder, settings } = files();
        let refused = |change: &dyn Fn(&mut SecuritySettings)| {
            let mut changed = settings.clone();
            change(&mut changed);
            changed.check("security").unwrap_err().to_string()
        };
        assert!(refused(&|settings| settings.peers.clear()).starts_with("`security.peers`: 0 peers"));
        assert!(refused(&|settings| settings.peers[1].name = "a".into()).starts_with("`security.peers.1.name`"));
        assert!(refused(&|settings| settings.peers[0].name = "a b".into()).starts_with("`security.peers.0.name`"));
        assert!(
            refused(&|settings| settings.peers[0].public_key = "a".into()).starts_with("`security.peers.0.public_key`")
        );
        let same = settings.peers[0].public_key.clone();
        assert!(
            refused(&|settings| settings.peers[1].public_key.clone_from(&same)).contains("two peers have this key")
        );
    }

    #[test]
    fn a_peer_with_the_own_key_is_refused() {
        let Files { folder: _folder, mut settings } = files();
        settings.peers[1].public_key = PrivateKey::read(&settings.private_key).unwrap().public_key().to_string();
        assert!(matches!(settings.load(), Err(CredentialsError::OwnKey(name)) if name == "b"));
    }
}
