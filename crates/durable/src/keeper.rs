//! The node's keeper, at worker 0: which data is on disk, when it is saved, and which files are no
//! longer needed.
//!
//! A save is a cut, at which every worker begins a new generation of its log and a snapshot; once
//! all snapshots are synced the manifest is replaced, and only then may older files be removed. Any
//! failure before that leaves the manifest and all files that it needs unchanged.
//!
//! Earlier saves can be kept: the replaced manifest remains under another name
//! ([`super::manifest::kept_name`]), with its snapshots but without its logs.
//!
//! - `install`: the steps in which a manifest is replaced
//! - `needed`: which files are needed, also for kept saves and backups

mod install;
mod needed;

use super::ids;
use super::manifest::{Manifest, SnapshotFile};
use install::Install;
use needed::Pin;
use rufous_base::Now;
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, DiskRequest, FileName, Lane};
use std::collections::{BTreeMap, BTreeSet};

/// A worker's snapshot file of a save, or its error.
pub type Saved = Result<SnapshotFile, String>;

/// A worker's figures for the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Changes since the last cut with a snapshot.
    pub changes: u64,
    /// Bytes of log since then.
    pub log_bytes: u64,
}

/// When to save automatically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Seconds and changes: save after that time if there were at least so many changes.
    pub points: Vec<(u64, u64)>,
    /// Save when the log has grown by this percentage of the last save's size; 0: never.
    pub rewrite_percentage: u64,
    /// But not while the log is shorter than this.
    pub rewrite_min_bytes: u64,
    /// The number of earlier saves to keep.
    pub retention: u64,
}

/// What a save is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A snapshot that was asked for, or that a save point asks for.
    #[default]
    Snapshot,
    /// To replace the log so far, or to begin one.
    Rewrite,
}

/// The result of the last save, and the state of the one in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveStatus {
    /// Saves since the start; those of earlier runs are not counted.
    pub saves: u64,
    /// When the one in progress, or the last one, began, and what it is for.
    pub began: Now,
    pub purpose: Purpose,
    pub last_save_unix_ms: u64,
    pub last_took_us: u64,
    pub last_error: Option<String>,
    pub snapshot_bytes: u64,
    pub generation: u64,
}

/// The files of one instant, for a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// The manifest that a start from these files needs.
    pub manifest: Vec<u8>,
    pub files: Vec<(FileName, u64)>,
}

/// The result of a request to the disk.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The manifest names this generation's snapshots.
    Installed { generation: u64 },
    /// The manifest records whether changes are logged.
    Noted,
    /// The files on disk are unchanged.
    Failed { text: String },
}

#[derive(Debug)]
struct Saving {
    generation: u64,
    missing: usize,
    files: Vec<SnapshotFile>,
    error: Option<String>,
}

#[derive(Debug)]
enum Job {
    Install(Install),
    /// Lists the files to find those that can be removed.
    List,
    Remove {
        left: usize,
        /// More files are to be removed once this has succeeded.
        more: bool,
    },
}

/// See the module's description.
#[derive(Debug)]
pub struct Keeper {
    manifest: Manifest,
    workers: usize,
    /// The highest generation that was begun.
    generation: u64,
    saving: Option<Saving>,
    job: Option<Job>,
    /// Files must be removed once the job is done.
    clean: bool,
    next_id: u64,
    /// The needs of backups.
    pins: BTreeMap<u64, Pin>,
    next_pin: u64,
    /// Generations of earlier saves that are kept.
    kept: BTreeSet<u64>,
    schedule: Schedule,
    /// The generation at whose cut the logs began that are written now; `None` where changes are
    /// not logged, or will not be.
    logged_from: Option<u64>,
    usage: Vec<Usage>,
    failed_at_us: Option<u64>,
    saved_at_us: u64,
    pub status: SaveStatus,
}

/// The delay before a failed save is tried again automatically.
const RETRY_US: u64 = 5_000_000;

impl Keeper {
    /// `manifest` is the one on disk, or will be after [`Keeper::install`].
    pub fn new(manifest: Manifest, workers: usize, generation: u64, now: Now) -> Self {
        Self {
            status: SaveStatus {
                last_save_unix_ms: manifest.saved_ms,
                snapshot_bytes: manifest.snapshots.iter().map(|s| s.bytes).sum(),
                generation,
                ..SaveStatus::default()
            },
            manifest,
            workers,
            generation,
            saving: None,
            job: None,
            clean: false,
            next_id: 0,
            pins: BTreeMap::new(),
            next_pin: 1,
            kept: BTreeSet::new(),
            schedule: Schedule::default(),
            logged_from: None,
            usage: vec![Usage::default(); workers],
            failed_at_us: None,
            saved_at_us: now.mono_us,
        }
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn is_saving(&self) -> bool {
        self.saving.is_some() || matches!(self.job, Some(Job::Install(_)))
    }

    /// Whether a snapshot is being made, or its manifest.
    pub fn is_snapshotting(&self) -> bool {
        let installs = |install: &Install| install.generation() != self.manifest.generation;
        let job = self.job.as_ref();
        let under_way = |job: &Job| matches!(job, Job::Install(install) if installs(install));
        self.saving.is_some() || job.is_some_and(under_way)
    }

    /// Whether a start from the files on disk finds every change that is logged: the promise of a
    /// log. Logs that were begun while the node runs keep it once a save that began with them, or
    /// later, is in the manifest.
    pub fn log_holds(&self) -> bool {
        self.logged_from.is_some() && self.manifest.logs_until.is_none()
    }

    /// Whether changes are logged, or will be from the cut on that was begun.
    pub fn logs(&self) -> bool {
        self.logged_from.is_some()
    }

    /// Whether a start from the files on disk takes no log for complete that is not written any
    /// more.
    pub fn end_is_noted(&self) -> bool {
        self.logged_from.is_none() && self.manifest.logs_until.is_some()
    }

    /// Changes are logged from the cut of this generation on.
    pub fn log_begins(&mut self, generation: u64) {
        self.logged_from.get_or_insert(generation);
    }

    /// Changes are not logged from now on, which the manifest is to record.
    pub fn log_ends(&mut self, out: &mut Vec<DiskRequest>) {
        self.logged_from = None;
        let newest = self.newest();
        // Where a save has not ended that began with the log, that log was never in use.
        if newest.logs_until.is_none() {
            let until = Some(self.generation);
            self.install_logs_until(until, out);
        }
    }

    pub fn used(&mut self, worker: usize, usage: Usage) {
        self.usage[worker] = usage;
    }

    /// Changes since the last save began.
    pub fn changes(&self) -> u64 {
        self.usage.iter().map(|u| u.changes).sum()
    }

    pub fn log_bytes(&self) -> u64 {
        self.usage.iter().map(|u| u.log_bytes).sum()
    }

    /// The save that the schedule asks for. `logs`: whether changes are logged.
    pub fn due(&self, now: Now, logs: bool) -> Option<Purpose> {
        let failed_lately = self
            .failed_at_us
            .is_some_and(|at| now.mono_us < at + RETRY_US);
        if self.is_saving() || failed_lately {
            return None;
        }
        let since_s = now.mono_us.saturating_sub(self.saved_at_us) / 1_000_000;
        let changes = self.changes();
        let by_changes = |&(seconds, least): &(u64, u64)| changes >= least && since_s >= seconds;
        let grown = self.log_bytes();
        let base = self.status.snapshot_bytes;
        let by_growth = logs
            && self.schedule.rewrite_percentage > 0
            && grown >= self.schedule.rewrite_min_bytes
            && grown.saturating_mul(100) >= base.saturating_mul(self.schedule.rewrite_percentage);
        if by_growth {
            return Some(Purpose::Rewrite);
        }
        let is_due = changes > 0 && self.schedule.points.iter().any(by_changes);
        is_due.then_some(Purpose::Snapshot)
    }

    /// Returns the generation of the cut that is about to be made.
    pub fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.status.generation = self.generation;
        self.generation
    }

    /// A save begins with the cut of `generation`.
    pub fn begin(&mut self, generation: u64, purpose: Purpose, now: Now) {
        debug_assert!(!self.is_saving());
        self.saving = Some(Saving {
            generation,
            missing: self.workers,
            files: Vec::new(),
            error: None,
        });
        self.status.began = now;
        self.status.purpose = purpose;
    }

    /// A worker has written its part of a save.
    pub fn on_saved(
        &mut self,
        generation: u64,
        saved: Saved,
        now: Now,
        out: &mut Vec<DiskRequest>,
    ) -> Option<Event> {
        let saving = self.saving.as_mut()?;
        debug_assert_eq!(saving.generation, generation);
        saving.missing -= 1;
        match saved {
            Ok(file) => saving.files.push(file),
            Err(text) => saving.error = Some(text),
        }
        if saving.missing > 0 {
            return None;
        }
        let saving = self.saving.take()?;
        if let Some(text) = saving.error {
            return Some(self.fail(text, now, out));
        }
        let mut snapshots = saving.files;
        snapshots.sort_by_key(|s| s.worker);
        let manifest = Manifest {
            workers: self.workers as u16,
            generation,
            logs_from: generation,
            logs_until: self.logs_until(generation),
            saved_ms: now.unix_ms(),
            snapshots,
            ..self.manifest.clone()
        };
        self.install(manifest, out);
        None
    }

    /// What the manifest of a save of this generation records: whether the logs that follow it are
    /// complete.
    fn logs_until(&self, generation: u64) -> Option<u64> {
        let follows = |from: &u64| *from <= generation;
        let complete = self.logged_from.as_ref().is_some_and(follows);
        (!complete).then_some(generation)
    }

    fn fail(&mut self, text: String, now: Now, out: &mut Vec<DiskRequest>) -> Event {
        self.status.last_error = Some(text.clone());
        self.failed_at_us = Some(now.mono_us);
        self.clean(out);
        Event::Failed { text }
    }

    fn request(&mut self, op: DiskOp, out: &mut Vec<DiskRequest>) {
        self.next_id += 1;
        out.push(DiskRequest {
            id: ids::SAVE | self.next_id,
            lane: Lane::Bulk,
            op,
        });
    }

    /// Handles the result of a request of the keeper.
    pub fn on_disk(
        &mut self,
        done: DiskDone,
        now: Now,
        out: &mut Vec<DiskRequest>,
    ) -> Option<Event> {
        // The result of a request of a job that was replaced.
        if done.id != ids::SAVE | self.next_id && !matches!(self.job, Some(Job::Remove { .. })) {
            return None;
        }
        match self.job.take()? {
            Job::Install(mut install) => {
                if let Err(error) = done.result {
                    let text = format!("cannot write {}: {error}", install.doing());
                    return Some(self.fail(text, now, out));
                }
                match install.next() {
                    Some(op) => {
                        self.job = Some(Job::Install(install));
                        self.request(op, out);
                        None
                    }
                    None => Some(self.installed(install, now, out)),
                }
            }
            Job::List => {
                if let Ok(DiskReply::Files(files)) = done.result {
                    self.remove_old(&files, out);
                }
                self.clean_again(out);
                None
            }
            Job::Remove { left, more } => {
                let more = more && done.result.is_ok();
                if left > 1 {
                    let left = left - 1;
                    self.job = Some(Job::Remove { left, more });
                } else {
                    self.clean |= more;
                }
                self.clean_again(out);
                None
            }
        }
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
