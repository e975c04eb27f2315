//! Tables 4 and 5 of the paper: "Evaluation of remote driving with ROS 2" (Kawakami et al.), ROS 2 Dashing, 10,000 samples
//! of 374 kB at 10 Hz per camera.

use serde_json::json;
use viaduct_netem::Profile;

use crate::report::Row;

/// The tables as text, one line per cell.
const CSV: &str = include_str!("paper.csv");
/// Columns of a line before the note.
const COLUMNS: usize = 15;

/// A published cell: one camera of a number of cameras, in a case of quality of service.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Published {
    /// Table: 4 or 5.
    pub(super) table: u8,
    /// `stable` or `lossy`.
    pub(super) network: String,
    pub(super) cameras: u8,
    /// Number of the camera, from 1.
    pub(super) camera: u8,
    /// Case of quality of service, 1 to 4.
    pub(super) case: u8,
    pub(super) reliability: String,
    pub(super) history: String,
    pub(super) mean_ms: f64,
    pub(super) max_ms: f64,
    pub(super) min_ms: f64,
    pub(super) sd_ms: f64,
    /// Samples lost, or `None` if the figure is not legible.
    pub(super) lost: Option<u64>,
    pub(super) samples: u64,
}

impl Published {
    /// Parses a line, or returns `None` if it is the header or not a cell.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [table, network, cameras, camera, case, reliability, history, depth, _, mean, max, min, sd, lost, samples] =
            fields.first_chunk::<COLUMNS>()?;
        Some(Self {
            table: table.parse().ok()?,
            network: (*network).to_owned(),
            cameras: cameras.parse().ok()?,
            camera: camera.parse().ok()?,
            case: case.parse().ok()?,
            reliability: (*reliability).to_owned(),
            history: if *depth == "-" { (*history).to_owned() } else { format!("{history} {depth}") },
            mean_ms: mean.parse().ok()?,
            max_ms: max.parse().ok()?,
            min_ms: min.parse().ok()?,
            sd_ms: sd.parse().ok()?,
            lost: lost.parse().ok(),
            samples: samples.parse().ok()?,
        })
    }

    pub(super) fn row(&self) -> Row {
        let name = format!("paper.{}", self.network);
        let params = json!({
            "cameras": self.cameras, "camera": self.camera, "link": null, "size": super::FRAME_OCTETS,
            "rate_hz": super::RATE_HZ, "case": self.case, "reliability": self.reliability, "history": self.history,
            "source": format!("Kawakami et al., Table {}", self.table),
        });
        Row {
            n: self.samples,
            lost: self.lost,
            mean: Some(self.mean_ms),
            max: Some(self.max_ms),
            min: Some(self.min_ms),
            sd: Some(self.sd_ms),
            ..Row::empty(&name, &params, "ms")
        }
    }
}

/// Returns all cells of both tables.
pub(super) fn published() -> Vec<Published> {
    CSV.lines().filter_map(Published::parse).collect()
}

/// Returns the paper's network that corresponds to a link: the stable one, or the lossy one, whose loss the paper names as
/// 5 % although its figures correspond to 0.3 %. `None` for other links.
pub(super) const fn network(link: Profile) -> Option<&'static str> {
    match link {
        Profile::Ethernet => Some("stable"),
        Profile::Lossy03 | Profile::Lossy5 => Some("lossy"),
        _ => None,
    }
}

/// Returns the mean over all cameras of a case.
pub(super) fn mean_ms(all: &[Published], network: &str, cameras: u8, case: u8) -> Option<f64> {
    let of_case = |cell: &&Published| cell.network == network && cell.cameras == cameras && cell.case == case;
    let means: Vec<f64> = all.iter().filter(of_case).map(|cell| cell.mean_ms).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_a_cell() {
        let all = published();
        assert_eq!(all.len(), CSV.lines().count() - 1);
        // Two networks, four cases, 1 + 2 + 3 + 4 cameras.
        assert_eq!(all.len(), 80);
        for cell in &all {
            assert!((1..=4).contains(&cell.cameras) && (1..=cell.cameras).contains(&cell.camera), "{cell:?}");
            assert!(cell.min_ms <= cell.mean_ms && cell.mean_ms <= cell.max_ms && cell.samples == 10_000, "{cell:?}");
            assert_eq!(cell.table == 5, cell.network == "lossy", "{cell:?}");
        }
        assert_eq!(all.iter().filter(|cell| cell.lost.is_none()).count(), 3, "three figures are not legible");
    }

    #[test]
    fn a_cell_has_the_figures_of_its_line() {
        let all = published();
        let of = |network: &str, cameras: u8, camera: u8, case: u8| {
            let same = |cell: &&Published| {
                (cell.network.as_str(), cell.cameras, cell.camera, cell.case) == (network, cameras, camera, case)
            };
            all.iter().find(same).unwrap()
        };
        let cell = of("lossy", 4, 4, 1);
        assert_eq!((cell.mean_ms, cell.max_ms, cell.min_ms, cell.sd_ms), (35_990.2, 42_202.7, 12_384.0, 2233.1));
        assert_eq!((cell.lost, cell.history.as_str()), (Some(112), "KeepLast 10"));
        assert_eq!(of("stable", 4, 4, 2).lost, None);
        assert_eq!(of("lossy", 1, 1, 4).lost, Some(5585));
        assert_eq!(mean_ms(&all, "stable", 2, 4), Some((3.9 + 7.5) / 2.0));
        assert_eq!(mean_ms(&all, "stable", 5, 4), None);
    }

    #[test]
    fn the_tables_are_those_of_the_collected_data() {
        let data =
            std::env::var_os("VIADUCT_DATA").map_or_else(|| "../../../shared/data".into(), std::path::PathBuf::from);
        let file = data.join("../reported/remote_driving_ros2_qos.csv");
        match std::fs::read_to_string(&file) {
            Ok(text) => assert_eq!(text, CSV),
            Err(error) => eprintln!("skipped: {} cannot be read: {error}", file.display()),
        }
    }
}
