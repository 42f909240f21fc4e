//! Settings of a server: what they are called, mean and default to.

/// Everything that can be set. Names follow Redis where Redis has the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub bind: Vec<String>,
    pub port: u16,
    pub workers: usize,
    pub dir: String,
    /// Empty: no password.
    pub requirepass: String,
    pub maxclients: usize,
    pub protected_mode: bool,
    /// Seconds after which a silent client is dropped; 0: never.
    pub timeout_s: u64,
    /// Longest argument, bytes.
    pub proto_max_bulk_len: u64,
    /// Bytes of requests that one client may have waiting.
    pub client_query_buffer_limit: usize,
    /// Microseconds; negative: off.
    pub slowlog_log_slower_than: i64,
    pub slowlog_max_len: usize,
    pub maxmemory_policy: MaxmemoryPolicy,
}

/// What is evicted at the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxmemoryPolicy {
    NoEviction,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
}

impl MaxmemoryPolicy {
    pub fn is_lfu(self) -> bool {
        matches!(self, MaxmemoryPolicy::AllKeysLfu | MaxmemoryPolicy::VolatileLfu)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: vec!["127.0.0.1".into(), "-::1".into()],
            port: 6379,
            workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
            dir: ".".into(),
            requirepass: String::new(),
            maxclients: 10_000,
            protected_mode: true,
            timeout_s: 0,
            proto_max_bulk_len: rufous_base::limits::MAX_BULK,
            client_query_buffer_limit: 1024 * 1024 * 1024,
            slowlog_log_slower_than: 10_000,
            slowlog_max_len: 128,
            maxmemory_policy: MaxmemoryPolicy::NoEviction,
        }
    }
}

impl Config {
    /// How accesses to keys are recorded.
    pub fn access_policy(&self) -> rufous_kernel::shard::Policy {
        rufous_kernel::shard::Policy { lfu: self.maxmemory_policy.is_lfu(), ..Default::default() }
    }

    /// Whether a client is turned away because no password protects the node.
    pub fn protected_mode_refuses(&self, info: &rufous_base::ConnInfo) -> bool {
        self.protected_mode && self.requirepass.is_empty() && !info.is_local
    }
}
