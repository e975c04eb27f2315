//! The outbox on disk: its messages of QoS 1 and 2 and the state of the session, so that the next process continues where this one ended.
//!
//! The folder has a file `lock` and segments with ascending numbers. A segment is a sequence of records:
//!
//! ```text
//! u32  length of the header in octets      big-endian
//! u32  length of the payload in octets     0 except for a message
//! u32  CRC-32 of the two lengths
//! u32  CRC-32 of header and payload
//!      header: a `Record` in JSON
//!      payload of the message
//! ```
//!
//! A segment begins with the whole state: `Begin`, the messages that are not finished, `Ready`. Changes follow. So one segment is enough, the
//! latest with `Ready`. A process begins a segment of its own, and the next one when that one has become too large, or when it can write
//! again after a failure. Then the segments before are deleted. The folder has at most four times the size of the messages, and 32 MiB.
//!
//! Records reach the operating system before anything that depends on them is sent, so the end of the process loses nothing. They
//! reach the disk within about a second ([`SYNC_INTERVAL`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use viaduct_mqtt::QoS;

use crate::encoding::Encoding;
use crate::mqtt::hops;
use crate::mqtt::message::{Message, Target};
use crate::mqtt::native::Property;
use crate::mqtt::queue::Permit;
use crate::mqtt::receipt::Receipt;

/// Octets by which a segment may grow in any case.
const GROWTH_OCTETS: u64 = 16 << 20;
/// Size of the lengths and the checksums of a record.
const PREFIX_OCTETS: usize = 16;
/// Octets of the state that are written at a time.
const CHUNK_OCTETS: usize = 1 << 20;
/// Time between two transfers to the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two attempts to write after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const EXTENSION: &str = "outbox";

/// A record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record<'a> {
    /// The state of the session when a segment begins.
    Begin { client: Cow<'a, str>, has_session: bool, next_position: u64, received: Cow<'a, BTreeSet<u16>> },
    /// The state is complete.
    Ready,
    /// A message was accepted, or is in the outbox when a segment begins.
    Message(Header<'a>),
    /// A message is sent as the message of QoS 1 or 2 with that position in the session.
    Sent { number: u64, position: u64 },
    /// The broker has received a message of QoS 2.
    Released { number: u64 },
    /// A message is acknowledged or dropped.
    Finished { number: u64 },
    /// A session begins.
    Session,
    /// A message of QoS 2 was received.
    Received { id: u16 },
    /// The broker has released a message of QoS 2.
    Forgotten { id: u16 },
}

/// A message without its payload.
#[derive(Debug, Serialize, Deserialize)]
struct Header<'a> {
    number: u64,
    topic: Cow<'a, str>,
    qos: u8,
    retain: bool,
    is_text: bool,
    content_type: Cow<'a, str>,
    /// Hop metadata as in the user property of MQTT.
    hops: Cow<'a, str>,
    /// Kinds of the stamps, and the later stamps, as in the other user property; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marks: Option<Cow<'a, str>>,
    correlation: Cow<'a, [u8]>,
    #[serde(default, skip_serializing_if = "<[Property]>::is_empty")]
    properties: Cow<'a, [Property]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
}

/// Reason why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} is in use by another component or process", path = path.display())]
    InUse { path: PathBuf },
}

/// What an earlier process has left.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// Unfinished messages in the order of acceptance.
    pub(crate) messages: Vec<RestoredMessage>,
    /// Position of the next message of QoS 1 or 2 in the session.
    pub(crate) next_position: u64,
    /// Identifiers of the received messages of QoS 2 that are not released.
    pub(crate) received: BTreeSet<u16>,
    /// `true` if a session of the same client with the same broker was begun.
    pub(crate) has_session: bool,
    /// Octets from the first damaged record to the end of the segment. A last record that is not complete is not damaged: the end of the
    /// process or of the machine has divided it.
    pub(crate) damaged_octets: u64,
}

/// An unfinished message.
#[derive(Clone, Debug)]
pub(crate) struct RestoredMessage {
    pub(crate) message: Message,
    pub(crate) stored: Stored,
}

/// The place of a message in the journal and in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    /// Position in the session, if it was sent.
    pub(crate) position: Option<u64>,
    pub(crate) is_released: bool,
}

/// A segment that is written.
struct Segment {
    path: PathBuf,
    file: Arc<File>,
    octets: u64,
    /// Size at which the next segment begins.
    octets_max: u64,
}

pub(crate) struct Journal {
    folder: PathBuf,
    /// Client and broker, whose session the records describe.
    client: String,
    /// Locked until the journal is dropped.
    _lock: File,
    next_segment: u64,
    /// `None` at the start and after a failure.
    segment: Option<Segment>,
    /// Segments to be deleted when the next one is complete.
    old: Vec<PathBuf>,
    /// Records that are not written yet.
    pending: Vec<u8>,
    next_number: u64,
    has_session: bool,
    next_position: u64,
    received: BTreeSet<u16>,
    disk: mpsc::Sender<Transfer>,
    failed: Option<Instant>,
}

impl Journal {
    /// Opens a folder, which is created if it does not exist, and reads what an earlier process has left. The first [`Self::commit`] begins
    /// a segment.
    pub(crate) fn open(folder: &Path, client: &str, disk: &Disk) -> Result<(Self, Restored), JournalError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| JournalError::Io { path, error }
        };
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        let lock_path = folder.join("lock");
        let lock = File::create(&lock_path).map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(JournalError::InUse { path: folder.to_owned() }),
            Err(std::fs::TryLockError::Error(error)) => return Err(at(&lock_path)(error)),
        }
        let numbers = segment_numbers(folder).map_err(at(folder))?;
        let old: Vec<_> = numbers.iter().map(|number| segment_path(folder, *number)).collect();
        let mut latest = Replay::default();
        for path in old.iter().rev() {
            let replay = Replay::of(&std::fs::read(path).map_err(at(path))?, client);
            let is_ready = replay.is_ready;
            latest = Replay { damaged_octets: latest.damaged_octets + replay.damaged_octets, ..replay };
            if is_ready {
                break;
            }
        }
        let restored = latest.restored();
        let journal = Self {
            folder: folder.to_owned(),
            client: client.to_owned(),
            _lock: lock,
            next_segment: numbers.last().map_or(1, |last| last + 1),
            segment: None,
            old,
            pending: Vec::new(),
            next_number: restored.messages.last().map_or(0, |last| last.stored.number + 1),
            has_session: restored.has_session,
            next_position: restored.next_position,
            received: restored.received.clone(),
            disk: disk.sender(),
            failed: None,
        };
        Ok((journal, restored))
    }

    /// Records a message. Returns its number.
    pub(crate) fn message(&mut self, message: &Message) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        append_message(&mut self.pending, number, message);
        number
    }

    /// Records that a message is sent with a position of the session.
    pub(crate) fn sent(&mut self, number: u64, position: u64) {
        self.next_position = position + 1;
        self.append(&Record::Sent { number, position });
    }

    /// Records that the broker has received a message of QoS 2.
    pub(crate) fn released(&mut self, number: u64) {
        self.append(&Record::Released { number });
    }

    /// Records that a message is acknowledged or dropped.
    pub(crate) fn finished(&mut self, number: u64) {
        self.append(&Record::Finished { number });
    }

    /// Returns `true` if the records belong to a session.
    pub(crate) const fn has_session(&self) -> bool {
        self.has_session
    }

    /// Records that a session begins.
    pub(crate) fn session_begun(&mut self) {
        (self.has_session, self.next_position) = (true, 0);
        self.received.clear();
        self.append(&Record::Session);
    }

    /// Records that a message of QoS 2 was received.
    pub(crate) fn received(&mut self, id: u16) {
        self.received.insert(id);
        self.append(&Record::Received { id });
    }

    /// Records that the broker has released a message of QoS 2.
    pub(crate) fn forgotten(&mut self, id: u16) {
        if self.received.remove(&id) {
            self.append(&Record::Forgotten { id });
        }
    }

    fn append(&mut self, record: &Record<'_>) {
        append(&mut self.pending, record, &[]);
    }

    /// Deletes the folder of a journal that has nothing to continue. Another process or component does not use it.
    pub(crate) fn remove_empty(folder: &Path, client: &str, disk: &Disk) {
        let Ok((journal, restored)) = Self::open(folder, client, disk) else { return };
        if restored.messages.is_empty() && restored.received.is_empty() {
            // An empty folder does no harm.
            _ = std::fs::remove_dir_all(folder);
        }
        drop(journal);
    }

    /// Returns `true` if the records cannot be written at present, so that the end of the process may lose or repeat messages.
    pub(crate) const fn is_failing(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns `true` if [`Self::commit`] has something to do.
    pub(crate) const fn has_changes(&self) -> bool {
        !self.pending.is_empty() || self.segment.is_none()
    }

    /// Writes the records. `messages` are all messages of the journal, for a new segment. After a failure, a new segment is tried once per
    /// second.
    pub(crate) fn commit<'a, M: Iterator<Item = (&'a Message, Stored)>>(&mut self, messages: impl FnOnce() -> M) {
        let written = match &mut self.segment {
            Some(segment) if segment.octets < segment.octets_max => segment.write(&self.pending, &self.disk),
            _ if self.failed.is_some_and(|failed| failed.elapsed() < RETRY_INTERVAL) => Ok(()),
            _ => self.begin(messages()),
        };
        self.pending.clear();
        let folder = self.folder.display();
        match written {
            Ok(()) if self.segment.is_some() => {
                if self.failed.take().is_some() {
                    tracing::info!(%folder, "the outbox is written again");
                }
            }
            Ok(()) => {}
            Err(error) => {
                if self.failed.replace(Instant::now()).is_none() {
                    tracing::error!(%folder, %error, "the outbox cannot be written; a restart may lose or repeat messages");
                }
                // What it contains is not the state any more. It is deleted when a complete one exists.
                self.old.extend(self.segment.take().map(|segment| segment.path));
            }
        }
    }

    /// Begins a segment with the whole state.
    fn begin<'a>(&mut self, messages: impl Iterator<Item = (&'a Message, Stored)>) -> io::Result<()> {
        let path = segment_path(&self.folder, self.next_segment);
        self.next_segment += 1;
        let file = Arc::new(File::create_new(&path)?);
        let octets = self.write_state(&file, messages).inspect_err(|_| {
            // Without `Ready`, a reader ignores it anyway.
            let _ = std::fs::remove_file(&path);
        })?;
        let next = Segment { path, file: Arc::clone(&file), octets, octets_max: 2 * octets + GROWTH_OCTETS };
        self.old.extend(self.segment.replace(next).map(|segment| segment.path));
        // The thread ends after the journal.
        let _ = self.disk.send(Transfer { file, replaced: std::mem::take(&mut self.old) });
        Ok(())
    }

    /// Writes the whole state. Returns its size.
    fn write_state<'a>(
        &self,
        mut file: &File,
        messages: impl Iterator<Item = (&'a Message, Stored)>,
    ) -> io::Result<u64> {
        let (mut buffer, mut octets) = (Vec::new(), 0);
        let (has_session, next_position) = (self.has_session, self.next_position);
        let (client, received) = (self.client.as_str().into(), Cow::Borrowed(&self.received));
        append(&mut buffer, &Record::Begin { client, has_session, next_position, received }, &[]);
        for (message, Stored { number, position, is_released }) in messages {
            append_message(&mut buffer, number, message);
            if let Some(position) = position {
                append(&mut buffer, &Record::Sent { number, position }, &[]);
            }
            if is_released {
                append(&mut buffer, &Record::Released { number }, &[]);
            }
            if buffer.len() >= CHUNK_OCTETS {
                file.write_all(&buffer)?;
                octets += buffer.len() as u64;
                buffer.clear();
            }
        }
        append(&mut buffer, &Record::Ready, &[]);
        file.write_all(&buffer)?;
        Ok(octets + buffer.len() as u64)
    }
}

impl Segment {
    fn write(&mut self, records: &[u8], disk: &mpsc::Sender<Transfer>) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        (&*self.file).write_all(records)?;
        self.octets += records.len() as u64;
        // One transfer at a time: the thread has the second reference until it has transferred the file.
        if Arc::strong_count(&self.file) == 1 {
            let _ = disk.send(Transfer { file: Arc::clone(&self.file), replaced: Vec::new() });
        }
        Ok(())
    }
}

/// A segment to be transferred to the disk, and the segments that are then not needed any more.
struct Transfer {
    file: Arc<File>,
    replaced: Vec<PathBuf>,
}

/// The thread that transfers the segments of one or more journals to the disk. It starts with the first journal.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<OnceLock<mpsc::Sender<Transfer>>>);

impl Disk {
    fn sender(&self) -> mpsc::Sender<Transfer> {
        self.0.get_or_init(start_transfers).clone()
    }
}

/// Starts the thread that transfers segments to the disk. It ends when the senders are dropped.
fn start_transfers() -> mpsc::Sender<Transfer> {
    let (sender, transfers) = mpsc::channel::<Transfer>();
    std::thread::spawn(move || {
        while let Ok(first) = transfers.recv() {
            for Transfer { file, replaced } in std::iter::once(first).chain(transfers.try_iter()) {
                let own = file.try_clone();
                // What is written from here on needs a transfer of its own.
                drop(file);
                if let Err(error) = own.and_then(|file| file.sync_data()) {
                    tracing::warn!(%error, "a segment of the outbox cannot be transferred to the disk");
                    continue;
                }
                for path in replaced {
                    // The next journal of the folder may have deleted it.
                    if let Err(error) = std::fs::remove_file(&path)
                        && error.kind() != io::ErrorKind::NotFound
                    {
                        tracing::warn!(path = %path.display(), %error, "a segment of the outbox cannot be deleted");
                    }
                }
            }
            std::thread::sleep(SYNC_INTERVAL);
        }
    });
    sender
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.{EXTENSION}"))
}

/// Returns the numbers of the segments in a folder in ascending order.
fn segment_numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            numbers.extend(path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Appends a message to a buffer.
fn append_message(buffer: &mut Vec<u8>, number: u64, message: &Message) {
    let Target { topic, qos, retain, encoding, content_type } = &*message.target;
    let header = Header {
        number,
        topic: topic.into(),
        qos: *qos as u8,
        retain: *retain,
        is_text: *encoding == Encoding::Json,
        content_type: content_type.into(),
        hops: hops::write(&message.meta).into(),
        marks: Some(hops::write_marks(&message.meta, None).into()),
        correlation: message.correlation.as_ref().into(),
        properties: message.properties.as_slice().into(),
        key: message.key.as_deref().map(Cow::from),
    };
    append(buffer, &Record::Message(header), &message.payload);
}

/// Appends a record to a buffer.
fn append(buffer: &mut Vec<u8>, record: &Record<'_>, payload: &[u8]) {
    // A record consists of numbers, booleans and texts, which are always written.
    let header = serde_json::to_vec(record).unwrap_or_default();
    let lengths = [header.len() as u32, payload.len() as u32].map(u32::to_be_bytes).concat();
    buffer.extend_from_slice(&lengths);
    for sum in [sum_of(&[&lengths]), sum_of(&[&header, payload])] {
        buffer.extend_from_slice(&sum.to_be_bytes());
    }
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
}

fn sum_of(parts: &[&[u8]]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in parts {
        sum.update(part);
    }
    sum.finalize()
}

/// The first record of some octets.
enum Read<'a> {
    /// A record with its payload and the octets behind it.
    Record(Box<Record<'a>>, &'a [u8], &'a [u8]),
    /// The record is not complete, or there is none.
    End,
    Damaged,
}

fn read(octets: &[u8]) -> Read<'_> {
    let Some((prefix, rest)) = octets.split_first_chunk::<PREFIX_OCTETS>() else {
        return Read::End;
    };
    let (numbers, _) = prefix.as_chunks::<4>();
    let [header_octets, payload_octets, lengths_sum, sum] =
        [0, 1, 2, 3].map(|index| u32::from_be_bytes(numbers[index]));
    if sum_of(&[&prefix[..8]]) != lengths_sum {
        return Read::Damaged;
    }
    let divided = rest.split_at_checked(header_octets as usize);
    let divided = divided.and_then(|(header, rest)| Some((header, rest.split_at_checked(payload_octets as usize)?)));
    let Some((header, (payload, rest))) = divided else {
        return Read::End;
    };
    if sum_of(&[header, payload]) != sum {
        return Read::Damaged;
    }
    serde_json::from_slice(header).map_or(Read::Damaged, |record| Read::Record(Box::new(record), payload, rest))
}

/// The state that follows from the records of a segment.
#[derive(Default)]
struct Replay {
    messages: BTreeMap<u64, RestoredMessage>,
    is_own: bool,
    is_ready: bool,
    has_session: bool,
    next_position: u64,
    received: BTreeSet<u16>,
    damaged_octets: u64,
}

impl Replay {
    /// Reads a segment.
    fn of(mut octets: &[u8], client: &str) -> Self {
        let mut replay = Self::default();
        loop {
            match read(octets) {
                Read::Record(record, payload, rest) => {
                    replay.apply(*record, payload, client);
                    octets = rest;
                }
                Read::End => return replay,
                Read::Damaged => return Self { damaged_octets: octets.len() as u64, ..replay },
            }
        }
    }

    fn apply(&mut self, record: Record<'_>, payload: &[u8], client: &str) {
        match record {
            Record::Begin { client: of, has_session, next_position, received } => {
                (self.is_own, self.has_session, self.next_position) = (of == client, has_session, next_position);
                self.received = received.into_owned();
            }
            Record::Ready => self.is_ready = true,
            Record::Message(header) => {
                if let Some(message) = restored_message(&header, payload) {
                    self.messages.insert(header.number, message);
                }
            }
            Record::Sent { number, position } => {
                self.next_position = self.next_position.max(position + 1);
                if let Some(message) = self.messages.get_mut(&number) {
                    message.stored.position = Some(position);
                }
            }
            Record::Released { number } => {
                if let Some(message) = self.messages.get_mut(&number) {
                    message.stored.is_released = true;
                }
            }
            Record::Finished { number } => drop(self.messages.remove(&number)),
            Record::Session => {
                (self.has_session, self.next_position) = (true, 0);
                self.received.clear();
                self.messages.values_mut().for_each(RestoredMessage::forget_session);
            }
            Record::Received { id } => drop(self.received.insert(id)),
            Record::Forgotten { id } => drop(self.received.remove(&id)),
        }
    }

    fn restored(self) -> Restored {
        let Self { messages, damaged_octets, .. } = self;
        let mut messages: Vec<_> = messages.into_values().collect();
        if self.has_session && self.is_own && self.is_ready && damaged_octets == 0 {
            let (next_position, received) = (self.next_position, self.received);
            return Restored { messages, next_position, received, has_session: true, damaged_octets };
        }
        messages.iter_mut().for_each(RestoredMessage::forget_session);
        Restored { messages, damaged_octets, ..Restored::default() }
    }
}

impl RestoredMessage {
    const fn forget_session(&mut self) {
        (self.stored.position, self.stored.is_released) = (None, false);
    }
}

/// Returns the message of a record, or `None` if this version cannot have written it.
fn restored_message(header: &Header<'_>, payload: &[u8]) -> Option<RestoredMessage> {
    let encoding = if header.is_text { Encoding::Json } else { Encoding::Native };
    let target = Target {
        topic: header.topic.clone().into_owned(),
        qos: QoS::from(header.qos),
        retain: header.retain,
        encoding,
        content_type: header.content_type.clone().into_owned(),
    };
    let message = Message {
        target: Arc::new(target),
        payload: Bytes::copy_from_slice(payload),
        meta: hops::read(&header.hops, header.marks.as_deref(), None).ok()?.meta,
        correlation: Bytes::copy_from_slice(&header.correlation),
        properties: header.properties.clone().into_owned(),
        key: header.key.as_deref().map(Arc::from),
        permit: Permit::default(),
        receipt: Receipt::default(),
    };
    Some(RestoredMessage { message, stored: Stored { number: header.number, position: None, is_released: false } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_bus::Meta;
    use viaduct_units::Tai;

    const CAR: &str = "car at mqtt://edge:1883";

    fn message(octets: usize) -> Message {
        let meta = Meta::from_origin(Tai::from_nanos(5_000));
        Message { correlation: Bytes::from_static(&[0, 255]), meta, ..Message::example(QoS::ExactlyOnce, octets) }
    }

    /// Opens a folder and begins a segment, as an outbox does.
    fn open(folder: &Path, client: &str) -> (Journal, Restored) {
        let (mut journal, restored) = Journal::open(folder, client, &Disk::default()).unwrap();
        journal.commit(|| restored.messages.iter().map(|one| (&one.message, one.stored)));
        (journal, restored)
    }

    fn commit(journal: &mut Journal) {
        journal.commit(std::iter::empty);
    }

    /// Returns number, size, position and release of each message.
    fn summary(restored: &Restored) -> Vec<(u64, usize, Option<u64>, bool)> {
        let messages = restored.messages.iter().map(|one| (one.stored, one.message.payload.len()));
        messages.map(|(stored, octets)| (stored.number, octets, stored.position, stored.is_released)).collect()
    }

    #[test]
    fn the_next_process_continues_where_the_last_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, restored) = open(folder.path(), CAR);
        assert_eq!((summary(&restored), restored.has_session), (vec![], false));
        first.session_begun();
        for octets in 10..14 {
            first.message(&message(octets));
        }
        for number in 0..3 {
            first.sent(number, number);
        }
        first.released(1);
        first.finished(0);
        first.received(9);
        first.received(10);
        first.forgotten(9);
        commit(&mut first);
        first.message(&message(14));
        drop(first);
        let expected = [(1, 11, Some(1), true), (2, 12, Some(2), false), (3, 13, None, false)];
        // Without changes, the state of each next process is the same.
        for _ in 0..3 {
            let (_, restored) = open(folder.path(), CAR);
            assert_eq!(summary(&restored), expected);
            assert_eq!((restored.next_position, restored.has_session), (3, true));
            assert_eq!(restored.received, BTreeSet::from([10]));
            let one = &restored.messages[0].message;
            assert_eq!(one.correlation[..], [0, 255]);
            assert_eq!((one.meta.origin, &*one.target), (Tai::from_nanos(5_000), &*message(0).target));
        }
    }

    #[test]
    fn the_session_of_another_client_is_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        for client in [CAR, "truck at mqtt://edge:1883", CAR] {
            let (mut journal, restored) = open(folder.path(), client);
            assert!(!restored.has_session && restored.received.is_empty(), "{client}");
            assert!(summary(&restored).iter().all(|(_, _, position, is_released)| position.is_none() && !is_released));
            journal.session_begun();
            let number = journal.message(&message(1));
            journal.sent(number, 0);
            journal.received(7);
            commit(&mut journal);
        }
    }

    #[test]
    fn a_divided_record_ends_a_segment_and_a_damaged_one_ends_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, _) = open(folder.path(), CAR);
        first.session_begun();
        first.message(&message(100));
        commit(&mut first);
        let kept = first.segment.as_ref().unwrap().octets as usize;
        first.message(&message(200));
        commit(&mut first);
        drop(first);
        let octets = std::fs::read(segment_path(folder.path(), 1)).unwrap();
        let restored = |octets: &[u8]| Replay::of(octets, CAR).restored();
        for end in kept..octets.len() {
            let restored = restored(&octets[..end]);
            assert_eq!((restored.messages.len(), restored.has_session), (1, true), "{end} octets");
            assert_eq!(restored.damaged_octets, 0);
        }
        for place in kept..octets.len() {
            let mut damaged = octets.clone();
            damaged[place] ^= 1;
            let restored = restored(&damaged);
            assert_eq!((restored.messages.len(), restored.has_session), (1, false), "octet {place}");
            assert_eq!(restored.damaged_octets, (octets.len() - kept) as u64);
        }
        assert_eq!(restored(&octets).messages.len(), 2);
    }

    #[test]
    fn the_folder_does_not_grow_with_the_number_of_messages() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(folder.path(), CAR);
        let large = message(1 << 20);
        let oldest = Stored { number: journal.message(&large), position: Some(0), is_released: false };
        journal.sent(oldest.number, 0);
        for _ in 0..100 {
            let number = journal.message(&large);
            journal.commit(|| std::iter::once((&large, oldest)));
            journal.finished(number);
        }
        assert!(journal.segment.as_ref().unwrap().octets < 32 << 20);
        drop(journal);
        let (mut next, restored) = open(folder.path(), CAR);
        assert_eq!(restored.messages[0].stored, Stored { position: None, ..oldest });
        next.session_begun();
        commit(&mut next);
        // The thread deletes what was replaced.
        let deadline = Instant::now() + Duration::from_secs(20);
        while segment_numbers(folder.path()).unwrap().len() > 1 {
            assert!(Instant::now() < deadline, "{:?}", segment_numbers(folder.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_segment_without_its_whole_state_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, _) = open(folder.path(), CAR);
        first.message(&message(100));
        commit(&mut first);
        drop(first);
        let octets = std::fs::read(segment_path(folder.path(), 1)).unwrap();
        std::fs::write(segment_path(folder.path(), 2), &octets[..20]).unwrap();
        assert_eq!(summary(&open(folder.path(), CAR).1).len(), 1);
    }

    #[test]
    fn after_a_failure_the_whole_state_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(folder.path(), CAR);
        // A file that is open for reading only cannot be written.
        let segment = journal.segment.as_mut().unwrap();
        segment.file = Arc::new(File::open(&segment.path).unwrap());
        let one = message(100);
        let stored = Stored { number: journal.message(&one), position: None, is_released: false };
        journal.commit(|| std::iter::once((&one, stored)));
        assert!(journal.is_failing());
        journal.failed = Instant::now().checked_sub(RETRY_INTERVAL);
        journal.commit(|| std::iter::once((&one, stored)));
        assert!(!journal.is_failing());
        drop(journal);
        assert_eq!(summary(&open(folder.path(), CAR).1), [(0, 100, None, false)]);
    }

    #[test]
    fn a_folder_has_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let _first = open(folder.path(), CAR);
        let second = Journal::open(folder.path(), CAR, &Disk::default()).err().unwrap();
        let expected = format!("{} is in use by another component or process", folder.path().display());
        assert_eq!(second.to_string(), expected);
    }
}
