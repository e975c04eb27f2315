//! The cells on this host, in the order of measuring.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use viaduct_mqttsn::codec::Qos;
use viaduct_units::retransmission::Profile;

use super::baseline::{HttpSender, MqttSender};
use super::client::{CoapForm, CoapSender, Sender, SnSender};
use super::series::{Series, consecutive as series};
use super::setup::{self, Behind, PATH, Place, Server};
use super::size::CodecSizes;
use super::{Options, PAYLOAD_OCTETS, crowd, floor, machine};
use crate::error::BenchError;
use crate::progress::print_progress;

/// Messages before the first one that counts.
const WARM_UP: usize = 200;
/// Longest time of a series.
const TIME_MAX: Duration = Duration::from_secs(8);
/// Octets of the payloads of the sweep.
const SIZES: [usize; 4] = [4, 64, 256, 1024];
/// Messages of a series of the sweep.
const SWEEP_MESSAGES: usize = 2_000;
/// Messages of clients in Python, which take longer.
const PYTHON_MESSAGES_MAX: usize = 200;
/// Seconds after which such a client is stopped.
const PYTHON_TIME_MAX_S: &str = "20";
/// Numbers of clients.
const CROWDS: [usize; 3] = [1, 100, 1_000];

/// The section that a cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Consecutive,
    Payloads,
    Clients,
    Loss,
}

/// A measured cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) part: Part,
    /// Name of the row.
    pub(super) name: &'static str,
    pub(super) params: Value,
    /// Words for the tables.
    pub(super) label: String,
    pub(super) series: Series,
    /// CPU time of the server per second, in per cent of a core.
    pub(super) cpu_percent: Option<f64>,
}

/// All measured cells.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) cells: Vec<Cell>,
    /// Code and memory of the codecs, if they were measured.
    pub(super) sizes: Option<CodecSizes>,
    pub(super) notes: Vec<String>,
}

impl Results {
    pub(super) fn add(&mut self, part: Part, name: &'static str, params: Value, label: &str, series: Series) {
        self.cells.push(Cell { part, name, params, label: label.to_owned(), series, cpu_percent: None });
    }

    /// Notes why a cell is missing.
    pub(super) fn missing(&mut self, label: &str, why: &str) {
        self.notes.push(format!("{label}: not measured: {why}"));
    }
}

/// Sends messages that do not count, and then a series.
fn measured(sender: &mut dyn Sender, count: usize) -> Result<Series, BenchError> {
    let before = series(sender, WARM_UP.min(count), TIME_MAX)?;
    Ok(Series { first: before.samples.first().copied(), ..series(sender, count, TIME_MAX)? })
}

fn coap_form(confirmable: bool, octets: usize) -> CoapForm<'static> {
    CoapForm { path: PATH, put: false, confirmable, octets }
}

fn coap_params(confirmable: bool, path: &str, octets: usize) -> Value {
    let kind = if confirmable { "con" } else { "non" };
    json!({ "type": kind, "path": path, "clients": 1, "loss": 0, "rtt_ms": 0, "payload": octets })
}

fn sn_params(qos: Qos, mode: &str, path: &str, octets: usize) -> Value {
    json!({ "qos": qos.level(), "mode": mode, "path": path, "clients": 1, "loss": 0, "rtt_ms": 0, "payload": octets })
}

/// Measures consecutive messages on this host.
pub(super) fn consecutive(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let part = Part::Consecutive;
    print_progress("constrained: consecutive messages");
    // The message of CoAP and of MQTT-SN with 20 octets of payload has about so many.
    let series = Series { samples: floor::ping_pong(32, options.messages)?, ..Series::default() };
    results.add(part, "floor.udp_ping_pong", json!({ "payload": 32 }), "UDP ping-pong", series);
    machines(options, results)?;
    nodes(options, results)?;
    rivals(options, results)?;
    baselines(options, results)
}

/// Measures the machines alone.
fn machines(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let server = machine::coap()?;
    for confirmable in [true, false] {
        let mut sender =
            CoapSender::new(server.address, &coap_form(confirmable, PAYLOAD_OCTETS), Profile::ADAPTIVE, 1)?;
        let label = if confirmable { "CoAP CON POST, endpoint" } else { "CoAP NON POST, endpoint" };
        let params = coap_params(confirmable, "endpoint", PAYLOAD_OCTETS);
        results.add(Part::Consecutive, "viaduct.coap", params, label, measured(&mut sender, options.messages)?);
    }
    let gateway = machine::gateway()?;
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let series = sn_series(gateway.address, (qos, PAYLOAD_OCTETS), options.messages)?;
        let label = format!("MQTT-SN QoS {}, gateway machine", qos.level());
        let params = sn_params(qos, "aggregating", "machine", PAYLOAD_OCTETS);
        results.add(Part::Consecutive, "viaduct.mqttsn", params, &label, series);
    }
    Ok(())
}

/// Measures a series of MQTT-SN, with the time of the connection.
fn sn_series(gateway: SocketAddr, form: (Qos, usize), count: usize) -> Result<Series, BenchError> {
    let (mut sender, connect) = SnSender::connect(gateway, "bench", form, Profile::ADAPTIVE, 1)?;
    let series = measured(&mut sender, count)?;
    Ok(Series { connect: Some(connect.as_secs_f64() * 1e6), ..series })
}

/// Measures nodes with a server and with gateways.
fn nodes(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let part = Part::Consecutive;
    let failed = BenchError::part::<String>("cannot start a node");
    let server = setup::coap_node(options, Place::Host).map_err(&failed)?;
    for confirmable in [true, false] {
        let mut sender =
            CoapSender::new(server.address, &coap_form(confirmable, PAYLOAD_OCTETS), Profile::ADAPTIVE, 1)?;
        let label = if confirmable { "CoAP CON POST, coap_server to bus" } else { "CoAP NON POST, coap_server to bus" };
        let params = coap_params(confirmable, "bus", PAYLOAD_OCTETS);
        results.add(part, "viaduct.coap", params, label, measured(&mut sender, options.messages)?);
    }
    let gateway = setup::gateway_node(options, Place::Host, Behind::Embedded, false, 1000).map_err(&failed)?;
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let series = sn_series(gateway.address, (qos, PAYLOAD_OCTETS), options.messages)?;
        let label = format!("MQTT-SN QoS {}, gateway and embedded broker", qos.level());
        results.add(part, "viaduct.mqttsn", sn_params(qos, "aggregating", "embedded", PAYLOAD_OCTETS), &label, series);
    }
    let forwarder = setup::forwarder_node(options, gateway.address).map_err(&failed)?;
    let qos = Qos::AtLeastOnce;
    let series = sn_series(forwarder.address, (qos, PAYLOAD_OCTETS), options.messages)?;
    let label = "MQTT-SN QoS 1, forwarder, gateway and embedded broker";
    results.add(part, "viaduct.mqttsn", sn_params(qos, "aggregating", "forwarder", PAYLOAD_OCTETS), label, series);
    let broker = match setup::mosquitto(Place::Host) {
        Ok(broker) => broker,
        Err(why) => {
            results.missing("gateway to Mosquitto", &why);
            return Ok(());
        }
    };
    for mode in ["aggregating", "transparent"] {
        let behind = Behind::Mosquitto(broker.address.port());
        let gateway =
            setup::gateway_node(options, Place::Host, behind, mode == "transparent", 1000).map_err(&failed)?;
        let series = sn_series(gateway.address, (qos, PAYLOAD_OCTETS), options.messages)?;
        let label = format!("MQTT-SN QoS 1, gateway ({mode}) and Mosquitto");
        results.add(part, "viaduct.mqttsn", sn_params(qos, mode, "mosquitto", PAYLOAD_OCTETS), &label, series);
    }
    Ok(())
}

/// Measures the servers of others, with the same client, and libcoap's client with its server.
fn rivals(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    for (name, label, put, server) in servers(options) {
        match server {
            Err(why) => results.missing(label, &why),
            Ok(server) => {
                let path = if put { "example_data" } else { PATH };
                let form = CoapForm { path, put, confirmable: true, octets: PAYLOAD_OCTETS };
                let mut sender = CoapSender::new(server.address, &form, Profile::ADAPTIVE, 1)?;
                let series = measured(&mut sender, options.messages)?;
                if !server.version.is_empty() {
                    results.notes.push(format!("{label}: version {}", server.version));
                }
                results.add(Part::Consecutive, name, coap_params(true, "server", PAYLOAD_OCTETS), label, series);
            }
        }
    }
    let label = "libcoap's client, our coap_server";
    let node = setup::coap_node(options, Place::Host);
    match node.and_then(|server| libcoap_client(options, Place::Host, server.address, options.messages)) {
        Ok(series) => {
            results.add(Part::Consecutive, "libcoap", coap_params(true, "client", PAYLOAD_OCTETS), label, series);
        }
        Err(why) => results.missing(label, &why),
    }
    mqttsn_clients(options, results)
}

/// Measures the clients of MQTT-SN that a registry offers, with our gateway and its embedded broker.
fn mqttsn_clients(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let gateway = setup::gateway_node(options, Place::Host, Behind::Embedded, false, 1000);
    let gateway = gateway.map_err(BenchError::part("cannot start a node"))?;
    for client in ["mqttsn", "mqtt-sn-12"] {
        let label = format!("client {client} (PyPI), our gateway and embedded broker");
        match mqttsn_client(options, client, gateway.address) {
            Ok(series) => {
                let params = sn_params(Qos::AtLeastOnce, "aggregating", "embedded", PAYLOAD_OCTETS);
                results.add(Part::Consecutive, client, params, &label, series);
            }
            Err(why) => results.missing(&label, &why),
        }
    }
    Ok(())
}

fn mqttsn_client(options: &Options, client: &str, gateway: SocketAddr) -> Result<Series, String> {
    let (python, script) = (python(), options.rivals().join("constrained/mqttsn_clients.py"));
    if !python.is_file() || !script.is_file() {
        return Err(format!("`{}` or `{}` is missing", python.display(), script.display()));
    }
    let mut command = Command::new("timeout");
    command.arg(PYTHON_TIME_MAX_S).arg(python);
    let (host, port) = (gateway.ip().to_string(), gateway.port().to_string());
    let count = options.messages.min(PYTHON_MESSAGES_MAX).to_string();
    command.arg(script).args([client, &host, &port, &count, &PAYLOAD_OCTETS.to_string()]);
    series_of(&mut command).map_err(|why| if why.is_empty() { "it takes too long".to_owned() } else { why })
}

/// Returns the Python of the tests.
fn python() -> PathBuf {
    std::env::var_os("VIADUCT_PYTHON").map_or_else(|| ".cache/venv/bin/python".into(), PathBuf::from)
}

/// Runs a client that prints its times as JSON.
fn series_of(command: &mut Command) -> Result<Series, String> {
    let output = command.output().map_err(|cause| cause.to_string())?;
    let value: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
    let samples = value["latencies_ns"].as_array().into_iter().flatten();
    Ok(Series {
        samples: samples.filter_map(Value::as_f64).map(|ns| ns / 1e3).collect(),
        undelivered: value["undelivered"].as_u64().unwrap_or(0),
        ..Series::default()
    })
}

type RivalServer = (&'static str, &'static str, bool, Result<Server, String>);

fn servers(options: &Options) -> Vec<RivalServer> {
    let folder = options.rivals();
    let address = || Place::Host.port().map(|port| (Place::Host.address(), port).into());
    let python = python();
    let aiocoap = || {
        let script = folder.join("constrained/aiocoap_server.py");
        if !python.is_file() || !script.is_file() {
            return Err(format!("`{}` or `{}` is missing", python.display(), script.display()));
        }
        let mut command = Command::new(&python);
        command.arg(script);
        setup::rival(command, address()?)
    };
    let californium = || {
        let jars = folder.join("bin/californium");
        if !jars.join("classes").is_dir() {
            return Err(format!("`{}` is not built; `make rivals` builds it", jars.display()));
        }
        let mut command = Command::new(setup::find_program("java")?);
        let path = format!("{0}/classes:{0}/dependency/*", jars.display());
        command.args(["-cp", &path, "Sink"]);
        setup::rival(command, address()?)
    };
    vec![
        ("libcoap", "libcoap's server, our client (PUT)", true, setup::libcoap(Place::Host)),
        ("aiocoap", "aiocoap's server, our client", false, aiocoap()),
        ("californium", "Californium's server, our client", false, californium()),
    ]
}

/// Runs libcoap's client against a server.
pub(super) fn libcoap_client(
    options: &Options,
    place: Place<'_>,
    server: SocketAddr,
    count: usize,
) -> Result<Series, String> {
    let program = options.rivals().join("bin/libcoap");
    if !program.is_file() {
        return Err(format!("`{}` is not built; `make rivals` builds it", program.display()));
    }
    let program = program.canonicalize().map_err(|cause| cause.to_string())?;
    let mut command = match place {
        Place::Host => Command::new(program),
        Place::Far(tunnel) => tunnel.command(viaduct_components::link::End::A, program),
    };
    let (host, port) = (server.ip().to_string(), server.port().to_string());
    command.args([&host, &port, PATH, &count.to_string(), &PAYLOAD_OCTETS.to_string(), "con"]);
    series_of(&mut command)
}

/// Measures MQTT and HTTP over TCP.
fn baselines(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let part = Part::Consecutive;
    let params = json!({ "clients": 1, "loss": 0, "rtt_ms": 0, "payload": PAYLOAD_OCTETS });
    match setup::mosquitto(Place::Host) {
        Ok(broker) => {
            let mut sender = MqttSender::connect(broker.address, "bench", PAYLOAD_OCTETS)?;
            let series = measured(&mut sender, options.messages)?;
            results.add(part, "mqtt.tcp", params.clone(), "MQTT QoS 1 over TCP to Mosquitto", series);
        }
        Err(why) => results.missing("MQTT over TCP", &why),
    }
    match setup::http_node(options) {
        Ok(server) => {
            let mut sender = HttpSender::connect(server.address)?;
            let series = measured(&mut sender, options.messages)?;
            results.add(part, "http", params, "HTTP GET over one TCP connection", series);
        }
        Err(why) => results.missing("HTTP", &why),
    }
    Ok(())
}

/// Measures payloads of several lengths.
pub(super) fn payloads(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    print_progress("constrained: payloads");
    let count = SWEEP_MESSAGES.min(options.messages);
    let server = machine::coap()?;
    let gateway = machine::gateway()?;
    for octets in SIZES {
        let series = Series { samples: floor::ping_pong(octets + 12, count)?, ..Series::default() };
        results.add(Part::Payloads, "floor.udp_ping_pong", json!({ "payload": octets + 12 }), "UDP ping-pong", series);
        let mut sender = CoapSender::new(server.address, &coap_form(true, octets), Profile::ADAPTIVE, 1)?;
        let params = coap_params(true, "endpoint", octets);
        results.add(Part::Payloads, "viaduct.coap", params, "CoAP CON POST", measured(&mut sender, count)?);
        let qos = Qos::AtLeastOnce;
        let series = sn_series(gateway.address, (qos, octets), count)?;
        let params = sn_params(qos, "aggregating", "machine", octets);
        results.add(Part::Payloads, "viaduct.mqttsn", params, "MQTT-SN QoS 1", series);
    }
    Ok(())
}

/// Measures many clients with ten messages per second each.
pub(super) fn crowds(options: &Options, results: &mut Results) -> Result<(), BenchError> {
    let broker = setup::mosquitto(Place::Host);
    for (mode, path) in [("aggregating", "embedded"), ("aggregating", "mosquitto"), ("transparent", "mosquitto")] {
        let behind = match (&broker, path) {
            (_, "embedded") => Behind::Embedded,
            (Ok(broker), _) => Behind::Mosquitto(broker.address.port()),
            (Err(why), _) => {
                results.missing(&format!("clients, {mode}"), why);
                continue;
            }
        };
        for clients in CROWDS {
            let gateway = setup::gateway_node(options, Place::Host, behind, mode == "transparent", 2 * clients);
            let gateway = gateway.map_err(BenchError::part("cannot start a node"))?;
            let params = json!({
                "qos": 1, "mode": mode, "path": path, "clients": clients, "loss": 0, "rtt_ms": 0, "payload": crowd::OCTETS,
            });
            let label = format!("{clients} clients of MQTT-SN, {mode}, {path}");
            crowd_cell(options, (crowd::Protocol::MqttSn, &gateway), clients, (params, &label), results);
        }
    }
    for clients in CROWDS {
        let server = setup::coap_node(options, Place::Host).map_err(BenchError::part("cannot start a node"))?;
        let params = json!({ "type": "con", "clients": clients, "loss": 0, "rtt_ms": 0, "payload": crowd::OCTETS });
        let label = format!("{clients} clients of CoAP, coap_server to bus");
        crowd_cell(options, (crowd::Protocol::Coap, &server), clients, (params, &label), results);
    }
    Ok(())
}

/// Measures clients of a server, and the CPU time of that.
fn crowd_cell(
    options: &Options,
    (protocol, server): (crowd::Protocol, &setup::Server),
    clients: usize,
    (params, label): (Value, &str),
    results: &mut Results,
) {
    print_progress(&format!("constrained: {label}"));
    let time = Duration::from_secs(options.crowd_s);
    let mut before = None;
    let sent = crowd::run(protocol, server.address, clients, time, || before = setup::cpu_seconds(server.process));
    let series = match sent {
        Ok(series) => series,
        Err(error) => return results.missing(label, &error.to_string()),
    };
    let used = setup::cpu_seconds(server.process).zip(before).map(|(after, before)| after - before);
    let name = if protocol == crowd::Protocol::Coap { "viaduct.coap" } else { "viaduct.mqttsn" };
    results.add(Part::Clients, name, params, label, series);
    if let Some(cell) = results.cells.last_mut() {
        cell.cpu_percent = used.map(|used| 100.0 * used / time.as_secs_f64());
    }
}
