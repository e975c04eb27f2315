//! Entry point for the fuzz target: the history of a gateway on disk.

use bytes::Bytes;

use super::history::{self, History};

/// Reads records as those that an earlier process has left, and writes the history anew.
#[must_use]
pub fn history(records: &[Vec<u8>]) -> Restored {
    let mut records: Vec<Bytes> = records.iter().map(|record| Bytes::copy_from_slice(record)).collect();
    let history = History::restore(Some(&mut records));
    Restored { snapshot: octets(&history.snapshot()), other: octets(&records) }
}

/// What a gateway has read.
#[derive(Debug, PartialEq, Eq)]
pub struct Restored {
    /// Records of the history that was read.
    pub snapshot: Vec<Vec<u8>>,
    /// Records that are not of the history.
    pub other: Vec<Vec<u8>>,
}

/// Returns records of two messages of one connection and one of another.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    octets(&history::examples())
}

fn octets(records: &[Bytes]) -> Vec<Vec<u8>> {
    records.iter().map(|record| record.to_vec()).collect()
}
