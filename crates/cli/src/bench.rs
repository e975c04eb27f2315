//! `viaduct bench NAME`
use std::process::ExitCode;
#[derive(clap::Args)]
pub(crate) struct Arguments {}
pub(crate) fn run(_arguments: &Arguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("x")
}
