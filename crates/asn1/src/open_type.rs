//! Open types: a value inside a message, with its own length in UPER and as a plain value in JSON.

use rasn::{
    Codec,
    de::{Decode, Decoder, Error as _},
    enc::{Encode, Encoder, Error as _},
    types::{Any, Tag},
};

use crate::uper;

/// Writes a value as an open type.
pub fn encode<'b, T: Encode, E: Encoder<'b>>(
    message: &'static str,
    held: &T,
    encoder: &mut E,
    tag: Tag,
) -> Result<(), E::Error> {
    if encoder.codec() == Codec::Jer {
        return held.encode(encoder);
    }
    let octets = uper::encode(message, held).map_err(|cause| E::Error::custom(cause, encoder.codec()))?;
    Any::new(octets).encode_with_tag(encoder, tag)
}

/// Reads a value from an open type.
pub fn decode<T: Decode, D: Decoder>(message: &'static str, decoder: &mut D, tag: Tag) -> Result<T, D::Error> {
    if decoder.codec() == Codec::Jer {
        return T::decode(decoder);
    }
    let octets = Any::decode_with_tag(decoder, tag)?.into_bytes();
    uper::decode(message, &octets).map_err(|cause| D::Error::custom(cause, decoder.codec()))
}
