//! The steps that replace a manifest, each taken only after the earlier ones succeeded.
//!
//! If the previous save is to be kept, its manifest is on disk under its other name, synced with
//! that name, before the new manifest is installed: from then on no other manifest names its
//! snapshots.

use super::super::file::{MANIFEST, MANIFEST_NEXT};
use super::super::manifest::{Manifest, kept_name};
use super::{Event, Job, Keeper};
use rufous_base::Now;
use rufous_base::disk::{DiskOp, DiskRequest, FileName};
use std::collections::VecDeque;

/// A manifest that is being written.
#[derive(Debug)]
pub(super) struct Install {
    manifest: Manifest,
    /// The generation of the previous save, if it is kept.
    keeps: Option<u64>,
    /// The file of the step in progress.
    doing: FileName,
    steps: VecDeque<(FileName, DiskOp)>,
}

impl Install {
    fn new(manifest: Manifest, kept: Option<&Manifest>) -> Self {
        let mut steps = VecDeque::new();
        let mut add = |file: &FileName, op| steps.push_back((file.clone(), op));
        let name = FileName::from(MANIFEST);
        if let Some(kept) = kept {
            let name = kept_name(kept.generation);
            add(&name, create(&name));
            add(&name, write(&name, &kept.without_logs()));
            add(&name, DiskOp::SyncNames);
        }
        let next = FileName::from(MANIFEST_NEXT);
        add(&name, create(&next));
        add(&name, write(&next, &manifest));
        let (from, to) = (next, name.clone());
        add(&name, DiskOp::Rename { from, to });
        add(&name, DiskOp::SyncNames);
        Self {
            keeps: kept.map(|kept| kept.generation),
            doing: name,
            steps,
            manifest,
        }
    }

    /// The next step; `None` once all are done.
    pub(super) fn next(&mut self) -> Option<DiskOp> {
        let (file, op) = self.steps.pop_front()?;
        self.doing = file;
        Some(op)
    }

    pub(super) fn generation(&self) -> u64 {
        self.manifest.generation
    }

    pub(super) fn doing(&self) -> &FileName {
        &self.doing
    }
}

fn create(file: &FileName) -> DiskOp {
    DiskOp::Create {
        file: file.clone(),
        reserve: 0,
    }
}

fn write(file: &FileName, manifest: &Manifest) -> DiskOp {
    DiskOp::Write {
        file: file.clone(),
        at: 0,
        bytes: manifest.encode(),
        sync: true,
    }
}

impl Keeper {
    /// Writes a manifest; the result is an [`Event`].
    pub fn install(&mut self, manifest: Manifest, out: &mut Vec<DiskRequest>) {
        if self.job.is_some() {
            // The removal of files may be interrupted; it is restarted later.
            self.clean = true;
        }
        let replaced = &self.manifest;
        let kept = self.schedule.retention > 0
            && replaced.generation != manifest.generation
            && !replaced.snapshots.is_empty();
        let mut install = Install::new(manifest, kept.then_some(replaced));
        if let Some(op) = install.next() {
            self.job = Some(Job::Install(install));
            self.request(op, out);
        }
    }

    /// Records whether changes are logged from now on. A save whose manifest is being written is
    /// not lost: its new manifest records this too.
    pub fn install_logs_until(&mut self, until: Option<u64>, out: &mut Vec<DiskRequest>) {
        let manifest = Manifest {
            logs_until: until,
            ..self.newest().clone()
        };
        self.install(manifest, out);
    }

    /// The manifest that is on disk, or that is being written.
    pub(super) fn newest(&self) -> &Manifest {
        match &self.job {
            Some(Job::Install(install)) => &install.manifest,
            _ => &self.manifest,
        }
    }

    pub(super) fn installed(
        &mut self,
        install: Install,
        now: Now,
        out: &mut Vec<DiskRequest>,
    ) -> Event {
        let manifest = install.manifest;
        if self.manifest.generation == manifest.generation {
            // No save has ended.
            self.manifest = manifest;
            self.clean_again(out);
            return Event::Noted;
        }
        self.kept.extend(install.keeps);
        self.trim();
        let generation = manifest.generation;
        self.status.snapshot_bytes = manifest.snapshots.iter().map(|s| s.bytes).sum();
        self.status.last_save_unix_ms = manifest.saved_ms;
        self.status.saves += 1;
        self.status.last_error = None;
        let began_us = self.status.began.mono_us;
        self.status.last_took_us = now.mono_us.saturating_sub(began_us);
        self.saved_at_us = now.mono_us;
        self.failed_at_us = None;
        self.manifest = manifest;
        self.clean(out);
        Event::Installed { generation }
    }
}
