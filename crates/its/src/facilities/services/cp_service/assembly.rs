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
    /// Objects that no message can tell: a class of theirs breaks a constraint, or there is no room even for one.
    pub(super) untellable: usize,
    /// Whether sensors or regions were left out, likewise.
    pub(super) sensing_left_out: bool,
}

/// Puts objects, the most useful first, into as few messages as hold them. `first` has what only the first message carries;
/// each message can be understood alone. What cannot be told does not keep anything else from being told.
pub(super) fn assemble(first: &CpmInput, objects: &[Object], octets_max: usize) -> Assembly {
    let mut frame = tellable_frame(first, octets_max);
    let tellable = tellable_objects(&frame, objects, octets_max);
    let mut assembly = Assembly {
        untellable: objects.len() - tellable.len(),
        sensing_left_out: frame.sensors.len() + frame.regions.len() < first.sensors.len() + first.regions.len(),
        ..Assembly::default()
    };
    let mut rest = tellable.as_slice();
    while !(rest.is_empty() && is_bare(&frame)) && assembly.messages.len() < usize::from(SEGMENTS_MAX) {
        let (taken, remaining) = rest.split_at(fitting(&frame, rest, octets_max));
        if taken.is_empty() && is_bare(&frame) {
            break;
        }
        assembly.messages.push(CpmInput { objects: taken.to_vec(), ..frame.clone() });
        frame = bare(&frame);
        rest = remaining;
    }
    assembly.left_out = rest.len();
    number(&mut assembly.messages);
    assembly
}

/// The first message with as much of sensors and regions as can be told: without the regions where they are at fault, without
/// both where the sensors are.
fn tellable_frame(first: &CpmInput, octets_max: usize) -> CpmInput {
    let without_regions = CpmInput { regions: Vec::new(), ..first.clone() };
    let candidates = [first.clone(), without_regions];
    candidates.into_iter().find(|frame| fits(frame, &[], octets_max)).unwrap_or_else(|| bare(first))
}

/// The objects that a message could tell if it told nothing else. They are looked at one by one only where they do not all go
/// into one message.
fn tellable_objects(frame: &CpmInput, objects: &[Object], octets_max: usize) -> Vec<Object> {
    if fits(frame, objects, octets_max) {
        return objects.to_vec();
    }
    let bare = bare(frame);
    let is_tellable = |object: &&Object| fits(&bare, std::slice::from_ref(*object), octets_max);
    objects.iter().filter(is_tellable).cloned().collect()
}

/// The message without what only the first one carries.
fn bare(frame: &CpmInput) -> CpmInput {
    CpmInput { sensors: Vec::new(), regions: Vec::new(), ..frame.clone() }
}

const fn is_bare(frame: &CpmInput) -> bool {
    frame.sensors.is_empty() && frame.regions.is_empty()
}

/// Whether a message with these objects can be encoded and is small enough, as one of several.
fn fits(frame: &CpmInput, objects: &[Object], octets_max: usize) -> bool {
    let segment = Some((SEGMENTS_MAX, SEGMENTS_MAX));
    let message = CpmInput { segment, objects: objects.to_vec(), ..frame.clone() };
    encode(&build(&message)).is_ok_and(|octets| octets.len() <= octets_max)
}

/// How many of the objects fit one message, from the first on.
fn fitting(frame: &CpmInput, objects: &[Object], octets_max: usize) -> usize {
    let fits = |count: usize| fits(frame, objects.get(..count).unwrap_or_default(), octets_max);
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
