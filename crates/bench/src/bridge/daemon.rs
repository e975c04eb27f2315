//! Servers that a setup needs: the ROS master, and the MQTT broker with its certificates.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use viaduct_components::link::End;

use super::case::Encryption;
use super::job::{NodeJob, ready};
use super::network::Network;
use super::{NODE_COMMAND, Options};
use crate::process::Process;

/// Time limit for a server to listen.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// Wait between two attempts to connect to it.
const POLL_PERIOD: Duration = Duration::from_millis(10);
/// Places of programs that are not in the path of every user.
const PLACES: &str = ":/usr/sbin:/usr/local/sbin";

/// A server, which is killed when dropped.
pub(super) struct Daemon {
    child: Child,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Daemon {
    /// Starts a server at an end, and waits until it accepts connections at a port.
    fn start(mut command: Command, network: &Network, end: End, port: u16) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|cause| format!("`{name}` does not start: {cause}"))?;
        let mut daemon = Self { child };
        let deadline = Instant::now() + START_TIME_MAX;
        let connects = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        while !network.within(end, connects).map_err(|error| error.to_string())? {
            if daemon.child.try_wait().is_ok_and(|status| status.is_some()) || Instant::now() > deadline {
                return Err(format!("`{name}` does not listen"));
            }
            std::thread::sleep(POLL_PERIOD);
        }
        Ok(daemon)
    }
}

/// Returns the path of a program, or `None` if it is not installed.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let places = std::env::var("PATH").unwrap_or_default() + PLACES;
    places.split(':').map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

/// Returns a free port of an end. Another program may take it before it is used.
fn free_port(network: &Network, end: End) -> Result<u16, String> {
    let port = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|address| address.port());
    let found = network.within(end, port).map_err(|error| error.to_string())?;
    found.map_err(|cause| format!("there is no free port: {cause}"))
}

/// A ROS master at an end.
pub(super) struct Master {
    _daemon: Daemon,
    /// Address at which its programs reach it.
    host: Ipv4Addr,
    port: u16,
}

impl Master {
    /// Starts `rosmaster` for programs that reach it at `host`. Its files are below `folder`.
    pub(super) fn start(network: &Network, end: End, host: Ipv4Addr, folder: &Path) -> Result<Self, String> {
        let program = find_program("rosmaster").ok_or("`rosmaster` is not installed; `make rivals` installs it")?;
        let port = free_port(network, end)?;
        let mut command = network.command(end, program).map_err(|error| error.to_string())?;
        command.args(["--core", "-p", &port.to_string()]);
        set_ros(&mut command, (host, port), host, folder);
        Ok(Self { _daemon: Daemon::start(command, network, end, port)?, host, port })
    }

    /// Returns its address as a node of ROS needs it.
    pub(super) fn address(&self) -> String {
        format!("http://{}:{}", self.host, self.port)
    }

    /// Sets the environment of a program of ROS that other programs reach at `own`.
    pub(super) fn set(&self, command: &mut Command, own: Ipv4Addr, folder: &Path) {
        set_ros(command, (self.host, self.port), own, folder);
    }
}

/// Sets the environment of a program of ROS. A server with a loopback address listens there only.
fn set_ros(command: &mut Command, (host, port): (Ipv4Addr, u16), own: Ipv4Addr, folder: &Path) {
    command.env("ROS_MASTER_URI", format!("http://{host}:{port}")).env("ROS_HOSTNAME", own.to_string());
    command.env("ROS_HOME", folder).env("ROS_LOG_DIR", folder);
}

/// The broker at the cloud's end: Mosquitto, or the one of Viaduct if Mosquitto is not installed.
pub(super) struct Broker {
    _server: Server,
    /// Its name and version.
    pub(super) name: String,
    /// Address at which both ends reach it.
    pub(super) host: Ipv4Addr,
    pub(super) port: u16,
    pub(super) certificates: Option<Certificates>,
}

impl Broker {
    /// Starts the broker. Its files are below `folder`.
    pub(super) fn start(
        network: &Network,
        encryption: Encryption,
        folder: &Path,
        options: &Options,
    ) -> Result<Self, String> {
        let (host, port) = (network.address(End::B), free_port(network, End::B)?);
        let Some(program) = find_program("mosquitto") else {
            if encryption != Encryption::None {
                return Err("`mosquitto` is not installed; `make setup` installs it".to_owned());
            }
            let server = embedded(network, port, options)?;
            let name = "the broker of Viaduct, because Mosquitto is not installed".to_owned();
            return Ok(Self { _server: server, name, host, port, certificates: None });
        };
        let is_mutual = encryption == Encryption::MutualTls;
        let certificates = match encryption {
            Encryption::None => None,
            Encryption::Tls | Encryption::MutualTls => Some(Certificates::create(folder, host, is_mutual)?),
        };
        let config = folder.join("mosquitto.conf");
        fs::write(&config, config_text(port, certificates.as_ref()))
            .map_err(|cause| format!("cannot write {}: {cause}", config.display()))?;
        let name = version_of(&program);
        let mut command = network.command(End::B, program).map_err(|error| error.to_string())?;
        command.arg("-c").arg(&config);
        let server = Server::Mosquitto(Daemon::start(command, network, End::B, port)?);
        Ok(Self { _server: server, name, host, port, certificates })
    }
}

/// A running broker, which ends when dropped.
#[expect(dead_code, reason = "a server runs as long as its value exists")]
enum Server {
    Mosquitto(Daemon),
    Embedded(Process),
}

fn embedded(network: &Network, port: u16, options: &Options) -> Result<Server, String> {
    let listen = format!("listen: \"0.0.0.0:{port}\", anonymous: true");
    let config = format!("node: broker\ncomponents:\n  broker: {{ kind: mqtt_broker, settings: {{ {listen} }} }}\n");
    let mut command = network.command(End::B, options.program()?).map_err(|error| error.to_string())?;
    let mut process = Process::spawn(command.args(NODE_COMMAND))?;
    process.send(&NodeJob { config, watch: None })?;
    ready(&mut process, START_TIME_MAX)?;
    Ok(Server::Embedded(process))
}

/// Returns the first line of a program's help, which has its version.
fn version_of(program: &Path) -> String {
    let help = Command::new(program).arg("-h").output();
    let text = help.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("mosquitto").to_owned()
}

fn config_text(port: u16, certificates: Option<&Certificates>) -> String {
    // A broker that is started by root would change its user, which may not read the certificates.
    let mut text =
        format!("user root\nlistener {port} 0.0.0.0\nallow_anonymous true\nset_tcp_nodelay true\nlog_type error\n");
    if let Some(Certificates { folder, is_mutual }) = certificates {
        let at = |name: &str| folder.join(name).display().to_string();
        text += &format!("cafile {}\ncertfile {}\nkeyfile {}\n", at("ca.pem"), at("broker.pem"), at("broker.key"));
        text += &format!("require_certificate {is_mutual}\n");
    }
    text
}

/// Certificates of an authority, of the broker and of a client, each with its key.
pub(super) struct Certificates {
    folder: PathBuf,
    /// `true` if the broker asks clients for a certificate.
    is_mutual: bool,
}

impl Certificates {
    fn create(folder: &Path, broker: Ipv4Addr, is_mutual: bool) -> Result<Self, String> {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        openssl(folder, &format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=ca"))?;
        for (name, alternative) in [("broker", format!("IP:{broker}")), ("client", "DNS:client".to_owned())] {
            let signed = "-CA ca.pem -CAkey ca.key -addext basicConstraints=CA:FALSE";
            let own =
                format!("-keyout {name}.key -out {name}.pem -subj /CN={name} -addext subjectAltName={alternative}");
            openssl(folder, &format!("req -x509 {key} {signed} {own}"))?;
        }
        Ok(Self { folder: folder.to_owned(), is_mutual })
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Returns certificate and key of a client, if the broker asks for one.
    pub(super) fn client(&self) -> Option<(PathBuf, PathBuf)> {
        self.is_mutual.then(|| (self.folder.join("client.pem"), self.folder.join("client.key")))
    }
}

fn openssl(folder: &Path, arguments: &str) -> Result<(), String> {
    let run = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let run = run.map_err(|cause| format!("`openssl` does not start: {cause}"))?;
    if run.status.success() {
        return Ok(());
    }
    Err(format!("`openssl {arguments}` fails: {}", String::from_utf8_lossy(&run.stderr).trim()))
}
