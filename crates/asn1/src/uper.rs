//! The generic half of the UPER codec; the message modules instantiate it.

use rasn::{Decode, Encode};

use crate::{
    error::{UperError, detail},
    sizes,
};

/// Decodes one value that fills `octets` (but for the padding of its last octet).
pub fn decode<T: Decode>(message: &'static str, octets: &[u8]) -> Result<T, UperError> {
    let (value, rest) = rasn::uper::decode_with_remainder(octets)
        .map_err(|cause| UperError::Invalid { message, detail: detail(&cause.kind) })?;
    if rest.is_empty() { Ok(value) } else { Err(UperError::Trailing { message, octets: rest.len() }) }
}

/// Encodes one value.
pub fn encode<T: Encode>(message: &'static str, value: &T) -> Result<Vec<u8>, UperError> {
    sizes::check(value)
        .and_then(|()| rasn::uper::encode(value))
        .map_err(|cause| UperError::Unencodable { message, detail: detail(&cause.kind) })
}
