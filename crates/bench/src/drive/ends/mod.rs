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
            // Frames under way, and those in the sender's queues, are sent until the receiver has finished.
            wait_for_end(input);
            drop(sender);
        }
        Role::Receiver => {
            let receiver = open_receiver(&job)?;
            write(output, &ready).map_err(&answered)?;
            expect(input, Instruction::Stop)?;
            let arrived = receiver.finish(&job)?;
            write(output, &Answer::Arrived(arrived)).map_err(&answered)?;
        }
    }
    Ok(())
}

/// Waits until the input ends.
fn wait_for_end(input: &mut impl BufRead) {
    let mut rest = String::new();
    while input.read_line(&mut rest).is_ok_and(|octets| octets > 0) {
        rest.clear();
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{BufReader, PipeReader, PipeWriter};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// An end in a thread of this process, with the lines that a process has.
    struct End {
        input: PipeWriter,
        output: BufReader<PipeReader>,
        thread: JoinHandle<()>,
    }

    impl End {
        fn start(job: &Job) -> Self {
            let ((theirs, input), (output, answers)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
            let thread = std::thread::spawn(move || run(BufReader::new(theirs), answers).unwrap());
            let mut end = Self { input, output: BufReader::new(output), thread };
            end.ask(job);
            end
        }

        fn ask(&mut self, line: &impl serde::Serialize) {
            writeln!(self.input, "{}", serde_json::to_string(line).unwrap()).unwrap();
        }

        fn answer(&mut self) -> Answer {
            read(&mut self.output).unwrap()
        }
    }

    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    /// Runs both ends over the loopback interface. Returns the number of frames of each camera.
    fn run_both(job: Job) -> BTreeMap<u8, Vec<u32>> {
        let _alone = crate::measurement_lock();
        let job = Job { port: free_port(), warm_up: 2, period_ns: 20_000_000, ..job };
        let mut receiver = End::start(&Job { role: Role::Receiver, ..job.clone() });
        assert_eq!(receiver.answer(), Answer::Ready(Ready::default()));
        let mut sender = End::start(&job);
        assert_eq!(sender.answer(), Answer::Ready(Ready::default()));
        sender.ask(&Instruction::Start);
        let Answer::Sent(sent) = sender.answer() else { panic!("the sender has not sent") };
        assert_eq!(sent.first, vec![2; usize::from(job.cameras)]);
        receiver.ask(&Instruction::Stop);
        let Answer::Arrived(arrived) = receiver.answer() else { panic!("the receiver has no frames") };
        for end in [sender, receiver] {
            drop(end.input);
            end.thread.join().unwrap();
        }
        let mut frames = BTreeMap::<u8, Vec<u32>>::new();
        for (camera, number, latency_ns) in arrived.frames {
            assert!(latency_ns < 10_000_000_000, "{latency_ns}");
            frames.entry(camera).or_default().push(number);
        }
        frames
    }

    #[test]
    fn each_baseline_carries_the_frames_of_each_camera() {
        for (transport, variant) in [
            (Transport::BestEffort, None),
            (Transport::Tcp, None),
            (Transport::Mqtt, Some("0")),
            (Transport::Mqtt, Some("1")),
        ] {
            let variant = variant.map(str::to_owned);
            let frames = run_both(Job { variant, size: 20_000, ..Job::new(transport, 2, 3) });
            assert_eq!(frames.keys().copied().collect::<Vec<_>>(), [0, 1], "{transport:?}");
            // A busy machine may replace a frame by the next one, but never changes their order.
            let ordered = frames.values().all(|numbers| numbers.is_sorted() && numbers.last() == Some(&4));
            assert!(ordered, "{transport:?}: {frames:?}");
        }
    }

    #[test]
    fn a_wrong_job_and_a_wrong_instruction_are_answers() {
        for line in ["{}", "", "[1, 2]"] {
            let mut output = Vec::new();
            run(BufReader::new(line.as_bytes()), &mut output).unwrap();
            let answer: Answer = serde_json::from_slice(&output).unwrap();
            assert!(matches!(answer, Answer::Error(_)), "{line}: {answer:?}");
        }
        let job = Job { port: free_port(), ..Job::new(Transport::BestEffort, 1, 1) };
        let lines = format!("{}\n\"stop\"\n", serde_json::to_string(&job).unwrap());
        let mut output = Vec::new();
        run(BufReader::new(lines.as_bytes()), &mut output).unwrap();
        let last = output.split(|octet| *octet == b'\n').rfind(|line| !line.is_empty()).unwrap();
        let Answer::Error(why) = serde_json::from_slice(last).unwrap() else { panic!("no error") };
        assert!(why.contains("Stop in place of Start"), "{why}");
    }
}
