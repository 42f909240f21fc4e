//! The state of durability for commands, metrics and health.
//!
//! Each worker keeps its own [`PersistenceInfo`] up to date; `INFO` and metrics merge them.

use rufous_base::WorkerId;
use rufous_command::Failure;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The worker that coordinates snapshots.
pub const COORDINATOR: WorkerId = WorkerId(0);

/// The state of durability of one worker, or of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistenceInfo {
    /// Whether changes are logged, and found at the next start.
    pub aof_enabled: bool,
    /// Logging is being switched on or off.
    pub aof_switching: bool,
    /// Why the last write or sync of the log failed, until one succeeds.
    pub aof_last_error: Option<String>,
    /// Bytes of all logs that a restart would read.
    pub aof_current_size: u64,
    /// That size right after the last snapshot, or at start.
    pub aof_base_size: u64,
    /// Bytes that are not passed to the disk yet.
    pub aof_pending_bytes: u64,
    /// Bytes written that are not synced yet.
    pub aof_unsynced_bytes: u64,
    /// Frames and bytes logged since the start.
    pub frames: u64,
    pub logged_bytes: u64,
    /// Successful writes and syncs of the log, and failures of either.
    pub writes: u64,
    pub syncs: u64,
    pub errors: u64,
    /// Times that replies had to wait for a sync although `appendfsync` is `everysec`.
    pub delayed_syncs: u64,
    /// Duration of the last sync, and of all syncs together.
    pub last_sync_us: u64,
    pub sync_us: u64,
    /// Changes since the last snapshot's cut.
    pub changes_since_last_save: u64,
    /// Progress of the snapshot in progress.
    pub snapshot_keys_done: u64,
    pub snapshot_keys_total: u64,
    pub snapshot_bytes: u64,
    /// The memory that it uses besides the data.
    pub snapshot_kept: u64,
    /// Keys that had to be captured before a change.
    pub snapshot_keys_ahead: u64,
    /// Loaded at the last start by this worker.
    pub loaded_keys: u64,
    pub loaded_frames: u64,
    pub loaded_bytes: u64,
    pub load_us: u64,
    /// Bytes of a torn tail that were cut at the last start.
    pub cut_bytes: u64,
    /// The coordinator's state; all zeros at other workers.
    pub node: SaveInfo,
}

/// Snapshots of the whole node, as its coordinator knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveInfo {
    /// The generation that the manifest names.
    pub generation: u64,
    /// Whether a snapshot is in progress, and when it began (`Now::unix_us`).
    pub in_progress: bool,
    pub began_unix_us: u64,
    /// It was started by BGREWRITEAOF, or by the log's growth.
    pub is_rewrite: bool,
    /// Another one follows as soon as that ends.
    pub scheduled: bool,
    /// Seconds since 1970; when the last snapshot was installed, or the start.
    pub last_save_time_s: u64,
    pub last_save_failed: bool,
    pub last_save_error: Option<String>,
    /// Duration of the last one, in seconds.
    pub last_save_took_s: Option<u64>,
    /// The same two for the last rewrite.
    pub last_rewrite_failed: bool,
    pub last_rewrite_took_s: Option<u64>,
    /// Snapshots installed since the start.
    pub saves: u64,
    pub rewrites: u64,
    pub failures: u64,
    /// Changes are logged, and found at the next start.
    pub logs: bool,
    /// Logging is being switched on or off.
    pub switches_log: bool,
    /// Backups that hold files.
    pub pins: u64,
    /// Earlier saves that can be restored.
    pub kept: u64,
}

impl PersistenceInfo {
    /// Adds the state of another worker.
    pub fn merge(&mut self, other: &PersistenceInfo) {
        self.aof_enabled |= other.aof_enabled;
        self.aof_switching |= other.aof_switching;
        if self.aof_last_error.is_none() {
            self.aof_last_error.clone_from(&other.aof_last_error);
        }
        let sums: [(&mut u64, u64); 21] = [
            (&mut self.aof_current_size, other.aof_current_size),
            (&mut self.aof_base_size, other.aof_base_size),
            (&mut self.aof_pending_bytes, other.aof_pending_bytes),
            (&mut self.aof_unsynced_bytes, other.aof_unsynced_bytes),
            (&mut self.frames, other.frames),
            (&mut self.logged_bytes, other.logged_bytes),
            (&mut self.writes, other.writes),
            (&mut self.syncs, other.syncs),
            (&mut self.errors, other.errors),
            (&mut self.delayed_syncs, other.delayed_syncs),
            (&mut self.sync_us, other.sync_us),
            (
                &mut self.changes_since_last_save,
                other.changes_since_last_save,
            ),
            (&mut self.snapshot_keys_done, other.snapshot_keys_done),
            (&mut self.snapshot_keys_total, other.snapshot_keys_total),
            (&mut self.snapshot_bytes, other.snapshot_bytes),
            (&mut self.snapshot_kept, other.snapshot_kept),
            (&mut self.snapshot_keys_ahead, other.snapshot_keys_ahead),
            (&mut self.loaded_keys, other.loaded_keys),
            (&mut self.loaded_frames, other.loaded_frames),
            (&mut self.loaded_bytes, other.loaded_bytes),
            (&mut self.cut_bytes, other.cut_bytes),
        ];
        for (sum, value) in sums {
            *sum += value;
        }
        self.last_sync_us = self.last_sync_us.max(other.last_sync_us);
        self.load_us = self.load_us.max(other.load_us);
        // Only one of them is the coordinator.
        if other.node != SaveInfo::default() {
            self.node = other.node.clone();
        }
    }
}

/// Progress of loading at start, shared by all threads: set before the first worker takes a turn if
/// there is a data folder, counted down by each worker.
#[derive(Debug, Default)]
pub struct Loading {
    /// Workers that are still loading.
    workers: AtomicUsize,
    total_bytes: AtomicU64,
    done_bytes: AtomicU64,
}

impl Loading {
    /// The node starts with data to load, or keyspaces to create: no client is served before every
    /// worker has called [`Loading::finish_worker`].
    pub fn begin(&self, workers: usize) {
        self.workers.store(workers, Ordering::Release);
    }

    /// Adds the bytes that this worker has to read.
    pub fn add_total(&self, bytes: u64) {
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn add_done(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn finish_worker(&self) {
        let lowered = |left: usize| left.checked_sub(1);
        let _ = self
            .workers
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, lowered);
    }

    pub fn is_loading(&self) -> bool {
        self.workers.load(Ordering::Acquire) > 0
    }

    pub fn total_bytes(&self) -> u64 {
        self.total_bytes.load(Ordering::Relaxed)
    }

    pub fn done_bytes(&self) -> u64 {
        self.done_bytes
            .load(Ordering::Relaxed)
            .min(self.total_bytes())
    }

    /// The reply to requests meanwhile.
    pub(crate) fn failure(&self) -> Failure {
        let percent = self.percent();
        format!("LOADING Rufous is loading the dataset in memory ({percent} % so far)").into()
    }

    /// In percent; 100 if there is nothing to load.
    pub fn percent(&self) -> u64 {
        let total = u128::from(self.total_bytes());
        (u128::from(self.done_bytes()) * 100)
            .checked_div(total)
            .unwrap_or(100) as u64
    }
}
