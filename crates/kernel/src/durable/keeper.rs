//! The node's keeper, at worker 0: what of the data is on disk, when it is
//! saved, and which files are no longer needed.
//!
//! A save is a cut, at which every worker begins a new generation of its log
//! and a snapshot; once all snapshots are synced the manifest is replaced, and
//! only then may older files go. Whatever fails on the way leaves the manifest
//! as it was, and with it everything that it needs.

use super::file::{DataFile, MANIFEST, MANIFEST_NEXT};
use super::ids;
use super::manifest::{Manifest, SnapshotFile};
use rufous_base::Now;
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, DiskRequest, FileInfo, FileName, Lane};
use std::collections::BTreeMap;

/// What a worker has on disk for a save.
pub type Saved = Result<SnapshotFile, String>;

/// What a worker counts, for when to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Changes since the last cut with a snapshot.
    pub changes: u64,
    /// Bytes of log since then.
    pub log_bytes: u64,
}

/// When to save without being asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Seconds and changes: save after so long if there were so many.
    pub points: Vec<(u64, u64)>,
    /// Save when the log has grown by so much of what the last save wrote; 0: never.
    pub rewrite_percentage: u64,
    /// But not while it is shorter.
    pub rewrite_min_bytes: u64,
    /// How many earlier saves are kept.
    pub retention: u64,
}

/// How the last save went, and the one under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveStatus {
    /// Since the start; those of earlier runs are not counted.
    pub saves: u64,
    pub in_progress: bool,
    /// Monotonic, of the one under way.
    pub began_us: u64,
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

/// What came of a request to the disk.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The manifest names this generation's snapshots.
    Installed { generation: u64 },
    /// The manifest says whether changes are logged.
    Noted,
    /// What was on disk before still is.
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
    /// Steps of [`Keeper::INSTALL`]; later ones only after earlier ones succeeded.
    Install {
        step: usize,
        manifest: Manifest,
    },
    /// Finding what may be removed.
    List,
    Remove {
        left: usize,
    },
}

/// See the module's description.
#[derive(Debug)]
pub struct Keeper {
    manifest: Manifest,
    workers: usize,
    /// The highest generation begun.
    generation: u64,
    saving: Option<Saving>,
    job: Option<Job>,
    /// A removal is due once the job is done.
    clean: bool,
    next_id: u64,
    /// Generations from which on backups need the files.
    pins: BTreeMap<u64, u64>,
    next_pin: u64,
    /// `logs-from` of earlier saves that are kept.
    kept: Vec<u64>,
    pub schedule: Schedule,
    /// Whether changes are logged.
    pub logs: bool,
    usage: Vec<Usage>,
    failed_at_us: Option<u64>,
    saved_at_us: u64,
    pub status: SaveStatus,
}

/// A save that failed is not tried again by itself for so long.
const RETRY_US: u64 = 5_000_000;

impl Keeper {
    const INSTALL: usize = 4;

    /// `manifest` is what is on disk, or will be after [`Keeper::install`].
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
            kept: Vec::new(),
            schedule: Schedule::default(),
            logs: false,
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
        self.saving.is_some() || matches!(self.job, Some(Job::Install { .. }))
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

    /// Whether the schedule asks for a save.
    pub fn is_due(&self, now: Now, logs: bool) -> bool {
        let failed_lately = self
            .failed_at_us
            .is_some_and(|at| now.mono_us < at + RETRY_US);
        if self.is_saving() || failed_lately {
            return false;
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
        (changes > 0 && self.schedule.points.iter().any(by_changes)) || by_growth
    }

    /// A cut is about to be made; returns its generation.
    pub fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.status.generation = self.generation;
        self.generation
    }

    /// A save begins with the cut of `generation`.
    pub fn begin(&mut self, generation: u64, now: Now) {
        debug_assert!(!self.is_saving());
        self.saving = Some(Saving {
            generation,
            missing: self.workers,
            files: Vec::new(),
            error: None,
        });
        self.status.in_progress = true;
        self.status.began_us = now.mono_us;
    }

    /// A worker has written its part.
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
            logs_until: (!self.logs).then_some(generation),
            saved_ms: now.unix_ms(),
            snapshots,
            ..self.manifest.clone()
        };
        self.install(manifest, out);
        None
    }

    fn fail(&mut self, text: String, now: Now, out: &mut Vec<DiskRequest>) -> Event {
        self.status.in_progress = false;
        self.status.last_error = Some(text.clone());
        self.failed_at_us = Some(now.mono_us);
        self.clean(out);
        Event::Failed { text }
    }

    /// Writes a manifest; the answer comes as an [`Event`].
    pub fn install(&mut self, manifest: Manifest, out: &mut Vec<DiskRequest>) {
        if self.job.is_some() {
            // Only removing files goes on by itself; it begins anew later.
            self.clean = true;
        }
        self.job = Some(Job::Install { step: 0, manifest });
        self.install_step(out);
    }

    /// Notes whether changes are logged from now on. A save whose manifest is
    /// being written is not lost: its manifest says so too.
    pub fn install_logs_until(&mut self, until: Option<u64>, out: &mut Vec<DiskRequest>) {
        let newest = match &self.job {
            Some(Job::Install { manifest, .. }) => manifest,
            _ => &self.manifest,
        };
        let manifest = Manifest {
            logs_until: until,
            ..newest.clone()
        };
        self.install(manifest, out);
    }

    fn install_step(&mut self, out: &mut Vec<DiskRequest>) {
        let Some(Job::Install { step, manifest }) = &self.job else {
            return;
        };
        let new = FileName::from(MANIFEST_NEXT);
        let op = match step {
            0 => DiskOp::Create {
                file: new,
                reserve: 0,
            },
            1 => DiskOp::Write {
                file: new,
                at: 0,
                bytes: manifest.encode(),
                sync: true,
            },
            2 => DiskOp::Rename {
                from: new,
                to: FileName::from(MANIFEST),
            },
            _ => DiskOp::SyncNames,
        };
        self.request(op, out);
    }

    fn request(&mut self, op: DiskOp, out: &mut Vec<DiskRequest>) {
        self.next_id += 1;
        out.push(DiskRequest {
            id: ids::SAVE | self.next_id,
            lane: Lane::Bulk,
            op,
        });
    }

    /// An answer to a request of the keeper's.
    pub fn on_disk(
        &mut self,
        done: DiskDone,
        now: Now,
        out: &mut Vec<DiskRequest>,
    ) -> Option<Event> {
        // Of a job that another has taken the place of.
        if done.id != ids::SAVE | self.next_id && !matches!(self.job, Some(Job::Remove { .. })) {
            return None;
        }
        match self.job.take()? {
            Job::Install { step, manifest } => {
                if let Err(error) = done.result {
                    let text = format!("cannot write {MANIFEST}: {error}");
                    return Some(self.fail(text, now, out));
                }
                if step + 1 < Self::INSTALL {
                    self.job = Some(Job::Install {
                        step: step + 1,
                        manifest,
                    });
                    self.install_step(out);
                    return None;
                }
                Some(self.installed(manifest, now, out))
            }
            Job::List => {
                if let Ok(DiskReply::Files(files)) = done.result {
                    let old = files.iter().filter(|f| self.is_old(&f.file));
                    let old: Vec<FileName> = old.map(|f| f.file.clone()).collect();
                    if !old.is_empty() {
                        self.job = Some(Job::Remove { left: old.len() });
                        for file in old {
                            self.request(DiskOp::Remove { file }, out);
                        }
                    }
                }
                self.clean_again(out);
                None
            }
            Job::Remove { left } => {
                if left > 1 {
                    self.job = Some(Job::Remove { left: left - 1 });
                }
                self.clean_again(out);
                None
            }
        }
    }

    fn installed(&mut self, manifest: Manifest, now: Now, out: &mut Vec<DiskRequest>) -> Event {
        if self.manifest.generation == manifest.generation {
            // Nothing was saved.
            self.manifest = manifest;
            self.clean_again(out);
            return Event::Noted;
        }
        if self.manifest.logs_from != manifest.logs_from {
            self.kept.push(self.manifest.logs_from);
            let surplus = self
                .kept
                .len()
                .saturating_sub(self.schedule.retention as usize);
            self.kept.drain(..surplus);
        }
        let generation = manifest.logs_from;
        self.status.snapshot_bytes = manifest.snapshots.iter().map(|s| s.bytes).sum();
        self.status.last_save_unix_ms = manifest.saved_ms;
        self.status.saves += 1;
        self.status.last_error = None;
        self.status.in_progress = false;
        self.status.last_took_us = now.mono_us.saturating_sub(self.status.began_us);
        self.saved_at_us = now.mono_us;
        self.failed_at_us = None;
        self.manifest = manifest;
        self.clean(out);
        Event::Installed { generation }
    }

    /// Removes files that nobody needs, once nothing else is under way.
    pub fn clean(&mut self, out: &mut Vec<DiskRequest>) {
        self.clean = true;
        self.clean_again(out);
    }

    fn clean_again(&mut self, out: &mut Vec<DiskRequest>) {
        if self.clean && self.job.is_none() && self.saving.is_none() {
            self.clean = false;
            self.job = Some(Job::List);
            self.request(DiskOp::List, out);
        }
    }

    /// Whether neither the manifest, nor a kept save, nor a backup needs it.
    fn is_old(&self, name: &FileName) -> bool {
        let Some(parsed) = DataFile::parse(name) else {
            return **name == *MANIFEST_NEXT;
        };
        let needed = self.pins.values().chain(&self.kept);
        let oldest = needed
            .copied()
            .chain([self.manifest.logs_from])
            .min()
            .unwrap_or_default();
        match parsed {
            DataFile::Log { generation, .. } => generation < oldest,
            // A snapshot above the manifest's is of a save that failed, or of
            // the one under way.
            DataFile::Snapshot { generation, .. } => {
                let under_way = self.saving.as_ref().map(|s| s.generation);
                generation < oldest
                    || (generation > self.manifest.logs_from && under_way != Some(generation))
            }
        }
    }

    /// Keeps the files of the manifest's generation and later ones until
    /// [`Keeper::unpin`].
    pub fn pin(&mut self) -> u64 {
        let id = self.next_pin;
        self.next_pin += 1;
        self.pins.insert(id, self.manifest.logs_from);
        id
    }

    /// False where there is no such pin.
    pub fn unpin(&mut self, id: u64, out: &mut Vec<DiskRequest>) -> bool {
        let there = self.pins.remove(&id).is_some();
        if there {
            self.clean(out);
        }
        there
    }

    /// What to copy of what is on disk: the snapshots, and of `files` the logs
    /// before `generation`.
    pub fn pinned(&self, files: &[FileInfo], generation: u64) -> Pinned {
        let snapshots = self.manifest.snapshots.iter();
        let mut all: Vec<_> = snapshots.map(|s| (s.file.clone(), s.bytes)).collect();
        for info in files {
            if let Some(DataFile::Log { generation: of, .. }) = DataFile::parse(&info.file)
                && (self.manifest.logs_from..generation).contains(&of)
            {
                all.push((info.file.clone(), info.bytes));
            }
        }
        Pinned {
            manifest: self.manifest.encode(),
            files: all,
        }
    }

    pub fn pins(&self) -> usize {
        self.pins.len()
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
