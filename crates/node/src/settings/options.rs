//! How settings can be given when a server starts, on the command line, in the
//! environment and in a file alike: under one name, with one kind of value.
//!
//! What a setting is and how it can change later is in [`params`].

#[cfg(test)]
mod tests;

use rufous_base::limits::MAX_WORKERS;
use rufous_server::config::params::{self, Set};
use rufous_server::config::secrets::SET_REQUIREPASS_FILE;
use rufous_server::config::values::{integer, named, parse_yes_no};
use rufous_server::config::{
    AppendFsync, Config, DebugCommand, LogFormat, LogLevel, MaxmemoryPolicy,
};
use rufous_server::config::{cluster, tls};

/// Settings that belong together in help and examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Network,
    Tls,
    Clients,
    Node,
    Cluster,
    Durability,
    Data,
    Watching,
    Logs,
    Admin,
}

impl Group {
    pub fn title(self) -> &'static str {
        match self {
            Group::Network => "Network",
            Group::Tls => "TLS",
            Group::Clients => "Clients",
            Group::Node => "Threads and files",
            Group::Cluster => "Cluster",
            Group::Durability => "Durability",
            Group::Data => "Data",
            Group::Watching => "Slow commands",
            Group::Logs => "Logs",
            Group::Admin => "Metrics and health over HTTP",
        }
    }
}

/// A setting that can be given when a server starts.
#[derive(Debug)]
pub struct StartOption {
    pub name: &'static str,
    pub group: Group,
    /// What stands for the value in help.
    pub value: &'static str,
    /// Where it differs from what `CONFIG SET` does, or that does not know it.
    set: Option<Set>,
}

const fn option(group: Group, name: &'static str, value: &'static str) -> StartOption {
    StartOption {
        name,
        group,
        value,
        set: None,
    }
}

const fn fixed(group: Group, name: &'static str, value: &'static str, set: Set) -> StartOption {
    StartOption {
        name,
        group,
        value,
        set: Some(set),
    }
}

/// Fixed, of a cluster.
const fn clustered(name: &'static str, value: &'static str, set: Set) -> StartOption {
    fixed(Group::Cluster, name, value, set)
}

/// All of them, in the order of help. Settings of [`params::PARAMS`] that are
/// missing here are facts: they are taken, but only as they are.
pub static OPTIONS: &[StartOption] = &[
    fixed(Group::Network, "port", "PORT", set_port),
    fixed(Group::Network, "bind", "ADDRESS", set_bind),
    fixed(Group::Network, "unixsocket", "PATH", set_unixsocket),
    fixed(
        Group::Network,
        "unixsocketperm",
        "OCTAL",
        set_unixsocketperm,
    ),
    fixed(Group::Network, "tcp-backlog", "COUNT", set_backlog),
    fixed(Group::Network, "tcp-keepalive", "SECONDS", set_keepalive),
    fixed(Group::Tls, "tls-port", "PORT", tls::SET_PORT),
    fixed(Group::Tls, "tls-cert-file", "FILE", tls::SET_CERT_FILE),
    fixed(Group::Tls, "tls-key-file", "FILE", tls::SET_KEY_FILE),
    fixed(
        Group::Tls,
        "tls-ca-cert-file",
        "FILE",
        tls::SET_CA_CERT_FILE,
    ),
    fixed(
        Group::Tls,
        "tls-auth-clients",
        "yes|no|optional",
        tls::SET_AUTH_CLIENTS,
    ),
    fixed(
        Group::Tls,
        "tls-protocols",
        "\"VERSION ...\"",
        tls::SET_PROTOCOLS,
    ),
    option(Group::Clients, "requirepass", "PASSWORD"),
    fixed(
        Group::Clients,
        "requirepass-file",
        "FILE",
        SET_REQUIREPASS_FILE,
    ),
    option(Group::Clients, "protected-mode", "yes|no"),
    fixed(
        Group::Clients,
        "enable-debug-command",
        "no|local|yes",
        DebugCommand::SET,
    ),
    option(Group::Clients, "maxclients", "COUNT"),
    option(Group::Clients, "timeout", "SECONDS"),
    option(Group::Clients, "client-query-buffer-limit", "BYTES"),
    option(Group::Clients, "proto-max-bulk-len", "BYTES"),
    fixed(Group::Node, "workers", "COUNT|auto", set_workers),
    fixed(Group::Node, "pin", "yes|no", set_pin),
    fixed(Group::Node, "dir", "PATH", set_dir),
    clustered("cluster-name", "NAME", cluster::SET_NAME),
    clustered(
        "cluster-coordinator",
        "local|etcd://...|rufous://...",
        cluster::SET_COORDINATOR,
    ),
    clustered("cluster-listen", "ADDRESS:PORT", cluster::SET_LISTEN),
    clustered("cluster-clients", "ADDRESS:PORT", cluster::SET_CLIENTS),
    clustered("cluster-advertise", "HOST", cluster::SET_ADVERTISE),
    clustered("cluster-copies", "COUNT|auto", cluster::SET_COPIES),
    option(Group::Cluster, "cluster-atomic-reads", "yes|no"),
    clustered("cluster-weight", "WEIGHT", cluster::SET_WEIGHT),
    clustered("cluster-move-rate", "BYTES", cluster::SET_MOVE_RATE),
    clustered("cluster-zone", "NAME", cluster::SET_ZONE),
    clustered(
        "cluster-wire-version",
        "VERSION|auto",
        cluster::SET_WIRE_VERSION,
    ),
    clustered(
        "cluster-accept-loss",
        "yes|no",
        cluster::absence::SET_ACCEPT_LOSS,
    ),
    clustered(
        "cluster-forget-after",
        "SECONDS",
        cluster::absence::SET_FORGET_AFTER,
    ),
    clustered("cluster-id", "HEX", cluster::SET_ID),
    clustered("cluster-secret", "SECRET", cluster::secret::SET_SECRET),
    clustered(
        "cluster-secret-file",
        "FILE",
        cluster::secret::SET_SECRET_FILE,
    ),
    clustered(
        "cluster-auth",
        "required|optional",
        cluster::secret::SET_AUTH,
    ),
    clustered("cluster-tls-cert-file", "FILE", cluster::SET_TLS_CERT_FILE),
    clustered("cluster-tls-key-file", "FILE", cluster::SET_TLS_KEY_FILE),
    clustered(
        "cluster-tls-ca-cert-file",
        "FILE",
        cluster::SET_TLS_CA_CERT_FILE,
    ),
    clustered(
        "cluster-etcd-ca-cert-file",
        "FILE",
        cluster::etcd::SET_CA_CERT_FILE,
    ),
    clustered(
        "cluster-etcd-cert-file",
        "FILE",
        cluster::etcd::SET_CERT_FILE,
    ),
    clustered("cluster-etcd-key-file", "FILE", cluster::etcd::SET_KEY_FILE),
    clustered("cluster-etcd-user", "NAME", cluster::etcd::SET_USER),
    clustered(
        "cluster-etcd-password",
        "PASSWORD",
        cluster::etcd::SET_PASSWORD,
    ),
    clustered(
        "cluster-etcd-password-file",
        "FILE",
        cluster::etcd::SET_PASSWORD_FILE,
    ),
    clustered(
        "cluster-etcd-password-in-clear",
        "yes|no",
        cluster::etcd::SET_PASSWORD_IN_CLEAR,
    ),
    option(Group::Durability, "appendonly", "yes|no"),
    option(Group::Durability, "appendfsync", "always|everysec|no"),
    option(Group::Durability, "appendfsync-max-bytes", "BYTES"),
    option(Group::Durability, "appendfsync-max-ms", "MILLISECONDS"),
    option(Group::Durability, "save", "\"SECONDS CHANGES ...\""),
    option(Group::Durability, "auto-aof-rewrite-percentage", "PERCENT"),
    option(Group::Durability, "auto-aof-rewrite-min-size", "BYTES"),
    option(Group::Durability, "log-segment-size", "BYTES"),
    option(Group::Durability, "snapshot-retention", "COUNT"),
    option(Group::Durability, "stop-writes-on-bgsave-error", "yes|no"),
    option(Group::Data, "maxmemory", "BYTES"),
    option(Group::Data, "maxmemory-policy", "POLICY"),
    option(Group::Data, "maxmemory-samples", "COUNT"),
    option(Group::Data, "hash-max-listpack-entries", "COUNT"),
    option(Group::Data, "hash-max-listpack-value", "BYTES"),
    option(Group::Data, "hash-max-ziplist-entries", "COUNT"),
    option(Group::Data, "hash-max-ziplist-value", "BYTES"),
    option(Group::Data, "hll-sparse-max-bytes", "BYTES"),
    option(Group::Data, "list-compress-depth", "COUNT"),
    option(Group::Data, "list-max-listpack-size", "COUNT"),
    option(Group::Data, "list-max-ziplist-size", "COUNT"),
    option(Group::Data, "set-max-intset-entries", "COUNT"),
    option(Group::Data, "set-max-listpack-entries", "COUNT"),
    option(Group::Data, "set-max-listpack-value", "BYTES"),
    option(Group::Data, "zset-max-listpack-entries", "COUNT"),
    option(Group::Data, "zset-max-listpack-value", "BYTES"),
    option(Group::Data, "zset-max-ziplist-entries", "COUNT"),
    option(Group::Data, "zset-max-ziplist-value", "BYTES"),
    option(Group::Data, "lfu-log-factor", "NUMBER"),
    option(Group::Data, "lfu-decay-time", "MINUTES"),
    option(Group::Watching, "slowlog-log-slower-than", "MICROSECONDS"),
    option(Group::Watching, "slowlog-max-len", "COUNT"),
    option(Group::Watching, "latency-monitor-threshold", "MILLISECONDS"),
    option(Group::Logs, "loglevel", "LEVEL"),
    fixed(Group::Logs, "log-format", "text|json", set_log_format),
    fixed(Group::Logs, "logfile", "FILE", set_logfile),
    fixed(Group::Admin, "admin-port", "PORT", set_admin_port),
    fixed(Group::Admin, "admin-bind", "ADDRESS", set_admin_bind),
];

/// The option called `name`.
pub fn find(name: &str) -> Option<&'static StartOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// How the setting is taken when a server starts, where that is possible.
pub fn setter(name: &str) -> Option<Set> {
    let own = find(name).and_then(|option| option.set);
    own.or_else(|| params::find(name.as_bytes())?.set)
}

/// The values among which one has to be chosen.
pub fn choices(name: &str) -> Vec<&'static str> {
    match name {
        "appendfsync" => AppendFsync::ALL.iter().map(|(_, name)| *name).collect(),
        "loglevel" => LogLevel::ALL.iter().map(|(_, name)| *name).collect(),
        "maxmemory-policy" => MaxmemoryPolicy::ALL.iter().map(|(_, name)| *name).collect(),
        _ => Vec::new(),
    }
}

/// The environment variable of a setting.
pub fn variable(name: &str) -> String {
    format!("RUFOUS_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// The setting whose name is most like `name`, if any is.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let ranked = OPTIONS
        .iter()
        .map(|option| (distance(&name, option.name), option.name));
    let (distance, best) = ranked.min()?;
    (distance <= 1 + best.len() / 4).then_some(best)
}

/// How many letters must be put in, taken out or replaced to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The default of a setting as help and examples show it.
pub fn default_text(name: &str) -> String {
    match (name, params::find(name.as_bytes())) {
        ("workers", _) => "auto, one per core".into(),
        (_, Some(param)) => (param.get)(&Config::default()),
        (_, None) => String::new(),
    }
}

fn set_port(config: &mut Config, value: &str) -> Result<(), String> {
    config.port = integer(value, 0..=i64::from(u16::MAX))? as u16;
    Ok(())
}

fn set_bind(config: &mut Config, value: &str) -> Result<(), String> {
    let addresses: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    if addresses.iter().any(|address| address == "-") {
        return Err("an address is missing after '-'".into());
    }
    config.bind = addresses;
    Ok(())
}

fn set_unixsocket(config: &mut Config, value: &str) -> Result<(), String> {
    /// What the operating system has room for, its final zero aside.
    const LONGEST: usize = 107;
    if value.len() > LONGEST {
        return Err(format!(
            "the path of a Unix socket may have {LONGEST} bytes at most"
        ));
    }
    config.unixsocket = value.into();
    Ok(())
}

fn set_unixsocketperm(config: &mut Config, value: &str) -> Result<(), String> {
    let bits = u32::from_str_radix(value, 8)
        .ok()
        .filter(|bits| *bits <= 0o777);
    config.unixsocketperm = bits.ok_or("permission bits are octal, such as 700")?;
    Ok(())
}

fn set_backlog(config: &mut Config, value: &str) -> Result<(), String> {
    config.tcp_backlog = integer(value, 1..=i64::from(i32::MAX))? as u32;
    Ok(())
}

fn set_keepalive(config: &mut Config, value: &str) -> Result<(), String> {
    // The kernel counts in 16 bits.
    config.tcp_keepalive_s = integer(value, 0..=i64::from(i16::MAX))? as u64;
    Ok(())
}

fn set_workers(config: &mut Config, value: &str) -> Result<(), String> {
    config.workers = match value {
        "auto" => Config::default().workers,
        _ => integer(value, 1..=MAX_WORKERS as i64)? as usize,
    };
    Ok(())
}

fn set_pin(config: &mut Config, value: &str) -> Result<(), String> {
    config.pin = parse_yes_no(value)?;
    Ok(())
}

fn set_dir(config: &mut Config, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("the path is empty".into());
    }
    config.dir = value.into();
    Ok(())
}

fn set_log_format(config: &mut Config, value: &str) -> Result<(), String> {
    config.log_format = named(&LogFormat::ALL, value)?;
    Ok(())
}

fn set_logfile(config: &mut Config, value: &str) -> Result<(), String> {
    config.logfile = value.into();
    Ok(())
}

fn set_admin_port(config: &mut Config, value: &str) -> Result<(), String> {
    config.admin_port = integer(value, 0..=i64::from(u16::MAX))? as u16;
    Ok(())
}

fn set_admin_bind(config: &mut Config, value: &str) -> Result<(), String> {
    if value.trim().is_empty() {
        return Err("the address is empty; admin-port 0 switches metrics and health off".into());
    }
    config.admin_bind = value.trim().into();
    Ok(())
}
