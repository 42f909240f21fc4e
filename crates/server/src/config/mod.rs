//! Settings of a server: what they are called, mean and default to.
//!
//! - [`params`]: each of them by name, as text
//! - [`durability`]: those of logs and snapshots
//! - [`cluster`]: those of a node that is one of several
//! - [`keyspaces`]: what can be said of a keyspace
//! - [`secrets`]: passwords in files
//! - [`tls`]: those of TLS
//! - [`values`]: values as text
//!
//! Where their values come from (file, environment, command line) is the program's part.

pub mod cluster;
pub mod collections;
mod durability;
pub mod keyspaces;
pub mod params;
pub mod secrets;
pub mod tls;
pub mod values;

pub use collections::Collections;
pub use durability::{AppendFsync, SavePoint};
pub use tls::Tls;

use rufous_kernel::evict::{self, By, Choice};
use rufous_kernel::keyspace::Keyspace;

/// Everything that can be set. Names follow Redis where Redis has the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// A leading `-` marks an address that this machine may lack.
    pub bind: Vec<String>,
    /// 0: any free one, or none where there is one for TLS.
    pub port: u16,
    /// Path of a Unix socket to listen on as well; empty: none.
    pub unixsocket: String,
    /// Permission bits of that socket; 0: as the process's umask has it.
    pub unixsocketperm: u32,
    pub tls: Tls,
    pub tcp_backlog: u32,
    /// Seconds of silence after which TCP asks whether a client is there; 0: never.
    pub tcp_keepalive_s: u64,
    pub workers: usize,
    /// Pin each worker to a core, where there are enough.
    pub pin: bool,
    /// The folder of logs and snapshots.
    pub dir: String,
    /// Whether there is such a folder; without it data is kept in memory alone.
    /// No setting: see [`Config::wants_folder`].
    pub folder: bool,
    /// Every change is logged.
    pub appendonly: bool,
    pub appendfsync: AppendFsync,
    /// With `everysec`: what is acknowledged and not synced at most, per worker, and for how long.
    pub appendfsync_max_bytes: u64,
    pub appendfsync_max_ms: u64,
    /// When snapshots are taken by themselves: as soon as one of them is met.
    pub save: Vec<SavePoint>,
    /// A snapshot follows when the log has grown by so much since the last; 0: never.
    pub auto_aof_rewrite_percentage: u64,
    pub auto_aof_rewrite_min_size: u64,
    /// Bytes of one file of the log.
    pub log_segment_size: u64,
    /// How many earlier saves are kept.
    pub snapshot_retention: u64,
    /// Writes are refused while the last snapshot by itself failed.
    pub stop_writes_on_bgsave_error: bool,
    /// Reads of keys at several nodes are transactions.
    pub cluster_atomic_reads: bool,
    /// Empty: no password.
    pub requirepass: String,
    /// The file that it was read from; empty: none.
    pub requirepass_file: String,
    pub enable_debug_command: DebugCommand,
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
    /// Commands that take at least so many milliseconds are noted; 0: off.
    pub latency_monitor_threshold_ms: u64,
    /// Bytes of data of the whole node; 0: no limit.
    pub maxmemory: u64,
    pub maxmemory_policy: MaxmemoryPolicy,
    /// Keys that are compared for each one that is evicted.
    /// Up to which size collections are kept packed.
    pub collections: Collections,
    pub maxmemory_samples: usize,
    /// See `Policy::log_factor`.
    pub lfu_log_factor: u32,
    /// See `Policy::decay_minutes`.
    pub lfu_decay_time: u32,
    pub loglevel: LogLevel,
    pub log_format: LogFormat,
    /// Empty: standard error.
    pub logfile: String,
    /// Of metrics and health over HTTP; 0: none.
    pub admin_port: u16,
    pub admin_bind: String,
    /// What the configuration file says of keyspaces; no setting.
    pub keyspaces: Vec<Keyspace>,
    /// What settings say of a cluster, before it is known to go together.
    pub clustering: cluster::Clustering,
    /// For a node that is one of several: what a node goes by. `clustering` makes it,
    /// and so can programs that have a node inside them.
    pub cluster: Option<crate::cluster::Settings>,
}

/// For which connections DEBUG is enabled, by Redis's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugCommand {
    No,
    /// Those from this machine.
    Local,
    Yes,
}

impl DebugCommand {
    pub const ALL: [(DebugCommand, &'static str); 3] = [
        (DebugCommand::No, "no"),
        (DebugCommand::Local, "local"),
        (DebugCommand::Yes, "yes"),
    ];

    pub const SET: params::Set = |config, value| {
        config.enable_debug_command = values::named(&Self::ALL, value)?;
        Ok(())
    };
}

/// How much is logged, by Redis's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

impl LogLevel {
    pub const ALL: [(LogLevel, &'static str); 5] = [
        (LogLevel::Debug, "debug"),
        (LogLevel::Verbose, "verbose"),
        (LogLevel::Notice, "notice"),
        (LogLevel::Warning, "warning"),
        (LogLevel::Nothing, "nothing"),
    ];
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl LogFormat {
    pub const ALL: [(LogFormat, &'static str); 2] =
        [(LogFormat::Text, "text"), (LogFormat::Json, "json")];
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
    /// All of them with their names, in the order in which Redis lists them.
    pub const ALL: [(MaxmemoryPolicy, &'static str); 8] = [
        (MaxmemoryPolicy::VolatileLru, "volatile-lru"),
        (MaxmemoryPolicy::VolatileLfu, "volatile-lfu"),
        (MaxmemoryPolicy::VolatileRandom, "volatile-random"),
        (MaxmemoryPolicy::VolatileTtl, "volatile-ttl"),
        (MaxmemoryPolicy::AllKeysLru, "allkeys-lru"),
        (MaxmemoryPolicy::AllKeysLfu, "allkeys-lfu"),
        (MaxmemoryPolicy::AllKeysRandom, "allkeys-random"),
        (MaxmemoryPolicy::NoEviction, "noeviction"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(policy, _)| *policy == self)
            .map_or("", |(_, name)| name)
    }

    /// Which keys go; `None`: none do.
    pub fn choice(self) -> Option<Choice> {
        let (volatile, by) = match self {
            MaxmemoryPolicy::NoEviction => return None,
            MaxmemoryPolicy::AllKeysLru => (false, By::Recency),
            MaxmemoryPolicy::AllKeysLfu => (false, By::Frequency),
            MaxmemoryPolicy::AllKeysRandom => (false, By::Random),
            MaxmemoryPolicy::VolatileLru => (true, By::Recency),
            MaxmemoryPolicy::VolatileLfu => (true, By::Frequency),
            MaxmemoryPolicy::VolatileRandom => (true, By::Random),
            MaxmemoryPolicy::VolatileTtl => (true, By::Expiry),
        };
        Some(Choice { volatile, by })
    }

    pub fn is_lfu(self) -> bool {
        matches!(
            self,
            MaxmemoryPolicy::AllKeysLfu | MaxmemoryPolicy::VolatileLfu
        )
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: vec!["127.0.0.1".into(), "-::1".into()],
            port: 6379,
            unixsocket: String::new(),
            unixsocketperm: 0,
            tls: Tls::default(),
            tcp_backlog: 511,
            tcp_keepalive_s: 300,
            workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
            pin: true,
            dir: "rufous-data".into(),
            folder: true,
            appendonly: true,
            appendfsync: AppendFsync::Everysec,
            appendfsync_max_bytes: 256 << 20,
            appendfsync_max_ms: 3_000,
            save: SavePoint::DEFAULT.to_vec(),
            auto_aof_rewrite_percentage: 100,
            auto_aof_rewrite_min_size: 64 << 20,
            log_segment_size: 64 << 20,
            snapshot_retention: 0,
            stop_writes_on_bgsave_error: true,
            cluster_atomic_reads: true,
            requirepass: String::new(),
            requirepass_file: String::new(),
            enable_debug_command: DebugCommand::No,
            maxclients: 10_000,
            protected_mode: true,
            timeout_s: 0,
            proto_max_bulk_len: rufous_base::limits::MAX_BULK,
            client_query_buffer_limit: 1024 * 1024 * 1024,
            slowlog_log_slower_than: 10_000,
            slowlog_max_len: 128,
            latency_monitor_threshold_ms: 0,
            maxmemory: 0,
            maxmemory_policy: MaxmemoryPolicy::NoEviction,
            collections: Collections::default(),
            maxmemory_samples: 5,
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            loglevel: LogLevel::Notice,
            log_format: LogFormat::Text,
            logfile: String::new(),
            admin_port: 9121,
            admin_bind: "127.0.0.1".into(),
            keyspaces: Vec::new(),
            clustering: cluster::Clustering::default(),
            cluster: None,
        }
    }
}

impl Config {
    /// As the default, but without any files: for tests, and for programs that
    /// want a node inside themselves as a cache.
    pub fn in_memory() -> Self {
        Self {
            folder: false,
            appendonly: false,
            save: Vec::new(),
            ..Self::default()
        }
    }

    /// Whether a node with these settings needs its data folder: where it is to
    /// write there, and where there is one that may hold data.
    pub fn wants_folder(&self) -> bool {
        self.folder
            && (self.appendonly
                || !self.save.is_empty()
                || std::path::Path::new(&self.dir).is_dir())
    }

    /// How accesses to keys are recorded.
    pub fn access_policy(&self) -> rufous_kernel::shard::Policy {
        rufous_kernel::shard::Policy {
            lfu: self.maxmemory_policy.is_lfu(),
            log_factor: self.lfu_log_factor,
            decay_minutes: self.lfu_decay_time,
        }
    }

    /// The memory limit as workers keep to it.
    pub fn memory_limit(&self) -> evict::Settings {
        evict::Settings {
            bytes: usize::try_from(self.maxmemory).unwrap_or(usize::MAX),
            choice: self.maxmemory_policy.choice(),
            samples: self.maxmemory_samples,
        }
    }

    /// Whether a client is turned away because no password protects the node.
    pub fn protected_mode_refuses(&self, info: &rufous_base::ConnInfo) -> bool {
        self.protected_mode && self.requirepass.is_empty() && !info.is_local
    }
}
