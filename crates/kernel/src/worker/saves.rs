//! Saves: this worker's snapshot and, at worker 0, the record of the files on disk (the
//! [`Keeper`]).
//!
//! A save begins as a cut: a command over all workers, so that every snapshot shows the same
//! moment. Each worker writes its snapshot slice by slice and reports to worker 0 when it is on
//! disk together with the log that follows it; after all reports worker 0 writes the manifest.

#[cfg(test)]
mod tests;

use super::commit::Settings;
use super::notes::DurableFigures;
use super::out::{Call, Out};
use super::store::Store;
use super::switch::{LogState, Step, Switch};
use crate::durable::keeper::{Event, Keeper, Pinned, Purpose, Saved, Usage};
use crate::durable::log::Identity;
use crate::durable::snapshot::{SnapshotState, SnapshotWriter};
use crate::durable::{Event as Told, LogWriter, Note, ids};
use crate::shard::Shard;
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, DiskRequest, FileInfo, Lane};
use rufous_base::{Now, WorkerId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A listing of files for a backup.
const LIST_SEALED: u64 = ids::SAVE | 1 << 41;

/// The period of the workers' reports to worker 0.
const USAGE_PERIOD_US: u64 = 500_000;

/// The delay before a failed save that no write waits for is tried again.
const RETRY_SAVE_US: u64 = 5_000_000;

/// Why a save was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveRefused {
    /// There is no data folder.
    NoFolder,
    Loading,
    InProgress,
    /// A log cannot be written.
    Stuck,
    /// Logs are being closed.
    Stopping,
}

/// The purpose of a new generation of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOf {
    /// A snapshot of everything.
    Save,
    /// Likewise, and every worker begins its log with it.
    Begin,
    /// No snapshot.
    Logs,
}

/// A snapshot in progress.
#[derive(Debug)]
struct Snapshotting {
    generation: u64,
    writer: SnapshotWriter,
    /// The whole shard has been walked.
    walked: bool,
    saved: Option<Saved>,
    /// Bytes of records so far.
    bytes: u64,
}

/// The beginning of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotStart {
    pub(super) generation: u64,
    pub(super) identity: Identity,
    /// Its records come before the log's frame with this number.
    pub(super) next_seq: u64,
    /// The bytes of the log at that time.
    pub(super) log_bytes: u64,
    /// Effects that precede those of keys.
    pub(super) head: Vec<u8>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Saves {
    settings: Settings,
    snapshot: Option<Snapshotting>,
    /// Reused buffer for a slice of the snapshot.
    slice: Vec<u8>,
    /// Present at worker 0.
    keeper: Option<Keeper>,
    /// Likewise.
    switch: Switch,
    changes_at_cut: u64,
    log_bytes_at_cut: u64,
    usage_told_us: u64,
    /// When the last save ended, if it failed.
    failed_us: Option<u64>,
    /// Cuts whose logs must be synced, and up to which position.
    sealing: VecDeque<(u64, u64)>,
    /// At worker 0: the number of workers that have sealed a generation.
    sealed: BTreeMap<u64, usize>,
    /// Why the last save failed, where that stops writes.
    error: Option<Arc<str>>,
}

/// At every worker.
impl Saves {
    pub(super) fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// Why the last save failed, where that stops writes.
    #[inline]
    pub(super) fn error(&self) -> Option<&Arc<str>> {
        self.error.as_ref()
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Changes since the last cut with a snapshot.
    pub(super) fn changes(&self, shard: &Shard) -> u64 {
        shard.counters().changes - self.changes_at_cut
    }

    /// Whether there are changes since the last save.
    pub(super) fn has_unsaved(&self, shard: &Shard) -> bool {
        self.keeper.as_ref().is_some_and(|k| k.changes() > 0) || self.changes(shard) > 0
    }

    /// Fills in the figures of saves.
    pub(super) fn count(&self, figures: &mut DurableFigures, shard: &Shard) {
        figures.changes_since_save = self.changes(shard);
        if let Some(snapshot) = &self.snapshot {
            let progress = shard.snapshot().progress();
            figures.snapshot_keys_done = progress.written;
            figures.snapshot_keys_total = progress.expected;
            figures.snapshot_bytes = snapshot.bytes;
            figures.snapshot_kept = shard.snapshot().bytes() as u64;
        }
        if let Some(keeper) = &self.keeper {
            figures.base_bytes = keeper.status.snapshot_bytes;
            figures.generation = keeper.manifest().generation;
            figures.last_save_unix_ms = keeper.status.last_save_unix_ms;
            figures.pins = keeper.pins() as u64;
            figures.kept = keeper.kept() as u64;
            figures.log_state = self.switch.is(keeper);
        }
    }

    /// Applies settings.
    pub(super) fn configure(&mut self, settings: &Settings, out: &mut Out) {
        if let Some(keeper) = &mut self.keeper {
            keeper.set_schedule(settings.schedule.clone(), &mut out.disk);
        }
        self.switch.on_settings(settings.log);
        self.settings = settings.clone();
    }

    /// The loaded data is already saved.
    pub(super) fn on_serve(&mut self, store: &Store<'_>) {
        self.changes_at_cut = store.shard.counters().changes;
    }

    /// A cut without a snapshot: the log up to `position` is to be synced.
    pub(super) fn on_logs_cut(&mut self, generation: u64, position: u64) {
        self.switch.on_cut(generation);
        self.sealing.push_back((generation, position));
    }

    /// The instant of a cut: the shard must be written as it is now.
    pub(super) fn on_cut(&mut self, start: SnapshotStart, store: &mut Store<'_>) {
        self.changes_at_cut = store.shard.counters().changes;
        self.log_bytes_at_cut = start.log_bytes;
        self.switch.on_cut(start.generation);
        store.shard.begin_snapshot();
        let mut writer = SnapshotWriter::new(start.identity, start.generation, start.next_seq);
        writer.take(&start.head);
        self.snapshot = Some(Snapshotting {
            generation: start.generation,
            writer,
            walked: false,
            saved: None,
            bytes: 0,
        });
    }

    /// Continues the snapshot by about this many bytes of records; one larger value may exceed
    /// that. True where it could continue at once.
    pub(super) fn on_slice(&mut self, bytes: usize, store: &mut Store<'_>, out: &mut Out) -> bool {
        let shard = &mut *store.shard;
        let Some(snapshot) = &mut self.snapshot else {
            // The rest of the walk of a failed snapshot.
            let mut nowhere = Vec::new();
            return shard.is_unwinding() && shard.snapshot_step(bytes, &mut nowhere);
        };
        if snapshot.walked || !snapshot.writer.can_take() {
            snapshot.writer.poll(&mut out.disk);
            return false;
        }
        let slice = &mut self.slice;
        slice.clear();
        let more = shard.snapshot_step(bytes, slice);
        snapshot.writer.take(slice);
        snapshot.bytes += slice.len() as u64;
        if !more {
            snapshot.walked = true;
            snapshot.writer.finish(shard.snapshot().progress().written);
            *slice = Vec::new();
        }
        snapshot.writer.poll(&mut out.disk);
        more && snapshot.writer.can_take()
    }

    /// A reply of the disk to the writer of the snapshot.
    pub(super) fn on_snapshot_disk(&mut self, done: DiskDone, out: &mut Out) {
        let Some(snapshot) = &mut self.snapshot else {
            return;
        };
        snapshot.writer.on_done(done);
        snapshot.writer.poll(&mut out.disk);
        snapshot.saved = match snapshot.writer.state() {
            SnapshotState::Writing => None,
            SnapshotState::Finished(file) => Some(Ok(file.clone())),
            SnapshotState::Failed(text) => Some(Err(text.clone())),
        };
    }

    /// The snapshot or the log has progressed: reports completed ones to worker 0.
    pub(super) fn on_progress(
        &mut self,
        log: Option<&LogWriter>,
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        let synced = log.map_or(u64::MAX, LogWriter::synced);
        while let Some((generation, _)) = self.sealing.pop_front_if(|cut| cut.1 <= synced) {
            out.tell(WorkerId(0), Note::Sealed { generation });
        }
        let Some(snapshot) = &mut self.snapshot else {
            return;
        };
        let generation = snapshot.generation;
        if log.is_some_and(|l| !l.generation_ready(generation)) {
            return;
        }
        let Some(saved) = snapshot.saved.take() else {
            return;
        };
        self.snapshot = None;
        if saved.is_err() {
            store.shard.abort_snapshot();
        }
        out.tell(WorkerId(0), Note::Saved { generation, saved });
    }

    /// Handles the end of a save of the node.
    pub(super) fn on_ended(&mut self, now: Now, ended: Result<u64, Arc<str>>, out: &mut Out) {
        self.failed_us = ended.is_err().then_some(now.mono_us);
        let settings = &self.settings;
        let stops =
            settings.stop_on_save_error && !settings.log && !settings.schedule.points.is_empty();
        self.error = ended.as_ref().err().filter(|_| stops).cloned();
        out.events.push(Told::SaveEnded(ended));
    }

    /// Periodically reports the figures for the schedule to worker 0, and whether this worker's log
    /// asks for a save. `logs`: whether changes are logged.
    pub(super) fn on_tick(
        &mut self,
        now: Now,
        (log, logs): (Option<&LogWriter>, bool),
        store: &Store<'_>,
        out: &mut Out,
    ) {
        if now.mono_us < self.usage_told_us + USAGE_PERIOD_US {
            return;
        }
        self.usage_told_us = now.mono_us;
        let log_bytes = log.map_or(0, |l| l.gauges().bytes_written);
        let usage = Usage {
            changes: self.changes(store.shard),
            // A log that was switched off and on again counts from zero.
            log_bytes: log_bytes.saturating_sub(self.log_bytes_at_cut),
        };
        out.tell(WorkerId(0), Note::Usage(usage));
        // A sync of this worker's log has failed: a snapshot must replace the data in doubt. At
        // once where writes wait for it.
        let lately = self.has_failed_lately(now);
        if log.is_some_and(|l| l.has_lost() || (l.needs_snapshot() && !lately)) {
            out.tell(WorkerId(0), Note::SaveNow(Purpose::Rewrite));
        }
        if let Some(purpose) = self.keeper.as_ref().and_then(|k| k.due(now, logs)) {
            out.tell(store.id, Note::SaveNow(purpose));
        }
    }
}

/// At worker 0.
impl Saves {
    /// Takes over the record of the files on disk.
    pub(super) fn on_keeper(&mut self, keeper: Keeper) {
        self.switch.on_start(keeper.logs());
        self.keeper = Some(keeper);
    }

    fn has_failed_lately(&self, now: Now) -> bool {
        let failed = self.failed_us;
        failed.is_some_and(|at| now.mono_us < at + RETRY_SAVE_US)
    }

    /// Whether every change that is logged is found at the next start.
    pub(super) fn log_holds(&self) -> bool {
        let switch = &self.switch;
        let keeper = self.keeper.as_ref();
        keeper.is_some_and(|keeper| switch.is(keeper) == LogState::On)
    }

    /// Brings logging closer to the settings. True where a save is to begin. `stuck`: a log cannot
    /// be written.
    pub(super) fn on_switch(
        &mut self,
        now: Now,
        stuck: bool,
        store: &Store<'_>,
        out: &mut Out,
    ) -> bool {
        let lately = self.has_failed_lately(now);
        let Some(keeper) = &mut self.keeper else {
            return false;
        };
        match self.switch.step(keeper, stuck) {
            Step::Save => return !lately,
            Step::End => {
                self.switch.on_end(store.workers());
                keeper.log_ends(&mut out.disk);
                out.tell_all(store, || Note::EndLog);
            }
            Step::Note if !lately => keeper.log_ends(&mut out.disk),
            Step::Note | Step::Nothing => {}
        }
        false
    }

    /// A worker has ended its log.
    pub(super) fn on_log_ended(&mut self) {
        self.switch.on_ended();
    }

    /// How a save is to cut.
    pub(super) fn cut_of_save(&self) -> CutOf {
        self.switch.cut_of_save()
    }

    /// Begins a new generation of the logs.
    pub(super) fn begin(
        &mut self,
        now: Now,
        (cut, purpose): (CutOf, Purpose),
        out: &mut Out,
    ) -> Result<u64, SaveRefused> {
        let keeper = self.keeper.as_mut().ok_or(SaveRefused::NoFolder)?;
        if keeper.is_saving() {
            return Err(SaveRefused::InProgress);
        }
        if cut == CutOf::Begin && !keeper.end_is_noted() {
            keeper.log_ends(&mut out.disk);
            return Err(SaveRefused::InProgress);
        }
        let generation = keeper.next_generation();
        if cut == CutOf::Begin {
            keeper.log_begins(generation);
        }
        if cut != CutOf::Logs {
            keeper.begin(generation, purpose, now);
        }
        self.switch.on_begin(generation, cut);
        out.call(Call::Cut { generation, cut });
        Ok(generation)
    }

    /// Pins the files on disk, so that they are not removed; returns the pin.
    pub(super) fn pin(&mut self) -> Result<u64, SaveRefused> {
        let keeper = self.keeper.as_mut().ok_or(SaveRefused::NoFolder)?;
        Ok(keeper.pin())
    }

    /// Pins the files of the last save; with the list of files to copy.
    pub(super) fn pin_saved(&mut self) -> Option<(u64, Pinned)> {
        let keeper = self.keeper.as_mut()?;
        Some((keeper.pin(), keeper.pinned(&[], 0)))
    }

    /// Ends a pin; false if it does not exist.
    pub(super) fn unpin(&mut self, id: u64, out: &mut Out) -> bool {
        let keeper = self.keeper.as_mut();
        keeper.is_some_and(|keeper| keeper.unpin(id, &mut out.disk))
    }

    /// A worker has synced its log before the cut.
    pub(super) fn on_sealed(&mut self, generation: u64, store: &Store<'_>, out: &mut Out) {
        let sealed = self.sealed.entry(generation).or_default();
        *sealed += 1;
        if *sealed == store.workers() {
            self.sealed.remove(&generation);
            out.disk.push(DiskRequest {
                id: LIST_SEALED | generation,
                lane: Lane::Bulk,
                op: DiskOp::List,
            });
        }
    }

    fn on_sealed_files(&mut self, done: DiskDone, out: &mut Out) {
        let generation = done.id & !(LIST_SEALED | 0xFF << 56);
        let pinned = match done.result {
            Ok(DiskReply::Files(files)) => Ok(self.pinned(&files, generation)),
            Ok(_) => return,
            Err(error) => Err(error.to_string()),
        };
        out.events.push(Told::Sealed { generation, pinned });
    }

    /// The files of a pin whose logs are sealed before `generation`.
    fn pinned(&self, files: &[FileInfo], generation: u64) -> Pinned {
        let keeper = self.keeper.as_ref();
        keeper.map_or_else(Pinned::default, |k| k.pinned(files, generation))
    }

    pub(super) fn on_usage(&mut self, from: WorkerId, usage: Usage) {
        if let Some(keeper) = &mut self.keeper {
            keeper.used(from.index(), usage);
        }
    }

    /// A worker's part of a save is on disk, or cannot be.
    pub(super) fn on_saved(&mut self, now: Now, generation: u64, saved: Saved, out: &mut Out) {
        if let Some(keeper) = &mut self.keeper {
            let event = keeper.on_saved(generation, saved, now, &mut out.disk);
            tell_manifest(event, out);
        }
    }

    /// A reply of the disk to the keeper.
    pub(super) fn on_keeper_disk(&mut self, now: Now, done: DiskDone, out: &mut Out) {
        if done.id & LIST_SEALED == LIST_SEALED {
            return self.on_sealed_files(done, out);
        }
        if let Some(keeper) = &mut self.keeper {
            let event = keeper.on_disk(done, now, &mut out.disk);
            tell_manifest(event, out);
        }
    }
}

fn tell_manifest(event: Option<Event>, out: &mut Out) {
    let written = match event {
        None => return,
        Some(Event::Noted) => Ok(None),
        Some(Event::Installed { generation }) => Ok(Some(generation)),
        Some(Event::Failed { text }) => Err(text.into()),
    };
    out.call(Call::ManifestWritten(written));
}
