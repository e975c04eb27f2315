//! The cells over an emulated link that loses packets in both directions.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use viaduct_components::link::{End, Tunnel, TunnelSettings};
use viaduct_mqttsn::codec::Qos;
use viaduct_netem::LinksConfig;
use viaduct_units::retransmission::Profile;

use super::baseline::MqttSender;
use super::client::{CoapForm, CoapSender, Sender, SnSender};
use super::plan::{Part, Results, libcoap_client};
use super::series::{Series, parallel};
use super::setup::{self, Behind, PATH, Place};
use super::{Options, PAYLOAD_OCTETS};
use crate::error::BenchError;
use crate::progress::print_progress;

/// Delay of each direction in milliseconds: a constant part, and an exponential one on average.
const DELAY_MS: [f64; 2] = [10.0, 5.0];
/// Round trip of the link in milliseconds.
const RTT_MS: u64 = 30;
/// Losses in per cent of the packets of each direction, and those of a default run.
const LOSSES: [u32; 5] = [0, 5, 10, 20, 25];
const ESSENTIAL_LOSSES: [u32; 3] = [0, 10, 25];
/// Mean length of a burst in packets.
const BURST_PACKETS: f64 = 4.0;
/// Clients at a time. Each sends its messages one after the other.
const CLIENTS: usize = 20;
/// Longest time of a cell.
const TIME_MAX: Duration = Duration::from_secs(120);
/// Longest time of a cell whose clients wait for seconds.
const SLOW_TIME_MAX: Duration = Duration::from_secs(8);

/// A link of the cells.
#[derive(Clone, Copy)]
struct Lossy {
    percent: u32,
    is_bursty: bool,
}

impl Lossy {
    fn settings(self, seed: u64) -> Result<TunnelSettings, BenchError> {
        let share = f64::from(self.percent) / 100.0;
        let loss = match (self.percent, self.is_bursty) {
            (0, _) => json!("none"),
            (_, false) => json!({ "independent": share }),
            (_, true) => json!({ "bursts": { "loss": share, "packets": BURST_PACKETS } }),
        };
        let [base, exponential] = DELAY_MS;
        // If the packets of all clients kept one order, each would wait for the slowest before it, and the round trip of a
        // client would depend on the others. A client has one message in flight, so its own packets keep their order.
        let delay = json!({ "base_ms": base, "jitter": { "exponential_ms": exponential }, "order": "free" });
        let links = json!({ "both": { "loss": loss, "delay": delay } });
        let links: LinksConfig = serde_json::from_value(links).map_err(BenchError::part("cannot describe a link"))?;
        Ok(TunnelSettings { links, seed, ..TunnelSettings::default() })
    }

    fn params(self, more: Value) -> Value {
        let mut params = json!({
            "clients": CLIENTS, "loss": f64::from(self.percent) / 100.0, "bursty": self.is_bursty, "rtt_ms": RTT_MS,
            "payload": PAYLOAD_OCTETS,
        });
        if let (Some(all), Value::Object(more)) = (params.as_object_mut(), more) {
            all.extend(more);
        }
        params
    }

    fn label(self, what: &str) -> String {
        let kind = if self.is_bursty { " in bursts" } else { "" };
        format!("{what}, {} %{kind}", self.percent)
    }
}

/// Measures all cells, or notes why it is not possible.
pub(super) fn measure(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let is_chosen = |percent: &u32| options.all || ESSENTIAL_LOSSES.contains(percent);
    let independent = LOSSES.into_iter().filter(is_chosen).map(|percent| Lossy { percent, is_bursty: false });
    let bursty = if options.all { &[10, 25][..] } else { &[] };
    let bursty = bursty.iter().copied().map(|percent| Lossy { percent, is_bursty: true });
    for (number, link) in (0..).zip(independent.chain(bursty)) {
        print_progress(&format!("constrained: loss of {}", link.label("both directions")));
        match Tunnel::up(&link.settings(options.seed.wrapping_add(number))?) {
            Ok(tunnel) => measure_link(options, link, &tunnel, results)?,
            Err(error) => {
                results.missing("loss", &format!("{error} (it needs root)"));
                return Ok(());
            }
        }
    }
    Ok(())
}

fn measure_link(options: &Options, link: Lossy, tunnel: &Tunnel, results: &mut Results) -> Result<(), BenchError> {
    let place = Place::Far(tunnel);
    let failed = BenchError::part::<String>("cannot start a node");
    let server = setup::coap_node(options, place).map_err(&failed)?;
    let gateway = setup::gateway_node(options, place, Behind::Embedded, false, 1000).map_err(&failed)?;
    // libcoap mostly waits, so that its few packets may pass beside those of the other cells.
    std::thread::scope(|scope| {
        let libcoap = scope.spawn(|| libcoap(options, link, place, server.address));
        measure_ours(options, link, tunnel, [server.address, gateway.address], results)?;
        match libcoap.join().unwrap_or_else(|_| Err("it panicked".to_owned())) {
            Ok(series) => {
                let params = link.params(json!({ "type": "con" }));
                results.add(Part::Loss, "libcoap", params, &link.label("libcoap's client"), series);
            }
            Err(why) => results.missing(&link.label("libcoap's client"), &why),
        }
        Ok::<(), BenchError>(())
    })?;
    mqtt(link, tunnel, messages_each(options), results)
}

/// Returns the number of messages of each client.
fn messages_each(options: &Options) -> usize {
    options.lossy_messages.div_ceil(CLIENTS).max(1)
}

/// Measures our clients with our server and our gateway.
fn measure_ours(
    options: &Options,
    link: Lossy,
    tunnel: &Tunnel,
    [server, gateway]: [SocketAddr; 2],
    results: &mut Results,
) -> Result<(), BenchError> {
    let each = messages_each(options);
    for (timers, profile, time_max) in
        [("adaptive", Profile::ADAPTIVE, TIME_MAX), ("standard", viaduct_coap::settings::STANDARD, SLOW_TIME_MAX)]
    {
        // A run with them takes many minutes. libcoap has the same waits.
        if timers == "standard" && !options.all {
            continue;
        }
        let form = CoapForm { path: PATH, put: false, confirmable: true, octets: PAYLOAD_OCTETS };
        let series =
            at_near_end(tunnel, each, time_max, |number| CoapSender::new(server, &form, profile, number as u64))?;
        let params = link.params(json!({ "type": "con", "path": "bus", "timers": timers }));
        results.add(Part::Loss, "viaduct.coap", params, &link.label(&format!("CoAP CON, timers {timers}")), series);
    }
    for (timers, profile, time_max) in
        [("adaptive", Profile::ADAPTIVE, TIME_MAX), ("standard", viaduct_mqttsn::STANDARD, SLOW_TIME_MAX)]
    {
        // With fixed waits, the connection of all clients alone would take longer than the cell.
        if timers == "standard" && (!options.all || link.percent > 10) {
            continue;
        }
        let series = at_near_end(tunnel, each, time_max, |number| sn_sender(gateway, number, profile))?;
        let params = link.params(json!({ "qos": 1, "mode": "aggregating", "path": "embedded", "timers": timers }));
        results.add(
            Part::Loss,
            "viaduct.mqttsn",
            params,
            &link.label(&format!("MQTT-SN QoS 1, timers {timers}")),
            series,
        );
    }
    Ok(())
}

fn sn_sender(gateway: SocketAddr, number: usize, profile: Profile) -> Result<SnSender, BenchError> {
    let form = (Qos::AtLeastOnce, PAYLOAD_OCTETS);
    SnSender::connect(gateway, &format!("bench-{number}"), form, profile, number as u64).map(|(sender, _)| sender)
}

/// Runs clients at the near end of the link.
fn at_near_end<S: Sender>(
    tunnel: &Tunnel,
    each: usize,
    time_max: Duration,
    create: impl Fn(usize) -> Result<S, BenchError> + Sync + Send,
) -> Result<Series, BenchError> {
    // Threads that a thread starts are in its namespace.
    let run = || parallel(CLIENTS, each, time_max, &create);
    tunnel.within(End::A, run).map_err(BenchError::part("cannot enter a namespace"))?
}

/// Runs as many clients of libcoap, whose waits are those of RFC 7252. Each sends fewer messages, because they take seconds.
fn libcoap(options: &Options, link: Lossy, place: Place<'_>, server: SocketAddr) -> Result<Series, String> {
    let each = if link.percent == 0 { 20 } else { 3 };
    let all: Result<Vec<Series>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..CLIENTS).map(|_| scope.spawn(|| libcoap_client(options, place, server, each))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("it panicked".to_owned())));
        ended.collect()
    });
    all.map(Series::join)
}

/// Runs clients of MQTT over TCP.
fn mqtt(link: Lossy, tunnel: &Tunnel, each: usize, results: &mut Results) -> Result<(), BenchError> {
    let label = link.label("MQTT QoS 1 over TCP");
    // The handshakes of TCP alone take many seconds at a higher loss.
    if link.percent > 10 {
        results.missing(&label, "the connections take longer than the cell");
        return Ok(());
    }
    let broker = match mosquitto(tunnel) {
        Ok(broker) => broker,
        Err(why) => {
            results.missing(&label, &why);
            return Ok(());
        }
    };
    let series = at_near_end(tunnel, each, TIME_MAX, |number| {
        MqttSender::connect(broker.address, &format!("bench-{number}"), PAYLOAD_OCTETS)
    })?;
    results.add(Part::Loss, "mqtt.tcp", link.params(json!({})), &label, series);
    Ok(())
}

/// Starts Mosquitto at the far end, for clients of the other end.
fn mosquitto(tunnel: &Tunnel) -> Result<setup::Server, String> {
    setup::mosquitto(Place::Far(tunnel))
}
