//! Assembly of one or more CPMs that each fit a packet (TS 103 324 V2.1.1, 6.1.3).

use viaduct_etsi::cpm_ts103324_v211::encode;

use crate::facilities::cpm::{CpmInput, Object, SEGMENTS_MAX, build};

/// Result of one generation event.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// The messages, in their order.
    pub(super) messages: Vec<CpmInput>,
    /// Objects that did not fit; they had the lowest utility.
    pub(super) left_out: usize,
    /// Objects that fit no message: one of their classes is invalid, or they are larger than a message.
    pub(super) unsendable: usize,
    /// `true` if sensors or regions were omitted because they fit no message.
    pub(super) sensing_omitted: bool,
}

/// Distributes objects, those with the highest utility first, over as few messages as possible. `first` contains the
/// data of the first message only. Each message can be decoded alone. Invalid data is omitted without affecting the
/// rest.
pub(super) fn assemble(first: &CpmInput, objects: &[Object], octets_max: usize) -> Assembly {
    let mut frame = sendable_frame(first, octets_max);
    let sendable = sendable_objects(&frame, objects, octets_max);
    let mut assembly = Assembly {
        unsendable: objects.len() - sendable.len(),
        sensing_omitted: frame.sensors.len() + frame.regions.len() < first.sensors.len() + first.regions.len(),
        ..Assembly::default()
    };
    let mut rest = sendable.as_slice();
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

/// Returns the first message with the valid part of its sensors and regions: without regions if these are invalid,
/// without both if the sensors are invalid.
fn sendable_frame(first: &CpmInput, octets_max: usize) -> CpmInput {
    let without_regions = CpmInput { regions: Vec::new(), ..first.clone() };
    let candidates = [first.clone(), without_regions];
    candidates.into_iter().find(|frame| fits(frame, &[], octets_max)).unwrap_or_else(|| bare(first))
}

/// Returns the objects that fit a message on their own. They are tested one by one only if they do not all fit one
/// message.
fn sendable_objects(frame: &CpmInput, objects: &[Object], octets_max: usize) -> Vec<Object> {
    if fits(frame, objects, octets_max) {
        return objects.to_vec();
    }
    let bare = bare(frame);
    let is_sendable = |object: &&Object| fits(&bare, std::slice::from_ref(*object), octets_max);
    objects.iter().filter(is_sendable).cloned().collect()
}

/// Returns the message without sensors and regions.
fn bare(frame: &CpmInput) -> CpmInput {
    CpmInput { sensors: Vec::new(), regions: Vec::new(), ..frame.clone() }
}

const fn is_bare(frame: &CpmInput) -> bool {
    frame.sensors.is_empty() && frame.regions.is_empty()
}

/// Returns `true` if a message with these objects, as one of several segments, can be encoded and is small enough.
fn fits(frame: &CpmInput, objects: &[Object], octets_max: usize) -> bool {
    let segment = Some((SEGMENTS_MAX, SEGMENTS_MAX));
    let message = CpmInput { segment, objects: objects.to_vec(), ..frame.clone() };
    encode(&build(&message)).is_ok_and(|octets| octets.len() <= octets_max)
}

/// Returns the number of objects that fit one message, counted from the first.
fn fitting(frame: &CpmInput, objects: &[Object], octets_max: usize) -> usize {
    let fits = |count: usize| fits(frame, objects.get(..count).unwrap_or_default(), octets_max);
    // The size grows with the number of objects, so a binary search finds the limit.
    let mut fitting = 0;
    let mut too_many = objects.len() + 1;
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

/// Numbers the messages if there are several (`messageSegmentInfo`).
fn number(messages: &mut [CpmInput]) {
    let total = u8::try_from(messages.len()).unwrap_or(SEGMENTS_MAX);
    if total > 1 {
        for (this, message) in (1..).zip(messages) {
            message.segment = Some((this, total));
        }
    }
}
