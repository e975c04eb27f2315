//! `viaduct its send MESSAGE`: sends one message from JSON, for trying things.

mod destination;
mod message;
mod transmit;

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use viaduct_bus::clock;
use viaduct_components::kinds::its_station::mac_of_station;
use viaduct_components::net::{EthernetSettings, UdpMulticastSettings};
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::MessageKind;
use viaduct_its::{Destination, Ego, SendRequest, Station, StationSettings};
use viaduct_units::{MetresPerSecond, Position, StationId, StationType};
use viaduct_v2x_json::dialect::Dialect;

use super::frame;
use crate::files::Refused;
use message::{OutgoingMessage, Reading};
use transmit::{Network, Repeat};

/// Which message, to whom, by what.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The message: a file of JSON, or `-` for stdin. It is a message, its body alone, what an application would publish (with
    /// `destination`, `repetition`, ...), or a line of `its decode --json-lines`.
    message: PathBuf,
    /// How the JSON shows values: `viaduct` (ASN.1 names, raw integers) or `vanetza-nap` (scaled units).
    #[arg(long, value_name = "DIALECT", default_value = "viaduct", value_parser = parse_dialect)]
    dialect: Dialect,
    /// Which message it is; otherwise its header or the name of its body says so.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_kind)]
    kind: Option<MessageKind>,
    /// Station ID of a message that does not say its own.
    #[arg(long, value_name = "ID", default_value_t = 1)]
    station_id: u32,
    #[command(flatten)]
    link: LinkArguments,
    #[command(flatten)]
    destination: DestinationArguments,
    /// Where the sending station is, in degrees; otherwise where the message says.
    #[arg(long, value_name = "LAT,LON", value_parser = destination::parse_position, allow_hyphen_values = true)]
    position: Option<Position>,
    /// Type of the sending station (0 to 31); otherwise what the message says, or 5 (a passenger car).
    #[arg(long, value_name = "TYPE", value_parser = clap::value_parser!(u8).range(0..=31))]
    station_type: Option<u8>,
    /// Send it again and again, so often a second: `10hz`.
    #[arg(long, value_name = "RATE", value_parser = transmit::parse_rate)]
    repeat: Option<Duration>,
    /// How often, with --repeat; otherwise until you stop it.
    #[arg(long, requires = "repeat", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How many seconds a packet may wait in the station, for example until somebody says where its destination is.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = parse_wait)]
    wait: f64,
}

/// By what it is sent.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct LinkArguments {
    /// Send Ethernet frames on this network interface (needs CAP_NET_RAW).
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Send UDP multicast by this network interface, given by name or IPv4 address.
    #[arg(long, value_name = "INTERFACE")]
    udp: Option<String>,
    /// Send nothing: print the frame in hexadecimal, and what a receiver reads.
    #[arg(long)]
    dry_run: bool,
}

/// Who it is for.
#[derive(clap::Args)]
struct DestinationArguments {
    /// Multicast group and port for --udp.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "udp")]
    group: Option<SocketAddrV4>,
    /// Every station (gbc) or any one station (gac) in an area: `gbc:49.0,8.4,r=500`, `gac:49.0,8.4,rectangle=200x50,azimuth=45`,
    /// `gbc:49.0,8.4,ellipse=200x50`; metres and degrees. Without it, whom the JSON says, or everybody in reach (single hop).
    #[arg(long, value_name = "AREA", value_parser = destination::parse_area, conflicts_with_all = ["hops", "station"])]
    to: Option<Destination>,
    /// Everybody within so many hops, 1 to 255.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..), conflicts_with = "station")]
    hops: Option<u8>,
    /// One station, by its GeoNetworking address: `94:00:02:00:00:00:03:f8`.
    #[arg(long, value_name = "ADDRESS", value_parser = destination::parse_address)]
    station: Option<Destination>,
}

impl DestinationArguments {
    /// `None`: who the message says it is for, or everybody in reach.
    fn destination(&self) -> Option<Destination> {
        self.to.or(self.station).or(self.hops.map(Destination::Hops))
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { dialect, kind, station_id, .. } = *arguments;
    let message =
        OutgoingMessage::read(&arguments.message, Reading { dialect, kind, station_id: StationId(station_id) })?;
    if arguments.link.dry_run {
        return dry_run(arguments, &message);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the I/O of this command")?.block_on(send(arguments, &message))?;
    Ok(ExitCode::SUCCESS)
}

async fn send(arguments: &Arguments, message: &OutgoingMessage) -> anyhow::Result<()> {
    let mut network = open(&arguments.link, &arguments.destination)?;
    let mut station = station(arguments, message, network.hardware_address())?;
    let wait = Duration::from_secs_f64(arguments.wait);
    transmit::run(&mut station, &mut network, &request(arguments, message), repeat(arguments, message), wait).await
}

fn open(link: &LinkArguments, destination: &DestinationArguments) -> anyhow::Result<Network> {
    if let Some(interface) = &link.interface {
        return Network::ethernet(&EthernetSettings::on(interface.as_str()));
    }
    let mut settings = UdpMulticastSettings::default();
    settings.interface.clone_from(link.udp.as_ref().unwrap_or(&settings.interface.clone()));
    settings.group = destination.group.unwrap_or(settings.group);
    if !settings.group.ip().is_multicast() {
        return Err(Refused::argument(format!("--group: {} is not a multicast address", settings.group.ip())).into());
    }
    Network::udp(&settings)
}

/// A station that is where the arguments or the message say.
fn station(
    arguments: &Arguments,
    message: &OutgoingMessage,
    hardware_address: Option<MacAddress>,
) -> anyhow::Result<Station> {
    let now = clock::now();
    let summary = message.message.summary(now.tai);
    let position = arguments.position.or(summary.position).ok_or_else(|| {
        Refused::argument("the message does not say where the station is; --position LAT,LON does".to_owned())
    })?;
    let station_type =
        arguments.station_type.map(StationType).or(summary.station_type).unwrap_or(StationType::PASSENGER_CAR);
    let settings = StationSettings {
        link_address: hardware_address.unwrap_or_else(|| mac_of_station(summary.station_id)),
        station_type,
        mobile: !station_type.is_roadside_unit(),
        beacons: false,
    };
    let mut station = Station::new(settings, now.tai.nanos().unsigned_abs()).with_sequence_of(now.tai);
    let speed = summary.speed.unwrap_or(MetresPerSecond(0.0));
    station.set_ego(now, Ego { time: now.tai, position, position_accurate: true, speed, heading: summary.heading });
    Ok(station)
}

/// What one packet is made of: the command itself repeats it.
fn request(arguments: &Arguments, message: &OutgoingMessage) -> SendRequest {
    let request = message.request.clone();
    let destination = arguments.destination.destination().unwrap_or(request.destination);
    SendRequest { destination, repetition: None, ..request }
}

/// As the arguments say, or else the message.
fn repeat(arguments: &Arguments, message: &OutgoingMessage) -> Repeat {
    match message.request.repetition {
        Some(repetition) if arguments.repeat.is_none() => Repeat::within(repetition),
        _ => Repeat { period: arguments.repeat, count: arguments.count },
    }
}

/// Prints the frames that the station would send at once.
fn dry_run(arguments: &Arguments, message: &OutgoingMessage) -> anyhow::Result<ExitCode> {
    let (mut station, request) = (station(arguments, message, None)?, request(arguments, message));
    station.send(clock::now(), &request).context("cannot send the message")?;
    let mut gone = false;
    while let Some(octets) = station.poll_transmit() {
        gone |= transmit::carries(&octets, &request);
        frame::print(&octets)?;
    }
    if !gone {
        say_waits(&request);
    }
    Ok(ExitCode::SUCCESS)
}

fn say_waits(request: &SendRequest) {
    crate::output::print_note(format_args!("The station would keep the message: {}.", transmit::why_kept(request)));
}

fn parse_kind(text: &str) -> Result<MessageKind, String> {
    MessageKind::from_label(text).ok_or_else(|| {
        let labels = MessageKind::ALL.map(MessageKind::label).join(", ");
        format!("it is one of {labels}")
    })
}

fn parse_dialect(text: &str) -> Result<Dialect, String> {
    match text {
        "viaduct" => Ok(Dialect::Viaduct),
        "vanetza-nap" => Ok(Dialect::VanetzaNap),
        _ => Err("it is viaduct or vanetza-nap".to_owned()),
    }
}

fn parse_wait(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=600.0).contains(seconds));
    seconds.ok_or_else(|| "it is a number of seconds, 0 to 600".to_owned())
}
