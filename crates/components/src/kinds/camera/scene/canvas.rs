//! Areas of one colour and areas of textured ground in a picture.

use viaduct_units::Rng;

use super::super::picture::Picture;
use super::view::{GroundRow, Pixel, View};

/// Edge of the texture in cells.
const TEXTURE_SIDE: usize = 128;
/// Cells of the texture per metre.
const CELLS_PER_METRE: f64 = 8.0;
/// Fraction bits of a texture coordinate.
const FRACTION: u32 = 16;
/// Distance at which colours have half faded into the haze, in metres.
const HAZE_HALF: f64 = 180.0;

/// Luma, blue difference and red difference.
pub(super) type Colour = [u8; 3];

/// Colour of the haze at the horizon.
pub(super) const HAZE: Colour = [196, 132, 124];

/// A surface of the ground.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    pub(super) colour: Colour,
    /// Strength of the texture, 0 to 255.
    pub(super) roughness: i32,
}

/// The picture under construction.
pub(super) struct Canvas<'a> {
    pub(super) picture: &'a mut Picture,
    texture: &'a Texture,
    /// Ground of each row, from the first row below the horizon.
    rows: Vec<Option<GroundRow>>,
    /// Corners of the polygon that is drawn.
    pub(super) corners: Vec<Pixel>,
}

/// A square texture that repeats.
#[derive(Debug)]
pub(super) struct Texture(Vec<i8>);

impl Texture {
    /// Returns smooth noise.
    pub(super) fn new() -> Self {
        let mut rng = Rng::new(11);
        let mut noise = || (0..TEXTURE_SIDE * TEXTURE_SIDE).map(|_| rng.between(-1.0, 1.0)).collect::<Vec<f64>>();
        let (fine, coarse) = (noise(), noise());
        let cell = |index: usize| {
            let (x, y) = (index % TEXTURE_SIDE, index / TEXTURE_SIDE);
            let smooth = (0..16).map(|k| coarse[wrapped(x / 8 * 8 + k % 4, y / 8 * 8 + k / 4)]).sum::<f64>() / 4.0;
            ((0.6 * fine[index] + 0.7 * smooth) * 80.0).clamp(-127.0, 127.0) as i8
        };
        Self((0..TEXTURE_SIDE * TEXTURE_SIDE).map(cell).collect())
    }
}

const fn wrapped(x: usize, y: usize) -> usize {
    y % TEXTURE_SIDE * TEXTURE_SIDE + x % TEXTURE_SIDE
}

impl<'a> Canvas<'a> {
    pub(super) fn new(picture: &'a mut Picture, texture: &'a Texture, view: &View) -> Self {
        let rows = (0..view.height).map(|y| view.ground_row(y)).collect();
        Self { picture, texture, rows, corners: Vec::new() }
    }

    /// Fills pixels of a row with a colour.
    pub(super) fn fill_row(&mut self, y: usize, from: usize, to: usize, colour: Colour) {
        let start = y * self.picture.width;
        for (plane, value) in self.picture.planes.iter_mut().zip(colour) {
            plane[start + from..start + to].fill(value);
        }
    }

    /// Fills pixels of a row with ground. A row at or above the horizon is not changed.
    pub(super) fn fill_ground_row(&mut self, y: usize, from: usize, to: usize, ground: Ground) {
        let Some(row) = self.rows.get(y).copied().flatten() else { return };
        let [luma, blue, red] = faded(ground.colour, row.distance);
        self.fill_row(y, from, to, [luma, blue, red]);
        // A texture that is finer than a pixel would flicker.
        let visible = (1.5 / (row.metres_per_pixel * CELLS_PER_METRE)).clamp(0.0, 1.0);
        let strength = (f64::from(ground.roughness) * visible) as i32;
        if strength < 8 {
            return;
        }
        let fixed = |metres: f64| (metres * CELLS_PER_METRE * f64::from(1 << FRACTION)) as i64 as i32;
        let (mut x, mut y_cell) =
            (fixed(row.left.0 + row.step.0 * from as f64), fixed(row.left.1 + row.step.1 * from as f64));
        let (dx, dy) = (fixed(row.step.0), fixed(row.step.1));
        let start = y * self.picture.width;
        let texture: &[i8] = &self.texture.0;
        let base = i32::from(luma);
        for sample in &mut self.picture.planes[0][start + from..start + to] {
            let index = wrapped((x >> FRACTION) as usize, (y_cell >> FRACTION) as usize);
            *sample = (base + ((i32::from(texture[index]) * strength) >> 8)).clamp(0, 255) as u8;
            x = x.wrapping_add(dx);
            y_cell = y_cell.wrapping_add(dy);
        }
    }

    /// Fills the convex polygon of `corners` with a colour.
    pub(super) fn fill_polygon(&mut self, colour: Colour) {
        for y in self.polygon_rows() {
            if let Some((from, to)) = self.polygon_row(y) {
                self.fill_row(y, from, to, colour);
            }
        }
    }

    /// Fills the convex polygon of `corners` with ground.
    pub(super) fn fill_ground_polygon(&mut self, ground: Ground) {
        for y in self.polygon_rows() {
            if let Some((from, to)) = self.polygon_row(y) {
                self.fill_ground_row(y, from, to, ground);
            }
        }
    }

    /// Fills a disc with a colour.
    pub(super) fn fill_disc(&mut self, centre: Pixel, radius: f64, colour: Colour) {
        let top = (centre.y - radius).max(0.0) as usize;
        let bottom = ((centre.y + radius).max(0.0) as usize).min(self.picture.height);
        for y in top..bottom {
            let off = y as f64 + 0.5 - centre.y;
            let half = (radius * radius - off * off).max(0.0).sqrt();
            let (from, to) = (pixel(centre.x - half, self.picture.width), pixel(centre.x + half, self.picture.width));
            if from < to {
                self.fill_row(y, from, to, colour);
            }
        }
    }

    fn polygon_rows(&self) -> std::ops::Range<usize> {
        let height = self.picture.height;
        let ys = self.corners.iter().map(|corner| corner.y);
        let top = ys.clone().fold(f64::INFINITY, f64::min);
        let bottom = ys.fold(f64::NEG_INFINITY, f64::max);
        pixel(top, height)..pixel(bottom, height)
    }

    /// Returns the pixels of the polygon in a row, or `None` if there are none.
    fn polygon_row(&self, y: usize) -> Option<(usize, usize)> {
        let middle = y as f64 + 0.5;
        let (mut left, mut right) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut previous = *self.corners.last()?;
        for corner in &self.corners {
            if (previous.y <= middle) != (corner.y <= middle) {
                let part = (middle - previous.y) / (corner.y - previous.y);
                let x = previous.x + (corner.x - previous.x) * part;
                (left, right) = (left.min(x), right.max(x));
            }
            previous = *corner;
        }
        let (from, to) = (pixel(left, self.picture.width), pixel(right, self.picture.width));
        (from < to).then_some((from, to))
    }
}

/// Returns the first pixel whose middle is at or after a coordinate, limited to the picture.
fn pixel(coordinate: f64, limit: usize) -> usize {
    // A conversion from a float saturates.
    ((coordinate + 0.5).max(0.0) as usize).min(limit)
}

/// Returns a colour as it is seen from a distance in metres.
pub(super) fn faded(colour: Colour, distance: f64) -> Colour {
    let haze = distance / (distance + HAZE_HALF);
    let mix = |own: u8, far: u8| (f64::from(own) + (f64::from(far) - f64::from(own)) * haze) as u8;
    [mix(colour[0], HAZE[0]), mix(colour[1], HAZE[1]), mix(colour[2], HAZE[2])]
}
