//! The data of one worker: sixteen databases of keys and values, and an internal one for the books of transactions.
//!
//! A lookup costs two cache misses, a line of the index and the record, and [`Shard::warm_index`] and
//! [`Shard::warm_record`] let a batch of commands wait for its misses together. No operation blocks the worker for
//! long: growth, shrink, expiry and compaction go in small steps, and large objects that are dropped (big values,
//! flushed databases) are handed out by [`Shard::take_garbage`]. The shard reads no clock, and its randomness is
//! seeded.
//!
//! An expired key is absent for every caller, whether or not its memory has been freed; a command that accesses it
//! removes it.
//!
//! Map, in reading order:
//! - [`types`]: arguments and results
//! - [`policy`]: access stamps, by time or by frequency
//! - `change`, `reading`: what the shard passes on to its parts; `round`: work for one database after the other
//! - `databases`: all databases with what they share (`env`); `at`: a key of one, and the operations on it; `collection`:
//!   changes of values other than strings
//! - `db`: one database; `write`: writing strings; `expiring`: removing what has expired
//! - `observers`: what changes are reported to: the `journal`, watchers of keys (`watch`), keys with waiters (`awaited`)
//! - `snapshot`: all data as of an instant, while commands run
//! - `slots`: copies the keys of single slots while commands run, and drops them; `guests`: slots that another node
//!   answers for; `by_slot`: the number of keys of each slot; `marks`: how much of each slot is here; `books`: the
//!   books of transactions, which belong to slots as well
//! - `garbage`: removed values that another thread drops
//! - `replay`: replays a journal; `held`: counts that a replay holds back; `gone`: writes that are forgotten (`remains`:
//!   values without these, `noted`: notes of them)
//! - [`convert`]: conversion of values when the keyspace of their keys changes (`forms`)
//! - `copying`: values that go from one key to another, of which one is replicated
//! - `lattice`: which keys are replicated, and what a command may do with them; `horizons`: what all replicas have
//!   received, and what is forgotten; `contexts`: what clients have seen
//! - `writes`: writes to replicated keys, `strings` of them, `causal` those with causal order, `overwrite` the fast
//!   path, `turn` those of a turn together; `merging`: states from other replicas; `replica`, `graves`: the storage of
//!   this worker's replica
//! - `records`: the records of a database; `beside`: what is too large for them (`slab`); `placed`: where a value goes
//! - `record`: the layout of a record in its slot
//! - `classes`, `arena`, `compact`: size classes, pages of slots, and emptying pages
//! - `segment`, `index`: from hash to record
//! - `deadlines`: which records expire and when (`expiry`: in their order)
//! - `census`: how many records this worker counts, and lists to connections of each worker; `listing`: which keys a
//!   list has
//! - `recent`: recently written records, found without a lookup; prefetching
//! - `walk`: the index in the order of hashes, and at random
//! - `sample`: drawing records to be evicted
//! - `table`: arrays that grow without moving

mod arena;
mod at;
mod awaited;
mod beside;
mod books;
mod by_slot;
pub mod causal;
mod census;
mod change;
mod classes;
mod collection;
mod compact;
mod contexts;
pub mod convert;
mod copying;
mod databases;
mod db;
mod deadlines;
mod env;
mod expiring;
mod expiry;
mod forms;
mod garbage;
mod gone;
mod graves;
mod guests;
mod held;
mod horizons;
mod index;
mod journal;
mod lattice;
mod listing;
mod marks;
pub mod merging;
mod noted;
mod observers;
mod overwrite;
mod placed;
pub mod policy;
mod reading;
mod recent;
mod record;
mod records;
mod remains;
mod replay;
mod replica;
mod round;
mod sample;
mod segment;
mod slab;
mod slots;
mod snapshot;
pub mod strings;
mod table;
#[cfg(test)]
mod tests;
pub mod told;
mod turn;
pub mod types;
mod versions;
mod walk;
mod watch;
mod write;
mod writes;

pub use at::At;
pub use causal::{ON_COPIES, Written};
pub use collection::Editor;
pub use contexts::Contexts;
pub use copying::{DbKey, copy_shown, move_shown};
pub use graves::GraveKeys;
pub use held::{Held, bring_back};
pub use horizons::Horizons;
pub use lattice::{CLOCKS_LEAD, Ended, Keyed, Keying, Lattice};
pub use listing::{ListStep, Listing, Slots as ListedSlots};
pub use marks::{Marks, NO_NODE};
pub use merging::Replica;
pub use observers::Observers;
pub use policy::Policy;
pub(crate) use record::equal;
pub use sample::{Drawn, Draws, Eviction, Sample};
pub use slots::slot_of_effect;
pub use snapshot::{Snapshot, SnapshotProgress};
pub use types::{
    Any, Counters, Entry, ExpirySetting, Item, Key, KeyName, Memory, NewValue, OwnedValue, Value,
    Warm, WrongType,
};
pub use watch::{WatchId, Watches};

use crate::changeset::Changeset;
use crate::effect::SlotMark;
use databases::Databases;
use db::{Db, keys};
use replay::Replay;
use round::Round;
use rufous_base::limits::{BOOKS, DATABASES};
use rufous_base::{Garbage, Now};
use rufous_datatype::algebra::Tuning;
use rufous_datatype::replicated::Writer;
use sample::evict;
use slots::Slots;
use std::sync::Arc;

/// See the module's description. Database numbers must be below
/// [`ALL_DATABASES`](rufous_base::limits::ALL_DATABASES); a key must have been made by [`Shard::key`] of a shard with
/// the same seed.
#[derive(Debug)]
pub struct Shard {
    data: Databases,
    slots: Slots,
    marks: Marks,
    replay: Replay,
    /// At which database expiry and maintenance continue.
    expiry: Round,
    maintenance: Round,
}

impl Shard {
    /// Keys whose cache misses [`Shard::warm`] takes together.
    pub const WARMED: usize = Databases::WARMED;

    /// Clients must not be able to guess the seed: they could choose keys with equal hashes.
    pub fn new(seed: u64) -> Self {
        Self {
            data: Databases::new(seed),
            slots: Slots::default(),
            marks: Marks::default(),
            replay: Replay::default(),
            expiry: Round::default(),
            maintenance: Round::default(),
        }
    }

    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        self.data.key(bytes)
    }

    /// A key, for an operation on it.
    #[inline]
    pub fn at<'a>(&'a mut self, db: usize, key: Key<'a>, now: Now) -> At<'a> {
        self.data.at(db, key, now)
    }

    pub fn observers(&self) -> &Observers {
        &self.data.env.observers
    }

    pub fn observers_mut(&mut self) -> &mut Observers {
        &mut self.data.env.observers
    }

    /// The snapshot under way, or the last one.
    pub fn snapshot(&self) -> &Snapshot {
        &self.data.env.snapshot
    }

    pub fn lattice(&self) -> &Lattice {
        &self.data.env.lattice
    }

    pub fn lattice_mut(&mut self) -> &mut Lattice {
        &mut self.data.env.lattice
    }

    /// Local changes since this was last cleared, for other replicas.
    pub fn changeset(&mut self) -> &mut Changeset {
        self.data.env.lattice.changes()
    }

    pub fn horizons(&self) -> &Horizons {
        &self.data.env.horizons
    }

    pub fn horizons_mut(&mut self) -> &mut Horizons {
        &mut self.data.env.horizons
    }

    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    pub fn marks_mut(&mut self) -> &mut Marks {
        &mut self.marks
    }

    /// Records the mark in the journal if it has changed. A caller that changes keys of the slot does so in the same
    /// frame: then both are in the log, or neither.
    pub fn mark_slot(&mut self, slot: u16, mark: Option<SlotMark>) {
        self.marks
            .mark(slot, mark, &mut self.data.env.observers.journal);
    }

    /// Records that from here on the replicated keys are those of the node with this number.
    pub fn set_node(&mut self, number: u16) {
        let journal = &mut self.data.env.observers.journal;
        self.marks.record_node(number, journal);
    }

    /// The command that runs next may write to replicated keys.
    #[inline]
    pub fn begin_lattice(&mut self, writer: Writer) {
        self.data.env.begin_lattice(writer);
    }

    /// The command that runs next may not write to replicated keys, as clocks lead too far: such writes are refused with
    /// [`CLOCKS_LEAD`].
    pub fn bar_lattice(&mut self) {
        self.data.env.lattice.bar();
    }

    /// The command has ended.
    #[inline]
    pub fn end_lattice(&mut self) -> Option<Ended> {
        self.data.env.end_lattice()
    }

    /// Writes to the journal up to which time this shard has forgotten, if that has changed. To be called before the
    /// next command and not within one: effects of a command that is incomplete in the logs are ignored.
    #[inline]
    pub fn tell_horizon(&mut self) {
        self.data
            .env
            .horizons
            .tell(&mut self.data.env.observers.journal);
    }

    /// Some keys that have graves, from `from` on (initially empty), and the next position.
    pub fn graves(&self, db: usize, from: &[u8], count: usize) -> GraveKeys {
        self.data.graves(db, from, count)
    }

    /// The memory of graves in all databases.
    pub fn graves_bytes(&self) -> usize {
        self.data.dbs.iter().map(|db| db.graves.bytes()).sum()
    }

    /// Number of graves in all databases.
    pub fn graves_len(&self) -> usize {
        self.data.dbs.iter().map(|db| db.graves.len()).sum()
    }

    /// Whether there is state that is kept only until all replicas have received it.
    #[inline]
    pub fn has_to_forget(&mut self) -> bool {
        self.data.env.may_forget && self.data.look_to_forget()
    }

    /// Forgets deletions up to `horizon`, the time of a stamp, which all replicas must have set as their horizon:
    /// then they merge correctly what a replica writes to a key that it has forgotten. Examines at most `budget`
    /// keys; returns whether there may be more.
    pub fn forget_step(&mut self, horizon: u64, budget: usize) -> bool {
        self.data.forget(horizon, budget)
    }

    /// Sets the encoding limits of collections.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        let seed = self.data.env.tuning.seed;
        self.data.env.tuning = Tuning { seed, ..tuning };
    }

    pub fn tuning(&self) -> &Tuning {
        &self.data.env.tuning
    }

    pub fn policy(&self) -> Policy {
        self.data.env.policy
    }

    /// Existing stamps keep their bits: after a change between time and frequency they mean little until the keys are
    /// accessed again.
    pub fn set_policy(&mut self, policy: Policy) {
        self.data.env.policy = policy;
    }

    /// Whether access stamps are renewed by reads and writes (`CLIENT NO-TOUCH`).
    pub fn set_touch(&mut self, touch: bool) {
        self.data.env.touch = touch;
    }

    /// Removes at most `budget` expired keys. Returns whether there may be more.
    pub fn expire_step(&mut self, now: Now, budget: usize) -> bool {
        let (mut left, data) = (budget, &mut self.data);
        let databases = data.dbs.len();
        self.expiry
            .go_on(databases, |db| data.expire(db, now, &mut left))
    }

    /// Performs a part of the work that commands on large collections have deferred, about a microsecond for each
    /// unit of the budget. It is visible only in memory use. Returns whether there is more to do.
    pub fn sweep_step(&mut self, budget: usize) -> bool {
        let mut left = budget;
        let mut more = false;
        for db in &mut self.data.dbs {
            more |= db.records.beside.sweep(&mut left);
        }
        more
    }

    /// Frees memory that removed records have left unused, examining at most `budget` records. Returns whether there
    /// may be more to do.
    pub fn maintain_step(&mut self, budget: usize) -> bool {
        let (mut left, data) = (budget, &mut self.data);
        let databases = data.dbs.len();
        self.maintenance
            .go_on(databases, |db| data.compact(db, &mut left))
    }

    pub fn memory(&self) -> Memory {
        let mut all = Memory {
            held_bytes: self.replay.held().map_or(0, Held::bytes),
            ..Memory::default()
        };
        for db in &self.data.dbs {
            all.add(db.memory());
        }
        all.keys -= self.data.dbs[BOOKS].len();
        all
    }

    /// The charge for the memory limit: memory that would be freed if keys were removed. So it excludes the unused
    /// room of the arena's pages and what a database without keys still has allocated.
    #[inline]
    pub fn charged(&self) -> usize {
        self.data.dbs.iter().map(Db::charged).sum()
    }

    /// Bytes that the key takes, its share of the index included.
    pub fn memory_of(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<usize> {
        let found = self.data.dbs[db].live(key, now, &mut self.data.env)?;
        Some(self.data.dbs[db].memory_of(found.handle))
    }

    pub fn counters(&self) -> Counters {
        self.data.env.counters
    }

    /// Large objects that were removed, to be dropped by a thread of low priority.
    pub fn take_garbage(&mut self) -> Vec<Garbage> {
        self.data.env.garbage.take()
    }

    /// Adds a large object to those that [`Shard::take_garbage`] hands out.
    pub fn drop_later(&mut self, garbage: Garbage) {
        self.data.env.garbage.push(garbage);
    }

    /// Sets which keys of clients are replicated, and where, for their counts and lists; and recounts.
    pub fn set_counted(&mut self, keying: Option<&Arc<dyn Keying>>) {
        for db in &mut self.data.dbs[..DATABASES] {
            db.census.set_keying(keying, keys(&db.records));
        }
    }

    /// Marks all slots as other nodes' until [`Shard::set_guest`] says otherwise.
    pub fn invite_all(&mut self) {
        self.data.env.guests.invite_all();
        self.data.count_slots();
    }

    /// Sets for which slots workers of this node answer, by the mapping.
    pub fn set_slots_of_node(&mut self, slots: impl Iterator<Item = u16>) {
        self.data.env.guests.set_of_node(slots);
    }

    /// Sets whether another node answers for a slot.
    pub fn set_guest(&mut self, slot: u16, is_guest: bool) {
        self.data.env.guests.set(slot, is_guest);
    }

    /// Asserts every invariant, by examining all data: for tests.
    pub fn check(&self) {
        self.data.check();
    }

    /// Makes this instant the cut. A snapshot under way is aborted, and the rest of its walk is done here: check
    /// [`Shard::is_unwinding`] first if that may take too long.
    pub fn begin_snapshot(&mut self) {
        self.abort_snapshot();
        while self.snapshot_step(usize::MAX, &mut Vec::new()) {}
        let Databases { dbs, env, .. } = &mut self.data;
        env.snapshot.begin(dbs, env.horizons.here());
        env.observers.set_capturing(true);
    }

    /// Appends records of the cut to `out`, as `Set` effects: all that were written since the last step because they
    /// were about to change, then those that the walk finds, until `budget` bytes are used up (or one record is
    /// written); a record that is only examined counts as 64 bytes. Returns whether there may be more; if not, the
    /// snapshot is complete. After [`Shard::abort_snapshot`] it has to be called in the same way, and writes nothing.
    pub fn snapshot_step(&mut self, budget: usize, out: &mut Vec<u8>) -> bool {
        let Databases { dbs, env, .. } = &mut self.data;
        let more = env.snapshot.step(dbs, &mut env.garbage, budget, out);
        if !more {
            env.observers.set_capturing(false);
        }
        more
    }

    /// Whether a snapshot was aborted and [`Shard::snapshot_step`] still has to complete its walk.
    pub fn is_unwinding(&self) -> bool {
        !self.snapshot().is_running() && self.data.dbs.iter().any(Db::is_walked)
    }

    /// Aborts the snapshot under way, if any.
    pub fn abort_snapshot(&mut self) {
        let env = &mut self.data.env;
        env.snapshot.abort(&mut env.garbage);
        env.observers.set_capturing(false);
    }

    /// The databases, for drawing records that might be evicted.
    pub fn draws(&self) -> Draws<'_> {
        Draws::new(&self.data)
    }

    /// Evicts a drawn record, unless `keep` returns true for its key.
    pub fn evict(&mut self, drawn: Drawn, now: Now, keep: impl FnOnce(&[u8]) -> bool) -> Eviction {
        evict(&mut self.data, drawn, now, keep)
    }
}
