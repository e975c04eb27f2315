//! Records that outlive the process: a file to which they are appended, and which is written anew when it has grown.
//!
//! ```text
//! u32  length of the record in octets      little-endian
//! u32  CRC-32 of the record
//!      record
//! ```
//!
//! A record reaches the operating system with [`RecordLog::commit`], so the end of the process loses nothing that was committed. A
//! loss of power may lose the last seconds. A last record that is not complete is ignored.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::{Buf as _, Bytes};

/// Longest record in octets.
const RECORD_OCTETS_MAX: usize = 1 << 20;
/// Octets by which the file may grow in any case before it is written anew.
const GROWTH_OCTETS: u64 = 4 << 20;
/// Octets of records that wait while they cannot be written. Beyond it they are forgotten, and the file is written anew.
const PENDING_OCTETS_MAX: usize = 4 << 20;
/// Octets of length and checksum.
const PREFIX_OCTETS: usize = 8;

/// Reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordLogError {
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} is in use by another component or process", path = path.display())]
    InUse { path: PathBuf },
}

/// A file of records.
pub(crate) struct RecordLog {
    path: PathBuf,
    file: File,
    /// Held as long as the process uses the file.
    _lock: File,
    pending: Vec<u8>,
    octets: u64,
    /// Size of the file when it was written anew.
    begun: u64,
    /// `true` if records were forgotten: the file is useless until it is written anew.
    is_incomplete: bool,
}

/// The records of an earlier process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Records in the order in which they were appended.
    pub(crate) records: Vec<Bytes>,
    /// Octets from the first damaged record to the end; 0 if the last record was only not complete.
    pub(crate) damaged_octets: u64,
}

impl RecordLog {
    /// Opens the file `NAME.records` in a folder, which is created if it does not exist.
    pub(crate) fn open(folder: &Path, name: &str) -> Result<(Self, Recovered), RecordLogError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| RecordLogError::Io { path, error }
        };
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        let (path, lock_path) = (folder.join(format!("{name}.records")), folder.join(format!("{name}.lock")));
        let lock = File::create(&lock_path).map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(RecordLogError::InUse { path }),
            Err(std::fs::TryLockError::Error(error)) => return Err(at(&lock_path)(error)),
        }
        let failed = |error| at(&path)(error);
        let mut octets = Vec::new();
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path).map_err(failed)?;
        file.read_to_end(&mut octets).map_err(failed)?;
        let (recovered, valid) = parse(Bytes::from(octets));
        file.set_len(valid).map_err(failed)?;
        let log =
            Self { path, file, _lock: lock, pending: Vec::new(), octets: valid, begun: valid, is_incomplete: false };
        Ok((log, recovered))
    }

    /// Appends a record. It is written by the next [`Self::commit`].
    pub(crate) fn append(&mut self, record: &[u8]) {
        put(record, &mut self.pending);
    }

    /// Writes the appended records. If that fails, they are written by the next commit, or by [`Self::replace`] if there are too many.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(&self.pending) {
            self.limit_pending();
            // Without a part of a record, the next attempt begins at the right place.
            self.file.set_len(self.octets)?;
            return Err(error);
        }
        self.octets += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Forgets the appended records if there are too many. The file then lacks them until it is written anew.
    fn limit_pending(&mut self) {
        if self.pending.len() > PENDING_OCTETS_MAX {
            self.pending = Vec::new();
            self.is_incomplete = true;
        }
    }

    /// Returns `true` if the file must be written anew: it has grown much, or records were forgotten.
    pub(crate) const fn is_grown(&self) -> bool {
        self.is_incomplete || self.octets > GROWTH_OCTETS + 2 * self.begun
    }

    /// Writes the file anew with these records, which are the whole state. The earlier file is kept if that fails.
    pub(crate) fn replace<'a>(&mut self, records: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        self.write_anew(records).inspect_err(|_| self.limit_pending())
    }

    fn write_anew<'a>(&mut self, records: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        let partial = self.path.with_extension("partial");
        let mut octets = Vec::new();
        records.for_each(|record| put(record, &mut octets));
        let mut file = File::create(&partial)?;
        file.write_all(&octets)?;
        file.sync_data()?;
        std::fs::rename(&partial, &self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.pending.clear();
        self.is_incomplete = false;
        (self.octets, self.begun) = (octets.len() as u64, octets.len() as u64);
        Ok(())
    }
}

fn put(record: &[u8], octets: &mut Vec<u8>) {
    octets.extend_from_slice(&(record.len() as u32).to_le_bytes());
    octets.extend_from_slice(&crc32fast::hash(record).to_le_bytes());
    octets.extend_from_slice(record);
}

/// Returns the records of a file, and the number of its octets that are valid.
fn parse(mut octets: Bytes) -> (Recovered, u64) {
    let (all, mut recovered) = (octets.len(), Recovered::default());
    let mut valid = 0;
    while octets.len() >= PREFIX_OCTETS {
        let (length, checksum) = (octets.get_u32_le() as usize, octets.get_u32_le());
        if length <= RECORD_OCTETS_MAX && length > octets.len() {
            return (recovered, valid);
        }
        if length > RECORD_OCTETS_MAX || crc32fast::hash(&octets[..length]) != checksum {
            recovered.damaged_octets = all as u64 - valid;
            return (recovered, valid);
        }
        recovered.records.push(octets.split_to(length));
        valid += (PREFIX_OCTETS + length) as u64;
    }
    (recovered, valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recovered(records: &[&'static [u8]], damaged_octets: u64) -> Recovered {
        Recovered { records: records.iter().map(|record| Bytes::from_static(record)).collect(), damaged_octets }
    }

    #[test]
    fn records_outlive_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, nothing) = RecordLog::open(folder.path(), "t").unwrap();
        assert_eq!(nothing, Recovered::default());
        assert!(matches!(RecordLog::open(folder.path(), "t"), Err(RecordLogError::InUse { .. })));
        for record in [&b"one"[..], b"", b"three"] {
            log.append(record);
        }
        log.commit().unwrap();
        log.append(b"not committed");
        drop(log);
        let (mut log, found) = RecordLog::open(folder.path(), "t").unwrap();
        assert_eq!(found, recovered(&[b"one", b"", b"three"], 0));
        log.replace([&b"new"[..]].into_iter()).unwrap();
        log.append(b"next");
        log.commit().unwrap();
        drop(log);
        assert_eq!(RecordLog::open(folder.path(), "t").unwrap().1, recovered(&[b"new", b"next"], 0));
    }

    #[test]
    fn an_incomplete_or_damaged_end_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.records");
        let write = |octets: &[u8]| std::fs::write(&path, octets).unwrap();
        let mut good = Vec::new();
        put(b"good", &mut good);
        for (end, damaged) in [
            (&b"\x04\0\0\0"[..], 0),
            (b"\x04\0\0\0\0\0\0\0abc", 0),
            (b"\x04\0\0\0\0\0\0\0abcd", 12),
            (b"\xFF\xFF\xFF\xFF\0\0\0\0", 8),
        ] {
            write(&[&good[..], end].concat());
            let (mut log, found) = RecordLog::open(folder.path(), "t").unwrap();
            assert_eq!(found, recovered(&[b"good"], damaged), "{end:?}");
            log.append(b"next");
            log.commit().unwrap();
            drop(log);
            assert_eq!(RecordLog::open(folder.path(), "t").unwrap().1, recovered(&[b"good", b"next"], 0));
        }
    }

    #[test]
    fn records_that_cannot_be_written_are_limited_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = RecordLog::open(folder.path(), "t").unwrap();
        // No file can be written: this one is open for reading, and a folder has the name of the new one.
        log.file = File::open(&log.path).unwrap();
        let partial = log.path.with_extension("partial");
        std::fs::create_dir(&partial).unwrap();
        let record = vec![7; 1 << 20];
        for _ in 0..20 {
            log.append(&record);
            let written = if log.is_grown() { log.replace([&b"state"[..]].into_iter()) } else { log.commit() };
            assert!(written.is_err());
            assert!(log.pending.len() <= PENDING_OCTETS_MAX, "{} octets wait", log.pending.len());
        }
        std::fs::remove_dir(&partial).unwrap();
        assert!(log.is_grown(), "the records alone are not the state");
        log.replace([&b"state"[..]].into_iter()).unwrap();
        log.append(b"next");
        log.commit().unwrap();
        drop(log);
        assert_eq!(RecordLog::open(folder.path(), "t").unwrap().1, recovered(&[b"state", b"next"], 0));
    }

    #[test]
    fn a_file_that_has_grown_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = RecordLog::open(folder.path(), "t").unwrap();
        for _ in 0..4 {
            assert!(!log.is_grown());
            log.append(&vec![7; 1 << 20]);
            log.commit().unwrap();
        }
        assert!(log.is_grown());
        log.replace([].into_iter()).unwrap();
        assert!(!log.is_grown());
    }
}
