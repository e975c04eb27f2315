//! Rows and tables of the report.

use serde_json::{Map, Value, json};

use super::plan::{Cell, Part, Results};
use super::size::CodecSizes;
use crate::report::{Row, Section, figure};
use crate::statistics::Summary;

/// Octets of the headers of IPv4 and UDP.
const HEADER_OCTETS: f64 = 28.0;
/// The paper's figures for 10,000 messages on a Raspberry Pi over a LAN, in microseconds: first and mean.
const PAPER: [(&str, &str, f64, f64); 2] =
    [("paper.mqttsn", "MQTT-SN QoS 1", 14_300.0, 4_380.0), ("paper.coap", "CoAP CON", 5_900.0, 6_350.0)];
/// The paper's octets on the wire for one reliable message.
const PAPER_OCTETS: [(&str, f64); 3] = [("CoAP CON", 140.0), ("MQTT QoS 1", 162.0), ("MQTT QoS 2", 318.0)];
/// Energy of a transmitted octet of IEEE 802.15.4 in microjoules: 250 kbit/s, 3 V, 17.4 mA (CC2420 at 0 dBm). Reception takes a similar power.
const MICROJOULES_PER_OCTET: f64 = 8.0 / 250_000.0 * 3.0 * 17.4e-3 * 1e6;

pub(super) fn rows(results: &Results) -> Vec<Row> {
    let measured = results.cells.iter().map(|cell| {
        let series = &cell.series;
        let row = Row::latencies(cell.name, &cell.params, series.samples.clone(), series.undelivered);
        Row { n: series.messages(), ..row }
    });
    let paper = PAPER.iter().map(|(name, what, first, mean)| {
        let params =
            json!({ "what": what, "first_us": first, "source": "Lightweight protocols, 10,000 consecutive messages" });
        Row { n: 10_000, mean: Some(*mean), ..Row::empty(name, &params, "us") }
    });
    let octets = PAPER_OCTETS.iter().map(|(what, octets)| {
        let params = json!({ "what": what, "source": "cited by Lightweight protocols" });
        Row { mean: Some(*octets), ..Row::empty("paper.octets", &params, "octets") }
    });
    let sizes = results.sizes.iter().flat_map(CodecSizes::rows);
    measured.chain(paper).chain(octets).chain(sizes).collect()
}

pub(super) fn sections(results: &Results) -> Vec<Section> {
    let measured = [consecutive, bounds, payloads, clients, loss, octets].map(|section| section(results));
    measured.into_iter().chain(results.sizes.as_ref().map(CodecSizes::section)).collect()
}

fn cells(results: &Results, part: Part) -> impl Iterator<Item = &Cell> {
    results.cells.iter().filter(move |cell| cell.part == part)
}

fn summary(cell: &Cell) -> Option<Summary> {
    Summary::of(&cell.series.samples)
}

fn p50(cell: &Cell) -> Option<f64> {
    summary(cell).map(|summary| summary.p50)
}

/// Returns the first cell of a part with these parameters.
fn find<'a>(results: &'a Results, part: Part, name: &str, wanted: &Value) -> Option<&'a Cell> {
    let empty = Map::new();
    let wanted = wanted.as_object().unwrap_or(&empty);
    cells(results, part).find(|cell| {
        cell.name == name && wanted.iter().all(|(key, value)| cell.params.get(key).is_some_and(|found| found == value))
    })
}

fn section(title: &str, columns: &[&str], words: usize, rows: Vec<Vec<String>>, about: &str) -> Section {
    Section {
        title: title.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        words,
        rows,
        about: about.to_owned(),
    }
}

fn floor(results: &Results, part: Part) -> Option<f64> {
    cells(results, part).find(|cell| cell.name.starts_with("floor.")).and_then(p50)
}

fn consecutive(results: &Results) -> Section {
    let floor = floor(results, Part::Consecutive);
    let rows = cells(results, Part::Consecutive).map(|cell| {
        let summary = summary(cell);
        let of = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
        let paper = match cell.name {
            "viaduct.mqttsn" if cell.params["qos"] == 1 => Some(PAPER[0]),
            "viaduct.coap" if cell.params["type"] == "con" => Some(PAPER[1]),
            _ => None,
        };
        let times = summary.as_ref().zip(floor).map(|(summary, floor)| summary.p50 / floor);
        vec![
            cell.label.clone(),
            figure(paper.map(|(_, _, first, _)| first)),
            figure(cell.series.connect.or(cell.series.first)),
            figure(paper.map(|(.., mean)| mean)),
            of(|summary| summary.mean),
            of(|summary| summary.p50),
            of(|summary| summary.p99),
            figure(times),
            cell.series.undelivered.to_string(),
        ]
    });
    section(
        "Consecutive messages on this host",
        &[
            "system",
            "paper first us",
            "first us",
            "paper mean us",
            "mean us",
            "p50 us",
            "p99 us",
            "p50 / floor",
            "undelivered",
        ],
        1,
        rows.collect(),
        "The time from a message of 20 octets to its acknowledgement; the next message follows then. QoS 0: until the datagram is sent. \
         `first`: the first message of a client, which is not among the others; with MQTT-SN together with CONNECT and REGISTER. The paper \
         measured a Raspberry Pi with a server on a LAN.",
    )
}

fn bounds(results: &Results) -> Section {
    let part = Part::Consecutive;
    let floor = floor(results, part);
    let of = |name: &str, wanted: Value| find(results, part, name, &wanted).and_then(p50);
    let machine = of("viaduct.mqttsn", json!({ "qos": 1, "path": "machine" }));
    let endpoint = of("viaduct.coap", json!({ "type": "con", "path": "endpoint" }));
    let embedded = find(results, part, "viaduct.mqttsn", &json!({ "qos": 1, "path": "embedded" }));
    let loss = |name: &str, share: f64| {
        let wanted = json!({ "timers": "adaptive", "loss": share, "bursty": false });
        find(results, Part::Loss, name, &wanted)
    };
    let mean_ms = |cell: Option<&Cell>| cell.and_then(summary).map(|summary| summary.mean / 1000.0);
    let crowd = find(results, Part::Clients, "viaduct.mqttsn", &json!({ "clients": 1000, "path": "embedded" }));
    let ratio = |value: Option<f64>| value.zip(floor).map(|(value, floor)| value / floor);
    let undelivered =
        [0.1, 0.25].into_iter().flat_map(|share| ["viaduct.coap", "viaduct.mqttsn"].map(|name| loss(name, share)));
    let undelivered: Vec<u64> = undelivered.flatten().map(|cell| cell.series.undelivered).collect();
    let all = (!undelivered.is_empty()).then(|| undelivered.iter().sum::<u64>() as f64);
    let rows = [
        ("MQTT-SN QoS 1, gateway machine: p50, us", machine, 20.0),
        ("CoAP CON, endpoint: p50, us", endpoint, 20.0),
        ("MQTT-SN: p50 by that of UDP ping-pong", ratio(machine), 1.3),
        ("CoAP: p50 by that of UDP ping-pong", ratio(endpoint), 1.3),
        ("gateway and embedded broker: p50, us", embedded.and_then(p50), 60.0),
        ("connection, registration and first message, us", embedded.and_then(|cell| cell.series.connect), 1000.0),
        (
            "1,000 clients, 10 messages/s each: CPU of the gateway, % of a core",
            crowd.and_then(|cell| cell.cpu_percent),
            100.0,
        ),
        ("CoAP, 10 % loss: mean, ms", mean_ms(loss("viaduct.coap", 0.1)), 60.0),
        ("CoAP, 25 % loss: mean, ms", mean_ms(loss("viaduct.coap", 0.25)), 150.0),
        ("MQTT-SN, 10 % loss: mean, ms", mean_ms(loss("viaduct.mqttsn", 0.1)), 60.0),
        ("MQTT-SN, 25 % loss: mean, ms", mean_ms(loss("viaduct.mqttsn", 0.25)), 150.0),
        ("undelivered at 10 and 25 % loss", all, 0.0),
    ];
    let rows = rows.into_iter().map(|(what, value, bound)| {
        let met = value.map_or("not measured", |value| if value <= bound { "yes" } else { "no" });
        vec![what.to_owned(), met.to_owned(), figure(value), figure(Some(bound))]
    });
    section(
        "Bounds",
        &["figure", "met", "measured", "bound"],
        2,
        rows.collect(),
        "Loss is in each direction, independent, at a round trip of 30 ms.",
    )
}

fn payloads(results: &Results) -> Section {
    let rows = cells(results, Part::Payloads).map(|cell| {
        let summary = summary(cell);
        let of = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
        vec![
            cell.label.clone(),
            cell.params["payload"].to_string(),
            of(|one| one.p50),
            of(|one| one.mean),
            of(|one| one.p99),
        ]
    });
    section(
        "Payloads",
        &["system", "octets", "p50 us", "mean us", "p99 us"],
        1,
        rows.collect(),
        "Machines without bus and broker. A payload of 1,024 octets in CoAP fits into one block.",
    )
}

fn clients(results: &Results) -> Section {
    let rows = cells(results, Part::Clients).map(|cell| {
        let summary = summary(cell);
        let of = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(pick));
        vec![
            cell.label.clone(),
            cell.series.messages().to_string(),
            of(|summary| summary.p50),
            of(|summary| summary.p99),
            figure(cell.cpu_percent),
            cell.series.undelivered.to_string(),
        ]
    });
    section(
        "Clients with ten messages of QoS 1, or confirmable ones, per second each",
        &["system", "messages", "p50 us", "p99 us", "CPU %", "undelivered"],
        1,
        rows.collect(),
        "CPU: time of the process of the gateway, with the embedded broker if there is one, or of the CoAP server, in per cent of one core. The clients share the cores.",
    )
}

fn loss(results: &Results) -> Section {
    let rows = cells(results, Part::Loss).map(|cell| {
        let summary = summary(cell);
        let ms = |pick: fn(&Summary) -> f64| figure(summary.as_ref().map(|one| pick(one) / 1000.0));
        let messages = cell.series.messages();
        let per_message = |count: u64| (count > 0).then(|| count as f64 / messages.max(1) as f64);
        vec![
            cell.label.clone(),
            messages.to_string(),
            ms(|summary| summary.p50),
            ms(|summary| summary.mean),
            ms(|summary| summary.p99),
            ms(|summary| summary.max),
            figure(per_message(cell.series.traffic.retransmissions)),
            figure(per_message(cell.series.traffic.octets)),
            cell.series.undelivered.to_string(),
        ]
    });
    section(
        "Loss in each direction, round trip 30 ms",
        &["system", "messages", "p50 ms", "mean ms", "p99 ms", "max ms", "retransmissions", "octets", "undelivered"],
        1,
        rows.collect(),
        "Twenty clients at a time over an emulated link between two network namespaces; each sends one message after the other. Retransmissions of \
         the client and octets of UDP payload in both directions are per message. Bursts have 4 packets on average. A cell with fixed waits ends after 8 s, \
         so few of its longest delays are in it.",
    )
}

fn octets(results: &Results) -> Section {
    let part = Part::Consecutive;
    let rows = cells(results, part).filter(|cell| cell.series.traffic.datagrams > 0).map(|cell| {
        let messages = cell.series.messages().max(1) as f64;
        let (datagrams, payload) =
            (cell.series.traffic.datagrams as f64 / messages, cell.series.traffic.octets as f64 / messages);
        let wire = payload + HEADER_OCTETS * datagrams;
        let paper = match (cell.name, &cell.params["qos"], &cell.params["type"]) {
            ("viaduct.coap", _, kind) if kind == "con" => Some(PAPER_OCTETS[0].1),
            _ => None,
        };
        vec![
            cell.label.clone(),
            figure(paper),
            figure(Some(datagrams)),
            figure(Some(payload)),
            figure(Some(wire)),
            figure(Some(wire * MICROJOULES_PER_OCTET)),
        ]
    });
    section(
        "Octets on the wire for one message of 20 octets",
        &["system", "paper", "datagrams", "UDP payload", "with IPv4 and UDP", "energy uJ"],
        1,
        rows.collect(),
        "Both directions, without link headers. The paper cites 140 octets for CoAP and 162 and 318 for MQTT with QoS 1 and 2, without \
         the size of the payload. Energy: an estimate for a radio of 250 kbit/s, 3 V and 17.4 mA.",
    )
}
