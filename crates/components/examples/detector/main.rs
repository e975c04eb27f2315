//! Measures the vehicle detector: its accuracy on generated scenes, its time, and pictures of what it finds.
//!
//! ```sh
//! cargo run --release -p viaduct-components --example detector -- accuracy 1000001 200
//! cargo run --release -p viaduct-components --example detector -- time 100
//! cargo run --release -p viaduct-components --example detector -- pictures docs
//! ```
//!
//! The real frames of `pictures` are in `VIADUCT_DATA` (default `../shared/data`), folder `lidar`.

#![allow(clippy::print_stdout, clippy::indexing_slicing, reason = "the program prints its result")]

mod picture;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use picture::Picture;
use viaduct_components::kinds::detector::network::{Network, THRESHOLD, WEIGHTS};
use viaduct_lidar::boxes::VehicleClass;
use viaduct_lidar::evaluation::{Criteria, Evaluation, Found};
use viaduct_lidar::sample::Sample;

/// Score from which a box is a part of the curve of precision and recall.
const SCORE_MIN: f32 = 0.05;
/// Seeds of the scenes in pictures: two of the test scenes.
const PICTURE_SEEDS: [u64; 2] = [2_000_003, 2_000_012];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["accuracy", first, count] => accuracy(first.parse()?, count.parse()?, WEIGHTS),
        ["accuracy", first, count, model] => accuracy(first.parse()?, count.parse()?, &std::fs::read(model)?),
        ["time", count] => time(count.parse()?),
        ["pictures", folder] => pictures(Path::new(folder)),
        _ => Err("usage: detector accuracy FIRST_SEED COUNT [MODEL] | time COUNT | pictures FOLDER".into()),
    }
}

/// Prints precision and recall on the scenes of seeds, at the threshold of the detector and at the best one.
fn accuracy(first: u64, count: u64, model: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut network = Network::new(model)?;
    let near = Criteria { distance_max_m: 20.0, ..Criteria::STANDARD };
    let strict = Criteria { iou_min: 0.7, ..Criteria::STANDARD };
    let mut evaluations = [Criteria::STANDARD, near, strict].map(Evaluation::new);
    let (mut plain, mut hard) = (Evaluation::new(Criteria::STANDARD), Evaluation::new(Criteria::STANDARD));
    for seed in first..first + count {
        let sample = Sample::vlp32c(seed);
        let found = network.detect(sample.points.iter().copied(), sample.sensor_height_m, SCORE_MIN)?;
        evaluations.iter_mut().for_each(|evaluation| evaluation.add(&found, &sample.truth));
        if sample.is_hard { &mut hard } else { &mut plain }.add(&found, &sample.truth);
    }
    let [all, near, strict] = evaluations;
    println!("{count} scenes from seed {first}, {} vehicles of 5 points within 40 m", all.vehicles().len());
    println!("AP {:.3}, within 20 m {:.3}, IoU 0.7 {:.3}", ap(&all), ap(&near), ap(&strict));
    println!("AP without clutter {:.3}, with clutter {:.3}", ap(&plain), ap(&hard));
    for at in all.best_threshold().into_iter().chain([all.at(THRESHOLD)]) {
        println!("threshold {:.3}: precision {:.3}, recall {:.3}", at.threshold, at.precision, at.recall);
    }
    print_groups(&all);
    Ok(())
}

fn ap(evaluation: &Evaluation) -> f32 {
    evaluation.average_precision()
}

/// Prints the recall of groups of vehicles at the threshold of the detector.
fn print_groups(evaluation: &Evaluation) {
    let print = |name: &str, group: &dyn Fn(&Found) -> bool| {
        let (recall, count) = evaluation.recall_of(THRESHOLD, group);
        println!("| {name} | {count} | {recall:.3} |");
    };
    println!("| vehicles | number | recall |\n|---|---|---|");
    for [low, high] in [[0, 10], [10, 20], [20, 30], [30, 40]] {
        let range = low as f32..high as f32;
        print(&format!("{low} to {high} m"), &|found| range.contains(&found.distance_m));
    }
    for [low, high] in [[5, 10], [10, 20], [20, 50], [50, 200], [200, u32::MAX]] {
        let name =
            if high == u32::MAX { format!("{low} points or more") } else { format!("{low} to {} points", high - 1) };
        print(&name, &|found| (low..high).contains(&found.points));
    }
    for class in VehicleClass::ALL {
        print(class.name(), &|found| found.class == class);
    }
    let hits: Vec<f32> = evaluation.vehicles().iter().filter(|found| found.iou > 0.0).map(|found| found.iou).collect();
    println!("mean IoU of hits {:.3}", hits.iter().sum::<f32>() / hits.len().max(1) as f32);
}

/// Prints the time of a scan, from points to boxes: elapsed, and of the processor.
fn time(count: usize) -> Result<(), Box<dyn Error>> {
    let mut network = Network::new(WEIGHTS)?;
    let samples: Vec<Sample> = (0..8).map(|index| Sample::vlp32c(2_000_001 + index)).collect();
    let (mut elapsed, mut busy) = (Vec::new(), Vec::new());
    for index in 0..count {
        let sample = &samples[index % samples.len()];
        let (started, cpu) = (Instant::now(), processor_time()?);
        let found = network.detect(sample.points.iter().copied(), sample.sensor_height_m, THRESHOLD)?;
        std::hint::black_box(found);
        elapsed.push(started.elapsed());
        busy.push(processor_time()?.saturating_sub(cpu));
    }
    let points: usize = samples.iter().map(|sample| sample.points.len()).sum();
    println!("{count} scans of {} points on average, one thread", points / samples.len());
    for (name, times) in [("elapsed", &mut elapsed), ("processor", &mut busy)] {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
        println!("{name}: median {:.1} ms, p90 {:.1} ms", at(50), at(90));
    }
    Ok(())
}

/// Returns the time for which processors worked for this process.
fn processor_time() -> Result<Duration, nix::Error> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
}

/// Draws test scenes with true and found boxes, and real frames with found boxes.
fn pictures(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut network = Network::new(WEIGHTS)?;
    std::fs::create_dir_all(folder)?;
    for (number, seed) in (1..).zip(PICTURE_SEEDS) {
        let sample = Sample::vlp32c(seed);
        let found = network.detect(sample.points.iter().copied(), sample.sensor_height_m, THRESHOLD)?;
        let mut picture = Picture::of(&sample.points);
        let counted = sample.truth.iter().filter(|truth| truth.points >= Criteria::STANDARD.points_min);
        counted.for_each(|truth| picture.outline(&truth.extent.base, picture::TRUE));
        found.iter().for_each(|found| picture.outline(&found.extent.base, picture::FOUND));
        picture.write(&folder.join(format!("detector-scene-{number}.png")))?;
    }
    let data =
        PathBuf::from(std::env::var("VIADUCT_DATA").unwrap_or_else(|_| "../shared/data".to_owned())).join("lidar");
    for frame in FRAMES {
        let points = frame.points(&std::fs::read(data.join(frame.file))?);
        let found = network.detect(points.iter().copied(), frame.sensor_height_m, THRESHOLD)?;
        println!("{}: {} points, {} boxes", frame.file, points.len(), found.len());
        let mut picture = Picture::of(&points);
        found.iter().for_each(|found| picture.outline(&found.extent.base, picture::FOUND));
        picture.write(&folder.join(format!("detector-{}.png", frame.name)))?;
    }
    Ok(())
}

/// A real scan.
struct Frame {
    file: &'static str,
    name: &'static str,
    /// Numbers of a point: x, y, z, and others.
    numbers: usize,
    /// The x axis points to the right, and y forward.
    is_turned: bool,
    sensor_height_m: f32,
}

const FRAMES: [Frame; 3] = [
    Frame { file: "kitti_000000.bin", name: "kitti-0", numbers: 4, is_turned: false, sensor_height_m: 1.73 },
    Frame { file: "kitti_000001.bin", name: "kitti-1", numbers: 4, is_turned: false, sensor_height_m: 1.73 },
    Frame { file: "nuscenes_lidar_top.pcd.bin", name: "nuscenes", numbers: 5, is_turned: true, sensor_height_m: 1.84 },
];

impl Frame {
    fn points(&self, octets: &[u8]) -> Vec<[f32; 3]> {
        let numbers: Vec<f32> = octets.as_chunks::<4>().0.iter().map(|octets| f32::from_le_bytes(*octets)).collect();
        let point = |point: &[f32]| {
            if self.is_turned { [point[1], -point[0], point[2]] } else { [point[0], point[1], point[2]] }
        };
        numbers.chunks_exact(self.numbers).map(point).collect()
    }
}
