//! A picture from above as PNG: points and outlines. Forward is up, 10 pixels are 1 m.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use viaduct_lidar::bev::REACH_M;
use viaduct_lidar::geometry::Rectangle;

/// Pixels of a metre.
const SCALE: f32 = 10.0;
/// Pixels in a row.
const SIDE: usize = (2.0 * REACH_M * SCALE) as usize;

const BACKGROUND: [u8; 3] = [16, 20, 28];
/// Colour of points near the ground, and of high ones.
const POINTS: [[u8; 3]; 2] = [[70, 80, 100], [215, 225, 240]];
/// Colour of true boxes.
pub(crate) const TRUE: [u8; 3] = [60, 220, 110];
/// Colour of found boxes.
pub(crate) const FOUND: [u8; 3] = [255, 150, 40];
const SENSOR: [u8; 3] = [255, 255, 255];

/// The pixels.
pub(crate) struct Picture {
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Draws points, higher ones brighter.
    pub(crate) fn of(points: &[[f32; 3]]) -> Self {
        let mut picture = Self { pixels: vec![BACKGROUND; SIDE * SIDE] };
        for [x, y, z] in points {
            let share = ((z + 1.8) / 2.0).clamp(0.0, 1.0);
            let mix = |low: u8, high: u8| (f32::from(low) * (1.0 - share) + f32::from(high) * share) as u8;
            let colour = [0, 1, 2].map(|channel: usize| mix(POINTS[0][channel], POINTS[1][channel]));
            picture.set(*x, *y, colour);
        }
        let sensor = Rectangle { x: 0.0, y: 0.0, length: 0.6, width: 0.6, yaw: 0.0 };
        picture.outline(&sensor, SENSOR);
        picture
    }

    fn set(&mut self, x: f32, y: f32, colour: [u8; 3]) {
        let (row, column) = ((REACH_M - x) * SCALE, (REACH_M - y) * SCALE);
        let is_inside = |value: f32| (0.0..SIDE as f32).contains(&value);
        if is_inside(row) && is_inside(column) {
            self.pixels[row as usize * SIDE + column as usize] = colour;
        }
    }

    /// Draws the sides of a rectangle, two pixels wide.
    pub(crate) fn outline(&mut self, rectangle: &Rectangle, colour: [u8; 3]) {
        for margin in [0.0, 0.1] {
            let corners = rectangle.grown(margin).corners();
            for (from, to) in corners.iter().zip(corners.iter().cycle().skip(1)) {
                let steps = ((to[0] - from[0]).hypot(to[1] - from[1]) * SCALE * 2.0).ceil().max(1.0);
                for step in 0..=steps as usize {
                    let share = step as f32 / steps;
                    self.set(from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1]), colour);
                }
            }
        }
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut rows = ZlibEncoder::new(Vec::new(), Compression::best());
        for row in self.pixels.chunks_exact(SIDE) {
            // Filter 0: none.
            rows.write_all(&[0])?;
            rows.write_all(row.as_flattened())?;
        }
        let side = (SIDE as u32).to_be_bytes();
        // 8 bits per channel, three channels, no interlacing.
        let header = [&side[..], &side, &[8, 2, 0, 0, 0]].concat();
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, data) in [(b"IHDR", header), (b"IDAT", rows.finish()?), (b"IEND", Vec::new())] {
            let content = [&name[..], &data].concat();
            file.extend((data.len() as u32).to_be_bytes());
            file.extend(&content);
            file.extend(crc32fast::hash(&content).to_be_bytes());
        }
        std::fs::write(path, file)
    }
}
