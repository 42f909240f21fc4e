//! The worker's part in durability: the effects in its shard's journal are logged, and all outputs
//! that depend on them wait until they are committed.
//!
//! Invariants:
//! 1. A reply or a message that depends on this worker's data leaves only when every frame appended
//!    before it is committed: replies of the worker's own connections by the driver's gate,
//!    messages by [`Worker::send_committed`]. Outputs that concern lattice keys alone leave when
//!    the log has these frames. Frames of expiries only need not be committed: without them, a
//!    start finds the keys' expiry times, which have passed.
//! 2. Frames end between commands.
//! 3. While the log cannot be written no command changes data; reads continue, and may return
//!    recent changes that are not committed yet.

use super::out::LogStart;
use super::{Worker, gates};
use crate::durable::file::salt;
use crate::durable::keeper::Schedule;
use crate::durable::log::{Fsync, Identity, LogConfig, LogWriter, Outcome};
use crate::durable::note::Trouble;
use crate::durable::{Event, Note, TxnId, ids};
use crate::program::Program;
use rufous_base::disk::{DiskDone, DiskRequest};
use rufous_base::{Now, Until, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A longer frame is ended between two commands.
const FRAME_BYTES: usize = 1 << 20;

/// The limit of bytes of frames that wait for the disk; beyond it clients have to wait.
const CONGESTED_BYTES: u64 = 64 << 20;

/// The embedder's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether changes are logged.
    pub log: bool,
    pub fsync: Fsync,
    pub segment_bytes: u64,
    pub schedule: Schedule,
    /// Whether a save by schedule that fails stops writes, where there is no log.
    pub stop_on_save_error: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            log: false,
            fsync: Fsync::EverySec,
            segment_bytes: 64 << 20,
            schedule: Schedule::default(),
            stop_on_save_error: false,
        }
    }
}

/// A worker's state of durability.
#[derive(Debug)]
pub struct Durability {
    pub(super) settings: Settings,
    /// The seed of the salts of files: the hash seed of the first start.
    pub(super) file_seed: u64,
    pub(super) log: Option<LogWriter>,
    /// Frames of earlier logs, from before logging was switched off: positions never decrease.
    pub(super) base: u64,
    /// The position to commit for everything that replies may have shown.
    pub(super) told: u64,
    /// Increases with every start of the node.
    pub(super) run: u64,
    next_txn: u64,
    pub(super) held: gates::Held,
    /// The logs that cannot be written or have lost data, and why.
    troubles: BTreeMap<WorkerId, Trouble>,
    /// Nothing more is logged.
    pub(super) closing: bool,
    /// The node stops.
    pub(super) ending: bool,
    /// This worker has reported that it is quiet; at worker 0, the number of such reports; and all
    /// have reported, so that logs may be closed.
    pub(super) said_quiet: bool,
    pub(super) quiet: usize,
    pub(super) may_close: bool,
}

impl Durability {
    pub(super) fn new(hash_seed: u64) -> Self {
        Self {
            settings: Settings::default(),
            file_seed: hash_seed,
            log: None,
            base: 0,
            told: 0,
            run: 0,
            next_txn: 0,
            held: gates::Held::default(),
            troubles: BTreeMap::new(),
            closing: false,
            ending: false,
            said_quiet: false,
            quiet: 0,
            may_close: false,
        }
    }

    /// Whether commands are logged.
    pub(super) fn logs(&self) -> bool {
        self.log.is_some() && !self.closing
    }

    pub(super) fn identity(&self, worker: WorkerId, workers: usize) -> Identity {
        Identity {
            worker: worker.0,
            workers: workers as u16,
            run: self.run,
            salt: salt(self.file_seed),
        }
    }

    pub(super) fn next_txn(&mut self, worker: WorkerId) -> TxnId {
        self.next_txn += 1;
        TxnId {
            run: self.run,
            worker: worker.0,
            n: self.next_txn,
        }
    }
}

impl<P: Program> Worker<P> {
    /// Loads the data on disk; serve no request before [`Event::Serving`]. Without this call the
    /// data is kept in memory only.
    pub fn begin(&mut self, settings: Settings) {
        self.boot.begin(&settings, self.id, &mut self.out);
        self.saves.configure(&settings, &mut self.out);
        self.durable.settings = settings;
    }

    /// Applies settings. Logging that is switched on begins with the next save, which the embedder
    /// requests.
    pub fn configure_durability(&mut self, settings: Settings) {
        if let Some(log) = &mut self.durable.log {
            log.set_fsync(settings.fsync);
        }
        if !settings.log && self.durable.logs() {
            self.end_frame();
            self.shard
                .observers_mut()
                .set_journaling(self.chains.is_some());
            self.durable.closing = true;
        }
        self.saves.configure(&settings, &mut self.out);
        self.boot.configure(&settings);
        self.durable.settings = settings;
    }

    /// Whether logging was switched on and waits for a save to begin.
    pub fn wants_log(&self) -> bool {
        self.durable.settings.log && self.durable.log.is_none()
    }

    pub(super) fn start_log(&mut self, at: LogStart) {
        let settings = &self.durable.settings;
        if !settings.log {
            return;
        }
        let config = LogConfig {
            fsync: settings.fsync,
            segment_bytes: settings.segment_bytes,
        };
        let mut identity = self.durable.identity(self.id, self.placement.workers());
        identity.salt = at.salt.unwrap_or(identity.salt);
        let mut log = LogWriter::new(config, identity);
        log.start(at.generation, at.index, at.seq);
        self.durable.log = Some(log);
        self.shard.observers_mut().set_journaling(true);
    }

    /// Ends the open frame if it is long. Call it between commands.
    pub fn end_long_frame(&mut self) {
        if self.shard.journal().len() > FRAME_BYTES {
            self.end_frame();
        }
    }

    pub(super) fn end_frame(&mut self) {
        if self.shard.journal().is_empty() {
            return;
        }
        let tells = self.shard.observers().journal_tells();
        self.append_to_chains();
        let journal = self.shard.journal();
        let durable = &mut self.durable;
        let frame = match &mut durable.log {
            Some(log) if !durable.closing => durable.base + log.append(journal) + 1,
            Some(log) => durable.base + log.appended(),
            None => {
                durable.base += u64::from(self.chains.is_some());
                durable.base
            }
        };
        if tells && (durable.log.is_some() && !durable.closing || self.chains.is_some()) {
            durable.told = frame;
        }
        if let Some(chains) = &mut self.chains {
            chains.end_frame(frame);
        }
        self.shard.observers_mut().empty_journal();
        let journal = self.shard.journal();
        if journal.capacity() > 4 * FRAME_BYTES {
            *journal = Vec::new();
        }
    }

    /// Ends a turn: logs its changes. Returns the position that its replies wait for.
    pub fn end_turn(&mut self, now: Now) -> Option<u64> {
        self.end_frame();
        self.replicate(now);
        let Some(log) = &mut self.durable.log else {
            self.send_to_others();
            let told = self.durable.told;
            return (self.committed() < told).then_some(told);
        };
        if self.durable.closing {
            log.close();
        }
        log.poll(now, &mut self.out.disk);
        if log.is_closed() && self.durable.held.is_empty() && !self.durable.ending {
            // Logging was switched off. It may be switched on again.
            self.durable.base += log.appended();
            self.durable.log = None;
            self.durable.closing = false;
            let told = self.durable.told;
            return (self.committed() < told).then_some(told);
        }
        let told = self.durable.told;
        // In trouble replies to reads do not wait, and writes are refused. Replies to writes from
        // before this turn learnt of the trouble do wait: to those of the turn itself, or of an
        // earlier one whose reply waited for others of its connection until now.
        let uncommitted = |e: &Event| matches!(e, Event::Uncommitted(_));
        let lost = self.out.events.iter().any(uncommitted);
        let waits = self.committed() < told && (lost || !self.is_in_trouble());
        waits.then_some(told)
    }

    /// Whether the disk is so far behind that no more requests should be accepted.
    pub fn is_congested(&self) -> bool {
        let pending = self
            .durable
            .log
            .as_ref()
            .map_or(0, |l| l.gauges().pending_bytes);
        pending > CONGESTED_BYTES && !self.is_in_trouble()
    }

    /// The latest time at which [`Worker::end_turn`] must be called.
    pub fn durability_wake_us(&self) -> Option<u64> {
        let log = self.durable.log.as_ref().and_then(LogWriter::wake_at_us);
        let chains = self.chains_wake_us();
        let others = chains.into_iter().chain(self.replication_wake_us());
        log.into_iter().chain(others).min()
    }

    /// Requests to the disk since the last call.
    pub fn take_disk_requests(&mut self, to: &mut Vec<DiskRequest>) {
        to.append(&mut self.out.disk);
    }

    pub fn take_durable_events(&mut self) -> Vec<Event> {
        self.told_of_losses();
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
        // If the log is lost, the writes of this turn so far are lost with it.
        self.end_frame();
        let Some(log) = &mut self.durable.log else {
            return;
        };
        let outcome = log.on_done(now, done);
        log.poll(now, &mut self.out.disk);
        if outcome == Outcome::Failed {
            // If it was already known, no client waits any more.
            let known = self.durable.troubles.get(&self.id).is_some_and(|t| !t.lost);
            if !known && self.committed() < self.position() {
                self.out.events.push(Event::Uncommitted(Until::Logged));
            }
            self.lose_held(now, Until::Logged);
        }
        self.log_moved_on(now);
    }

    /// Reports the progress of the log to all that wait for it.
    pub(super) fn log_moved_on(&mut self, now: Now) {
        self.release_envelopes();
        self.note_trouble(now);
        self.send_held(now);
        self.note_saves();
        self.note_ready();
        self.carry_out(now);
    }

    /// The snapshot or the log has progressed.
    fn note_saves(&mut self) {
        let log = self.durable.log.as_ref();
        self.saves
            .on_progress(log, &mut store!(self), &mut self.out);
    }

    /// If this worker's log accepts frames, the start may continue.
    pub(super) fn note_ready(&mut self) {
        let log = self.durable.log.as_ref();
        if log.is_none_or(|log| log.generation_ready(log.generation())) {
            self.boot.on_log_ready(&mut self.out);
        }
    }

    /// Reports to all workers that this log can no longer be written, or can be again.
    fn note_trouble(&mut self, now: Now) {
        let log = self.durable.log.as_ref();
        let text = log.and_then(LogWriter::trouble);
        let lost = log.is_some_and(|l| l.has_lost() && !l.is_stuck());
        let told = self.durable.troubles.get(&self.id);
        if text == told.map(|t| &*t.text) && told.is_none_or(|t| t.lost == lost) {
            return;
        }
        let text = text.map(Arc::<str>::from);
        self.out.events.push(Event::Trouble(text.clone()));
        let trouble = text.map(|text| Trouble { text, lost });
        self.tell_all(now, || Note::Trouble(trouble.clone()));
    }

    /// Whether a log cannot be written, so that waiting for it takes long.
    pub(super) fn is_stuck(&self) -> bool {
        self.durable.troubles.values().any(|t| !t.lost)
    }

    pub(super) fn is_in_trouble(&self) -> bool {
        self.durable.troubles.contains_key(&self.id)
    }

    pub(super) fn on_trouble(&mut self, from: WorkerId, trouble: Option<Trouble>) {
        match trouble {
            Some(trouble) => self.durable.troubles.insert(from, trouble),
            None => self.durable.troubles.remove(&from),
        };
    }

    /// Why changes are refused now.
    #[inline]
    pub fn refuses_writes(&self) -> Option<&str> {
        if self.durable.troubles.is_empty() && self.saves.error().is_none() {
            return None;
        }
        let troubles = self.durable.troubles.values().map(|t| &t.text);
        let mut all = troubles.chain(self.saves.error());
        all.next().map(|text| &**text)
    }
}
