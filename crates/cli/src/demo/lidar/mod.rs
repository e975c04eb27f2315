//! `viaduct demo lidar`: a vehicle whose lidar is processed in the cloud, over an emulated link, on one machine.
//!
//! Three nodes run in this process, each from its own config text ([`config`]). The vehicle sends the scans of a simulated lidar through
//! the link to the broker of the cloud. The cloud finds vehicles in them, and the list comes back the same way. At the end, each scan must
//! have come back or be counted as lost with a reason ([`live::Totals`]).

mod config;
mod live;

use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use viaduct_netem::Profile;
use viaduct_node::{Checks, Node};

use self::config::{BROKER_PORT_OFFSET, STATION_ID};
use super::screen::{Screen, watch};
use crate::output::print_line;
use crate::{files, run};

/// Longest time after the end in which scans that are on their way may come back.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(2);

/// The emulated link, the content and the addresses of the demo.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Emulated link between vehicle and cloud. Profiles that lose packets are not possible above TCP.
    #[arg(long, default_value = "5g", value_parser = profile())]
    profile: Profile,
    /// Send the points (1.08 MB) instead of the packets of the sensor (0.18 MB).
    #[arg(long)]
    points: bool,
    /// Compression of the scans.
    #[arg(long, value_enum, default_value_t = Compression::None)]
    compression: Compression,
    /// Scans per second, 0.1 to 20.
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// Seed of the street, and of the delays of the link.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this number of seconds. Default: run until Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// Port of the map with the live figures on 127.0.0.1.
    #[arg(long, default_value_t = 8091)]
    port: u16,
    /// First of the two TCP ports on 127.0.0.1: that of the link, then that of the broker.
    #[arg(long, default_value_t = 1892)]
    mqtt_port: u16,
    /// First of the three ports of the nodes' HTTP endpoints on 127.0.0.1: cloud, link, vehicle.
    #[arg(long, default_value_t = 9493)]
    node_port: u16,
    /// Port of the UDP multicast group of the vehicle's station.
    #[arg(long, default_value_t = 8953)]
    group_port: u16,
    /// Do not open a browser, and print one line per second instead of a table that is refreshed in place.
    #[arg(long)]
    headless: bool,
    /// Print the config files of the demo's nodes and exit.
    #[arg(long)]
    print_config: bool,
}

/// Setting `compression` of the vehicle's route.
#[derive(Clone, Copy, ValueEnum)]
enum Compression {
    /// Scans are sent as they are.
    None,
    /// Zstandard.
    Zstd,
    /// Zstandard, with the octets of points in planes.
    Planes,
    /// The way with which a scan arrives first, by the measured goodput of the connection to the link.
    Auto,
}

impl Compression {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd => "zstd",
            Self::Planes => "planes",
            Self::Auto => "auto",
        }
    }
}

fn profile() -> impl TypedValueParser<Value = Profile> {
    let above_tcp = [Profile::Ethernet, Profile::FiveG, Profile::LteDriving];
    PossibleValuesParser::new(above_tcp.map(Profile::name)).try_map(|name| name.parse::<Profile>())
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let files = config::files(arguments);
    if arguments.print_config {
        for (name, text) in &files {
            print_line(format_args!("# {name}\n{text}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    arguments.check()?;
    let graphs = files::resolve(&files, Checks::Ports)?;
    let totals = run::with_runtime(|runtime| {
        let mut signals = run::Signals::listen(runtime)?;
        let mut nodes = run::start(graphs, runtime)?;
        greet(arguments)?;
        let mut screen = Screen::new(arguments.headless);
        let failure = watch(&mut nodes, runtime, &mut signals, arguments.seconds, |nodes| {
            let status = live::Status::read(nodes);
            screen.show(|| status.line(), || status.table())
        });
        let totals = finish(nodes);
        failure.map_or(Ok(totals), |failure| Err(failure.into()))
    })?;
    print_line(totals.table())?;
    anyhow::ensure!(totals.is_settled(), "a scan neither came back nor was counted as lost");
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Checks the options here, because an error with the line of a generated config file would not help the user.
    fn check(&self) -> Result<(), files::Refused> {
        if !(0.1..=20.0).contains(&self.rate) {
            return Err(files::Refused::argument(format!("--rate {} is not within 0.1 to 20", self.rate)));
        }
        if self.mqtt_port == u16::MAX || self.node_port > u16::MAX - 2 {
            let problem = "--mqtt-port and --node-port leave no room for the next ports";
            return Err(files::Refused::argument(problem.into()));
        }
        for (flag, user, port) in [
            ("--port", "the map", self.port),
            ("--mqtt-port", "the link", self.mqtt_port),
            ("--mqtt-port", "the broker", self.mqtt_port + BROKER_PORT_OFFSET),
            ("--node-port", "the cloud's endpoint", self.node_port),
            ("--node-port", "the link's endpoint", self.node_port + 1),
            ("--node-port", "the vehicle's endpoint", self.node_port + 2),
        ] {
            if let Err(cause) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                let problem = format!("port {port} of {user}: {cause}; choose another port with `{flag} PORT`");
                return Err(files::Refused::argument(problem));
            }
        }
        Ok(())
    }
}

fn greet(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { port, node_port, profile, points, .. } = arguments;
    let content = if *points { "points" } else { "packets" };
    print_line(format_args!("The {content} of a lidar go to the cloud, and lists of vehicles come back."))?;
    print_line(format_args!("  link `{}`: {}", profile.name(), profile.description()))?;
    let page = format!("http://127.0.0.1:{port}/#station={STATION_ID}");
    print_line(format_args!("  map and figures    {page}"))?;
    print_line(format_args!(
        "  vehicle            viaduct topic latency --once --node http://127.0.0.1:{}",
        node_port + 2
    ))?;
    print_line(format_args!("  cloud              viaduct topic list --node http://127.0.0.1:{node_port}"))?;
    if !arguments.headless && std::env::var_os("DISPLAY").is_some() {
        // The demo runs on if no browser can be started.
        let _ = std::process::Command::new("xdg-open").arg(page).spawn();
    }
    Ok(())
}

/// Waits until the scans that are on their way have come back, and reads the counters before the nodes stop.
fn finish(nodes: Vec<Node>) -> live::Totals {
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    let mut totals = live::Totals::read(&nodes);
    while totals.under_way() != 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
        totals = live::Totals::read(&nodes);
    }
    // The vehicle first: otherwise its bridge would report the end of the broker.
    run::stop(nodes.into_iter().rev().collect());
    totals
}
