//! Encoding of pictures under the budget, and their publication.

use bytes::Bytes;
use viaduct_bus::{Counter, Gauge, Loan, Meta, Publisher, Qos};
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::its::timestamp;
use viaduct_node::{Component, Context, StartError};
use viaduct_units::Now;

use super::budget::Budget;
use super::jpeg::{HuffmanTables, JpegFile};
use super::mark::Mark;
use super::picture::Picture;
use super::quality::{Form, QualityControl};
use super::settings::CameraSettings;
use crate::frame_segment::{FrameSegment, SEGMENT_OCTETS};

/// Octets of the frame segment before its content: marker and length.
const SEGMENT_HEADER: usize = 4;

/// Published = captured - skipped - dropped.
pub(super) struct Counts {
    published: Counter,
    over_budget: Counter,
    no_buffer: Counter,
    too_large: Counter,
    pub(super) malformed: Counter,
    quality: Gauge,
    length: Gauge,
}

/// The publisher of a camera.
pub(super) struct Output {
    publisher: Publisher<CompressedImage>,
    pub(super) budget: Budget,
    control: QualityControl,
    tables: HuffmanTables,
    frame_id: String,
    index: u8,
    octets_max: usize,
    /// Number of the next frame.
    frame: u32,
    /// Picture in the size in which it is encoded.
    picture: Picture,
    /// Decoded picture of a file.
    decoded: Picture,
    pub(super) counts: Counts,
}

impl Output {
    pub(super) fn new<C: Component>(
        settings: &CameraSettings,
        offered: Qos,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            publisher: context.publisher(&settings.topic, offered)?,
            budget: Budget::default(),
            control: QualityControl::new(settings.jpeg.limits()),
            tables: HuffmanTables::new(),
            frame_id: settings.frame_id.clone().unwrap_or_else(|| context.name().to_owned()),
            index: settings.index,
            octets_max: settings.octets_max(),
            frame: 0,
            picture: Picture::default(),
            decoded: Picture::default(),
            counts: Counts {
                published: context.counter("published"),
                over_budget: context.counter_for("skipped", "budget"),
                no_buffer: context.counter_for("dropped", "no_buffer"),
                too_large: context.counter_for("dropped", "too_large"),
                malformed: context.counter_for("dropped", "malformed"),
                quality: context.gauge("quality_percent"),
                length: context.gauge("picture_octets"),
            },
        })
    }

    /// Encodes and publishes a picture that `draw` draws in the size of the picture that it gets. If `mark` is set, the mark is
    /// drawn over it.
    pub(super) fn publish_drawn(
        &mut self,
        captured: Now,
        size: (usize, usize),
        mark: bool,
        mut draw: impl FnMut(&mut Picture),
    ) {
        let budget = self.budget.current(captured.mono);
        let Some(form) = self.control.next(budget) else {
            return self.counts.over_budget.increment();
        };
        let mut render = |output: &mut Self, form: Form| {
            output.picture.resize(scaled(size.0, form), scaled(size.1, form));
            draw(&mut output.picture);
            mark && output.draw_mark(captured)
        };
        let marked = render(self, form);
        self.publish_picture(captured, form, budget, marked, render);
    }

    /// Publishes a JPEG file: as it is if the budget permits, otherwise with a lower quality.
    pub(super) fn publish_file(&mut self, captured: Now, file: &[u8]) {
        let Ok(parsed) = JpegFile::parse(file) else {
            return self.counts.malformed.increment();
        };
        let budget = self.budget.current(captured.mono);
        if self.control.passes(parsed.complete_len(&self.tables), budget) {
            return self.publish_unchanged(captured, &parsed);
        }
        let Some(form) = self.control.next(budget) else {
            return self.counts.over_budget.increment();
        };
        if self.decoded.decode(file).is_err() {
            return self.counts.malformed.increment();
        }
        let render = |output: &mut Self, form: Form| {
            let (width, height) = (scaled(output.decoded.width, form), scaled(output.decoded.height, form));
            output.decoded.reduce(width, height, &mut output.picture);
            false
        };
        render(self, form);
        self.publish_picture(captured, form, budget, false, render);
    }

    /// Publishes a payload that is not a picture.
    pub(super) fn publish_raw(&mut self, captured: Now, payload: &[u8]) {
        let Some(mut buffer) = self.loan(payload.len()) else { return };
        buffer.copy_from_slice(payload);
        let segment = self.segment(captured, false, false).to_octets();
        buffer[2..2 + SEGMENT_OCTETS].copy_from_slice(&segment);
        self.publish(captured, buffer.freeze(), "raw");
    }

    fn publish_unchanged(&mut self, captured: Now, file: &JpegFile<'_>) {
        let length = file.complete_len(&self.tables);
        if length > self.octets_max {
            return self.counts.too_large.increment();
        }
        let Some(mut buffer) = self.loan(length) else { return };
        file.write_complete(&self.segment(captured, false, false).to_octets(), &self.tables, &mut buffer);
        self.counts.quality.clear();
        self.publish(captured, buffer.freeze(), "jpeg");
    }

    /// Encodes and publishes `picture`. If it is too long, it is rendered and encoded again once, in a smaller form.
    fn publish_picture(
        &mut self,
        captured: Now,
        form: Form,
        budget: Option<u32>,
        marked: bool,
        mut render: impl FnMut(&mut Self, Form) -> bool,
    ) {
        let Some(mut buffer) = self.loan(self.octets_max) else { return };
        let mut form = form;
        let mut encoded = self.encode(captured, form, marked, &mut buffer);
        let smaller = match encoded {
            Some(length) => self.control.encoded(form, length, budget),
            None => Some(self.control.lowest(form)),
        };
        if let Some(smaller) = smaller {
            form = smaller;
            let marked = render(self, form);
            encoded = self.encode(captured, form, marked, &mut buffer);
        }
        let Some(length) = encoded else {
            return self.counts.too_large.increment();
        };
        self.control.published(form, length);
        self.counts.quality.set(form.quality.into());
        self.publish(captured, buffer.freeze().slice(..length), "jpeg");
    }

    /// Returns the length of the file, or `None` if it does not fit into the buffer.
    fn encode(&self, captured: Now, form: Form, marked: bool, buffer: &mut Loan) -> Option<usize> {
        let segment = self.segment(captured, marked, self.control.is_reduced(form)).to_octets();
        self.picture.encode(form.quality, &segment[SEGMENT_HEADER..], buffer).ok()
    }

    /// Draws the mark. Returns `false` if the picture is too small.
    fn draw_mark(&mut self, captured: Now) -> bool {
        let mark = Mark { camera: self.index, frame: self.frame, time_us: time_us(captured) % (1 << 48) };
        let Picture { width, planes: [luma, blue, red], .. } = &mut self.picture;
        mark.draw(luma, [blue, red], *width)
    }

    fn segment(&self, captured: Now, mark: bool, reduced: bool) -> FrameSegment {
        FrameSegment { camera: self.index, frame: self.frame, time_us: time_us(captured), mark, reduced }
    }

    fn loan(&self, length: usize) -> Option<Loan> {
        let loan = self.publisher.loan(length).ok();
        if loan.is_none() {
            self.counts.no_buffer.increment();
        }
        loan
    }

    fn publish(&mut self, captured: Now, data: Bytes, format: &str) {
        self.frame = self.frame.wrapping_add(1);
        self.counts.published.increment();
        self.counts.length.set(data.len() as f64);
        let image = CompressedImage {
            timestamp: Some(timestamp(captured.tai)),
            data,
            format: format.to_owned(),
            frame_id: self.frame_id.clone(),
        };
        // Drops are counted by the subscriptions.
        let _ = self.publisher.publish_from(Meta::from_origin(captured.tai), image);
    }
}

/// Returns the edge of a picture in a form: a multiple of 8, so that the last blocks are complete, if the edge is long enough.
fn scaled(edge: usize, form: Form) -> usize {
    if form.fourths == 4 {
        return edge;
    }
    let reduced = edge * usize::from(form.fourths) / 4;
    if reduced >= 8 { reduced / 8 * 8 } else { reduced.max(1) }
}

/// Returns the capture time in microseconds since 1970-01-01T00:00:00 TAI.
fn time_us(captured: Now) -> u64 {
    u64::try_from(captured.tai.nanos() / 1000).unwrap_or(0)
}
