//! Rivals of `viaduct bench bus` that are Rust crates, and `ddsperf`. `viaduct-rivals NAME` reads jobs and prints
//! their results, by the line protocol of `rivals/README.md`.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};

mod channels;
mod ddsperf;
mod iceoryx;
mod job;
mod measure;
mod sys;

use iceoryx::Wake;
use job::{Answer, Cores, Hello, Job};
use measure::{DEPTH, Message, between_threads};

/// Function that runs a job.
type Runner = Box<dyn FnMut(&Job) -> Result<Answer>>;

const EVERYWHERE: &[&str] = &["same", "cross", "free"];
const NOT_ON_ONE_CORE: &[&str] = &["cross", "free"];

/// All rivals of this program.
const RIVALS: &[Hello] = &[
    Hello {
        rival: "crossbeam",
        version: "crossbeam-channel 0.5",
        mode: "bounded channel of 16 between two threads, Arc of a reused buffer, blocking recv",
        placements: EVERYWHERE,
    },
    Hello {
        rival: "kanal",
        version: "0.1",
        mode: "bounded channel of 16 between two threads, Arc of a reused buffer, blocking recv, feature std-mutex because its own lock spins",
        placements: EVERYWHERE,
    },
    Hello {
        rival: "flume",
        version: "0.12",
        mode: "bounded channel of 16 between two threads, Arc of a reused buffer, blocking recv",
        placements: EVERYWHERE,
    },
    Hello {
        rival: "thingbuf",
        version: "0.1",
        mode: "blocking mpsc channel of 16 between two threads, Arc of a reused buffer, blocking recv",
        placements: EVERYWHERE,
    },
    Hello {
        rival: "tokio_broadcast",
        version: "tokio 1",
        mode: "broadcast channel of 16 between two threads, Arc of a reused buffer, blocking_recv",
        placements: EVERYWHERE,
    },
    Hello {
        rival: "disruptor",
        version: "4",
        mode: "single producer, ring of 4 between two threads, Arc of a reused buffer, subscriber polls without a pause",
        placements: NOT_ON_ONE_CORE,
    },
    Hello {
        rival: "iceoryx2.event",
        version: "0.10.0",
        mode: "two processes, publish-subscribe of slices with loans, subscriber blocks in a listener",
        placements: EVERYWHERE,
    },
    Hello {
        rival: "iceoryx2.polling",
        version: "0.10.0",
        mode: "two processes, publish-subscribe of slices with loans, subscriber polls without a pause",
        placements: NOT_ON_ONE_CORE,
    },
    Hello {
        rival: "cyclonedds.ddsperf",
        version: "the system's cyclonedds-tools",
        mode: "two processes, ddsperf ping and pong over UDP on the loopback device, reliable, listeners; ping fills its message once",
        placements: EVERYWHERE,
    },
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || format!("usage: viaduct-rivals NAME, one of {}", names().join(", "));
    let name = arguments.next().with_context(usage)?;
    if arguments.next().as_deref() == Some(iceoryx::SUBSCRIBER) {
        let owner =
            arguments.next().and_then(|owner| owner.parse().ok()).context("the child needs its owner's process ID")?;
        return iceoryx::subscriber(wake(&name), owner, std::io::stdin().lines());
    }
    let hello = RIVALS.iter().find(|hello| hello.rival == name).with_context(usage)?;
    print(hello)?;
    if name.starts_with("iceoryx2.") {
        let mut rival = iceoryx::Rival::start(&name, wake(&name))?;
        let served = serve(|job| rival.run(job));
        rival.end();
        return served;
    }
    serve(runner(hello))
}

fn names() -> Vec<&'static str> {
    RIVALS.iter().map(|hello| hello.rival).collect()
}

fn wake(name: &str) -> Wake {
    if name == "iceoryx2.polling" { Wake::Polling } else { Wake::Event }
}

/// Returns the runner of a rival without a permanent second process.
fn runner(hello: &Hello) -> Runner {
    let samples = |samples: Result<job::Samples>| samples.map(Answer::Samples);
    match hello.rival {
        "crossbeam" => {
            Box::new(move |job| samples(between_threads(job, || crossbeam_channel::bounded::<Message>(DEPTH))))
        }
        "kanal" => Box::new(move |job| samples(between_threads(job, || kanal::bounded::<Message>(DEPTH)))),
        "flume" => Box::new(move |job| samples(between_threads(job, || flume::bounded::<Message>(DEPTH)))),
        "thingbuf" => Box::new(move |job| {
            samples(between_threads(job, || thingbuf::mpsc::blocking::channel::<Option<Message>>(DEPTH)))
        }),
        "tokio_broadcast" => {
            Box::new(move |job| samples(between_threads(job, || tokio::sync::broadcast::channel::<Message>(DEPTH))))
        }
        "disruptor" => Box::new(move |job| match job.cores {
            Cores::Same => Ok(Answer::unsupported("a polling subscriber never releases its core to the publisher")),
            Cores::Cross | Cores::Free => samples(between_threads(job, channels::disruptor)),
        }),
        _ => Box::new(ddsperf::run),
    }
}

/// Answers each line of the input until it ends.
fn serve(mut run: impl FnMut(&Job) -> Result<Answer>) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = answer(&line, &mut run).unwrap_or_else(|cause| Answer::Error { error: format!("{cause:#}") });
        print(&answer)?;
    }
    Ok(())
}

fn answer(line: &str, run: &mut impl FnMut(&Job) -> Result<Answer>) -> Result<Answer> {
    let job: Job = serde_json::from_str(line).context("invalid job")?;
    anyhow::ensure!(job.size >= 8 && job.samples > 0, "a job needs a size of at least 8 bytes and at least 1 sample");
    if job.subscribers != 1 {
        return Ok(Answer::unsupported("one subscriber only"));
    }
    run(&job)
}

fn print(line: &impl serde::Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
