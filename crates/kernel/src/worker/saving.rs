//! Saving: the cut, this worker's snapshot, and at worker 0 the keeper.

use super::{Message, Worker};
use crate::batch::Batch;
use crate::durable::keeper::{Event, Keeper, Pinned, Saved, Usage};
use crate::durable::snapshot::{SnapshotState, SnapshotWriter};
use crate::durable::{Event as Told, Note, ids};
use crate::multi::{Multi, NodeAction};
use crate::program::Program;
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, DiskRequest, FileInfo, Lane};
use rufous_base::{Now, WorkerId};
use std::sync::Arc;

/// A listing of files for a backup.
const LIST_SEALED: u64 = ids::SAVE | 1 << 41;

/// How often worker 0 is told what the others count.
const USAGE_PERIOD_US: u64 = 500_000;

/// A save that writes do not wait for is tried again after this.
const RETRY_SAVE_US: u64 = 5_000_000;

/// A snapshot under way at one worker.
#[derive(Debug)]
pub(super) struct Snapshotting {
    generation: u64,
    writer: SnapshotWriter,
    /// The whole shard has been walked.
    walked: bool,
    saved: Option<Saved>,
    /// Bytes of records so far.
    bytes: u64,
}

impl Snapshotting {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

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

impl<P: Program> Worker<P> {
    /// Begins a save of the whole node. At worker 0 only.
    pub fn begin_save(&mut self, now: Now) -> Result<u64, SaveRefused> {
        self.begin_cut(now, true)
    }

    /// Begins a new generation of the logs, with a snapshot if so asked.
    fn begin_cut(&mut self, now: Now, snapshot: bool) -> Result<u64, SaveRefused> {
        if !self.is_serving() {
            return Err(SaveRefused::Loading);
        }
        if self.durable.may_close {
            return Err(SaveRefused::Stopping);
        }
        if self.is_stuck() {
            // The cut would wait for commands that wait for a log.
            return Err(SaveRefused::Stuck);
        }
        let Some(keeper) = &mut self.durable.keeper else {
            return Err(SaveRefused::NoFolder);
        };
        if keeper.is_saving() {
            return Err(SaveRefused::InProgress);
        }
        let generation = keeper.next_generation();
        if snapshot {
            keeper.begin(generation, now);
        }
        let action = NodeAction::Cut {
            generation,
            snapshot,
        };
        let nobody = Box::<Batch>::default();
        self.start(Multi::on_node(nobody, self.placement.workers(), action));
        Ok(generation)
    }

    /// Whether a backup can do without a save: the logs have what it lacks.
    pub fn can_pin_without_save(&self) -> bool {
        self.durable.logs()
    }

    /// Keeps the files of what is on disk from being removed, for a backup:
    /// the pin, and the generation that begins now. Once that is sealed
    /// ([`Told::Sealed`]) nothing is written any more to what was before it.
    /// At worker 0 only.
    pub fn pin(&mut self, now: Now) -> Result<(u64, u64), SaveRefused> {
        let generation = self.begin_cut(now, false)?;
        let keeper = self.durable.keeper.as_mut().ok_or(SaveRefused::NoFolder)?;
        Ok((keeper.pin(), generation))
    }

    /// Likewise what the last save has written, and what to copy of it.
    pub fn pin_saved(&mut self) -> Option<(u64, Pinned)> {
        let keeper = self.durable.keeper.as_mut()?;
        Some((keeper.pin(), keeper.pinned(&[], 0)))
    }

    /// What a pin whose logs are sealed before `generation` consists of.
    fn pinned(&self, files: &[FileInfo], generation: u64) -> Pinned {
        let keeper = self.durable.keeper.as_ref();
        keeper.map_or_else(Pinned::default, |k| k.pinned(files, generation))
    }

    /// This worker's log before the cut is synced.
    pub(super) fn note_sealed(&mut self, now: Now) {
        let synced = self.durable.log.as_ref().map_or(u64::MAX, |l| l.synced());
        while let Some(&(generation, position)) = self.durable.sealing.front()
            && position <= synced
        {
            self.durable.sealing.pop_front();
            self.tell(now, WorkerId(0), Note::Sealed { generation });
        }
    }

    /// At worker 0.
    pub(super) fn on_sealed(&mut self, generation: u64) {
        let sealed = self.durable.sealed.entry(generation).or_default();
        *sealed += 1;
        if *sealed == self.placement.workers() {
            self.durable.sealed.remove(&generation);
            self.durable.requests.push(DiskRequest {
                id: LIST_SEALED | generation,
                lane: Lane::Bulk,
                op: DiskOp::List,
            });
        }
    }

    fn on_sealed_files(&mut self, done: DiskDone) {
        let generation = done.id & !(LIST_SEALED | 0xFF << 56);
        let pinned = match done.result {
            Ok(DiskReply::Files(files)) => Ok(self.pinned(&files, generation)),
            Ok(_) => return,
            Err(error) => Err(error.to_string()),
        };
        self.durable
            .events
            .push(Told::Sealed { generation, pinned });
    }

    /// Ends a pin; false where there is none.
    pub fn unpin(&mut self, id: u64) -> bool {
        let Some(keeper) = &mut self.durable.keeper else {
            return false;
        };
        keeper.unpin(id, &mut self.durable.requests)
    }

    pub fn keeper(&self) -> Option<&Keeper> {
        self.durable.keeper.as_ref()
    }

    pub fn keeper_mut(&mut self) -> Option<&mut Keeper> {
        self.durable.keeper.as_mut()
    }

    /// The instant of a cut: what was before it belongs to the old generation.
    pub(super) fn cut(&mut self, generation: u64, snapshot: bool) {
        self.end_frame();
        match &mut self.durable.log {
            Some(log) if !self.durable.closing => log.begin_generation(generation),
            Some(_) => {}
            None if self.durable.settings.log => self.start_log(generation, 0, 0, None),
            None => {}
        }
        if snapshot {
            self.begin_snapshot(generation);
        } else if let Some(log) = &self.durable.log {
            // What a log leaves behind is synced, whatever the setting.
            let position = log.appended();
            self.durable.sealing.push_back((generation, position));
        }
    }

    pub(super) fn begin_snapshot(&mut self, generation: u64) {
        self.durable.changes_at_cut = self.shard.counters().changes;
        self.durable.log_bytes_at_cut = self.log_bytes();
        self.shard.begin_snapshot();
        let identity = self.durable.identity(self.id, self.placement.workers());
        let next_seq = self.durable.log.as_ref().map_or(0, |l| l.appended());
        let mut writer = SnapshotWriter::new(identity, generation, next_seq);
        writer.take(&self.head_effects());
        self.durable.snapshot = Some(Snapshotting {
            generation,
            writer,
            walked: false,
            saved: None,
            bytes: 0,
        });
    }

    /// Takes the snapshot further by about so many bytes of records, a larger
    /// value aside. True where it could go on at once.
    pub fn snapshot_slice(&mut self, bytes: usize) -> bool {
        let Some(snapshot) = &mut self.durable.snapshot else {
            // What a failed one has left to walk.
            let mut nowhere = Vec::new();
            return self.shard.is_unwinding() && self.shard.snapshot_step(bytes, &mut nowhere);
        };
        if snapshot.walked || !snapshot.writer.can_take() {
            snapshot.writer.poll(&mut self.durable.requests);
            return false;
        }
        let slice = &mut self.durable.slice;
        slice.clear();
        let more = self.shard.snapshot_step(bytes, slice);
        snapshot.writer.take(slice);
        snapshot.bytes += slice.len() as u64;
        if !more {
            snapshot.walked = true;
            snapshot
                .writer
                .finish(self.shard.snapshot_progress().written);
            *slice = Vec::new();
        }
        snapshot.writer.poll(&mut self.durable.requests);
        more && snapshot.writer.can_take()
    }

    pub(super) fn on_snapshot_disk(&mut self, now: Now, done: DiskDone) {
        let Some(snapshot) = &mut self.durable.snapshot else {
            return;
        };
        snapshot.writer.on_done(done);
        snapshot.writer.poll(&mut self.durable.requests);
        snapshot.saved = match snapshot.writer.state() {
            SnapshotState::Writing => None,
            SnapshotState::Finished(file) => Some(Ok(file.clone())),
            SnapshotState::Failed(text) => Some(Err(text.clone())),
        };
        self.note_saved(now);
    }

    /// Tells worker 0 once the snapshot is there, and the log that follows it.
    pub(super) fn note_saved(&mut self, now: Now) {
        let Some(snapshot) = &mut self.durable.snapshot else {
            return;
        };
        let generation = snapshot.generation;
        let log = self.durable.log.as_ref();
        if log.is_some_and(|l| !l.generation_ready(generation)) {
            return;
        }
        let Some(saved) = snapshot.saved.take() else {
            return;
        };
        self.durable.snapshot = None;
        if saved.is_err() {
            self.shard.abort_snapshot();
        }
        self.tell(now, WorkerId(0), Note::Saved { generation, saved });
    }

    pub(super) fn on_saved(&mut self, now: Now, generation: u64, saved: Saved) {
        let Some(keeper) = &mut self.durable.keeper else {
            return;
        };
        let event = keeper.on_saved(generation, saved, now, &mut self.durable.requests);
        self.on_keeper_event(now, event);
    }

    pub(super) fn on_keeper_disk(&mut self, now: Now, done: DiskDone) {
        if done.id & LIST_SEALED == LIST_SEALED {
            return self.on_sealed_files(done);
        }
        let Some(keeper) = &mut self.durable.keeper else {
            return;
        };
        let event = keeper.on_disk(done, now, &mut self.durable.requests);
        self.on_keeper_event(now, event);
    }

    fn on_keeper_event(&mut self, now: Now, event: Option<Event>) {
        let ended = match event {
            None => return,
            Some(Event::Noted) if self.is_serving() => return,
            Some(Event::Noted) => Ok(0),
            Some(Event::Installed { generation }) => Ok(generation),
            Some(Event::Failed { text }) => Err(Arc::<str>::from(text)),
        };
        if !self.is_serving() {
            return self.on_first_manifest(now, ended);
        }
        self.tell_all(now, || Note::SaveEnded(ended.clone()));
    }

    /// How a save of the node ended.
    pub(super) fn on_save_ended(&mut self, now: Now, ended: Result<u64, Arc<str>>) {
        if let (Ok(generation), Some(log)) = (&ended, &mut self.durable.log) {
            // Frames that the snapshot covers are committed with it.
            log.snapshot_installed(*generation);
        }
        self.durable.save_failed_us = ended.is_err().then_some(now.mono_us);
        let settings = &self.durable.settings;
        let stops =
            settings.stop_on_save_error && !settings.log && !settings.schedule.points.is_empty();
        self.durable.save_error = ended.as_ref().err().filter(|_| stops).cloned();
        self.durable.events.push(Told::SaveEnded(ended));
        self.log_moved_on(now);
    }

    /// Whether there is something that the last save has not.
    pub fn unsaved_changes(&self) -> bool {
        self.durable
            .keeper
            .as_ref()
            .is_some_and(|k| k.changes() > 0)
            || self.changes_since_save() > 0
    }

    pub fn is_snapshotting(&self) -> bool {
        self.durable.snapshot.is_some() || self.shard.is_unwinding()
    }

    /// Changes since the last cut with a snapshot.
    pub fn changes_since_save(&self) -> u64 {
        self.shard.counters().changes - self.durable.changes_at_cut
    }

    fn log_bytes(&self) -> u64 {
        self.durable
            .log
            .as_ref()
            .map_or(0, |l| l.gauges().bytes_written)
    }

    /// Tells worker 0 what it needs to know for the schedule, and begins a save
    /// there when it is due.
    pub fn look_after_saving(&mut self, now: Now) {
        if !self.is_serving() || now.mono_us < self.durable.usage_told_us + USAGE_PERIOD_US {
            return;
        }
        self.durable.usage_told_us = now.mono_us;
        let usage = Usage {
            changes: self.changes_since_save(),
            // A log that was switched off and on again counts anew.
            log_bytes: self
                .log_bytes()
                .saturating_sub(self.durable.log_bytes_at_cut),
        };
        self.tell(now, WorkerId(0), Note::Usage(usage));
        if self.log_asks_for_save(now) {
            self.tell(now, WorkerId(0), Note::SaveNow);
        }
        let logs = self.durable.logs();
        if let Some(keeper) = &self.durable.keeper
            && keeper.is_due(now, logs)
        {
            // Refused only where one is under way, which is as good.
            let _ = self.begin_save(now);
        }
    }

    /// Whether a sync of this worker's log has failed and a snapshot is to
    /// take the place of what is in doubt. At once where writes wait for it.
    fn log_asks_for_save(&self, now: Now) -> bool {
        let failed = self.durable.save_failed_us;
        let lately = failed.is_some_and(|at| now.mono_us < at + RETRY_SAVE_US);
        let log = self.durable.log.as_ref();
        log.is_some_and(|l| l.has_lost() || (l.needs_snapshot() && !lately))
    }

    pub(super) fn tell(&mut self, now: Now, to: WorkerId, note: Note) {
        if to == self.id {
            self.on_note(now, self.id, note);
        } else {
            self.send(to, Message::Note(Box::new(note)));
        }
    }

    pub(super) fn tell_all(&mut self, now: Now, note: impl Fn() -> Note) {
        for worker in 0..self.placement.workers() {
            let to = WorkerId(worker as u16);
            if to != self.id {
                self.send(to, Message::Note(Box::new(note())));
            }
        }
        self.on_note(now, self.id, note());
    }
}
