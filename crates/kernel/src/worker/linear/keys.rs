//! How a slot executes the commands of a transaction.

use super::Linear;
use super::together::Together;
use super::typing::KeyOp;
use crate::batch::Header;
use crate::body::{self, Command, Commands, Deed, Fetched};
use crate::lock::KeyName;
use crate::multi::Change;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::shard::WatchId;
use crate::worker::{Worker, spanning};
use rufous_base::limits::DATABASES;
use rufous_base::slot::slot_of;
use rufous_base::{Args, ConnId, Now, Output};
use rufous_linear::{Later, Others, Stamp, State, Transaction, TxnId};
use std::sync::Arc;

/// The keys of a worker's slots.
pub(super) struct Keys<'a, P: Program> {
    pub(super) worker: &'a mut Worker<P>,
    pub(super) now: Now,
    /// The epoch since which the slot's chain is unchanged.
    pub(super) since: u64,
}

/// The client's reply where a body is none: a node of another version has sent it.
const NO_BODY: &[u8] =
    b"-ERR the transaction cannot be read: are the nodes of this cluster of different versions?\r\n";

impl<P: Program> State<KeyOp> for Keys<'_, P> {
    /// Keys have no versions: conditions are among the commands.
    fn version(&self, _: &[u8]) -> Option<Stamp> {
        None
    }

    fn others(&self, key: &[u8]) -> Others {
        if self.worker.parking.awaits(key) {
            Others::Wait
        } else if is_free(self.worker, key) {
            Others::None
        } else {
            Others::Hold
        }
    }

    fn refuses(&mut self, txn: &Transaction<KeyOp>, slot: u16) -> Option<Vec<u8>> {
        let Some(commands) = self.commands(txn) else {
            return Some(NO_BODY.into());
        };
        let is_here = |command: &&Command| match command.deed {
            Deed::Join { .. } => txn.last() == slot,
            _ => command.slot == slot,
        };
        let mut here = commands.all.iter().filter(is_here);
        here.find_map(|command| self.refuses_one(txn, command))
    }

    fn gather(&mut self, txn: &Transaction<KeyOp>, slot: u16) -> Result<Vec<u8>, Vec<u8>> {
        let commands = self.commands(txn).unwrap_or_default();
        Together::new(self, txn, slot, &commands.all).gather()
    }

    fn is_apart(&mut self, txn: &Transaction<KeyOp>) -> bool {
        self.commands(txn)
            .is_some_and(|commands| commands.are_apart)
    }

    fn apply(
        &mut self,
        txn: &Transaction<KeyOp>,
        slot: u16,
        _: Stamp,
        later: Later<'_>,
    ) -> Vec<u8> {
        let commands = self.commands(txn).unwrap_or_default();
        let here = commands.all.iter().filter(|command| command.slot == slot);
        let mut replies: Vec<Vec<u8>> = here.filter_map(|command| self.run(txn, command)).collect();
        let mut together = Together::new(self, txn, slot, &commands.all);
        let (more, changes) = together.run();
        if let Later::Told(told) = later {
            together.change(told);
        }
        replies.extend(more);
        leave_out(&mut replies, later.len());
        body::tell(slot, &replies, &changes)
    }
}

impl<P: Program> Keys<'_, P> {
    /// The commands of a transaction; `None`: they cannot be read. Slots of this worker that it visits one after the other
    /// read them once.
    fn commands(&mut self, txn: &Transaction<KeyOp>) -> Option<Arc<Commands>> {
        self.worker.linear.commands(txn.id, txn.body())
    }

    /// What the client is told if a command may not be executed here, or a condition fails.
    fn refuses_one(&mut self, txn: &Transaction<KeyOp>, command: &Command) -> Option<Vec<u8>> {
        let body = txn.body();
        let word = |at: usize| word_of(body, command, at);
        let deed = command.deed;
        let is_condition = matches!(deed, Deed::Missing | Deed::Untouched { .. });
        if is_condition && planted::is(Planted::ConditionsNotChecked) {
            return None;
        }
        let mut out = Output::default();
        match command.deed {
            Deed::Run { .. } | Deed::Join { .. } => {
                let Some(header) = self.header(body, command) else {
                    let name = String::from_utf8_lossy(word(0)).into_owned();
                    let why = format!("ERR unknown command '{name}' at a node of this cluster");
                    P::refuse_slot(&why, command.resp3, &mut out);
                    return Some(out.to_vec());
                };
                let key = word(usize::from(header.key) + 1);
                self.refuses_key(key, command.resp3)
                    .or_else(|| self.refuses_to_run(&header))
            }
            Deed::Gather => {
                let header = P::find(word(1)).map(|id| header_of(command, id));
                self.refuses_key(word(0), command.resp3)
                    .or_else(|| self.refuses_to_run(&header?))
            }
            Deed::Missing => {
                let key = self.worker.shard.key(word(0));
                let db = usize::from(command.db);
                let exists = self.worker.shard.contains(db, key, self.now);
                exists.then(|| word(1).to_vec())
            }
            Deed::Untouched { watcher, since } => {
                let key = (command.db, word(0).into());
                let is_as_seen = self.is_untouched(txn.id, key, (watcher, since));
                let null: &[u8] = if command.resp3 { b"_\r\n" } else { b"*-1\r\n" };
                (!is_as_seen).then(|| null.to_vec())
            }
            Deed::Fetch { .. } => {
                let (db, key) = (usize::from(command.db), self.worker.shard.key(word(0)));
                let memory = self.worker.shard.memory_of(db, key, self.now);
                // It is not written out to see how long it is.
                let is_huge = memory > Some(4 * MOST_TOLD);
                let too_much = is_huge.then(|| TOO_LONG.to_vec());
                too_much.or_else(|| self.refuses_key(word(0), command.resp3))
            }
            Deed::Watch { .. } | Deed::Unwatch { .. } | Deed::Undoes => None,
        }
    }

    fn refuses_key(&self, key: &[u8], resp3: bool) -> Option<Vec<u8>> {
        self.worker.placement.lattice(key)?;
        let mut out = Output::default();
        let why =
            "TRYAGAIN A key of the transaction is in a lattice keyspace by now; nothing was done";
        P::refuse_slot(why, resp3, &mut out);
        Some(out.to_vec())
    }

    fn refuses_to_run(&mut self, header: &Header) -> Option<Vec<u8>> {
        let mut out = Output::default();
        let may_run = self.worker.may_run(self.now, header, &mut out);
        (!may_run).then(|| out.to_vec())
    }

    fn is_untouched(&mut self, txn: TxnId, key: KeyName, (watcher, since): (u64, u64)) -> bool {
        let (worker, now) = (&mut *self.worker, self.now);
        if since == 0 {
            // The client's node had the slot.
            return worker.linear.is_own(txn)
                && !worker.is_dirty_here(WatchId(watcher), &[key], now);
        }
        let id = Linear::watcher_of(txn, watcher);
        let chains = worker.chains.as_ref();
        let is_since = chains.and_then(|chains| chains.takes_since(now, slot_of(&key.1)));
        let hash = worker.shard.key(&key.1).hash;
        let watches = worker.shard.observers().watches();
        let is_same = is_since == Some(since);
        let knows =
            watches.knows(id, key.0, hash) && is_same || planted::is(Planted::LostWatchTrusted);
        knows && !worker.is_dirty_here(id, &[key], now)
    }

    pub(super) fn header(&self, body: &[u8], command: &Command) -> Option<Header> {
        let (Deed::Run { key } | Deed::Join { key }) = command.deed else {
            return None;
        };
        let first = word_of(body, command, usize::from(key) + 1);
        if matches!(command.deed, Deed::Run { .. }) && slot_of(first) != command.slot {
            return None;
        }
        Some(Header {
            key,
            hash: self.worker.shard.key(first).hash,
            ..header_of(command, P::find(word_of(body, command, 0))?)
        })
    }

    /// Records a watch of a command's key. Returns the epoch since which the chain is unchanged.
    fn watch(&mut self, txn: &Transaction<KeyOp>, command: &Command, watcher: u64) -> u64 {
        let key = word_of(txn.body(), command, 0);
        let key = self.worker.shard.key(key);
        let id = Linear::watcher_of(txn.id, watcher);
        let (db, now) = (usize::from(command.db), self.now);
        self.worker.shard.watch(db, key, id, now);
        let linear = &mut self.worker.linear;
        linear.on_watch(id, txn.id, command.slot, self.since)
    }

    /// The value of a key, as effects; empty if there is none.
    pub(super) fn value_of(&mut self, key: KeyName) -> Vec<u8> {
        let (worker, now) = (&mut *self.worker, self.now);
        let (db, name) = (usize::from(key.0), worker.shard.key(&key.1));
        let entry = worker.shard.gather_entry(db, name, now);
        if entry.is_none() {
            return Vec::new();
        }
        let mut scratch = worker.spanning.spare_shard(&worker.shard);
        let write = (key, Change::Whole(entry));
        let effects = spanning::effects_of(&mut scratch, &write, now);
        worker.spanning.keep_shard(scratch);
        effects
    }

    /// The reply to a command; `None` for a condition.
    fn run(&mut self, txn: &Transaction<KeyOp>, command: &Command) -> Option<Vec<u8>> {
        let body = txn.body();
        match command.deed {
            Deed::Watch { watcher } => {
                let since = self.watch(txn, command, watcher);
                return Some(format!(":{since}\r\n").into_bytes());
            }
            Deed::Fetch { watcher } => {
                let is_watched = watcher > 0;
                let since = is_watched.then(|| self.watch(txn, command, watcher));
                let key = (command.db, word_of(body, command, 0).into());
                let effects = self.value_of(key);
                let fetched = Fetched {
                    since: since.unwrap_or_default(),
                    effects: &effects,
                };
                return Some(fetched.tell());
            }
            Deed::Unwatch { watcher } => {
                let id = Linear::watcher_of(txn.id, watcher);
                self.worker.linear.on_unwatch(id);
                self.worker.shard.observers_mut().unwatch(id);
                return None;
            }
            Deed::Run { .. } => {}
            Deed::Missing
            | Deed::Untouched { .. }
            | Deed::Gather
            | Deed::Join { .. }
            | Deed::Undoes => return None,
        }
        let header = self.header(body, command)?;
        let mut out = Output::default();
        let args = Args::new(body, command.words.get(1..)?, &mut []);
        self.worker.run_through(self.now, &header, args, &mut out);
        Some(bytes_of(&out, MOST_TOLD).unwrap_or_else(|| LEFT_OUT.into()))
    }
}

/// A reply as bytes. `None` if it has more than that: one that is made while it is sent may be longer than memory.
pub(super) fn bytes_of(out: &Output, most: usize) -> Option<Vec<u8>> {
    let shared = out.shared.iter().map(|(_, apart)| apart.len());
    let all = shared.fold(out.bytes.len(), usize::saturating_add);
    (all <= most).then(|| out.to_vec())
}

/// Whether no command over several workers holds a key, in any database.
pub(super) fn is_free<P: Program>(worker: &Worker<P>, key: &[u8]) -> bool {
    let locks = &worker.locks;
    locks.is_idle() || (0..DATABASES).all(|db| !locks.blocks(db as u8, key))
}

/// The limit of what the slots of a transaction tell: each one on the way to the client keeps it until the transaction is
/// over.
pub(super) const MOST_TOLD: usize = 4 << 20;
/// A reply that is not longer is always told.
const SHORT: usize = 128;
const TOO_LONG: &[u8] = b"-ERR values of keys of other nodes are copied for a transaction, 4194304 bytes at a time: the command was not executed\r\n";
const LEFT_OUT: &[u8] = b"-ERR the replies of a transaction over several slots have at most 4194304 bytes: the command was executed, and its reply is left out\r\n";

/// Replaces replies that are too long to be told, beside so many bytes of later slots.
fn leave_out(replies: &mut [Vec<u8>], later: usize) {
    let mut told = later;
    for reply in replies {
        if reply.len() > SHORT && told + reply.len() > MOST_TOLD {
            *reply = LEFT_OUT.into();
        }
        told += reply.len();
    }
}

/// A command that no client waits for here.
fn header_of(command: &Command, id: u16) -> Header {
    Header {
        conn: ConnId {
            slot: u32::MAX,
            generation: 0,
        },
        client: 0,
        seq: 0,
        command: id,
        db: command.db,
        resp3: command.resp3,
        no_touch: false,
        quiet: command.quiet,
        door: Default::default(),
        key: 0,
        hash: 0,
        strict_in: None,
    }
}

pub(super) fn word_of<'b>(body: &'b [u8], command: &Command, at: usize) -> &'b [u8] {
    let word = command.words.get(at);
    let word = word.and_then(|(at, len)| body.get(*at as usize..)?.get(..*len as usize));
    word.unwrap_or_default()
}
