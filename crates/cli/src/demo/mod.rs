//! `viaduct demo`: simulated vehicles, an edge node and its API, with real sockets between them.
//!
//! Two nodes run in this process, each from a config text of its own ([`config`]): the vehicles send CAMs by UDP
//! multicast; the edge receives them, keeps them, and gives them out by MQTT and HTTP. At the end every stage has to add
//! up: what went in is what came out, what was dropped with a reason, and what waits ([`accounts`]).

mod accounts;
mod config;
mod live;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_node::{Checks, Failure, Node};

use crate::output::print_line;
use crate::{files, run};

/// How long messages that are on their way may take to arrive after the last one was sent.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(2);

/// Size and addresses of the demo.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Simulated vehicles, each with a station of its own.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=2000))]
    vehicles: u32,
    /// CAMs a second of each vehicle.
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// Stop after so many seconds; without it the demo runs until Ctrl-C.
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
    /// Port of the UDP multicast group; another one keeps two demos on one machine apart.
    #[arg(long, default_value_t = 8947)]
    group_port: u16,
    /// Port of the edge node's own endpoint on 127.0.0.1, which `viaduct topic` and Prometheus read.
    #[arg(long, default_value_t = 9470)]
    node_port: u16,
    /// Port of the vehicles' node's own endpoint on 127.0.0.1.
    #[arg(long, default_value_t = 9479)]
    vehicles_node_port: u16,
    /// Do not open a browser, and print lines instead of a table that renews itself.
    #[arg(long)]
    headless: bool,
    /// Print the config files of the demo's nodes and end.
    #[arg(long)]
    print_config: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
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
    let accounts = run::with_runtime(|runtime| {
        let mut signals = run::Signals::listen(runtime)?;
        let mut nodes = run::start(graphs, runtime)?;
        wait_for_probe(&nodes[0])?;
        nodes.extend(run::start(vehicles, runtime)?);
        greet(arguments)?;
        let failure = watch(&mut nodes, runtime, &mut signals, arguments);
        let accounts = finish(nodes, arguments);
        failure.map_or(Ok(accounts), |failure| Err(failure.into()))
    })?;
    print_line(accounts.table())?;
    anyhow::ensure!(accounts.settled(), "a stage of the demo does not add up");
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// What the files cannot say so well, because the person never saw them.
    fn check(&self) -> Result<(), files::Refused> {
        if !(0.1..=50.0).contains(&self.rate) {
            return Err(files::Refused::argument(format!("--rate {} is not within 0.1 to 50", self.rate)));
        }
        for (flag, what, port) in [
            ("--port", "the API", self.port),
            ("--mqtt-port", "the MQTT broker", self.mqtt_port),
            ("--node-port", "the edge node's endpoint", self.node_port),
            ("--vehicles-node-port", "the vehicles' node's endpoint", self.vehicles_node_port),
        ] {
            if let Err(cause) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                let problem = format!("port {port} for {what}: {cause}; choose another one with `{flag} PORT`");
                return Err(files::Refused::argument(problem));
            }
        }
        Ok(())
    }
}

/// Waits until the subscriber at the end of the chain listens, so that it sees all that is published.
fn wait_for_probe(edge: &Node) -> anyhow::Result<()> {
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    while accounts::count(&edge.bus().snapshot(), "probe", "connected") == 0 {
        anyhow::ensure!(Instant::now() < deadline, "the MQTT subscriber of the demo does not reach its broker");
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
        // A demo without a browser is still a demo.
        let _ = std::process::Command::new("xdg-open").arg(format!("http://127.0.0.1:{port}/")).spawn();
    }
    Ok(())
}

/// Shows the live table until the time is over, Ctrl-C, or a failure.
fn watch(nodes: &mut [Node], runtime: &Runtime, signals: &mut run::Signals, arguments: &Arguments) -> Option<Failure> {
    let end = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut table = live::Table::new(arguments.headless);
    runtime.block_on(async {
        loop {
            let second = Duration::from_secs(1);
            let wait = end.map_or(second, |end| second.min(end.saturating_duration_since(Instant::now())));
            tokio::select! {
                () = signals.asked() => return None,
                () = tokio::time::sleep(wait) => {}
            }
            if let Some(failure) = nodes.iter_mut().find_map(Node::try_failed) {
                return Some(failure);
            }
            // A terminal that cannot be written does not end the demo.
            let _ = table.show(&nodes.iter().map(|node| node.bus().snapshot()).collect::<Vec<_>>());
            if end.is_some_and(|end| Instant::now() >= end) {
                return None;
            }
        }
    })
}

/// Stops the vehicles, lets what they sent arrive, and reads the accounts before the edge stops.
fn finish(mut nodes: Vec<Node>, arguments: &Arguments) -> accounts::Accounts {
    let edge = nodes.remove(0);
    let buses: Vec<_> = nodes.iter().map(|node| node.bus().clone()).collect();
    run::stop(nodes);
    let read = || {
        let vehicles = buses.iter().map(viaduct_bus::Bus::snapshot).collect::<Vec<_>>();
        accounts::Accounts::read(&vehicles, &edge.bus().snapshot(), arguments.capture.is_some())
    };
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    let mut accounts = read();
    while !accounts.settled() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        accounts = read();
    }
    edge.stop();
    accounts
}
