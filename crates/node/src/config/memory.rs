//! Settings of memory: of the process, and of the pools of topics.

use schemars::JsonSchema;
use serde::Deserialize;

/// Memory settings of the process, which avoid page faults at run time. Each of them costs memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// Lock all memory of the process, so that the kernel never removes a page of it. This needs a permission: `ulimit
    /// -l unlimited`, CAP_IPC_LOCK, or LimitMEMLOCK=infinity in the systemd unit. Without it the node logs a warning
    /// and runs with unlocked memory.
    pub lock: bool,
    /// Keep freed memory for later allocations instead of returning it to the kernel. Needs glibc.
    pub keep_freed: bool,
    /// Request huge pages (2 MiB) from the kernel for the pools of topics. A pool of 128 KiB or more uses whole huge
    /// pages.
    pub huge_pages: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { lock: false, keep_freed: false, huge_pages: true }
    }
}

/// Settings of one topic.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicSettings {
    /// Pool of buffers of the topic. Default: the size follows from the settings of its publishers and readers. If no
    /// publisher declares its pool usage, the pool grows on demand.
    #[serde(default)]
    pub pool: Option<PoolSettings>,
}

/// Pool of buffers of one topic, created when the node starts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolSettings {
    /// Number of buffers, 1 to 65536. Default: the number that publishers, readers with their queues, and observers can
    /// hold at the same time. A smaller number is an error.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65536))]
    pub buffers: Option<usize>,
    /// Size of a buffer in bytes, 1 to 1073741824: the longest message that is filled in place. Default: the size that
    /// the publishers declare.
    #[serde(default, alias = "octets")]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub bytes: Option<usize>,
}
