//! Measures one cell: starts a program at each end of a link.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::cell::Cell;
use super::job::{Answer, Arrived, Instruction, Job, Ready, Role, Sent, Transport};
use super::keys::KeyFolder;
use super::network::{LinkState, Network};
use super::outcome::Outcome;
use super::{END_COMMAND, Options};
use crate::error::BenchError;
use crate::process::Process;

/// Path of the program for Cyclone DDS below the folder of rivals.
const CYCLONE_PROGRAM: &str = "bin/cyclonedds_drive";
/// Time limit for an end to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for the sender in addition to twice the time of its frames.
const SLACK: Duration = Duration::from_secs(30);

/// Measures a cell. A system that is missing or fails has an outcome with the reason.
///
/// # Errors
/// The link cannot be emulated.
pub(super) fn measure(cell: &Cell, options: &Options, seed: u64) -> Result<Outcome, BenchError> {
    let network = Network::up(cell.link, seed)?;
    let keys = cell.subject.is_ours().then(KeyFolder::create).transpose()?;
    let job = Job {
        sender: network.address(Role::Sender),
        receiver: network.address(Role::Receiver),
        keys: keys.as_ref().map(KeyFolder::keys),
        ..cell.job(options)
    };
    let outcome = Ends { network: &network, options, job: &job }.measure().unwrap_or_else(Outcome::refused);
    let LinkState { lateness_us, queue_drops } = network.state();
    Ok(Outcome { lateness_us: Some(lateness_us), queue_drops: Some(queue_drops), ..outcome })
}

/// The two programs of a cell.
struct Ends<'a> {
    network: &'a Network,
    options: &'a Options,
    job: &'a Job,
}

impl Ends<'_> {
    fn measure(&self) -> Result<Outcome, String> {
        let (mut receiver, ready) = self.start(Role::Receiver)?;
        let (mut sender, _) = self.start(Role::Sender)?;
        sender.send(&Instruction::Start)?;
        let sending = self.job.period() * self.job.all_frames();
        let sent = sent(answer(&mut sender, SLACK + sending * 2)?)?;
        receiver.send(&Instruction::Stop)?;
        let arrived = arrived(answer(&mut receiver, SLACK + self.job.drain())?)?;
        drop((sender, receiver));
        let version = [ready.version, ready.mode].join("; ").trim_matches([';', ' ']).to_owned();
        Ok(Outcome { version, ..Outcome::of(&sent, &arrived, self.job.frames) })
    }

    /// Starts the program of an end, and waits until it is ready.
    fn start(&self, role: Role) -> Result<(Process, Ready), String> {
        let mut process = Process::spawn(&mut self.command(role)?)?;
        process.send(&Job { role, ..self.job.clone() })?;
        match answer(&mut process, READY_TIMEOUT)? {
            Answer::Ready(ready) => Ok((process, ready)),
            other => Err(unexpected(&other)),
        }
    }

    fn command(&self, role: Role) -> Result<Command, String> {
        if self.job.transport != Transport::Cyclonedds {
            let program = self.options.program.clone().map_or_else(std::env::current_exe, Ok);
            let program = program.map_err(|cause| format!("cannot find this program: {cause}"))?;
            let mut command = self.network.command(role, program);
            command.args(END_COMMAND);
            return Ok(command);
        }
        let folder = self.options.rivals.as_deref().unwrap_or_else(|| Path::new("rivals"));
        let program = folder.join(CYCLONE_PROGRAM);
        if !program.is_file() {
            return Err(format!("the program `{}` does not exist; `make rivals` builds it", program.display()));
        }
        let program = std::path::absolute(program).map_err(|cause| cause.to_string())?;
        Ok(self.network.command(role, program))
    }
}

fn answer(process: &mut Process, timeout: Duration) -> Result<Answer, String> {
    let line = process.next_line(timeout)?;
    match serde_json::from_str(&line).map_err(|problem| format!("invalid answer: {problem}"))? {
        Answer::Error(why) => Err(why),
        answer => Ok(answer),
    }
}

fn sent(answer: Answer) -> Result<Sent, String> {
    if let Answer::Sent(sent) = answer { Ok(sent) } else { Err(unexpected(&answer)) }
}

fn arrived(answer: Answer) -> Result<Arrived, String> {
    if let Answer::Arrived(arrived) = answer { Ok(arrived) } else { Err(unexpected(&answer)) }
}

fn unexpected(answer: &Answer) -> String {
    let mut text = format!("unexpected answer: {answer:?}");
    text.truncate(200);
    text
}
