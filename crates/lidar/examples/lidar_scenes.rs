//! Writes scans for the training of the detector as raw files, and prints their number of points and vehicles.
//!
//! `NAME.bev` holds 409,600 octets per scan: the four channels of the bird's-eye view. `NAME.boxes` holds ten f32 (little endian) per
//! vehicle: index of the scan, x, y, z relative to the sensor, length, width, height, heading, class (0 car, 1 van, 2 truck), points.
//!
//! ```sh
//! cargo run --release -p viaduct-lidar --example lidar_scenes -- NAME FIRST_SEED COUNT mixed|vlp32c
//! ```

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "the program prints and writes its result")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use viaduct_lidar::bev::BirdsEye;
use viaduct_lidar::boxes::TrueBox;
use viaduct_lidar::sample::Sample;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, first, count, mixture] = arguments.as_slice() else {
        return Err("usage: lidar_scenes NAME FIRST_SEED COUNT mixed|vlp32c".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let generate = match mixture.as_str() {
        "mixed" => Sample::mixed,
        "vlp32c" => Sample::vlp32c,
        other => return Err(format!("`{other}` is neither `mixed` nor `vlp32c`").into()),
    };
    let mut pictures = BufWriter::new(File::create(format!("{name}.bev"))?);
    let mut boxes = BufWriter::new(File::create(format!("{name}.boxes"))?);
    let mut view = BirdsEye::default();
    let (mut vehicles, mut points) = (0, 0);
    for index in 0..count {
        let sample = generate(first + index);
        sample.draw(&mut view);
        pictures.write_all(view.pixels())?;
        for truth in &sample.truth {
            row(index, truth).iter().try_for_each(|value| boxes.write_all(&value.to_le_bytes()))?;
        }
        vehicles += sample.truth.iter().filter(|truth| truth.points >= 5).count();
        points += sample.points.len();
    }
    let mean = |sum: usize| sum as f64 / count.max(1) as f64;
    println!("{count} scans; a scan: {:.0} points, {:.1} vehicles of 5 points", mean(points), mean(vehicles));
    Ok(())
}

fn row(scan: u64, truth: &TrueBox) -> [f32; 10] {
    let (extent, base) = (&truth.extent, &truth.extent.base);
    let class = f32::from(truth.class as u8);
    let size = [base.length, base.width, extent.height];
    [scan as f32, base.x, base.y, extent.z, size[0], size[1], size[2], base.yaw, class, truth.points as f32]
}
