//! What the databases of a shard share: the machines that every change concerns, settings, and buffers.

use super::db::Db;
use super::garbage::GarbageList;
use super::guests::Guests;
use super::horizons::Horizons;
use super::lattice::{Ended, Keyed, Lattice};
use super::observers::Observers;
use super::policy::Policy;
use super::snapshot::Snapshot;
use super::types::{Counters, Key};
use crate::effect::Effect;
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;

/// State that the databases share.
#[derive(Debug)]
pub(super) struct Env {
    pub(super) policy: Policy,
    /// Whether reading a key changes its access stamp.
    pub(super) touch: bool,
    pub(super) observers: Observers,
    pub(super) snapshot: Snapshot,
    pub(super) counters: Counters,
    pub(super) rng: Rng,
    pub(super) garbage: GarbageList,
    /// The encoding limits of collections.
    pub(super) tuning: Tuning,
    /// Reused: hash and handle of the entries that a walk visits.
    pub(super) entries: Vec<(u32, u32)>,
    /// Reused: a packed value being changed, and the operations that changed it.
    pub(super) packed: Vec<u8>,
    pub(super) ops: Vec<u8>,
    pub(super) lattice: Lattice,
    pub(super) horizons: Horizons,
    /// Some database may have state to forget: set when it gets some, and cleared when none is found. A worker asks in
    /// every turn, and looks at no database to learn that there is nothing.
    pub(super) may_forget: bool,
    /// Slots whose keys expire by another node's decision, if any.
    pub(super) guests: Guests,
}

impl Env {
    pub(super) fn new(seed: u64) -> Self {
        Self {
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
            may_forget: false,
            guests: Guests::default(),
        }
    }

    #[inline]
    pub(super) fn next_stamp(&mut self, stamp: u32, now: Now) -> u32 {
        if !self.touch {
            return stamp;
        }
        self.policy.next_stamp(stamp, now, &mut self.rng)
    }

    /// The command that runs next may write to replicated keys.
    #[inline]
    pub(super) fn begin_lattice(&mut self, writer: Writer) {
        self.lattice.begin(writer);
        self.observers.set_writing(true);
    }

    /// The command has ended.
    #[inline]
    pub(super) fn end_lattice(&mut self) -> Option<Ended> {
        let ended = self.lattice.end()?;
        self.observers.set_writing(false);
        Some(ended)
    }

    /// Reports the removal of a record, before it.
    pub(super) fn tell_removal(&mut self, db: &mut Db, handle: u32, hash: u32) {
        self.snapshot.capture(db, handle);
        let (number, bytes) = (db.number, db.records.key(handle));
        let effect = Effect::Delete {
            db: number,
            key: bytes,
        };
        self.observers.tell(Key { bytes, hash }, number, &effect);
    }

    /// Reports a local change of a replica.
    pub(super) fn tell_update(
        &mut self,
        (db, key): (u8, Key<'_>),
        keyed: Keyed,
        tag: Tag,
        ops: &[u8],
    ) {
        self.counters.changes += 1;
        let effect = Effect::Update {
            db,
            key: key.bytes,
            tag,
            ops,
        };
        self.observers.tell(key, db, &effect);
        if keyed.is_shared {
            self.lattice.note_change((db, key), tag, ops, &self.tuning);
        }
    }
}
