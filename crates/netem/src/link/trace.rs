//! Recorded delivery opportunities, in the format of Mahimahi's `mm-link`.
//!
//! The format is a text file with one number per line: the milliseconds since the start at which one packet of 1500
//! octets could be delivered. A number may be repeated, and numbers do not decrease. After the last line the trace
//! repeats; its period is the last number.

use std::time::Duration;

use viaduct_units::Mono;

use crate::limits::TRACE_OPPORTUNITIES_MAX;

/// Octets per opportunity. Mahimahi counts 1504, four of which are the header of its tunnel.
pub const OPPORTUNITY_OCTETS: usize = 1500;

/// Delivery opportunities recorded on a real link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Time of each opportunity in milliseconds, ascending. The list is not empty.
    opportunities_ms: Vec<u32>,
    /// Time after which the trace repeats, above zero and at least the last time.
    period_ms: u32,
}

/// The reason why a text is not a delivery trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line is not a whole number of milliseconds below 49 days.
    #[error("line {line}: expected a number of milliseconds, got {got:?}")]
    NotANumber {
        /// The line, from 1.
        line: usize,
        /// The first characters of the line.
        got: String,
    },
    /// A time is before that of the previous line.
    #[error("line {line}: {ms} ms comes after {before} ms")]
    Backwards {
        /// The line, from 1.
        line: usize,
        /// Time of the line in milliseconds.
        ms: u32,
        /// Time of the previous line in milliseconds.
        before: u32,
    },
    /// There is no line, or none after time 0: the trace would repeat without time passing.
    #[error("the trace has no opportunity after 0 ms")]
    Empty,
    /// More lines than [`TRACE_OPPORTUNITIES_MAX`].
    #[error("the trace has more than {TRACE_OPPORTUNITIES_MAX} opportunities")]
    TooLong,
}

/// Characters of an invalid line shown in an error.
const SHOWN_CHARS: usize = 20;

impl DeliveryTrace {
    /// Parses a trace. Blank lines are skipped.
    ///
    /// # Errors
    /// Returns the first invalid line, or an error for a trace that never delivers.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut opportunities_ms: Vec<u32> = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
            let before = opportunities_ms.last().copied().unwrap_or(0);
            opportunities_ms.push(parse_line(index + 1, line, before)?);
            if opportunities_ms.len() > TRACE_OPPORTUNITIES_MAX {
                return Err(TraceError::TooLong);
            }
        }
        let period_ms = opportunities_ms.last().copied().filter(|last| *last > 0).ok_or(TraceError::Empty)?;
        Ok(Self { opportunities_ms, period_ms })
    }

    /// Returns a trace with the given opportunities, which ascend and are at most `period_ms`. If there is none, the end of
    /// the period is one.
    pub(super) fn from_opportunities(mut opportunities_ms: Vec<u32>, period_ms: u32) -> Self {
        if opportunities_ms.is_empty() {
            opportunities_ms.push(period_ms);
        }
        Self { opportunities_ms, period_ms: period_ms.max(1) }
    }

    /// Returns the time of each opportunity in milliseconds, ascending.
    #[must_use]
    pub fn opportunities_ms(&self) -> &[u32] {
        &self.opportunities_ms
    }

    /// Returns the time after which the trace repeats.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms.into())
    }

    /// Returns the mean rate in bits per second.
    #[must_use]
    pub fn mean_bits_per_second(&self) -> f64 {
        let bits = self.opportunities_ms.len() as f64 * OPPORTUNITY_OCTETS as f64 * 8.0;
        bits * 1000.0 / f64::from(self.period_ms)
    }

    /// Returns the number of the first opportunity at or after a time, counted across repetitions.
    fn first_from(&self, now: Mono) -> u64 {
        let period = u128::from(self.period_ms) * 1_000_000;
        let (round, within) = (now.0.as_nanos() / period, now.0.as_nanos() % period);
        let before = self.opportunities_ms.partition_point(|ms| u128::from(*ms) * 1_000_000 < within);
        let round = u64::try_from(round).unwrap_or(u64::MAX);
        round.saturating_mul(self.opportunities_ms.len() as u64).saturating_add(before as u64)
    }

    /// Returns the time of an opportunity.
    fn time(&self, number: u64) -> Mono {
        let lines = self.opportunities_ms.len() as u64;
        let within = usize::try_from(number % lines).ok().and_then(|index| self.opportunities_ms.get(index));
        let ms = (number / lines).saturating_mul(u64::from(self.period_ms));
        Mono(Duration::from_millis(ms.saturating_add(within.copied().map_or(0, u64::from))))
    }
}

fn parse_line(line: usize, text: &str, before: u32) -> Result<u32, TraceError> {
    let not_a_number = || TraceError::NotANumber { line, got: text.chars().take(SHOWN_CHARS).collect() };
    let ms: u32 = text.parse().map_err(|_| not_a_number())?;
    if ms < before {
        return Err(TraceError::Backwards { line, ms, before });
    }
    Ok(ms)
}

/// Position in a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// Time 0 of the trace.
    start: Mono,
    /// Number of the current opportunity, counted across repetitions.
    number: u64,
    /// Octets of the current opportunity already used.
    used: usize,
}

impl Cursor {
    /// Returns the start of a trace that begins at the given time.
    pub(super) fn starting_at(now: Mono) -> Self {
        Self { start: now, ..Self::default() }
    }

    /// Returns the delivery time of a packet that enters now. A packet may span opportunities. Unused capacity expires
    /// with its opportunity.
    pub(super) fn take(&mut self, trace: &DeliveryTrace, now: Mono, octets: usize) -> Mono {
        let first = trace.first_from(Mono(now.since(self.start)));
        if first > self.number {
            (self.number, self.used) = (first, 0);
        }
        if self.used >= OPPORTUNITY_OCTETS {
            (self.number, self.used) = (self.number.saturating_add(1), 0);
        }
        let octets = self.used + octets;
        // A packet that ends with an opportunity needs nothing of the next one.
        let further = octets.saturating_sub(1) / OPPORTUNITY_OCTETS;
        self.number = self.number.saturating_add(further as u64);
        self.used = octets - further * OPPORTUNITY_OCTETS;
        self.start.plus(trace.time(self.number).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn a_packet_leaves_at_the_next_opportunity() {
        let trace = DeliveryTrace::parse("5\n5\n20\n").unwrap();
        let mut cursor = Cursor::default();
        let taken: Vec<Mono> = (0..4).map(|_| cursor.take(&trace, ms(0), 1500)).collect();
        // The third line ends the period: the first opportunity of the next period is at 20 + 5.
        assert_eq!(taken, [ms(5), ms(5), ms(20), ms(25)]);
        assert_eq!(trace.mean_bits_per_second(), 1_800_000.0);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let trace = DeliveryTrace::parse("1\n2\n3\n4\n").unwrap();
        let mut cursor = Cursor::default();
        let taken: Vec<Mono> = [700, 800, 1, 3000].iter().map(|octets| cursor.take(&trace, ms(0), *octets)).collect();
        assert_eq!(taken, [ms(1), ms(1), ms(2), ms(4)]);
    }

    #[test]
    fn unused_opportunities_expire() {
        let trace = DeliveryTrace::parse("1\n2\n3\n").unwrap();
        let mut cursor = Cursor::default();
        assert_eq!(cursor.take(&trace, ms(0), 100), ms(1));
        assert_eq!(cursor.take(&trace, Mono(Duration::from_micros(1500)), 100), ms(2));
        // The instant of an opportunity still belongs to it; and 300 periods later it is the same.
        assert_eq!(cursor.take(&trace, ms(902), 1500), ms(902));
        assert_eq!(cursor.take(&trace, ms(902), 1500), ms(903));
    }

    #[test]
    fn a_trace_begins_at_its_start() {
        let trace = DeliveryTrace::parse("5\n20\n").unwrap();
        let mut cursor = Cursor::starting_at(ms(1000));
        let taken: Vec<Mono> = (0..3).map(|_| cursor.take(&trace, ms(1001), 1500)).collect();
        assert_eq!(taken, [ms(1005), ms(1020), ms(1025)]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = |text: &str| DeliveryTrace::parse(text).unwrap_err().to_string();
        assert_eq!(error("1\n\nx1\n"), "line 3: expected a number of milliseconds, got \"x1\"");
        assert_eq!(error("7\n5\n"), "line 2: 5 ms comes after 7 ms");
        assert_eq!(error("0\n0\n"), "the trace has no opportunity after 0 ms");
        assert_eq!(error(""), "the trace has no opportunity after 0 ms");
        assert!(error("4294967296").starts_with("line 1"));
    }
}
