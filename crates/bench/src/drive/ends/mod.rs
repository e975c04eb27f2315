//! The programs at the two ends of the link. The bench starts its own executable once for each end of a cell.

mod arrivals;
mod best_effort;
mod mqtt;
mod paced;
mod page;
mod tcp;
mod viaduct;

use std::io::{BufRead, Write};

use serde::de::DeserializeOwned;

use super::job::{Answer, Arrived, Instruction, Job, Ready, Role, Sent, Transport};
use crate::error::BenchError;

/// A connected sender. It sends its frames when it is asked to.
trait Sender {
    /// Sends all frames. Returns when the last one that counts is sent.
    fn send(&mut self, job: &Job) -> Result<Sent, BenchError>;
}

/// A receiver that listens.
trait Receiver {
    /// Waits for frames that are under way, and returns those that arrived.
    fn finish(self: Box<Self>, job: &Job) -> Result<Arrived, BenchError>;
}

/// Runs one end: reads a job and instructions, writes answers, and ends with its input. A failure is an answer, too.
///
/// # Errors
/// The output cannot be written.
pub(super) fn run(mut input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    if let Err(error) = serve(&mut input, &mut output) {
        write(&mut output, &Answer::Error(error.to_string()))?;
    }
    Ok(())
}

fn serve(input: &mut impl BufRead, output: &mut impl Write) -> Result<(), BenchError> {
    let job: Job = read(input)?;
    let answered = BenchError::system("cannot answer the bench");
    let ready = Answer::Ready(Ready::default());
    match job.role {
        Role::Sender => {
            let mut sender = open_sender(&job)?;
            write(output, &ready).map_err(&answered)?;
            expect(input, Instruction::Start)?;
            let sent = sender.send(&job)?;
            write(output, &Answer::Sent(sent)).map_err(&answered)?;
        }
        Role::Receiver => {
            let receiver = open_receiver(&job)?;
            write(output, &ready).map_err(&answered)?;
            expect(input, Instruction::Stop)?;
            let arrived = receiver.finish(&job)?;
            write(output, &Answer::Arrived(arrived)).map_err(&answered)?;
            return Ok(());
        }
    }
    // Data in the sender's queues is sent until the receiver has finished.
    let mut rest = String::new();
    while input.read_line(&mut rest).is_ok_and(|octets| octets > 0) {
        rest.clear();
    }
    Ok(())
}

fn open_sender(job: &Job) -> Result<Box<dyn Sender>, BenchError> {
    Ok(match job.transport {
        Transport::Viaduct => Box::new(viaduct::Vehicle::open(job)?),
        Transport::BestEffort => Box::new(best_effort::open_sender(job)?),
        Transport::Tcp => Box::new(tcp::open_sender(job)?),
        Transport::Mqtt => Box::new(mqtt::open_sender(job)?),
        Transport::Cyclonedds => return Err(not_here()),
    })
}

fn open_receiver(job: &Job) -> Result<Box<dyn Receiver>, BenchError> {
    Ok(match job.transport {
        Transport::Viaduct => Box::new(viaduct::DriversDesk::open(job)?),
        Transport::BestEffort => Box::new(best_effort::open_receiver(job)?),
        Transport::Tcp => Box::new(tcp::open_receiver(job)?),
        Transport::Mqtt => Box::new(mqtt::open_receiver(job)?),
        Transport::Cyclonedds => return Err(not_here()),
    })
}

fn not_here() -> BenchError {
    BenchError::broken("cannot run the job", "Cyclone DDS is a program of its own")
}

fn expect(input: &mut impl BufRead, expected: Instruction) -> Result<(), BenchError> {
    let instruction: Instruction = read(input)?;
    if instruction == expected {
        return Ok(());
    }
    Err(BenchError::broken("unexpected instruction", &format!("{instruction:?} in place of {expected:?}")))
}

fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> Result<T, BenchError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(BenchError::system("cannot read a line of the bench"))?;
    serde_json::from_str(&line).map_err(BenchError::part("cannot read a line of the bench"))
}

fn write(output: &mut impl Write, answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
