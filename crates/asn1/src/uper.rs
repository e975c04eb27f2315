//! The generic part of the UPER codec; the crates of the messages instantiate it.

use rasn::{
    Decode, Encode,
    error::{DecodeError, DecodeErrorKind, EncodeError},
    types::BitStr,
    uper::de::{Decoder, DecoderOptions},
};

use crate::{
    error::{UperError, detail},
    extended_sizes, sizes,
};

/// Decodes one value that fills `octets` (except for the padding of the last octet).
///
/// # Errors
/// Returns an error if an element breaks a rule, or if octets follow the value.
pub fn decode<T: Decode>(message: &'static str, octets: &[u8]) -> Result<T, UperError> {
    let (value, rest) =
        rasn::uper::decode_with_remainder(octets).map_err(|cause| invalid(message, &Fault::of(&cause), None))?;
    if rest.is_empty() { Ok(value) } else { Err(UperError::Trailing { message, octets: rest.len() }) }
}

/// Encodes one value.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode<T: Encode>(message: &'static str, value: &T) -> Result<Vec<u8>, UperError> {
    let is_beyond_root = sizes::check(value).map_err(|cause| unencodable(message, &cause))?;
    if is_beyond_root {
        return encode_with_extended_sizes(message, value);
    }
    rasn::uper::encode(value).map_err(|cause| unencodable(message, &cause))
}

/// Encodes one value with the slower encoder that [`encode`] uses for a value with a list beyond the root of its size.
///
/// The octets are those of [`encode`]. Tests compare both.
///
/// # Errors
/// Returns an error if a value is outside its range.
pub fn encode_with_extended_sizes<T: Encode>(message: &'static str, value: &T) -> Result<Vec<u8>, UperError> {
    extended_sizes::encode(value).map_err(|cause| unencodable(message, &cause))
}

fn unencodable(message: &'static str, cause: &EncodeError) -> UperError {
    UperError::Unencodable { message, detail: detail(&cause.kind) }
}

/// Returns the error of [`decode`] with the position of the fault, or `None` if `octets` are one value.
///
/// The decoder does not report positions. This function searches for the shortest prefix of `octets` that has the same
/// fault. The search takes as many attempts as the number of bits has binary digits (14 for the longest packet). Use it
/// for reports, not for each dropped packet.
#[must_use]
pub fn explain<T: Decode>(message: &'static str, octets: &[u8]) -> Option<UperError> {
    let bits = BitStr::from_slice(octets);
    let Some(fault) = fault_in::<T>(bits) else {
        return decode::<T>(message, octets).err();
    };
    if fault.is_cut {
        return Some(invalid(message, &fault, Some(bits.len().saturating_sub(1))));
    }
    let has_fault = |length: usize| bits.get(..length).and_then(fault_in::<T>).as_ref() == Some(&fault);
    let (mut without, mut with) = (0, bits.len());
    while without < with {
        let middle = usize::midpoint(without, with);
        if has_fault(middle) {
            with = middle;
        } else {
            without = middle + 1;
        }
    }
    Some(invalid(message, &fault, Some(with.saturating_sub(1))))
}

fn fault_in<T: Decode>(bits: &BitStr) -> Option<Fault> {
    let mut decoder = Decoder::<0, 0>::new(bits, DecoderOptions::unaligned());
    T::decode(&mut decoder).err().map(|cause| Fault::of(&cause))
}

fn invalid(message: &'static str, fault: &Fault, bit: Option<usize>) -> UperError {
    UperError::Invalid { message, path: fault.path.clone(), detail: fault.problem.clone(), bit }
}

/// The wrong element and the problem with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    path: String,
    problem: String,
    /// `true` if the octets end within the element.
    is_cut: bool,
}

impl Fault {
    fn of(cause: &DecodeError) -> Self {
        let mut path = String::new();
        let mut root = cause;
        while let DecodeErrorKind::FieldError { name, nested } = &*root.kind {
            push_element(&mut path, name);
            root = nested;
        }
        let is_cut = matches!(&*root.kind, DecodeErrorKind::Incomplete { .. });
        let problem = if is_cut { "the octets end here".to_owned() } else { detail(&root.kind) };
        Self { path, problem, is_cut }
    }
}

/// Appends the element of a field that rasn calls `CamPayload.cam_parameters`: its ASN.1 name `camParameters`.
fn push_element(path: &mut String, name: &str) {
    let field = name.rsplit('.').next().unwrap_or(name).trim_start_matches("r#").trim_matches('_');
    // The content of a tuple struct has a number only.
    if field.bytes().all(|character| character.is_ascii_digit()) {
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    let mut word_begins = false;
    for character in field.chars() {
        match character {
            '_' => word_begins = true,
            letter if word_begins => {
                path.push(letter.to_ascii_uppercase());
                word_begins = false;
            }
            letter => path.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use rasn::{AsnType, Decoder as _};

    use super::*;

    #[derive(Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(automatic_tags)]
    struct Outer {
        #[rasn(value("0..=255"))]
        first: u8,
        second_part: Inner,
    }

    #[derive(Debug, PartialEq, AsnType, Decode, Encode)]
    #[rasn(automatic_tags)]
    struct Inner {
        /// 7 bits, of which 101 to 127 are not used.
        #[rasn(value("0..=100"))]
        part_value: u8,
        #[rasn(value("0..=65535"))]
        last: u16,
    }

    #[test]
    fn a_fault_has_its_element_and_its_bit() {
        let octets = [7, 0b1111_1110, 0, 0];
        let Some(UperError::Invalid { path, bit, .. }) = explain::<Outer>("T", &octets) else { panic!() };
        assert_eq!((&*path, bit), ("secondPart.partValue", Some(14)));
        let Err(UperError::Invalid { path, bit, .. }) = decode::<Outer>("T", &octets) else { panic!() };
        assert_eq!((&*path, bit), ("secondPart.partValue", None));
    }

    #[test]
    fn octets_that_end_too_early_have_the_element_that_is_cut() {
        let error = explain::<Outer>("T", &[7, 0, 0]).unwrap().to_string();
        assert_eq!(error, "not a T in UPER: secondPart.last: the octets end here (at bit 23)");
    }

    #[test]
    fn a_value_that_is_valid_has_nothing_to_explain() {
        let octets = encode("T", &Outer { first: 7, second_part: Inner { part_value: 3, last: 2 } }).unwrap();
        assert_eq!(explain::<Outer>("T", &octets), None);
        let longer = [&octets[..], &[0]].concat();
        assert_eq!(explain::<Outer>("T", &longer), Some(UperError::Trailing { message: "T", octets: 1 }));
    }
}
