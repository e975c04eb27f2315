//! The cells of the tables: a system, a link and a number of cameras.

use serde_json::{Value, json};
use viaduct_netem::Profile;

use super::job::{Job, Transport};
use super::{FRAME_OCTETS, Options, RATE_HZ};

/// A measured system with its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) transport: Transport,
    /// Quality of service of MQTT, or case of DDS.
    pub(super) variant: Option<&'static str>,
    /// `true` for the glass-to-glass latency of pictures with a mark.
    pub(super) pictures: bool,
}

const fn subject(transport: Transport, variant: Option<&'static str>) -> Subject {
    Subject { transport, variant, pictures: false }
}

/// All systems, in the order of the table.
const SUBJECTS: [Subject; 11] = [
    subject(Transport::Viaduct, None),
    Subject { pictures: true, ..subject(Transport::Viaduct, None) },
    subject(Transport::BestEffort, None),
    subject(Transport::Tcp, None),
    subject(Transport::Mqtt, Some("0")),
    subject(Transport::Mqtt, Some("1")),
    subject(Transport::Cyclonedds, Some("1")),
    subject(Transport::Cyclonedds, Some("2")),
    subject(Transport::Cyclonedds, Some("3")),
    subject(Transport::Cyclonedds, Some("4")),
    subject(Transport::Cyclonedds, Some("tuned")),
];

impl Subject {
    /// Returns the name of its rows.
    pub(super) const fn name(self) -> &'static str {
        match self.transport {
            Transport::Viaduct if self.pictures => "viaduct.glass_to_glass",
            Transport::Viaduct => "viaduct.frame",
            Transport::BestEffort => "best_effort",
            Transport::Tcp => "tcp",
            Transport::Mqtt => "mqtt",
            Transport::Cyclonedds => "cyclonedds",
        }
    }

    /// Returns the name with the variant.
    pub(super) fn label(self) -> String {
        match (self.transport, self.variant) {
            (Transport::Mqtt, Some(qos)) => format!("mqtt qos {qos}"),
            (Transport::Cyclonedds, Some("tuned")) => "cyclonedds tuned".to_owned(),
            (Transport::Cyclonedds, Some(case)) => format!("cyclonedds case {case}"),
            _ => self.name().to_owned(),
        }
    }

    pub(super) const fn is_ours(self) -> bool {
        matches!(self.transport, Transport::Viaduct)
    }

    /// Returns `true` if the system repeats lost parts of a frame without a deadline.
    fn is_reliable(self) -> bool {
        match self.transport {
            Transport::Viaduct | Transport::BestEffort => false,
            Transport::Tcp | Transport::Mqtt => true,
            Transport::Cyclonedds => self.variant != Some("4"),
        }
    }
}

/// A cell of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) subject: Subject,
    pub(super) link: Profile,
    pub(super) cameras: u8,
}

impl Cell {
    /// Returns the key in a state file.
    pub(super) fn key(&self) -> String {
        format!("{}, {}, {} cameras", self.subject.label(), self.link, self.cameras)
    }

    pub(super) fn job(&self, options: &Options) -> Job {
        Job {
            variant: self.subject.variant.map(str::to_owned),
            pictures: self.subject.pictures,
            // Retransmissions of a reliable system may take longer than `silence_ms`.
            silence_ms: if self.subject.is_reliable() { options.drain_ms } else { options.silence_ms },
            drain_ms: options.drain_ms,
            ..Job::new(self.subject.transport, self.cameras, options.frames)
        }
    }

    /// Returns the parameters of a row of frames. `camera` counts from 1, as in the paper.
    pub(super) fn params(&self, camera: u8) -> Value {
        let mut params = json!({
            "cameras": self.cameras, "camera": camera, "link": self.link.name(), "size": FRAME_OCTETS, "rate_hz": RATE_HZ,
        });
        if let (Some(params), Some(variant)) = (params.as_object_mut(), self.subject.variant) {
            let number: Option<u8> = variant.parse().ok();
            let value = number.map_or_else(|| json!(variant), |number| json!(number));
            let key = if self.subject.transport == Transport::Mqtt { "qos" } else { "case" };
            params.insert(key.to_owned(), value);
        }
        params
    }

    /// Returns the parameters of a row for all cameras.
    pub(super) fn joint_params(&self) -> Value {
        json!({ "cameras": self.cameras, "link": self.link.name() })
    }

    /// Returns `true` if the cell is part of a default run, which has four minutes.
    fn is_essential(&self) -> bool {
        let Subject { transport, variant, pictures } = self.subject;
        match (self.cameras, self.link) {
            (4, Profile::Lossy03) => {
                matches!(transport, Transport::Viaduct | Transport::BestEffort | Transport::Cyclonedds) && !pictures
            }
            (4, Profile::Lossy5) => match transport {
                Transport::Viaduct | Transport::Tcp | Transport::Mqtt => true,
                Transport::BestEffort => false,
                Transport::Cyclonedds => variant == Some("tuned"),
            },
            (4, _) => transport == Transport::Viaduct && !pictures,
            (1, Profile::Lossy03) => matches!(transport, Transport::Viaduct | Transport::BestEffort) && !pictures,
            _ => false,
        }
    }
}

/// Returns the links of the bench.
pub(super) const LINKS: [Profile; 5] =
    [Profile::Ethernet, Profile::Lossy03, Profile::Lossy5, Profile::Bursty5, Profile::Outage];

/// Returns the cells of a run: those that matter first, so that a run that is cut short has them.
pub(super) fn cells(options: &Options) -> Vec<Cell> {
    let links = options.links.as_deref().unwrap_or(&LINKS);
    let numbers = options.cameras.as_deref().unwrap_or(&[1, 2, 3, 4]);
    let wanted = |subject: &Subject| {
        let named = |names: &Vec<String>| names.iter().any(|name| name == subject.name());
        subject.is_ours() || options.only.as_ref().is_none_or(named)
    };
    let of = |subject: Subject| {
        let of_link = move |link: Profile| numbers.iter().map(move |cameras| Cell { subject, link, cameras: *cameras });
        links.iter().copied().flat_map(of_link)
    };
    let mut cells: Vec<Cell> = SUBJECTS.into_iter().filter(wanted).flat_map(of).collect();
    if !options.all && options.links.is_none() && options.cameras.is_none() {
        cells.retain(Cell::is_essential);
    }
    // The sort is stable.
    cells.sort_by_key(|cell| (!cell.is_essential(), std::cmp::Reverse(cell.cameras)));
    cells
}

/// Returns the names of all rivals.
pub(super) fn rivals() -> Vec<&'static str> {
    let mut names: Vec<&'static str> =
        SUBJECTS.iter().filter(|subject| !subject.is_ours()).map(|subject| subject.name()).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_run_has_the_cells_that_the_bounds_need() {
        let options = Options::default();
        let cells = cells(&options);
        let has = |name: &str, link: Profile, cameras: u8| {
            cells.iter().any(|cell| cell.subject.name() == name && cell.link == link && cell.cameras == cameras)
        };
        assert!(LINKS.iter().all(|link| has("viaduct.frame", *link, 4)));
        assert!(has("best_effort", Profile::Lossy03, 4) && has("tcp", Profile::Lossy5, 4));
        assert!(has("viaduct.glass_to_glass", Profile::Lossy5, 4));
        let seconds = cells.len() as f64 * (f64::from(options.frames + 10) / f64::from(RATE_HZ) + 2.5);
        assert!(seconds < 235.0, "{} cells need {seconds} s", cells.len());
    }

    #[test]
    fn a_full_run_has_every_cell_once() {
        let cells = cells(&Options::full());
        assert_eq!(cells.len(), SUBJECTS.len() * LINKS.len() * 4);
        let keys: std::collections::BTreeSet<String> = cells.iter().map(Cell::key).collect();
        assert_eq!(keys.len(), cells.len());
    }

    #[test]
    fn chosen_links_cameras_and_rivals_are_measured_alone() {
        let only = Some(vec!["mqtt".to_owned()]);
        let options =
            Options { links: Some(vec![Profile::Outage]), cameras: Some(vec![2]), only, ..Options::default() };
        let keys: Vec<String> = cells(&options).iter().map(Cell::key).collect();
        let expected = [
            "viaduct.frame, outage, 2 cameras",
            "viaduct.glass_to_glass, outage, 2 cameras",
            "mqtt qos 0, outage, 2 cameras",
            "mqtt qos 1, outage, 2 cameras",
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn the_parameters_name_the_variant() {
        let cell =
            |transport, variant| Cell { subject: subject(transport, variant), link: Profile::Lossy03, cameras: 4 };
        let params = cell(Transport::Cyclonedds, Some("2")).params(3);
        let expected = json!({
            "cameras": 4, "camera": 3, "link": "lossy-0.3", "size": 374_000, "rate_hz": 10, "case": 2,
        });
        assert_eq!(params, expected);
        assert_eq!(cell(Transport::Cyclonedds, Some("tuned")).params(1)["case"], "tuned");
        assert_eq!(cell(Transport::Mqtt, Some("1")).params(1)["qos"], 1);
        assert_eq!(cell(Transport::Tcp, None).params(1).get("case"), None);
    }
}
