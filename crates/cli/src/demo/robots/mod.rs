//! `viaduct demo robots`: two small robots that report their position and battery to an edge node, over links that lose packets.
//!
//! Four nodes run in this process, each from its own config text ([`config`]). One robot uses MQTT-SN, the other one CoAP. The demo sends
//! both a command every ten seconds ([`desk`]). At the end, each message that was acknowledged to a robot must have arrived at the edge
//! ([`live::Totals`]).

mod config;
mod desk;
mod live;

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use viaduct_bus::Bus;
use viaduct_node::{Checks, Node};

use self::config::STATION_IDS;
use self::desk::Desk;
use super::screen::{Screen, watch};
use crate::output::print_line;
use crate::{files, run};

/// Longest time after the end in which messages that are acknowledged may reach the bus of the edge.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(2);
/// Names of the robots in topics and components.
const ROBOTS: [&str; 2] = ["sn", "coap"];
/// Highest delay of the emulated link in milliseconds, both directions together.
const RTT_MS_MAX: f64 = 10_000.0;
/// Highest loss of the emulated link in percent.
const LOSS_MAX: f64 = 50.0;

/// The emulated links and the addresses of the demo.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Share of the packets that are lost in each direction, in percent, 0 to 50.
    #[arg(long, default_value_t = 10.0)]
    loss: f64,
    /// Delay of the links in milliseconds, both directions together, 0 to 10000.
    #[arg(long, default_value_t = 30.0)]
    rtt_ms: f64,
    /// Waits before a message without an answer is sent again.
    #[arg(long, value_enum, default_value_t = Timers::Adaptive)]
    timers: Timers,
    /// Seed of the losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this number of seconds. Default: run until Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// Port of the map on 127.0.0.1.
    #[arg(long, default_value_t = 8092)]
    port: u16,
    /// TCP port of the MQTT broker on 127.0.0.1.
    #[arg(long, default_value_t = 1894)]
    mqtt_port: u16,
    /// First of the four UDP ports on 127.0.0.1: the links of the MQTT-SN and the CoAP robot, the gateway, the CoAP server.
    #[arg(long, default_value_t = 18840)]
    udp_port: u16,
    /// First of the four ports of the nodes' HTTP endpoints on 127.0.0.1: edge, link, MQTT-SN robot, CoAP robot.
    #[arg(long, default_value_t = 9496)]
    node_port: u16,
    /// Port of the UDP multicast group of the robots' stations.
    #[arg(long, default_value_t = 8954)]
    group_port: u16,
    /// Do not open a browser, and print one line per second instead of a table that is refreshed in place.
    #[arg(long)]
    headless: bool,
    /// Print the config files of the demo's nodes and exit.
    #[arg(long)]
    print_config: bool,
}

/// Setting `timers` of the components.
#[derive(Clone, Copy, ValueEnum)]
enum Timers {
    /// The fixed waits of the specifications.
    Standard,
    /// Waits from measured round trips.
    Adaptive,
}

impl Timers {
    const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Adaptive => "adaptive",
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.check_values()?;
    let files = config::files(arguments);
    if arguments.print_config {
        for (name, text) in &files {
            print_line(format_args!("# {name}\n{text}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    arguments.check_ports()?;
    let graphs = files::resolve(&files, Checks::Ports)?;
    let totals = run::with_runtime(|runtime| {
        let mut signals = run::Signals::listen(runtime)?;
        let mut nodes = run::start(graphs, runtime)?;
        let mut desk = match nodes.first().map(|edge| Desk::open(edge.bus(), runtime)) {
            Some(Ok(desk)) => desk,
            failed => {
                run::stop(nodes);
                return Err(failed.and_then(Result::err).unwrap_or_else(|| anyhow::anyhow!("there is no edge")));
            }
        };
        greet(arguments)?;
        let mut screen = Screen::new(arguments.headless);
        let failure = watch(&mut nodes, runtime, &mut signals, arguments.seconds, |nodes| {
            desk.command();
            let status = live::Status::read(nodes, &desk);
            screen.show(|| status.line(), || status.table())
        });
        let totals = finish(nodes);
        failure.map_or(Ok(totals), |failure| Err(failure.into()))
    })?;
    print_line(totals.table())?;
    anyhow::ensure!(totals.is_settled(), "a message was acknowledged to a robot and did not arrive, or arrived twice");
    print_line("Each acknowledged message has arrived once.")?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Checks the options here, because an error with the line of a generated config file would not help the user.
    fn check_values(&self) -> Result<(), files::Refused> {
        for (flag, value, max) in [("--loss", self.loss, LOSS_MAX), ("--rtt-ms", self.rtt_ms, RTT_MS_MAX)] {
            if !(0.0..=max).contains(&value) {
                return Err(files::Refused::argument(format!("{flag} {value} is not within 0 to {max}")));
            }
        }
        if self.udp_port > u16::MAX - 3 || self.node_port > u16::MAX - 3 {
            let problem = "--udp-port and --node-port leave no room for the next ports";
            return Err(files::Refused::argument(problem.into()));
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), files::Refused> {
        let tcp = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(drop);
        let udp = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).map(drop);
        for (flag, user, port, result) in [
            ("--port", "the map", self.port, tcp(self.port)),
            ("--mqtt-port", "the broker", self.mqtt_port, tcp(self.mqtt_port)),
            ("--udp-port", "the MQTT-SN link", self.udp_port, udp(self.udp_port)),
            ("--udp-port", "the CoAP link", self.udp_port + 1, udp(self.udp_port + 1)),
            ("--udp-port", "the gateway", self.udp_port + 2, udp(self.udp_port + 2)),
            ("--udp-port", "the CoAP server", self.udp_port + 3, udp(self.udp_port + 3)),
            ("--node-port", "the edge's endpoint", self.node_port, tcp(self.node_port)),
            ("--node-port", "the link's endpoint", self.node_port + 1, tcp(self.node_port + 1)),
            ("--node-port", "the MQTT-SN robot's endpoint", self.node_port + 2, tcp(self.node_port + 2)),
            ("--node-port", "the CoAP robot's endpoint", self.node_port + 3, tcp(self.node_port + 3)),
        ] {
            if let Err(cause) = result {
                let problem = format!("port {port} of {user}: {cause}; choose another port with `{flag} PORT`");
                return Err(files::Refused::argument(problem));
            }
        }
        Ok(())
    }
}

fn greet(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { port, mqtt_port, udp_port, node_port, loss, rtt_ms, timers, .. } = arguments;
    let timers = timers.name();
    print_line(format_args!("Two robots report to an edge node: one with MQTT-SN, one with CoAP."))?;
    print_line(format_args!("  links       {loss} % loss in each direction, {rtt_ms} ms round trip, {timers} timers"))?;
    let [sn, coap] = STATION_IDS;
    let page = format!("http://127.0.0.1:{port}/");
    print_line(format_args!("  map         {page}, stations {sn} (MQTT-SN) and {coap} (CoAP)"))?;
    print_line(format_args!("  MQTT        mosquitto_sub -p {mqtt_port} -v -t 'robots/#'"))?;
    print_line(format_args!("  CoAP        coap-client-notls coap://127.0.0.1:{}/command", udp_port + 3))?;
    print_line(format_args!("  edge        viaduct topic list --node http://127.0.0.1:{node_port}"))?;
    if !arguments.headless && std::env::var_os("DISPLAY").is_some() {
        // The demo runs on if no browser can be started.
        let _ = std::process::Command::new("xdg-open").arg(page).spawn();
    }
    Ok(())
}

/// Stops the robots, waits until the messages that the edge has acknowledged are on its bus, and reads the counters.
fn finish(mut nodes: Vec<Node>) -> live::Totals {
    let robots = nodes.split_off(nodes.len().min(2));
    let buses: Vec<Bus> = nodes.iter().chain(&robots).map(|node| node.bus().clone()).collect();
    run::stop(robots);
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    let mut totals = live::Totals::read(&buses);
    while !totals.is_settled() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        totals = live::Totals::read(&buses);
    }
    // The link first: the edge would otherwise report packets to a closed port.
    run::stop(nodes.into_iter().rev().collect());
    totals
}
