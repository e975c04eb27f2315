//! The walk along a message, which carries out the operations of a transcoder.

use super::plan::{Op, TimeOp};
use crate::codec::{CodecProblem, Encoding};
use crate::limits::{EMPTY_ELEMENTS_MAX, OPERATIONS_MAX, TRANSCODED_OCTETS_MAX};
use crate::msg::Count;

/// Operations for each octet of a message.
const OPERATIONS_PER_OCTET: usize = 16;
const CDR_HEADER_OCTETS: usize = 4;
const PADDING_MAX: usize = 3;
const NANOSECONDS: i64 = 1_000_000_000;

/// The receiver of the octets.
pub(super) trait Sink {
    fn put(&mut self, octets: &[u8]);
    fn zeros(&mut self, count: usize);
    fn octets(&self) -> usize;
}

/// Counts octets.
#[derive(Default)]
pub(super) struct Counter(usize);

/// Writes octets to a buffer.
pub(super) struct Slice<'a> {
    out: &'a mut [u8],
    at: usize,
}

/// The two ends of the walk.
pub(super) struct Walk<'a, S> {
    message: &'a [u8],
    from: Encoding,
    is_big: bool,
    /// Octets read.
    at: usize,
    to: Encoding,
    sink: S,
    /// While positive, nothing is written.
    dropping: usize,
    /// Number of further operations, so that values without octets cannot take forever.
    operations_left: usize,
}

impl Counter {
    pub(super) const fn octets(&self) -> usize {
        self.0
    }
}

impl<'a> Slice<'a> {
    pub(super) const fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Returns the octets written.
    pub(super) fn octets(&self) -> Result<usize, CodecProblem> {
        if self.at <= self.out.len() { Ok(self.at) } else { Err(CodecProblem::TooLong(self.at - self.out.len())) }
    }
}

impl Sink for Counter {
    fn put(&mut self, octets: &[u8]) {
        self.0 += octets.len();
    }

    fn zeros(&mut self, count: usize) {
        self.0 += count;
    }

    fn octets(&self) -> usize {
        self.0
    }
}

impl Sink for Slice<'_> {
    fn put(&mut self, octets: &[u8]) {
        let end = self.at.saturating_add(octets.len());
        if let Some(out) = self.out.get_mut(self.at..end) {
            out.copy_from_slice(octets);
        }
        self.at = end;
    }

    fn zeros(&mut self, count: usize) {
        let end = self.at.saturating_add(count);
        if let Some(out) = self.out.get_mut(self.at..end) {
            out.fill(0);
        }
        self.at = end;
    }

    fn octets(&self) -> usize {
        self.at
    }
}

impl Sink for &mut Vec<u8> {
    fn put(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }

    fn zeros(&mut self, count: usize) {
        self.resize(self.len().saturating_add(count), 0);
    }

    fn octets(&self) -> usize {
        self.len()
    }
}

impl<'a, S: Sink> Walk<'a, S> {
    pub(super) fn new(from: Encoding, to: Encoding, message: &'a [u8], sink: S) -> Self {
        let operations_left = message.len().saturating_mul(OPERATIONS_PER_OCTET).saturating_add(4 * OPERATIONS_MAX);
        Self { message, from, is_big: false, at: 0, to, sink, dropping: 0, operations_left }
    }

    /// Carries out the operations, which must read the whole message.
    pub(super) fn run(mut self, ops: &[Op]) -> Result<S, CodecProblem> {
        self.headers()?;
        self.ops(ops)?;
        let left = self.message.len().saturating_sub(self.at);
        let padding = if self.from == Encoding::Cdr { PADDING_MAX } else { 0 };
        if left > padding { Err(CodecProblem::TooLong(left)) } else { Ok(self.sink) }
    }

    fn headers(&mut self) -> Result<(), CodecProblem> {
        if self.from == Encoding::Cdr {
            self.is_big = match self.take(CDR_HEADER_OCTETS)? {
                [0, 0, ..] => true,
                [0, 1, ..] => false,
                _ => return Err(CodecProblem::Header),
            };
        }
        if self.to == Encoding::Cdr {
            self.sink.put(&[0, 1, 0, 0]);
        }
        Ok(())
    }

    fn ops(&mut self, ops: &[Op]) -> Result<(), CodecProblem> {
        self.operations_left = self.operations_left.checked_sub(ops.len()).ok_or(CodecProblem::TooManyValues)?;
        ops.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op) -> Result<(), CodecProblem> {
        match op {
            Op::Numbers { width, count } => self.numbers(*width, *count),
            Op::Bools { count } => self.bools(*count),
            Op::Time(time) => self.time(*time),
            Op::Text { most } => self.text(*most),
            Op::WideText { most } => self.wide_text(*most),
            Op::Array { from, to, element } => self.array(*from, *to, element),
            Op::ReadEmpty => self.take(usize::from(self.from == Encoding::Cdr)).map(drop),
            Op::WriteEmpty => self.zeros(1, usize::from(self.to == Encoding::Cdr)),
            Op::Drop(ops) => {
                self.dropping += 1;
                self.ops(ops)?;
                self.dropping -= 1;
                Ok(())
            }
            Op::ZeroNumbers { width, count } => self.zeros(*width, *count),
            Op::ZeroText => self.put_text(&[]),
            Op::ZeroArray { count, element } => self.zero_array(*count, element),
            Op::Reorder { fields, targets } => self.reorder(fields, targets),
        }
    }

    fn numbers(&mut self, width: usize, count: usize) -> Result<(), CodecProblem> {
        if count == 0 {
            return Ok(());
        }
        self.align(width)?;
        let octets = self.take(width.checked_mul(count).ok_or(CodecProblem::TooShort)?)?;
        if self.is_big && width > 1 {
            return octets.chunks_exact(width).try_for_each(|number| {
                let mut reversed = [0; 8];
                for (to, from) in reversed.iter_mut().zip(number.iter().rev()) {
                    *to = *from;
                }
                self.put(width, reversed.get(..width).unwrap_or_default())
            });
        }
        self.put(width, octets)
    }

    fn bools(&mut self, count: usize) -> Result<(), CodecProblem> {
        let octets = self.take(count)?;
        if octets.iter().any(|octet| *octet > 1) {
            return Err(CodecProblem::Bool);
        }
        self.put(1, octets)
    }

    fn time(&mut self, op: TimeOp) -> Result<(), CodecProblem> {
        let (seconds, nanoseconds) = (self.number()?, self.number()?);
        let (seconds, nanoseconds) = match op {
            TimeOp::Time if seconds > i32::MAX as u32 => return Err(CodecProblem::Range),
            TimeOp::Time => (seconds, nanoseconds),
            TimeOp::DurationFromRos1 => {
                let total = i64::from(seconds as i32) * NANOSECONDS + i64::from(nanoseconds as i32);
                let seconds = i32::try_from(total.div_euclid(NANOSECONDS)).map_err(|_| CodecProblem::Range)?;
                (seconds as u32, total.rem_euclid(NANOSECONDS) as u32)
            }
            TimeOp::DurationFromRos2 if nanoseconds > i32::MAX as u32 => return Err(CodecProblem::Range),
            TimeOp::DurationFromRos2 => (seconds, nanoseconds),
        };
        self.put(4, &seconds.to_le_bytes())?;
        self.put(4, &nanoseconds.to_le_bytes())
    }

    fn text(&mut self, most: Option<u32>) -> Result<(), CodecProblem> {
        let length = self.number()?;
        let mut text = self.take(length as usize)?;
        if self.from == Encoding::Cdr {
            // Some writers send a length of 0 for an empty text.
            text = match text {
                [] => text,
                [text @ .., 0] => text,
                _ => return Err(CodecProblem::Text),
            };
        }
        check_most(text.len(), most)?;
        self.put_text(text)
    }

    fn put_text(&mut self, text: &[u8]) -> Result<(), CodecProblem> {
        let is_cdr = self.to == Encoding::Cdr;
        let length = u32::try_from(text.len() + usize::from(is_cdr)).map_err(|_| CodecProblem::TooMany(u32::MAX))?;
        self.put(4, &length.to_le_bytes())?;
        self.put(1, text)?;
        self.zeros(1, usize::from(is_cdr))
    }

    fn wide_text(&mut self, most: Option<u32>) -> Result<(), CodecProblem> {
        let length = self.number()?;
        check_most(length as usize, most)?;
        self.put(4, &length.to_le_bytes())?;
        self.numbers(2, length as usize)
    }

    fn array(&mut self, from: Count, to: Count, element: &[Op]) -> Result<(), CodecProblem> {
        let count = match from {
            Count::Fixed(count) => count,
            Count::One | Count::Any | Count::AtMost(_) => self.number()?,
        };
        match to {
            Count::Fixed(fixed) if fixed != count => return Err(CodecProblem::Length(fixed)),
            Count::Fixed(_) => {}
            Count::AtMost(most) if count > most => return Err(CodecProblem::TooMany(most)),
            Count::One | Count::Any | Count::AtMost(_) => self.put(4, &count.to_le_bytes())?,
        }
        let all = |one: usize| one.checked_mul(count as usize).ok_or(CodecProblem::TooShort);
        match element {
            [Op::Numbers { width, count: one }] => self.numbers(*width, all(*one)?),
            [Op::Bools { count: one }] => self.bools(all(*one)?),
            _ => self.elements(count, element),
        }
    }

    fn elements(&mut self, count: u32, element: &[Op]) -> Result<(), CodecProblem> {
        // Each element has at least one octet, except of a type without fields.
        let left = self.message.len().saturating_sub(self.at);
        if count as usize > left.max(EMPTY_ELEMENTS_MAX as usize) {
            return Err(CodecProblem::TooShort);
        }
        (0..count).try_for_each(|_| self.ops(element))
    }

    fn zero_array(&mut self, count: u32, element: &[Op]) -> Result<(), CodecProblem> {
        match element {
            [Op::ZeroNumbers { width, count: one }] => self.zeros(*width, one.saturating_mul(count as usize)),
            _ => (0..count).try_for_each(|_| self.ops(element)),
        }
    }

    fn reorder(&mut self, fields: &[Vec<Op>], targets: &[(Option<usize>, Vec<Op>)]) -> Result<(), CodecProblem> {
        let mut starts = Vec::with_capacity(fields.len());
        for field in fields {
            starts.push(self.at);
            self.ops(field)?;
        }
        let end = self.at;
        for (source, target) in targets {
            if let Some(start) = source.and_then(|source| starts.get(source)) {
                self.at = *start;
            }
            self.ops(target)?;
        }
        self.at = end;
        Ok(())
    }

    /// Reads a number of 32 bits.
    fn number(&mut self) -> Result<u32, CodecProblem> {
        self.align(4)?;
        let octets = *self.take(4)?.first_chunk().ok_or(CodecProblem::TooShort)?;
        Ok(if self.is_big { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) })
    }

    /// Passes the padding before a number.
    fn align(&mut self, width: usize) -> Result<(), CodecProblem> {
        if self.from == Encoding::Cdr {
            self.take(padding(self.at, width))?;
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CodecProblem> {
        let end = self.at.checked_add(count).ok_or(CodecProblem::TooShort)?;
        let taken = self.message.get(self.at..end).ok_or(CodecProblem::TooShort)?;
        self.at = end;
        Ok(taken)
    }

    /// Writes numbers of the given length in little-endian order.
    fn put(&mut self, width: usize, octets: &[u8]) -> Result<(), CodecProblem> {
        if self.dropping > 0 || octets.is_empty() {
            return Ok(());
        }
        self.pad(width);
        self.sink.put(octets);
        self.check_length()
    }

    fn zeros(&mut self, width: usize, count: usize) -> Result<(), CodecProblem> {
        if self.dropping > 0 || count == 0 {
            return Ok(());
        }
        self.pad(width);
        let octets = width.saturating_mul(count);
        if octets > TRANSCODED_OCTETS_MAX {
            return Err(CodecProblem::TooManyValues);
        }
        self.sink.zeros(octets);
        self.check_length()
    }

    fn pad(&mut self, width: usize) {
        if self.to == Encoding::Cdr {
            self.sink.zeros(padding(self.sink.octets(), width));
        }
    }

    fn check_length(&self) -> Result<(), CodecProblem> {
        if self.sink.octets() > TRANSCODED_OCTETS_MAX { Err(CodecProblem::TooManyValues) } else { Ok(()) }
    }
}

/// Returns the octets before a number. The encapsulation header has 4 octets, from whose end the alignment counts.
const fn padding(at: usize, width: usize) -> usize {
    at.wrapping_sub(CDR_HEADER_OCTETS).wrapping_neg() % width
}

const fn check_most(length: usize, most: Option<u32>) -> Result<(), CodecProblem> {
    match most {
        Some(most) if length > most as usize => Err(CodecProblem::TooMany(most)),
        _ => Ok(()),
    }
}
