//! Keys about memory: what the process does with it, and the buffers of topics.

use schemars::JsonSchema;
use serde::Deserialize;

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
    /// Whether to ask the kernel for huge pages (2 MiB) for the pools of topics; a pool of 128 KiB or more takes whole ones.
    pub huge_pages: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { lock: false, keep_freed: false, huge_pages: true }
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
