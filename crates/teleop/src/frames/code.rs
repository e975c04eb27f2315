//! The erasure code: a systematic Reed-Solomon code over the symbols of one frame.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use reed_solomon_simd::{
    Error, ReedSolomonDecoder, ReedSolomonEncoder,
    engine::{DefaultEngine, Engine},
};

use super::Shape;

/// Builds the multiplication tables of the erasure code, about 9 MB, which all senders and receivers of the process share.
/// Later calls do nothing.
///
/// [`Sender::new`](super::Sender::new) and [`Receiver::new`](super::Receiver::new) call this function. Otherwise the first
/// lost symbol would wait for the tables.
pub fn build_code_tables() {
    let mut symbol = [[0; 64]];
    DefaultEngine::new().mul(&mut symbol, 1);
}

/// An encoder that reuses its working memory from frame to frame.
#[derive(Default)]
pub(super) struct Encoder(Option<ReedSolomonEncoder>);

/// A decoder that reuses its working memory from frame to frame.
#[derive(Default)]
pub(super) struct Decoder(Option<ReedSolomonDecoder>);

impl Encoder {
    /// Returns all recovery symbols of a frame, one after the other, or `None` if the shape is not that of the frame.
    pub(super) fn recovery_symbols(&mut self, frame: &Bytes, shape: Shape) -> Option<Bytes> {
        self.encode(frame, shape).ok()
    }

    fn encode(&mut self, frame: &Bytes, shape: Shape) -> Result<Bytes, Error> {
        let (sources, recoveries) = (usize::from(shape.sources()), usize::from(shape.recoveries()));
        let encoder = match &mut self.0 {
            Some(encoder) => {
                encoder.reset(sources, recoveries, shape.symbol_octets())?;
                encoder
            }
            none => none.insert(ReedSolomonEncoder::new(sources, recoveries, shape.symbol_octets())?),
        };
        for source in frame.chunks(shape.symbol_octets()) {
            if source.len() == shape.symbol_octets() {
                encoder.add_original_shard(source)?;
            } else {
                encoder.add_original_shard(padded(source, shape))?;
            }
        }
        let mut symbols = BytesMut::with_capacity(recoveries * shape.symbol_octets());
        encoder.encode()?.recovery_iter().for_each(|symbol| symbols.put_slice(symbol));
        Ok(symbols.freeze())
    }
}

impl Decoder {
    /// Returns the frame of at least as many symbols as it has source symbols, each with its index, or `None` if the
    /// symbols do not suffice.
    pub(super) fn frame(&mut self, shape: Shape, symbols: &[(u16, Bytes)]) -> Option<Bytes> {
        let mut sources: Vec<Option<&Bytes>> = vec![None; usize::from(shape.sources())];
        for (index, symbol) in symbols {
            if let Some(place) = sources.get_mut(usize::from(*index)) {
                *place = Some(symbol);
            }
        }
        if sources.iter().all(Option::is_some) {
            return Some(joined(shape, sources.into_iter().flatten().map(|symbol| &symbol[..])));
        }
        self.decode(shape, symbols, &sources).ok()
    }

    fn decode(&mut self, shape: Shape, symbols: &[(u16, Bytes)], sources: &[Option<&Bytes>]) -> Result<Bytes, Error> {
        let (originals, recoveries) = (usize::from(shape.sources()), usize::from(shape.recoveries()));
        let decoder = match &mut self.0 {
            Some(decoder) => {
                decoder.reset(originals, recoveries, shape.symbol_octets())?;
                decoder
            }
            none => none.insert(ReedSolomonDecoder::new(originals, recoveries, shape.symbol_octets())?),
        };
        for (index, symbol) in symbols {
            match index.checked_sub(shape.sources()) {
                Some(recovery) => decoder.add_recovery_shard(usize::from(recovery), symbol)?,
                None if symbol.len() == shape.symbol_octets() => {
                    decoder.add_original_shard(usize::from(*index), symbol)?;
                }
                None => decoder.add_original_shard(usize::from(*index), padded(symbol, shape))?,
            }
        }
        let restored = decoder.decode()?;
        let all = sources.iter().enumerate().map(|(index, source)| match source {
            Some(symbol) => &symbol[..],
            None => restored.restored_original(index).unwrap_or_default(),
        });
        Ok(joined(shape, all))
    }
}

/// Returns the last source symbol with zeros up to the length of the others.
fn padded(symbol: &[u8], shape: Shape) -> Vec<u8> {
    let mut padded = symbol.to_vec();
    padded.resize(shape.symbol_octets(), 0);
    padded
}

/// Returns the source symbols as one frame.
fn joined<'a>(shape: Shape, sources: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut frame = BytesMut::with_capacity(usize::from(shape.sources()) * shape.symbol_octets());
    sources.for_each(|source| frame.put_slice(source));
    frame.truncate(shape.octets());
    frame.freeze()
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::Rng;

    use super::*;

    fn all_symbols(frame: &Bytes, shape: Shape) -> Vec<(u16, Bytes)> {
        let recovery = Encoder::default().recovery_symbols(frame, shape).unwrap();
        let source = |index| frame.slice(shape.source_range(index).unwrap());
        let of_recovery = |index| {
            let start = usize::from(index - shape.sources()) * shape.symbol_octets();
            recovery.slice(start..start + shape.symbol_octets())
        };
        let symbol = |index| if index < shape.sources() { source(index) } else { of_recovery(index) };
        (0..shape.symbols()).map(|index| (index, symbol(index))).collect()
    }

    #[test]
    fn any_symbols_of_sufficient_number_restore_the_frame() {
        let mut random = Rng::new(1);
        let (mut encoder_input, mut decoder) = (Vec::new(), Decoder::default());
        for octets in [1, 2, 1369, 1370, 50_000, 374_000] {
            encoder_input.resize_with(octets, || random.next_u64() as u8);
            let frame = Bytes::copy_from_slice(&encoder_input);
            let shape = Shape::new(octets, 1369).unwrap();
            let mut symbols = all_symbols(&frame, shape);
            for _ in 0..5 {
                random.shuffle(&mut symbols);
                let arrived = &symbols[..usize::from(shape.sources())];
                assert_eq!(decoder.frame(shape, arrived).as_ref(), Some(&frame), "{octets}");
                assert_eq!(decoder.frame(shape, &arrived[1..]), None);
            }
        }
    }
}
