//! The camera's position, and its perspective projection.

/// A point in metres: east and north of the scene's origin, and above the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) east: f64,
    pub(super) north: f64,
    pub(super) up: f64,
}

/// A point relative to the camera, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CameraPoint {
    pub(super) right: f64,
    pub(super) down: f64,
    pub(super) forward: f64,
}

/// A point of the picture in pixels, from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pixel {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Nearest distance that is drawn, in metres.
const NEAR: f64 = 0.3;

/// Position and direction of a camera, and its field of view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pose {
    pub(super) at: Point,
    /// Direction in radians, clockwise from north.
    pub(super) heading_rad: f64,
    /// Angle below the horizon in radians.
    pub(super) pitch_rad: f64,
    /// Horizontal field of view in radians.
    pub(super) field_rad: f64,
}

/// A camera with the size of its picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) at: Point,
    pub(super) heading_rad: f64,
    /// Distance of the picture plane in pixels.
    focal: f64,
    heading: (f64, f64),
    pitch: (f64, f64),
}

/// One row of pixels that shows the ground.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroundRow {
    /// Distance ahead of the camera in metres.
    pub(super) distance: f64,
    /// Ground point at the left edge of the picture, relative to the scene's origin, in metres.
    pub(super) left: (f64, f64),
    /// Step from one pixel to the next, in metres east and north.
    pub(super) step: (f64, f64),
    /// Length of that step.
    pub(super) metres_per_pixel: f64,
}

impl View {
    pub(super) fn new(pose: Pose, width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            at: pose.at,
            heading_rad: pose.heading_rad,
            focal: width as f64 / 2.0 / (pose.field_rad / 2.0).tan(),
            heading: pose.heading_rad.sin_cos(),
            pitch: pose.pitch_rad.sin_cos(),
        }
    }

    /// Returns the row of the horizon.
    pub(super) fn horizon(&self) -> f64 {
        self.height as f64 / 2.0 - self.focal * self.pitch.0 / self.pitch.1
    }

    /// Returns the direction of a column in radians, clockwise from north.
    pub(super) fn azimuth_rad(&self, x: usize) -> f64 {
        self.heading_rad + ((x as f64 - self.width as f64 / 2.0) / self.focal).atan()
    }

    pub(super) fn relative(&self, point: Point) -> CameraPoint {
        let (east, north, up) = (point.east - self.at.east, point.north - self.at.north, point.up - self.at.up);
        let ahead = east * self.heading.0 + north * self.heading.1;
        CameraPoint {
            right: east * self.heading.1 - north * self.heading.0,
            down: -(up * self.pitch.1 + ahead * self.pitch.0),
            forward: ahead * self.pitch.1 - up * self.pitch.0,
        }
    }

    /// Returns the pixel of a point that lies ahead.
    pub(super) fn project(&self, point: CameraPoint) -> Pixel {
        Pixel {
            x: self.width as f64 / 2.0 + self.focal * point.right / point.forward,
            y: self.height as f64 / 2.0 + self.focal * point.down / point.forward,
        }
    }

    /// Returns the corners of a convex polygon in the picture, without the part behind the camera. Empty if it is not visible.
    pub(super) fn project_polygon(&self, corners: &[Point], out: &mut Vec<Pixel>) {
        out.clear();
        let Some(last) = corners.last() else { return };
        let mut previous = self.relative(*last);
        for corner in corners {
            let current = self.relative(*corner);
            if (previous.forward < NEAR) != (current.forward < NEAR) {
                out.push(self.project(at_near_plane(previous, current)));
            }
            if current.forward >= NEAR {
                out.push(self.project(current));
            }
            previous = current;
        }
    }

    /// Returns the pixels of a length at a distance.
    pub(super) fn pixels(&self, length: f64, distance: f64) -> f64 {
        self.focal * length / distance
    }

    /// Returns the ground that a row shows, or `None` if the row lies at or above the horizon.
    pub(super) fn ground_row(&self, y: usize) -> Option<GroundRow> {
        let down = (y as f64 + 0.5 - self.height as f64 / 2.0) / self.focal;
        let (ahead, fall) = (self.pitch.1 - down * self.pitch.0, self.pitch.0 + down * self.pitch.1);
        if fall <= 1e-4 {
            return None;
        }
        let scale = self.at.up / fall;
        let (distance, step) = (scale * ahead, scale / self.focal);
        let (sine, cosine) = self.heading;
        let lateral = step * (0.5 - self.width as f64 / 2.0);
        Some(GroundRow {
            distance,
            left: (
                self.at.east + distance * sine + lateral * cosine,
                self.at.north + distance * cosine - lateral * sine,
            ),
            step: (step * cosine, -step * sine),
            metres_per_pixel: step,
        })
    }
}

/// Returns the point of a line at the nearest distance.
fn at_near_plane(a: CameraPoint, b: CameraPoint) -> CameraPoint {
    let part = (NEAR - a.forward) / (b.forward - a.forward);
    CameraPoint { right: a.right + (b.right - a.right) * part, down: a.down + (b.down - a.down) * part, forward: NEAR }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let at = Point { east: 10.0, north: -5.0, up: 1.5 };
        View::new(Pose { at, heading_rad: 1.0, pitch_rad: 0.1, field_rad: 1.3 }, 640, 480)
    }

    #[test]
    fn the_ground_of_a_row_is_projected_onto_that_row() {
        let view = view();
        assert!(view.ground_row(0).is_none());
        for y in [200, 300, 479] {
            let row = view.ground_row(y).unwrap();
            for x in [0, 320, 639] {
                let (east, north) = (row.left.0 + x as f64 * row.step.0, row.left.1 + x as f64 * row.step.1);
                let pixel = view.project(view.relative(Point { east, north, up: 0.0 }));
                assert!(
                    (pixel.x - x as f64 - 0.5).abs() < 1e-6 && (pixel.y - y as f64 - 0.5).abs() < 1e-6,
                    "{pixel:?}"
                );
            }
        }
    }

    #[test]
    fn a_far_point_at_the_height_of_the_camera_lies_on_the_horizon() {
        let view = view();
        let far = Point { east: 10.0 + 1e6 * 1.0f64.sin(), north: -5.0 + 1e6 * 1.0f64.cos(), up: 1.5 };
        let pixel = view.project(view.relative(far));
        assert!((pixel.y - view.horizon()).abs() < 0.01 && (pixel.x - 320.0).abs() < 0.01, "{pixel:?}");
    }

    #[test]
    fn a_polygon_around_the_camera_is_cut_in_front_of_it() {
        let corner = |east: f64, north: f64| Point { east: 10.0 + east, north: -5.0 + north, up: 0.0 };
        let square = [corner(-50.0, -50.0), corner(50.0, -50.0), corner(50.0, 50.0), corner(-50.0, 50.0)];
        let mut pixels = Vec::new();
        view().project_polygon(&square, &mut pixels);
        assert!((3..=6).contains(&pixels.len()));
        assert!(pixels.iter().all(|pixel| pixel.x.is_finite() && pixel.y.is_finite()));
        view().project_polygon(&[corner(-1.0, -9.0), corner(-2.0, -9.0), corner(-2.0, -8.0)], &mut pixels);
        assert!(pixels.is_empty(), "behind the camera");
    }
}
