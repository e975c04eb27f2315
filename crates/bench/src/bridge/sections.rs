//! The tables of the report: paper, ours, rivals and floor.

use super::case::{Answer, Cell, Compression, Encryption, Kind, Link, Method, Setup};
use super::figures::{self, Figures, crossings_ms, plain, summary};
use super::outcome::Outcome;
use super::paper::{self, STABLE_HZ, STAGES, Sums};
use crate::report::{Section, figure};
use crate::statistics::Summary;

/// Limits of the sum of both crossings, in milliseconds.
const CROSSINGS_MS: [(Kind, f64); 2] = [(Kind::Scan, 0.3), (Kind::Cloud, 1.8)];
/// Limit of the median from ROS to ROS on one host, in milliseconds.
const HOST_MS: f64 = 4.0;
/// Least ratio of the interface time of mqtt_bridge to ours.
const RATIO_MIN: f64 = 3.0;
/// Limit of the median from points to boxes, in milliseconds.
const DETECTOR_MS: f64 = 40.0;
/// Least ratio of the round trip of the cloud over 5G without compression to that with `auto`.
const COMPRESSION_MIN: f64 = 2.5;

/// Returns the tables.
pub(super) fn sections(figures: &Figures) -> Vec<Section> {
    let mut sections = vec![
        compared(figures, Link::Host),
        use_case(figures),
        stages(figures),
        encryption(figures),
        qos(figures),
        sizes(figures),
        use_case_sizes(figures),
        one_way(figures),
        compared(figures, Link::FiveG),
        compressions(figures),
        rates(figures),
        bounds(figures),
    ];
    sections.retain(|section| !section.rows.is_empty());
    sections
}

fn words(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

fn p50(nanos: &[u64]) -> Option<f64> {
    summary(nanos).map(|summary| summary.p50)
}

/// Returns the median of what the bridges of a cell add to the path.
fn interface_p50(figures: &Figures, (cell, outcome): &(Cell, Outcome)) -> Option<f64> {
    Summary::of(&figures.interface_ms(cell, outcome)?).map(|summary| summary.p50)
}

/// Returns all methods over a link.
fn compared(figures: &Figures, link: Link) -> Section {
    let mut rows = Vec::new();
    for kind in [Kind::Scan, Kind::Cloud] {
        let methods = [
            Method::Ros1,
            Method::Ros2,
            Method::MqttClient,
            Method::MqttBridge,
            Method::Overlay,
            Method::Bus,
            Method::InVehicle,
        ];
        let floors = [Method::Direct, Method::DirectRos2, Method::Tcp, Method::Mqtt];
        let cells =
            methods.into_iter().chain(floors).filter_map(|method| figures.find(&plain(method, link), kind, 100));
        let ours = figures.find(&plain(Method::Ros1, link), kind, 100);
        rows.extend(cells.map(|cell| compared_cells(figures, cell, ours)));
    }
    Section {
        title: format!("Methods over the link `{}`, no encryption, QoS 0, ms", link.name()),
        columns: words(&[
            "method", "message", "n", "lost", "one way p50", "p99", "floor", "interface", "/ours", "round trip p50", "p99", "max",
        ]),
        words: 2,
        rows,
        about: "one way: from the publication at the vehicle to the callback in the cloud; floor: median of the same path without \
                bridges; interface: median of one way minus floor, both crossings; /ours: interface over that of viaduct ros1"
            .to_owned(),
    }
}

fn compared_cells(figures: &Figures, measured: &(Cell, Outcome), ours: Option<&(Cell, Outcome)>) -> Vec<String> {
    let (cell, outcome) = measured;
    let (there, back) = (summary(&outcome.one_way), summary(&outcome.round_trip));
    let pick = |summary: Option<Summary>, pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
    let interface = interface_p50(figures, measured);
    let ratio = ours.and_then(|ours| interface_p50(figures, ours)).zip(interface).map(|(ours, theirs)| theirs / ours);
    let lost = outcome.lost();
    vec![
        cell.setup.method.label().to_owned(),
        cell.load.kind.name().to_owned(),
        outcome.sent.to_string(),
        lost.to_string(),
        pick(there, |summary| summary.p50),
        pick(there, |summary| summary.p99),
        figure(figures.path_floor_ms(cell)),
        figure(interface),
        figure(ratio.filter(|_| cell.setup.method.is_rival())),
        pick(back, |summary| summary.p50),
        pick(back, |summary| summary.p99),
        pick(back, |summary| summary.max),
    ]
}

/// Returns Table I: the stages of the use case.
fn use_case(figures: &Figures) -> Section {
    let over = |link, kind| figures.find(&plain(Method::UseCase, link), kind, 100);
    let ours = [
        over(Link::FiveG, Kind::Scan),
        over(Link::FiveG, Kind::Cloud),
        over(Link::Ethernet, Kind::Scan),
        over(Link::Ethernet, Kind::Cloud),
        figures.find(&plain(Method::UseCaseInVehicle, Link::Host), Kind::Scan, 100),
    ];
    if ours.iter().all(Option::is_none) {
        return Section::default();
    }
    let row = |(stage, published): &(&str, [Option<f64>; 4])| {
        let measured = ours.map(|cell| stage_mean_ms(&cell?.1, stage));
        let floor = figures.use_case_floor_ms(Link::FiveG, Kind::Scan, stage);
        let all = published.iter().copied().chain(measured).chain([floor]);
        std::iter::once((*stage).to_owned()).chain(all.map(figure)).collect()
    };
    Section {
        title: "Table I: stages of the use case, means in ms".to_owned(),
        columns: words(&[
            "stage", "paper mqtt_client", "paper mqtt_bridge", "paper overlay", "paper in-vehicle", "5g scan", "5g cloud", "ethernet scan",
            "ethernet cloud", "in-vehicle", "floor",
        ]),
        words: 1,
        rows: STAGES.iter().map(row).collect(),
        about: "ours: a simulated VLP-32C, MQTT without compression, and a neural network on one core; the ways between vehicle and cloud \
                are the mean of both, as in the paper; scan, in-vehicle: interface_to_detection contains the conversion to points; \
                floor: that of 5g scan, a message of plain MQTT on each way, and the detector alone"
            .to_owned(),
    }
}

/// Returns the mean of a stage of the use case in milliseconds, or that of all stages together.
fn stage_mean_ms(outcome: &Outcome, stage: &str) -> Option<f64> {
    let stage_ms = || Summary::of(outcome.stage_ms(stage)?);
    let summary = if stage == "total" { summary(&outcome.round_trip) } else { stage_ms() };
    summary.map(|summary| summary.mean)
}

/// Returns the interfaces and the link of Table I as they were measured over the emulated 5G link, between ends in ROS.
fn stages(figures: &Figures) -> Section {
    let [ours, client, bridge, overlay] = [Method::Ros1, Method::MqttClient, Method::MqttBridge, Method::Overlay]
        .map(|method| figures.find(&plain(method, Link::FiveG), Kind::Scan, 100));
    if [ours, client, bridge, overlay].iter().all(Option::is_none) {
        return Section::default();
    }
    let mean = |cell: Option<&(Cell, Outcome)>, samples: fn(&Outcome) -> &Vec<u64>| {
        cell.and_then(|(_, outcome)| summary(samples(outcome))).map(|summary| summary.mean)
    };
    let by_stamps = ours.map(|(cell, outcome)| figures::stages(cell, outcome)).unwrap_or_default();
    let stamps =
        |name: &str| by_stamps.iter().find(|stage| stage.name == name).map(|stage| stage.sum_ms(|hop| hop.mean_us));
    let cells =
        |name: &str, [client_paper, bridge_paper, overlay, in_vehicle]: [Option<f64>; 4], here: [Option<f64>; 4]| {
            let mut cells = vec![name.to_owned()];
            cells.extend([client_paper, bridge_paper, overlay, in_vehicle].into_iter().chain(here).map(figure));
            cells
        };
    let mut rows: Vec<Vec<String>> =
        STAGES.iter().map(|(stage, published)| cells(stage, *published, [stamps(stage), None, None, None])).collect();
    let all = |samples| [ours, client, bridge, overlay].map(|cell| mean(cell, samples));
    rows.push(cells("one way, vehicle to cloud", [None; 4], all(|outcome| &outcome.one_way)));
    rows.push(cells("round trip without detection", [None; 4], all(|outcome| &outcome.round_trip)));
    Section {
        title: "Table I from ROS to ROS: stages over 5G without detection, whole scans, means in ms".to_owned(),
        columns: words(&[
            "stage", "paper mqtt_client", "paper mqtt_bridge", "paper overlay", "paper in-vehicle", "ours", "mqtt_client", "mqtt_bridge", "overlay",
        ]),
        words: 1,
        rows,
        about: "ours by stage: as the nodes report them; all systems between the same ends in ROS, and the cloud returns a list at once"
            .to_owned(),
    }
}

/// Columns of Tables II to IV.
fn sums_columns(first: &str) -> Vec<String> {
    words(&[
        first,
        "message",
        "paper interfaces",
        "paper link",
        "ours interface",
        "ours one way",
        "ours 5g one way",
        "ours 5g round trip",
        "floor",
    ])
}

const SUMS_ABOUT: &str = "paper: means, four crossings of the interfaces, and both ways between vehicle and cloud; ours: medians; \
                          interface: both crossings that carry the cloud on one host, one way minus floor; floor: the same path without \
                          bridges and without encryption";

/// Returns a row of Tables II to IV.
fn sums_cells(
    figures: &Figures,
    first: &str,
    host: &Setup,
    (kind, percent): (Kind, u8),
    paper: Option<Sums>,
) -> Option<Vec<String>> {
    let on_host = figures.find(host, kind, percent);
    let over_5g = figures.find(&Setup { link: Link::FiveG, ..*host }, kind, percent);
    on_host.or(over_5g)?;
    let one_way = |cell: Option<&(Cell, Outcome)>| cell.and_then(|(_, outcome)| p50(&outcome.one_way));
    Some(vec![
        first.to_owned(),
        format!("{} {percent} %", kind.name()),
        figure(paper.map(|sums| sums.interfaces)),
        figure(paper.map(|sums| sums.link)),
        figure(on_host.and_then(|cell| interface_p50(figures, cell))),
        figure(one_way(on_host)),
        figure(one_way(over_5g)),
        figure(over_5g.and_then(|(_, outcome)| p50(&outcome.round_trip))),
        figure(on_host.and_then(|(cell, _)| figures.path_floor_ms(cell))),
    ])
}

const MESSAGES: [(Kind, u8); 2] = [(Kind::Scan, 100), (Kind::Cloud, 100)];

fn encryption(figures: &Figures) -> Section {
    let rows = [Encryption::None, Encryption::Tls, Encryption::MutualTls].into_iter().flat_map(|encryption| {
        let setup = Setup { encryption, ..plain(Method::Ros1, Link::Host) };
        let published = paper::ENCRYPTION.iter().find(|(name, _)| *name == encryption.name()).map(|(_, sums)| *sums);
        MESSAGES.into_iter().filter_map(move |message| {
            sums_cells(figures, encryption.name(), &setup, message, published.filter(|_| message.0 == Kind::Scan))
        })
    });
    Section {
        title: "Table II: encryption, ms".to_owned(),
        columns: sums_columns("encryption"),
        words: 2,
        rows: rows.collect(),
        about: SUMS_ABOUT.to_owned(),
    }
}

fn qos(figures: &Figures) -> Section {
    let rows = (0_u8..).zip(paper::QOS).flat_map(|(qos, published)| {
        let setup = Setup { qos, ..plain(Method::Ros1, Link::Host) };
        MESSAGES.into_iter().filter_map(move |message| {
            let published = Some(published).filter(|_| message.0 == Kind::Scan);
            sums_cells(figures, &format!("QoS {qos}"), &setup, message, published)
        })
    });
    Section {
        title: "Table III: quality of service, ms".to_owned(),
        columns: sums_columns("QoS"),
        words: 2,
        rows: rows.collect(),
        about: SUMS_ABOUT.to_owned(),
    }
}

fn sizes(figures: &Figures) -> Section {
    let rows = paper::SIZES.iter().filter_map(|(name, percent, sums)| {
        let kind = if *name == Kind::Scan.name() { Kind::Scan } else { Kind::Cloud };
        sums_cells(figures, name, &plain(Method::Ros1, Link::Host), (kind, *percent), Some(*sums))
    });
    Section {
        title: "Table IV: size and type of the data, ms".to_owned(),
        columns: sums_columns("type"),
        words: 2,
        rows: rows.collect(),
        about: format!("{SUMS_ABOUT}; the paper measured 0 % with QoS 1"),
    }
}

/// Crossings of the MQTT interfaces in the use case, and its ways between vehicle and cloud.
const INTERFACES: [&str; 4] =
    ["vehicle_interface_out", "cloud_interface_in", "cloud_interface_out", "vehicle_interface_in"];
const WAYS: [&str; 2] = ["vehicle_to_cloud", "cloud_to_vehicle"];

/// Returns Table IV with the use case, whose sums are those of the paper.
fn use_case_sizes(figures: &Figures) -> Section {
    let rows = paper::SIZES.iter().zip(paper::DETECTION).filter_map(|((name, percent, sums), detection)| {
        let kind = if *name == Kind::Scan.name() { Kind::Scan } else { Kind::Cloud };
        let (_, outcome) = figures.find(&plain(Method::UseCase, Link::FiveG), kind, *percent)?;
        let sum = |stages: &[&str]| stages.iter().map(|stage| stage_mean_ms(outcome, stage)).sum::<Option<f64>>();
        let published = [sums.interfaces, sums.link, detection, sums.interfaces + sums.link + detection].map(Some);
        let [interfaces, ways, detection] = [sum(&INTERFACES), sum(&WAYS), sum(&["detection"])];
        let all = [interfaces, ways, detection].iter().copied().sum();
        let figures = published.into_iter().chain([interfaces, ways, detection, all]).map(figure);
        Some([(*name).to_owned(), format!("{percent} %")].into_iter().chain(figures).collect())
    });
    Section {
        title: "Table IV with detection: size and type of the data over 5G, means in ms".to_owned(),
        columns: words(&[
            "type", "size", "paper interfaces", "paper link", "paper detection", "paper sum", "ours interfaces", "ours link", "ours detection",
            "ours sum",
        ]),
        words: 2,
        rows: rows.collect(),
        about: "interfaces: four crossings; link: both ways; the other stages are not in the sum; the paper measured 0 % with QoS 1".to_owned(),
    }
}

/// Returns Table V with the links of this run.
fn one_way(figures: &Figures) -> Section {
    let mut rows = Vec::new();
    for link in [Link::FiveG, Link::Ethernet, Link::Host] {
        for percent in [0, 100] {
            let published = paper::ONE_WAY.iter().find(|(name, share, _)| *name == link.name() && *share == percent);
            let measured = figures.find(&plain(Method::Ros1, link), Kind::Scan, percent);
            rows.extend(published.map(|(.., values)| {
                let mut cells = vec!["paper mqtt_client".to_owned(), link.name().to_owned(), format!("{percent} %")];
                cells.extend(values.map(|value| figure(Some(value))));
                cells.push(String::new());
                cells
            }));
            rows.extend(measured.map(|measured| one_way_cells(figures, measured)));
        }
    }
    Section {
        title: "Table V: one way from the vehicle to the cloud, scans, ms".to_owned(),
        columns: words(&["row", "link", "size", "mean", "median", "min", "max", "sd", "floor"]),
        words: 3,
        rows,
        about: "paper: half of the round trip between vehicle and broker, Ethernet by cable; ours: from ROS to ROS, Ethernet by a pair of \
                virtual devices without a limit of the rate"
            .to_owned(),
    }
}

fn one_way_cells(figures: &Figures, (cell, outcome): &(Cell, Outcome)) -> Vec<String> {
    let summary = summary(&outcome.one_way);
    let pick = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
    vec![
        cell.setup.method.label().to_owned(),
        cell.setup.link.name().to_owned(),
        format!("{} %", cell.load.percent),
        pick(|summary| summary.mean),
        pick(|summary| summary.p50),
        pick(|summary| summary.min),
        pick(|summary| summary.max),
        pick(|summary| summary.sd),
        figure(figures.path_floor_ms(cell)),
    ]
}

/// Returns the compressions of point clouds.
fn compressions(figures: &Figures) -> Section {
    let all =
        [Compression::None, Compression::Zstd, Compression::Planes, Compression::Auto, Compression::AutoMillimetre];
    let links = [(Link::FiveG, Answer::List), (Link::NarrowFiveG, Answer::List), (Link::NarrowFiveG, Answer::Same)];
    let rows = links.into_iter().flat_map(|path| all.map(|compression| compression_cells(figures, path, compression)));
    Section {
        title: "Compression of the cloud over 5G, ms".to_owned(),
        columns: words(&[
            "link", "answer", "compression", "Hz", "n", "lost", "one way p50", "p99", "round trip p50", "p99", "none/this",
        ]),
        words: 3,
        rows: rows.flatten().collect(),
        about: "none/this: median of the round trip without compression over that with it; all are lossless except auto-1mm, which rounds \
                coordinates to 1 mm; 5g-84: the link whose rate is that of the paper's break point; auto \
                chooses by the goodput of a node's own connection, so the cloud's node, which is next to the broker, does not compress what \
                goes back"
            .to_owned(),
    }
}

fn compression_cells(figures: &Figures, path: (Link, Answer), compression: Compression) -> Option<Vec<String>> {
    let (cell, outcome) = compressed(figures, path, compression)?;
    let (there, back) = (summary(&outcome.one_way), summary(&outcome.round_trip));
    let pick = |summary: Option<Summary>, pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
    Some(vec![
        cell.setup.link.name().to_owned(),
        cell.load.answer.name().to_owned(),
        compression.name().to_owned(),
        cell.load.rate_hz.to_string(),
        outcome.sent.to_string(),
        outcome.lost().to_string(),
        pick(there, |summary| summary.p50),
        pick(there, |summary| summary.p99),
        pick(back, |summary| summary.p50),
        pick(back, |summary| summary.p99),
        figure(gain(figures, path, compression)),
    ])
}

/// Returns the cell of a cloud over an emulated link.
fn compressed(figures: &Figures, (link, answer): (Link, Answer), compression: Compression) -> Option<&(Cell, Outcome)> {
    figures.find_answered(&Setup { compression, ..plain(Method::Ros1, link) }, Kind::Cloud, 100, answer)
}

/// Returns the median of the round trip without compression over that with it.
fn gain(figures: &Figures, path: (Link, Answer), compression: Compression) -> Option<f64> {
    let median = |compression| p50(&compressed(figures, path, compression)?.1.round_trip);
    Some(median(Compression::None)? / median(compression)?)
}

/// Returns the sweep of the rate, with the scan in both directions.
fn rates(figures: &Figures) -> Section {
    let swept: Vec<&(Cell, Outcome)> = figures
        .measured()
        .filter(|(cell, _)| (cell.load.kind, cell.load.answer) == (Kind::Scan, Answer::Same))
        .collect();
    let slowest = |method| {
        let of_method = swept.iter().filter(|(cell, _)| cell.setup.method == method);
        let (_, outcome) = of_method.min_by_key(|(cell, _)| cell.load.rate_hz)?;
        p50(&outcome.round_trip)
    };
    Section {
        title: "Rate over 5G: the whole scan there and back, ms".to_owned(),
        columns: words(&["method", "Hz", "paper", "here", "MB/s", "n", "lost", "round trip p50", "p99", "max", "sd"]),
        words: 1,
        rows: swept.iter().map(|measured| rate_cells(measured, slowest(measured.0.setup.method))).collect(),
        about: format!(
            "the paper's link carries {STABLE_HZ} Hz and becomes unstable at {} Hz; the rate of the emulated one, \
             84.3 Mbit/s, is chosen so; here: stable if nothing is lost and the median is at most twice that of the lowest rate; MB/s: in each direction",
            STABLE_HZ + 1
        ),
    }
}

fn rate_cells((cell, outcome): &(Cell, Outcome), slowest: Option<f64>) -> Vec<String> {
    let summary = summary(&outcome.round_trip);
    let pick = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
    let lost = outcome.sent.saturating_sub(outcome.round_trip.len() as u64);
    let word = |is_stable: bool| if is_stable { "stable" } else { "unstable" }.to_owned();
    let is_quick = summary.zip(slowest).is_some_and(|(summary, slowest)| summary.p50 <= 2.0 * slowest);
    vec![
        cell.setup.method.label().to_owned(),
        cell.load.rate_hz.to_string(),
        word(cell.load.rate_hz <= STABLE_HZ),
        word(lost == 0 && is_quick),
        figure(Some(f64::from(cell.load.rate_hz) * cell.load.octets() as f64 / 1e6)),
        outcome.sent.to_string(),
        lost.to_string(),
        pick(|summary| summary.p50),
        pick(|summary| summary.p99),
        pick(|summary| summary.max),
        pick(|summary| summary.sd),
    ]
}

/// Returns the targets and what this run has reached.
fn bounds(figures: &Figures) -> Section {
    let mut rows = Vec::new();
    let mut bound = |what: &str, message: &str, target: String, reached: f64, met: bool| {
        let met = if met { "met" } else { "missed" };
        rows.push(vec![what.to_owned(), message.to_owned(), target, figure(Some(reached)), met.to_owned()]);
    };
    let host = |method| plain(method, Link::Host);
    for (kind, most) in CROSSINGS_MS {
        let Some(ours) = figures.find(&host(Method::Ros1), kind, 100) else { continue };
        let target = format!("at most {most} ms");
        if let Some(sum) = crossings_ms(&ours.0, &ours.1, |hop| hop.p50_us) {
            bound("both crossings, sum of medians by stamps", kind.name(), target.clone(), sum, sum <= most);
        }
        if let Some(interface) = interface_p50(figures, ours) {
            bound("both crossings, median from outside", kind.name(), target, interface, interface <= most);
        }
        let theirs = figures.find(&host(Method::MqttBridge), kind, 100).and_then(|cell| interface_p50(figures, cell));
        if let Some((theirs, ours)) = theirs.zip(interface_p50(figures, ours)) {
            let (target, ratio) = (format!("at least {RATIO_MIN}"), theirs / ours);
            bound("interface of mqtt_bridge over ours", kind.name(), target, ratio, ratio >= RATIO_MIN);
        }
    }
    let detector = figures.find(&host(Method::Detector), Kind::Cloud, 100);
    if let Some(median) = detector.and_then(|(_, outcome)| p50(&outcome.one_way)) {
        let target = format!("at most {DETECTOR_MS} ms");
        bound("detector: points to boxes on one thread, median", "cloud", target, median, median <= DETECTOR_MS);
    }
    let cloud = figures.find(&host(Method::Ros1), Kind::Cloud, 100);
    if let Some(median) = cloud.and_then(|(_, outcome)| p50(&outcome.one_way)) {
        bound(
            "ROS to MQTT to ROS on one host, median",
            "cloud",
            format!("at most {HOST_MS} ms"),
            median,
            median <= HOST_MS,
        );
    }
    for (path, message) in [
        ((Link::FiveG, Answer::List), "cloud, 5g, list back"),
        ((Link::NarrowFiveG, Answer::List), "cloud, 5g-84, list back"),
        ((Link::NarrowFiveG, Answer::Same), "cloud, 5g-84, cloud back"),
    ] {
        for compression in [Compression::Auto, Compression::AutoMillimetre] {
            let Some(ratio) = gain(figures, path, compression) else { continue };
            let what = format!("round trip, none over {}", compression.name());
            bound(&what, message, format!("at least {COMPRESSION_MIN}"), ratio, ratio >= COMPRESSION_MIN);
        }
    }
    Section {
        title: "Bounds".to_owned(),
        columns: words(&["bound", "message", "target", "reached", "met"]),
        words: 3,
        rows,
        about: "by stamps: from the complete message of ROS to its last octet in the broker's socket, and from the complete message of \
                MQTT to its last octet in the socket of ROS; the sum of the medians of these hops"
            .to_owned(),
    }
}
