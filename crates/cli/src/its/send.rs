//! `viaduct its send MESSAGE`: sends one message from JSON.

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
use crate::output::print_note;
use message::{OutgoingMessage, ReadOptions};
use transmit::{Network, Repeat};

/// Arguments of `its send`: the message, its destination and the link.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File with the message in JSON; `-` reads stdin. Accepts a whole message, its body alone, the text that an application
    /// publishes (with `destination`, `repetition`, ...), or a line of `its decode --json-lines`.
    message: PathBuf,
    /// Dialect of the JSON: `viaduct` (ASN.1 names, raw integers) or `vanetza-nap` (scaled units).
    #[arg(long, value_name = "DIALECT", default_value = "viaduct", value_parser = parse_dialect)]
    dialect: Dialect,
    /// Type of the message. Default: the type in the JSON (`type`, the header or the name of the body).
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_kind)]
    kind: Option<MessageKind>,
    /// Station ID of the message if the JSON has no header, or station ID 0.
    #[arg(long, value_name = "ID", default_value_t = 1)]
    station_id: u32,
    #[command(flatten)]
    link: LinkArguments,
    #[command(flatten)]
    destination: DestinationArguments,
    /// Position of the sending station in degrees. Default: the position in the message.
    #[arg(long, value_name = "LAT,LON", value_parser = destination::parse_position, allow_hyphen_values = true)]
    position: Option<Position>,
    /// Station type of the sending station, 0 to 31. Default: the type in the message, or 5 (passenger car) if it has none.
    #[arg(long, value_name = "TYPE", value_parser = clap::value_parser!(u8).range(0..=31))]
    station_type: Option<u8>,
    /// Send the message repeatedly at this rate, for example `10hz`; 0.001hz to 10000hz.
    #[arg(long, value_name = "RATE", value_parser = transmit::parse_rate)]
    repeat: Option<Duration>,
    /// Number of messages to send with --repeat. Default: no limit.
    #[arg(long, requires = "repeat", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Set the time of a CAM, VAM, CPM or DENM to the time at which it is sent. Otherwise the message keeps its time.
    #[arg(long)]
    refresh_time: bool,
    /// Longest time that the message may wait in the station, in seconds, 0 to 600. A message waits, for example, while the
    /// location service searches its destination. If the time is over, the command fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = parse_wait)]
    wait: f64,
}

/// Link on which the frames are sent.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct LinkArguments {
    /// Send Ethernet frames on this network interface (needs CAP_NET_RAW).
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Send UDP multicast on this network interface, given by name or IPv4 address.
    #[arg(long, value_name = "INTERFACE")]
    udp: Option<String>,
    /// Send nothing; print each frame in hexadecimal and the message that a receiver decodes.
    #[arg(long)]
    dry_run: bool,
}

/// Destination of the message.
#[derive(clap::Args)]
struct DestinationArguments {
    /// Multicast group and port for --udp.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "udp")]
    group: Option<SocketAddrV4>,
    /// Send to all stations (gbc) or any one station (gac) in an area: `gbc:49.0,8.4,r=500`,
    /// `gac:49.0,8.4,rectangle=200x50,azimuth=45`, `gbc:49.0,8.4,ellipse=200x50`; metres and degrees. Without --to, --hops and
    /// --station, the destination is that of the JSON, or all stations within one hop if it has none.
    #[arg(long, value_name = "AREA", value_parser = destination::parse_area, conflicts_with_all = ["hops", "station"])]
    to: Option<Destination>,
    /// Send to all stations within this number of hops, 1 to 255.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..), conflicts_with = "station")]
    hops: Option<u8>,
    /// Send to the station with this GeoNetworking address: `94:00:02:00:00:00:03:f8`.
    #[arg(long, value_name = "ADDRESS", value_parser = destination::parse_address)]
    station: Option<Destination>,
}

impl DestinationArguments {
    /// Returns the destination of the command line, or `None` if the message determines it.
    fn destination(&self) -> Option<Destination> {
        self.to.or(self.station).or(self.hops.map(Destination::Hops))
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { dialect, kind, station_id, .. } = *arguments;
    let options = ReadOptions { dialect, kind, station_id: StationId(station_id) };
    let message = OutgoingMessage::read(&arguments.message, options)?;
    if !arguments.refresh_time
        && let Some(note) = message.old_time_note(clock::tai())
    {
        print_note(note);
    }
    if arguments.link.dry_run {
        return dry_run(arguments, &message);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the I/O runtime")?.block_on(send(arguments, &message))?;
    Ok(ExitCode::SUCCESS)
}

async fn send(arguments: &Arguments, message: &OutgoingMessage) -> anyhow::Result<()> {
    let mut network = open(&arguments.link, &arguments.destination)?;
    let mut station = station(arguments, message, network.hardware_address())?;
    let wait = Duration::from_secs_f64(arguments.wait);
    let next = || request(arguments, message);
    transmit::run(&mut station, &mut network, next, repeat(arguments, message), wait).await
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

/// Creates a station at the position of the arguments, or else of the message.
fn station(
    arguments: &Arguments,
    message: &OutgoingMessage,
    hardware_address: Option<MacAddress>,
) -> anyhow::Result<Station> {
    let now = clock::now();
    let summary = message.message.summary(now.tai);
    let position = arguments.position.or(summary.position).ok_or_else(|| {
        Refused::argument("the message contains no position of the station; give it with --position LAT,LON".to_owned())
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

/// Returns the request for one packet. It has no repetition, because the command itself repeats the message.
fn request(arguments: &Arguments, message: &OutgoingMessage) -> anyhow::Result<SendRequest> {
    let mut request = message.request.clone();
    request.repetition = None;
    if let Some(destination) = arguments.destination.destination() {
        request.destination = destination;
    }
    if arguments.refresh_time {
        request.payload = message.payload_at(clock::tai())?.into();
    }
    Ok(request)
}

/// Returns the repetition of the arguments, or else of the message.
fn repeat(arguments: &Arguments, message: &OutgoingMessage) -> Repeat {
    match message.request.repetition {
        Some(repetition) if arguments.repeat.is_none() => Repeat::within(repetition),
        _ => Repeat { period: arguments.repeat, count: arguments.count },
    }
}

/// Prints the frames that the station would send immediately.
fn dry_run(arguments: &Arguments, message: &OutgoingMessage) -> anyhow::Result<ExitCode> {
    let mut station = station(arguments, message, None)?;
    let request = request(arguments, message)?;
    station.send(clock::now(), &request).context("cannot send the message")?;
    let mut is_sent = false;
    while let Some(octets) = station.poll_transmit() {
        is_sent |= transmit::contains_message(&octets, &request);
        frame::print(&octets)?;
    }
    if !is_sent {
        let reason = transmit::wait_reason(&request);
        print_note(format_args!("The station would store the message and not send it yet: {reason}."));
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_kind(text: &str) -> Result<MessageKind, String> {
    MessageKind::from_label(text).ok_or_else(|| {
        let labels = MessageKind::ALL.map(MessageKind::label).join(", ");
        format!("expected one of {labels}")
    })
}

fn parse_dialect(text: &str) -> Result<Dialect, String> {
    match text {
        "viaduct" => Ok(Dialect::Viaduct),
        "vanetza-nap" => Ok(Dialect::VanetzaNap),
        _ => Err("expected viaduct or vanetza-nap".to_owned()),
    }
}

fn parse_wait(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=600.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number of seconds from 0 to 600".to_owned())
}
