//! `viaduct demo`: simulated vehicles, an edge node and its API, with real sockets between them.
//!
//! Two nodes run in this process, each from its own config text ([`config`]). The vehicles send CAMs by UDP multicast.
//! The edge receives them, stores them, and offers them by MQTT and HTTP. At the end, the counters of each stage must
//! satisfy received = delivered + dropped ([`balance`]).

mod balance;
mod config;
mod drive;
mod lidar;
mod live;
mod robots;
mod screen;
mod snapshot;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use viaduct_node::{Checks, Node};

use self::screen::Screen;
use crate::output::print_line;
use crate::{files, run};

/// Longest time after the last message was sent in which messages in flight may arrive.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(2);

/// Size and addresses of the demo.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Number of simulated vehicles, each with its own station, 1 to 2000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=2000))]
    vehicles: u32,
    /// CAMs per second of each vehicle, 0.1 to 50.
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// Stop after this number of seconds. Default: run until Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// A capture (pcap or pcapng) whose packets the edge receives too.
    #[arg(long)]
    capture: Option<PathBuf>,
    /// Port of the API and the dashboard on 127.0.0.1.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Port of the MQTT broker on 127.0.0.1.
    #[arg(long, default_value_t = 1883)]
    mqtt_port: u16,
    /// Port of the UDP multicast group. Two demos on one machine need different ports.
    #[arg(long, default_value_t = 8947)]
    group_port: u16,
    /// Port of the edge node's HTTP endpoint on 127.0.0.1, for `viaduct topic` and Prometheus.
    #[arg(long, default_value_t = 9470)]
    node_port: u16,
    /// Port of the HTTP endpoint of the vehicles' node on 127.0.0.1.
    #[arg(long, default_value_t = 9479)]
    vehicles_node_port: u16,
    /// Do not open a browser, and print one line per second instead of a table that is refreshed in place.
    #[arg(long)]
    headless: bool,
    /// Print the config files of the demo's nodes and exit.
    #[arg(long)]
    print_config: bool,
}

/// Other demos.
#[derive(clap::Subcommand)]
enum Other {
    /// Run a simulated vehicle, an emulated link and a driver's desk on this machine.
    Drive(drive::Arguments),
    /// Run a simulated vehicle whose lidar is processed in the cloud, over an emulated link, on this machine.
    Lidar(lidar::Arguments),
    /// Run two small robots, one with MQTT-SN and one with CoAP, whose links lose packets, on this machine.
    Robots(robots::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.other {
        Some(Other::Drive(arguments)) => return drive::run(arguments),
        Some(Other::Lidar(arguments)) => return lidar::run(arguments),
        Some(Other::Robots(arguments)) => return robots::run(arguments),
        None => {}
    }
    let files = config::files(arguments);
    if arguments.print_config {
        for (name, text) in &files {
            print_line(format_args!("# {name}\n{text}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    arguments.check()?;
    let mut graphs = files::resolve(&files, Checks::Ports)?;
    let vehicles = graphs.split_off(1);
    let balance = run::with_runtime(|runtime| {
        let mut signals = run::Signals::listen(runtime)?;
        let mut nodes = run::start(graphs, runtime)?;
        wait_for_probe(&nodes[0])?;
        nodes.extend(run::start(vehicles, runtime)?);
        greet(arguments)?;
        let mut screen = Screen::new(arguments.headless);
        let failure = screen::watch(&mut nodes, runtime, &mut signals, arguments.seconds, |nodes| {
            let nodes: Vec<_> = nodes.iter().map(|node| node.bus().snapshot()).collect();
            screen.show(|| live::line(&nodes), || live::table(&nodes))
        });
        let balance = finish(nodes, arguments);
        failure.map_or(Ok(balance), |failure| Err(failure.into()))
    })?;
    print_line(balance.table())?;
    anyhow::ensure!(balance.is_settled(), "at a stage of the demo, received is not delivered + dropped");
    print_line("At each stage, received = delivered + dropped.")?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Checks the options here, because an error with the line of a generated config file would not help the user.
    fn check(&self) -> Result<(), files::Refused> {
        if !(0.1..=50.0).contains(&self.rate) {
            return Err(files::Refused::argument(format!("--rate {} is not within 0.1 to 50", self.rate)));
        }
        for (flag, server, port) in [
            ("--port", "the API", self.port),
            ("--mqtt-port", "the MQTT broker", self.mqtt_port),
            ("--node-port", "the edge node's endpoint", self.node_port),
            ("--vehicles-node-port", "the endpoint of the vehicles' node", self.vehicles_node_port),
        ] {
            if let Err(cause) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                let problem = format!("port {port} of {server}: {cause}; choose another port with `{flag} PORT`");
                return Err(files::Refused::argument(problem));
            }
        }
        Ok(())
    }
}

/// Waits until the MQTT probe is subscribed, so that it receives every message that the uplink publishes.
fn wait_for_probe(edge: &Node) -> anyhow::Result<()> {
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    while balance::count(&edge.bus().snapshot(), "probe", "subscribed") == 0 {
        anyhow::ensure!(Instant::now() < deadline, "the MQTT subscriber of the demo cannot connect to its broker");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn greet(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { port, mqtt_port, node_port, vehicles, .. } = arguments;
    print_line(format_args!("{vehicles} vehicles drive. Live map    http://127.0.0.1:{port}/"))?;
    print_line(format_args!("                        API         http://127.0.0.1:{port}/openapi.json"))?;
    print_line(format_args!("                        MQTT        mosquitto_sub -p {mqtt_port} -v -t 'its/#'"))?;
    let node = if *node_port == 9470 { String::new() } else { format!(" --node http://127.0.0.1:{node_port}") };
    print_line(format_args!("                        Topics      viaduct topic list{node}"))?;
    if !arguments.headless && std::env::var_os("DISPLAY").is_some() {
        // The demo runs on if no browser can be started.
        let _ = std::process::Command::new("xdg-open").arg(format!("http://127.0.0.1:{port}/")).spawn();
    }
    Ok(())
}

/// Stops the vehicles, waits until the messages in flight have arrived, and reads the counters before the edge stops.
fn finish(mut nodes: Vec<Node>, arguments: &Arguments) -> balance::Balance {
    let edge = nodes.remove(0);
    let buses: Vec<_> = nodes.iter().map(|node| node.bus().clone()).collect();
    run::stop(nodes);
    let read = || {
        let vehicles = buses.iter().map(viaduct_bus::Bus::snapshot).collect::<Vec<_>>();
        balance::Balance::read(&vehicles, &edge.bus().snapshot(), arguments.capture.is_some())
    };
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    let mut balance = read();
    while !balance.is_settled() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        balance = read();
    }
    edge.stop();
    balance
}
