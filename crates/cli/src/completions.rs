//! `viaduct completions SHELL`

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::output::print_line;

/// Shell of the script.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell. For bash: `viaduct completions bash > ~/.local/share/bash-completion/completions/viaduct`.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "viaduct", &mut script);
    print_line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
