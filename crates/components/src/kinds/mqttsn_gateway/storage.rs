//! The sessions on disk.

use std::path::Path;

use bytes::Bytes;
use viaduct_mqttsn::gateway::{Gateway, Token};

use super::runner::Broker;
use crate::record_log::{RecordLog, RecordLogError, Recovered};

/// Acknowledgements that wait until those of dropped messages are removed, at least.
const WAITING_CHECKED_MIN: usize = 1 << 16;

/// Records of sessions, or nothing if there is no folder.
#[derive(Default)]
pub(super) struct Storage {
    log: Option<RecordLog>,
    /// Acknowledgements that wait until their records are written.
    waiting: Vec<Token>,
    /// Number of them at the last removal of those of dropped messages.
    checked: usize,
    /// `true` after a failure that was logged.
    is_failing: bool,
}

impl Storage {
    /// Opens the folder. Returns the records of an earlier process.
    pub(super) fn open(folder: &Path) -> Result<(Self, Vec<Bytes>), RecordLogError> {
        let (log, Recovered { records, damaged_octets }) = RecordLog::open(folder, "sessions")?;
        if damaged_octets > 0 {
            let folder = folder.display();
            tracing::error!(%folder, octets = damaged_octets, "a part of the sessions is damaged and is ignored");
        }
        Ok((Self { log: Some(log), ..Self::default() }, records))
    }

    /// Appends a record. It is written by the next [`Self::commit`].
    pub(super) fn append(&mut self, record: &[u8], token: Option<Token>) {
        if let Some(log) = &mut self.log {
            log.append(record);
        }
        self.waiting.extend(token);
    }

    /// Writes the records, and then lets the gateway acknowledge what depends on them. Without a folder, it acknowledges at once.
    /// Returns `false` if the records cannot be written.
    pub(super) fn commit(&mut self, gateway: &mut Gateway, broker: &mut Broker) -> bool {
        for record in broker.records() {
            self.append(&record, None);
        }
        let written = self.log.as_mut().map_or(Ok(()), |log| {
            if log.is_grown() {
                let snapshot = [gateway.snapshot(), broker.snapshot()].concat();
                return log.replace(snapshot.iter().map(|record| &record[..]));
            }
            log.commit()
        });
        match written {
            Ok(()) => {
                self.is_failing = false;
                self.waiting.drain(..).for_each(|token| gateway.persisted(token));
                self.checked = 0;
                true
            }
            Err(error) => {
                self.limit_waiting(gateway);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(%error, "cannot store the sessions; messages that must be stored are not acknowledged");
                }
                false
            }
        }
    }

    /// Removes the acknowledgements of dropped messages if their number has doubled, so that they are limited while nothing can be written.
    fn limit_waiting(&mut self, gateway: &Gateway) {
        if self.waiting.len() > WAITING_CHECKED_MIN.max(2 * self.checked) {
            self.waiting.retain(|token| gateway.has_message(*token));
            self.checked = self.waiting.len();
        }
    }
}
