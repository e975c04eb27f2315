//! Writes frames to a capture file: pcap with nanoseconds, link type Ethernet.
//!
//! The caller copies a frame into a buffer; a separate thread writes full buffers to the file. If the disk is slow or
//! full, the file loses frames; the station is neither delayed nor loses frames.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use viaduct_bus::Counter;
use viaduct_units::Tai;

/// Size in bytes at which collected records are handed to the thread.
const CHUNK_OCTETS: usize = 64 << 10;

/// Largest number of chunks that wait for the thread.
const CHUNKS_MAX: usize = 16;

/// Length of the record header in bytes: seconds, nanoseconds, length in the file, length on the wire.
const RECORD_HEADER_OCTETS: usize = 16;

/// Largest length of a frame in the file, in octets; a longer frame is cut.
const SNAPSHOT_OCTETS: u32 = 65_535;

/// File header: nanoseconds, version 2.4, no offset from UTC, no accuracy, snapshot length, Ethernet.
const HEADER: [u32; 6] = [0xA1B2_3C4D, 0x0004_0002, 0, 0, SNAPSHOT_OCTETS, 1];

/// Counters of a writer. After it is closed, frames given = written + full + behind + failed.
#[derive(Clone, Debug)]
pub struct CaptureCounts {
    /// Frames written to the file.
    pub written: Counter,
    /// Frames beyond the size limit of the file.
    pub full: Counter,
    /// Frames that arrived while the queue to the disk was full.
    pub behind: Counter,
    /// Frames lost by a write error.
    pub failed: Counter,
}

/// A capture file that is being written. The file is complete when the writer is dropped.
pub struct CaptureWriter {
    /// Records that were not handed to the thread yet.
    chunk: Chunk,
    /// Size of the file in bytes, with all accepted records, and its limit.
    octets: u64,
    max_octets: u64,
    /// Queue to the thread; `None` while the writer is dropped.
    chunks: Option<SyncSender<Chunk>>,
    thread: Option<JoinHandle<()>>,
    counts: CaptureCounts,
}

/// Consecutive records and their number.
#[derive(Default)]
struct Chunk {
    octets: Vec<u8>,
    frames: u64,
}

impl CaptureWriter {
    /// Creates the file, or truncates an existing one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or the thread cannot be started.
    pub fn create(path: &Path, max_octets: u64, counts: CaptureCounts) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let header: Vec<u8> = HEADER.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all(&header)?;
        let (chunks, waiting) = sync_channel(CHUNKS_MAX);
        let writing = Writing { path: path.to_owned(), file, counts: counts.clone(), failed: false };
        let thread = std::thread::Builder::new().name("capture".to_owned()).spawn(move || writing.run(&waiting))?;
        let octets = header.len() as u64;
        Ok(Self { chunk: Chunk::default(), octets, max_octets, chunks: Some(chunks), thread: Some(thread), counts })
    }

    /// Writes a frame that was received or sent at `time`.
    pub fn write(&mut self, time: Tai, frame: &[u8]) {
        let captured = frame.get(..SNAPSHOT_OCTETS as usize).unwrap_or(frame);
        let record = (RECORD_HEADER_OCTETS + captured.len()) as u64;
        if self.octets + record > self.max_octets {
            self.counts.full.increment();
            return;
        }
        self.octets += record;
        self.chunk.push(time, captured, frame.len());
        if self.chunk.octets.len() >= CHUNK_OCTETS {
            self.flush();
        }
    }

    /// Hands the collected records to the thread. Call it periodically, so that the file of a quiet channel is up to date.
    pub fn flush(&mut self) {
        if self.chunk.frames == 0 {
            return;
        }
        let chunk = std::mem::take(&mut self.chunk);
        let (frames, octets) = (chunk.frames, chunk.octets.len() as u64);
        let taken = self.chunks.as_ref().is_some_and(|chunks| chunks.try_send(chunk).is_ok());
        if !taken {
            self.octets -= octets;
            self.counts.behind.add(frames);
        }
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        self.flush();
        self.chunks = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by its own hook.
            let _ = thread.join();
        }
    }
}

impl Chunk {
    fn push(&mut self, time: Tai, captured: &[u8], octets: usize) {
        if self.octets.capacity() == 0 {
            self.octets.reserve(CHUNK_OCTETS + RECORD_HEADER_OCTETS + captured.len());
        }
        for word in record_header(time, captured.len(), octets) {
            self.octets.extend_from_slice(&word.to_le_bytes());
        }
        self.octets.extend_from_slice(captured);
        self.frames += 1;
    }
}

/// Returns the words of a record header. Seconds have 32 bits, up to the year 2106; a time outside is clamped.
fn record_header(time: Tai, captured: usize, octets: usize) -> [u32; 4] {
    let nanos = u64::try_from(time.unix_nanos()).unwrap_or(0);
    let clipped = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    [clipped(nanos / 1_000_000_000), clipped(nanos % 1_000_000_000), clipped(captured as u64), clipped(octets as u64)]
}

/// The part of a writer that runs in its thread.
struct Writing {
    path: PathBuf,
    file: File,
    counts: CaptureCounts,
    /// `true` after an error. Nothing more is written then: records behind half a record cannot be read.
    failed: bool,
}

impl Writing {
    fn run(mut self, waiting: &Receiver<Chunk>) {
        for chunk in waiting {
            self.write(&chunk);
            let counter = if self.failed { &self.counts.failed } else { &self.counts.written };
            counter.add(chunk.frames);
        }
    }

    fn write(&mut self, chunk: &Chunk) {
        if self.failed {
            return;
        }
        if let Err(error) = self.file.write_all(&chunk.octets) {
            tracing::error!(file = %self.path.display(), %error, "capture cannot be written any further");
            self.failed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use viaduct_bus::Bus;

    use super::*;
    use crate::capture::{Capture, CapturedFrame};

    fn counts(bus: &Bus) -> CaptureCounts {
        let counter = |name: &str| bus.counter("test", name, None);
        CaptureCounts {
            written: counter("written"),
            full: counter("full"),
            behind: counter("behind"),
            failed: counter("failed"),
        }
    }

    fn count(bus: &Bus, name: &str) -> u64 {
        bus.snapshot().counters.iter().filter(|row| row.name == name).map(|row| row.value).sum()
    }

    fn frame(number: i64) -> CapturedFrame {
        let octets =
            Bytes::from(vec![u8::try_from(number % 251).unwrap(); 60 + usize::try_from(number % 900).unwrap()]);
        let time = Tai::from_unix_nanos(1_726_061_434_000_000_001 + number * 1_234_567);
        CapturedFrame { number: number.unsigned_abs() + 1, time, octets: Ok(octets) }
    }

    fn write_all(path: &Path, max_octets: u64, frames: &[CapturedFrame], bus: &Bus) {
        let mut writer = CaptureWriter::create(path, max_octets, counts(bus)).unwrap();
        for frame in frames {
            writer.write(frame.time, frame.octets.as_ref().unwrap());
        }
    }

    #[test]
    fn written_frames_are_read_with_the_same_nanoseconds() {
        let (bus, file) = (Bus::new("test"), tempfile::NamedTempFile::new().unwrap());
        let frames: Vec<CapturedFrame> = (0..300).map(frame).collect();
        write_all(file.path(), 1 << 20, &frames, &bus);
        let read: Vec<CapturedFrame> = Capture::open(file.path()).unwrap().map(Result::unwrap).collect();
        assert_eq!(read, frames);
        assert_eq!(count(&bus, "written"), 300);
    }

    #[test]
    fn the_file_stays_within_its_limit_and_the_rest_is_counted() {
        let (bus, file) = (Bus::new("test"), tempfile::NamedTempFile::new().unwrap());
        let frames = vec![frame(0); 20];
        // The header of 24 octets and ten records of 16 + 60.
        write_all(file.path(), 24 + 10 * 76 + 75, &frames, &bus);
        assert_eq!(file.path().metadata().unwrap().len(), 24 + 10 * 76);
        assert_eq!((count(&bus, "written"), count(&bus, "full")), (10, 10));
    }

    #[test]
    fn a_write_error_loses_frames_of_the_file_only() {
        let bus = Bus::new("test");
        // Its header of 24 octets is written before; the file then takes nothing.
        let mut writer = CaptureWriter::create(Path::new("/dev/null"), 1 << 20, counts(&bus)).unwrap();
        let full = Writing {
            path: "/dev/full".into(),
            file: File::options().write(true).open("/dev/full").unwrap(),
            counts: counts(&bus),
            failed: false,
        };
        let (chunks, waiting) = sync_channel(CHUNKS_MAX);
        writer.chunks = Some(chunks);
        writer.thread = Some(std::thread::spawn(move || full.run(&waiting)));
        for number in 0..5 {
            writer.write(frame(number).time, &frame(number).octets.unwrap());
            writer.flush();
        }
        drop(writer);
        assert_eq!((count(&bus, "written"), count(&bus, "failed")), (0, 5));
    }

    #[test]
    fn a_missing_folder_is_an_immediate_error() {
        let refused = CaptureWriter::create(Path::new("no/such/out.pcap"), 1 << 20, counts(&Bus::new("test")));
        assert!(refused.is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    }
}
