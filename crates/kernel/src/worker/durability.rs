//! The embedder's calls on durability: settings, the ends of turns and frames, the disk, saves and
//! the shutdown. They pass them to the machines: [`super::commit`] for the log and what waits for
//! commits, [`super::saves`], [`super::boot`].

use super::commit::{Commit, FrameEnd, Settings};
use super::linear::Heads;
use super::saves::{CutOf, SaveRefused, SnapshotStart};
use super::{Message, Worker};
use crate::durable::keeper::{Keeper, Pinned, Purpose};
use crate::durable::{Event, LogWriter, ids};
use crate::planted::{self, Planted};
use crate::program::{Program, Unwritable};
use rufous_base::disk::{DiskDone, DiskRequest};
use rufous_base::{Now, Until, WorkerId};
use std::sync::Arc;

impl<P: Program> Worker<P> {
    /// Loads the data on disk; serve no request before [`Event::Serving`]. Without this call the
    /// data is kept in memory only.
    pub fn begin(&mut self, settings: Settings) {
        self.boot.begin(&settings, self.id, &mut self.out);
        self.saves.configure(&settings, &mut self.out);
        self.commit.on_begin(settings);
    }

    /// Applies settings. Worker 0 then switches logging on or off
    /// ([`Worker::look_after_saving`]).
    pub fn configure_durability(&mut self, settings: Settings) {
        self.saves.configure(&settings, &mut self.out);
        self.boot.configure(&settings);
        self.commit.on_settings(settings);
    }

    /// Logging is switched off.
    pub(super) fn end_log(&mut self, now: Now) {
        self.end_frame();
        self.commit.on_end(&mut store!(self), &mut self.out);
        self.log_moved_on(now);
    }

    /// Ends the open frame if it is long. Call it between commands.
    #[inline]
    pub fn end_long_frame(&mut self) {
        if Commit::is_long(&mut self.shard) {
            self.end_frame();
        }
    }

    pub(super) fn end_frame(&mut self) {
        if self.shard.journal().is_empty() {
            return;
        }
        let mut end = FrameEnd {
            tells: self.shard.observers().journal_tells(),
            ..FrameEnd::default()
        };
        if let Some(chains) = &mut self.chains {
            end.written = chains.on_frame_ends(&mut store!(self));
            end.settled = chains.settled();
        }
        let frame = self.commit.on_frame(end, &mut self.shard);
        if let Some(chains) = &mut self.chains {
            chains.on_frame(frame);
        }
    }

    /// Ends a turn: logs its changes. Returns the position that its replies wait for.
    pub fn end_turn(&mut self, now: Now) -> Option<u64> {
        self.end_frame();
        self.answer_released(now);
        self.replicate(now);
        let gate = self.commit.on_turn(now, &mut self.out);
        if self.commit.log().is_none() {
            // What waits for the log waits for nothing more.
            self.log_to_chains();
        }
        if self.out.has_calls() {
            self.carry_out(now);
        }
        gate
    }

    /// Whether the disk is so far behind that no more requests should be accepted.
    pub fn is_congested(&self) -> bool {
        self.commit.is_congested()
    }

    /// The latest time at which [`Worker::end_turn`] must be called.
    pub fn durability_wake_us(&self) -> Option<u64> {
        let log = self.commit.log().and_then(LogWriter::wake_at_us);
        let chains = self.chains_wake_us();
        let others = chains.into_iter().chain(self.replication_wake_us());
        log.into_iter().chain(others).min()
    }

    /// Requests to the disk since the last call.
    pub fn take_disk_requests(&mut self, to: &mut Vec<DiskRequest>) {
        to.append(&mut self.out.disk);
    }

    pub fn take_durable_events(&mut self) -> Vec<Event> {
        self.commit.on_events_taken();
        std::mem::take(&mut self.out.events)
    }

    /// Handles a reply of the disk.
    pub fn on_disk(&mut self, now: Now, done: DiskDone) {
        match ids::space(done.id) {
            ids::LOG => self.on_log_disk(now, done),
            ids::SNAPSHOT => {
                self.saves.on_snapshot_disk(done, &mut self.out);
                self.note_saves();
            }
            ids::LOAD => {
                self.boot
                    .on_disk(now, done, &mut store!(self), &mut self.out);
            }
            _ if self.boot.is_finding() => {
                self.boot.on_found(done, &mut store!(self), &mut self.out);
            }
            _ => self.saves.on_keeper_disk(now, done, &mut self.out),
        }
        self.carry_out(now);
        let _again = self.settle(now);
    }

    fn on_log_disk(&mut self, now: Now, done: DiskDone) {
        self.end_frame();
        if self.commit.log().is_some() {
            self.commit.on_disk(now, done, &mut self.out);
            self.carry_out(now);
            self.log_moved_on(now);
        }
    }

    /// Reports the progress of the log to all that wait for it.
    pub(super) fn log_moved_on(&mut self, now: Now) {
        self.log_to_chains();
        self.commit.on_progress(&store!(self), &mut self.out);
        Heads { worker: self }.on_synced(now);
        self.carry_out(now);
        self.note_saves();
        self.note_ready();
        self.carry_out(now);
    }

    /// The snapshot or the log has progressed.
    fn note_saves(&mut self) {
        let log = self.commit.log();
        self.saves
            .on_progress(log, &mut store!(self), &mut self.out);
    }

    /// If this worker's log accepts frames, the start may continue.
    pub(super) fn note_ready(&mut self) {
        if self.commit.is_ready() {
            self.boot.on_log_ready(&mut self.out);
        }
    }

    /// Why this worker's log takes no writes, if it takes none: those of other nodes wait, too. To
    /// be called periodically.
    pub fn log_ails(&mut self, now: Now) -> Option<String> {
        self.commit.look_at_stall(now);
        let ails = self.commit.ails();
        if let Some(chains) = &mut self.chains {
            chains.on_trouble(ails.clone());
            if self.commit.hangs() && chains.has_left() {
                self.commit.on_left(&mut self.out);
                self.carry_out(now);
            }
        }
        ails
    }

    /// Why changes are refused now.
    #[inline]
    pub fn refuses_writes(&self) -> Option<Unwritable<'_>> {
        let log = self.commit.trouble().map(|why| Unwritable::Log(why));
        log.or_else(|| self.saves.error().map(|why| Unwritable::Snapshot(why)))
    }

    /// The position that commits everything that happened so far.
    pub(super) fn position(&self) -> u64 {
        self.commit.position(&self.shard)
    }

    /// Whether what is committed may not be synced yet.
    pub(super) fn awaits_sync(&self) -> bool {
        self.commit.synced().is_some() && !planted::is(Planted::SyncNotAwaited)
    }

    /// The position that is committed in the log.
    pub fn logged(&self) -> u64 {
        self.commit.logged()
    }

    /// The position up to which gates have been passed.
    pub fn passed(&self) -> u64 {
        self.commit.committed()
    }

    /// Whether some replies wait for the log alone when they leave this worker.
    #[inline]
    pub fn splits(&self) -> bool {
        self.chains.is_some()
    }

    /// What replies wait for when they leave this worker, if they concern these keys only. The
    /// worker itself keeps those that depend on copies of their slots.
    #[inline]
    pub fn until<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Until {
        if self.splits() && keys.into_iter().next().is_some() {
            Until::Logged
        } else {
            Until::Passed
        }
    }

    /// Sends a message as soon as [`super::commit::Commit::on_message`] allows; `to` may be this
    /// worker.
    pub(super) fn send_committed(&mut self, now: Now, to: WorkerId, waits: (Until, Message)) {
        let Some(message) = self.commit.on_message(to, waits, &self.shard) else {
            return;
        };
        if to == self.id {
            self.take(now, to, message);
        } else {
            self.send(to, message);
        }
    }

    /// As [`Worker::send_committed`], for messages to other workers that concern lattice keys.
    pub(super) fn send_logged(&mut self, to: WorkerId, message: Message) {
        let waits = (Until::Logged, message);
        if let Some(message) = self.commit.on_message(to, waits, &self.shard) {
            self.send(to, message);
        }
    }

    /// The node stops, and this worker has no work in progress that it began. True once this holds
    /// for all workers: then no work is in progress anywhere.
    pub fn all_quiet(&mut self, now: Now) -> bool {
        self.say_quiet(now);
        self.quiet.is_everywhere(self.placement.workers())
    }

    /// Reports to worker 0 that this worker has no work in progress. Returns whether it was
    /// reported before.
    pub fn say_quiet(&mut self, now: Now) -> bool {
        let said = self.quiet.say(&mut self.out);
        self.carry_out(now);
        said
    }

    /// At worker 0, when all are quiet: makes every worker close its log.
    pub fn close_logs(&mut self, now: Now) {
        self.quiet.close_logs(&store!(self), &mut self.out);
        self.carry_out(now);
    }

    /// Ends the log. True once it is on disk, or if there is no log.
    pub fn close_log(&mut self, now: Now) -> bool {
        self.end_frame();
        self.commit.on_stop(now, &mut self.out)
    }
}

/// Saves of the node.
impl<P: Program> Worker<P> {
    /// Begins a save of the whole node, and the logs if they are to begin. At worker 0 only.
    pub fn begin_save(&mut self, now: Now, purpose: Purpose) -> Result<u64, SaveRefused> {
        self.begin_cut(now, (self.saves.cut_of_save(), purpose))
    }

    /// Begins a new generation of the logs.
    fn begin_cut(&mut self, now: Now, cut: (CutOf, Purpose)) -> Result<u64, SaveRefused> {
        if !self.is_serving() {
            return Err(SaveRefused::Loading);
        }
        if self.quiet.may_close() {
            return Err(SaveRefused::Stopping);
        }
        if self.commit.is_stuck() {
            // The cut would wait for commands that wait for a log.
            return Err(SaveRefused::Stuck);
        }
        let begun = self.saves.begin(now, cut, &mut self.out);
        self.carry_out(now);
        begun
    }

    /// Whether a backup needs no save: the logs have all changes since the last one.
    pub fn can_pin_without_save(&self) -> bool {
        self.saves.log_holds()
    }

    /// Pins the current files on disk for a backup, so that they are not removed. Returns the pin
    /// and the generation that begins now. Once that is sealed ([`crate::durable::Event::Sealed`]),
    /// files of earlier generations are not written any more. At worker 0 only.
    pub fn pin(&mut self, now: Now) -> Result<(u64, u64), SaveRefused> {
        let generation = self.begin_cut(now, (CutOf::Logs, Purpose::Snapshot))?;
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
        self.commit.on_cut((generation, cut), &mut store!(self));
        match (cut, self.commit.log()) {
            (CutOf::Save | CutOf::Begin, _) => self.begin_snapshot(generation),
            // The end of a log is synced, whatever the setting.
            (CutOf::Logs, Some(log)) => self.saves.on_logs_cut(generation, log.appended()),
            (CutOf::Logs, None) => {}
        }
    }

    pub(super) fn begin_snapshot(&mut self, generation: u64) {
        let log = self.commit.log();
        let start = SnapshotStart {
            generation,
            identity: self.commit.identity(self.placement.workers()),
            next_seq: log.map_or(0, LogWriter::appended),
            log_bytes: log.map_or(0, |l| l.gauges().bytes_written),
            head: self.lattice.head_effects(&self.shard),
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
        if let Ok(generation) = ended {
            self.commit.on_saved(generation);
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
            let log = (self.commit.log(), self.commit.logs());
            self.saves.on_tick(now, log, &store!(self), &mut self.out);
            self.carry_out(now);
            self.look_after_switch(now);
        }
    }

    /// At worker 0: brings logging closer to what the settings say.
    fn look_after_switch(&mut self, now: Now) {
        let stuck = self.commit.is_stuck();
        let store = store!(self);
        if self.saves.on_switch(now, stuck, &store, &mut self.out) {
            // Where it is refused, the next tick tries again.
            let _ = self.begin_save(now, Purpose::Rewrite);
        }
        self.carry_out(now);
    }

    /// Whether every change that a reply shows is logged, and found at the next start. At worker 0
    /// only.
    pub fn log_holds(&self) -> bool {
        self.saves.log_holds()
    }
}
