//! Frames of a capture file: pcap and pcapng, as Wireshark and tcpdump write them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use viaduct_units::Tai;

/// Octets that the reader holds at a time; a block of the file must fit.
const BUFFER_OCTETS: usize = 256 << 10;

/// Reads that one block may take.
const REFILLS_MAX: u32 = 64;

/// Interfaces of one pcapng section that are told apart.
const INTERFACES_MAX: usize = 64;

/// One frame with the time at which it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When it was captured.
    pub time: Tai,
    /// The octets as they were captured: an Ethernet II frame.
    pub octets: Bytes,
}

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The file is not a capture.
    #[error("{} is not a pcap or pcapng file", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged; the frames before the damage were read.
    #[error("{} is damaged after frame {frames}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Frames that were read before.
        frames: u64,
    },
    /// The frames are not Ethernet frames.
    #[error("{}: frames have link type {link_type}; only Ethernet (1) is read", path.display())]
    LinkType {
        /// The file.
        path: PathBuf,
        /// The type, as pcap numbers it.
        link_type: i32,
    },
}

/// Reads the frames of a capture one after the other.
pub struct Capture {
    path: PathBuf,
    reader: Box<dyn PcapReaderIterator + Send>,
    clocks: Clocks,
    frames: u64,
    ended: bool,
}

/// How the file's timestamps count.
#[derive(Default)]
struct Clocks {
    /// Classic pcap: nanoseconds instead of microseconds.
    nanoseconds: bool,
    /// pcapng: of each interface, units a second and seconds to add.
    interfaces: Vec<(u64, i64)>,
}

impl Capture {
    /// Opens a capture.
    ///
    /// # Errors
    /// The file cannot be read or is not a capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let unread = |cause| CaptureError::Io { path: path.to_owned(), cause };
        let file = File::open(path).map_err(unread)?;
        // The reader of captures does not say why it cannot read.
        if file.metadata().map_err(unread)?.is_dir() {
            return Err(unread(io::ErrorKind::IsADirectory.into()));
        }
        Self::from_reader(path, file)
    }

    /// Reads a capture from elsewhere; `path` is how errors call it.
    ///
    /// # Errors
    /// The octets are not a capture.
    pub fn from_reader(path: &Path, source: impl io::Read + Send + 'static) -> Result<Self, CaptureError> {
        let reader = create_reader(BUFFER_OCTETS, source).map_err(|error| match error {
            PcapError::ReadError => {
                CaptureError::Io { path: path.to_owned(), cause: io::Error::other("the file cannot be read") }
            }
            _ => CaptureError::NotACapture { path: path.to_owned() },
        })?;
        Ok(Self { path: path.to_owned(), reader, clocks: Clocks::default(), frames: 0, ended: false })
    }

    fn next_frame(&mut self) -> Result<Option<CapturedFrame>, CaptureError> {
        let mut refills = 0;
        loop {
            match self.reader.next() {
                Ok((length, block)) => {
                    let frame = self.clocks.frame(&self.path, &block);
                    self.reader.consume(length);
                    if let Some(frame) = frame? {
                        self.frames += 1;
                        return Ok(Some(frame));
                    }
                }
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
        CaptureError::Damaged { path: self.path.clone(), frames: self.frames }
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

impl Clocks {
    /// The frame of a block; `None` for a block without one.
    fn frame(&mut self, path: &Path, block: &PcapBlockOwned<'_>) -> Result<Option<CapturedFrame>, CaptureError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.nanoseconds = header.is_nanosecond_precision();
                check_link_type(path, header.network).map(|()| None)
            }
            PcapBlockOwned::Legacy(packet) => {
                let unit = if self.nanoseconds { 1 } else { 1_000 };
                let nanos = i64::from(packet.ts_sec) * 1_000_000_000 + i64::from(packet.ts_usec) * unit;
                let octets = Bytes::copy_from_slice(packet.data);
                Ok(Some(CapturedFrame { time: Tai::from_unix_nanos(nanos), octets }))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(None)
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if self.interfaces.len() < INTERFACES_MAX {
                    let units = interface.ts_resolution().unwrap_or(1_000_000).max(1);
                    self.interfaces.push((units, interface.ts_offset()));
                }
                check_link_type(path, interface.linktype).map(|()| None)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let units = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
                let captured = packet.packet_data().get(..packet.caplen as usize).unwrap_or(packet.packet_data());
                let time = self.time(packet.if_id, units);
                Ok(Some(CapturedFrame { time, octets: Bytes::copy_from_slice(captured) }))
            }
            PcapBlockOwned::NG(_) => Ok(None),
        }
    }

    fn time(&self, interface: u32, units: u64) -> Tai {
        let default = (1_000_000, 0);
        let (per_second, offset) = *self.interfaces.get(interface as usize).unwrap_or(&default);
        let nanos = u128::from(units) * 1_000_000_000 / u128::from(per_second);
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Tai::from_unix_nanos(nanos.saturating_add(offset.saturating_mul(1_000_000_000)))
    }
}

fn check_link_type(path: &Path, link_type: Linktype) -> Result<(), CaptureError> {
    if link_type == Linktype::ETHERNET {
        return Ok(());
    }
    Err(CaptureError::LinkType { path: path.to_owned(), link_type: link_type.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A classic pcap of one frame of four octets, with the given magic number (little endian).
    fn classic(magic: u32, link_type: u32) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [magic, 0x0004_0002, 0, 0, 65_535, link_type, 1_726_061_434, 92_870, 4, 4] {
            file.extend(word.to_le_bytes());
        }
        file.extend([1, 2, 3, 4]);
        file
    }

    fn frames(file: &[u8]) -> Vec<Result<CapturedFrame, CaptureError>> {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), file).unwrap();
        Capture::open(path.path()).unwrap().collect()
    }

    #[test]
    fn a_classic_capture_counts_micro_or_nanoseconds() {
        for (magic, nanos) in [(0xA1B2_C3D4, 92_870_000), (0xA1B2_3C4D, 92_870)] {
            let read = frames(&classic(magic, 1));
            let frame = read[0].as_ref().unwrap();
            assert_eq!(frame.time, Tai::from_unix_nanos(1_726_061_434_000_000_000 + nanos));
            assert_eq!((&frame.octets[..], read.len()), (&[1, 2, 3, 4][..], 1));
        }
    }

    #[test]
    fn a_capture_that_ends_early_says_after_which_frame() {
        let mut file = classic(0xA1B2_C3D4, 1);
        file.extend([9; 7]);
        let read = frames(&file);
        assert!(read[0].is_ok());
        assert!(matches!(read[1], Err(CaptureError::Damaged { frames: 1, .. })));
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn other_files_and_other_links_are_refused() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), "node: a\n").unwrap();
        assert!(
            Capture::open(path.path()).is_err_and(|error| error.to_string().contains("is not a pcap or pcapng file"))
        );
        let missing = Capture::open(Path::new("no/such.pcap")).err().unwrap().to_string();
        assert!(missing.starts_with("cannot read no/such.pcap: "), "{missing}");
        assert!(matches!(frames(&classic(0xA1B2_C3D4, 127))[0], Err(CaptureError::LinkType { link_type: 127, .. })));
    }
}
