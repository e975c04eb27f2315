//! Lossless and lossy compression of messages.
//!
//! | codec | for | compressed payload |
//! |---|---|---|
//! | [`Codec::Zstd`] | any message | frames of Zstandard (RFC 8878), each of at most 1 MiB of content |
//! | [`Codec::Planes`] | point clouds | the same, of the message in the form [`polar`] if that fits, else [`planes`] |
//!
//! A compressed message carries the name of its codec and its original length. The length is compared with a limit before anything is
//! decompressed, and no memory is allocated by it: the result grows with its content.

pub mod choice;
mod cloud;
pub mod planes;
pub mod polar;

use std::io::Read as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::MessageFormat;

/// Level of Zstandard. Higher ones take several times as long for a few percent.
const LEVEL: i32 = 1;
/// Content of a frame in bytes, and largest window of a frame that is decompressed.
const FRAME_BYTES_MAX: usize = 1 << FRAME_BYTES_LOG;
const FRAME_BYTES_LOG: u32 = 20;
/// Memory that is reserved for the result, as a multiple of the compressed size. Most messages need no more.
const RESERVED_RATIO: usize = 8;
/// Messages below this size are not compressed, in bytes: they would fit into few packets anyway.
const BYTES_MIN: usize = 512;

/// Compression of the messages of a route with `encoding: native`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Messages are sent as published.
    #[default]
    None,
    /// All messages are compressed with Zstandard.
    Zstd,
    /// Clouds of rotating lidars are compressed to a tenth of their size, other point clouds with their octets in planes to half of their
    /// size. Other messages are compressed with Zstandard.
    Planes,
    /// For each message, the way is chosen with which it arrives first, by the measured goodput of the connection and the measured times
    /// and ratios of the codecs.
    Auto,
}

/// A codec of compressed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Zstandard.
    Zstd,
    /// Zstandard, after the octets of the points were ordered in planes.
    Planes,
}

impl Codec {
    /// All codecs.
    pub const ALL: [Self; 2] = [Self::Zstd, Self::Planes];

    /// Returns the name of the codec on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Planes => "planes",
        }
    }

    /// Returns the codec with that name, or `None` if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// The reason why a message cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// The original length is above the limit.
    #[error("the message has {length} bytes; at most {max} are allowed")]
    TooLong {
        /// Original length, as the sender claims.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// The payload is not a compressed message of that length.
    #[error("the compressed message is malformed")]
    Malformed,
}

/// Decompresses a message with a claimed length, of at most `max` bytes.
///
/// # Errors
/// Returns an error if the claimed length is above `max`, or if the payload is not a compressed message of that length.
pub fn decompress(codec: Codec, payload: &[u8], length: usize, max: usize) -> Result<Bytes, DecompressError> {
    if length > max {
        return Err(DecompressError::TooLong { length, max });
    }
    match codec {
        Codec::Zstd => inflate(payload, length).map(Bytes::from),
        Codec::Planes => {
            // A longer header is that of no message.
            let planes = inflate_up_to(payload, length.saturating_add(planes::HEADER_BYTES_MAX))?;
            let is_polar = polar::is_polar(&planes);
            let message = if is_polar { polar::restore(&planes, length) } else { planes::restore(&planes, length) };
            message.map(Bytes::from).ok_or(DecompressError::Malformed)
        }
    }
}

/// Decompresses frames with exactly `length` bytes of content.
fn inflate(payload: &[u8], length: usize) -> Result<Vec<u8>, DecompressError> {
    let content = inflate_up_to(payload, length)?;
    if content.len() == length { Ok(content) } else { Err(DecompressError::Malformed) }
}

/// Decompresses frames with at most `max` bytes of content.
fn inflate_up_to(payload: &[u8], max: usize) -> Result<Vec<u8>, DecompressError> {
    let malformed = |_| DecompressError::Malformed;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(payload).map_err(malformed)?;
    decoder.window_log_max(FRAME_BYTES_LOG).map_err(malformed)?;
    let mut content = Vec::with_capacity(max.min(payload.len().saturating_mul(RESERVED_RATIO)));
    decoder.take(max as u64 + 1).read_to_end(&mut content).map_err(malformed)?;
    if content.len() > max { Err(DecompressError::Malformed) } else { Ok(content) }
}

/// Compresses messages.
pub struct Compressor {
    zstd: zstd::bulk::Compressor<'static>,
    /// Resolution of the coordinates of point clouds in metres; `None` for lossless compression.
    resolution_m: Option<f32>,
    planes: Vec<u8>,
}

/// A compressed message.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// The codec.
    pub codec: Codec,
    /// The compressed payload.
    pub payload: Bytes,
}

impl Compressor {
    /// Creates a compressor. With a resolution in metres, the coordinates x, y and z of point clouds are rounded to multiples of it.
    ///
    /// # Errors
    /// Returns an error if there is no memory.
    pub fn new(resolution_m: Option<f32>) -> std::io::Result<Self> {
        Ok(Self { zstd: zstd::bulk::Compressor::new(LEVEL)?, resolution_m, planes: Vec::new() })
    }

    /// Compresses a message of a type. Returns `None` if the codec is not for the message, or does not reduce its size.
    pub fn compress(&mut self, codec: Codec, kind: (MessageFormat, &str), message: &[u8]) -> Option<Compressed> {
        if message.len() < BYTES_MIN {
            return None;
        }
        let payload = match codec {
            Codec::Zstd => deflate(&mut self.zstd, [message])?,
            Codec::Planes => {
                let cloud = cloud::locate(kind.0, kind.1, message)?;
                match polar::arrange(message, &cloud) {
                    Some(parts) => deflate(&mut self.zstd, parts.iter().map(|part| &part[..]))?,
                    None => {
                        planes::arrange(message, &cloud, self.resolution_m, &mut self.planes)?;
                        deflate(&mut self.zstd, [&self.planes[..]])?
                    }
                }
            }
        };
        (payload.len() < message.len()).then(|| Compressed { codec, payload: payload.into() })
    }
}

/// Compresses parts of a content, each in frames of its own.
fn deflate<'a>(zstd: &mut zstd::bulk::Compressor<'_>, parts: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    for part in parts.into_iter().flat_map(|part| part.chunks(FRAME_BYTES_MAX)) {
        payload.extend_from_slice(&zstd.compress(part).ok()?);
    }
    Some(payload)
}

/// A measured compression.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Original size by compressed size; 1 if the message could not be compressed.
    pub ratio: f64,
    /// Time of the compression.
    pub encode: Duration,
    /// Time of the decompression, if it was measured.
    pub decode: Option<Duration>,
}

/// Compresses a message as planned. Returns the compressed message, or `None` if it is to be sent as it is, and what was measured.
pub fn run(
    compressor: &mut Compressor,
    plan: choice::Plan,
    kind: (MessageFormat, &str),
    message: &Bytes,
) -> (Option<Compressed>, Vec<(Codec, Measured)>) {
    let (mut measured, mut best) = (Vec::new(), None::<Compressed>);
    for &codec in plan.tried() {
        let start = Instant::now();
        let compressed = compressor.compress(codec, kind, message);
        let encode = start.elapsed();
        let ratio = compressed.as_ref().map_or(1.0, |done| message.len() as f64 / done.payload.len().max(1) as f64);
        let decode = compressed.as_ref().filter(|_| plan.is_probe()).map(|done| {
            let start = Instant::now();
            // The result is the message, as the tests show.
            drop(decompress(codec, &done.payload, message.len(), usize::MAX));
            start.elapsed()
        });
        measured.push((codec, Measured { ratio, encode, decode }));
        if let Some(done) = compressed
            && best.as_ref().is_none_or(|best| done.payload.len() < best.payload.len())
        {
            best = Some(done);
        }
    }
    (best, measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPAQUE: (MessageFormat, &str) = (MessageFormat::Opaque, "a");

    proptest! {
        #[test]
        fn zstd_is_bit_exact(seed in proptest::collection::vec(any::<u8>(), 1..64), repeats in 20_usize..2000) {
            let message = seed.repeat(repeats);
            let mut compressor = Compressor::new(None).unwrap();
            if let Some(done) = compressor.compress(Codec::Zstd, OPAQUE, &message) {
                prop_assert_eq!(decompress(done.codec, &done.payload, message.len(), message.len()).unwrap(), message);
            }
        }

        #[test]
        fn any_octets_are_decompressed_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..300), length in 0_usize..5000) {
            for codec in Codec::ALL {
                if let Ok(message) = decompress(codec, &octets, length, 4096) {
                    prop_assert_eq!(message.len(), length);
                }
            }
        }
    }

    #[test]
    fn long_messages_have_several_frames() {
        let message: Vec<u8> = (0..3_500_000_u32).map(|at| (at / 7) as u8).collect();
        let done = Compressor::new(None).unwrap().compress(Codec::Zstd, OPAQUE, &message).unwrap();
        assert_eq!(decompress(Codec::Zstd, &done.payload, message.len(), message.len()).unwrap(), message);
        // Any decoder of Zstandard reads them.
        assert_eq!(zstd::stream::decode_all(&done.payload[..]).unwrap(), message);
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut zstd = zstd::bulk::Compressor::new(LEVEL).unwrap();
        let bomb = deflate(&mut zstd, [&vec![0; 16 << 20][..]]).unwrap();
        assert!(bomb.len() < 10_000);
        let too_long = DecompressError::TooLong { length: 16 << 20, max: 1 << 20 };
        assert_eq!(decompress(Codec::Zstd, &bomb, 16 << 20, 1 << 20), Err(too_long));
        // It claims to be short.
        for codec in Codec::ALL {
            assert_eq!(decompress(codec, &bomb, 1000, 1 << 20), Err(DecompressError::Malformed), "{codec:?}");
        }
        // A window larger than that of our frames would be allocated at once.
        let mut wide = zstd::stream::write::Encoder::new(Vec::new(), LEVEL).unwrap();
        wide.window_log(24).unwrap();
        std::io::Write::write_all(&mut wide, &[7; 5000]).unwrap();
        let wide = wide.finish().unwrap();
        assert_eq!(decompress(Codec::Zstd, &wide, 5000, 1 << 25), Err(DecompressError::Malformed));
    }

    #[test]
    fn the_claimed_length_must_be_the_real_one() {
        let message = b"abcdefgh".repeat(200);
        let done = Compressor::new(None).unwrap().compress(Codec::Zstd, OPAQUE, &message).unwrap();
        for length in [0, 1, message.len() - 1, message.len() + 1, 100_000] {
            let refused = decompress(Codec::Zstd, &done.payload, length, 200_000);
            assert_eq!(refused, Err(DecompressError::Malformed), "{length}");
        }
        let mut divided = done.payload.to_vec();
        divided.pop();
        assert!(decompress(Codec::Zstd, &divided, message.len(), 200_000).is_err());
    }

    #[test]
    fn messages_that_do_not_become_shorter_are_not_compressed() {
        let mut state = 1_u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(5000)
        .collect();
        let mut compressor = Compressor::new(None).unwrap();
        assert!(compressor.compress(Codec::Zstd, OPAQUE, &random).is_none());
        assert!(compressor.compress(Codec::Zstd, OPAQUE, &[0; 100]).is_none());
        assert!(compressor.compress(Codec::Planes, OPAQUE, &[0; 5000]).is_none());
    }
}
