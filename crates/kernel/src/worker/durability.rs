//! The worker's part in outliving a crash: what its shard's journal holds goes
//! to the log, and whatever tells others of it waits until it is committed.
//!
//! Invariants:
//! 1. A reply or a message that tells of this worker's data leaves only when
//!    every frame appended before it is committed: replies of the worker's own
//!    connections by the driver's gate, messages by [`Worker::send_committed`].
//!    What tells of lattice keys alone leaves when the log has these frames.
//!    Frames of nothing but expiries need not be: without them, a start finds
//!    the keys' times, and those have passed.
//! 2. Frames end between commands.
//! 3. While the log cannot be written no command changes anything; reads go
//!    on, and may show what was changed just before and is not committed yet.

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

/// A frame is ended between two commands once it is so long.
const FRAME_BYTES: usize = 1 << 20;

/// Bytes of frames that may wait for the disk before clients have to.
const CONGESTED_BYTES: u64 = 64 << 20;

/// What the embedder wants.
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

/// What a worker keeps for durability.
#[derive(Debug)]
pub struct Durability {
    pub(super) settings: Settings,
    /// What the salts of files are made of: the hash seed of the first start.
    pub(super) file_seed: u64,
    pub(super) log: Option<LogWriter>,
    /// Frames of earlier logs, from before logging was switched off: positions
    /// never go down.
    pub(super) base: u64,
    /// What has to be committed for all that replies may have told of.
    pub(super) told: u64,
    /// Rises with every start of the node.
    pub(super) run: u64,
    next_txn: u64,
    pub(super) held: gates::Held,
    /// Which logs cannot be written, or have lost what they had, and why.
    troubles: BTreeMap<WorkerId, Trouble>,
    /// Nothing more is logged.
    pub(super) closing: bool,
    /// The node stops.
    pub(super) ending: bool,
    /// This worker has said that it is quiet; at worker 0, how many have; and
    /// all have, so that logs may be closed.
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
    /// Loads what is on disk; nobody is to be served before
    /// [`Event::Serving`]. Without this call the data is kept in memory alone.
    pub fn begin(&mut self, settings: Settings) {
        self.boot.begin(&settings, self.id, &mut self.out);
        self.saves.configure(&settings, &mut self.out);
        self.durable.settings = settings;
    }

    /// Takes over settings. Logging that is switched on begins with the next
    /// save, which the embedder asks for.
    pub fn configure_durability(&mut self, settings: Settings) {
        if let Some(log) = &mut self.durable.log {
            log.set_fsync(settings.fsync);
        }
        if !settings.log && self.durable.logs() {
            self.end_frame();
            self.shard.set_journaling(self.chains.is_some());
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
        self.shard.set_journaling(true);
    }

    /// Ends the open frame where it has become long. Call it between commands.
    pub fn end_long_frame(&mut self) {
        if self.shard.journal().len() > FRAME_BYTES {
            self.end_frame();
        }
    }

    pub(super) fn end_frame(&mut self) {
        if self.shard.journal().is_empty() {
            return;
        }
        let tells = self.shard.journal_tells();
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
        self.shard.empty_journal();
        let journal = self.shard.journal();
        if journal.capacity() > 4 * FRAME_BYTES {
            *journal = Vec::new();
        }
    }

    /// Ends a turn: what it changed goes to the log. Returns what its replies
    /// wait for.
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
            // Switched off. It may be switched on again.
            self.durable.base += log.appended();
            self.durable.log = None;
            self.durable.closing = false;
            let told = self.durable.told;
            return (self.committed() < told).then_some(told);
        }
        let told = self.durable.told;
        // In trouble reads go on, and writes are refused; but not what was written
        // before this turn learnt of the trouble: by the turn itself, or by one
        // before, where the reply waited for others of its connection until now.
        let uncommitted = |e: &Event| matches!(e, Event::Uncommitted(_));
        let lost = self.out.events.iter().any(uncommitted);
        let waits = self.committed() < told && (lost || !self.is_in_trouble());
        waits.then_some(told)
    }

    /// Whether the disk is so far behind that nothing more should be taken.
    pub fn is_congested(&self) -> bool {
        let pending = self
            .durable
            .log
            .as_ref()
            .map_or(0, |l| l.gauges().pending_bytes);
        pending > CONGESTED_BYTES && !self.is_in_trouble()
    }

    /// When [`Worker::end_turn`] is to be called at the latest.
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

    /// The disk has answered.
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
        // What this turn has written so far is lost with the rest, if it is.
        self.end_frame();
        let Some(log) = &mut self.durable.log else {
            return;
        };
        let outcome = log.on_done(now, done);
        log.poll(now, &mut self.out.disk);
        if outcome == Outcome::Failed {
            // Where it was known already, nobody waits any more.
            let known = self.durable.troubles.get(&self.id).is_some_and(|t| !t.lost);
            if !known && self.committed() < self.position() {
                self.out.events.push(Event::Uncommitted(Until::Logged));
            }
            self.lose_held(now, Until::Logged);
        }
        self.log_moved_on(now);
    }

    /// Tells everybody who waits for the log how far it is.
    pub(super) fn log_moved_on(&mut self, now: Now) {
        self.release_envelopes();
        self.note_trouble(now);
        self.send_held(now);
        self.note_saves();
        self.note_ready();
        self.carry_out(now);
    }

    /// The snapshot or the log has moved on.
    fn note_saves(&mut self) {
        let log = self.durable.log.as_ref();
        self.saves
            .on_progress(log, &mut store!(self), &mut self.out);
    }

    /// Where this worker's log can take frames, the start may go on.
    pub(super) fn note_ready(&mut self) {
        let log = self.durable.log.as_ref();
        if log.is_none_or(|log| log.generation_ready(log.generation())) {
            self.boot.on_log_ready(&mut self.out);
        }
    }

    /// Tells everybody where this log has ceased or begun again to be written.
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

    /// Whether a log cannot be written, so that what waits for it waits for long.
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

    /// Why nothing may be changed now.
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
