//! iceoryx2 between two processes: this one publishes, a child of the same binary subscribes. Publish-subscribe of
//! slices with the loan interface carries the data; the subscriber polls, or an event service wakes it. The child
//! receives one line per job, prints `ready` when it is subscribed, and answers an empty line with its results. If it
//! fails, it prints the error in place of the expected line.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use iceoryx2::node::Node;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{Config, FileName, NodeBuilder, Path, SemanticString, SignalHandlingMode, ipc};
use iceoryx2::sample_mut::SampleMut;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use serde::{Deserialize, Serialize};

use crate::job::{Answer, Cores, Job, Measure};
use crate::measure::{self, Published, Source, Stamp, take};
use crate::sys::{self, Side};

/// Capacity of a subscriber's buffer in samples. It is small, so that the warm-up uses all of the memory.
const DEPTH: usize = 8;

/// Time limit for the last messages to arrive.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Number of a publisher's chunks: a full buffer, one being read, one being filled, and a reserve.
const CHUNKS: usize = DEPTH + 8;

/// Folder of the library's files, with a subfolder for each publisher's process.
const FOLDERS: &str = "/tmp";

/// Folder of the kernel's shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Prefix of the names of folders and shared memory; the publisher's process ID and an underscore follow.
const PREFIX: &str = "viaduct_rivals_";

/// Method by which the subscriber waits for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Blocks in a listener until the publisher notifies.
    Event,
    /// Polls without a pause.
    Polling,
}

/// A loaned message.
type Sample = SampleMut<ipc::Service, [u8], ()>;

/// Order for the child.
#[derive(Debug, Deserialize, Serialize)]
struct Order {
    job: Job,
    /// Prefix of the names of the job's services.
    services: String,
}

/// Results of the child.
#[derive(Debug, Deserialize, Serialize)]
struct Taken {
    latencies_ns: Vec<u64>,
    page_faults: u64,
}

/// State of the publisher's process, with its child.
pub struct Rival {
    wake: Wake,
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    jobs: usize,
}

impl Rival {
    /// Starts the child.
    pub fn start(name: &str, wake: Wake) -> Result<Self> {
        remove_files(|owner| !std::path::Path::new(&format!("/proc/{owner}")).exists());
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .args([name, SUBSCRIBER, &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the subscriber's process")?;
        let orders = child.stdin.take().context("the subscriber has no input")?;
        let answers = BufReader::new(child.stdout.take().context("the subscriber has no output")?).lines();
        Ok(Self { wake, child, orders, answers, jobs: 0 })
    }

    /// Runs a job.
    pub fn run(&mut self, job: &Job) -> Result<Answer> {
        if self.wake == Wake::Polling && job.cores == Cores::Same {
            return Ok(Answer::unsupported("a polling subscriber never releases its core to the publisher"));
        }
        self.jobs += 1;
        let services = format!("job/{}", self.jobs);
        let order = serde_json::to_string(&Order { job: job.clone(), services: services.clone() })?;
        self.send_line(&order)?;
        let answer = self.receive()?;
        if answer != "ready" {
            self.send_line("")?;
            bail!("the subscriber {answer}");
        }
        let (wake, for_writer) = (self.wake, job.clone());
        let published = measure::join(measure::spawn("publisher", move || write(&for_writer, wake, &services))?)?;
        self.send_line("")?;
        let taken: Taken = {
            let answer = self.receive()?;
            serde_json::from_str(&answer).with_context(|| format!("the subscriber {answer}"))?
        };
        let mut samples = measure::samples(job, published?, taken.latencies_ns);
        samples.page_faults += taken.page_faults;
        Ok(Answer::Samples(samples))
    }

    fn send_line(&mut self, line: &str) -> Result<()> {
        writeln!(self.orders, "{line}").context("the subscriber is gone")
    }

    fn receive(&mut self) -> Result<String> {
        Ok(self.answers.next().context("the subscriber is gone")??)
    }

    /// Ends the child and removes the library's remaining files.
    pub fn end(self) {
        let Self { mut child, orders, .. } = self;
        drop(orders);
        if child.wait().is_ok() {
            remove_files(|owner| owner == std::process::id());
        }
    }
}

/// Removes the folders and the shared memory of publishers' processes that match.
fn remove_files(owned_by: impl Fn(u32) -> bool) {
    let entries = [FOLDERS, SHARED_MEMORY].map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('_').next()?.parse().ok());
        if owner.is_some_and(&owned_by) {
            let path = entry.path();
            let _gone = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }
}

/// Argument that starts this binary as the child.
pub const SUBSCRIBER: &str = "--subscriber";

/// Runs the child of the publisher's process `owner`.
pub fn subscriber(wake: Wake, owner: u32, mut orders: impl Iterator<Item = std::io::Result<String>>) -> Result<()> {
    while let Some(line) = orders.next() {
        let order: Arc<Order> = Arc::new(serde_json::from_str(&line?)?);
        let over = Arc::new(AtomicBool::new(false));
        let (its_order, its_over) = (order.clone(), over.clone());
        let reader = measure::spawn("subscriber", move || {
            read(&its_order, wake, owner, &its_over).inspect_err(|cause| say(&format!("failed: {cause:#}")))
        })?;
        let _empty = orders.next();
        wait(&reader);
        over.store(true, Ordering::Release);
        if wake == Wake::Event && !reader.is_finished() {
            let node = node(owner)?;
            Ports { node: &node, services: &order.services }.notifier("there")?.notify()?;
        }
        if let Ok(taken) = measure::join(reader)? {
            say(&serde_json::to_string(&taken)?);
        }
    }
    Ok(())
}

/// Waits for the last messages.
fn wait(reader: &std::thread::JoinHandle<Result<Taken>>) {
    let deadline = sys::now_ns() + TIMEOUT.as_nanos() as u64;
    while !reader.is_finished() && sys::now_ns() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn say(line: &str) {
    println!("{line}");
}

/// Creates a node whose files belong to the publisher's process `owner`.
fn node(owner: u32) -> Result<Node<ipc::Service>> {
    iceoryx2::prelude::set_log_level(iceoryx2::prelude::LogLevel::Error);
    let mut config = Config::default();
    let prefix = format!("{PREFIX}{owner}_");
    let root = format!("{FOLDERS}/{prefix}");
    config.global.set_root_path(&Path::new(root.as_bytes()).map_err(|cause| anyhow!("{cause:?}"))?);
    config.global.prefix = FileName::new(prefix.as_bytes()).map_err(|cause| anyhow!("{cause:?}"))?;
    let builder = NodeBuilder::new().config(&config).signal_handling_mode(SignalHandlingMode::Disabled);
    builder.create().context("cannot create the node")
}

/// Factory of a job's ports.
struct Ports<'a> {
    node: &'a Node<ipc::Service>,
    services: &'a str,
}

impl Ports<'_> {
    fn publisher(&self, way: &str, job: &Job) -> Result<Publisher<ipc::Service, [u8], ()>> {
        let topic = self.data(way)?;
        let builder = topic.publisher_builder().initial_max_slice_len(job.size).max_loaned_samples(CHUNKS);
        let publisher = builder.override_sample_preallocation(|_| CHUNKS).create();
        publisher.context("cannot create the publisher")
    }

    fn subscriber(&self, way: &str) -> Result<Subscriber<ipc::Service, [u8], ()>> {
        self.data(way)?.subscriber_builder().create().context("cannot create the subscriber")
    }

    fn data(&self, way: &str) -> Result<publish_subscribe::PortFactory<ipc::Service, [u8], ()>> {
        let name = format!("{}/{way}", self.services);
        let builder = self.node.service_builder(&name.as_str().try_into()?).publish_subscribe::<[u8]>();
        builder
            .subscriber_max_buffer_size(DEPTH)
            .subscriber_max_borrowed_samples(1)
            .history_size(0)
            .open_or_create()
            .context("cannot open the topic")
    }

    fn event(&self, way: &str) -> Result<event::PortFactory<ipc::Service>> {
        let name = format!("{}/{way}", self.services);
        self.node.service_builder(&name.as_str().try_into()?).event().open_or_create().context("cannot open the event")
    }

    fn notifier(&self, way: &str) -> Result<Notifier<ipc::Service>> {
        self.event(way)?.notifier_builder().create().context("cannot create the notifier")
    }

    fn listener(&self, way: &str) -> Result<Listener<ipc::Service>> {
        self.event(way)?.listener_builder().create().context("cannot create the listener")
    }
}

/// The publishing end of a topic.
struct Outlet {
    publisher: Publisher<ipc::Service, [u8], ()>,
    notifier: Option<Notifier<ipc::Service>>,
}

impl Outlet {
    fn open(ports: &Ports<'_>, way: &str, wake: Wake, job: &Job) -> Result<Self> {
        let notifier = (wake == Wake::Event).then(|| ports.notifier(way)).transpose()?;
        let outlet = Self { publisher: ports.publisher(way, job)?, notifier };
        outlet.touch_all(job.size)?;
        Ok(outlet)
    }

    /// Writes to all of the memory once, so that no page fault occurs later.
    fn touch_all(&self, size: usize) -> Result<()> {
        let content = vec![0_u8; size];
        let all: Result<Vec<Sample>> = (0..CHUNKS).map(|_| self.filled(&content)).collect();
        all.map(drop)
    }

    /// Loans a message and fills it with the content.
    fn filled(&self, content: &[u8]) -> Result<Sample> {
        let sample = self.publisher.loan_slice_uninit(content.len()).context("cannot loan a buffer")?;
        Ok(sample.write_from_slice(content))
    }

    /// Loans a message without filling it.
    fn unfilled(&self, size: usize) -> Result<Sample> {
        Ok(sys::as_it_is(self.publisher.loan_slice_uninit(size).context("cannot loan a buffer")?))
    }

    fn send(&self, mut sample: Sample, stamp: u64) -> Result<()> {
        measure::write_stamp(sample.payload_mut(), stamp);
        sample.send().context("cannot send")?;
        if let Some(notifier) = &self.notifier {
            notifier.notify().context("cannot notify")?;
        }
        Ok(())
    }
}

/// The subscribing end of a topic.
struct Inlet {
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    listener: Option<Listener<ipc::Service>>,
}

impl Inlet {
    fn open(ports: &Ports<'_>, way: &str, wake: Wake) -> Result<Self> {
        let listener = (wake == Wake::Event).then(|| ports.listener(way)).transpose()?;
        Ok(Self { subscriber: ports.subscriber(way)?, listener })
    }

    /// Waits for a message and passes its bytes to `got`. Returns `false` when `over` is set.
    fn recv(&self, over: &AtomicBool, mut got: impl FnMut(&[u8])) -> Result<bool> {
        loop {
            if let Some(sample) = self.subscriber.receive().context("cannot receive")? {
                got(sample.payload());
                return Ok(true);
            }
            if over.load(Ordering::Acquire) {
                return Ok(false);
            }
            match &self.listener {
                Some(listener) => _ = listener.blocking_wait(|_| {}).context("cannot wait")?,
                None => std::hint::spin_loop(),
            }
        }
    }
}

/// Runs the publisher's thread.
fn write(job: &Job, wake: Wake, services: &str) -> Result<Published> {
    let node = node(std::process::id())?;
    let ports = Ports { node: &node, services };
    let answers = (job.measure == Measure::Rtt).then(|| Inlet::open(&ports, "back", wake)).transpose()?;
    let mut writer = Writer { there: Outlet::open(&ports, "there", wake, job)?, answers, size: job.size };
    measure::publish(job, &mut writer, wake == Wake::Polling)
}

/// The publisher's ends of the forward topic and, for round trips, of the return topic.
struct Writer {
    there: Outlet,
    answers: Option<Inlet>,
    /// Size of a message in bytes.
    size: usize,
}

impl Source for Writer {
    type Loan = Sample;

    fn lend(&mut self) -> Result<Sample> {
        self.there.unfilled(self.size)
    }

    fn octets<'a>(&'a mut self, sample: &'a mut Sample) -> Result<&'a mut [u8]> {
        Ok(sample.payload_mut())
    }

    fn send(&mut self, sample: Sample, stamp: Stamp) -> Result<Option<u64>> {
        self.there.send(sample, stamp.read())?;
        let mut round_trip = None;
        if let Some(answers) = &self.answers {
            answers.recv(&AtomicBool::new(false), |octets| round_trip = take(octets))?;
        }
        Ok(round_trip)
    }
}

/// Runs the subscriber's thread until the last message or until `over` is set.
fn read(order: &Order, wake: Wake, owner: u32, over: &AtomicBool) -> Result<Taken> {
    let Order { job, services } = order;
    let node = node(owner)?;
    let ports = Ports { node: &node, services };
    let taking = Inlet::open(&ports, "there", wake)?;
    let back = (job.measure == Measure::Rtt).then(|| Outlet::open(&ports, "back", wake, job)).transpose()?;
    let mut taken = Taken { latencies_ns: sys::prefaulted(job.samples), page_faults: sys::page_faults() };
    sys::place(job, Side::Subscriber).context("cannot place the subscriber")?;
    say("ready");
    while taken.latencies_ns.len() < job.samples {
        let mut stamp = 0;
        let got = taking.recv(over, |octets| {
            taken.latencies_ns.extend(take(octets));
            stamp = measure::read_stamp(octets);
            if stamp == 0 {
                taken.page_faults = sys::page_faults();
            }
        })?;
        if !got {
            break;
        }
        if let Some(back) = &back {
            back.send(back.unfilled(job.size)?, stamp)?;
        }
    }
    taken.page_faults = sys::page_faults() - taken.page_faults;
    Ok(taken)
}
