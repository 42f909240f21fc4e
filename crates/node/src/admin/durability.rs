//! Metrics of logs and snapshots.

use super::metrics::{Figures, known, seconds};
use super::text::Exposition;
use rufous_server::front::persistence::PersistenceInfo;
use rufous_server::front::shared::Shared;

/// A figure of a worker: name, meaning, value.
type Figure = (&'static str, &'static str, fn(&PersistenceInfo) -> u64);

const COUNTERS: [Figure; 6] = [
    (
        "rufous_log_frames_total",
        "Frames of changes that the worker logged.",
        |info| info.frames,
    ),
    (
        "rufous_log_bytes_total",
        "Bytes that the worker logged.",
        |info| info.logged_bytes,
    ),
    (
        "rufous_log_writes_total",
        "Writes to the worker's log that succeeded.",
        |info| info.writes,
    ),
    (
        "rufous_log_syncs_total",
        "Syncs of the worker's log that succeeded.",
        |info| info.syncs,
    ),
    (
        "rufous_log_errors_total",
        "Writes and syncs of the worker's log that failed.",
        |info| info.errors,
    ),
    (
        "rufous_snapshot_keys_ahead_total",
        "Keys captured ahead of a change while a snapshot was under way.",
        |info| info.snapshot_keys_ahead,
    ),
];

const GAUGES: [Figure; 9] = [
    (
        "rufous_log_enabled",
        "Whether changes are logged.",
        |info| u64::from(info.aof_enabled),
    ),
    (
        "rufous_log_failing",
        "Whether the last write or sync of the log failed, and writes are refused.",
        |info| u64::from(info.aof_last_error.is_some()),
    ),
    (
        "rufous_log_size_bytes",
        "Bytes of logs that a restart would read.",
        |info| info.aof_current_size,
    ),
    (
        "rufous_log_pending_bytes",
        "Bytes of changes that are not written yet.",
        |info| info.aof_pending_bytes,
    ),
    (
        "rufous_log_unsynced_bytes",
        "Bytes written that no sync has covered yet.",
        |info| info.aof_unsynced_bytes,
    ),
    (
        "rufous_changes_since_snapshot",
        "Changes since the last snapshot.",
        |info| info.changes_since_last_save,
    ),
    (
        "rufous_snapshot_keys_done",
        "Keys of the snapshot under way that are written.",
        |info| info.snapshot_keys_done,
    ),
    (
        "rufous_loaded_keys",
        "Keys that the last start loaded.",
        |info| info.loaded_keys,
    ),
    (
        "rufous_load_cut_bytes",
        "Bytes of a torn end of the log that the last start cut off.",
        |info| info.cut_bytes,
    ),
];

pub(super) fn render(out: &mut Exposition, shared: &Shared, figures: &Figures) {
    for (name, help, value) in COUNTERS {
        let mut family = out.counter(name, help);
        for (worker, of) in known(figures) {
            family.sample(&[("worker", &worker)], value(&of.persistence));
        }
    }
    let mut family = out.counter(
        "rufous_log_sync_seconds_total",
        "Time that syncs of the worker's log took.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], seconds(of.persistence.sync_us));
    }
    for (name, help, value) in GAUGES {
        let mut family = out.gauge(name, help);
        for (worker, of) in known(figures) {
            family.sample(&[("worker", &worker)], value(&of.persistence));
        }
    }
    let mut family = out.gauge(
        "rufous_load_seconds",
        "How long the last start loaded data.",
    );
    for (worker, of) in known(figures) {
        family.sample(&[("worker", &worker)], seconds(of.persistence.load_us));
    }
    of_node(out, shared, figures);
}

fn of_node(out: &mut Exposition, shared: &Shared, figures: &Figures) {
    let mut all = PersistenceInfo::default();
    known(figures).for_each(|(_, of)| all.merge(&of.persistence));
    let node = all.node;
    out.gauge(
        "rufous_loading",
        "Whether data is loaded still and clients are not served.",
    )
    .value(u8::from(shared.loading.is_loading()));
    out.gauge("rufous_loading_percent", "How much of the data is loaded.")
        .value(shared.loading.percent());
    out.gauge(
        "rufous_snapshot_generation",
        "The generation of the last snapshot.",
    )
    .value(node.generation);
    out.gauge(
        "rufous_snapshot_in_progress",
        "Whether a snapshot is under way.",
    )
    .value(u8::from(node.in_progress));
    out.gauge(
        "rufous_snapshot_failed",
        "Whether the last snapshot failed.",
    )
    .value(u8::from(node.last_save_failed || node.last_rewrite_failed));
    out.gauge(
        "rufous_last_snapshot_time_seconds",
        "When the last snapshot was taken, or the node started, in seconds since 1970.",
    )
    .value(node.last_save_time_s);
    out.counter("rufous_snapshots_total", "Snapshots taken since the start.")
        .value(node.saves + node.rewrites);
    out.counter(
        "rufous_snapshot_failures_total",
        "Snapshots that failed since the start.",
    )
    .value(node.failures);
    out.gauge(
        "rufous_earlier_saves",
        "Earlier saves that are kept to go back to.",
    )
    .value(node.kept);
    out.gauge("rufous_backup_pins", "Backups that keep files in place.")
        .value(node.pins);
}
