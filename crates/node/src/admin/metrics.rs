//! `/metrics`: what the node counts, as Prometheus text.
//!
//! Samples of a worker carry its number as a label, and Prometheus adds them up; only commands
//! and errors by name are added up here, because there are many of them.

use super::tables::{
    CLUSTER, COORDINATOR, Metric, PROCESS, SNAPSHOTS, THREAD, WORKER, WORKER_TIMES,
};
use super::text::Exposition;
use crate::process;
use rufous::runtime::{Handle, Snapshot};
use rufous_base::figures::Figure;
use rufous_kernel::replicate::gossip::Figures as Gossip;
use rufous_kernel::worker::{ChainFigures, LinearFigures};
use rufous_server::cluster::Cluster;
use rufous_server::cluster::figures::{Figures as Peers, ForwardFigures, WaitFigures};
use rufous_server::front::figures::{CommandFigures, WorkerFigures};
use rufous_server::front::persistence::PersistenceInfo;
use rufous_server::front::shared::Shared;
use rufous_server::identity;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Figures = [Option<Arc<WorkerFigures>>];

/// The text. `round` is the last round in which the workers were asked.
pub(super) fn render(node: &Handle, shared: &Shared, round: u64) -> String {
    collect(node, shared, round).finish()
}

pub(super) fn collect(node: &Handle, shared: &Shared, round: u64) -> Exposition {
    process::update(shared, node);
    let mut out = Exposition::default();
    let stats = node.stats();
    let figures = shared.board.figures();
    of_process(&mut out, shared, node, &stats);
    let mut up = out.family(
        "rufous_worker_up",
        &["worker"],
        "1 if the worker answered when it was last asked.",
    );
    for worker in 0..shared.workers {
        let answered = shared.board.has_answered(worker, round);
        up.sample(&[&worker], u8::from(answered));
    }
    of_threads(&mut out, &stats);
    by_worker(&mut out, WORKER, &figures, |figures, value| value(figures));
    of_workers(&mut out, &figures);
    of_snapshots(&mut out, shared, &figures);
    if let Some(cluster) = &shared.cluster {
        of_cluster(&mut out, cluster, &figures);
    }
    of_commands(&mut out, &figures);
    out
}

/// A sample of each metric of a table.
fn of_table<T>(out: &mut Exposition, table: &[Metric<T>], from: &T) {
    for (name, help, value) in table {
        out.family(name, &[], help).value(value(from));
    }
}

/// A sample of each counter that is a metric.
fn of_figures<T>(out: &mut Exposition, list: &[Figure<T>], from: &T) {
    for figure in list {
        if let Some(name) = figure.metric {
            out.family(name, &[], figure.help)
                .value((figure.read)(from));
        }
    }
}

/// A sample per worker of each metric of a table.
fn by_worker<T, V: std::fmt::Display>(
    out: &mut Exposition,
    table: &[Metric<T>],
    figures: &Figures,
    value: impl Fn(&WorkerFigures, fn(&T) -> u64) -> V,
) {
    for (name, help, read) in table {
        let mut family = out.family(name, &["worker"], help);
        for (worker, of) in known(figures) {
            family.sample(&[&worker], value(of, *read));
        }
    }
}

fn known(figures: &Figures) -> impl Iterator<Item = (usize, &WorkerFigures)> {
    figures
        .iter()
        .enumerate()
        .filter_map(|(worker, figures)| Some((worker, figures.as_deref()?)))
}

fn of_process(out: &mut Exposition, shared: &Shared, node: &Handle, stats: &Snapshot) {
    out.family(
        "rufous_build_info",
        &["version", "redis_version"],
        "Always 1; the labels name the versions.",
    )
    .sample(&[&identity::VERSION, &identity::REDIS_VERSION], 1);
    out.family("rufous_workers", &[], "Worker threads.")
        .value(shared.workers);
    out.family(
        "rufous_accept_errors_total",
        &[],
        "Times that accepting a connection failed, for lack of file descriptors or memory.",
    )
    .value(stats.accept_errors);
    let process = &shared.process;
    of_table(out, PROCESS, process);
    out.family(
        "process_start_time_seconds",
        &[],
        "Unix time of the start of the node.",
    )
    .value(seconds(shared.started_unix_us));
    let load = |time: &std::sync::atomic::AtomicU64| time.load(Ordering::Relaxed);
    out.family(
        "process_cpu_seconds_total",
        &[],
        "Processor time, user and system.",
    )
    .value(seconds(
        load(&process.cpu_user_us) + load(&process.cpu_system_us),
    ));
    if let Some(files) = process::open_files() {
        out.family("process_open_fds", &[], "Open file descriptors.")
            .value(files);
    }
    out.family("process_max_fds", &[], "Limit of open file descriptors.")
        .value(node.fd_limit().now);
}

fn of_threads(out: &mut Exposition, stats: &Snapshot) {
    for (name, help, value) in THREAD {
        let mut family = out.family(name, &["worker"], help);
        for (worker, counted) in stats.workers.iter().enumerate() {
            family.sample(&[&worker], value(counted));
        }
    }
    let mut time = out.family(
        "rufous_worker_seconds_total",
        &["worker", "state"],
        "Time in turns (busy) and between them (idle).",
    );
    for (worker, counted) in stats.workers.iter().enumerate() {
        time.sample(&[&worker, &"busy"], seconds(counted.busy_us));
        time.sample(&[&worker, &"idle"], seconds(counted.idle_us));
    }
}

/// Families with more labels than the worker.
fn of_workers(out: &mut Exposition, figures: &Figures) {
    let mut by_db = |name, help, of: fn(&WorkerFigures, usize) -> usize| {
        let mut family = out.family(name, &["worker", "db"], help);
        for (worker, figures) in known(figures) {
            // Empty databases would be most of the text.
            let databases = figures.keys.iter().enumerate();
            for (db, _) in databases.filter(|(db, keys)| *db == 0 || **keys > 0) {
                family.sample(&[&worker, &db], of(figures, db));
            }
        }
    };
    by_db("rufous_keys", "Keys by database.", |of, db| of.keys[db]);
    by_db(
        "rufous_expiring_keys",
        "Keys with an expiry, by database.",
        |of, db| of.expiring[db],
    );
    let mut family = out.family(
        "rufous_memory_bytes",
        &["worker", "kind"],
        "Memory of the data, by purpose.",
    );
    for (worker, of) in known(figures) {
        let memory = of.memory;
        let free = memory.arena_bytes.saturating_sub(memory.record_bytes);
        for (kind, bytes) in [
            ("index", memory.index_bytes),
            ("records", memory.record_bytes),
            ("records_free", free),
            ("large_values", memory.big_bytes),
            ("expiry", memory.expiry_bytes),
            ("graves", memory.grave_bytes),
            ("held_at_start", memory.held_bytes),
        ] {
            family.sample(&[&worker, &kind], bytes);
        }
    }
    by_worker(out, WORKER_TIMES, figures, |of, value| {
        seconds(value(&of.persistence))
    });
}

fn of_snapshots(out: &mut Exposition, shared: &Shared, figures: &Figures) {
    out.family(
        "rufous_loading",
        &[],
        "1 while data is loaded and clients are not served.",
    )
    .value(u8::from(shared.loading.is_loading()));
    out.family(
        "rufous_loading_percent",
        &[],
        "Percentage of the data that is loaded.",
    )
    .value(shared.loading.percent());
    let mut all = PersistenceInfo::default();
    known(figures).for_each(|(_, of)| all.merge(&of.persistence));
    of_table(out, SNAPSHOTS, &all.node);
}

fn of_cluster(out: &mut Exposition, cluster: &Cluster, figures: &Figures) {
    let mut all = Peers::default();
    for peers in known(figures).filter_map(|(_, worker)| worker.peers.clone()) {
        all.merge(peers);
    }
    of_table(out, COORDINATOR, &cluster.shown.seen());
    of_table(out, CLUSTER, &all);
    of_figures(out, ChainFigures::FIGURES, &all.chains);
    of_figures(out, LinearFigures::FIGURES, &all.transactions);
    of_figures(out, WaitFigures::FIGURES, &all.waits);
    of_figures(out, Gossip::FIGURES, &all.gossip.gossip);
    of_figures(out, ForwardFigures::FIGURES, &all.forward);
    let mut lags = out.family(
        "rufous_gossip_lag_microseconds",
        &["node"],
        "Known lag of another node behind this one; no sample until it has answered.",
    );
    for (node, lag) in &all.gossip.lags_us {
        if let Some(us) = lag {
            lags.sample(&[node], *us);
        }
    }
    let mut refused = out.family(
        "rufous_peer_refused_total",
        &["reason"],
        "Sessions refused by this node, by the code of the reason (docs/format/wire.md).",
    );
    for (reason, count) in &all.refused {
        refused.sample(&[reason], *count);
    }
    let nodes = all.by_node();
    let mut versions = out.family(
        "rufous_peer_wire_version",
        &["node"],
        "Version of the messages between this node and another one.",
    );
    for (no, peer) in &nodes {
        versions.sample(&[&no.0], peer.version);
    }
    let clocks = nodes
        .iter()
        .filter_map(|(no, peer)| Some((no.0, peer.clock?)));
    let clocks: Vec<_> = clocks.collect();
    let mut offsets = out.family(
        "rufous_peer_clock_offset_microseconds",
        &["node"],
        "How far another node's clock is ahead; no sample until it has answered.",
    );
    for (node, clock) in &clocks {
        offsets.sample(&[node], clock.us);
    }
    let mut within = out.family(
        "rufous_peer_clock_within_microseconds",
        &["node"],
        "Maximum error of that offset: half the round-trip time.",
    );
    for (node, clock) in &clocks {
        within.sample(&[node], clock.within_us);
    }
}

fn of_commands(out: &mut Exposition, figures: &Figures) {
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (prefix, count) in known(figures).flat_map(|(_, of)| &of.counters.errors) {
        *errors.entry(prefix).or_default() += count;
    }
    let mut family = out.family(
        "rufous_error_replies_total",
        &["error"],
        "Error replies, by error code.",
    );
    for (prefix, count) in errors {
        family.sample(&[&prefix], count);
    }
    let mut commands: BTreeMap<&str, CommandFigures> = BTreeMap::new();
    for command in known(figures).flat_map(|(_, of)| &of.commands) {
        let zero = CommandFigures {
            name: command.name,
            calls: 0,
            usec: 0,
            rejected: 0,
            failed: 0,
        };
        let sum = commands.entry(command.name).or_insert(zero);
        sum.calls += command.calls;
        sum.usec += command.usec;
        sum.rejected += command.rejected;
        sum.failed += command.failed;
    }
    let mut family = out.family(
        "rufous_commands_total",
        &["command"],
        "Commands executed, by name.",
    );
    for (name, of) in &commands {
        family.sample(&[name], of.calls);
    }
    let mut family = out.family(
        "rufous_command_seconds_total",
        &["command"],
        "Execution time of commands, by name.",
    );
    for (name, of) in &commands {
        family.sample(&[name], seconds(of.usec));
    }
    let mut family = out.family(
        "rufous_command_errors_total",
        &["command", "reason"],
        "Commands refused before they were executed (rejected), or answered with an error (failed).",
    );
    for (name, of) in &commands {
        family.sample(&[name, &"rejected"], of.rejected);
        family.sample(&[name, &"failed"], of.failed);
    }
}

/// Microseconds as seconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
