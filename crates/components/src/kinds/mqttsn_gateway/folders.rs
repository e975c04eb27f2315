//! The folders of the outboxes of connections, below `connections` in the folder of the gateway.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard};

/// Octets of a client identifier in the name of a folder, which has at most 255.
const NAME_OCTETS: usize = 100;

/// The folders, of which those in use are known.
pub(super) struct Folders {
    root: PathBuf,
    used: HashMap<PathBuf, Arc<Folder>>,
}

/// The folder of one client identifier. One connection uses it at a time.
pub(super) struct Folder {
    path: PathBuf,
    /// `true` if the session has ended whose messages the folder may have.
    has_ended: AtomicBool,
    lock: Mutex<()>,
}

impl Folders {
    /// Creates the folder for the folders, and deletes those of other client identifiers, which no connection would use again.
    pub(super) fn open<'a>(folder: &Path, client_ids: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        let root = folder.join("connections");
        std::fs::create_dir_all(&root)?;
        let kept: HashSet<String> = client_ids.filter_map(|client_id| names(client_id).next()).collect();
        let mut deleted = 0_usize;
        for entry in std::fs::read_dir(&root)? {
            let entry = entry?;
            let name = entry.file_name();
            // A folder with another name is not of a gateway.
            let is_ended = name.to_str().is_some_and(|name| is_name(name) && !kept.contains(name));
            if entry.file_type()?.is_dir() && is_ended {
                std::fs::remove_dir_all(entry.path())?;
                deleted += 1;
            }
        }
        if deleted > 0 {
            let folder = root.display();
            tracing::info!(%folder, deleted, "outboxes of MQTT-SN clients whose sessions have ended are deleted");
        }
        Ok(Self { root, used: HashMap::new() })
    }

    /// Returns the folder of a client identifier.
    pub(super) fn get(&mut self, client_id: &str) -> Arc<Folder> {
        self.used.retain(|_, folder| Arc::strong_count(folder) > 1);
        let path = names(client_id).fold(self.root.clone(), |path, name| path.join(name));
        let new = || Folder { path: path.clone(), has_ended: AtomicBool::new(false), lock: Mutex::new(()) };
        Arc::clone(self.used.entry(path.clone()).or_insert_with(|| Arc::new(new())))
    }
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the session has ended. The folder is deleted by the next [`Self::lock`], before a later session uses it.
    pub(super) fn end_session(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Waits until no other connection uses the folder.
    pub(super) async fn lock(&self) -> MutexGuard<'_, ()> {
        let guard = self.lock.lock().await;
        if self.has_ended.swap(false, Ordering::Relaxed) {
            self.delete();
        }
        guard
    }

    /// Deletes the folder, which the caller has locked.
    pub(super) fn delete(&self) {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let folder = self.path.display();
                tracing::warn!(%folder, %error, "the outbox of an ended MQTT-SN session cannot be deleted");
            }
            _ => {}
        }
    }
}

/// Returns the names of the folder of a client identifier and of those in it. A client identifier of the settings may be longer than a name.
fn names(client_id: &str) -> impl Iterator<Item = String> {
    let hexadecimal = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let empty = client_id.is_empty().then(|| "empty".to_owned());
    empty.into_iter().chain(client_id.as_bytes().chunks(NAME_OCTETS).map(hexadecimal))
}

/// Returns `true` for a text that [`names`] may return.
fn is_name(text: &str) -> bool {
    text == "empty" || (!text.is_empty() && text.bytes().all(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the folders below `connections`.
    fn names_in(folder: &Path) -> HashSet<String> {
        let entries = std::fs::read_dir(folder.join("connections")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn write(folder: &Folder) {
        std::fs::create_dir_all(folder.path()).unwrap();
        std::fs::write(folder.path().join("000000000001.outbox"), b"messages").unwrap();
    }

    #[test]
    fn folders_that_are_not_of_a_gateway_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["notes", "616263"] {
            std::fs::create_dir_all(folder.path().join("connections").join(name)).unwrap();
        }
        Folders::open(folder.path(), std::iter::empty()).unwrap();
        assert_eq!(names_in(folder.path()), HashSet::from(["notes".to_owned()]));
    }

    #[test]
    fn folders_without_a_session_are_deleted_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let long = "edge-gateway".repeat(20);
        let mut folders = Folders::open(folder.path(), std::iter::empty()).unwrap();
        for client_id in ["robot", "gone", "", &long] {
            write(&folders.get(client_id));
        }
        Folders::open(folder.path(), ["robot", "new", &long].into_iter()).unwrap();
        assert!(folders.get(&long).path().join("000000000001.outbox").exists());
        let expected = ["726f626f74".to_owned(), names(&long).next().unwrap()];
        assert_eq!(names_in(folder.path()), HashSet::from(expected));
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("connections"), b"a file").unwrap();
        assert!(Folders::open(folder.path(), std::iter::empty()).is_err());
    }

    #[tokio::test]
    async fn the_folder_of_an_ended_session_is_deleted_once_before_the_next_session() {
        let root = tempfile::tempdir().unwrap();
        let mut folders = Folders::open(root.path(), std::iter::empty()).unwrap();
        let folder = folders.get("robot");
        let guard = folder.lock().await;
        write(&folder);
        folder.end_session();
        assert!(folder.path().exists(), "a connection uses it");
        drop(guard);
        drop(folder.lock().await);
        assert!(!folder.path().exists());
        write(&folder);
        drop(folders.get("robot").lock().await);
        assert!(folder.path().exists(), "the next session uses it");
    }
}
