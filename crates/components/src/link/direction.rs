//! The thread that emulates one direction.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use tun_rs::SyncDevice;
use viaduct_bus::clock;
use viaduct_netem::{Link, LinkConfig, LinkSettings};
use viaduct_units::Mono;

use super::report::{DirectionReport, Outside};
use super::settings::resolve_direction;
use super::{LatenessHistogram, LinkError, sys};

/// Packets read, and packets written, before the other is done.
const BATCH_PACKETS_MAX: usize = 16;
/// The kernel wakes a thread some microseconds after its timer. For this time the thread waits without sleeping.
const SPIN: Duration = Duration::from_micros(20);
/// Sleep between packets that follow each other so fast that the thread would wait for each of them without sleeping. It leaves
/// the processor to the programs at the ends; a network card collects packets for as long before its interrupt.
const NAP: Duration = Duration::from_micros(50);
/// Pause of the thread for a call from outside.
const YIELD: Duration = Duration::from_micros(20);
/// Size of an allocation for packets, which are slices of it.
const CHUNK_OCTETS: usize = 256 << 10;

/// One direction of an emulated link, and its thread. The thread ends when this value is dropped.
pub(super) struct Direction {
    name: &'static str,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that the thread shares with its owner.
struct Shared {
    emulator: Mutex<Emulator>,
    /// Wakes the thread after a change.
    wake: EventFd,
    stop: AtomicBool,
    /// Number of calls that wait for the emulator. Without it, the thread would hardly ever leave the lock to them in a flood.
    waiting: AtomicUsize,
}

/// The model and its figures. The thread locks it for a batch of packets, never while it waits.
struct Emulator {
    config: LinkConfig,
    link: Link,
    outside: Outside,
    lateness: LatenessHistogram,
}

/// The devices of a direction, and the memory of its thread.
struct Wires {
    from: Arc<SyncDevice>,
    to: Arc<SyncDevice>,
    mtu: usize,
    slot: Box<[u8]>,
    chunk: BytesMut,
}

/// The next thing to do for the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// More packets wait.
    Packets,
    /// A packet is due.
    At(Mono),
    /// Packets are due shortly after those that were just written.
    Shortly,
    /// Nothing until a packet comes.
    Idle,
}

impl Direction {
    /// Starts the thread that passes packets from one device to the other.
    pub(super) fn start(
        name: &'static str,
        (config, settings): (LinkConfig, LinkSettings),
        seed: u64,
        (from, to): (&Arc<SyncDevice>, &Arc<SyncDevice>),
        mtu: u16,
    ) -> Result<Self, LinkError> {
        let invalid =
            |cause: viaduct_netem::link::LinkSettingsError| LinkError::Config { direction: name, cause: cause.into() };
        let link = Link::starting_at(clock::mono(), settings, seed).map_err(invalid)?;
        let emulator = Emulator { config, link, outside: Outside::default(), lateness: LatenessHistogram::new() };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_value_and_flags(0, flags).map_err(LinkError::system("create an eventfd"))?;
        let shared = Arc::new(Shared {
            emulator: Mutex::new(emulator),
            wake,
            stop: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
        });
        let wires = Wires {
            from: Arc::clone(from),
            to: Arc::clone(to),
            mtu: mtu.into(),
            // A packet that is longer than the MTU must not be truncated to it, or it would not be noticed.
            slot: vec![0; 1 << 16].into_boxed_slice(),
            chunk: BytesMut::new(),
        };
        let body = {
            let shared = Arc::clone(&shared);
            move || run(&shared, wires)
        };
        let thread = std::thread::Builder::new().name(format!("link-{name}")).spawn(body);
        let thread = thread.map_err(LinkError::system("start a thread"))?;
        Ok(Self { name, shared, thread: Some(thread) })
    }

    /// Changes the settings.
    pub(super) fn set(&self, patch: &viaduct_netem::config::LinkPatch) -> Result<(), LinkError> {
        let mut config = self.shared.lock_soon().config.clone();
        patch.apply(&mut config);
        // Reads the trace, if there is one, while packets continue to pass.
        let (config, settings) = resolve_direction(self.name, config)?;
        let mut emulator = self.shared.lock_soon();
        let invalid = |cause: viaduct_netem::link::LinkSettingsError| LinkError::Config {
            direction: self.name,
            cause: cause.into(),
        };
        emulator.link.set_settings(clock::mono(), settings).map_err(invalid)?;
        emulator.config = config;
        drop(emulator);
        self.shared.wake();
        Ok(())
    }

    /// Returns the figures. `queue_drops` is the number of packets that the kernel has dropped at the sending end.
    pub(super) fn report(&self, queue_drops: u64) -> DirectionReport {
        let emulator = self.shared.lock_soon();
        let outside = Outside { interface_queue: queue_drops, ..emulator.outside };
        DirectionReport::of(emulator.config.clone(), &emulator.link, outside, emulator.lateness.report())
    }
}

impl Drop for Direction {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Emulator> {
        // A panic of the other thread leaves counters and queues that can still be read.
        self.emulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the emulator for a call from outside of its thread.
    fn lock_soon(&self) -> MutexGuard<'_, Emulator> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let emulator = self.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        emulator
    }

    fn wake(&self) {
        // Fails only if 2^64 - 2 wakes are pending.
        let _ = self.wake.write(1);
    }
}

fn run(shared: &Shared, mut wires: Wires) {
    sys::set_finest_timer_slack();
    if let Err(error) = sys::set_real_time() {
        tracing::debug!(%error, "no real-time priority for the emulated link: busy programs delay its packets");
    }
    while !shared.stop.load(Ordering::Acquire) {
        if shared.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(YIELD);
        }
        let next = shared.lock().step(&mut wires);
        let waited = match next {
            Ok(Next::Packets) => Ok(()),
            Ok(Next::At(due)) => wait_until(due, shared, &wires),
            Ok(Next::Shortly) => {
                std::thread::sleep(NAP);
                Ok(())
            }
            Ok(Next::Idle) => wait(None, shared, &wires),
            Err(error) => Err(error),
        };
        if let Err(error) = waited {
            tracing::error!(%error, "the emulated link ends");
            return;
        }
    }
}

/// Waits until a packet is due, a packet has come or the settings have changed.
fn wait_until(due: Mono, shared: &Shared, wires: &Wires) -> io::Result<()> {
    let left = due.since(clock::mono());
    if left > SPIN {
        return wait(Some(left.saturating_sub(SPIN)), shared, wires);
    }
    while clock::mono() < due {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Sleeps until a packet has come, the settings have changed, or the time has passed.
fn wait(time: Option<Duration>, shared: &Shared, wires: &Wires) -> io::Result<()> {
    let mut watched =
        [PollFd::new(wires.from.as_fd(), PollFlags::POLLIN), PollFd::new(shared.wake.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut watched, time.map(TimeSpec::from), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    if watched[1].any().unwrap_or(false) {
        let _ = shared.wake.read();
    }
    Ok(())
}

impl Emulator {
    /// Reads and writes at most one batch of packets each.
    fn step(&mut self, wires: &mut Wires) -> io::Result<Next> {
        let all_read = self.read(wires)?;
        let has_written = self.write(wires);
        let Some(due) = self.link.poll_timeout() else {
            return Ok(if all_read { Next::Idle } else { Next::Packets });
        };
        let left = due.since(clock::mono());
        let is_soon = !left.is_zero() && left < NAP;
        Ok(if !all_read {
            Next::Packets
        } else if has_written && is_soon {
            Next::Shortly
        } else {
            Next::At(due)
        })
    }

    /// Passes packets of the sending end to the model. Returns `true` if no packet waits any more.
    fn read(&mut self, wires: &mut Wires) -> io::Result<bool> {
        for _ in 0..BATCH_PACKETS_MAX {
            let octets = match wires.from.recv(&mut wires.slot) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                received => received?,
            };
            match wires.packet(octets) {
                Some(packet) => self.link.handle_packet(clock::mono(), packet),
                None => self.outside.longer_than_mtu += 1,
            }
        }
        Ok(false)
    }

    /// Writes packets that are due to the receiving end. Returns `true` if there was one.
    fn write(&mut self, wires: &Wires) -> bool {
        for before in 0..BATCH_PACKETS_MAX {
            let Some(delivery) = self.link.poll_delivery(clock::mono()) else { return before > 0 };
            let written = wires.to.send(&delivery.packet);
            self.lateness.record(clock::mono().since(delivery.due));
            self.outside.not_written += u64::from(written.is_err());
        }
        true
    }
}

impl Wires {
    /// Returns the packet in the slot, or `None` if it is longer than the MTU.
    fn packet(&mut self, octets: usize) -> Option<Bytes> {
        let packet = self.slot.get(..octets).filter(|packet| packet.len() <= self.mtu)?;
        if self.chunk.capacity() < octets {
            self.chunk = BytesMut::with_capacity(CHUNK_OCTETS);
        }
        self.chunk.extend_from_slice(packet);
        Some(self.chunk.split().freeze())
    }
}
