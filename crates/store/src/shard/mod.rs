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
//! - `db`, `write` (`placed`), `account`: one database; reading and walking, writing, and its memory account
//! - `change`: every change; `collection`: changes of values other than strings
//! - `observers`: what changes are reported to: the `journal`, watchers of keys (`watch`), keys with waiters (`awaited`)
//! - `snapshot`: all data as of an instant, while commands run
//! - `slots`: copies the keys of single slots while commands run, and drops them; `guests`: slots that another node
//!   answers for; `by_slot`: the number of keys of each slot; `marks`: how much of each slot is here; `books`: the
//!   books of transactions, which belong to slots as well
//! - `garbage`: removed values that another thread drops
//! - `sweep`: deferred work of operations on large collections
//! - `replay`: replays a journal; `held`: counts that a replay holds back
//! - `at`: a key, with what an operation on it needs
//! - `lattice`: which keys are replicated, and what a command may do with them; `horizons`: what all replicas have
//!   received, and what is forgotten; `contexts`: what clients have seen
//! - `writes`: writes to replicated keys, `strings` of them, `causal` those with causal order, `overwrite` the fast
//!   path, `turn` those of a turn together; `merging`: states from other replicas; `replica`, `graves`: the storage of this worker's replica
//! - `record`: the layout of a record in its slot
//! - `classes`, `arena`, `compact`: size classes, pages of slots, and emptying pages
//! - `segment`, `index`: from hash to record
//! - `recent`: recently written records, found without a lookup; prefetching
//! - `walk`: the index in the order of hashes, and at random
//! - `expiry`: the order in which keys expire; `expiring`: removing them
//! - `sample`: drawing records to be evicted
//! - `slab`: keys and values too large for a record
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
mod db;
mod deadlines;
mod expiring;
mod expiry;
mod garbage;
mod gone;
mod graves;
mod guests;
mod held;
mod horizons;
mod index;
mod journal;
mod lattice;
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
mod replay;
mod replica;
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
mod walk;
mod watch;
mod write;
mod writes;

pub use at::At;
pub use causal::{ON_COPIES, Written};
pub use collection::Editor;
pub use contexts::Contexts;
pub use graves::GraveKeys;
pub use held::{Held, bring_back};
pub use horizons::Horizons;
pub use lattice::{CLOCKS_LEAD, Ended, Keyed, Keying, Lattice};
pub use marks::{Marks, NO_NODE};
pub use merging::Replica;
pub use observers::Observers;
pub use policy::Policy;
pub(crate) use record::equal;
pub use sample::{Drawn, Eviction};
pub use slots::slot_of_effect;
pub use snapshot::{Snapshot, SnapshotProgress};
pub use types::{
    Any, Counters, Entry, ExpirySetting, Item, Key, KeyName, Memory, NewValue, OwnedValue, Value,
    Warm, WrongType,
};
pub use watch::{WatchId, Watches};

use crate::changeset::Changeset;
use crate::effect::{Effect, SlotMark};
use crate::keyspace::Keyspaces;
use db::{Db, keys};
use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use garbage::GarbageList;
use guests::Guests;
use recent::Recent;
use rufous_base::limits::{ALL_DATABASES, BOOKS, DATABASES};
use rufous_base::rng::Rng;
use rufous_base::{Garbage, Now};
use rufous_datatype::algebra::Tuning;
use rufous_datatype::replicated::Writer;
use slots::Slots;
use std::hash::Hasher;
use std::sync::Arc;

/// State that the databases share.
#[derive(Debug)]
struct Env {
    policy: Policy,
    /// Whether reading a key changes its access stamp.
    touch: bool,
    observers: Observers,
    snapshot: Snapshot,
    counters: Counters,
    rng: Rng,
    garbage: GarbageList,
    /// The encoding limits of collections.
    tuning: Tuning,
    /// Reused: hash and handle of the entries that a walk visits.
    entries: Vec<(u32, u32)>,
    /// Reused: a packed value being changed, and the operations that changed it.
    packed: Vec<u8>,
    ops: Vec<u8>,
    lattice: Lattice,
    horizons: Horizons,
    /// Slots whose keys expire by another node's decision, if any.
    guests: Guests,
}

impl Env {
    #[inline]
    fn next_stamp(&mut self, stamp: u32, now: Now) -> u32 {
        if !self.touch {
            return stamp;
        }
        self.policy.next_stamp(stamp, now, &mut self.rng)
    }

    /// Reports the removal of a record, before it.
    fn tell_removal(&mut self, db: &mut Db, handle: u32, hash: u32) {
        self.snapshot.capture(db, handle);
        let (number, bytes) = (db.number, db.records.key(handle));
        let effect = Effect::Delete {
            db: number,
            key: bytes,
        };
        self.observers.tell(Key { bytes, hash }, number, &effect);
    }
}

/// See the module's description. Database numbers must be below
/// [`ALL_DATABASES`]; a key must have been made by [`Shard::key`] of a shard with
/// the same seed.
#[derive(Debug)]
pub struct Shard {
    seed: SharedSeed,
    dbs: Vec<Db>,
    env: Env,
    recent: Recent,
    slots: Slots,
    marks: Marks,
    /// The database at which expiry and maintenance continue, so that each has its turn.
    next_expire: usize,
    next_maintain: usize,
    /// The time while a journal is replayed: nothing is due at 0.
    replay_now: Now,
    /// The table of keyspaces of a journal that is replayed.
    keyspaces: Arc<Keyspaces>,
    /// Set while files are loaded.
    held: Option<Box<Held>>,
}

fn hash_of(seed: &SharedSeed, bytes: &[u8]) -> u32 {
    let mut hasher = FoldHasher::with_seed(0x52_75_66_6F_75_73, seed);
    hasher.write(bytes);
    (hasher.finish() >> 32) as u32
}

impl Shard {
    /// Clients must not be able to guess the seed: they could choose keys with equal hashes.
    pub fn new(seed: u64) -> Self {
        Self {
            seed: SharedSeed::from_u64(seed),
            dbs: (0..ALL_DATABASES).map(|db| Db::new(db as u8)).collect(),
            env: Env {
                policy: Policy::default(),
                touch: true,
                observers: Observers::default(),
                snapshot: Snapshot::default(),
                counters: Counters::default(),
                rng: Rng::new(seed),
                garbage: GarbageList::default(),
                tuning: Tuning {
                    seed,
                    ..Tuning::default()
                },
                entries: Vec::new(),
                packed: Vec::new(),
                ops: Vec::new(),
                lattice: Lattice::default(),
                horizons: Horizons::default(),
                guests: Guests::default(),
            },
            recent: Recent::default(),
            slots: Slots::default(),
            marks: Marks::default(),
            next_expire: 0,
            next_maintain: 0,
            replay_now: Now::default(),
            keyspaces: Arc::default(),
            held: None,
        }
    }

    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key {
            bytes,
            hash: hash_of(&self.seed, bytes),
        }
    }

    pub fn observers(&self) -> &Observers {
        &self.env.observers
    }

    pub fn observers_mut(&mut self) -> &mut Observers {
        &mut self.env.observers
    }

    /// The snapshot under way, or the last one.
    pub fn snapshot(&self) -> &Snapshot {
        &self.env.snapshot
    }

    pub fn lattice(&self) -> &Lattice {
        &self.env.lattice
    }

    pub fn lattice_mut(&mut self) -> &mut Lattice {
        &mut self.env.lattice
    }

    /// Local changes since this was last cleared, for other replicas.
    pub fn changeset(&mut self) -> &mut Changeset {
        self.env.lattice.changes()
    }

    pub fn horizons(&self) -> &Horizons {
        &self.env.horizons
    }

    pub fn horizons_mut(&mut self) -> &mut Horizons {
        &mut self.env.horizons
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
        self.marks.mark(slot, mark, &mut self.env.observers.journal);
    }

    /// Records that from here on the replicated keys are those of the node with this number.
    pub fn set_node(&mut self, number: u16) {
        let journal = &mut self.env.observers.journal;
        self.marks.record_node(number, journal);
    }

    /// The command that runs next may write to replicated keys.
    #[inline]
    pub fn begin_lattice(&mut self, writer: Writer) {
        self.env.lattice.begin(writer);
        self.env.observers.set_writing(true);
    }

    /// The command that runs next may not write to replicated keys, as clocks lead too far: such writes are refused with
    /// [`CLOCKS_LEAD`].
    pub fn bar_lattice(&mut self) {
        self.env.lattice.bar();
    }

    /// The command has ended.
    #[inline]
    pub fn end_lattice(&mut self) -> Option<Ended> {
        let ended = self.env.lattice.end()?;
        self.env.observers.set_writing(false);
        Some(ended)
    }

    /// Writes to the journal up to which time this shard has forgotten, if that has changed. To be called before the
    /// next command and not within one: effects of a command that is incomplete in the logs are ignored.
    #[inline]
    pub fn tell_horizon(&mut self) {
        self.env.horizons.tell(&mut self.env.observers.journal);
    }

    /// A key, for an operation on it.
    #[inline]
    pub fn at<'a>(&'a mut self, db: usize, key: Key<'a>, now: Now) -> At<'a> {
        At {
            db: &mut self.dbs[db],
            env: &mut self.env,
            recent: &mut self.recent,
            key,
            now,
        }
    }

    /// Some keys that have graves, from `from` on (initially empty), and the next position.
    pub fn graves(&self, db: usize, from: &[u8], count: usize) -> GraveKeys {
        self.dbs[db].graves.keys_from(from, count)
    }

    /// Number of graves in all databases.
    pub fn graves_len(&self) -> usize {
        self.dbs.iter().map(|db| db.graves.len()).sum()
    }

    /// Whether there is state that is kept only until all replicas have received it.
    pub fn has_to_forget(&self) -> bool {
        self.dbs.iter().any(|db| !db.graves.is_settled())
    }

    /// Forgets deletions up to `horizon`, the time of a stamp, which all replicas must have set as their horizon:
    /// then they merge correctly what a replica writes to a key that it has forgotten. Examines at most `budget`
    /// keys; returns whether there may be more.
    pub fn forget_step(&mut self, horizon: u64, budget: usize) -> bool {
        if self.dbs.iter().any(|db| db.graves.is_due(horizon)) {
            self.env.horizons.forget(horizon);
        }
        let mut left = budget;
        let mut more = false;
        for db in &mut self.dbs {
            more |= replica::forget(db, horizon, &mut left, &mut self.env);
        }
        more
    }

    /// Sets the encoding limits of collections.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        let seed = self.env.tuning.seed;
        self.env.tuning = Tuning { seed, ..tuning };
    }

    pub fn tuning(&self) -> &Tuning {
        &self.env.tuning
    }

    pub fn policy(&self) -> Policy {
        self.env.policy
    }

    /// Existing stamps keep their bits: after a change between time and frequency they mean little until the keys are
    /// accessed again.
    pub fn set_policy(&mut self, policy: Policy) {
        self.env.policy = policy;
    }

    /// Whether access stamps are renewed by reads and writes (`CLIENT NO-TOUCH`).
    pub fn set_touch(&mut self, touch: bool) {
        self.env.touch = touch;
    }

    /// Removes at most `budget` expired keys. Returns whether there may be more.
    pub fn expire_step(&mut self, now: Now, budget: usize) -> bool {
        let mut left = budget;
        for _ in 0..self.dbs.len() {
            let db = &mut self.dbs[self.next_expire];
            if db.expire(now.unix_ms(), &mut left, &mut self.env) {
                return true;
            }
            self.next_expire = (self.next_expire + 1) % self.dbs.len();
        }
        false
    }

    /// Performs a part of the work that commands on large collections have deferred, about a microsecond for each
    /// unit of the budget. It is visible only in memory use. Returns whether there is more to do.
    pub fn sweep_step(&mut self, budget: usize) -> bool {
        let mut left = budget;
        let mut more = false;
        for db in &mut self.dbs {
            more |= db.records.beside.sweep(&mut left);
        }
        more
    }

    /// Frees memory that removed records have left unused, examining at most `budget` records. Returns whether there
    /// may be more to do.
    pub fn maintain_step(&mut self, budget: usize) -> bool {
        let mut left = budget;
        for _ in 0..self.dbs.len() {
            let db = &mut self.dbs[self.next_maintain];
            let (seed, moved) = (&self.seed, &mut self.env.counters.compacted);
            let hash_of = |key: &[u8]| hash_of(seed, key);
            if db.records.compact(hash_of, &mut left, moved) {
                return true;
            }
            self.next_maintain = (self.next_maintain + 1) % self.dbs.len();
        }
        false
    }

    pub fn memory(&self) -> Memory {
        let mut all = Memory {
            held_bytes: self.held_bytes(),
            ..Memory::default()
        };
        for db in &self.dbs {
            all.add(db.memory());
        }
        all.keys -= self.dbs[BOOKS].len();
        all
    }

    /// The charge for the memory limit: memory that would be freed if keys were removed. So it excludes the unused
    /// room of the arena's pages and what a database without keys still has allocated.
    #[inline]
    pub fn charged(&self) -> usize {
        self.dbs.iter().map(Db::charged).sum()
    }

    /// Bytes that the key takes, its share of the index included.
    pub fn memory_of(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<usize> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        Some(self.dbs[db].memory_of(found.handle))
    }

    pub fn counters(&self) -> Counters {
        self.env.counters
    }

    /// Large objects that were removed, to be dropped by a thread of low priority.
    pub fn take_garbage(&mut self) -> Vec<Garbage> {
        self.env.garbage.take()
    }

    /// Adds a large object to those that [`Shard::take_garbage`] hands out.
    pub fn drop_later(&mut self, garbage: Garbage) {
        self.env.garbage.push(garbage);
    }

    /// Sets which keys of clients another worker counts, and recounts.
    pub fn set_counted(&mut self, keying: Option<&Arc<dyn Keying>>) {
        for db in &mut self.dbs[..DATABASES] {
            db.census.set_keying(keying, keys(&db.records));
        }
    }

    /// Marks all slots as other nodes' until [`Shard::set_guest`] says otherwise.
    pub fn invite_all(&mut self) {
        self.env.guests.invite_all();
        for db in &mut self.dbs {
            db.census.count_slots(keys(&db.records));
        }
    }

    /// Sets whether another node answers for a slot.
    pub fn set_guest(&mut self, slot: u16, is_guest: bool) {
        self.env.guests.set(slot, is_guest);
    }

    /// Asserts every invariant, by examining all data: for tests.
    pub fn check(&self) {
        for db in &self.dbs {
            db.check(|key| hash_of(&self.seed, key));
        }
    }
}
