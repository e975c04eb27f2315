//! `viaduct link`: an emulated link between two network namespaces.
//!
//! `viaduct link up` owns the link. The other commands ask it over a Unix socket ([`control`]), except for `exec`, which needs only the
//! name of the namespace.

mod change;
mod control;
mod show;
mod up;

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use viaduct_components::link::{self, End, LinkError, check_name, remove_namespaces};

use self::change::Change;
use self::control::{Answer, Direction, Request};
use crate::output::{print_line, print_note};

/// The kernel refuses to change the namespace (errno(3)). A program that must not be run is EACCES.
const EPERM: i32 = 1;

/// Subcommands of `viaduct link`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create two network namespaces with an emulated link between them, until SIGINT, SIGTERM or `viaduct link down`. Needs root.
    Up(up::Arguments),
    /// Run a program in the namespace of one end: `viaduct link exec a -- ping 10.77.0.2`.
    ///
    /// The exit code is that of the program.
    Exec(ExecArguments),
    /// Print settings, counters and the lateness of the emulator.
    Show(ShowArguments),
    /// Change settings while the link is up: `viaduct link set a-to-b delay.base_ms=50 loss.independent=0.01`.
    Set(SetArguments),
    /// Remove a link, also one whose process was killed.
    Down(NameArguments),
}

/// The name of a link.
#[derive(clap::Args)]
pub(crate) struct NameArguments {
    /// Name of the link: 1 to 32 of the characters a-z, 0-9, `-` and `_`.
    #[arg(long, default_value = "viaduct", value_parser = parse_name)]
    name: String,
}

/// A program in a namespace.
#[derive(clap::Args)]
pub(crate) struct ExecArguments {
    #[command(flatten)]
    link: NameArguments,
    /// The end: `a` has the address 10.77.0.1, `b` has 10.77.0.2.
    #[arg(value_parser = ["a", "b"])]
    end: String,
    /// Program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Output of `show`.
#[derive(clap::Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    link: NameArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Changes of a link.
#[derive(clap::Args)]
pub(crate) struct SetArguments {
    #[command(flatten)]
    link: NameArguments,
    /// `a-to-b`, `b-to-a` or `both`; without it, both. Then settings, each as KEY=VALUE with the keys of a config file joined by dots
    /// and a value in YAML.
    #[arg(required = true, value_name = "[DIRECTION] KEY=VALUE")]
    changes: Vec<String>,
}

fn parse_name(name: &str) -> Result<String, LinkError> {
    check_name(name).map(|()| name.to_owned())
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(arguments) => return up::run(arguments),
        Command::Exec(arguments) => return exec(arguments),
        Command::Show(arguments) => show(arguments)?,
        Command::Set(arguments) => set(arguments)?,
        Command::Down(arguments) => down(&arguments.name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn exec(arguments: &ExecArguments) -> anyhow::Result<ExitCode> {
    let ExecArguments { link: NameArguments { name }, end, command } = arguments;
    let Some((program, rest)) = command.split_first() else { bail!("no command") };
    let end = if end == "a" { End::A } else { End::B };
    let mut command = link::command_in(name, end, program)?;
    // Replaces this process, so that signals and the exit code are those of the program. Returns only if that fails.
    let failed = command.args(rest).exec();
    if failed.raw_os_error() == Some(EPERM) {
        return Err(LinkError::NotPermitted.into());
    }
    Err(failed).with_context(|| format!("cannot run {}", program.display()))
}

fn show(arguments: &ShowArguments) -> anyhow::Result<()> {
    let status = match control::ask(&arguments.link.name, &Request::Show)? {
        Answer::Status(status) => status,
        other => bail!("unexpected answer of the link: {other:?}"),
    };
    if arguments.json { print_line(serde_json::to_string_pretty(&status)?) } else { print_line(show::text(&status)?) }
}

fn set(arguments: &SetArguments) -> anyhow::Result<()> {
    let (direction, changes) = match arguments.changes.split_first() {
        Some((first, rest)) if !first.contains('=') => (Direction::parse(first)?, rest),
        _ => (Direction::Both, arguments.changes.as_slice()),
    };
    if changes.is_empty() {
        return Err(change::refused("no setting: expected KEY=VALUE, for example `delay.base_ms=50`".to_owned()));
    }
    let changes = changes.iter().map(|text| Change::parse(text)).collect::<Result<_, _>>()?;
    match control::ask(&arguments.link.name, &Request::Set { direction, changes })? {
        Answer::Done => Ok(()),
        other => bail!("unexpected answer of the link: {other:?}"),
    }
}

fn down(name: &str) -> anyhow::Result<()> {
    match control::ask(name, &Request::Down) {
        Ok(_) => Ok(()),
        Err(error) if error.is::<control::NotUp>() => {
            let removed = remove_namespaces(name)?;
            if !removed && !control::remove_socket(name) {
                return Err(error);
            }
            print_note(format_args!("viaduct: removed what a killed process has left of link {name}"));
            Ok(())
        }
        Err(error) => Err(error),
    }
}
