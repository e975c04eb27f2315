//! `viaduct demo drive`: a simulated vehicle, an emulated link and a driver's desk on one machine.
//!
//! Three nodes run in this process, each from its own config text ([`config`]). The vehicle sends the pictures of its
//! cameras over the link to the desk, and obeys the driver at the desk's page. At the end, each picture must have
//! arrived or be counted as lost with a reason ([`live::Totals`]).

mod config;
mod live;

use std::fs;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use viaduct_components::net::secure::{PrivateKey, Random as _, SystemRandom};
use viaduct_netem::Profile;
use viaduct_node::{Checks, Node};

use self::config::Surroundings;
use super::screen::{Screen, watch};
use crate::output::print_line;
use crate::{files, run};

/// Name of the file of the people who may log in.
const PEOPLE: &str = "people";
/// Name of the file of the map.
const MAP: &str = "course.geojson";
/// The map: the roads of the built-in town, and a course that starts at the vehicle.
const COURSE: &str = include_str!("../../../../../configs/roads/practice-course.geojson");
/// Longest time after the last picture was sent in which pictures in flight may arrive or miss their deadline.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(1);

/// The emulated link, size and addresses of the demo.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Emulated link between vehicle and desk.
    #[arg(long, default_value = "lossy-5", value_parser = profile())]
    profile: Profile,
    /// Number of cameras, 1 to 4.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=4))]
    cameras: u8,
    /// Pictures per second of each camera, 1 to 30.
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// Seed of the random losses and delays of the link.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this number of seconds. Default: run until Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// Port of the driver's page on 127.0.0.1.
    #[arg(long, default_value_t = 8090)]
    port: u16,
    /// First of the two UDP ports on 127.0.0.1: that of the link, then that of the desk.
    #[arg(long, default_value_t = 4660)]
    udp_port: u16,
    /// First of the three ports of the nodes' HTTP endpoints on 127.0.0.1: desk, link, vehicle.
    #[arg(long, default_value_t = 9490)]
    node_port: u16,
    /// Do not open a browser, and print one line per second instead of a table that is refreshed in place.
    #[arg(long)]
    headless: bool,
    /// Print the config files of the demo's nodes and exit.
    #[arg(long)]
    print_config: bool,
}

fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name)).try_map(|name| name.parse::<Profile>())
}

/// Tokens of the people who may log in to the desk: two drivers, so that one can take control over from the other, and an
/// observer.
struct Tokens {
    ada: String,
    grace: String,
    observer: String,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.print_config {
        return print_config(arguments);
    }
    arguments.check()?;
    let folder = tempfile::Builder::new().prefix("viaduct-demo-").tempdir().context("cannot create a folder")?;
    let mut surroundings = Surroundings::new(folder.path());
    let tokens = Tokens::generate()?;
    tokens.write(&surroundings.people).context("cannot write the list of people")?;
    fs::write(&surroundings.map, COURSE).context("cannot write the map")?;
    protect(&mut surroundings, folder.path())?;
    let graphs = files::resolve(&config::files(arguments, &surroundings), Checks::Ports)?;
    let totals = run::with_runtime(|runtime| {
        let mut signals = run::Signals::listen(runtime)?;
        let mut nodes = run::start(graphs, runtime)?;
        greet(arguments, &tokens)?;
        let mut screen = Screen::new(arguments.headless);
        let failure = watch(&mut nodes, runtime, &mut signals, arguments.seconds, |nodes| {
            let status = live::Status::read(nodes);
            screen.show(|| status.line(), || status.table())
        });
        let totals = finish(nodes);
        failure.map_or(Ok(totals), |failure| Err(failure.into()))
    })?;
    print_line(totals.table())?;
    anyhow::ensure!(totals.is_settled(), "a picture neither arrived nor was counted as lost");
    Ok(ExitCode::SUCCESS)
}

/// Prints the config files. They name the file of people and the map without the temporary folder of a run.
fn print_config(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    print_line(format_args!("# {PEOPLE}: a line `driver TOKEN NAME` or `observer TOKEN NAME` for each person"))?;
    print_line(format_args!("# {MAP}: configs/roads/practice-course.geojson"))?;
    for (name, text) in &config::files(arguments, &Surroundings::new(Path::new(""))) {
        print_line(format_args!("# {name}\n{text}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes new keys of desk and vehicle to the folder.
fn protect(surroundings: &mut Surroundings, folder: &Path) -> anyhow::Result<()> {
    let mut random = SystemRandom::default();
    let mut key = |path: &Path| -> anyhow::Result<String> {
        let key = PrivateKey::generate(&mut random)?;
        key.write_new(path)?;
        Ok(key.public_key().to_string())
    };
    let (desk_key, vehicle_key) = (folder.join("desk.key"), folder.join("vehicle.key"));
    let (desk, vehicle) = (key(&desk_key)?, key(&vehicle_key)?);
    surroundings.protect(&desk_key, &vehicle_key, &desk, &vehicle);
    Ok(())
}

impl Arguments {
    /// Checks the options here, because an error with the line of a generated config file would not help the user.
    fn check(&self) -> Result<(), files::Refused> {
        if !(1.0..=30.0).contains(&self.rate) {
            return Err(files::Refused::argument(format!("--rate {} is not within 1 to 30", self.rate)));
        }
        if self.udp_port == u16::MAX || self.node_port > u16::MAX - 2 {
            return Err(files::Refused::argument("--udp-port and --node-port leave no room for the next ports".into()));
        }
        let refuse = |port: u16, user: &str, flag: &str, cause: std::io::Error| {
            let problem = format!("port {port} of {user}: {cause}; choose another port with `{flag} PORT`");
            Err(files::Refused::argument(problem))
        };
        for (flag, user, port) in [
            ("--port", "the driver's page", self.port),
            ("--node-port", "the desk's endpoint", self.node_port),
            ("--node-port", "the link's endpoint", self.node_port + 1),
            ("--node-port", "the vehicle's endpoint", self.node_port + 2),
        ] {
            if let Err(cause) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                return refuse(port, user, flag, cause);
            }
        }
        for (user, port) in [("the link", self.udp_port), ("the desk", self.udp_port + 1)] {
            if let Err(cause) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) {
                return refuse(port, user, "--udp-port", cause);
            }
        }
        Ok(())
    }
}

impl Tokens {
    fn generate() -> anyhow::Result<Self> {
        let mut random = SystemRandom::default();
        let mut token = || -> anyhow::Result<String> {
            let mut octets = [0; 12];
            random.fill(&mut octets)?;
            Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
        };
        Ok(Self { ada: token()?, grace: token()?, observer: token()? })
    }

    /// Writes the list of people to a file that other users cannot read.
    fn write(&self, path: &Path) -> std::io::Result<()> {
        use std::io::Write as _;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let Self { ada, grace, observer } = self;
        write!(file, "driver {ada} Ada\ndriver {grace} Grace\nobserver {observer} Observer\n")
    }
}

fn greet(arguments: &Arguments, tokens: &Tokens) -> anyhow::Result<()> {
    let Arguments { port, node_port, profile, .. } = arguments;
    let page = format!("http://127.0.0.1:{port}/");
    let Tokens { ada, grace, observer } = tokens;
    print_line(format_args!("A vehicle waits for a driver. Link `{}`: {}", profile.name(), profile.description()))?;
    print_line(format_args!("  drive as Ada      {page}#token={ada}"))?;
    print_line(format_args!("  drive as Grace    {page}#token={grace}"))?;
    print_line(format_args!("  observe           {page}#token={observer}"))?;
    print_line(
        "  On the page: Request control, E three times for gear D, then hold Space and steer with the arrow keys,",
    )?;
    print_line("  or use a gamepad. The button Controls lists the keys.")?;
    print_line(format_args!(
        "  topics of the vehicle    viaduct topic list --node http://127.0.0.1:{}",
        node_port + 2
    ))?;
    if !arguments.headless && std::env::var_os("DISPLAY").is_some() {
        // The demo runs on if no browser can be started.
        let _ = std::process::Command::new("xdg-open").arg(format!("{page}#token={ada}")).spawn();
    }
    Ok(())
}

/// Waits until the pictures in flight have arrived or missed their deadline, and reads the counters before the nodes stop.
fn finish(nodes: Vec<Node>) -> live::Totals {
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    let mut totals = live::Totals::read(&nodes);
    while !totals.is_settled() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        totals = live::Totals::read(&nodes);
    }
    run::stop(nodes);
    totals
}
