//! The running programs of a setup: ROS masters, broker, bridges, and the ends between which messages are measured.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use viaduct_components::link::End;

use super::case::{Cell, Kind, Load, Method, Setup};
use super::configs::Ros;
use super::content::Content;
use super::daemon::{Broker, Master};
use super::domain::Domain;
use super::folder::Folder;
use super::job::{EndJob, NodeJob, Ready, Received, Reply, WARM_UP, Watch, Watched, ready, reply, unexpected};
use super::network::Network;
use super::outcome::Outcome;
use super::{NODE_COMMAND, Options, configs, floor, inference, use_case};
use crate::process::Process;

/// Time limit for a program to be ready, and for the probes of a job.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Programs of the ends below the folder of rivals.
const ENDS_PROGRAM: &str = "bin/ros1_bridge";
const ROS2_ENDS_PROGRAM: &str = "bin/ros2_bridge";
/// Python for which Debian installs the packages of ROS.
const PYTHON: &str = "/usr/bin/python3";

/// The programs of a setup. The last fields end last.
pub(super) struct Session<'a> {
    options: &'a Options,
    setup: Setup,
    /// Ends in ROS: of the vehicle and of the cloud.
    ends: Option<[Process; 2]>,
    /// The bridges, or Viaduct's nodes.
    bridges: Vec<Process>,
    version: Ready,
    broker: Option<Broker>,
    masters: Vec<Master>,
    domain: Option<Domain>,
    network: Network,
    folder: Folder,
    /// Number of measured loads.
    loads: u32,
}

impl<'a> Session<'a> {
    /// Starts the programs.
    pub(super) fn open(setup: Setup, network: Network, options: &'a Options) -> Result<Self, String> {
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let mut session = Self {
            options,
            setup,
            ends: None,
            bridges: Vec::new(),
            version: Ready::default(),
            broker: None,
            masters: Vec::new(),
            domain: None,
            network,
            folder,
            loads: 0,
        };
        if setup.method == Method::Ros2 && !cfg!(feature = "ros2") {
            return Err("built without the feature ros2: make build-ros2".to_owned());
        }
        // A missing program is found before anything starts.
        if setup.method.has_ros() {
            session.ends_program()?;
        }
        if setup.method.has_broker() {
            let broker = Broker::start(&session.network, setup.encryption, session.folder.path(), options)?;
            session.broker = Some(broker);
        }
        if setup.method.has_ros() {
            session.start_ros()?;
            session.start_bridges()?;
            session.ends = Some([session.start_end(End::A)?, session.start_end(End::B)?]);
        }
        Ok(session)
    }

    /// Starts the ROS masters, or claims a domain of ROS 2.
    fn start_ros(&mut self) -> Result<(), String> {
        if self.setup.method.has_ros2() {
            self.domain = Some(Domain::claim()?);
            return Ok(());
        }
        let has_one = self.network.is_host() || !self.setup.method.has_broker();
        let ends: &[End] = if has_one { &[End::A] } else { &[End::A, End::B] };
        for end in ends {
            self.masters.push(Master::start(&self.network, *end, self.ros_address(*end), self.folder.path())?);
        }
        Ok(())
    }

    /// Returns the address at which other programs of ROS reach those of an end: over the link only without a bridge.
    const fn ros_address(&self, end: End) -> Ipv4Addr {
        if matches!(self.setup.method, Method::Overlay) { self.network.address(end) } else { Ipv4Addr::LOCALHOST }
    }

    /// Returns the ROS master of an end. On one host and without a broker there is one.
    fn master(&self, end: End) -> Result<&Master, String> {
        let index = usize::from(end == End::B).min(self.masters.len().saturating_sub(1));
        self.masters.get(index).ok_or_else(|| "there is no ROS master".to_owned())
    }

    /// Returns the ROS master or the domain of an end.
    fn ros(&self, end: End) -> Result<Ros<'_>, String> {
        self.domain.as_ref().map_or_else(|| self.master(end).map(Ros::Master), |domain| Ok(Ros::Domain(domain)))
    }

    fn start_bridges(&mut self) -> Result<(), String> {
        let ends: &[End] = match self.setup.method {
            Method::InVehicle => &[End::A],
            Method::Ros1 | Method::Ros2 | Method::MqttClient | Method::MqttBridge => &[End::A, End::B],
            _ => &[],
        };
        for end in ends {
            let (bridge, version) = self.start_bridge(*end)?;
            self.bridges.push(bridge);
            self.version = version;
        }
        Ok(())
    }

    fn start_bridge(&self, end: End) -> Result<(Process, Ready), String> {
        let broker = || self.broker.as_ref().ok_or_else(|| "there is no broker".to_owned());
        match self.setup.method {
            Method::Ros1 | Method::Ros2 => {
                self.start_node(end, configs::ros_node(end, &self.setup, self.ros(end)?, broker()?), None)
            }
            Method::InVehicle => self.start_node(end, configs::in_vehicle_node(self.master(end)?), None),
            Method::MqttClient => {
                let command = self.network_command(end, self.rival("bin/mqtt_client")?)?;
                self.start_rival(command, end, broker()?)
            }
            Method::MqttBridge => {
                let mut command = self.network_command(end, PYTHON)?;
                command.arg(self.rival("bin/mqtt_bridge/run.py")?);
                self.start_rival(command, end, broker()?)
            }
            _ => Err("the method has no bridge".to_owned()),
        }
    }

    fn start_rival(&self, mut command: Command, end: End, broker: &Broker) -> Result<(Process, Ready), String> {
        command.arg(format!("{}_{}", self.setup.method.name(), configs::name(end)));
        self.master(end)?.set(&mut command, self.ros_address(end), self.folder.path());
        let mut process = Process::spawn(&mut command)?;
        process.send(&configs::rival(end, &self.setup, broker))?;
        let ready = ready(&mut process, READY_TIMEOUT)?;
        Ok((process, ready))
    }

    fn start_node(&self, end: End, config: String, watch: Option<Watch>) -> Result<(Process, Ready), String> {
        let mut command = self.network_command(end, self.options.program()?)?;
        command.args(NODE_COMMAND);
        let mut process = Process::spawn(&mut command)?;
        process.send(&NodeJob { config, watch })?;
        let ready = ready(&mut process, READY_TIMEOUT)?;
        Ok((process, ready))
    }

    fn start_end(&self, end: End) -> Result<Process, String> {
        let mut command = self.network_command(end, self.ends_program()?)?;
        command.arg(configs::name(end));
        match self.ros(end)? {
            Ros::Master(master) => master.set(&mut command, self.ros_address(end), self.folder.path()),
            Ros::Domain(domain) => domain.set(&mut command),
        }
        let mut process = Process::spawn(&mut command)?;
        ready(&mut process, READY_TIMEOUT)?;
        Ok(process)
    }

    fn network_command(&self, end: End, program: impl AsRef<std::ffi::OsStr>) -> Result<Command, String> {
        self.network.command(end, program).map_err(|error| error.to_string())
    }

    /// Returns the path of the program of the ends.
    fn ends_program(&self) -> Result<PathBuf, String> {
        self.rival(if self.setup.method.has_ros2() { ROS2_ENDS_PROGRAM } else { ENDS_PROGRAM })
    }

    /// Returns the path of a program below the folder of rivals.
    fn rival(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.options.rivals.as_deref().unwrap_or_else(|| Path::new("rivals"));
        let path = folder.join(name);
        if !path.is_file() {
            return Err(format!(
                "the program `{}` does not exist; rivals/README.md says how it is built",
                path.display()
            ));
        }
        std::path::absolute(path).map_err(|cause| cause.to_string())
    }

    /// Measures the messages of a cell.
    pub(super) fn measure(&mut self, cell: &Cell, content: &Content) -> Result<Outcome, String> {
        let (load, messages) = (&cell.load, self.options.messages(cell));
        let before = self.network.queue_drops();
        let mut outcome = match self.setup.method {
            Method::Bus => self.measure_bus(load, messages)?,
            Method::UseCase | Method::UseCaseInVehicle => self.measure_use_case(load, messages)?,
            Method::Detector => measure_detector(content, messages)?,
            Method::Tcp | Method::Mqtt => self.measure_floor(load, messages)?,
            method => {
                let path = content.path(load.kind);
                self.measure_ros(&load.job(path, messages, self.options.silence, method.is_direct()))?
            }
        };
        self.loads += 1;
        outcome.queue_drops = self.network.queue_drops().zip(before).map(|(after, before)| after - before);
        outcome.version = self.version.clone();
        outcome.broker = self.broker.as_ref().map(|broker| broker.name.clone());
        Ok(outcome)
    }

    fn measure_ros(&mut self, job: &EndJob) -> Result<Outcome, String> {
        let [vehicle, cloud] = self.ends.as_mut().ok_or("the ends are not running")?;
        cloud.send(job)?;
        let line = cloud.next_line(READY_TIMEOUT)?;
        if line != "\"ready\"" {
            return Err(format!("the cloud's end: {line}"));
        }
        vehicle.send(job)?;
        let timeout = READY_TIMEOUT + job.duration() * 2 + Duration::from_nanos(job.silence_ns) * 4;
        let Reply::Sent { times, answered } = reply(vehicle, timeout)? else { return Err("no times".to_owned()) };
        cloud.send(&"report")?;
        let Reply::Arrived(arrived) = reply(cloud, READY_TIMEOUT)? else { return Err("no times".to_owned()) };
        let mut outcome = Outcome::of(&times, &arrived, &answered);
        if self.loads == 0
            && let [vehicle, cloud] = &mut self.bridges[..]
            && self.setup.method.has_hops()
        {
            outcome.hops = Some([report(vehicle, READY_TIMEOUT)?.0, report(cloud, READY_TIMEOUT)?.0]);
        }
        Ok(outcome)
    }

    /// Measures sockets of the bench.
    fn measure_floor(&self, load: &Load, messages: u32) -> Result<Outcome, String> {
        let (octets, count) = (load.octets(), messages as usize);
        let ages = match &self.broker {
            Some(broker) => {
                let address = SocketAddr::from((broker.host, broker.port));
                floor::mqtt(&self.network, address, self.setup.qos, octets, count, load.period())
            }
            None => floor::tcp(&self.network, octets, count, load.period()),
        };
        let one_way = ages.map_err(|error| error.to_string())?;
        Ok(Outcome { sent: messages.into(), one_way, ..Outcome::default() })
    }

    /// Measures a generator and a subscription of the bench. Both nodes end with this measurement.
    fn measure_bus(&self, load: &Load, messages: u32) -> Result<Outcome, String> {
        let broker = self.broker.as_ref().ok_or("there is no broker")?;
        let all = (WARM_UP + messages) as usize;
        let config = |end| configs::bus_node(end, &self.setup, broker, load.octets(), load.rate_hz);
        let watch = Some(Watch { topic: configs::BUS_TOPIC.to_owned(), count: all, content: Watched::Age });
        let (mut cloud, _) = self.start_node(End::B, config(End::B), watch)?;
        let (mut vehicle, _) = self.start_node(End::A, config(End::A), None)?;
        let timeout = READY_TIMEOUT + load.period() * (WARM_UP + messages);
        let (cloud_hops, Received { ages, .. }) = report(&mut cloud, timeout)?;
        let (vehicle_hops, _) = report(&mut vehicle, READY_TIMEOUT)?;
        let one_way = ages.into_iter().skip(WARM_UP as usize).collect();
        Ok(Outcome { sent: messages.into(), one_way, hops: Some([vehicle_hops, cloud_hops]), ..Outcome::default() })
    }

    /// Measures the key figures of the use case. Its nodes end with this measurement.
    fn measure_use_case(&self, load: &Load, messages: u32) -> Result<Outcome, String> {
        let count = (WARM_UP + messages) as usize;
        let watch = Some(Watch { topic: use_case::TRIPS.to_owned(), count, content: Watched::Trip });
        let config = |end, broker: &Broker| use_case::node(end, &self.setup, load, broker);
        let (own, _cloud) = match &self.broker {
            Some(broker) => (config(End::A, broker), Some(self.start_node(End::B, config(End::B, broker), None)?)),
            None => (use_case::in_vehicle_node(load), None),
        };
        let (mut vehicle, _) = self.start_node(End::A, own, watch)?;
        let timeout = READY_TIMEOUT + load.period() * (WARM_UP + messages) * 2;
        let (_, received) = report(&mut vehicle, timeout)?;
        Ok(use_case::outcome(&received.trips, messages, self.broker.is_none()))
    }
}

/// Measures the detector with the points of the bench.
fn measure_detector(content: &Content, messages: u32) -> Result<Outcome, String> {
    let points =
        std::fs::read(content.path(Kind::Cloud)).map_err(|cause| format!("cannot read the points: {cause}"))?;
    Ok(Outcome { sent: messages.into(), one_way: inference::measure(&points, messages)?, ..Outcome::default() })
}

/// Asks a node for its report: hops and watched messages.
fn report(node: &mut Process, timeout: Duration) -> Result<(Vec<super::job::HopFigures>, Received), String> {
    node.send(&"report")?;
    match reply(node, timeout)? {
        Reply::Node { hops, received } => Ok((hops, received)),
        other => Err(unexpected(&other)),
    }
}
