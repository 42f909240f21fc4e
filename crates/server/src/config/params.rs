//! Settings by name, as text: what `CONFIG GET` shows and `CONFIG SET` takes.
//!
//! Some are no settings here but facts that clients ask for under a setting's
//! name (`databases`, `rdbchecksum`): they can be "set" to what they are.

use super::values::{constant, integer, memory, name_of, named, parse_yes_no, yes_no};
use super::{
    Config, DebugCommand, LogFormat, LogLevel, MaxmemoryPolicy, cluster, collections, durability,
    tls,
};
use rufous_base::limits;

/// Changes a setting; the error says what a value has to look like.
pub type Set = fn(&mut Config, &str) -> Result<(), String>;

/// One setting.
pub struct Param {
    pub name: &'static str,
    pub get: fn(&Config) -> String,
    /// `None`: only when the server starts.
    pub set: Option<Set>,
    pub help: &'static str,
}

/// All settings, in alphabetical order.
pub static PARAMS: &[Param] = &[
    Param {
        name: "admin-bind",
        get: |config| config.admin_bind.clone(),
        set: None,
        help: "Address for metrics and health over HTTP. There is no authentication.",
    },
    Param {
        name: "admin-port",
        get: |config| config.admin_port.to_string(),
        set: None,
        help: "Port for metrics and health over HTTP; 0: none.",
    },
    durability::AOF_LOAD_TRUNCATED,
    durability::AOF_USE_RDB_PREAMBLE,
    durability::APPENDFILENAME,
    durability::APPENDFSYNC,
    durability::APPENDFSYNC_MAX_BYTES,
    durability::APPENDFSYNC_MAX_MS,
    durability::APPENDONLY,
    durability::AUTO_AOF_REWRITE_MIN_SIZE,
    durability::AUTO_AOF_REWRITE_PERCENTAGE,
    Param {
        name: "bind",
        get: |config| config.bind.join(" "),
        set: None,
        help: "Addresses to listen on; a leading `-` marks one that may be missing on this machine.",
    },
    Param {
        name: "client-query-buffer-limit",
        get: |config| config.client_query_buffer_limit.to_string(),
        set: Some(|config, value| {
            config.client_query_buffer_limit = memory(value, 1 << 20, u64::MAX >> 1)? as usize;
            Ok(())
        }),
        help: "Maximum bytes of pending requests per client.",
    },
    cluster::absence::ACCEPT_LOSS,
    cluster::ADVERTISE,
    cluster::ATOMIC_READS,
    cluster::secret::AUTH,
    cluster::CLIENTS,
    cluster::COORDINATOR,
    cluster::COPIES_OF_SLOTS,
    cluster::ENABLED,
    cluster::etcd::CA_CERT_FILE,
    cluster::etcd::CERT_FILE,
    cluster::etcd::KEY_FILE,
    cluster::etcd::PASSWORD,
    cluster::etcd::PASSWORD_FILE,
    cluster::etcd::PASSWORD_IN_CLEAR,
    cluster::etcd::USER,
    cluster::absence::FORGET_AFTER,
    cluster::ID,
    cluster::LISTEN,
    cluster::MOVE_RATE_OF_NODE,
    cluster::NAME,
    cluster::secret::SECRET,
    cluster::secret::SECRET_FILE,
    cluster::TLS_CA_CERT_FILE,
    cluster::TLS_CERT_FILE,
    cluster::TLS_KEY_FILE,
    cluster::WEIGHT,
    cluster::WIRE_VERSION,
    cluster::ZONE,
    Param {
        name: "daemonize",
        get: |_| "no".into(),
        set: None,
        help: "Whether the server runs in the background: never; use a supervisor.",
    },
    Param {
        name: "databases",
        get: |_| limits::DATABASES.to_string(),
        set: None,
        help: "Number of databases.",
    },
    durability::DBFILENAME,
    Param {
        name: "dir",
        get: |config| config.dir.clone(),
        set: None,
        help: "Folder of logs and snapshots; created if it does not exist.",
    },
    Param {
        name: "enable-debug-command",
        get: |config| name_of(&DebugCommand::ALL, config.enable_debug_command),
        set: None,
        help: "Whether DEBUG is enabled: no, yes, or local for connections from this machine.",
    },
    collections::HASH_ENTRIES,
    collections::HASH_VALUE,
    collections::HASH_ENTRIES_OLD,
    collections::HASH_VALUE_OLD,
    collections::HLL_SPARSE,
    Param {
        name: "hz",
        get: |_| "10".into(),
        set: Some(|_, value| {
            constant(
                value,
                "10",
                "workers choose the period of background work themselves",
            )
        }),
        help: "Background cycles per second of an idle worker.",
    },
    Param {
        name: "latency-monitor-threshold",
        get: |config| config.latency_monitor_threshold_ms.to_string(),
        set: Some(|config, value| {
            config.latency_monitor_threshold_ms = integer(value, 0..=i64::MAX)? as u64;
            Ok(())
        }),
        help: "Minimum execution time of commands recorded by LATENCY; 0: none are.",
    },
    Param {
        name: "latency-tracking",
        get: |_| "yes".into(),
        set: Some(|_, value| constant(value, "yes", "the time of commands is always counted")),
        help: "Whether the distribution of execution times is recorded.",
    },
    Param {
        name: "lfu-decay-time",
        get: |config| config.lfu_decay_time.to_string(),
        set: Some(|config, value| {
            config.lfu_decay_time = integer(value, 0..=i64::from(i32::MAX))? as u32;
            Ok(())
        }),
        help: "Minutes after which the access frequency of a key decreases by one; 0: never.",
    },
    Param {
        name: "lfu-log-factor",
        get: |config| config.lfu_log_factor.to_string(),
        set: Some(|config, value| {
            config.lfu_log_factor = integer(value, 0..=i64::from(i32::MAX))? as u32;
            Ok(())
        }),
        help: "The higher, the more accesses it takes to increase the access frequency of a key.",
    },
    collections::LIST_COMPRESS,
    collections::LIST_SIZE,
    collections::LIST_SIZE_OLD,
    Param {
        name: "log-format",
        get: |config| name_of(&LogFormat::ALL, config.log_format),
        set: None,
        help: "Format of the log: lines of text, or one JSON object per line.",
    },
    durability::LOG_SEGMENT_SIZE,
    Param {
        name: "logfile",
        get: |config| config.logfile.clone(),
        set: None,
        help: "Log file, reopened at SIGHUP; empty: standard error.",
    },
    Param {
        name: "loglevel",
        get: |config| name_of(&LogLevel::ALL, config.loglevel),
        set: Some(|config, value| {
            config.loglevel = named(&LogLevel::ALL, value)?;
            Ok(())
        }),
        help: "Minimum severity of log messages.",
    },
    Param {
        name: "maxclients",
        get: |config| config.maxclients.to_string(),
        set: Some(|config, value| {
            config.maxclients = integer(value, 1..=i64::from(u32::MAX))? as usize;
            Ok(())
        }),
        help: "Maximum number of connected clients.",
    },
    Param {
        name: "maxmemory",
        get: |config| config.maxmemory.to_string(),
        set: Some(|config, value| {
            config.maxmemory = memory(value, 0, u64::MAX)?;
            Ok(())
        }),
        help: "Memory limit of the data in bytes; 0: no limit.",
    },
    Param {
        name: "maxmemory-policy",
        get: |config| config.maxmemory_policy.name().into(),
        set: Some(|config, value| {
            config.maxmemory_policy = named(&MaxmemoryPolicy::ALL, value)?;
            Ok(())
        }),
        help: "Which keys are evicted at the memory limit.",
    },
    Param {
        name: "maxmemory-samples",
        get: |config| config.maxmemory_samples.to_string(),
        set: Some(|config, value| {
            config.maxmemory_samples = integer(value, 1..=64)? as usize;
            Ok(())
        }),
        help: "Number of keys compared for each eviction.",
    },
    durability::NO_APPENDFSYNC_ON_REWRITE,
    Param {
        name: "pin",
        get: |config| yes_no(config.pin),
        set: None,
        help: "Whether each worker is pinned to its own core, with enough cores.",
    },
    Param {
        name: "port",
        get: |config| config.port.to_string(),
        set: None,
        help: "Port to listen on; 0: none.",
    },
    Param {
        name: "protected-mode",
        get: |config| yes_no(config.protected_mode),
        set: Some(|config, value| {
            config.protected_mode = parse_yes_no(value)?;
            Ok(())
        }),
        help: "Whether clients of other machines are refused while no password is set.",
    },
    Param {
        name: "proto-max-bulk-len",
        get: |config| config.proto_max_bulk_len.to_string(),
        set: Some(|config, value| {
            config.proto_max_bulk_len = memory(value, 1 << 20, limits::MAX_BULK)?;
            Ok(())
        }),
        help: "Maximum size of an argument.",
    },
    durability::RDBCHECKSUM,
    durability::RDBCOMPRESSION,
    Param {
        name: "requirepass",
        get: |config| config.requirepass.clone(),
        set: Some(|config, value| {
            config.requirepass = value.into();
            Ok(())
        }),
        help: "Password of clients; empty: none.",
    },
    Param {
        name: "requirepass-file",
        get: |config| config.requirepass_file.clone(),
        set: None,
        help: "File with that password; read at startup.",
    },
    durability::SAVE,
    collections::SET_INTSET,
    collections::SET_ENTRIES,
    collections::SET_VALUE,
    Param {
        name: "slowlog-log-slower-than",
        get: |config| config.slowlog_log_slower_than.to_string(),
        set: Some(|config, value| {
            config.slowlog_log_slower_than = integer(value, -1..=i64::MAX)?;
            Ok(())
        }),
        help: "Minimum execution time of commands recorded by SLOWLOG; -1: none are.",
    },
    Param {
        name: "slowlog-max-len",
        get: |config| config.slowlog_max_len.to_string(),
        set: Some(|config, value| {
            config.slowlog_max_len = integer(value, 0..=i64::MAX)? as usize;
            Ok(())
        }),
        help: "Maximum number of entries of SLOWLOG.",
    },
    durability::SNAPSHOT_RETENTION,
    durability::STOP_WRITES_ON_BGSAVE_ERROR,
    Param {
        name: "tcp-backlog",
        get: |config| config.tcp_backlog.to_string(),
        set: None,
        help: "Length of the queue of connections that are not accepted yet.",
    },
    Param {
        name: "tcp-keepalive",
        get: |config| config.tcp_keepalive_s.to_string(),
        set: None,
        help: "Idle time after which TCP sends keepalive probes; 0: never.",
    },
    Param {
        name: "timeout",
        get: |config| config.timeout_s.to_string(),
        set: Some(|config, value| {
            config.timeout_s = integer(value, 0..=i64::from(i32::MAX))? as u64;
            Ok(())
        }),
        help: "Idle time after which a client is disconnected; 0: never.",
    },
    tls::AUTH_CLIENTS,
    tls::CA_CERT_FILE,
    tls::CERT_FILE,
    tls::KEY_FILE,
    tls::PORT,
    tls::PROTOCOLS,
    Param {
        name: "unixsocket",
        get: |config| config.unixsocket.clone(),
        set: None,
        help: "Path of a Unix socket to listen on as well; empty: none.",
    },
    Param {
        name: "unixsocketperm",
        get: |config| format!("{:o}", config.unixsocketperm),
        set: None,
        help: "Permission bits of the Unix socket, in octal; 0: those of the umask.",
    },
    Param {
        name: "workers",
        get: |config| config.workers.to_string(),
        set: None,
        help: "Worker threads.",
    },
    collections::ZSET_ENTRIES,
    collections::ZSET_VALUE,
    collections::ZSET_ENTRIES_OLD,
    collections::ZSET_VALUE_OLD,
];

/// The setting called `name`, in any case.
pub fn find(name: &[u8]) -> Option<&'static Param> {
    PARAMS
        .iter()
        .find(|param| param.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether the setting's value must not show in logs.
pub fn is_secret(name: &[u8]) -> bool {
    const SECRETS: [&str; 5] = [
        "cluster-etcd-password",
        "cluster-secret",
        "masterauth",
        "masteruser",
        "requirepass",
    ];
    SECRETS
        .iter()
        .any(|secret| secret.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_lower_case() {
        assert!(PARAMS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(
            PARAMS
                .iter()
                .all(|p| p.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
        );
    }

    #[test]
    fn every_setting_takes_what_it_shows() {
        let config = Config::default();
        for param in PARAMS {
            let Some(set) = param.set else { continue };
            let mut changed = config.clone();
            assert_eq!(
                set(&mut changed, &(param.get)(&config)),
                Ok(()),
                "{}",
                param.name
            );
            assert_eq!(changed, config, "{}", param.name);
        }
    }
}
