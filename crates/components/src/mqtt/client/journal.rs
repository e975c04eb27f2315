//! The outbox on disk: its messages of QoS 1 and 2 and the state of the session, so that the next process continues where this one ended.
//!
//! The folder has segments with ascending numbers and a file `lock`. A segment is a sequence of records:
//!
//! ```text
//! u32  length of the header in octets      big-endian
//! u32  length of the payload in octets     0 except for a message
//! u32  CRC-32 of header and payload
//!      header: a `Record` in JSON
//!      payload of the message
//! ```
//!
//! A process appends only to segments that it has begun itself. A segment ends at the first record that is not complete. The oldest
//! segment is deleted when none of its messages is needed any more and a newer one has begun, which repeats the state of the session.
//!
//! Records reach the operating system before anything that depends on them is sent, so the end of the process loses nothing. They
//! reach the disk within about a second ([`SYNC_INTERVAL`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use viaduct_mqtt::QoS;

use crate::encoding::Encoding;
use crate::mqtt::hops;
use crate::mqtt::message::{Message, Target};

/// Size at which a segment ends.
const SEGMENT_OCTETS: u64 = 16 << 20;
/// Size of the lengths and the checksum of a record.
const PREFIX_OCTETS: usize = 12;
/// Longest header of a record; topics, content types and correlation data have at most 65535 octets each.
const HEADER_OCTETS_MAX: usize = 1 << 20;
/// Records that are kept for the next attempt when the disk is full.
const PENDING_OCTETS_MAX: usize = 4 << 20;
/// Time between two transfers to the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
const EXTENSION: &str = "outbox";

/// A record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record<'a> {
    /// The state of the session when a segment begins.
    Begin { client: Cow<'a, str>, has_session: bool, next_position: u64, received: Cow<'a, BTreeSet<u16>> },
    /// A message was accepted.
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
    correlation: Cow<'a, [u8]>,
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
    /// Octets from the first damaged record of a segment to its end. A last record that is not complete is not damaged: the end of the
    /// process or of the machine has divided it.
    pub(crate) damaged_octets: u64,
}

/// An unfinished message.
#[derive(Clone, Debug)]
pub(crate) struct RestoredMessage {
    pub(crate) number: u64,
    pub(crate) message: Message,
    /// Position in the session, if it was sent.
    pub(crate) position: Option<u64>,
    pub(crate) is_released: bool,
}

struct Segment {
    path: PathBuf,
    /// Number of the first message that can be in this segment.
    first: u64,
    /// Number of its messages that are not finished.
    unfinished: usize,
}

pub(crate) struct Journal {
    folder: PathBuf,
    /// Client and broker, whose session the records describe.
    client: String,
    /// Locked until the journal is dropped.
    _lock: File,
    /// Oldest first. The last one is written.
    segments: VecDeque<Segment>,
    next_segment: u64,
    file: Arc<Output>,
    /// Size of the last segment as far as it is complete.
    octets: u64,
    /// Records that are not written yet.
    pending: Vec<u8>,
    next_number: u64,
    has_session: bool,
    next_position: u64,
    received: BTreeSet<u16>,
    /// Segments to be transferred to the disk.
    syncs: mpsc::Sender<Arc<Output>>,
    is_failing: bool,
}

impl Journal {
    /// Opens a folder, which is created if it does not exist, and reads what an earlier process has left.
    pub(crate) fn open(folder: &Path, client: &str) -> Result<(Self, Restored), JournalError> {
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
        let mut replay = Replay::default();
        let mut segments = VecDeque::new();
        let numbers = segment_numbers(folder).map_err(at(folder))?;
        for number in &numbers {
            let path = segment_path(folder, *number);
            let first = replay.next_number;
            replay.read(&std::fs::read(&path).map_err(at(&path))?, client);
            segments.push_back(Segment { path, first, unfinished: 0 });
        }
        for number in replay.messages.keys() {
            count_message(&mut segments, *number, |unfinished| *unfinished += 1);
        }
        let next_segment = numbers.last().map_or(1, |last| last + 1);
        let path = segment_path(folder, next_segment);
        let file = Arc::new(Output::create(&path).map_err(at(&path))?);
        segments.push_back(Segment { path, first: replay.next_number, unfinished: 0 });
        let mut journal = Self {
            folder: folder.to_owned(),
            client: client.to_owned(),
            _lock: lock,
            segments,
            next_segment: next_segment + 1,
            file,
            octets: 0,
            pending: Vec::new(),
            next_number: replay.next_number,
            has_session: replay.has_session,
            next_position: replay.next_position,
            received: replay.received.clone(),
            syncs: start_syncs(),
            is_failing: false,
        };
        journal.begin().map_err(at(folder))?;
        Ok((journal, replay.restored()))
    }

    /// Records a message. Returns its number.
    pub(crate) fn message(&mut self, message: &Message) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let Target { topic, qos, retain, encoding, content_type } = &*message.target;
        let header = Header {
            number,
            topic: topic.into(),
            qos: *qos as u8,
            retain: *retain,
            is_text: *encoding == Encoding::Json,
            content_type: content_type.into(),
            hops: hops::write(&message.meta).into(),
            correlation: message.correlation.as_ref().into(),
        };
        self.append(&Record::Message(header), &message.payload);
        if let Some(segment) = self.segments.back_mut() {
            segment.unfinished += 1;
        }
        number
    }

    /// Records that a message is sent with a position of the session.
    pub(crate) fn sent(&mut self, number: u64, position: u64) {
        self.next_position = position + 1;
        self.append(&Record::Sent { number, position }, &[]);
    }

    /// Records that the broker has received a message of QoS 2.
    pub(crate) fn released(&mut self, number: u64) {
        self.append(&Record::Released { number }, &[]);
    }

    /// Records that a message is acknowledged or dropped.
    pub(crate) fn finished(&mut self, number: u64) {
        self.append(&Record::Finished { number }, &[]);
        count_message(&mut self.segments, number, |unfinished| *unfinished -= 1);
    }

    /// Records that a session begins.
    pub(crate) fn session_begun(&mut self) {
        (self.has_session, self.next_position) = (true, 0);
        self.received.clear();
        self.append(&Record::Session, &[]);
    }

    /// Records that a message of QoS 2 was received.
    pub(crate) fn received(&mut self, id: u16) {
        self.received.insert(id);
        self.append(&Record::Received { id }, &[]);
    }

    /// Records that the broker has released a message of QoS 2.
    pub(crate) fn forgotten(&mut self, id: u16) {
        if self.received.remove(&id) {
            self.append(&Record::Forgotten { id }, &[]);
        }
    }

    fn append(&mut self, record: &Record<'_>, payload: &[u8]) {
        append(&mut self.pending, record, payload);
    }

    /// Writes the state of the session to a new segment, and deletes the segments that are not needed any more.
    fn begin(&mut self) -> io::Result<()> {
        let received = Cow::Borrowed(&self.received);
        let (has_session, next_position) = (self.has_session, self.next_position);
        let record = Record::Begin { client: (&self.client).into(), has_session, next_position, received };
        append(&mut self.pending, &record, &[]);
        self.write()?;
        while self.segments.len() > 1
            && let Some(oldest) = self.segments.pop_front_if(|segment| segment.unfinished == 0)
        {
            std::fs::remove_file(&oldest.path)?;
        }
        Ok(())
    }

    /// Writes the records. After a failure, they are kept for the next attempt as far as [`PENDING_OCTETS_MAX`] allows.
    pub(crate) fn commit(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if let Err(error) = self.write().and_then(|()| self.rotate()) {
            if !std::mem::replace(&mut self.is_failing, true) {
                let folder = self.folder.display();
                tracing::error!(%folder, %error, "the outbox cannot be written; a restart may lose or repeat messages");
            }
            if self.pending.len() > PENDING_OCTETS_MAX {
                self.pending.clear();
            }
        } else if std::mem::take(&mut self.is_failing) {
            tracing::info!(folder = %self.folder.display(), "the outbox is written again");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut file = &self.file.file;
        if let Err(error) = file.write_all(&self.pending) {
            // A divided record would end the segment for a reader.
            file.set_len(self.octets)?;
            file.seek(SeekFrom::Start(self.octets))?;
            return Err(error);
        }
        self.octets += self.pending.len() as u64;
        self.pending.clear();
        if !self.file.is_changed.swap(true, Ordering::SeqCst) {
            // The thread ends after the journal.
            let _ = self.syncs.send(Arc::clone(&self.file));
        }
        Ok(())
    }

    /// Begins a new segment if the last one is full.
    fn rotate(&mut self) -> io::Result<()> {
        if self.octets < SEGMENT_OCTETS {
            return Ok(());
        }
        let path = segment_path(&self.folder, self.next_segment);
        self.file = Arc::new(Output::create(&path)?);
        self.segments.push_back(Segment { path, first: self.next_number, unfinished: 0 });
        self.next_segment += 1;
        self.octets = 0;
        self.begin()
    }
}

/// A segment that is written.
struct Output {
    file: File,
    /// `true` if it was written since the last transfer to the disk.
    is_changed: AtomicBool,
}

impl Output {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)?, is_changed: AtomicBool::new(false) })
    }
}

/// Starts the thread that transfers changed segments to the disk. It ends when the sender is dropped.
fn start_syncs() -> mpsc::Sender<Arc<Output>> {
    let (sender, changed) = mpsc::channel::<Arc<Output>>();
    std::thread::spawn(move || {
        for output in changed {
            output.is_changed.store(false, Ordering::SeqCst);
            if let Err(error) = output.file.sync_data() {
                tracing::warn!(%error, "a segment of the outbox cannot be transferred to the disk");
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

/// Changes the count of unfinished messages of the segment that has a message.
fn count_message(segments: &mut VecDeque<Segment>, number: u64, change: impl Fn(&mut usize)) {
    let after = segments.partition_point(|segment| segment.first <= number);
    if let Some(segment) = after.checked_sub(1).and_then(|index| segments.get_mut(index)) {
        change(&mut segment.unfinished);
    }
}

/// Appends a record to a buffer.
fn append(buffer: &mut Vec<u8>, record: &Record<'_>, payload: &[u8]) {
    // A record consists of numbers, booleans and texts, which are always written.
    let header = serde_json::to_vec(record).unwrap_or_default();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header);
    sum.update(payload);
    for number in [header.len() as u32, payload.len() as u32, sum.finalize()] {
        buffer.extend_from_slice(&number.to_be_bytes());
    }
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
}

/// The first record of some octets.
enum Read<'a> {
    Record(Record<'a>, &'a [u8], &'a [u8]),
    /// The record is not complete, or there is none.
    End,
    Damaged,
}

/// Reads a record. Returns it with its payload and the octets behind it.
fn read(octets: &[u8]) -> Read<'_> {
    let Some((prefix, rest)) = octets.split_first_chunk::<PREFIX_OCTETS>() else {
        return Read::End;
    };
    let (numbers, _) = prefix.as_chunks::<4>();
    let [header_octets, payload_octets, expected] = [0, 1, 2].map(|index| u32::from_be_bytes(numbers[index]));
    if header_octets as usize > HEADER_OCTETS_MAX {
        return Read::Damaged;
    }
    let Some((header, rest)) = rest.split_at_checked(header_octets as usize) else {
        return Read::End;
    };
    let Some((payload, rest)) = rest.split_at_checked(payload_octets as usize) else {
        return Read::End;
    };
    let mut sum = crc32fast::Hasher::new();
    sum.update(header);
    sum.update(payload);
    if sum.finalize() != expected {
        return Read::Damaged;
    }
    serde_json::from_slice(header).map_or(Read::Damaged, |record| Read::Record(record, payload, rest))
}

/// The state that follows from the records read so far.
#[derive(Default)]
struct Replay {
    messages: BTreeMap<u64, RestoredMessage>,
    next_number: u64,
    has_session: bool,
    next_position: u64,
    received: BTreeSet<u16>,
    damaged_octets: u64,
}

impl Replay {
    /// Applies the records of a segment.
    fn read(&mut self, mut octets: &[u8], client: &str) {
        loop {
            match read(octets) {
                Read::Record(record, payload, rest) => {
                    self.apply(record, payload, client);
                    octets = rest;
                }
                Read::End => return,
                Read::Damaged => {
                    self.damaged_octets += octets.len() as u64;
                    return;
                }
            }
        }
    }

    fn apply(&mut self, record: Record<'_>, payload: &[u8], client: &str) {
        match record {
            Record::Begin { client: of, has_session, next_position, received } => {
                // The position is that of the records before, unless they are damaged or of another client.
                self.has_session = has_session && of == client;
                self.next_position = next_position;
                self.received = received.into_owned();
            }
            Record::Message(header) => {
                self.next_number = self.next_number.max(header.number + 1);
                if let Some(message) = restored_message(&header, payload) {
                    self.messages.insert(header.number, message);
                }
            }
            Record::Sent { number, position } => {
                self.next_position = position + 1;
                if let Some(message) = self.messages.get_mut(&number) {
                    message.position = Some(position);
                }
            }
            Record::Released { number } => {
                if let Some(message) = self.messages.get_mut(&number) {
                    message.is_released = true;
                }
            }
            Record::Finished { number } => drop(self.messages.remove(&number)),
            Record::Session => {
                (self.has_session, self.next_position) = (true, 0);
                self.received.clear();
                for message in self.messages.values_mut() {
                    (message.position, message.is_released) = (None, false);
                }
            }
            Record::Received { id } => drop(self.received.insert(id)),
            Record::Forgotten { id } => drop(self.received.remove(&id)),
        }
    }

    fn restored(self) -> Restored {
        let Self { messages, has_session, damaged_octets, .. } = self;
        let messages = messages.into_values();
        if has_session && damaged_octets == 0 {
            let (next_position, received) = (self.next_position, self.received);
            return Restored { messages: messages.collect(), next_position, received, has_session, damaged_octets };
        }
        let waiting = messages.map(|message| RestoredMessage { position: None, is_released: false, ..message });
        Restored { messages: waiting.collect(), damaged_octets, ..Restored::default() }
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
        meta: hops::parse(&header.hops).ok()?,
        correlation: Bytes::copy_from_slice(&header.correlation),
    };
    Some(RestoredMessage { number: header.number, message, position: None, is_released: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_bus::Meta;
    use viaduct_units::Tai;

    fn journal(folder: &Path) -> (Journal, Restored) {
        Journal::open(folder, "car at mqtt://edge:1883").unwrap()
    }

    fn message(octets: usize) -> Message {
        let meta = Meta::from_origin(Tai::from_nanos(5_000));
        Message { correlation: Bytes::from_static(&[0, 255]), meta, ..Message::example(QoS::ExactlyOnce, octets) }
    }

    /// Returns number, size, position and release of each message.
    fn summary(restored: &Restored) -> Vec<(u64, usize, Option<u64>, bool)> {
        let of = |one: &RestoredMessage| (one.number, one.message.payload.len(), one.position, one.is_released);
        restored.messages.iter().map(of).collect()
    }

    #[test]
    fn the_next_process_continues_where_the_last_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, restored) = journal(folder.path());
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
        first.commit();
        first.message(&message(14));
        drop(first);
        let expected = [(1, 11, Some(1), true), (2, 12, Some(2), false), (3, 13, None, false)];
        let (second, restored) = journal(folder.path());
        assert_eq!(summary(&restored), expected);
        assert_eq!((restored.next_position, restored.has_session), (3, true));
        assert_eq!(restored.received, BTreeSet::from([10]));
        let one = &restored.messages[0];
        assert_eq!(one.message.correlation[..], [0, 255]);
        assert_eq!((one.message.meta.origin, &*one.message.target), (Tai::from_nanos(5_000), &*message(0).target));
        // Without changes, the state is the same again. Another client has no session.
        drop(second);
        assert_eq!(summary(&journal(folder.path()).1), expected);
        let (_, restored) = Journal::open(folder.path(), "truck at mqtt://edge:1883").unwrap();
        assert_eq!(summary(&restored), expected.map(|(number, octets, ..)| (number, octets, None, false)));
        assert!(!restored.has_session && restored.received.is_empty());
    }

    #[test]
    fn a_divided_record_ends_a_segment_and_a_damaged_one_ends_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, _) = journal(folder.path());
        first.session_begun();
        first.message(&message(100));
        first.commit();
        first.message(&message(200));
        first.commit();
        drop(first);
        let path = segment_path(folder.path(), 1);
        let octets = std::fs::read(&path).unwrap();
        for end in octets.len() - 150..octets.len() {
            std::fs::write(&path, &octets[..end]).unwrap();
            let (_, restored) = journal(folder.path());
            assert_eq!((summary(&restored).len(), restored.damaged_octets), (1, 0), "{end} octets");
            assert!(restored.has_session);
        }
        let mut damaged = octets.clone();
        *damaged.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let (_, restored) = journal(folder.path());
        assert_eq!((summary(&restored).len(), restored.has_session), (1, false));
        assert!(restored.damaged_octets > 200);
    }

    #[test]
    fn segments_without_unfinished_messages_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = journal(folder.path());
        let large = message(1 << 20);
        let kept = journal.message(&large);
        let sizes = |journal: &Journal| (journal.segments.len(), segment_numbers(&journal.folder).unwrap().len());
        for _ in 0..40 {
            let number = journal.message(&large);
            journal.commit();
            journal.finished(number);
        }
        assert_eq!(sizes(&journal), (3, 3));
        journal.finished(kept);
        for _ in 0..20 {
            let number = journal.message(&large);
            journal.commit();
            journal.finished(number);
        }
        // The last message of the segment before was finished when the present one had begun.
        assert_eq!(sizes(&journal), (2, 2));
    }

    #[test]
    fn a_folder_has_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let _first = journal(folder.path());
        let second = Journal::open(folder.path(), "car").err().unwrap();
        assert_eq!(
            second.to_string(),
            format!("{} is in use by another component or process", folder.path().display())
        );
    }
}
