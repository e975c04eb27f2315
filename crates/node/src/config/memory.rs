//! Keys about memory: what the process does with it, and the buffers of topics.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Problem;

/// KiB of stack that a thread touches at most when it starts: it has 2 MiB.
const PREFAULT_KIB_MAX: usize = 2048;

/// What the process does with its memory, so that no page is missing when it is needed. All of it costs memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// Whether to lock all memory of the process, so that no page of it is ever taken away. It needs a right
    /// (`ulimit -l unlimited`, CAP_IPC_LOCK, or LimitMEMLOCK=infinity in the systemd unit); without it the node warns
    /// and runs unlocked.
    pub lock: bool,
    /// Whether the process keeps freed memory for its next allocation instead of giving it back to the kernel. Only with
    /// glibc.
    pub keep_freed: bool,
    /// KiB of its stack that each thread with callbacks touches when it starts.
    #[schemars(range(max = 2048))]
    pub prefault_stack_kib: usize,
    /// Whether to ask the kernel for huge pages (2 MiB) for the pools of topics.
    pub huge_pages: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { lock: false, keep_freed: false, prefault_stack_kib: 0, huge_pages: true }
    }
}

impl MemorySettings {
    pub(super) fn check(&self) -> Result<(), Problem> {
        let kib = self.prefault_stack_kib;
        if kib <= PREFAULT_KIB_MAX {
            return Ok(());
        }
        Err(Problem::new("memory.prefault_stack_kib", format!("{kib} is more than {PREFAULT_KIB_MAX}")))
    }
}

/// One topic, where it has settings of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicSettings {
    /// Its buffers. Absent: they are sized by what its publishers and readers say of themselves, and made as they are
    /// asked for where no publisher says anything.
    #[serde(default)]
    pub pool: Option<PoolSettings>,
}

/// The buffers of one topic, all made when the node starts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolSettings {
    /// How many may be in use at a time. Absent: what publishers, readers with their queues, and observers can hold
    /// together. Fewer are refused.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65536))]
    pub buffers: Option<usize>,
    /// Octets of the longest message that is filled in place. Absent: what the publishers say that they need.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub octets: Option<usize>,
}
