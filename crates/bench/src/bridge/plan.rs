//! The cells of a run, those that matter first.

use super::Options;
use super::case::{Answer, Cell, Compression, Encryption, Kind, Link, Load, Method, Setup};

/// Rate of the messages in a default run, and that of the paper.
const RATE_HZ: u32 = 20;
const PAPER_RATE_HZ: u32 = 10;
/// Rate of the clouds over the narrow link, which carries fewer than ten per second.
const NARROW_RATE_HZ: u32 = 5;
/// Rates of the sweep in a default run, and in a full one.
const SWEEP_HZ: [u32; 4] = [10, 55, 56, 60];
const FULL_SWEEP_HZ: [u32; 12] = [10, 20, 30, 40, 45, 50, 52, 54, 55, 56, 58, 60];
/// Compressions of clouds in a default run, and in a full one.
const COMPRESSIONS: [Compression; 2] = [Compression::Auto, Compression::AutoMillimetre];
const FULL_COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Zstd, Compression::Planes, Compression::Auto, Compression::AutoMillimetre];
/// Sizes of the scan in a full run of the use case.
const FULL_PERCENTS: [u8; 5] = [0, 25, 50, 75, 100];
/// Rounds of the compared methods in a default run.
const ROUNDS: u8 = 2;

/// Returns the cells of a run in the order in which they are measured.
pub(super) fn cells(options: &Options) -> Vec<Cell> {
    let plan = Plan { rate_hz: if options.all { PAPER_RATE_HZ } else { RATE_HZ } };
    let mut cells: Vec<Cell> = if options.all { plan.full() } else { plan.essential() };
    cells.retain(|cell| {
        let Setup { method, link, .. } = cell.setup;
        // The floor of the use case is the detector.
        let is_for_all_links = method.is_floor() || method == Method::Detector;
        let is_wanted_link = options.links.as_ref().is_none_or(|links| links.contains(&link) || is_for_all_links);
        let named = |names: &Vec<String>| names.iter().any(|name| name == method.name());
        is_wanted_link && (!method.is_rival() || options.only.as_ref().is_none_or(named))
    });
    cells
}

/// Returns the names of the rivals.
pub(super) const fn rivals() -> [&'static str; 3] {
    [Method::MqttClient.name(), Method::MqttBridge.name(), Method::Overlay.name()]
}

struct Plan {
    rate_hz: u32,
}

/// A setup without encryption, with quality of service 0.
const fn plain(method: Method, link: Link) -> Setup {
    Setup { method, link, encryption: Encryption::None, qos: 0, compression: Compression::None }
}

impl Plan {
    const fn load(&self, kind: Kind, percent: u8) -> Load {
        Load { kind, percent, answer: Answer::List, rate_hz: self.rate_hz }
    }

    const fn scan(&self, percent: u8) -> Load {
        self.load(Kind::Scan, percent)
    }

    const fn cloud(&self) -> Load {
        self.load(Kind::Cloud, 100)
    }

    /// Returns the cells of the comparison on one host, with their floors.
    fn comparison(&self) -> Vec<Cell> {
        let compared = [Method::Ros1, Method::MqttClient, Method::MqttBridge];
        let others = [Method::Direct, Method::Tcp, Method::Mqtt, Method::Ros2, Method::DirectRos2];
        let rounds = (0..ROUNDS).flat_map(|round| compared.map(|method| (round, method)));
        let all = rounds.chain(others.map(|method| (0, method)));
        let cells = |(round, method)| {
            [self.scan(100), self.cloud()].map(|load| Cell { setup: plain(method, Link::Host), load, round })
        };
        all.flat_map(cells).collect()
    }

    /// Returns a cloud at a rate that the narrow link carries.
    const fn narrow_cloud(&self, answer: Answer) -> Load {
        Load { rate_hz: NARROW_RATE_HZ, answer, ..self.cloud() }
    }

    /// Returns the messages of the use case: a simulated sensor does not turn faster than the real one.
    fn use_case(&self) -> [Load; 2] {
        [self.scan(100), self.cloud()].map(|load| Load { rate_hz: PAPER_RATE_HZ, ..load })
    }

    /// Returns the cells of a default run, which has four minutes.
    fn essential(&self) -> Vec<Cell> {
        let mut cells = self.comparison();
        let mut add = |setup: Setup, loads: &[Load]| {
            cells.extend(loads.iter().map(|load| Cell { setup, load: *load, round: 0 }));
        };
        let (empty, scan, cloud) = (self.scan(0), self.scan(100), self.cloud());
        let [host, over_5g, narrow] =
            [Link::Host, Link::FiveG, Link::NarrowFiveG].map(|link| plain(Method::Ros1, link));
        // Tables I and V. More clouds per second would fill the link.
        let slow_cloud = Load { rate_hz: PAPER_RATE_HZ, ..cloud };
        add(over_5g, &[empty, scan, slow_cloud]);
        add(plain(Method::UseCase, Link::FiveG), &self.use_case());
        add(plain(Method::UseCase, Link::Ethernet), &self.use_case());
        add(plain(Method::UseCaseInVehicle, Link::Host), &self.use_case()[..1]);
        add(plain(Method::Detector, Link::Host), &[cloud]);
        add(plain(Method::MqttClient, Link::FiveG), &[scan, slow_cloud]);
        add(plain(Method::MqttBridge, Link::FiveG), &[scan]);
        add(plain(Method::Overlay, Link::FiveG), &[scan]);
        add(plain(Method::Mqtt, Link::FiveG), &[empty, scan, slow_cloud]);
        let narrow_clouds = [Answer::List, Answer::Same].map(|answer| self.narrow_cloud(answer));
        add(narrow, &narrow_clouds);
        for compression in COMPRESSIONS {
            add(Setup { compression, ..over_5g }, &[slow_cloud]);
            add(Setup { compression, ..narrow }, &narrow_clouds);
        }
        // The paper's break point.
        add(narrow, &SWEEP_HZ.map(|rate_hz| Load { answer: Answer::Same, rate_hz, ..scan }));
        add(plain(Method::Ros1, Link::Ethernet), &[empty, scan]);
        add(plain(Method::Mqtt, Link::Ethernet), &[empty, scan]);
        // Tables II and III.
        add(Setup { encryption: Encryption::Tls, ..host }, &[scan, cloud]);
        add(Setup { encryption: Encryption::MutualTls, ..host }, &[scan]);
        for qos in [1, 2] {
            add(Setup { qos, ..host }, &[scan]);
            add(Setup { qos, ..plain(Method::Mqtt, Link::Host) }, &[scan]);
            add(Setup { qos, ..over_5g }, &[scan]);
        }
        add(plain(Method::Bus, Link::Host), &[scan, cloud]);
        add(plain(Method::InVehicle, Link::Host), &[scan, cloud]);
        // Table IV.
        for method in [Method::Ros1, Method::Direct, Method::Tcp, Method::Mqtt] {
            add(plain(method, Link::Host), &[0, 25, 50, 75].map(|percent| self.scan(percent)));
        }
        cells
    }

    /// Returns every cell.
    fn full(&self) -> Vec<Cell> {
        let mut cells = self.comparison();
        let mut add = |setup: Setup, loads: &[Load]| {
            for load in loads {
                let cell = Cell { setup, load: *load, round: 0 };
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        };
        let loads = [self.scan(0), self.scan(25), self.scan(50), self.scan(75), self.scan(100), self.cloud()];
        for link in [Link::Host, Link::Ethernet, Link::FiveG] {
            for method in
                [Method::Ros1, Method::Ros2, Method::MqttClient, Method::MqttBridge, Method::Bus, Method::Mqtt]
            {
                for encryption in [Encryption::None, Encryption::Tls, Encryption::MutualTls] {
                    for qos in 0..=2 {
                        let is_possible = match method {
                            Method::MqttBridge => qos == 0,
                            Method::Mqtt => encryption == Encryption::None,
                            _ => true,
                        };
                        if is_possible {
                            add(Setup { encryption, qos, ..plain(method, link) }, &loads);
                        }
                    }
                }
            }
            for compression in FULL_COMPRESSIONS {
                add(Setup { compression, ..plain(Method::Ros1, link) }, &[self.scan(100), self.cloud()]);
            }
            if link != Link::Host {
                add(plain(Method::Overlay, link), &loads);
            }
            add(plain(Method::Tcp, link), &loads);
        }
        add(plain(Method::Direct, Link::Host), &loads);
        add(plain(Method::DirectRos2, Link::Host), &loads);
        add(plain(Method::InVehicle, Link::Host), &loads);
        for link in [Link::Host, Link::Ethernet, Link::FiveG] {
            let plain = plain(Method::UseCase, link);
            add(plain, &FULL_PERCENTS.map(|percent| self.scan(percent)));
            add(plain, &[self.cloud()]);
            for compression in FULL_COMPRESSIONS {
                add(Setup { compression, ..plain }, &self.use_case());
            }
            for (encryption, qos) in
                [(Encryption::Tls, 0), (Encryption::MutualTls, 0), (Encryption::None, 1), (Encryption::None, 2)]
            {
                add(Setup { encryption, qos, ..plain }, &self.use_case());
            }
        }
        add(plain(Method::UseCaseInVehicle, Link::Host), &self.use_case());
        add(plain(Method::Detector, Link::Host), &[self.cloud()]);
        for method in [Method::Ros1, Method::MqttClient, Method::MqttBridge] {
            let sweep = FULL_SWEEP_HZ.map(|rate_hz| Load { answer: Answer::Same, rate_hz, ..self.scan(100) });
            add(plain(method, Link::NarrowFiveG), &sweep);
        }
        for compression in FULL_COMPRESSIONS {
            let clouds = [Answer::List, Answer::Same].map(|answer| self.narrow_cloud(answer));
            add(Setup { compression, ..plain(Method::Ros1, Link::NarrowFiveG) }, &clouds);
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_default_run_fits_into_four_minutes() {
        let options = Options::default();
        let cells = cells(&options);
        let seconds = options.durations(&cells).iter().sum::<Duration>().as_secs();
        assert!(seconds < 235, "{} cells need {seconds} s", cells.len());
    }

    #[test]
    fn each_cell_of_a_run_has_a_key_of_its_own() {
        for options in [Options::default(), Options::full()] {
            let cells = cells(&options);
            let keys: BTreeSet<(String, u8)> = cells.iter().map(|cell| (cell.key(), cell.round)).collect();
            assert_eq!(keys.len(), cells.len());
        }
    }

    #[test]
    fn links_and_rivals_can_be_chosen() {
        let options =
            Options { links: Some(vec![Link::Ethernet]), only: Some(vec!["mqtt_client".into()]), ..Options::full() };
        let cells = cells(&options);
        let is_floor = |method: Method| method.is_floor() || method == Method::Detector;
        let others = cells.iter().filter(|cell| !is_floor(cell.setup.method));
        assert!(
            others.clone().all(|cell| cell.setup.link == Link::Ethernet && cell.setup.method != Method::MqttBridge)
        );
        assert!(others.clone().any(|cell| cell.setup.method == Method::MqttClient));
        assert!(cells.iter().any(|cell| cell.setup.method == Method::Direct), "the floor of the same run");
    }
}
