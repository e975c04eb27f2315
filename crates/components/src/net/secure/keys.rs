//! Keys of X25519, as text and in files.
//!
//! A file with a private key has one line: the 32 octets in base64, as WireGuard writes them. Only its owner may read it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use super::limits::KEY_FILE_OCTETS_MAX;
use super::random::{Random, RandomError, octets};

/// Octets of a key.
pub const KEY_OCTETS: usize = 32;

/// Permissions of the group and of all other users.
const OTHERS: u32 = 0o077;

/// A public key: the identity of a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub(super) [u8; KEY_OCTETS]);

/// A private key. It is erased from memory when it is dropped.
#[derive(Clone)]
pub struct PrivateKey(Zeroizing<[u8; KEY_OCTETS]>);

/// The text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a key of 44 base64 characters, as `viaduct keys new` prints it")]
pub struct NotAKey;

/// A file with a key cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be opened or read.
    #[error("cannot read the private key `{}`: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Other users may read or write the file.
    #[error("the private key `{path}` is open to other users (mode {mode:04o}); run `chmod 600 {path}`", path = path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
    /// The file does not contain a key.
    #[error("`{}` contains no private key: expected one line of 44 base64 characters, as `viaduct keys new` writes it", .0.display())]
    Malformed(PathBuf),
    /// The file exists. A key is never overwritten.
    #[error("`{}` exists; a private key is never overwritten", .0.display())]
    Exists(PathBuf),
    /// The file cannot be created or written.
    #[error("cannot write the private key `{}`: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
}

impl PrivateKey {
    /// Returns a new key.
    ///
    /// # Errors
    /// The source has no random numbers.
    pub fn generate(random: &mut dyn Random) -> Result<Self, RandomError> {
        Ok(Self(Zeroizing::new(octets(random)?)))
    }

    /// Returns the public key of this private key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(x25519_dalek::PublicKey::from(&StaticSecret::from(*self.0)).to_bytes())
    }

    /// Reads a key from a file.
    ///
    /// # Errors
    /// The file cannot be read, contains no key, or is open to other users.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let unreadable = |cause| KeyFileError::Unreadable { path: path.to_owned(), cause };
        let file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(KeyFileError::Permissions { path: path.to_owned(), mode });
        }
        let mut text = Zeroizing::new(Vec::new());
        file.take(KEY_FILE_OCTETS_MAX).read_to_end(&mut text).map_err(unreadable)?;
        let key = std::str::from_utf8(&text).ok().and_then(|text| decode(text.trim()));
        key.map(Self).ok_or_else(|| KeyFileError::Malformed(path.to_owned()))
    }

    /// Writes the key to a new file that only its owner may read.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyFileError> {
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.to_owned()),
            _ => KeyFileError::Unwritable { path: path.to_owned(), cause },
        };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let line = Zeroizing::new(format!("{}\n", *Zeroizing::new(BASE64_STANDARD.encode(*self.0))));
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }

    pub(super) fn octets(&self) -> &[u8; KEY_OCTETS] {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let key = decode(text).ok_or(NotAKey)?;
        // The zero key has no private key, and every key agreement with it has the same result.
        if *key == [0; KEY_OCTETS] { Err(NotAKey) } else { Ok(Self(*key)) }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

fn decode(text: &str) -> Option<Zeroizing<[u8; KEY_OCTETS]>> {
    let octets = Zeroizing::new(BASE64_STANDARD.decode(text).ok()?);
    octets.as_slice().try_into().ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7748, 6.1: Alice's private and public key.
    const PRIVATE: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
    const PUBLIC: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vehicle.key");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_private_key_has_the_public_key_of_rfc_7748() {
        let (_folder, path) = file(PRIVATE, 0o600);
        let key = PrivateKey::read(&path).unwrap().public_key();
        assert_eq!(key.to_string(), PUBLIC);
        assert_eq!(PUBLIC.parse(), Ok(key));
    }

    #[test]
    fn a_new_key_is_readable_by_its_owner_only_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("desk.key");
        let key = PrivateKey::generate(&mut super::super::SystemRandom::default()).unwrap();
        key.write_new(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(PrivateKey::read(&path).unwrap().public_key(), key.public_key());
        assert!(matches!(key.write_new(&path), Err(KeyFileError::Exists(_))));
    }

    #[test]
    fn a_private_key_that_other_users_may_read_is_refused() {
        for mode in [0o640, 0o604, 0o620, 0o777] {
            let (_folder, path) = file(PRIVATE, mode);
            let error = PrivateKey::read(&path).unwrap_err();
            assert!(matches!(error, KeyFileError::Permissions { .. }), "{mode:o}: {error}");
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_key_is_refused() {
        let long = PRIVATE.repeat(40);
        for text in ["", "key", &PRIVATE[1..], "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo", &long] {
            let (_folder, path) = file(text, 0o600);
            assert!(matches!(PrivateKey::read(&path), Err(KeyFileError::Malformed(_))), "{text:?}");
        }
    }

    #[test]
    fn a_private_key_is_not_printed() {
        let (_folder, path) = file(PRIVATE, 0o600);
        assert_eq!(format!("{:?}", PrivateKey::read(&path).unwrap()), "PrivateKey");
    }

    #[test]
    fn the_zero_key_is_no_public_key() {
        assert_eq!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse::<PublicKey>(), Err(NotAKey));
    }
}
