//! One or more CPMs that each fit a packet (TS 103 324 V2.1.1, 6.1.3).

use viaduct_etsi::cpm_ts103324_v211::encode;

use crate::facilities::cpm::{CpmInput, Object, SEGMENTS_MAX, build};

/// What became of one generation event.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// The messages, in their order.
    pub(super) messages: Vec<CpmInput>,
    /// Objects that did not fit beside the others; they were the least useful.
    pub(super) left_out: usize,
}

/// Puts objects, the most useful first, into as few messages as hold them. `first` has what only the first message carries;
/// each message can be understood alone.
pub(super) fn assemble(first: &CpmInput, objects: &[Object], octets_max: usize) -> Assembly {
    let mut assembly = Assembly::default();
    let mut rest = objects;
    let mut frame = first.clone();
    loop {
        let (taken, remaining) = rest.split_at(fitting(&frame, rest, octets_max));
        if taken.is_empty() && !rest.is_empty() && frame.sensors.is_empty() && frame.regions.is_empty() {
            break;
        }
        rest = remaining;
        let mut message = frame.clone();
        message.objects = taken.to_vec();
        assembly.messages.push(message);
        frame.sensors.clear();
        frame.regions.clear();
        if rest.is_empty() || assembly.messages.len() >= usize::from(SEGMENTS_MAX) {
            break;
        }
    }
    assembly.left_out = rest.len();
    number(&mut assembly.messages);
    assembly
}

/// How many of the objects fit one message, from the first on.
fn fitting(frame: &CpmInput, objects: &[Object], octets_max: usize) -> usize {
    let fits = |count: usize| {
        let segment = Some((SEGMENTS_MAX, SEGMENTS_MAX));
        let objects = objects.get(..count).unwrap_or_default().to_vec();
        let message = CpmInput { segment, objects, ..frame.clone() };
        encode(&build(&message)).is_ok_and(|octets| octets.len() <= octets_max)
    };
    // The size grows with the count: a search by halves.
    let (mut fitting, mut too_many) = (0, objects.len() + 1);
    while too_many - fitting > 1 {
        let middle = usize::midpoint(fitting, too_many);
        if fits(middle) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    fitting
}

/// Several messages say which of how many each is (`messageSegmentInfo`).
fn number(messages: &mut [CpmInput]) {
    let total = u8::try_from(messages.len()).unwrap_or(SEGMENTS_MAX);
    if total > 1 {
        for (this, message) in (1..).zip(messages) {
            message.segment = Some((this, total));
        }
    }
}
