//! Which files are needed: by the manifest, by earlier saves that are kept, and by backups. The
//! others are removed.

use super::super::file::{DataFile, MANIFEST_NEXT};
use super::super::manifest::kept_generation;
use super::{Job, Keeper, Pinned, Schedule};
use rufous_base::disk::{DiskOp, DiskRequest, FileInfo, FileName};

/// The needs of a backup: the snapshots of a generation, and logs from one on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pin {
    generation: u64,
    logs_from: u64,
}

impl Keeper {
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Applies settings. Earlier saves above the new number are removed.
    pub fn set_schedule(&mut self, schedule: Schedule, out: &mut Vec<DiskRequest>) {
        let lowered = schedule.retention < self.schedule.retention;
        self.schedule = schedule;
        if lowered && self.trim() {
            self.clean(out);
        }
    }

    /// Called with the schedule and the kept saves at a start. Earlier saves above the number stay
    /// until the next save, so that a forgotten setting does not remove them at once.
    pub fn found(&mut self, schedule: Schedule, kept: impl IntoIterator<Item = u64>) {
        self.schedule = schedule;
        self.kept.extend(kept);
    }

    /// The number of earlier saves.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Gives up the oldest earlier saves above the number to keep.
    pub(super) fn trim(&mut self) -> bool {
        let before = self.kept.len();
        while self.kept.len() as u64 > self.schedule.retention {
            self.kept.pop_first();
        }
        self.kept.len() < before
    }

    /// Removes unneeded files, once no other job is in progress.
    pub fn clean(&mut self, out: &mut Vec<DiskRequest>) {
        self.clean = true;
        self.clean_again(out);
    }

    pub(super) fn clean_again(&mut self, out: &mut Vec<DiskRequest>) {
        if self.clean && self.job.is_none() && self.saving.is_none() {
            self.clean = false;
            self.job = Some(Job::List);
            self.request(DiskOp::List, out);
        }
    }

    /// Manifests of earlier saves are removed before the snapshots that they name, so that every
    /// existing manifest names existing files.
    pub(super) fn remove_old(&mut self, files: &[FileInfo], out: &mut Vec<DiskRequest>) {
        let names = files.iter().map(|info| &info.file);
        let old: Vec<&FileName> = names.filter(|file| self.is_old(file)).collect();
        let is_kept = |file: &&FileName| kept_generation(file).is_some();
        let (first, rest): (Vec<_>, Vec<_>) = old.into_iter().partition(is_kept);
        let more = !first.is_empty();
        let now = if more { first } else { rest };
        let remove = |file: &FileName| DiskOp::Remove { file: file.clone() };
        let mut ops: Vec<DiskOp> = now.into_iter().map(remove).collect();
        if more {
            ops.push(DiskOp::SyncNames);
        }
        if !ops.is_empty() {
            let left = ops.len();
            self.job = Some(Job::Remove { left, more });
            ops.into_iter().for_each(|op| self.request(op, out));
        }
    }

    /// Whether a file is needed neither by the manifest, nor by a kept earlier save, nor by a
    /// backup.
    fn is_old(&self, name: &FileName) -> bool {
        if let Some(generation) = kept_generation(name) {
            // The copy of the current save's manifest may be needed later.
            return !self.kept.contains(&generation) && generation != self.manifest.generation;
        }
        match DataFile::parse(name) {
            None => **name == *MANIFEST_NEXT,
            Some(DataFile::Log { generation, .. }) => {
                let pinned = self.pins.values().map(|pin| pin.logs_from);
                let oldest = pinned.chain([self.manifest.logs_from]).min();
                oldest.is_some_and(|oldest| generation < oldest)
            }
            // No manifest names the snapshot of a failed save.
            Some(DataFile::Snapshot { generation, .. }) => {
                let under_way = self.saving.as_ref().map(|s| s.generation);
                let pinned = self.pins.values().any(|pin| pin.generation == generation);
                generation != self.manifest.generation
                    && under_way != Some(generation)
                    && !self.kept.contains(&generation)
                    && !pinned
            }
        }
    }

    /// Keeps the files of the manifest's generation and later ones until [`Keeper::unpin`].
    pub fn pin(&mut self) -> u64 {
        let id = self.next_pin;
        self.next_pin += 1;
        let pin = Pin {
            generation: self.manifest.generation,
            logs_from: self.manifest.logs_from,
        };
        self.pins.insert(id, pin);
        id
    }

    /// False if the pin does not exist.
    pub fn unpin(&mut self, id: u64, out: &mut Vec<DiskRequest>) -> bool {
        let there = self.pins.remove(&id).is_some();
        if there {
            self.clean(out);
        }
        there
    }

    /// The files to copy: the snapshots, and of `files` the logs before `generation`.
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
