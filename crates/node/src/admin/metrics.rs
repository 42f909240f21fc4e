//! What the node counts, as Prometheus text.
//!
//! What belongs to a worker is labelled with it, and Prometheus adds up; only
//! commands by name are added up here, because there are many of them.

use super::text::Exposition;
use super::{cluster, durability, replication};
use crate::process;
use rufous::runtime::{Handle, Snapshot, WorkerSnapshot};
use rufous_server::front::figures::{CommandFigures, WorkerFigures};
use rufous_server::front::shared::Shared;
use rufous_server::identity;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) type Figures = [Option<Arc<WorkerFigures>>];

/// The text. `round` is when the workers were asked last.
pub(super) fn render(node: &Handle, shared: &Shared, round: u64) -> String {
    process::update(shared, node);
    let mut out = Exposition::default();
    let stats = node.stats();
    let figures = shared.board.figures();
    of_node(&mut out, shared, &stats);
    of_process(&mut out, shared, node);
    let mut up = out.gauge(
        "rufous_worker_up",
        "Whether the worker answered when it was last asked.",
    );
    for worker in 0..shared.workers {
        up.sample(
            &[("worker", &worker)],
            u8::from(shared.board.has_answered(worker, round)),
        );
    }
    of_workers(&mut out, &stats);
    of_clients(&mut out, &figures);
    of_data(&mut out, &figures);
    replication::render(&mut out, &figures);
    durability::render(&mut out, shared, &figures);
    cluster::render(&mut out, shared, &figures);
    of_commands(&mut out, &figures);
    out.finish()
}

fn of_node(out: &mut Exposition, shared: &Shared, stats: &Snapshot) {
    out.gauge("rufous_build_info", "Always 1; what runs is in the labels.")
        .sample(
            &[
                ("version", &identity::VERSION),
                ("redis_version", &identity::REDIS_VERSION),
            ],
            1,
        );
    out.gauge("rufous_workers", "Worker threads.")
        .value(shared.workers);
    out.counter(
        "rufous_refused_clients_total",
        "Clients turned away because of maxclients.",
    )
    .value(stats.rejected);
    out.counter(
        "rufous_accept_errors_total",
        "Times that accepting failed, for want of files or memory.",
    )
    .value(stats.accept_errors);
    of_tls(out, shared, stats);
}

fn of_tls(out: &mut Exposition, shared: &Shared, stats: &Snapshot) {
    let process = &shared.process;
    out.counter(
        "rufous_tls_handshakes_total",
        "TLS handshakes that succeeded.",
    )
    .value(stats.handshakes);
    out.counter(
        "rufous_tls_handshake_errors_total",
        "TLS handshakes that did not succeed.",
    )
    .value(stats.handshake_errors);
    out.counter(
        "rufous_tls_certificate_loads_total",
        "Times that certificates were loaded.",
    )
    .value(process.tls_certificate_loads.load(Ordering::Relaxed));
    out.gauge(
        "rufous_tls_certificates_stale",
        "1 where the files of certificates have changed and cannot be used.",
    )
    .value(process.tls_certificates_stale.load(Ordering::Relaxed));
}

fn of_process(out: &mut Exposition, shared: &Shared, node: &Handle) {
    let process = &shared.process;
    out.gauge(
        "process_start_time_seconds",
        "When the node started, in seconds since 1970.",
    )
    .value(seconds(shared.started_unix_us));
    out.gauge("process_resident_memory_bytes", "Resident memory.")
        .value(process.rss_bytes.load(Ordering::Relaxed));
    let (user, system) = (
        process.cpu_user_us.load(Ordering::Relaxed),
        process.cpu_system_us.load(Ordering::Relaxed),
    );
    out.counter(
        "process_cpu_seconds_total",
        "Processor time, in the program and in the kernel.",
    )
    .value(seconds(user + system));
    if let Some(files) = process::open_files() {
        out.gauge("process_open_fds", "Open files, sockets included.")
            .value(files);
    }
    out.gauge("process_max_fds", "The most open files.")
        .value(node.fd_limit().now);
}

/// A figure of a worker's thread: name, meaning, value.
type Counted = (&'static str, &'static str, fn(&WorkerSnapshot) -> u64);

const COUNTED: [Counted; 11] = [
    (
        "rufous_connections_total",
        "Connections that the worker was given.",
        |w| w.connections_total,
    ),
    (
        "rufous_dropped_for_output_total",
        "Clients dropped because they did not take their replies.",
        |w| w.dropped_for_output,
    ),
    (
        "rufous_received_bytes_total",
        "Bytes read from clients.",
        |w| w.bytes_in,
    ),
    ("rufous_sent_bytes_total", "Bytes sent to clients.", |w| {
        w.bytes_out
    }),
    (
        "rufous_reads_total",
        "Reads from sockets that brought bytes.",
        |w| w.reads,
    ),
    (
        "rufous_sends_total",
        "Writes to sockets that took bytes.",
        |w| w.sends,
    ),
    ("rufous_turns_total", "Turns of the worker's loop.", |w| {
        w.turns
    }),
    (
        "rufous_ring_full_total",
        "Times that a ring to another worker was full.",
        |w| w.ring_full,
    ),
    (
        "rufous_wakes_total",
        "Other workers woken from sleep.",
        |w| w.wakes,
    ),
    (
        "rufous_messages_sent_total",
        "Messages to other workers.",
        |w| w.messages_sent,
    ),
    (
        "rufous_messages_received_total",
        "Messages from other workers.",
        |w| w.messages_received,
    ),
];

fn of_workers(out: &mut Exposition, stats: &Snapshot) {
    for (name, help, value) in COUNTED {
        let mut family = out.counter(name, help);
        for (worker, counted) in stats.workers.iter().enumerate() {
            family.sample(&[("worker", &worker)], value(counted));
        }
    }
    let mut time = out.counter(
        "rufous_worker_seconds_total",
        "Time in turns (busy) and between them (idle).",
    );
    for (worker, counted) in stats.workers.iter().enumerate() {
        time.sample(
            &[("worker", &worker), ("state", &"busy")],
            seconds(counted.busy_us),
        );
        time.sample(
            &[("worker", &worker), ("state", &"idle")],
            seconds(counted.idle_us),
        );
    }
    let mut waiting = out.gauge(
        "rufous_overflow_peak_messages",
        "The most messages that ever waited for room in a ring.",
    );
    for (worker, counted) in stats.workers.iter().enumerate() {
        waiting.sample(&[("worker", &worker)], counted.overflow_peak);
    }
}

pub(super) fn known(figures: &Figures) -> impl Iterator<Item = (usize, &WorkerFigures)> {
    figures
        .iter()
        .enumerate()
        .filter_map(|(worker, figures)| Some((worker, figures.as_deref()?)))
}

fn of_clients(out: &mut Exposition, figures: &Figures) {
    let mut family = out.gauge("rufous_clients", "Clients that are connected.");
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.clients);
    }
    let mut family = out.gauge("rufous_blocked_clients", "Clients that wait for data.");
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.blocked);
    }
    let mut family = out.gauge(
        "rufous_open_transactions",
        "Transactions that BEGIN has begun and that have not ended.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.open_transactions);
    }
    let mut family = out.counter(
        "rufous_transactions_committed_total",
        "Transactions that ended with COMMIT.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.counters.transactions_committed);
    }
    let mut family = out.counter(
        "rufous_transactions_rolled_back_total",
        "Transactions that ended otherwise.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.counters.transactions_rolled_back);
    }
    let mut family = out.counter(
        "rufous_protected_mode_refusals_total",
        "Clients that protected mode turned away.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.counters.rejected_connections);
    }
    let mut family = out.counter("rufous_auth_failures_total", "Wrong passwords.");
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.counters.auth_failures);
    }
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (prefix, count) in known(figures).flat_map(|(_, of)| &of.counters.errors) {
        *errors.entry(prefix).or_default() += count;
    }
    let mut family = out.counter(
        "rufous_error_replies_total",
        "Error replies by their first word.",
    );
    for (prefix, count) in errors {
        family.sample(&[("error", &prefix)], count);
    }
}

fn of_data(out: &mut Exposition, figures: &Figures) {
    let mut by_db = |name: &str, help: &str, of: fn(&WorkerFigures, usize) -> usize| {
        let mut family = out.gauge(name, help);
        for (worker, figures) in known(figures) {
            // Databases that nobody uses would be most of the text.
            let used = figures
                .keys
                .iter()
                .enumerate()
                .filter(|(db, keys)| *db == 0 || **keys > 0);
            for (db, _) in used {
                family.sample(&[("worker", &worker), ("db", &db)], of(figures, db));
            }
        }
    };
    by_db("rufous_keys", "Keys by database.", |figures, db| {
        figures.keys[db]
    });
    by_db(
        "rufous_expiring_keys",
        "Keys that expire at some time, by database.",
        |figures, db| figures.expiring[db],
    );
    let mut family = out.gauge(
        "rufous_memory_bytes",
        "Memory of the data, by what it is for.",
    );
    for (worker, of) in known(figures) {
        let memory = of.memory;
        let kinds = [
            ("index", memory.index_bytes),
            ("records", memory.record_bytes),
            (
                "records_free",
                memory.arena_bytes.saturating_sub(memory.record_bytes),
            ),
            ("large_values", memory.big_bytes),
            ("expiry", memory.expiry_bytes),
            ("graves", memory.grave_bytes),
            ("held_at_start", memory.held_bytes),
        ];
        for (kind, bytes) in kinds {
            family.sample(&[("worker", &worker), ("kind", &kind)], bytes);
        }
    }
    of_keys_gone(out, figures);
    let mut family = out.counter("rufous_keyspace_hits_total", "Reads that found their key.");
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.shard.hits);
    }
    let mut family = out.counter(
        "rufous_keyspace_misses_total",
        "Reads that did not find their key.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.shard.misses);
    }
    let mut family = out.counter(
        "rufous_compacted_records_total",
        "Records moved to give memory back.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.shard.compacted);
    }
}

/// Keys that nobody deleted, and commands that the memory limit refused.
fn of_keys_gone(out: &mut Exposition, figures: &Figures) {
    let mut family = out.counter(
        "rufous_expired_keys_total",
        "Keys removed because their time had come.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.shard.expired);
    }
    let mut family = out.counter(
        "rufous_evicted_keys_total",
        "Keys removed because of maxmemory.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.evictions.evicted);
    }
    let mut family = out.counter(
        "rufous_out_of_memory_total",
        "Commands refused because of maxmemory.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], of.evictions.refused);
    }
}

fn of_commands(out: &mut Exposition, figures: &Figures) {
    let mut family = out.counter(
        "rufous_worker_commands_total",
        "Commands that the worker ran.",
    );
    for (worker, of) in known(figures) {
        family.sample(
            &[("worker", &worker)],
            of.commands.iter().map(|command| command.calls).sum::<u64>(),
        );
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
    let mut family = out.counter("rufous_commands_total", "Commands that ran, by name.");
    for (name, of) in &commands {
        family.sample(&[("command", name)], of.calls);
    }
    let mut family = out.counter(
        "rufous_command_seconds_total",
        "Time that commands took, by name.",
    );
    for (name, of) in &commands {
        family.sample(&[("command", name)], seconds(of.usec));
    }
    let mut family = out.counter(
        "rufous_command_errors_total",
        "Commands refused before they ran, or answered with an error.",
    );
    for (name, of) in &commands {
        family.sample(&[("command", name), ("reason", &"rejected")], of.rejected);
        family.sample(&[("command", name), ("reason", &"failed")], of.failed);
    }
}

/// Microseconds as seconds.
pub(super) fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
