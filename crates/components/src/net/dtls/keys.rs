//! Pre-shared keys, from a file.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use viaduct_node::files;
use zeroize::Zeroizing;

use super::limits::{IDENTITY_OCTETS_MAX, KEY_FILE_OCTETS_MAX, KEY_OCTETS_MAX, KEY_OCTETS_MIN, KEYS_MAX};

/// Permissions of the group and of all other users.
const OTHERS: u32 = 0o077;

/// A pre-shared key. It is erased from memory when it is dropped.
pub(super) type Key = Zeroizing<Vec<u8>>;

/// Identities with their keys, 1 to 100 000.
#[derive(Clone)]
pub struct PskKeys(BTreeMap<Arc<str>, Key>);

/// A file with pre-shared keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PskError {
    /// The file cannot be opened or read.
    #[error("cannot read the pre-shared keys `{}`: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Other users may read or write the file.
    #[error("the pre-shared keys `{path}` are open to other users (mode {mode:04o}); run `chmod 600 {path}`", path = path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
    /// A line is not an identity with a key.
    #[error("`{}`:{line}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Problem of the line.
        problem: String,
    },
    /// The file has no key, or too many.
    #[error("`{}` has {count} pre-shared keys; expected {expected}", path.display())]
    Count {
        /// The file.
        path: PathBuf,
        /// The number of keys.
        count: usize,
        /// The permitted numbers.
        expected: &'static str,
    },
}

impl PskKeys {
    /// Reads the keys of a server.
    ///
    /// # Errors
    /// The file cannot be read, is open to other users, has a line without a key, or has no key at all.
    pub fn read(path: &Path) -> Result<Self, PskError> {
        let unreadable = |cause| PskError::Unreadable { path: path.to_owned(), cause };
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(PskError::Permissions { path: path.to_owned(), mode });
        }
        let text = Zeroizing::new(files::text_of(file, KEY_FILE_OCTETS_MAX).map_err(unreadable)?);
        let malformed = |line, problem| PskError::Malformed { path: path.to_owned(), line, problem };
        let keys = Self::parse(&text).map_err(|(line, problem)| malformed(line, problem))?;
        match keys.0.len() {
            1..=KEYS_MAX => Ok(keys),
            count => Err(PskError::Count { path: path.to_owned(), count, expected: "1 to 100000" }),
        }
    }

    /// Reads the key of a client.
    ///
    /// # Errors
    /// See [`Self::read`]. Or the file has more than one key.
    pub fn read_one(path: &Path) -> Result<Self, PskError> {
        let keys = Self::read(path)?;
        match keys.0.len() {
            1 => Ok(keys),
            count => Err(PskError::Count { path: path.to_owned(), count, expected: "the one key of the client" }),
        }
    }

    /// Returns a single identity with its key, or `None` if one of them is too long or too short.
    #[must_use]
    pub fn single(identity: &str, key: &[u8]) -> Option<Self> {
        check(identity, key).ok()?;
        Some(Self(BTreeMap::from([(identity.into(), Zeroizing::new(key.to_vec()))])))
    }

    /// Parses the lines of a file. Returns the line, from 1, and the problem if a line is not an identity with a key.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut keys = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |problem| (index + 1, problem);
            let (identity, key) = parse_line(line).map_err(invalid)?;
            if keys.insert(Arc::from(identity), key).is_some() {
                return Err(invalid(format!("the identity `{identity}` has a key already")));
            }
        }
        Ok(Self(keys))
    }

    /// Returns the first identity: that of a client.
    pub(super) fn first(&self) -> Option<&Arc<str>> {
        self.0.first_key_value().map(|(identity, _)| identity)
    }

    /// Returns an identity and its key, or `None` if it has none.
    pub(super) fn get(&self, identity: &[u8]) -> Option<(&Arc<str>, &Key)> {
        self.0.get_key_value(std::str::from_utf8(identity).ok()?)
    }
}

impl fmt::Debug for PskKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PskKeys").field(&self.0.len()).finish()
    }
}

/// Parses `IDENTITY:HEX` or `IDENTITY:"text"`. The problem never contains the key.
fn parse_line(line: &str) -> Result<(&str, Key), String> {
    let form = || "expected `IDENTITY:HEX` or `IDENTITY:\"text\"`".to_owned();
    let (identity, key) = match line.strip_suffix('"').and_then(|line| line.split_once(":\"")) {
        Some((identity, text)) => (identity, Zeroizing::new(text.as_bytes().to_vec())),
        None => {
            let (identity, hex) = line.rsplit_once(':').ok_or_else(form)?;
            (identity, decode_hex(hex.trim()).ok_or_else(form)?)
        }
    };
    let identity = identity.trim();
    check(identity, &key)?;
    Ok((identity, key))
}

fn check(identity: &str, key: &[u8]) -> Result<(), String> {
    if identity.is_empty() || identity.len() > IDENTITY_OCTETS_MAX {
        return Err(format!("an identity of {} octets is not within 1 to {IDENTITY_OCTETS_MAX}", identity.len()));
    }
    if !(KEY_OCTETS_MIN..=KEY_OCTETS_MAX).contains(&key.len()) {
        return Err(format!(
            "the key of `{identity}` has {} octets, which is not within {KEY_OCTETS_MIN} to {KEY_OCTETS_MAX}",
            key.len()
        ));
    }
    Ok(())
}

fn decode_hex(text: &str) -> Option<Key> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |octet: u8| char::from(octet).to_digit(16).map(|digit| digit as u8);
    let octets = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| octets.collect::<Option<Vec<u8>>>())?.map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.psk");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    fn key_of<'a>(keys: &'a PskKeys, identity: &str) -> Option<&'a [u8]> {
        keys.get(identity.as_bytes()).map(|(_, key)| key.as_slice())
    }

    #[test]
    fn keys_are_hexadecimal_or_text() {
        let text = "# clients\n\n robot-7 : 00112233445566778899AAbbccddeeff\nurn:dev:9:\"a:b\"c#d e\"\n";
        let (_folder, path) = file(text, 0o600);
        let keys = PskKeys::read(&path).unwrap();
        assert_eq!(key_of(&keys, "robot-7").map(<[u8]>::len), Some(16));
        assert_eq!(key_of(&keys, "robot-7").unwrap()[..3], [0, 0x11, 0x22]);
        assert_eq!(key_of(&keys, "urn:dev:9"), Some(&b"a:b\"c#d e"[..]));
        assert_eq!(key_of(&keys, "robot-8"), None);
        assert_eq!(keys.get(&[0xff]), None);
        assert_eq!(format!("{keys:?}"), "PskKeys(2)", "keys are not printed");
    }

    #[test]
    fn a_wrong_line_is_refused_by_its_number_without_its_key() {
        let long = format!("{}:0011223344556677", "i".repeat(129));
        let long_key = format!("a:{}", "00".repeat(65));
        for (line, problem) in [
            ("robot-7", "expected `IDENTITY:HEX`"),
            ("robot-7:xyz", "expected `IDENTITY:HEX`"),
            ("robot-7:001122334455667", "expected `IDENTITY:HEX`"),
            ("robot-7:00112233445566", "has 7 octets"),
            (":0011223344556677", "an identity of 0 octets"),
            ("first:0011223344556677", "has a key already"),
            (&long, "an identity of 129 octets"),
            (&long_key, "has 65 octets"),
        ] {
            let (_folder, path) = file(&format!("first:7766554433221100\n{line}\n"), 0o600);
            let error = PskKeys::read(&path).unwrap_err().to_string();
            assert!(error.contains(":2: ") && error.contains(problem), "{line}: {error}");
            assert!(!error.contains("0011"), "{error}");
        }
    }

    #[test]
    fn a_file_that_other_users_may_read_is_refused() {
        for mode in [0o640, 0o604, 0o620] {
            let (_folder, path) = file("a:0011223344556677", mode);
            let error = PskKeys::read(&path).unwrap_err();
            assert!(
                matches!(error, PskError::Permissions { .. }) && error.to_string().contains("chmod 600"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_client_has_one_key_and_a_server_at_least_one() {
        let (_folder, none) = file("# nothing\n", 0o600);
        assert!(matches!(PskKeys::read(&none), Err(PskError::Count { count: 0, .. })));
        let (_folder, two) = file("a:0011223344556677\nb:0011223344556677\n", 0o600);
        assert!(PskKeys::read(&two).is_ok());
        assert!(matches!(PskKeys::read_one(&two), Err(PskError::Count { count: 2, .. })));
        assert!(matches!(PskKeys::read(Path::new("/nonexistent")), Err(PskError::Unreadable { .. })));
    }
}
