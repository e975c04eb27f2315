//! An encoded message: short parts that were copied, and large fields that are shared.

#![expect(unsafe_code, reason = "`BufMut` is an unsafe trait; the implementation passes its duties on to `BytesMut`")]

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Minimum size, in bytes, from which a `bytes` field is shared instead of copied.
const BLOB_BYTES_MIN: usize = 1024;

/// An encoded message: its bytes in order, in one or more chunks. Cloning copies no bytes.
///
/// prost writes a `bytes::Bytes` field with [`BufMut::put`] and reads it with [`Buf::copy_to_bytes`]. Both are
/// overridden here, so that a large field is encoded and decoded as a reference to the same memory.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    chunks: Vec<Bytes>,
}

impl Encoded {
    /// Encodes a message.
    #[must_use]
    pub fn from_message(message: &impl prost::Message) -> Self {
        let mut writer = ChunkWriter::default();
        // The only error is a buffer that is too small; this one grows.
        let _ = message.encode(&mut writer);
        writer.finish()
    }

    /// Joins chunks of an encoded message without a copy.
    pub fn from_chunks(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        Self { chunks: chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect() }
    }

    /// Returns the bytes in order, chunk by chunk, for example for a vectored write.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// Returns `true` if there are no bytes (a message of default values has none).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the bytes in one piece; copies if there are several chunks.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self.chunks.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            several => several.concat().into(),
        }
    }

    /// Returns a cursor that decodes without copying large fields.
    #[must_use]
    pub fn reader(&self) -> impl Buf + use<> {
        ChunkReader { chunks: self.chunks.clone(), at: 0, remaining: self.len() }
    }
}

impl From<Bytes> for Encoded {
    fn from(bytes: Bytes) -> Self {
        Self::from_chunks([bytes])
    }
}

/// Collects copied bytes and shared fields while prost encodes.
#[derive(Default)]
struct ChunkWriter {
    chunks: Vec<Bytes>,
    open: BytesMut,
}

impl ChunkWriter {
    fn finish(mut self) -> Encoded {
        self.close();
        Encoded { chunks: self.chunks }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.chunks.push(self.open.split().freeze());
        }
    }
}

// SAFETY: every duty of `BufMut` for memory (a valid `chunk_mut`, a truthful `advance_mut` and `remaining_mut`) is that
// of the inner `BytesMut`, to which the calls are forwarded unchanged.
unsafe impl BufMut for ChunkWriter {
    fn remaining_mut(&self) -> usize {
        self.open.remaining_mut()
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller wrote `count` bytes into the slice that `chunk_mut` returned, which is the inner buffer's.
        unsafe { self.open.advance_mut(count) }
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.open.chunk_mut()
    }

    fn put<T: Buf>(&mut self, mut source: T) {
        if source.remaining() < BLOB_BYTES_MIN {
            self.open.put(source);
            return;
        }
        self.close();
        // For a `Bytes` this clones the reference, not the bytes.
        self.chunks.push(source.copy_to_bytes(source.remaining()));
    }
}

/// Reads the chunks as one sequence.
struct ChunkReader {
    chunks: Vec<Bytes>,
    at: usize,
    remaining: usize,
}

impl ChunkReader {
    /// Skips chunks that are read completely.
    fn skip_empty_chunks(&mut self) {
        while self.chunks.get(self.at).is_some_and(Bytes::is_empty) {
            self.at += 1;
        }
    }
}

impl Buf for ChunkReader {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.get(self.at).map_or(&[], |chunk| &chunk[..])
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "cannot advance past the end of an encoded message");
        self.remaining -= count;
        while count > 0 {
            let chunk = &mut self.chunks[self.at];
            let step = count.min(chunk.len());
            chunk.advance(step);
            count -= step;
            self.skip_empty_chunks();
        }
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        assert!(length <= self.remaining, "cannot read past the end of an encoded message");
        let within_one = self.chunks.get_mut(self.at).filter(|chunk| chunk.len() >= length);
        if let Some(chunk) = within_one {
            let taken = chunk.split_to(length);
            self.remaining -= length;
            self.skip_empty_chunks();
            return taken;
        }
        let mut copy = BytesMut::with_capacity(length);
        copy.put(self.take(length));
        copy.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::Message as _;
    use viaduct_messages::foxglove::PointCloud;

    proptest! {
        #[test]
        fn the_encoding_equals_that_of_prost_and_decodes_to_the_same_message(
            frame in "[a-z]{0,8}",
            data in proptest::collection::vec(any::<u8>(), 0..5000),
            stride in any::<u32>(),
        ) {
            let cloud = PointCloud { frame_id: frame, data: data.into(), point_stride: stride, ..Default::default() };
            let encoded = Encoded::from_message(&cloud);
            prop_assert_eq!(encoded.to_bytes(), Bytes::from(cloud.encode_to_vec()));
            prop_assert_eq!(PointCloud::decode(encoded.reader()).unwrap(), cloud);
        }

        #[test]
        fn a_message_cut_into_any_chunks_decodes(cuts in proptest::collection::vec(1_usize..40, 1..60)) {
            let cloud = PointCloud { frame_id: "frame".repeat(20), data: vec![3; 900].into(), ..Default::default() };
            let mut whole = Bytes::from(cloud.encode_to_vec());
            let mut chunks = Vec::new();
            for cut in cuts {
                chunks.push(whole.split_to(cut.min(whole.len())));
            }
            chunks.push(whole);
            let encoded = Encoded::from_chunks(chunks);
            prop_assert_eq!(PointCloud::decode(encoded.reader()).unwrap(), cloud);
        }
    }
}
