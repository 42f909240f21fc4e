//! The sections of `INFO`. A field that Redis has and that means nothing here
//! is left out, unless tools need it and its value is known (no replica, no
//! snapshot under way).

use super::super::memory::{percent, rss};
use super::figures::Figures;
use super::{cluster, keyspaces, persistence};
use crate::front::local::Local;
use crate::identity;
use rufous_base::Now;
use rufous_kernel::stats::{CommandStats, LATENCY_BUCKETS};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Section {
    pub(super) name: &'static str,
    /// Shown by `INFO` without arguments.
    pub(super) by_default: bool,
    pub(super) write: fn(&mut String, &Local<'_>, &Figures, Now),
}

const fn section(
    name: &'static str,
    by_default: bool,
    write: fn(&mut String, &Local<'_>, &Figures, Now),
) -> Section {
    Section {
        name,
        by_default,
        write,
    }
}

pub(super) static SECTIONS: &[Section] = &[
    section("Server", true, server),
    section("Clients", true, clients),
    section("Memory", true, memory),
    section("Persistence", true, persistence::write),
    section("Stats", true, stats),
    section("Replication", true, replication),
    section("CPU", true, cpu),
    section("Modules", true, |_, _, _, _| {}),
    section("Commandstats", false, commandstats),
    section("Errorstats", true, errorstats),
    section("Latencystats", false, latencystats),
    section("Cluster", true, cluster::write),
    section("Keyspaces", false, keyspaces::write),
    section("Keyspace", true, keyspace),
];

pub(crate) fn field(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, "{name}:{value}\r\n");
}

fn load(figure: &AtomicU64) -> u64 {
    figure.load(Ordering::Relaxed)
}

fn server(out: &mut String, local: &Local<'_>, _: &Figures, now: Now) {
    let shared = local.shared();
    let uptime_s = now.unix_us.saturating_sub(shared.started_unix_us) / 1_000_000;
    field(out, "redis_version", identity::REDIS_VERSION);
    field(out, "server_name", identity::NAME);
    field(out, "rufous_version", identity::VERSION);
    field(out, "redis_git_sha1", "00000000");
    field(out, "redis_git_dirty", 0);
    field(out, "redis_mode", "standalone");
    field(
        out,
        "os",
        format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    );
    field(out, "arch_bits", usize::BITS);
    field(out, "multiplexing_api", "epoll");
    field(out, "process_id", load(&shared.process.pid));
    field(out, "run_id", &shared.run_id);
    field(out, "tcp_port", shared.port);
    field(out, "tls_port", local.config().tls.port);
    field(out, "server_time_usec", now.unix_us);
    field(out, "uptime_in_seconds", uptime_s);
    field(out, "uptime_in_days", uptime_s / 86_400);
    field(out, "hz", 10);
    field(out, "configured_hz", 10);
    field(out, "lru_clock", now.unix_s() & 0xFF_FFFF);
    field(out, "config_file", "");
    field(out, "worker_threads", shared.workers);
}

fn clients(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    field(out, "connected_clients", all.clients);
    field(out, "cluster_connections", 0);
    field(out, "maxclients", local.config().maxclients);
    field(out, "client_recent_max_input_buffer", all.longest_input);
    field(out, "client_recent_max_output_buffer", all.longest_output);
    field(out, "blocked_clients", all.blocked + all.paused);
    field(out, "paused_clients", all.paused);
    field(out, "tracking_clients", 0);
    field(out, "watching_clients", all.watching);
    field(out, "total_watched_keys", all.watched);
    field(out, "clients_in_timeout_table", all.in_time);
    field(out, "total_blocking_keys", all.awaited);
    field(out, "total_blocking_keys_on_nokey", 0);
}

/// A number of bytes for people to read.
fn human(bytes: usize) -> String {
    let units = [
        (1u64 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "K"),
    ];
    match units.into_iter().find(|(unit, _)| bytes as u64 >= *unit) {
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / unit as f64),
        None => format!("{bytes}B"),
    }
}

fn memory(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    let used = all.memory.total();
    let rss = rss(local);
    let peak = local.shared().memory_peak().max(used);
    let system = load(&local.shared().process.system_memory_bytes) as usize;
    let sizes = [
        ("used_memory", used),
        ("used_memory_rss", rss),
        ("used_memory_peak", peak),
        ("total_system_memory", system),
        ("maxmemory", local.config().maxmemory as usize),
    ];
    for (name, bytes) in sizes {
        field(out, name, bytes);
        field(out, &format!("{name}_human"), human(bytes));
    }
    field(
        out,
        "used_memory_peak_perc",
        format_args!("{:.2}%", percent(used, peak)),
    );
    field(
        out,
        "used_memory_rss_peak",
        load(&local.shared().process.peak_rss_bytes),
    );
    field(out, "used_memory_overhead", all.memory.overhead());
    field(out, "used_memory_startup", 0);
    field(out, "used_memory_dataset", all.memory.dataset());
    let share = percent(all.memory.dataset(), used);
    field(out, "used_memory_dataset_perc", format_args!("{share:.2}%"));
    field(out, "used_memory_index", all.memory.data.index_bytes);
    field(out, "used_memory_records", all.memory.data.arena_bytes);
    field(out, "used_memory_expiry", all.memory.data.expiry_bytes);
    field(out, "used_memory_graves", all.memory.data.grave_bytes);
    field(out, "used_memory_held_at_start", all.memory.data.held_bytes);
    field(
        out,
        "maxmemory_policy",
        local.config().maxmemory_policy.name(),
    );
    let ratio = if used == 0 {
        0.0
    } else {
        rss as f64 / used as f64
    };
    field(out, "mem_fragmentation_ratio", format_args!("{ratio:.2}"));
    field(out, "mem_fragmentation_bytes", rss as i64 - used as i64);
    field(out, "mem_not_counted_for_evict", used - all.memory.charged);
    field(out, "mem_replication_backlog", 0);
    field(out, "mem_total_replication_buffers", 0);
    field(out, "mem_clients_slaves", 0);
    field(out, "mem_clients_normal", all.memory.clients);
    field(out, "mem_cluster_links", 0);
    field(out, "mem_aof_buffer", all.persistence.aof_pending_bytes);
    field(out, "mem_allocator", "mimalloc");
}

fn stats(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    let process = &local.shared().process;
    let commands: u64 = all.commands.iter().map(|c| c.calls).sum();
    let refused = all.counters.rejected_connections + load(&process.rejected_connections);
    field(out, "total_connections_received", all.counters.connections);
    field(out, "total_commands_processed", commands);
    field(out, "instantaneous_ops_per_sec", all.per_second);
    field(out, "total_net_input_bytes", load(&process.net_input_bytes));
    field(
        out,
        "total_net_output_bytes",
        load(&process.net_output_bytes),
    );
    field(out, "rejected_connections", refused);
    field(out, "tls_handshakes", load(&process.tls_handshakes));
    field(
        out,
        "tls_handshake_errors",
        load(&process.tls_handshake_errors),
    );
    field(
        out,
        "tls_certificate_loads",
        load(&process.tls_certificate_loads),
    );
    field(
        out,
        "tls_certificates_stale",
        load(&process.tls_certificates_stale),
    );
    field(out, "sync_full", 0);
    field(out, "sync_partial_ok", 0);
    field(out, "sync_partial_err", 0);
    field(out, "expired_keys", all.expired);
    field(out, "evicted_keys", all.evicted);
    field(out, "evicted_lattice_keys", all.retired);
    field(out, "evicted_clients", 0);
    field(out, "keyspace_hits", all.hits);
    field(out, "keyspace_misses", all.misses);
    field(out, "pubsub_channels", 0);
    field(out, "pubsub_patterns", 0);
    field(out, "pubsubshard_channels", 0);
    field(out, "latest_fork_usec", 0);
    field(out, "total_forks", 0);
    field(out, "total_error_replies", all.counters.error_replies);
    field(out, "acl_access_denied_auth", all.counters.auth_failures);
    field(out, "auth_attempts_delayed", all.counters.auth_delayed);
    field(out, "auth_attempts_refused", all.counters.auth_refused);
}

fn replication(out: &mut String, local: &Local<'_>, _: &Figures, _: Now) {
    field(out, "role", "master");
    field(out, "connected_slaves", 0);
    field(out, "master_failover_state", "no-failover");
    field(out, "master_replid", &local.shared().run_id);
    field(out, "master_replid2", "0".repeat(40));
    field(out, "master_repl_offset", 0);
    field(out, "second_repl_offset", -1);
    field(out, "repl_backlog_active", 0);
    field(out, "repl_backlog_size", 0);
    field(out, "repl_backlog_first_byte_offset", 0);
    field(out, "repl_backlog_histlen", 0);
}

fn cpu(out: &mut String, local: &Local<'_>, _: &Figures, _: Now) {
    let seconds = |us: &AtomicU64| format!("{:.6}", load(us) as f64 / 1e6);
    field(
        out,
        "used_cpu_sys",
        seconds(&local.shared().process.cpu_system_us),
    );
    field(
        out,
        "used_cpu_user",
        seconds(&local.shared().process.cpu_user_us),
    );
    field(out, "used_cpu_sys_children", "0.000000");
    field(out, "used_cpu_user_children", "0.000000");
}

fn commandstats(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    for (id, spec) in local.table().specs() {
        let Some(stats) = all.commands.get(usize::from(id)) else {
            continue;
        };
        if stats.calls == 0 && stats.rejected == 0 && stats.failed == 0 {
            continue;
        }
        let usec = stats.usec();
        let per_call = if stats.calls == 0 {
            0.0
        } else {
            usec as f64 / stats.calls as f64
        };
        let _ = write!(
            out,
            "cmdstat_{}:calls={},usec={usec},usec_per_call={per_call:.2},rejected_calls={},failed_calls={}\r\n",
            spec.name, stats.calls, stats.rejected, stats.failed
        );
    }
}

fn errorstats(out: &mut String, _: &Local<'_>, all: &Figures, _: Now) {
    for (prefix, count) in &all.counters.errors {
        let _ = write!(out, "errorstat_{prefix}:count={count}\r\n");
    }
}

fn latencystats(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    for (id, spec) in local.table().specs() {
        let Some(stats) = all.commands.get(usize::from(id)).filter(|s| s.calls > 0) else {
            continue;
        };
        let Some(buckets) = stats.latency.as_deref() else {
            continue;
        };
        let at = |share: f64| quantile_us(buckets, stats, share);
        let _ = write!(
            out,
            "latency_percentiles_usec_{}:p50={:.3},p99={:.3},p99.9={:.3}\r\n",
            spec.name,
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
}

/// The end of the bucket in which the call lies that so large a share of the
/// calls did not exceed: within a factor of two of the truth.
fn quantile_us(buckets: &[u64; LATENCY_BUCKETS], stats: &CommandStats, share: f64) -> f64 {
    let rank = ((stats.calls as f64 * share).ceil() as u64).max(1);
    let mut below = 0;
    let bucket = buckets.iter().position(|count| {
        below += count;
        below >= rank
    });
    (1u64 << bucket.unwrap_or(LATENCY_BUCKETS - 1)) as f64 * 1.024
}

fn keyspace(out: &mut String, _: &Local<'_>, all: &Figures, _: Now) {
    for (number, db) in all
        .keyspace
        .iter()
        .enumerate()
        .filter(|(_, db)| db.keys > 0)
    {
        let _ = write!(
            out,
            "db{number}:keys={},expires={},avg_ttl={}\r\n",
            db.keys, db.expires, db.avg_ttl
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        let check = |bytes, text: &str| assert_eq!(human(bytes), text);
        check(0, "0B");
        check(1023, "1023B");
        check(1024, "1.00K");
        check(916_416, "894.94K");
        check(25_276_510_208, "23.54G");
    }

    #[test]
    fn quantiles() {
        let mut stats = CommandStats::default();
        stats.record(98, 500);
        stats.record(1, 3_000);
        stats.record(1, 1_000_000);
        let buckets = stats.latency.clone().unwrap_or_default();
        let at = |share| quantile_us(&buckets, &stats, share);
        assert_eq!((at(0.5), at(0.99), at(0.999)), (1.024, 4.096, 1048.576));
    }
}
