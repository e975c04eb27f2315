//! The program that runs one of Viaduct's nodes. The bench starts its own executable at an end of the link.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use viaduct_bus::{Qos, Recv, UntypedSubscriber, clock};
use viaduct_node::Node;

use super::job::{HopFigures, NodeJob, Ready, Received, Reply, Watch, Watched};
use super::use_case;
use crate::error::BenchError;
use crate::nodes::{runtime, start};

/// Messages that wait for the bench.
const DEPTH: usize = 16;
/// Time without a message after which the bench does not wait for more.
const SILENCE: Duration = Duration::from_secs(5);

/// Runs a node: reads a job, and then answers each line with a report. Ends with its input. A failure is an answer, too.
///
/// # Errors
/// The output cannot be written.
pub(super) fn run(mut input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    if let Err(error) = serve(&mut input, &mut output) {
        write(&mut output, &Reply::Error(error.to_string()))?;
    }
    Ok(())
}

fn serve(input: &mut impl BufRead, output: &mut impl Write) -> Result<(), BenchError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(BenchError::system("cannot read a line of the bench"))?;
    let job: NodeJob = serde_json::from_str(&line).map_err(BenchError::part("cannot read a line of the bench"))?;
    let runtime = runtime()?;
    let node = start("bench.yaml", &job.config, &runtime)?;
    let received = job.watch.map(|job| watch(&node, job)).transpose()?;
    let answered = BenchError::system("cannot answer the bench");
    write(output, &Reply::Ready(Ready::default())).map_err(&answered)?;
    let mut lines = input.lines();
    while let Some(Ok(_)) = lines.next() {
        // The thread sends once, or ends with the node.
        let received = received.as_ref().and_then(|received| received.recv().ok()).unwrap_or_default();
        write(output, &Reply::Node { hops: hops(&node), received }).map_err(&answered)?;
    }
    node.stop();
    Ok(())
}

/// Receives messages of a topic on a thread of its own. They arrive when all are received or no more arrive.
fn watch(node: &Node, job: Watch) -> Result<Receiver<Received>, BenchError> {
    let opened = node.bus().subscribe_untyped(&job.topic, Qos::keep_last(DEPTH), "bench");
    let samples = opened.map_err(BenchError::part("cannot subscribe to a topic of a node"))?;
    let (sender, receiver) = sync_channel(1);
    crate::floor::spawn("bench-watch", move || {
        // The bench may have ended.
        let _ = sender.send(receive(&samples, &job));
    })?;
    Ok(receiver)
}

fn receive(samples: &UntypedSubscriber, job: &Watch) -> Received {
    let mut received = Received::default();
    let mut count = 0;
    while count < job.count {
        let Recv::Sample(sample) = samples.recv_timeout(SILENCE) else { if count == 0 { continue } else { break } };
        match job.content {
            Watched::Age => received.ages.push(clock::tai().since(sample.meta().origin).as_nanos() as u64),
            Watched::Trip => received.trips.extend(sample.typed().ok().as_ref().map(use_case::trip)),
        }
        count += 1;
    }
    received
}

fn hops(node: &Node) -> Vec<HopFigures> {
    let hops = node.bus().snapshot().hops;
    hops.into_iter().map(|hop| HopFigures::new(hop.from, hop.to, &hop.total)).collect()
}

fn write(output: &mut impl Write, reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
