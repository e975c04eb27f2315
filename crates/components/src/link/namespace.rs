//! A network namespace with one TUN device.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::settings::check_name;
use super::tunnel::End;
use super::{LinkError, sys};

/// Name of the TUN device in each namespace.
const DEVICE: &str = "link0";
/// Folder of named namespaces, as ip-netns(8) uses it.
const FOLDER: &str = "/run/netns";
/// Length of the network's prefix: the two ends and the two reserved addresses.
const PREFIX_BITS: u8 = 30;
/// Packets that the kernel keeps for the emulator while it does not read: 100 ms of 1 Gbit/s.
const DEVICE_QUEUE_PACKETS: u32 = 10_000;
/// Longest text of the kernel's counters: a namespace has two interfaces.
const STATISTICS_OCTETS_MAX: usize = 4096;
/// Index of the dropped sent packets among the counters of an interface in `/proc/net/dev`.
const SENT_DROPPED: usize = 11;

/// A network namespace with one TUN device. It exists while this value or a process in it does.
pub(super) struct Namespace {
    pub(super) file: Arc<File>,
    pub(super) device: Arc<SyncDevice>,
    /// The kernel's counters of the interfaces in the namespace.
    statistics: File,
}

impl Namespace {
    /// Creates a namespace whose device has the given address.
    pub(super) fn create(address: Ipv4Addr, mtu: u16) -> Result<Self, LinkError> {
        if !Path::new("/dev/net/tun").exists() {
            return Err(LinkError::NoTun);
        }
        // A thread that has moved into the new namespace ends afterwards. The namespace stays, because its file is open.
        let thread = std::thread::Builder::new().name("link-setup".to_owned());
        let thread =
            thread.spawn(move || Self::create_here(address, mtu)).map_err(LinkError::system("start a thread"))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(LinkError::system("set up a network namespace")(io::Error::other("panic"))))
    }

    /// Moves the calling thread into a new namespace and sets it up.
    fn create_here(address: Ipv4Addr, mtu: u16) -> Result<Self, LinkError> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(LinkError::system("create a network namespace"))?;
        let open = |path: &str| File::open(path).map_err(LinkError::system(format!("open {path}")));
        let file = open("/proc/thread-self/ns/net")?;
        disable_ipv6()?;
        sys::enable_loopback().map_err(LinkError::system("enable the loopback interface"))?;
        let device = open_device(address, mtu).map_err(LinkError::system("create a TUN device"))?;
        sys::add_default_route(DEVICE.as_bytes()).map_err(LinkError::system("add a route"))?;
        let statistics = open("/proc/thread-self/net/dev")?;
        Ok(Self { file: Arc::new(file), device: Arc::new(device), statistics })
    }

    /// Returns the number of packets that the kernel has dropped because the emulator did not read them in time.
    pub(super) fn queue_drops(&self) -> u64 {
        let mut text = [0; STATISTICS_OCTETS_MAX];
        let octets = self.statistics.read_at(&mut text, 0).unwrap_or(0);
        let text = text.get(..octets).map(String::from_utf8_lossy).unwrap_or_default();
        sent_drops(&text).unwrap_or(0)
    }

    /// Gives the namespace a name for ip-netns(8).
    pub(super) fn publish(&self, link: &str, end: End) -> Result<NamedNamespace, LinkError> {
        let path = namespace_path(link, end);
        fs::create_dir_all(FOLDER).map_err(LinkError::system(format!("create {FOLDER}")))?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let name = format!("{link}-{}", end.name());
                return Err(LinkError::InUse { name, link: link.to_owned() });
            }
            created => created.map_err(LinkError::system(format!("create {}", path.display())))?,
        };
        let named = NamedNamespace(path);
        let source = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&*self.file));
        let bound = mount(Some(source.as_str()), &named.0, None::<&str>, MsFlags::MS_BIND, None::<&str>);
        bound.map_err(LinkError::system(format!("bind {}", named.0.display())))?;
        Ok(named)
    }
}

fn open_device(address: Ipv4Addr, mtu: u16) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new()
        .name(DEVICE)
        .ipv4(address, PREFIX_BITS, None)
        .mtu(mtu)
        .tx_queue_len(DEVICE_QUEUE_PACKETS)
        .offload(false)
        .enable(true)
        .build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// Disables IPv6 in the calling thread's namespace, so that neighbour discovery does not send packets over the link. A kernel without
/// IPv6 lacks the file.
fn disable_ipv6() -> Result<(), LinkError> {
    for scope in ["all", "default"] {
        match fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1") {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            written => written.map_err(LinkError::system("disable IPv6"))?,
        }
    }
    Ok(())
}

/// Returns the dropped sent packets of the device from the text of `/proc/net/dev`.
fn sent_drops(text: &str) -> Option<u64> {
    let row = text.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    row.split_whitespace().nth(SENT_DROPPED)?.parse().ok()
}

/// The name of a namespace, which is removed when dropped.
pub(super) struct NamedNamespace(PathBuf);

impl Drop for NamedNamespace {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "name of a network namespace not removed");
        }
    }
}

/// Returns the file of an end's namespace.
#[must_use]
pub fn namespace_path(link: &str, end: End) -> PathBuf {
    Path::new(FOLDER).join(format!("{link}-{}", end.name()))
}

/// Returns a command that runs in the namespace of an end of a named link, which another process owns.
///
/// # Errors
/// There is no such link, or the process may not open its namespace.
pub fn command_in(link: &str, end: End, program: impl AsRef<OsStr>) -> Result<Command, LinkError> {
    check_name(link)?;
    let path = namespace_path(link, end);
    let opened = File::open(&path);
    if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(LinkError::NotUp(link.to_owned()));
    }
    let file = opened.map_err(LinkError::system(format!("open {}", path.display())))?;
    let mut command = Command::new(program);
    sys::enter_before_exec(&mut command, Arc::new(file));
    Ok(command)
}

/// Removes the names of the namespaces of a link whose process was killed. Returns `true` if there were any.
///
/// # Errors
/// The name is not one of a link, or a name cannot be removed.
pub fn remove_namespaces(link: &str) -> Result<bool, LinkError> {
    check_name(link)?;
    let mut found = false;
    for path in [End::A, End::B].map(|end| namespace_path(link, end)) {
        if path.exists() {
            found = true;
            remove(&path).map_err(LinkError::system(format!("remove {}", path.display())))?;
        }
    }
    Ok(found)
}

fn remove(path: &Path) -> io::Result<()> {
    // Fails if the process was killed before it bound the namespace to the file.
    let _ = umount2(path, MntFlags::MNT_DETACH);
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_device_are_read_from_the_kernels_table() {
        let text = "Inter-|   Receive    |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    \
                    packets errs drop fifo colls carrier compressed\n    lo:       1       2    3    4    5     6          7         8  \
                    9       10    11    12    13     14       15          16\n link0:       0       0    0    0    0     0          0  \
                    0        0       0    0    77    0     0       0          0\n";
        assert_eq!(sent_drops(text), Some(77));
        assert_eq!(sent_drops("link0: 1 2"), None);
        assert_eq!(sent_drops(""), None);
    }
}
