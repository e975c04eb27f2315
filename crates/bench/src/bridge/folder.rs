//! A folder for the files of a setup.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::BenchError;

/// A folder that only this user can read. It is removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn create() -> Result<Self, BenchError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("viaduct-bench-bridge-{}-{number}", std::process::id()));
        // A folder of an earlier process with the same number.
        let _ = fs::remove_dir_all(&path);
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(BenchError::system("cannot create a folder for the files of the bench"))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What remains is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
