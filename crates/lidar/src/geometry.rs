//! Rectangles in the plane, at any angle.

/// A rotated rectangle in the plane, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Position of the centre.
    pub x: f32,
    /// Position of the centre.
    pub y: f32,
    /// Extent along the heading, 0 or more.
    pub length: f32,
    /// Extent across the heading, 0 or more.
    pub width: f32,
    /// Heading in radians, counter-clockwise from the x axis.
    pub yaw: f32,
}

/// A point in the plane, in metres.
pub type Corner = [f32; 2];

impl Rectangle {
    /// Returns the corners, counter-clockwise.
    #[must_use]
    pub fn corners(&self) -> [Corner; 4] {
        let (sine, cosine) = self.yaw.sin_cos();
        let (l, w) = (self.length / 2.0, self.width / 2.0);
        [[l, w], [-l, w], [-l, -w], [l, -w]]
            .map(|[u, v]| [self.x + u * cosine - v * sine, self.y + u * sine + v * cosine])
    }

    /// Returns the area in square metres.
    #[must_use]
    pub fn area(&self) -> f32 {
        self.length * self.width
    }

    /// Returns the rectangle with a margin added on all four sides.
    #[must_use]
    pub fn grown(mut self, margin: f32) -> Self {
        self.length += 2.0 * margin;
        self.width += 2.0 * margin;
        self
    }

    /// Returns `true` if the two rectangles have a point in common.
    #[must_use]
    pub fn touches(&self, other: &Self) -> bool {
        if self.is_far_from(other) {
            return false;
        }
        // Two convex shapes are apart if and only if the normal of one of their sides separates them.
        let (ours, theirs) = (self.corners(), other.corners());
        let quarter = std::f32::consts::FRAC_PI_2;
        [self.yaw, self.yaw + quarter, other.yaw, other.yaw + quarter].iter().all(|angle| {
            let (our_min, our_max) = extent(&ours, *angle);
            let (their_min, their_max) = extent(&theirs, *angle);
            our_max >= their_min && their_max >= our_min
        })
    }

    /// Returns the area that both rectangles cover, in square metres, computed on the exact polygon.
    #[must_use]
    pub fn intersection_area(&self, other: &Self) -> f32 {
        if self.is_far_from(other) {
            return 0.0;
        }
        // Relative to one centre, so that coordinates far from the origin lose no precision.
        let origin = [self.x, self.y];
        let mut polygon = Polygon::new(&relative(self.corners(), origin));
        let sides = relative(other.corners(), origin);
        for (start, end) in sides.iter().zip(sides.iter().cycle().skip(1)) {
            polygon = polygon.clipped(*start, *end);
        }
        polygon.area()
    }

    /// Returns the intersection over union, 0 to 1.
    #[must_use]
    pub fn iou(&self, other: &Self) -> f32 {
        let common = self.intersection_area(other);
        let union = self.area() + other.area() - common;
        if union > 0.0 { (common / union).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns `true` if the circles around both rectangles are apart.
    fn is_far_from(&self, other: &Self) -> bool {
        let reach = (self.length.hypot(self.width) + other.length.hypot(other.width)) / 2.0;
        (self.x - other.x).hypot(self.y - other.y) > reach
    }
}

fn relative(corners: [Corner; 4], [x, y]: Corner) -> [Corner; 4] {
    corners.map(|corner| [corner[0] - x, corner[1] - y])
}

/// Returns the smallest and the largest coordinate of the corners along a direction.
fn extent(corners: &[Corner; 4], angle: f32) -> (f32, f32) {
    let (sine, cosine) = angle.sin_cos();
    let along = corners.iter().map(|[x, y]| x * cosine + y * sine);
    along.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Most corners of a quadrilateral that was clipped at four lines: each line adds at most one.
const POLYGON_CORNERS_MAX: usize = 8;

/// A convex polygon, counter-clockwise.
#[derive(Default)]
struct Polygon {
    corners: [Corner; POLYGON_CORNERS_MAX],
    len: usize,
}

impl Polygon {
    fn new(corners: &[Corner]) -> Self {
        let mut polygon = Self::default();
        corners.iter().for_each(|corner| polygon.push(*corner));
        polygon
    }

    fn push(&mut self, corner: Corner) {
        if let Some(slot) = self.corners.get_mut(self.len) {
            *slot = corner;
            self.len += 1;
        }
    }

    fn sides(&self) -> impl Iterator<Item = (Corner, Corner)> {
        let corners = self.corners.iter().take(self.len);
        corners.clone().zip(corners.cycle().skip(1)).map(|(start, end)| (*start, *end)).take(self.len)
    }

    /// Returns the part of the polygon on the left of the line from `start` to `end` (Sutherland and Hodgman, 1974).
    fn clipped(&self, start: Corner, end: Corner) -> Self {
        let left = |p: Corner| (end[0] - start[0]) * (p[1] - start[1]) - (end[1] - start[1]) * (p[0] - start[0]);
        let mut clipped = Self::default();
        for (from, to) in self.sides() {
            let (a, b) = (left(from), left(to));
            if a >= 0.0 {
                clipped.push(from);
            }
            if (a >= 0.0) != (b >= 0.0) {
                let share = a / (a - b);
                clipped.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
            }
        }
        clipped
    }

    fn area(&self) -> f32 {
        (self.sides().map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum::<f32>() / 2.0).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI, SQRT_2};

    use super::*;

    const SQUARE: Rectangle = Rectangle { x: 0.0, y: 0.0, length: 2.0, width: 2.0, yaw: 0.0 };

    #[test]
    fn the_intersection_is_that_of_the_exact_polygons() {
        let turned = Rectangle { yaw: FRAC_PI_4, ..SQUARE };
        // A regular octagon with an inscribed circle of radius 1.
        assert!((SQUARE.intersection_area(&turned) - 8.0 * (SQRT_2 - 1.0)).abs() < 1e-4);
        let moved = Rectangle { x: 1.0, ..SQUARE };
        assert!((SQUARE.intersection_area(&moved) - 2.0).abs() < 1e-5);
        assert!((SQUARE.iou(&moved) - 1.0 / 3.0).abs() < 1e-5);
        let inner = Rectangle { length: 1.0, width: 0.5, yaw: 0.3, ..SQUARE };
        assert!((SQUARE.intersection_area(&inner) - 0.5).abs() < 1e-5);
        assert_eq!(SQUARE.iou(&Rectangle { x: 5.0, ..SQUARE }), 0.0);
    }

    #[test]
    fn a_half_turn_and_a_shift_of_both_change_nothing() {
        let car = Rectangle { x: 30.0, y: -12.0, length: 4.3, width: 1.8, yaw: 0.7 };
        let turned = Rectangle { yaw: 0.7 + PI, ..car };
        assert!((car.iou(&turned) - 1.0).abs() < 1e-4);
        let neighbour = Rectangle { x: 30.6, y: -11.5, yaw: 0.9, ..car };
        let far = |r: Rectangle| Rectangle { x: r.x + 500.0, y: r.y - 800.0, ..r };
        assert!((car.iou(&neighbour) - far(car).iou(&far(neighbour))).abs() < 1e-3);
    }

    #[test]
    fn rectangles_touch_exactly_if_they_share_a_point() {
        let thin = Rectangle { x: 1.9, y: 0.0, length: 0.2, width: 4.0, yaw: FRAC_PI_4 };
        assert!(!SQUARE.touches(&Rectangle { x: 2.1, ..SQUARE }));
        assert!(SQUARE.touches(&Rectangle { x: 1.9, ..SQUARE }));
        assert!(SQUARE.touches(&Rectangle { x: 2.3, yaw: FRAC_PI_4, ..SQUARE }));
        assert!(!SQUARE.touches(&Rectangle { x: 2.3, y: 2.3, yaw: FRAC_PI_4, ..SQUARE }));
        assert!(SQUARE.touches(&thin) && thin.touches(&SQUARE));
        assert!(SQUARE.touches(&Rectangle { yaw: FRAC_PI_2, length: 0.1, width: 0.1, ..SQUARE }));
    }
}
