//! Reads frames from a capture file: pcap and pcapng as Wireshark and tcpdump write them, also compressed with gzip.
//!
//! Frames of every supported link type are handed over as Ethernet II frames.

mod inflate;
mod link_type;
pub mod writer;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use viaduct_units::Tai;

use inflate::{INFLATED_BYTES_MAX, MaybeGzip};
use link_type::LinkType;
pub use link_type::SkipReason;

/// Size of the read buffer in bytes; a block of the file must fit.
const BUFFER_BYTES: usize = 256 << 10;

/// Largest number of reads for one frame.
const REFILLS_MAX: u32 = 64;

/// Largest number of interfaces of a pcapng section. Frames of further interfaces are skipped.
const INTERFACES_MAX: usize = 1024;

/// Time unit of an interface that does not declare one: microseconds.
const UNITS_PER_SECOND: u64 = 1_000_000;

/// One frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Number of the frame in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Time of the capture.
    pub time: Tai,
    /// The frame as an Ethernet II frame without VLAN tags, or the reason why the record has none.
    pub octets: Result<Bytes, SkipReason>,
}

/// Error of a capture file.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file is not a capture.
    #[error("{} is not a pcap or pcapng file", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged; the frames before the damage were read.
    #[error("{} is damaged after frame {frames}{}", path.display(), cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}")))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of frames that were read before the damage.
        frames: u64,
        /// The error of the file or of its compression, if there was one.
        cause: Option<String>,
    },
    /// The link type of the frames is not supported.
    #[error("{}: the frames have link type {link_type}{}; supported are Ethernet (1), IEEE 802.11 (105), Linux cooked (113), \
             radiotap (127) and Linux cooked v2 (276)", path.display(), link_type::name(*link_type))]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Number of the link type in the file (`LINKTYPE_*` of the tcpdump group).
        link_type: u16,
    },
}

/// Iterates over the frames of a capture. It ends after the first error.
pub struct Capture {
    path: PathBuf,
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Error of the source, which the capture reader does not report.
    failure: Arc<OnceLock<String>>,
    layout: Layout,
    /// Frames that were read.
    frames: u64,
    ended: bool,
}

/// Link types and time units that the file declares.
#[derive(Default)]
struct Layout {
    /// Interfaces of the present pcapng section, or the only one of a classic pcap.
    interfaces: Vec<Interface>,
    /// `true` if a supported link type was declared anywhere in the file.
    has_supported: bool,
}

/// An interface of a capture.
#[derive(Clone, Copy)]
struct Interface {
    /// Number of its link type.
    link_type: u16,
    /// Time units a second.
    units_per_second: u64,
    /// Seconds to add to each time.
    offset_s: i64,
}

impl Capture {
    /// Opens a capture.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let unread = |cause| CaptureError::Io { path: path.to_owned(), cause };
        let file = File::open(path).map_err(unread)?;
        // The capture reader does not report this cause.
        if file.metadata().map_err(unread)?.is_dir() {
            return Err(unread(io::ErrorKind::IsADirectory.into()));
        }
        Self::from_reader(path, file)
    }

    /// Reads a capture from another source. Errors name it `path`.
    ///
    /// # Errors
    /// Returns an error if the octets are not a capture.
    pub fn from_reader(path: &Path, source: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let unread = |cause| CaptureError::Io { path: path.to_owned(), cause };
        let failure = Arc::new(OnceLock::new());
        let source = MaybeGzip::new(source, INFLATED_BYTES_MAX).map_err(unread)?;
        let source = Filling { source, failure: Arc::clone(&failure) };
        let reader = create_reader(BUFFER_BYTES, source).map_err(|_| match failure.get() {
            Some(cause) => unread(io::Error::other(cause.clone())),
            None => CaptureError::NotACapture { path: path.to_owned() },
        })?;
        Ok(Self { path: path.to_owned(), reader, failure, layout: Layout::default(), frames: 0, ended: false })
    }

    fn next_frame(&mut self) -> Result<Option<CapturedFrame>, CaptureError> {
        let mut refills = 0;
        loop {
            match self.reader.next() {
                Ok((length, block)) => {
                    let record = self.layout.read(&block);
                    self.reader.consume(length);
                    let unsupported = |link_type| CaptureError::LinkType { path: self.path.clone(), link_type };
                    if let Some((time, octets)) = record.map_err(unsupported)? {
                        self.frames += 1;
                        return Ok(Some(CapturedFrame { number: self.frames, time, octets }));
                    }
                }
                Err(PcapError::Eof) if self.failure.get().is_some() => return Err(self.damaged()),
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => {
                    refills += 1;
                    let more = !self.reader.reader_exhausted() && self.reader.refill().is_ok();
                    // A block that claims to be larger than the buffer never completes.
                    if !more || refills > REFILLS_MAX {
                        return Err(self.damaged());
                    }
                }
                Err(_) => return Err(self.damaged()),
            }
        }
    }

    fn damaged(&self) -> CaptureError {
        CaptureError::Damaged { path: self.path.clone(), frames: self.frames, cause: self.failure.get().cloned() }
    }
}

impl Iterator for Capture {
    type Item = Result<CapturedFrame, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_frame().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Fills each buffer as far as the source allows. An error of the source is kept and ends the file, so that the octets
/// before it are read.
struct Filling<R> {
    source: R,
    failure: Arc<OnceLock<String>>,
}

impl<R: Read> Read for Filling<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while self.failure.get().is_none()
            && let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty())
        {
            match self.source.read(rest) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure.get_or_init(|| error.to_string());
                }
            }
        }
        Ok(filled)
    }
}

/// Time and content of a record, `None` for a block that is not a record, or the unsupported link type of the file.
type Record = Result<Option<(Tai, Result<Bytes, SkipReason>)>, u16>;

impl Layout {
    /// Returns the record in a block and takes over the interfaces that a block declares.
    fn read(&mut self, block: &PcapBlockOwned<'_>) -> Record {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units_per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { UNITS_PER_SECOND };
                // The upper half has the length of a frame check sequence.
                let link_type = (header.network.0 & 0xFFFF) as u16;
                self.declare(Interface { link_type, units_per_second, offset_s: 0 });
                if self.has_supported { Ok(None) } else { Err(link_type) }
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some(interface) = self.interfaces.first().copied() else { return Ok(None) };
                let units = u64::from(packet.ts_sec) * interface.units_per_second + u64::from(packet.ts_usec);
                self.record(Some(interface), units, packet.data)
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(None)
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let link_type = (interface.linktype.0 & 0xFFFF) as u16;
                let units_per_second = interface.ts_resolution().unwrap_or(UNITS_PER_SECOND).max(1);
                self.declare(Interface { link_type, units_per_second, offset_s: interface.ts_offset() });
                Ok(None)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interfaces.get(packet.if_id as usize).copied();
                let units = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
                let captured = packet.packet_data().get(..packet.caplen as usize).unwrap_or(packet.packet_data());
                self.record(interface, units, captured)
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => Ok(Some((Tai::from_unix_nanos(0), Err(SkipReason::NoTime)))),
            PcapBlockOwned::NG(_) => Ok(None),
        }
    }

    fn declare(&mut self, interface: Interface) {
        self.has_supported |= LinkType::from_number(interface.link_type).is_some();
        if self.interfaces.len() < INTERFACES_MAX {
            self.interfaces.push(interface);
        }
    }

    /// Returns a record of an interface. A file in which no supported link type was declared is not read on.
    fn record(&self, interface: Option<Interface>, units: u64, captured: &[u8]) -> Record {
        let Some(interface) = interface else {
            return Ok(Some((Tai::from_unix_nanos(0), Err(SkipReason::LinkTypeUnsupported))));
        };
        let time = interface.time(units);
        match LinkType::from_number(interface.link_type) {
            Some(link_type) => Ok(Some((time, link_type.ethernet_frame(captured)))),
            None if self.has_supported => Ok(Some((time, Err(SkipReason::LinkTypeUnsupported)))),
            None => Err(interface.link_type),
        }
    }
}

impl Interface {
    /// Returns the time that `units` stand for.
    fn time(&self, units: u64) -> Tai {
        let nanos = u128::from(units) * 1_000_000_000 / u128::from(self.units_per_second);
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Tai::from_unix_nanos(nanos.saturating_add(self.offset_s.saturating_mul(1_000_000_000)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// Returns a classic pcap with one frame of four octets and the given magic number (little endian).
    fn classic(magic: u32, link_type: u32) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [magic, 0x0004_0002, 0, 0, 65_535, link_type, 1_726_061_434, 92_870, 4, 4] {
            file.extend(word.to_le_bytes());
        }
        file.extend([1, 2, 3, 4]);
        file
    }

    /// Returns a pcapng block of the given type.
    fn block(kind: u32, body: &[u32]) -> Vec<u8> {
        let length = u32::try_from(12 + 4 * body.len()).unwrap();
        [&[kind, length], body, &[length]].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn section() -> Vec<u8> {
        block(0x0A0D_0D0A, &[0x1A2B_3C4D, 1, u32::MAX, u32::MAX])
    }

    fn interface(link_type: u32) -> Vec<u8> {
        block(1, &[link_type, 65_535])
    }

    /// Returns an enhanced packet block with one word of payload.
    fn packet(interface: u32) -> Vec<u8> {
        block(6, &[interface, 0x0006_21D4, 0x9D5B_4F6B, 4, 4, 0x0403_0201])
    }

    fn gzip(octets: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(octets).unwrap();
        encoder.finish().unwrap()
    }

    fn frames(file: &[u8]) -> Vec<Result<CapturedFrame, CaptureError>> {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), file).unwrap();
        Capture::open(path.path()).unwrap().collect()
    }

    /// Returns number and content of each frame of a file that is read to its end.
    fn contents(file: &[u8]) -> Vec<(u64, Result<Bytes, SkipReason>)> {
        frames(file).into_iter().map(|frame| frame.unwrap()).map(|frame| (frame.number, frame.octets)).collect()
    }

    const CONTENT: Result<Bytes, SkipReason> = Ok(Bytes::from_static(&[1, 2, 3, 4]));

    #[test]
    fn a_classic_capture_counts_micro_or_nanoseconds() {
        for (magic, nanos) in [(0xA1B2_C3D4, 92_870_000), (0xA1B2_3C4D, 92_870)] {
            let read = frames(&classic(magic, 1));
            let frame = read[0].as_ref().unwrap();
            assert_eq!(frame.time, Tai::from_unix_nanos(1_726_061_434_000_000_000 + nanos));
            assert_eq!((frame.number, &frame.octets, read.len()), (1, &CONTENT, 1));
        }
    }

    #[test]
    fn a_capture_that_ends_early_names_the_last_frame() {
        let mut file = classic(0xA1B2_C3D4, 1);
        file.extend([9; 7]);
        let read = frames(&file);
        assert!(read[0].is_ok());
        assert!(matches!(read[1], Err(CaptureError::Damaged { frames: 1, .. })));
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn a_compressed_capture_is_inflated() {
        let mut file = classic(0xA1B2_C3D4, 1);
        for _ in 0..10_000 {
            file.extend_from_within(24..44);
        }
        let compressed = gzip(&file);
        assert_eq!(contents(&compressed).len(), 10_001);
        let cut = frames(&compressed[..compressed.len() / 2]);
        let error = cut.last().unwrap().as_ref().unwrap_err().to_string();
        assert!(error.contains("is damaged after frame ") && error.contains(": "), "{error}");
        assert!(cut.len() > 1, "the frames before the damage are read");
    }

    #[test]
    fn each_interface_of_a_pcapng_has_its_link_type() {
        let file = [section(), interface(195), interface(1), packet(0), packet(1), packet(7)].concat();
        let unsupported = Err(SkipReason::LinkTypeUnsupported);
        assert_eq!(contents(&file), [(1, unsupported.clone()), (2, CONTENT), (3, unsupported)]);
        let simple = [section(), interface(1), block(3, &[4, 0x0403_0201]), packet(0)].concat();
        assert_eq!(contents(&simple), [(1, Err(SkipReason::NoTime)), (2, CONTENT)]);
        let another = [section(), interface(1), packet(0), section(), interface(195), packet(0)].concat();
        assert_eq!(contents(&another), [(1, CONTENT), (2, Err(SkipReason::LinkTypeUnsupported))]);
        let none = [section(), interface(195), packet(0), packet(0)].concat();
        assert!(matches!(frames(&none)[..], [Err(CaptureError::LinkType { link_type: 195, .. })]));
    }

    #[test]
    fn an_unsupported_link_type_is_named_with_the_supported_ones() {
        let error = frames(&classic(0xA1B2_C3D4, 192)).remove(0).unwrap_err().to_string();
        let expected = ": the frames have link type 192 (PPI); supported are Ethernet (1), IEEE 802.11 (105), \
                        Linux cooked (113), radiotap (127) and Linux cooked v2 (276)";
        assert!(error.ends_with(expected), "{error}");
        // The upper half of the field describes the frame check sequence.
        assert_eq!(contents(&classic(0xA1B2_C3D4, 0x1400_0001)), [(1, CONTENT)]);
    }

    #[test]
    fn other_files_are_refused() {
        for other in [&b"node: a\n"[..], &gzip(b"node: a\n")] {
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(path.path(), other).unwrap();
            let error = Capture::open(path.path()).err().unwrap().to_string();
            assert!(error.contains("is not a pcap or pcapng file"), "{error}");
        }
        let missing = Capture::open(Path::new("no/such.pcap")).err().unwrap().to_string();
        assert!(missing.starts_with("cannot read no/such.pcap: "), "{missing}");
    }
}
