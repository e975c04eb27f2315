//! `viaduct link up`

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use viaduct_components::link::{End, LinkError, Tunnel, TunnelSettings, namespace_path, remove_namespaces};
use viaduct_netem::config::LinkPatch;
use viaduct_netem::{Duplex, LinkConfig, LinksConfig, Profile};
use viaduct_node::config::read_yaml;

use super::NameArguments;
use super::change::{self, Change, refused};
use super::control::{self, Answer, Direction, EndStatus, NotUp, Request, Status};
use crate::files::Refused;
use crate::output::{print_line, print_note};
use crate::run::{Signals, with_runtime};

/// Largest file of settings.
const FILE_OCTETS_MAX: u64 = 1 << 20;

/// A new link.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of a profile (ethernet, 5g, lte-driving, lossy-0.3, lossy-5, bursty-5, outage), or a YAML file with `profile`, `both`,
    /// `a_to_b` and `b_to_a`.
    #[arg(value_name = "PROFILE")]
    profile: String,
    #[command(flatten)]
    link: NameArguments,
    /// Seed of losses and delays.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Largest IP packet in octets, 576 to 65535.
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// A setting of both directions, for example `delay.base_ms=50` or `loss.independent=0.01`. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Return as soon as the link is up. `viaduct link down` removes it.
    #[arg(long)]
    background: bool,
}

/// A link that is up.
struct Link<'a> {
    arguments: &'a Arguments,
    tunnel: Tunnel,
    since: Instant,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = settings(arguments)?;
    remove_stale(&arguments.link.name)?;
    if arguments.background {
        return start_in_background(&arguments.link.name);
    }
    with_runtime(|runtime| {
        let mut signals = Signals::listen(runtime)?;
        let tunnel = Tunnel::up(&settings)?;
        let listener = control::listen(&arguments.link.name)?;
        let link = Link { arguments, tunnel, since: Instant::now() };
        let printed = print_line(link.summary());
        printed.and_then(|()| runtime.block_on(serve(link, listener, &mut signals)))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns the settings of the link.
fn settings(arguments: &Arguments) -> anyhow::Result<TunnelSettings> {
    let links = links(&arguments.profile)?.links();
    let changes: Vec<Change> = arguments.changes.iter().map(|text| Change::parse(text)).collect::<Result<_, _>>()?;
    let changed = |config: &LinkConfig| change::apply(config, &changes).map(LinkPatch::from);
    Ok(TunnelSettings {
        name: Some(arguments.link.name.clone()),
        links: LinksConfig {
            a_to_b: changed(&links.a_to_b)?,
            b_to_a: changed(&links.b_to_a)?,
            ..LinksConfig::default()
        },
        seed: arguments.seed,
        mtu: arguments.mtu,
    })
}

/// Returns the links of a profile or a file.
fn links(profile: &str) -> anyhow::Result<LinksConfig> {
    let path = Path::new(profile);
    let is_file = profile.contains('/') || path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    if !is_file {
        let named = profile.parse::<Profile>().map_err(|error| refused(format!("{error}; a file ends with .yaml")))?;
        return Ok(LinksConfig { profile: Some(named), ..LinksConfig::default() });
    }
    let unreadable = |problem: String| refused(format!("{profile}: {problem}"));
    let octets = fs::metadata(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?.len();
    if octets > FILE_OCTETS_MAX {
        return Err(unreadable(format!("has {octets} bytes, more than {FILE_OCTETS_MAX}")));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    Ok(read_yaml(profile, &text).map_err(Refused::from)?)
}

/// Removes what a killed process has left of a link. A link that is up is an error.
fn remove_stale(name: &str) -> anyhow::Result<()> {
    match control::ask(name, &Request::Show) {
        Ok(_) => {
            let option = format!("`viaduct link down --name {name}`");
            Err(refused(format!(
                "link {name} is up already: choose another name with --name, or remove it with {option}"
            )))
        }
        Err(error) if error.is::<NotUp>() => {
            if control::remove_socket(name) {
                remove_namespaces(name)?;
                print_note(format_args!("viaduct: removed what a killed process has left of link {name}"));
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Starts this command again as a process of its own, and waits until the link is up.
fn start_in_background(name: &str) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let (path, errors) = open_log(name)?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--background");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start the process of link {name}"))?;
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    let mut line = String::new();
    if output.read_line(&mut line)? > 0 {
        while !line.ends_with("\n\n") && output.read_line(&mut line)? > 0 {}
        print_line(line.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait()?;
    print_note(fs::read_to_string(&path).unwrap_or_default().trim_end());
    let _ = fs::remove_file(path);
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Opens the log of a link in the background.
fn open_log(name: &str) -> anyhow::Result<(PathBuf, File)> {
    let path = control::log_path(name);
    let opened = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&path));
    match opened {
        Ok(file) => Ok((path, file)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(LinkError::NotPermitted.into()),
        Err(error) => Err(error).with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Answers requests until a signal or a request to end.
async fn serve(link: Link<'_>, listener: UnixListener, signals: &mut Signals) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(listener)?;
    loop {
        let stream = tokio::select! {
            () = signals.asked() => return Ok(()),
            accepted = listener.accept() => accepted.context("the control socket fails")?.0,
        };
        let Some((mut stream, request)) = stream.into_std().ok().and_then(receive) else { continue };
        if matches!(request, Request::Down) {
            // The answer means that nothing is left.
            drop(link);
            let _ = control::answer(&mut stream, &Answer::Done);
            return Ok(());
        }
        let _ = control::answer(&mut stream, &link.handle(request));
    }
}

/// Reads a request. A client that sends none, or another one, gets no answer.
fn receive(stream: UnixStream) -> Option<(UnixStream, Request)> {
    stream.set_nonblocking(false).ok()?;
    let request = control::request(&stream).ok()?;
    Some((stream, request))
}

/// Removes the socket and the log. Namespaces and devices follow with the tunnel.
impl Drop for Link<'_> {
    fn drop(&mut self) {
        control::remove_socket(&self.arguments.link.name);
    }
}

impl Link<'_> {
    fn summary(&self) -> String {
        let Arguments { profile, link: NameArguments { name }, .. } = self.arguments;
        let option = if name == "viaduct" { String::new() } else { format!(" --name {name}") };
        format!(
            "link {name} is up: {profile}, a is {}, b is {}\nrun a program at an end: viaduct link exec{option} a -- ping {}\n",
            End::A.address(),
            End::B.address(),
            End::B.address(),
        )
    }

    fn handle(&self, request: Request) -> Answer {
        match request {
            Request::Show | Request::Down => Answer::Status(Box::new(self.status())),
            Request::Set { direction, changes } => match self.set(direction, &changes) {
                Ok(()) => Answer::Done,
                Err(error) => Answer::Refused(error.to_string().trim_start_matches("viaduct: ").to_owned()),
            },
        }
    }

    /// Changes the settings of one or both directions. If those of one are invalid, neither is changed.
    fn set(&self, direction: Direction, changes: &[Change]) -> anyhow::Result<()> {
        let report = self.tunnel.counters();
        let present = Duplex { a_to_b: report.a_to_b.settings, b_to_a: report.b_to_a.settings };
        let mut patches = Vec::new();
        for (end, config, is_changed) in [
            (End::A, &present.a_to_b, direction != Direction::BToA),
            (End::B, &present.b_to_a, direction != Direction::AToB),
        ] {
            if is_changed {
                patches.push((end, LinkPatch::from(change::apply(config, changes)?), LinkPatch::from(config.clone())));
            }
        }
        for (index, (end, patch, _)) in patches.iter().enumerate() {
            if let Err(error) = self.tunnel.set(*end, patch) {
                for (end, _, former) in patches.iter().take(index) {
                    self.tunnel.set(*end, former)?;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let Arguments { profile, link: NameArguments { name }, seed, mtu, .. } = self.arguments;
        let end = |end: End| EndStatus {
            address: end.address().to_string(),
            namespace: namespace_path(name, end).file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        Status {
            name: name.clone(),
            profile: profile.clone(),
            seed: *seed,
            mtu: *mtu,
            process_id: std::process::id(),
            uptime_s: self.since.elapsed().as_secs_f64(),
            a: end(End::A),
            b: end(End::B),
            directions: self.tunnel.counters(),
        }
    }
}
