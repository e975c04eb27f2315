//! `viaduct keys new|public FILE`: the keys of encrypted datagrams.

use std::path::PathBuf;
use std::process::ExitCode;

use viaduct_components::net::secure::{PrivateKey, SystemRandom};

use crate::output::print_line;

/// Subcommands of `viaduct keys`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Write a new private key to a file that only its owner can read, and print its public key.
    ///
    /// An existing file is never overwritten.
    New(Arguments),
    /// Print the public key of a private key.
    Public(Arguments),
}

/// The file of a private key.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file: one line of base64. Other users must not have access to it.
    file: PathBuf,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let key = match command {
        Command::New(Arguments { file }) => {
            let key = PrivateKey::generate(&mut SystemRandom::default())?;
            key.write_new(file)?;
            key
        }
        Command::Public(Arguments { file }) => PrivateKey::read(file)?,
    };
    print_line(key.public_key())?;
    Ok(ExitCode::SUCCESS)
}
