//! Reads a file, and inflates it if it begins with the magic number of gzip.

use std::io::{self, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// First octets of a gzip file (RFC 1952, 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Largest size of an inflated file in bytes. Inflating keeps only a window of 32 KiB in memory; the limit ends the work on
/// a small file that inflates without end.
pub(super) const INFLATED_BYTES_MAX: u64 = 64 << 30;

/// A source whose first octets were read and are read again.
type Source<R> = Chain<Cursor<Vec<u8>>, R>;

/// A file that is inflated while it is read, if it is compressed.
pub(super) enum MaybeGzip<R: Read> {
    /// The octets of the file.
    Plain(Source<R>),
    /// The inflated octets of a gzip file, up to a limit.
    Gzip {
        /// The decoder.
        inflated: Box<MultiGzDecoder<Source<R>>>,
        /// Octets that may still be inflated.
        remaining: u64,
    },
}

impl<R: Read> MaybeGzip<R> {
    /// Reads the first octets and decides by them.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(super) fn new(mut source: R, inflated_max: u64) -> io::Result<Self> {
        let mut first = Vec::with_capacity(GZIP_MAGIC.len());
        source.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut first)?;
        let is_gzip = first == GZIP_MAGIC;
        let source = Cursor::new(first).chain(source);
        if !is_gzip {
            return Ok(Self::Plain(source));
        }
        Ok(Self::Gzip { inflated: Box::new(MultiGzDecoder::new(source)), remaining: inflated_max })
    }
}

impl<R: Read> Read for MaybeGzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip { inflated, remaining } => {
                let count = inflated.read(buffer)?;
                *remaining = remaining
                    .checked_sub(count as u64)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, "the inflated file is too large"))?;
                Ok(count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(octets: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(octets).unwrap();
        encoder.finish().unwrap()
    }

    fn read(octets: &[u8], inflated_max: u64) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        MaybeGzip::new(octets, inflated_max)?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn a_plain_file_is_read_as_it_is() {
        for octets in [&b""[..], b"\x1F", b"\xD4\xC3\xB2\xA1..."] {
            assert_eq!(read(octets, 1).unwrap(), octets);
        }
    }

    #[test]
    fn a_gzip_file_is_inflated_member_by_member() {
        let parts = [gzip(b"one "), gzip(b"file")].concat();
        assert_eq!(read(&parts, 8).unwrap(), b"one file");
        assert!(read(&parts[..parts.len() - 9], 8).is_err(), "a file that was cut");
    }

    #[test]
    fn inflating_ends_at_the_limit() {
        let bomb = gzip(&vec![0; 1 << 20]);
        assert!(bomb.len() < 2048);
        assert_eq!(read(&bomb, (1 << 20) - 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read(&bomb, 1 << 20).unwrap().len(), 1 << 20);
    }
}
