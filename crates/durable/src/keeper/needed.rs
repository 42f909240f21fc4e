//! Which files are needed: by the manifest, by earlier saves that are kept, and
//! by backups. The others are removed.

use super::super::file::{DataFile, MANIFEST_NEXT};
use super::super::manifest::kept_generation;
use super::{Job, Keeper, Pinned, Schedule};
use rufous_base::disk::{DiskOp, DiskRequest, FileInfo, FileName};

/// What a backup needs: snapshots of a generation, logs from one on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pin {
    generation: u64,
    logs_from: u64,
}

impl Keeper {
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Takes over settings. Earlier saves that are too many now are removed.
    pub fn set_schedule(&mut self, schedule: Schedule, out: &mut Vec<DiskRequest>) {
        let lowered = schedule.retention < self.schedule.retention;
        self.schedule = schedule;
        if lowered && self.trim() {
            self.clean(out);
        }
    }

    /// What a start finds. More earlier saves than are wanted stay until the
    /// next save: a setting that was forgotten costs none of them at once.
    pub fn found(&mut self, schedule: Schedule, kept: impl IntoIterator<Item = u64>) {
        self.schedule = schedule;
        self.kept.extend(kept);
    }

    /// How many earlier saves there are.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Gives up the oldest of the earlier saves that are too many.
    pub(super) fn trim(&mut self) -> bool {
        let before = self.kept.len();
        while self.kept.len() as u64 > self.schedule.retention {
            self.kept.pop_first();
        }
        self.kept.len() < before
    }

    /// Removes files that nobody needs, once nothing else is under way.
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

    /// Manifests of earlier saves go before the snapshots that they name, so
    /// that whichever is there names what is there.
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

    /// Whether neither the manifest, nor an earlier save that is kept, nor a
    /// backup needs it.
    fn is_old(&self, name: &FileName) -> bool {
        if let Some(generation) = kept_generation(name) {
            // Where the save is the present one it may be kept later.
            return !self.kept.contains(&generation) && generation != self.manifest.generation;
        }
        match DataFile::parse(name) {
            None => **name == *MANIFEST_NEXT,
            Some(DataFile::Log { generation, .. }) => {
                let pinned = self.pins.values().map(|pin| pin.logs_from);
                let oldest = pinned.chain([self.manifest.logs_from]).min();
                oldest.is_some_and(|oldest| generation < oldest)
            }
            // Also one of a save that failed is named by nothing.
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

    /// Keeps the files of the manifest's generation and later ones until
    /// [`Keeper::unpin`].
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
