//! Servers of a measurement: nodes of Viaduct, brokers, and servers of others.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use viaduct_components::link::{End, Tunnel};

use super::{NODE_COMMAND, Options};
use crate::process::Process;

/// Time limit for a server to start.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// Wait between two attempts to reach it.
const POLL_PERIOD: Duration = Duration::from_millis(10);
/// Places of programs that are not in the path of every user.
const PLACES: &str = ":/usr/sbin:/usr/local/sbin";
/// Ports that are tried until one is free.
const PORTS_TRIED: usize = 100;
/// Path of the resource that accepts messages.
pub(crate) const PATH: &str = "sink";

/// The place of a server: this host, or the far end of an emulated link.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Host,
    Far(&'a Tunnel),
}

impl Place<'_> {
    fn command(self, program: &Path) -> Command {
        match self {
            Self::Host => Command::new(program),
            Self::Far(tunnel) => tunnel.command(End::B, program),
        }
    }

    /// Returns the address at which clients reach the place.
    pub(crate) const fn address(self) -> Ipv4Addr {
        match self {
            Self::Host => Ipv4Addr::LOCALHOST,
            Self::Far(_) => End::B.address(),
        }
    }

    /// Returns a port that is free for UDP and TCP. Another program may take it before it is used.
    pub(crate) fn port(self) -> Result<u16, String> {
        let find = || -> std::io::Result<u16> {
            let port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port();
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map(|_| port)
        };
        // A port that is free for TCP may be in use for UDP.
        let find = || (0..PORTS_TRIED).map(|_| find()).find(Result::is_ok).unwrap_or_else(find);
        let found = match self {
            Self::Host => find(),
            Self::Far(tunnel) => tunnel.within(End::B, find).map_err(|error| error.to_string())?,
        };
        found.map_err(|cause| format!("there is no free port: {cause}"))
    }

    fn connects(self, port: u16) -> bool {
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        match self {
            Self::Host => connect(),
            Self::Far(tunnel) => tunnel.within(End::B, connect).unwrap_or(false),
        }
    }
}

/// A server, which ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Name and version, if the program prints them.
    pub(crate) version: String,
    /// Process identifier, to read its CPU time.
    pub(crate) process: u32,
    _running: Running,
}

enum Running {
    Process(#[expect(dead_code, reason = "it ends when dropped")] Box<Process>),
    Child(#[expect(dead_code, reason = "it ends when dropped")] Killed),
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the path of a program.
pub(crate) fn find_program(name: &str) -> Result<PathBuf, String> {
    let places = std::env::var("PATH").unwrap_or_default() + PLACES;
    let found = places.split(':').map(|place| Path::new(place).join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("`{name}` is not installed; `make rivals` installs it"))
}

/// Starts a node of Viaduct in a process of its own.
pub(crate) fn node(options: &Options, place: Place<'_>, address: SocketAddr, config: &str) -> Result<Server, String> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(|cause| format!("the path of this program is unknown: {cause}"))?,
    };
    node_of(place.command(&program), address, config)
}

/// Starts a node with a command that runs this program.
pub(crate) fn node_of(mut command: Command, address: SocketAddr, config: &str) -> Result<Server, String> {
    let mut process = Process::spawn(command.args(NODE_COMMAND))?;
    process.send(&json!({ "config": config, "watch": null }))?;
    let line = process.next_line(START_TIME_MAX)?;
    if line.contains("\"error\"") {
        return Err(line);
    }
    let process_id = process.id();
    Ok(Server { address, version: String::new(), process: process_id, _running: Running::Process(Box::new(process)) })
}

/// Starts a node with a CoAP server whose resource publishes on the bus.
pub(crate) fn coap_node(options: &Options, place: Place<'_>) -> Result<Server, String> {
    let address = SocketAddr::from((place.address(), place.port()?));
    let config = format!(
        "node: bench\ncomponents:\n  server:\n    kind: coap_server\n    settings:\n      listen: {address}\n      anonymous: true\n      \
         timers: adaptive\n      address_check: \"off\"\n      \
         resources: [ {{ path: {PATH}, to: sink, type: {{ opaque: blob }}, encoding: native }} ]\n"
    );
    node(options, place, address, &config)
}

/// Starts a node with the HTTP endpoint of every node. It needs a component, which does nothing here.
pub(crate) fn http_node(options: &Options) -> Result<Server, String> {
    let [http, coap] =
        [Place::Host.port()?, Place::Host.port()?].map(|port| SocketAddr::from((Place::Host.address(), port)));
    let config = format!(
        "node: bench\nhttp: {http}\ncomponents:\n  server: {{ kind: coap_server, settings: {{ listen: {coap}, resources: \
         [ {{ path: {PATH}, to: sink, type: {{ opaque: blob }}, encoding: native }} ] }} }}\n"
    );
    node(options, Place::Host, http, &config)
}

/// The broker behind a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Embedded,
    /// Mosquitto on this port.
    Mosquitto(u16),
}

/// Starts a node with a gateway.
pub(crate) fn gateway_node(
    options: &Options,
    place: Place<'_>,
    behind: Behind,
    is_transparent: bool,
    clients_max: usize,
) -> Result<Server, String> {
    let address = SocketAddr::from((place.address(), place.port()?));
    let (broker, settings) = match behind {
        Behind::Embedded => {
            let port = place.port()?;
            let broker = format!("  broker: {{ kind: mqtt_broker, settings: {{ listen: 127.0.0.1:{port} }} }}\n");
            (broker, format!("embedded_broker: 127.0.0.1:{port}"))
        }
        Behind::Mosquitto(port) => {
            let mode = if is_transparent { "transparent" } else { "aggregating" };
            (String::new(), format!("broker: mqtt://127.0.0.1:{port}\n      mode: {mode}"))
        }
    };
    let config = format!(
        "node: bench\ncomponents:\n{broker}  gateway:\n    kind: mqttsn_gateway\n    settings:\n      listen: {address}\n      anonymous: true\n      \
         {settings}\n      timers: adaptive\n      limits: {{ clients_max: {clients_max} }}\n"
    );
    node(options, place, address, &config)
}

/// Starts a node with a forwarder to a gateway.
pub(crate) fn forwarder_node(options: &Options, gateway: SocketAddr) -> Result<Server, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, Place::Host.port()?));
    let config = format!(
        "node: forwarder\ncomponents:\n  forwarder: {{ kind: mqttsn_forwarder, settings: {{ listen: {address}, gateway: {gateway} }} }}\n"
    );
    node(options, Place::Host, address, &config)
}

/// Starts Mosquitto.
pub(crate) fn mosquitto(place: Place<'_>) -> Result<Server, String> {
    mosquitto_of(place.command(&find_program("mosquitto")?), place)
}

/// Starts Mosquitto in a process that may open so many files.
pub(crate) fn mosquitto_with_files(files_max: u32) -> Result<Server, String> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files_max}; exec \"$0\" \"$@\"")]).arg(find_program("mosquitto")?);
    mosquitto_of(command, Place::Host)
}

fn mosquitto_of(mut command: Command, place: Place<'_>) -> Result<Server, String> {
    let port = place.port()?;
    // With a port alone, it listens on the loopback address.
    let file = std::env::temp_dir().join(format!("viaduct-bench-{}-{port}.conf", std::process::id()));
    let text = format!("listener {port} 0.0.0.0\nallow_anonymous true\n");
    std::fs::write(&file, text).map_err(|cause| format!("{}: {cause}", file.display()))?;
    let started = spawn(command.arg("-c").arg(&file), SocketAddr::from((place.address(), port)));
    let server = started.and_then(|server| wait_for(place, port).map(|()| server));
    // The broker has read the file, which is in a folder for temporary files.
    let _ = std::fs::remove_file(file);
    server
}

/// Waits until a server listens.
fn wait_for(place: Place<'_>, port: u16) -> Result<(), String> {
    let deadline = Instant::now() + START_TIME_MAX;
    while !place.connects(port) {
        if Instant::now() > deadline {
            return Err("Mosquitto does not listen".to_owned());
        }
        std::thread::sleep(POLL_PERIOD);
    }
    Ok(())
}

/// Starts the server of libcoap, whose resource accepts PUT.
pub(crate) fn libcoap(place: Place<'_>) -> Result<Server, String> {
    let (host, port) = (place.address(), place.port()?);
    let mut command = place.command(&find_program("coap-server-notls")?);
    command.args(["-A", &host.to_string(), "-p", &port.to_string(), "-v", "0"]);
    let server = spawn(&mut command, SocketAddr::from((host, port)))?;
    // The server does not report that it listens.
    std::thread::sleep(Duration::from_millis(300));
    Ok(server)
}

fn spawn(command: &mut Command, address: SocketAddr) -> Result<Server, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|cause| format!("`{name}` does not start: {cause}"))?;
    Ok(Server { address, version: String::new(), process: child.id(), _running: Running::Child(Killed(child)) })
}

/// Starts a server of a rival, which prints a line with its version when it listens.
pub(crate) fn rival(mut command: Command, address: SocketAddr) -> Result<Server, String> {
    command.args([address.ip().to_string(), address.port().to_string(), PATH.to_owned()]);
    let mut process = Process::spawn(&mut command)?;
    let line = process.next_line(START_TIME_MAX)?;
    let version = serde_json::from_str::<serde_json::Value>(&line).ok();
    let version = version.and_then(|value| value["version"].as_str().map(str::to_owned)).ok_or(line)?;
    let process_id = process.id();
    Ok(Server { address, version, process: process_id, _running: Running::Process(Box::new(process)) })
}

/// Returns the CPU time of a process in seconds.
pub(crate) fn cpu_seconds(process: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain spaces.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}
