//! The quality of pictures under a budget of bytes: first the JPEG quality decreases, then the size, then the rate.

/// Relative length of a picture at JPEG qualities 5, 10, 20, ... 100; at 50 it is 1. Measured with pictures of roads; an error is
/// corrected with the length of the last picture.
const LENGTHS: [(u8, f64); 12] = [
    (5, 0.25),
    (10, 0.37),
    (20, 0.56),
    (30, 0.72),
    (40, 0.86),
    (50, 1.0),
    (60, 1.16),
    (70, 1.38),
    (80, 1.75),
    (90, 2.7),
    (95, 3.9),
    (100, 7.5),
];
/// Sizes of a picture in fourths of the configured edge.
const FOURTHS: [u8; 3] = [4, 3, 2];
/// Share of the budget that is planned.
const PLANNED: f64 = 0.92;
/// Largest increase of the quality from one frame to the next.
const QUALITY_STEP: u8 = 4;
/// Frames that must fit at the next larger size before the size increases.
const FRAMES_BEFORE_LARGER: u32 = 10;
/// Budgets that accumulate for a frame that is larger than one.
const SAVED_FRAMES: f64 = 2.0;

/// Limits of the quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QualityLimits {
    /// Lowest and highest JPEG quality, 1 to 100.
    pub(super) least: u8,
    pub(super) most: u8,
    /// Smallest size in fourths of the configured edge, 2 to 4.
    pub(super) fourths_min: u8,
}

/// The form of the next picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// JPEG quality, 1 to 100.
    pub(super) quality: u8,
    /// Size in fourths of the configured edge.
    pub(super) fourths: u8,
}

/// The controller of the quality of one camera.
#[derive(Debug)]
pub(super) struct QualityControl {
    limits: QualityLimits,
    form: Form,
    /// Bytes of a picture in the configured size at quality 50, estimated from the last pictures.
    complexity: Option<f64>,
    /// Bytes that may be published now, or `None` without a budget.
    saved: Option<f64>,
    /// Frames that would have fit at the next larger size, without an interruption.
    fitting: u32,
}

impl QualityControl {
    pub(super) const fn new(limits: QualityLimits) -> Self {
        let form = Form { quality: limits.most, fourths: 4 };
        Self { limits, form, complexity: None, saved: None, fitting: 0 }
    }

    /// Returns the form of the frame that is due, or `None` if the budget permits no frame now. Without a budget, the form is the
    /// configured one.
    pub(super) fn next(&mut self, budget: Option<u32>) -> Option<Form> {
        let Some(budget) = budget.map(f64::from) else {
            (self.form, self.saved, self.fitting) = (Form { quality: self.limits.most, fourths: 4 }, None, 0);
            return Some(self.form);
        };
        if budget <= 0.0 {
            self.saved = Some(0.0);
            return None;
        }
        self.plan(budget);
        let needed = self.expected(self.form).unwrap_or(0.0);
        let saved = (self.saved.unwrap_or(0.0) + budget).min(needed.max(SAVED_FRAMES * budget));
        self.saved = Some(saved);
        (saved >= needed).then_some(self.form)
    }

    /// Returns `true` if a file of that length may be published as it is.
    pub(super) fn passes(&self, octets: usize, budget: Option<u32>) -> bool {
        budget.is_none_or(|budget| octets as f64 <= PLANNED * f64::from(budget))
    }

    /// Notes the length of a published picture.
    pub(super) fn published(&mut self, form: Form, octets: usize) {
        self.saved = self.saved.map(|saved| saved - octets as f64);
        self.learn(form, octets);
    }

    /// Notes the length of an encoded picture, and returns the form in which it fits into the budget if that differs by much.
    pub(super) fn encoded(&mut self, form: Form, octets: usize, budget: Option<u32>) -> Option<Form> {
        let most = SAVED_FRAMES * f64::from(budget?);
        if (octets as f64) <= most.max(self.saved.unwrap_or(0.0)) {
            return None;
        }
        self.learn(form, octets);
        self.plan(f64::from(budget?));
        (self.form != form).then_some(self.form)
    }

    /// Returns the form of lowest quality at the size of another form.
    pub(super) const fn lowest(&self, form: Form) -> Form {
        Form { quality: self.limits.least, fourths: form.fourths }
    }

    /// Returns `true` if the form differs from the configured one.
    pub(super) const fn is_reduced(&self, form: Form) -> bool {
        form.quality != self.limits.most || form.fourths != 4
    }

    fn learn(&mut self, form: Form, octets: usize) {
        let seen = octets as f64 / (relative_length(form.quality) * area(form.fourths));
        let mean = self.complexity.map_or(seen, |known| 0.7 * known + 0.3 * seen);
        // A scene that becomes more complex counts at once.
        self.complexity = Some(mean.max(seen));
    }

    /// Returns the expected length of a picture.
    fn expected(&self, form: Form) -> Option<f64> {
        Some(self.complexity? * relative_length(form.quality) * area(form.fourths))
    }

    /// Chooses the form for a budget of bytes per frame: the largest size at which the lowest quality fits, and at that size the
    /// highest quality.
    fn plan(&mut self, budget: f64) {
        let Some(complexity) = self.complexity else {
            self.form = Form { quality: self.limits.least.midpoint(self.limits.most), fourths: 4 };
            return;
        };
        let quality_at = |fourths| quality_for(budget * PLANNED / (complexity * area(fourths)));
        let mut sizes = FOURTHS.into_iter().filter(|fourths| *fourths >= self.limits.fourths_min);
        let fits = |fourths: &u8| quality_at(*fourths) >= self.limits.least;
        let largest = sizes.clone().find(fits).or(sizes.next_back()).unwrap_or(4);
        let fourths = self.settle(largest);
        let wanted = quality_at(fourths).clamp(self.limits.least, self.limits.most);
        let slow = if fourths == self.form.fourths { self.form.quality.saturating_add(QUALITY_STEP) } else { u8::MAX };
        self.form = Form { quality: wanted.min(slow.max(self.limits.least)), fourths };
    }

    /// Returns the size for this frame: a smaller one at once, a larger one after some frames.
    fn settle(&mut self, largest: u8) -> u8 {
        self.fitting = if largest > self.form.fourths { self.fitting + 1 } else { 0 };
        if largest < self.form.fourths || self.fitting > FRAMES_BEFORE_LARGER {
            self.fitting = 0;
            return largest;
        }
        self.form.fourths
    }
}

/// Returns the share of pixels of a size.
fn area(fourths: u8) -> f64 {
    (f64::from(fourths) / 4.0).powi(2)
}

/// Returns the length of a picture relative to quality 50.
fn relative_length(quality: u8) -> f64 {
    let after = LENGTHS.partition_point(|(known, _)| *known < quality).clamp(1, LENGTHS.len() - 1);
    let ((q0, r0), (q1, r1)) = (LENGTHS[after - 1], LENGTHS[after]);
    let part = (f64::from(quality) - f64::from(q0)) / (f64::from(q1) - f64::from(q0));
    (r0 + (r1 - r0) * part).max(0.05)
}

/// Returns the highest quality whose relative length is at most `relative`, or 0 if there is none.
fn quality_for(relative: f64) -> u8 {
    (1..=100).rev().find(|quality| relative_length(*quality) <= relative).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QualityLimits = QualityLimits { least: 20, most: 80, fourths_min: 2 };

    /// Publishes frames of a scene under a budget, and returns the forms and lengths of the published ones.
    fn run(control: &mut QualityControl, complexity: f64, budget: Option<u32>, frames: usize) -> Vec<(Form, usize)> {
        let mut published = Vec::new();
        for _ in 0..frames {
            let Some(mut form) = control.next(budget) else { continue };
            // The true lengths differ from the table.
            let length = |form: Form| {
                (complexity * relative_length(form.quality).powf(1.2) * area(form.fourths).powf(0.85)) as usize
            };
            if let Some(smaller) = control.encoded(form, length(form), budget) {
                form = smaller;
            }
            control.published(form, length(form));
            published.push((form, length(form)));
        }
        published
    }

    fn mean(published: &[(Form, usize)], frames: usize) -> f64 {
        published.iter().map(|(_, octets)| *octets as f64).sum::<f64>() / frames as f64
    }

    #[test]
    fn without_a_budget_the_configured_quality_is_used() {
        let mut control = QualityControl::new(LIMITS);
        let all = run(&mut control, 30_000.0, None, 20);
        assert!(all.len() == 20 && all.iter().all(|(form, _)| *form == Form { quality: 80, fourths: 4 }));
        assert!(!control.is_reduced(all[0].0));
    }

    #[test]
    fn the_mean_length_follows_the_budget_and_uses_it() {
        for budget in [60_000, 45_000, 30_000, 20_000, 12_000, 6_000, 2_500, 1_000] {
            let mut control = QualityControl::new(LIMITS);
            run(&mut control, 30_000.0, Some(budget), 60);
            let mean = mean(&run(&mut control, 30_000.0, Some(budget), 200), 200) / f64::from(budget);
            assert!((0.5..=1.02).contains(&mean), "{budget}: {mean}");
        }
    }

    #[test]
    fn quality_decreases_before_size_and_size_before_rate() {
        let steady = |budget| {
            let mut control = QualityControl::new(LIMITS);
            run(&mut control, 30_000.0, Some(budget), 60);
            let published = run(&mut control, 30_000.0, Some(budget), 100);
            (published.last().unwrap().0, published.len())
        };
        let (form, frames) = steady(30_000);
        assert!(form.quality < 80 && form.fourths == 4 && frames == 100, "{form:?} {frames}");
        let (form, frames) = steady(9_000);
        assert!(form.fourths < 4 && frames == 100, "{form:?} {frames}");
        let (form, frames) = steady(1_500);
        assert!(form == Form { quality: 20, fourths: 2 } && (20..70).contains(&frames), "{form:?} {frames}");
    }

    #[test]
    fn a_smaller_budget_has_effect_at_once_and_a_larger_one_gradually() {
        let mut control = QualityControl::new(LIMITS);
        run(&mut control, 30_000.0, None, 5);
        let first = run(&mut control, 30_000.0, Some(15_000), 1);
        assert!(first.is_empty() || first[0].1 < 30_000, "{first:?}");
        run(&mut control, 30_000.0, Some(15_000), 30);
        let rising = run(&mut control, 30_000.0, Some(50_000), 40);
        let steps = rising.windows(2).all(|pair| pair[1].0.quality <= pair[0].0.quality + QUALITY_STEP);
        assert!(steps && rising.last().unwrap().0.quality > 70, "{rising:?}");
    }

    #[test]
    fn a_scene_that_becomes_complex_is_encoded_again() {
        let mut control = QualityControl::new(LIMITS);
        run(&mut control, 10_000.0, Some(15_000), 50);
        let published = run(&mut control, 60_000.0, Some(15_000), 20);
        assert!(published.iter().all(|(_, octets)| *octets <= 40_000), "{published:?}");
    }

    #[test]
    fn a_budget_of_zero_pauses_the_camera() {
        let mut control = QualityControl::new(LIMITS);
        assert!(run(&mut control, 30_000.0, Some(0), 10).is_empty());
        assert!(!run(&mut control, 30_000.0, Some(20_000), 10).is_empty());
    }

    #[test]
    fn fixed_limits_leave_only_the_rate() {
        let limits = QualityLimits { least: 50, most: 50, fourths_min: 4 };
        let mut control = QualityControl::new(limits);
        let published = run(&mut control, 30_000.0, Some(10_000), 90);
        assert!(published.iter().all(|(form, _)| *form == Form { quality: 50, fourths: 4 }));
        assert!((28..=31).contains(&published.len()), "{}", published.len());
    }
}
