//! Identity of a run of the backend, which qualifies sequence numbers.

use std::fmt;
use std::str::FromStr;

use viaduct_units::Tai;

/// A run of the backend: its start time in nanoseconds. Sequence numbers start again with each run, so a number from another
/// run is meaningless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run(u64);

/// The `id` of an event in a live stream, written as `run-seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) run: Run,
    pub(crate) seq: u64,
}

/// The text is not an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidEventId;

impl Run {
    pub(crate) fn started(at: Tai) -> Self {
        Self(at.nanos().cast_unsigned())
    }
}

impl fmt::Display for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}", self.0)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.run, self.seq)
    }
}

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let (run, seq) = text.split_once('-').ok_or(InvalidEventId)?;
        let run = u64::from_str_radix(run, 16).map_err(|_| InvalidEventId)?;
        Ok(Self { run: Run(run), seq: seq.parse().map_err(|_| InvalidEventId)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_round_trips() {
        for nanos in [0, -1, 1_726_061_434_092_870_123] {
            let id = EventId { run: Run::started(Tai::from_nanos(nanos)), seq: 12 };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for bad in ["", "12", "-", "x-1", "1-", "1-x", "1-2-3"] {
            assert_eq!(bad.parse::<EventId>(), Err(InvalidEventId), "{bad}");
        }
    }
}
