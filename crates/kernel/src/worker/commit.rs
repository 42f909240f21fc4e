//! Commits: the effects in the shard's journal become frames of the log, and outputs that depend on
//! them wait until these frames are committed: in the log, and at every member of their slots'
//! chains. Positions count frames.
//!
//! Invariants:
//! 1. A reply or a message that depends on this worker's data leaves only when every frame appended
//!    before it is committed: replies of the worker's own connections by the driver's gate
//!    ([`Commit::on_turn`]), messages by [`Commit::on_message`]. Outputs that concern lattice keys
//!    alone leave when the log has these frames. Frames of expiries only need not be committed:
//!    without them, a start finds the keys' expiry times, which have passed.
//! 2. Frames end between commands.
//! 3. While the log cannot be written no command changes data; reads continue, and may return
//!    recent changes that are not committed yet.
//!
//! `ending` has how a log is switched off; `held` what waits; `stall` what happens while the disk does not answer; `quiet` how workers agree that logs may be closed.

mod ending;
mod held;
mod quiet;
mod settings;
mod stall;
#[cfg(test)]
mod tests;

pub(super) use quiet::Quiet;
pub use settings::Settings;

use super::Message;
use super::out::{Call, LogStart, Out};
use super::saves::CutOf;
use super::store::Store;
use crate::durable::file::salt;
use crate::durable::log::{Fsync, Identity, LogConfig, LogWriter, Outcome};
use crate::durable::note::Trouble;
use crate::durable::{Event, Note};
use crate::shard::Shard;
use held::{At, Gates, Held};
use rufous_base::disk::DiskDone;
use rufous_base::{Now, Until, WorkerId};
use stall::Stall;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A longer frame is ended between two commands.
const FRAME_BYTES: usize = 1 << 20;

/// The limit of bytes of frames that wait for the disk; beyond it clients have to wait.
const CONGESTED_BYTES: u64 = 64 << 20;

/// The end of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameEnd {
    /// Replies may have shown its effects; the marks of slots at its end tell nothing.
    pub(super) tells: bool,
    /// The last write of chains in it.
    pub(super) written: Option<u64>,
    /// Writes that chains have committed.
    pub(super) settled: u64,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Commit {
    id: WorkerId,
    settings: Settings,
    /// The seed of the salts of files: the hash seed of the first start.
    file_seed: u64,
    log: Option<LogWriter>,
    /// Frames of earlier logs, from before logging was switched off: positions never decrease.
    base: u64,
    /// The position to commit for everything that replies may have shown.
    told: u64,
    /// Increases with every start of the node.
    run: u64,
    /// The last number of a request to the disk by an earlier log: its answer may still be due.
    next_id: u64,
    held: Held,
    /// Present where the node is one of several.
    gates: Option<Gates>,
    /// The logs that cannot be written or have lost data, and why.
    troubles: BTreeMap<WorkerId, Trouble>,
    stall: Stall,
    /// Nothing more is logged.
    closing: bool,
    /// The node stops.
    ending: bool,
}

impl Commit {
    pub(super) fn new(id: WorkerId, hash_seed: u64) -> Self {
        Self {
            id,
            settings: Settings::default(),
            file_seed: hash_seed,
            log: None,
            base: 0,
            told: 0,
            run: 0,
            next_id: 0,
            held: Held::default(),
            gates: None,
            troubles: BTreeMap::new(),
            stall: Stall::default(),
            closing: false,
            ending: false,
        }
    }

    /// Frames also wait for chains.
    pub(super) fn on_join(&mut self) {
        self.gates = Some(Gates::default());
    }

    /// The files on disk have this seed.
    pub(super) fn on_seed(&mut self, seed: u64) {
        self.file_seed = seed;
    }

    pub(super) fn on_run(&mut self, run: u64) {
        self.run = run;
    }

    /// The settings of the start, which say whether there is a log at first.
    pub(super) fn on_begin(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Worker 0 decides whether changes are logged later.
    pub(super) fn on_settings(&mut self, settings: Settings) {
        if let Some(log) = &mut self.log {
            log.set_fsync(settings.fsync, settings.bounds);
        }
        let log = self.settings.log;
        self.settings = Settings { log, ..settings };
    }

    /// The log of the start begins, unless changes are not logged.
    pub(super) fn on_start(&mut self, at: LogStart, store: &mut Store<'_>) {
        if self.settings.log {
            self.start(at, store);
        }
    }

    fn start(&mut self, at: LogStart, store: &mut Store<'_>) {
        let config = LogConfig {
            fsync: self.settings.fsync,
            bounds: self.settings.bounds,
            segment_bytes: self.settings.segment_bytes,
        };
        let mut identity = self.identity(store.workers());
        identity.salt = at.salt.unwrap_or(identity.salt);
        let mut log = LogWriter::new(config, identity);
        log.start(at.generation, at.index, at.seq);
        log.number_from(self.next_id);
        self.log = Some(log);
        store.shard.observers_mut().set_journaling(true);
    }

    /// The instant of a cut: later frames belong to this generation.
    pub(super) fn on_cut(&mut self, (generation, cut): (u64, CutOf), store: &mut Store<'_>) {
        match &mut self.log {
            Some(log) if !self.closing => log.begin_generation(generation),
            Some(_) => debug_assert_ne!(cut, CutOf::Begin, "the last log has ended"),
            None if cut == CutOf::Begin => self.start(LogStart::of(generation), store),
            None => {}
        }
    }

    /// A save has ended: frames that the snapshot covers are committed with it.
    pub(super) fn on_saved(&mut self, generation: u64) {
        if let Some(log) = &mut self.log {
            log.snapshot_installed(generation);
        }
    }

    /// Whether the open frame is to be ended between two commands.
    #[inline]
    pub(super) fn is_long(shard: &mut Shard) -> bool {
        shard.journal().len() > FRAME_BYTES
    }

    /// Logs the journal as a frame, and empties it. Returns the frame's position.
    #[inline]
    pub(super) fn on_frame(&mut self, end: FrameEnd, shard: &mut Shard) -> u64 {
        let journal = shard.journal();
        let frame = match &mut self.log {
            Some(log) if !self.closing => self.base + log.append(journal) + 1,
            Some(log) => self.base + log.appended(),
            None => {
                self.base += u64::from(self.gates.is_some());
                self.base
            }
        };
        if end.tells && self.commits() {
            self.told = frame;
        }
        if let Some(gates) = &mut self.gates {
            gates.on_frame(frame, end);
        }
        shard.observers_mut().empty_journal();
        let journal = shard.journal();
        if journal.capacity() > 4 * FRAME_BYTES {
            *journal = Vec::new();
        }
        frame
    }

    /// The turn ends, and its frame has. Returns the position that its replies wait for.
    #[inline]
    pub(super) fn on_turn(&mut self, now: Now, out: &mut Out) -> Option<u64> {
        let Some(log) = &mut self.log else {
            // A frame that needs no chain is committed as soon as it has ended.
            if !self.held.is_empty() {
                self.release_at_end(out);
            }
            return self.gate();
        };
        if self.closing {
            log.close();
        }
        log.poll(now, &mut out.disk);
        if log.is_closed() && self.held.is_empty() && !self.ending {
            // Logging was switched off. It may be switched on again.
            self.end(out);
            return self.gate();
        }
        // In trouble replies to reads do not wait, and writes are refused. Replies to writes from
        // before this turn learnt of the trouble do wait: to those of the turn itself, or of an
        // earlier one whose reply waited for others of its connection until now.
        let uncommitted = |e: &Event| matches!(e, Event::Uncommitted(_));
        let gate = self.gate()?;
        (!self.is_in_trouble() || out.events.iter().any(uncommitted)).then_some(gate)
    }

    fn gate(&self) -> Option<u64> {
        (self.committed() < self.told).then_some(self.told)
    }

    /// A message to a worker, which may be this one, that depends on everything that happened so
    /// far. Returns it if it may be sent now; otherwise it is sent once that is committed. While
    /// the log cannot be written, a message that only contains data is sent at once, and one that
    /// reports a commit waits.
    pub(super) fn on_message(
        &mut self,
        to: WorkerId,
        (until, message): (Until, Message),
        shard: &Shard,
    ) -> Option<Message> {
        let position = self.position(shard);
        let tells = matches!(message, Message::Committed { .. } | Message::Post(_));
        let waits = tells || !self.is_in_trouble();
        if waits && self.at().of(until) < position {
            self.held.push(until, (position, to, message));
            return None;
        }
        Some(message)
    }

    /// A reply of the disk to the log. To be called when a frame has ended: if the log is lost, the
    /// writes of this turn so far are lost with it.
    pub(super) fn on_disk(&mut self, now: Now, done: DiskDone, out: &mut Out) {
        let Some(log) = &mut self.log else {
            return;
        };
        let outcome = log.on_done(now, done);
        log.poll(now, &mut out.disk);
        if outcome == Outcome::Failed {
            // If it was already known, no client waits any more.
            let known = self.troubles.get(&self.id).is_some_and(|t| !t.lost);
            if !known && self.committed() < self.told {
                out.events.push(Event::Uncommitted(Until::Logged));
            }
            self.lose(Until::Logged, out);
            self.give_up_stuck(out);
        }
    }

    /// The log or the chains have progressed: reports the log's state to all workers where it has
    /// changed, and sends the messages that waited for this.
    pub(super) fn on_progress(&mut self, store: &Store<'_>, out: &mut Out) {
        self.note_trouble(store, out);
        // Handling these messages may commit nothing.
        let at = self.at();
        while let Some((_, to, message)) = self.held.pop(at, |_| true) {
            out.call(Call::Send(to, message));
        }
    }

    /// Reports to all workers that this log can no longer be written, or can be again.
    fn note_trouble(&mut self, store: &Store<'_>, out: &mut Out) {
        let log = self.log.as_ref();
        let text = log.and_then(LogWriter::trouble);
        let lost = log.is_some_and(|l| l.has_lost() && !l.is_stuck());
        let told = self.troubles.get(&self.id);
        if text == told.map(|t| &*t.text) && told.is_none_or(|t| t.lost == lost) {
            return;
        }
        let text = text.map(Arc::<str>::from);
        out.events.push(Event::Trouble(text.clone()));
        let trouble = text.map(|text| Trouble { text, lost });
        out.tell_all(store, || Note::Trouble(trouble.clone()));
    }

    /// Messages for this worker itself wait for its next turn, but for letters, which are only sent.
    fn release_at_end(&mut self, out: &mut Out) {
        let (at, own) = (self.at(), self.id);
        let leaves = |to, message: &Message| to != own || matches!(message, Message::Post(_));
        while let Some((_, to, message)) = self.held.pop(at, |(_, to, of)| leaves(*to, of)) {
            out.call(Call::Send(to, message));
        }
    }

    /// Messages that wait for `until` or later positions may wait for long. Their clients are told
    /// that the outcome is unknown; messages that only contain data are sent now, as later ones
    /// will be; messages that report a commit wait.
    fn lose(&mut self, until: Until, out: &mut Out) {
        let at = self.at();
        for (until, (position, to, message)) in self.held.take(until) {
            let told = match message {
                message if position <= at.of(until) => message,
                Message::Replies(batch) => Message::Lost(batch),
                // It is sent again.
                Message::Post(_) => continue,
                Message::Committed { multi } => {
                    let message = Message::Committed { multi };
                    self.held.push(until, (position, to, message));
                    Message::Doubtful { multi }
                }
                message => message,
            };
            out.call(Call::Send(to, told));
        }
    }

    /// Chains have lost writes: their outcome is unknown.
    pub(super) fn on_chains_lost(&mut self, out: &mut Out) {
        if let Some(gates) = &mut self.gates {
            gates.on_lost();
        }
        out.events.push(Event::Uncommitted(Until::Passed));
        self.lose(Until::Passed, out);
    }

    /// The chains have committed this many writes.
    pub(super) fn on_settled(&mut self, settled: u64) {
        if let Some(gates) = &mut self.gates {
            gates.on_settled(settled);
        }
    }

    /// Events are taken: the waiting clients are told of losses at the end of this turn.
    pub(super) fn on_events_taken(&mut self) {
        if let Some(gates) = &mut self.gates {
            gates.on_told();
        }
    }

    pub(super) fn on_trouble(&mut self, from: WorkerId, trouble: Option<Trouble>) {
        match trouble {
            Some(trouble) => self.troubles.insert(from, trouble),
            None => self.troubles.remove(&from),
        };
    }

    /// The node stops: ends the log. True once it is on disk, or if there is no log.
    pub(super) fn on_stop(&mut self, now: Now, out: &mut Out) -> bool {
        let Some(log) = &mut self.log else {
            return true;
        };
        self.closing = true;
        self.ending = true;
        log.close();
        log.poll(now, &mut out.disk);
        log.is_closed()
    }
}

/// What others ask.
impl Commit {
    pub(super) fn log(&self) -> Option<&LogWriter> {
        self.log.as_ref()
    }

    /// Whether commands are logged.
    pub(super) fn logs(&self) -> bool {
        self.log.is_some() && !self.closing
    }

    /// Whether there is a log or chain that replies wait for.
    pub(super) fn commits(&self) -> bool {
        self.logs() || self.gates.is_some()
    }

    /// Whether this worker's log accepts frames, if it has one.
    pub(super) fn is_ready(&self) -> bool {
        let log = self.log.as_ref();
        log.is_none_or(|log| log.generation_ready(log.generation()))
    }

    pub(super) fn identity(&self, workers: usize) -> Identity {
        Identity {
            worker: self.id.0,
            workers: workers as u16,
            run: self.run,
            salt: salt(self.file_seed),
        }
    }

    /// The position that commits everything that happened so far.
    pub(super) fn position(&self, shard: &Shard) -> u64 {
        let open = !self.closing && shard.observers().journal_tells();
        match &self.log {
            Some(log) if open => self.base + log.appended() + 1,
            None if open && self.gates.is_some() => self.base + 1,
            _ => self.told,
        }
    }

    /// The frame of the current journal, or the last one.
    pub(super) fn open_frame(&self, shard: &mut Shard) -> u64 {
        let is_open = !shard.journal().is_empty();
        self.base + self.log.as_ref().map_or(0, LogWriter::appended) + u64::from(is_open)
    }

    /// The position that is committed in the log.
    pub(super) fn logged(&self) -> u64 {
        self.base + self.log.as_ref().map_or(0, LogWriter::committed)
    }

    /// The position that is synced, if what is committed need not be.
    pub(super) fn synced(&self) -> Option<u64> {
        let log = self.log.as_ref().filter(|_| !self.closing)?;
        (log.fsync() == Fsync::EverySec).then(|| self.base + log.synced())
    }

    /// The position that is committed in the log and in chains.
    pub(super) fn committed(&self) -> u64 {
        let logged = self.logged();
        match &self.gates {
            None => logged,
            Some(gates) => gates.committed_of(logged),
        }
    }

    fn at(&self) -> At {
        At {
            passed: self.committed(),
            logged: self.logged(),
        }
    }

    /// Frames that wait for chains.
    pub(super) fn gates(&self) -> usize {
        self.gates.as_ref().map_or(0, Gates::len)
    }

    /// Whether a waiting message may be sent.
    pub(super) fn has_passed(&self) -> bool {
        self.held.has_passed(self.at())
    }

    /// Whether a log cannot be written, so that waiting for it takes long.
    pub(super) fn is_stuck(&self) -> bool {
        self.troubles.values().any(|t| !t.lost)
    }

    /// Why this worker's log takes no frames, if it takes none.
    pub(super) fn ails(&self) -> Option<String> {
        if let Some(trouble) = self.troubles.get(&self.id) {
            return Some(format!("its log cannot be written: {}", trouble.text));
        }
        self.hangs().then(|| "its disk does not answer".to_owned())
    }

    pub(super) fn is_in_trouble(&self) -> bool {
        self.troubles.contains_key(&self.id)
    }

    /// Why changes are refused now.
    #[inline]
    pub(super) fn trouble(&self) -> Option<&Arc<str>> {
        if self.troubles.is_empty() {
            return None;
        }
        self.troubles.values().next().map(|t| &t.text)
    }

    /// Whether the disk is so far behind that no more requests should be accepted.
    pub(super) fn is_congested(&self) -> bool {
        let log = self.log.as_ref();
        let pending = log.map_or(0, |l| l.gauges().pending_bytes);
        let behind = log.is_some_and(LogWriter::is_far_behind);
        (pending > CONGESTED_BYTES || behind) && !self.is_in_trouble()
    }
}
