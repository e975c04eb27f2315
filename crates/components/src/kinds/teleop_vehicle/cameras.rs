//! The cameras: their pictures on the bus, and the bytes that their encoders may use.

use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::{Counter, Gauge, Meta, Publisher, Sample, Subscriber};
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::its::tai_of;
use viaduct_messages::viaduct::vehicle::CameraBudget;
use viaduct_node::{Context, StartError};
use viaduct_teleop::frames::{Outcome, SentFrame};
use viaduct_units::{Mono, Now, Tai};

use super::settings::CameraSettings;
use super::{LATEST, TeleopVehicle};
use crate::teleop::picture::{NotAJpeg, Picture, PictureInfo, with_info};

/// Time without a picture after which a camera has a fault, if its period is not longer.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// A camera.
pub(super) struct Camera {
    settings: CameraSettings,
    pictures: Subscriber<CompressedImage>,
    budget: Option<Publisher<CameraBudget>>,
    index: u8,
    /// Number of the latest picture that had none of its own.
    number: u32,
    /// Time of the latest picture, or of the start.
    latest: Mono,
    received: Counter,
    not_jpeg: Counter,
    stale: Counter,
    refused: Counter,
    unmet: Counter,
    over_budget: Counter,
    sent: Counter,
    arrived: Counter,
    lost: Counter,
    budget_octets: Gauge,
    picture_octets: Gauge,
    confirmed_ms: Gauge,
}

impl Camera {
    pub(super) fn new(
        index: u8,
        settings: &CameraSettings,
        now: Mono,
        context: &Context<TeleopVehicle>,
    ) -> Result<Self, StartError> {
        let topic = &settings.topic;
        let budget = settings.budget.as_ref().map(|topic| context.publisher(topic, LATEST)).transpose()?;
        Ok(Self {
            pictures: context.subscribe(topic, LATEST)?,
            budget,
            index,
            number: 0,
            latest: now,
            received: context.counter_for("pictures", topic),
            not_jpeg: context.counter_for("pictures_refused", "not_jpeg"),
            stale: context.counter_for("pictures_refused", "stale"),
            refused: context.counter_for("pictures_refused", "too_long"),
            unmet: context.counter_for("pictures_refused", "no_desk"),
            over_budget: context.counter_for("pictures_refused", "over_budget"),
            sent: context.counter_for("camera_frames", topic),
            arrived: context.counter_for("camera_frames_arrived", topic),
            lost: context.counter_for("camera_frames_lost", topic),
            budget_octets: context.gauge_for("camera_budget_octets", topic),
            picture_octets: context.gauge_for("camera_picture_octets", topic),
            confirmed_ms: context.gauge_for("camera_confirmed_ms", topic),
            settings: settings.clone(),
        })
    }

    /// Waits for the next picture. Cancelling the wait loses nothing.
    pub(super) async fn next(&self) -> Sample<CompressedImage> {
        match self.pictures.recv().await {
            Some(picture) => picture,
            None => std::future::pending().await,
        }
    }

    /// Returns the frame of a picture, with its number and time, or `None` if the picture is not sent.
    pub(super) fn frame(&mut self, now: Now, image: &Sample<CompressedImage>) -> Option<Bytes> {
        self.latest = now.mono;
        self.received.increment();
        let capture = image.timestamp.as_ref().map_or(image.meta().origin, tai_of);
        let Ok((frame, info)) = self.with_number(&image.data, capture) else {
            self.not_jpeg.increment();
            return None;
        };
        if now.tai.since(info.capture) > Duration::from_millis(self.settings.lifespan_ms) {
            self.stale.increment();
            return None;
        }
        self.picture_octets.set(frame.len() as f64);
        Some(frame)
    }

    fn with_number(&mut self, jpeg: &Bytes, capture: Tai) -> Result<(Bytes, PictureInfo), NotAJpeg> {
        if let Some(info) = Picture::parse(jpeg)?.info {
            return Ok((jpeg.clone(), info));
        }
        self.number = self.number.wrapping_add(1);
        let info = PictureInfo { number: self.number, capture, mark: false, reduced: false };
        Ok((with_info(jpeg, self.index, &info)?, info))
    }

    /// Counts a frame that the machine has accepted or refused.
    pub(super) fn count_pushed(&self, accepted: bool) {
        if accepted { self.sent.increment() } else { self.refused.increment() }
    }

    /// Counts a frame that is not sent because no desk has been connected yet.
    pub(super) fn count_unmet(&self) {
        self.unmet.increment();
    }

    /// Returns `true` if the link is likely to carry a frame in time: the bytes that the link permits now cover half of it, and later
    /// frames pay for the rest. Otherwise the frame is counted and must not be sent. A camera without a budget always sends.
    pub(super) fn admit(&self, frame: &Bytes, permitted_octets: usize) -> bool {
        let admitted = self.budget.is_none() || frame.len() / 2 <= permitted_octets;
        if !admitted {
            self.over_budget.increment();
        }
        admitted
    }

    /// Counts a frame that is finished.
    pub(super) fn count_finished(&self, frame: &SentFrame) {
        match frame.outcome {
            Outcome::Arrived => {
                self.arrived.increment();
                self.confirmed_ms.set(frame.duration.as_secs_f64() * 1e3);
            }
            Outcome::Lost(_) => self.lost.increment(),
        }
    }

    /// Publishes the bytes that the camera may use for a picture.
    pub(super) fn publish_budget(&self, now: Tai, octets_per_frame: u32) {
        self.budget_octets.set(octets_per_frame.into());
        if let Some(publisher) = &self.budget {
            // A subscriber whose queue is full counts the drop.
            let _ = publisher.try_publish_from(Meta::from_origin(now), CameraBudget { octets_per_frame });
        }
    }

    pub(super) fn settings(&self) -> &CameraSettings {
        &self.settings
    }

    /// Returns the fault of a camera that publishes no pictures, or `None`.
    pub(super) fn fault(&self, now: Mono) -> Option<String> {
        let period = Duration::from_secs_f64(self.settings.period_ms / 1e3);
        let silent = now.since(self.latest) > SILENCE_MAX.max(3 * period);
        silent.then(|| format!("no pictures on {}", self.settings.topic))
    }
}

/// Returns the bytes that each camera may use for a picture, if all cameras together may use `bytes_per_second`.
///
/// Each camera gets its smallest useful picture, in order, as long as the rate is sufficient. Then each one gets its largest
/// picture, in order. So the first camera degrades last: below its smallest picture, it gets the whole rate and sends fewer pictures.
pub(super) fn budgets<'a>(
    cameras: impl Iterator<Item = &'a CameraSettings> + Clone,
    bytes_per_second: f64,
) -> Vec<u32> {
    let first = cameras.clone().next();
    let mut left = bytes_per_second;
    let mut budgets: Vec<u32> = cameras
        .clone()
        .map(|camera| {
            let least = f64::from(camera.octets_min) * pictures_per_second(camera);
            if least > left {
                return 0;
            }
            left -= least;
            camera.octets_min
        })
        .collect();
    for (camera, budget) in cameras.zip(&mut budgets) {
        // A later camera without its smallest useful picture gets nothing.
        if *budget < camera.octets_min {
            continue;
        }
        let more = (left / pictures_per_second(camera)).min(f64::from(camera.octets_max - camera.octets_min)).max(0.0);
        left -= more * pictures_per_second(camera);
        // A conversion from a float saturates.
        *budget += more as u32;
    }
    // The first camera reduces its rate. Without any pictures, the link would never be found to be faster.
    if let (Some(camera), Some(budget @ 0)) = (first, budgets.first_mut()) {
        *budget = (left / pictures_per_second(camera)) as u32;
    }
    budgets
}

fn pictures_per_second(camera: &CameraSettings) -> f64 {
    1e3 / camera.period_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cameras(count: usize) -> Vec<CameraSettings> {
        let json = serde_json::json!({ "topic": "camera", "octets_min": 4000, "octets_max": 100_000 });
        let camera: CameraSettings = serde_json::from_value(json).unwrap();
        vec![camera; count]
    }

    #[test]
    fn the_first_camera_degrades_last() {
        // Ten pictures a second each.
        for (kilobytes_per_second, expected) in [
            (10_000, [100_000, 100_000, 100_000, 100_000]),
            (3000, [100_000, 100_000, 96_000, 4000]),
            (1000, [88_000, 4000, 4000, 4000]),
            (160, [4000, 4000, 4000, 4000]),
            (150, [7000, 4000, 4000, 0]),
            (30, [3000, 0, 0, 0]),
            (0, [0, 0, 0, 0]),
        ] {
            let budgets = budgets(cameras(4).iter(), f64::from(kilobytes_per_second) * 1e3);
            assert_eq!(budgets, expected, "{kilobytes_per_second} kB/s");
        }
    }
}
