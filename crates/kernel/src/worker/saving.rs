//! Saves of the node, as requested by the embedder; see [`super::saves`].

use super::Worker;
use super::out::LogStart;
use super::saves::{CutOf, SaveRefused, SnapshotStart};
use crate::durable::keeper::{Keeper, Pinned};
use crate::durable::{LogWriter, Note};
use crate::program::Program;
use rufous_base::{Now, WorkerId};
use std::sync::Arc;

impl<P: Program> Worker<P> {
    /// Begins a save of the whole node. At worker 0 only.
    pub fn begin_save(&mut self, now: Now) -> Result<u64, SaveRefused> {
        self.begin_cut(now, CutOf::Save)
    }

    /// Begins a new generation of the logs.
    fn begin_cut(&mut self, now: Now, cut: CutOf) -> Result<u64, SaveRefused> {
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
        let begun = self.saves.begin(now, cut, &mut self.out);
        self.carry_out(now);
        begun
    }

    /// Whether a backup needs no save: the logs have all changes since the last one.
    pub fn can_pin_without_save(&self) -> bool {
        self.durable.logs()
    }

    /// Pins the current files on disk for a backup, so that they are not removed. Returns the pin
    /// and the generation that begins now. Once that is sealed ([`crate::durable::Event::Sealed`]),
    /// files of earlier generations are not written any more. At worker 0 only.
    pub fn pin(&mut self, now: Now) -> Result<(u64, u64), SaveRefused> {
        let generation = self.begin_cut(now, CutOf::Logs)?;
        Ok((self.saves.pin()?, generation))
    }

    /// Pins the files of the last save; with the list of files to copy.
    pub fn pin_saved(&mut self) -> Option<(u64, Pinned)> {
        self.saves.pin_saved()
    }

    /// Ends a pin; false if it does not exist.
    pub fn unpin(&mut self, id: u64) -> bool {
        self.saves.unpin(id, &mut self.out)
    }

    pub fn keeper(&self) -> Option<&Keeper> {
        self.saves.keeper()
    }

    /// The instant of a cut: earlier effects belong to the old generation.
    pub(super) fn cut(&mut self, generation: u64, cut: CutOf) {
        self.end_frame();
        match &mut self.durable.log {
            Some(log) if !self.durable.closing => log.begin_generation(generation),
            Some(_) => {}
            None if self.durable.settings.log => self.start_log(LogStart::of(generation)),
            None => {}
        }
        match (cut, &self.durable.log) {
            (CutOf::Save, _) => self.begin_snapshot(generation),
            // The end of a log is synced, whatever the setting.
            (CutOf::Logs, Some(log)) => self.saves.on_logs_cut(generation, log.appended()),
            (CutOf::Logs, None) => {}
        }
    }

    pub(super) fn begin_snapshot(&mut self, generation: u64) {
        let log = self.durable.log.as_ref();
        let start = SnapshotStart {
            generation,
            identity: self.durable.identity(self.id, self.placement.workers()),
            next_seq: log.map_or(0, LogWriter::appended),
            log_bytes: log.map_or(0, |l| l.gauges().bytes_written),
            head: self.head_effects(),
        };
        self.saves.on_cut(start, &mut store!(self));
    }

    /// Continues the snapshot by about this many bytes of records; one larger value may exceed
    /// that. True where it could continue at once.
    pub fn snapshot_slice(&mut self, bytes: usize) -> bool {
        self.saves.on_slice(bytes, &mut store!(self), &mut self.out)
    }

    /// Handles the end of a save of the node.
    pub(super) fn on_save_ended(&mut self, now: Now, ended: Result<u64, Arc<str>>) {
        if let (Ok(generation), Some(log)) = (&ended, &mut self.durable.log) {
            // Frames that the snapshot covers are committed with it.
            log.snapshot_installed(*generation);
        }
        self.saves.on_ended(now, ended, &mut self.out);
        self.log_moved_on(now);
    }

    /// Whether there are changes since the last save.
    pub fn unsaved_changes(&self) -> bool {
        self.saves.has_unsaved(&self.shard)
    }

    pub fn is_snapshotting(&self) -> bool {
        self.saves.is_under_way() || self.shard.is_unwinding()
    }

    /// Changes since the last cut with a snapshot.
    pub fn changes_since_save(&self) -> u64 {
        self.saves.changes(&self.shard)
    }

    /// Reports the figures for the schedule to worker 0, which begins a save when it is due.
    pub fn look_after_saving(&mut self, now: Now) {
        if self.is_serving() {
            let log = (self.durable.log.as_ref(), self.durable.logs());
            self.saves.on_tick(now, log, &store!(self), &mut self.out);
            self.carry_out(now);
        }
    }

    pub(super) fn tell(&mut self, now: Now, to: WorkerId, note: Note) {
        self.out.tell(to, note);
        self.carry_out(now);
    }

    pub(super) fn tell_all(&mut self, now: Now, note: impl Fn() -> Note) {
        self.out.tell_all(&store!(self), note);
        self.carry_out(now);
    }
}
