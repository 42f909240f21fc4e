//! Conversion of existing keys by a change of the table of keyspaces.
//!
//! Everything of every worker is held. Each worker examines its keys and counts those whose
//! replication changes, and those that cannot be converted: if there are any of these, the change
//! is refused. Otherwise:
//!
//! 1. If some keys have replicas, every worker sends its changes and waits for those of the others:
//!    now all replicas are equal, and no message between them is in transit (a *drain*). Their
//!    contents, including concurrent values, are known only now, and so every worker examines its
//!    keys again.
//! 2. Every worker adopts the table and converts its keys, in the piece of the log that has the
//!    table: a start finds both or neither. The primary makes plain values replicated and replicas
//!    plain; other replicas are removed. A start drops a log's replicas from before such a table
//!    ([`crate::shard::Shard::apply`]): their current state follows in the primary's log, and what
//!    was deleted and forgotten must not be restored from a log that has less than others.
//! 3. Another drain: no worker releases its keys before the new replicas exist everywhere.

use super::replicating::each_grave;
use super::{Message, Worker};
use crate::keyspace::{Keyspace, Keyspaces};
use crate::lock::Ticket;
use crate::multi::Multi;
use crate::program::Program;
use crate::shard::convert::reshapes;
use crate::shard::{Item, convert};
use rufous_base::limits::DATABASES;
use rufous_base::{Now, Output, WorkerId};
use rufous_datatype::replicated::Writer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The limit of keys that one change converts.
const MOST_KEYS: u64 = 1_000_000;
/// The limit of bytes of their values and names.
const MOST_BYTES: u64 = 256 << 20;
/// Why no key is converted that other nodes may have.
const SHARED: &str = "other nodes of the cluster have them, too";
/// Keys per step of a walk.
const KEYS: usize = 1024;

/// A worker's findings, while everything is held.
#[derive(Debug, Default)]
pub struct Findings {
    /// Keys to convert, and the bytes of their values and names.
    keys: u64,
    bytes: u64,
    /// Keys that cannot be converted.
    unfit: u64,
    /// One of them, and why.
    example: Option<(Box<[u8]>, &'static str)>,
    /// Some keys have replicas, which may not be equal yet.
    is_shared: bool,
}

impl Findings {
    pub(super) fn add(&mut self, other: Findings) {
        self.keys += other.keys;
        self.bytes += other.bytes;
        self.unfit += other.unfit;
        self.is_shared |= other.is_shared;
        if self.example.is_none() {
            self.example = other.example;
        }
    }

    /// Whether replicas must be sent.
    pub(super) fn converts(&self) -> bool {
        self.keys > 0
    }

    fn count(&mut self, item: &Item<'_>, is_shared: bool) {
        self.keys += 1;
        self.bytes += (item.key.len() + convert::size_of_value(item.value)) as u64;
        self.is_shared |= is_shared;
    }

    fn unfit(&mut self, key: &[u8], why: &'static str) {
        self.unfit += 1;
        self.example.get_or_insert_with(|| (key.into(), why));
    }

    /// Why the change cannot be made.
    fn refusal(&self) -> Option<String> {
        if let Some((key, why)) = &self.example {
            return Some(format!(
                "keys with this prefix cannot be replicated otherwise than they are: {} of them, \
                 '{}' among these: {why}. Delete them, or copy them to another prefix",
                self.unfit,
                key.escape_ascii()
            ));
        }
        (self.keys > MOST_KEYS || self.bytes > MOST_BYTES).then(|| {
            format!(
                "{} keys with {} bytes would have to be converted while everything waits: \
                 at most {MOST_KEYS} keys and {MOST_BYTES} bytes are. \
                 Write the data again under another prefix",
                self.keys, self.bytes
            )
        })
    }
}

/// The lattice keyspaces that a key leaves and enters.
type Move<'a> = (Option<&'a Keyspace>, Option<&'a Keyspace>);

/// Messages between workers.
#[derive(Debug)]
pub enum Draining {
    /// The sender's command installs this table on all workers, and holds everything: send all
    /// workers the changes of replicas and, after receiving theirs, tell the sender what the table
    /// would do.
    Begin { multi: u64, table: Arc<Keyspaces> },
    /// The sender has sent all its changes, before or after it adopted the table of this version.
    Sent { version: u64, taken: bool },
    /// All replicas here are equal to those elsewhere, for the receiver's command.
    Settled { multi: u64, findings: Findings },
}

/// A drain: every worker tells every other that it has sent all its changes.
#[derive(Debug)]
struct Drain {
    /// Version of the new table, and whether it has been adopted.
    of: (u64, bool),
    sent: bool,
    then: Then,
}

#[derive(Debug)]
enum Then {
    /// Report what this change would do, to this command at that worker.
    Tell(WorkerId, u64, Arc<Keyspaces>),
    /// End this hold, once that is allowed.
    LetGo(Option<Ticket>),
}

/// The drains of a worker.
#[derive(Debug, Default)]
pub(super) struct Drains {
    current: Option<Drain>,
    /// How many others have sent all their changes, also before this worker began.
    heard: BTreeMap<(u64, bool), usize>,
    /// Messages of workers that have already adopted the table, while this worker, whose replicas
    /// were equal to theirs before that, has not.
    early: Option<Vec<Arc<[u8]>>>,
    /// Keys of this worker that were converted since the start.
    pub(super) converted: u64,
}

impl Drains {
    /// Keeps a message of another worker until this one has adopted the table too: its conversion
    /// must not remove what was just received. Returns the message if it need not be kept.
    pub(super) fn keep_early(&mut self, bytes: Arc<[u8]>) -> Option<Arc<[u8]>> {
        match &mut self.early {
            Some(early) => {
                early.push(bytes);
                None
            }
            None => Some(bytes),
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Whether changes of held keys are to be sent too.
    pub(super) fn is_open(&self) -> bool {
        self.current.as_ref().is_some_and(|drain| !drain.sent)
    }
}

impl<P: Program> Worker<P> {
    /// What a change to this table would do here. `equal`: all replicas are known to be equal.
    pub(super) fn look_at(&mut self, table: &Keyspaces, equal: bool, now: Now) -> Findings {
        let (old, workers) = (Arc::clone(&self.lattice.table), self.placement.workers());
        let mut found = Findings::default();
        if !old.has_lattice() && !table.has_lattice() {
            return found;
        }
        let equal = equal || workers == 1;
        let is_shared = self.shares_lattices();
        for db in 0..DATABASES {
            let mut look = |item: Item<'_>| {
                let between = (old.lattice(item.key), table.lattice(item.key));
                if !reshapes(between, workers) {
                    return;
                }
                found.count(&item, between.0.is_some());
                if is_shared {
                    found.unfit(item.key, SHARED);
                }
                // Each key is examined once; a replica by its primary, when replicas are equal.
                let counts = match between.0 {
                    Some(_) => equal && self.placement.is_primary(item.key),
                    None => true,
                };
                if counts && let Some(why) = convert::refuses(&item, between) {
                    found.unfit(item.key, why);
                }
            };
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                cursor = self.shard.scan(db, at, KEYS, now, &mut look);
            }
            each_grave(&self.shard, db, &mut |key| {
                if reshapes((old.lattice(key), table.lattice(key)), workers) {
                    found.keys += 1;
                    found.is_shared = true;
                    if is_shared {
                        found.unfit(key, SHARED);
                    }
                }
                false
            });
        }
        found
    }

    /// Everything is held: refuses the change, or first makes all replicas equal. Returns the
    /// command if it need not wait.
    pub(super) fn judge_table(&mut self, mut multi: Multi) -> Option<Multi> {
        let Some(table) = &multi.table else {
            return Some(multi);
        };
        let why = if table.version() != self.lattice.table.version() + 1 {
            Some("the keyspaces were changed meanwhile, try again".to_owned())
        } else {
            multi.findings.refusal()
        };
        if let Some(why) = why {
            multi.table = None;
            let (header, ..) = multi.batch.parts(0);
            let mut reply = Output::default();
            P::refuse(header.command, &why, header.resp3, &mut reply);
            multi.batch.set_reply(reply);
            return Some(multi);
        }
        let workers = self.placement.workers();
        if multi.drained || !multi.findings.is_shared || workers == 1 {
            return Some(multi);
        }
        let table = Arc::clone(table);
        let id = self.next_multi;
        self.next_multi += 1;
        multi.awaited = workers;
        multi.findings = Findings::default();
        self.multis.insert(id, multi);
        for worker in 0..workers {
            let table = Arc::clone(&table);
            match WorkerId(worker as u16) {
                to if to == self.id => self.on_drain(self.id, id, table),
                to => self.send(to, Message::Draining(Draining::Begin { multi: id, table })),
            }
        }
        None
    }

    pub(super) fn on_draining(&mut self, now: Now, from: WorkerId, note: Draining) {
        match note {
            Draining::Begin { multi, table } => self.on_drain(from, multi, table),
            Draining::Sent { version, taken } => {
                let heard = &mut self.lattice.drains.heard;
                *heard.entry((version, taken)).or_insert(0) += 1;
            }
            Draining::Settled { multi, findings } => {
                self.on_settled(now, multi, findings);
            }
        }
    }

    fn on_drain(&mut self, coordinator: WorkerId, multi: u64, table: Arc<Keyspaces>) {
        let version = table.version();
        self.drain((version, false), Then::Tell(coordinator, multi, table));
    }

    fn drain(&mut self, of: (u64, bool), then: Then) {
        debug_assert!(self.lattice.drains.current.is_none(), "all is held once");
        self.lattice.replicas.start();
        let sent = false;
        self.lattice.drains.current = Some(Drain { of, sent, then });
    }

    /// Once all changes here were taken and sent, tells the other workers so, behind these changes.
    pub(super) fn note_drained(&mut self) {
        let lattice = &mut self.lattice;
        let Some(drain) = &mut lattice.drains.current else {
            return;
        };
        if drain.sent || !lattice.replicas.has_sent_all(self.shard.changeset()) {
            return;
        }
        drain.sent = true;
        let (version, taken) = drain.of;
        for worker in 0..self.placement.workers() {
            let to = WorkerId(worker as u16);
            if to != self.id {
                let sent = Draining::Sent { version, taken };
                self.send_logged(to, Message::Draining(sent));
            }
        }
    }

    /// Whether a drain has all messages that it waits for.
    pub(super) fn has_drained(&self) -> bool {
        let drains = &self.lattice.drains;
        let Some(drain) = &drains.current else {
            return false;
        };
        let heard = drains.heard.get(&drain.of).copied().unwrap_or(0);
        let others = self.placement.workers() - 1;
        let waits = matches!(drain.then, Then::LetGo(None));
        drain.sent && heard == others && self.lattice.replicas.has_merged_all() && !waits
    }

    /// Ends a drain: all replicas of this worker are equal to those of the others.
    pub(super) fn end_drain(&mut self, now: Now) {
        if !self.has_drained() {
            return;
        }
        let Some(Drain { of, then, .. }) = self.lattice.drains.current.take() else {
            return;
        };
        self.lattice.drains.heard.remove(&of);
        match then {
            Then::Tell(coordinator, multi, table) => {
                let findings = self.look_at(&table, true, now);
                self.lattice.drains.early = Some(Vec::new());
                if coordinator == self.id {
                    self.on_settled(now, multi, findings);
                } else {
                    self.send(
                        coordinator,
                        Message::Draining(Draining::Settled { multi, findings }),
                    );
                }
            }
            Then::LetGo(Some(ticket)) => self.let_go(now, ticket),
            Then::LetGo(None) => {}
        }
    }

    /// A worker's replicas are equal to those of the others, and it has examined its keys again.
    fn on_settled(&mut self, now: Now, id: u64, findings: Findings) {
        let Some(multi) = self.multis.get_mut(&id) else {
            debug_assert!(false, "settled, but not under way");
            return;
        };
        multi.awaited -= 1;
        multi.findings.add(findings);
        if multi.awaited == 0
            && let Some(mut multi) = self.multis.remove(&id)
        {
            multi.drained = true;
            self.finish(now, multi);
        }
    }

    /// Ends the hold of a command; for a change of the table only when the new replicas are here.
    pub(super) fn end_hold(&mut self, now: Now, ticket: Ticket) {
        if let Some(drain) = &mut self.lattice.drains.current
            && let Then::LetGo(slot) = &mut drain.then
        {
            *slot = Some(ticket);
            return;
        }
        // The table may have been refused.
        self.take_early(now);
        self.let_go(now, ticket);
    }

    fn take_early(&mut self, now: Now) {
        for bytes in self.lattice.drains.early.take().into_iter().flatten() {
            self.on_replicate(now, bytes);
        }
    }

    /// Adopts a table. `converts`: some worker has keys that do not fit it.
    pub(super) fn change_table(&mut self, now: Now, table: &Arc<Keyspaces>, converts: bool) {
        let old = Arc::clone(&self.lattice.table);
        self.take_table(table);
        if converts {
            self.convert(&old, table, now);
            self.note_writes(now);
            if self.placement.workers() > 1 && self.placement.has_lattice() {
                self.drain((table.version(), true), Then::LetGo(None));
            }
        }
        self.take_early(now);
    }

    fn convert(&mut self, old: &Keyspaces, new: &Keyspaces, now: Now) {
        let workers = self.placement.workers();
        for db in 0..DATABASES {
            let mut names = Vec::<Box<[u8]>>::new();
            let mut take = |key: &[u8]| {
                if reshapes((old.lattice(key), new.lattice(key)), workers) {
                    names.push(key.into());
                }
                false
            };
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let mut look = |item: Item<'_>| {
                    take(item.key);
                };
                cursor = self.shard.scan(db, at, KEYS, now, &mut look);
            }
            each_grave(&self.shard, db, &mut take);
            let stamp = self.lattice.replicas.stamp(now);
            self.shard.begin_lattice(Writer { stamp });
            self.lattice.drains.converted += names.len() as u64;
            for name in &names {
                self.convert_one(db, name, (old.lattice(name), new.lattice(name)), now);
            }
            if let Some(ended) = self.shard.end_lattice() {
                debug_assert_eq!(ended.refused, None, "all of them were looked at");
                self.lattice.replicas.observe(ended.next);
            }
        }
    }

    fn convert_one(&mut self, db: usize, name: &[u8], (from, to): Move<'_>, now: Now) {
        let key = self.shard.key(name);
        let stays = self.placement.owners(name).any(|owner| owner == self.id);
        let is_primary = self.placement.is_primary(name);
        let Some(from) = from else {
            return convert::make_replicated(&mut self.shard, db, key, now);
        };
        // Removed replicas are no longer sent, and so need no grave.
        if !self.shard.contains(db, key, now) {
            return convert::drop_replicated(&mut self.shard, db, key, now);
        }
        let pick = from.resolve.pick();
        let stays_as_it_is =
            to.is_some_and(|to| !convert::rewrites(&mut self.shard, db, key, (from, to), now));
        match (stays_as_it_is, is_primary) {
            (false, true) => convert::write_anew(&mut self.shard, db, key, pick, now),
            (true, true) => convert::spread(&mut self.shard, db, key, now),
            (true, false) if stays => {}
            (_, false) => convert::drop_replicated(&mut self.shard, db, key, now),
        }
    }
}
