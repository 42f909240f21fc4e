//! What commands, metrics and the process log say of durability; and what the kernel is told of the
//! settings.

use super::orders::{Pinned, SaveAnswer};
use super::persistence::PersistenceInfo;
use crate::config::{AppendFsync, Config};
use rufous_base::Now;
use rufous_kernel::durable::keeper::{self, Purpose, Schedule};
use rufous_kernel::durable::{Bounds, Fsync, Loaded};
use rufous_kernel::worker::{DurableSettings, LogState, SaveRefused};
use rufous_kernel::{Program, Unwritable, Worker};

/// The settings that the kernel needs.
pub(super) fn settings(config: &Config) -> DurableSettings {
    DurableSettings {
        log: config.appendonly,
        fsync: match config.appendfsync {
            AppendFsync::Always => Fsync::Always,
            AppendFsync::Everysec => Fsync::EverySec,
            AppendFsync::No => Fsync::No,
        },
        bounds: Bounds {
            bytes: config.appendfsync_max_bytes,
            us: config.appendfsync_max_ms * 1000,
        },
        segment_bytes: config.log_segment_size,
        schedule: Schedule {
            points: config.save.iter().map(|p| (p.seconds, p.changes)).collect(),
            rewrite_percentage: config.auto_aof_rewrite_percentage,
            rewrite_min_bytes: config.auto_aof_rewrite_min_size,
            retention: config.snapshot_retention,
        },
        stop_on_save_error: config.stop_writes_on_bgsave_error,
    }
}

/// Counts what a partition had, and logs what was cut from it.
pub(super) fn note_loaded(info: &mut PersistenceInfo, worker: u16, loaded: &Loaded) {
    info.loaded_keys += loaded.keys;
    info.loaded_frames += loaded.frames;
    if let Some(torn) = &loaded.torn {
        info.cut_bytes += torn.bytes;
        tracing::warn!(
            worker,
            file = &*torn.file,
            offset = torn.offset,
            bytes = torn.bytes,
            frames = torn.frames,
            "the log ended with an incomplete write ({}), which was truncated",
            torn.why
        );
    }
    let (frames, bytes) = loaded.cut;
    if bytes > 0 {
        info.cut_bytes += bytes;
        tracing::warn!(
            worker,
            frames,
            bytes,
            "cut from the log: it followed a command of which another worker's log lost its part"
        );
    }
    if loaded.skipped > 0 {
        tracing::info!(
            worker,
            commands = loaded.skipped,
            "commands over several workers were under way when the node ended, and did not happen"
        );
    }
    tracing::info!(
        worker,
        keys_of_snapshot = loaded.keys,
        frames_of_log = loaded.frames,
        ms = info.load_us / 1000,
        "loaded"
    );
}

/// Fills in what the kernel knows.
pub(super) fn fill(info: &mut PersistenceInfo, kernel: &Worker<impl Program>) {
    let figures = kernel.durable_figures();
    let log = figures.log;
    info.aof_enabled = figures.log_state == LogState::On;
    info.aof_switching = !matches!(figures.log_state, LogState::On | LogState::Off);
    info.node.logs = info.aof_enabled;
    info.node.switches_log = info.aof_switching;
    if let Some(keeper) = kernel.keeper() {
        info.node.in_progress = keeper.is_snapshotting();
        info.node.is_rewrite = keeper.status.purpose == Purpose::Rewrite;
        info.node.began_unix_us = keeper.status.began.unix_us;
    }
    info.changes_since_last_save = figures.changes_since_save;
    info.snapshot_keys_done = figures.snapshot_keys_done;
    info.snapshot_keys_total = figures.snapshot_keys_total;
    info.snapshot_bytes = figures.snapshot_bytes;
    info.snapshot_kept = figures.snapshot_kept;
    info.aof_current_size = figures.base_bytes + log.generation_bytes;
    info.aof_base_size = figures.base_bytes;
    info.aof_pending_bytes = log.pending_bytes;
    info.aof_unsynced_bytes = log.unsynced_bytes;
    info.delayed_syncs = log.delayed;
    info.logged_bytes = log.bytes_written;
    info.writes = log.writes;
    info.syncs = log.syncs;
    info.errors = log.failures;
    info.last_sync_us = log.last_sync_us;
    info.node.pins = figures.pins;
    info.node.kept = figures.kept;
    if info.node.last_save_time_s == 0 {
        info.node.last_save_time_s = figures.last_save_unix_ms / 1000;
    }
    if info.node.generation == 0 {
        info.node.generation = figures.generation;
    }
}

pub(super) fn pinned(id: u64, files: keeper::Pinned, now: Now) -> Pinned {
    let files_of = files.files.into_iter();
    Pinned {
        id,
        manifest: files.manifest,
        files: files_of
            .map(|(file, bytes)| (file.to_string(), bytes))
            .collect(),
        unix_us: now.unix_us,
    }
}

/// The answer to an order of a save that does not begin.
pub(super) fn why_no_save(refused: SaveRefused, kernel: &Worker<impl Program>) -> SaveAnswer {
    let why = match refused {
        SaveRefused::NoFolder => return SaveAnswer::NoFolder,
        SaveRefused::InProgress => return SaveAnswer::Busy,
        SaveRefused::Loading => "the node is still loading",
        SaveRefused::Stopping => "the node stops",
        SaveRefused::Stuck => {
            let why = kernel.refuses_writes();
            why.map_or("a log is stuck", Unwritable::why)
        }
    };
    SaveAnswer::Failed(why.into())
}
