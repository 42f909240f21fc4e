//! Writes to replicated keys: commands call the same functions as for other keys, which here become operations of
//! replicated types, with stamps.
//!
//! A worker calls [`Shard::begin_lattice`] to state that the next command may write to such keys, and its writer;
//! [`Shard::end_lattice`] returns the result. Local writes go to the journal, as operations, and to the changeset,
//! for other replicas; what other replicas have sent goes to neither (see `merging`).
//!
//! An operation that would need other replicas changes nothing and is kept as the refusal of the command, whatever
//! reply the command produces.

use super::collection::Editor;
use super::replica::Other;
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue, WrongType};
use super::{Env, Shard};
use crate::changeset::Changeset;
use crate::effect::Effect;
use crate::keyspace::Resolve;
use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::{Refused, Writer};
use rufous_datatype::set::{self, Set};
use rufous_datatype::sorted_set::{self, Only, SortedSet, Zone};
use rufous_lattice::Stamp;
use std::fmt::Debug;
use std::sync::Arc;

/// Which keys are replicated, and how.
pub trait Keying: Debug + Send + Sync {
    fn of(&self, key: &[u8]) -> Option<Keyed>;

    /// Whether another worker counts and lists the key.
    fn is_elsewhere(&self, key: &[u8]) -> bool {
        let _ = key;
        false
    }

    /// What a plain read shows of a string with causal order that has several values.
    fn resolve(&self, key: &[u8]) -> Resolve {
        let _ = key;
        Resolve::Newest
    }

    /// Whether a replica with this number may have written.
    fn is_replica(&self, replica: u16) -> bool {
        let _ = replica;
        true
    }
}

/// How a key is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// The type of its strings.
    pub strings: Tag,
    /// Whether there are replicas elsewhere, to which changes have to be sent.
    pub is_shared: bool,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The stamp after those of its writes, to be passed to the clock.
    pub next: Stamp,
    /// The refusal that the reply has to report.
    pub refused: Option<Refused>,
    /// The key that the refusal is about.
    pub at: Box<[u8]>,
}

/// State of the running command.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) writer: Writer,
    refused: Option<Refused>,
    /// The key that the refusal is about.
    at: Box<[u8]>,
}

impl Writing {
    #[cold]
    fn refuse(&mut self, key: Key<'_>, refused: Refused) {
        if self.refused.is_none() {
            (self.refused, self.at) = (Some(refused), key.bytes.into());
        }
    }
}

const OTHER_TYPE: Refused = Refused {
    why: "the key holds a value of another type, or did not long ago",
    instead: "use another key, or delete this one and wait until all replicas know",
};

pub(super) const NOT_YET: Refused = Refused {
    why: "its value is from before the keyspace had replicas",
    instead: "read it, delete the key, and write it again",
};

const ON_THE_WHOLE: Refused = Refused {
    why: "it depends on what the value is at other replicas",
    instead: "write the whole value",
};

const NO_STORE: Refused = Refused {
    why: "it replaces what other replicas may be adding to",
    instead: "store to a key of regime strict, or add the elements",
};

impl Env {
    /// Reports a local change of a replica.
    pub(super) fn tell_update(&mut self, db: u8, key: Key<'_>, keyed: Keyed, tag: Tag, ops: &[u8]) {
        self.counters.changes += 1;
        let effect = Effect::Update {
            db,
            key: key.bytes,
            tag,
            ops,
        };
        self.observers.tell(key, db, &effect);
        if keyed.is_shared {
            self.note_change(db, key, tag, ops);
        }
    }

    /// Counts writes that were merged with later ones before these are reported.
    #[inline(always)]
    pub(super) fn joined(&mut self, writes: u64, is_shared: bool) {
        self.counters.changes += writes;
        if is_shared {
            self.changes.joined(writes);
        }
    }

    pub(super) fn note_change(&mut self, db: u8, key: Key<'_>, tag: Tag, ops: &[u8]) {
        if is_small(tag) {
            self.changes.touch(db, key);
            return;
        }
        let done = self.changes.add(db, key, tag, ops, &self.tuning);
        debug_assert!(done.is_ok(), "operations are as their type encodes them");
    }
}

/// Of small types replicas send whole states; of collections, operations.
pub(super) fn is_small(tag: Tag) -> bool {
    !matches!(tag, Tag::SharedSet | Tag::SharedHash | Tag::SharedSortedSet)
}

impl Shard {
    /// Sets which keys are replicated. Values in the store are not changed by that.
    pub fn set_keying(&mut self, keying: Option<Arc<dyn Keying>>) {
        self.env.keying = keying;
    }

    /// The command that runs next may write to replicated keys.
    #[inline]
    pub fn begin_lattice(&mut self, writer: Writer) {
        self.env.writing = Some(Writing {
            writer,
            refused: None,
            at: Box::default(),
        });
        self.env.observers.set_writing(true);
    }

    /// The command has ended.
    #[inline]
    pub fn end_lattice(&mut self) -> Option<Ended> {
        let writing = self.env.writing.take()?;
        self.env.observers.set_writing(false);
        Some(Ended {
            next: writing.writer.stamp,
            refused: writing.refused,
            at: writing.at,
        })
    }

    /// Local changes since this was last cleared, for other replicas.
    pub fn changeset(&mut self) -> &mut Changeset {
        &mut self.env.changes
    }

    /// How the key is replicated, if the running command may write to it as a replica.
    #[inline]
    pub(super) fn replicated(&self, key: Key<'_>) -> Option<Keyed> {
        self.env.writing.as_ref()?;
        self.env.keying.as_ref()?.of(key.bytes)
    }

    #[cold]
    pub(super) fn refuse(&mut self, key: Key<'_>, refused: Refused) {
        if let Some(writing) = &mut self.env.writing {
            writing.refuse(key, refused);
        }
    }

    /// Refuses an operation that depends on the whole value at other replicas.
    #[cold]
    pub(super) fn refuse_edit<R>(
        &mut self,
        (db, key): (usize, Key<'_>),
        min_len: usize,
        now: Now,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        self.refuse(key, ON_THE_WHOLE);
        let old = self.peek(db, key, now).ok().flatten();
        let mut copy = old.map_or_else(Vec::new, |value| value.bytes().to_vec());
        copy.resize(copy.len().max(min_len), 0);
        change(&mut copy)
    }

    #[cold]
    pub(super) fn refuse_append(&mut self, key: Key<'_>) -> usize {
        self.refuse(key, ON_THE_WHOLE);
        0
    }

    /// Writes to the running command's replica of a key: `encode` gets its value and appends operations, which are
    /// committed and reported.
    pub(super) fn write_replica<R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        (keyed, tag): (Keyed, Tag),
        now: Now,
        encode: impl FnOnce(&Object, &Writer, &mut Vec<u8>) -> R,
    ) -> Option<R> {
        let writer = self.env.writing.as_ref()?.writer;
        let mut ops = std::mem::take(&mut self.env.ops);
        ops.clear();
        let change = |object: &mut Object, env: &mut Env| {
            let result = encode(object, &writer, &mut ops);
            let done = object.commit_encoded(&ops, &env.tuning);
            debug_assert!(done.is_ok(), "operations are as their type encodes them");
            result
        };
        let done = self.dbs[db].alter_replica(key, tag, now, &mut self.env, change);
        if !ops.is_empty() {
            self.step();
            self.env.tell_update(db as u8, key, keyed, tag, &ops);
        }
        self.env.ops = ops;
        match done {
            Ok(result) => Some(result),
            Err(other) => {
                self.refuse_other(key, other);
                None
            }
        }
    }

    fn refuse_other(&mut self, key: Key<'_>, other: Other) {
        let why = match other {
            Other::Plain => NOT_YET,
            Other::Replicated(_) => OTHER_TYPE,
        };
        self.refuse(key, why);
    }

    /// Whether the key has a plain value, from before it had replicas.
    pub(super) fn is_plain(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        let found = self.dbs[db].live(key, now, &mut self.env);
        found.is_some_and(|found| !self.dbs[db].is_replicated(found.handle))
    }

    pub(super) fn step(&mut self) {
        if let Some(writing) = &mut self.env.writing {
            writing.writer.stamp = writing.writer.stamp.next();
        }
    }

    /// Deletes what the replica shows; concurrent additions at other replicas stay. Returns whether anything was
    /// deleted.
    pub(super) fn remove_replica(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
    ) -> bool {
        if self.is_plain(db, key, now) {
            return self.remove_strictly(db, key, now);
        }
        let Some(tag) = self.tag_at(db, key, now) else {
            return false;
        };
        if tag == Tag::Siblings {
            return self.delete_siblings(db, key, keyed, now);
        }
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            object.encode_delete(writer, ops);
        };
        self.write_replica(db, key, (keyed, tag), now, encode)
            .is_some()
    }

    /// The type of the value that the key shows.
    pub(super) fn tag_at(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Tag> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        let tag = self.dbs[db].shape_of(found.handle).0;
        // A plain string from before the key had replicas is rewritten as a replicated one.
        Some(tag.unwrap_or(Tag::Register))
    }

    /// Gives a replicated key the value that a command has computed elsewhere.
    pub(super) fn insert_replica(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        entry: Entry,
        now: Now,
    ) {
        let expiry = match entry.expire_at {
            Some(at) => ExpirySetting::At(at),
            None => ExpirySetting::Clear,
        };
        match entry.value {
            OwnedValue::Small(bytes) => {
                let value = NewValue::Copy(&bytes);
                self.write_string(db, key, keyed, &value, expiry, now);
            }
            OwnedValue::Big(value) => {
                let value = NewValue::Shared(value);
                self.write_string(db, key, keyed, &value, expiry, now);
            }
            OwnedValue::Object(_) => self.refuse(key, NO_STORE),
        }
    }

    /// Like [`Shard::insert_entry`], but a collection at a replicated key replaces what this replica shows, element
    /// by element.
    pub fn restore_entry(&mut self, db: usize, key: Key<'_>, entry: Entry, now: Now) {
        match (self.replicated(key), &entry.value) {
            (Some(keyed), OwnedValue::Object(object)) => {
                self.restore_replica((db, key, keyed), object, entry.expire_at, now);
            }
            _ => self.insert_entry(db, key, entry, now),
        }
    }

    fn restore_replica(
        &mut self,
        at: (usize, Key<'_>, Keyed),
        object: &Object,
        expire_at: Option<u64>,
        now: Now,
    ) {
        match object.tag() {
            Tag::Set => self.restore_as::<Set>(at, object, now, |editor, members| {
                members.each(|member, _| editor.commit(&set::Op::Add { member }));
            }),
            Tag::Hash => self.restore_as::<Hash>(at, object, now, |editor, fields| {
                fields.each(|field, value| editor.commit(&hash::Op::Set { field, value }));
            }),
            Tag::SortedSet => self.restore_as::<SortedSet>(at, object, now, |editor, members| {
                members.each(members.span(&Zone::ALL), false, |member, score| {
                    let only = Only::default();
                    editor.commit(&sorted_set::Op::Add {
                        member,
                        score,
                        only,
                    });
                });
            }),
            _ => return self.refuse(at.1, Refused::NO_MERGE),
        }
        let (db, key, keyed) = at;
        if expire_at.is_some() {
            self.set_deadline(db, key, keyed, expire_at, now);
        }
    }

    fn restore_as<T: Registered>(
        &mut self,
        (db, key, keyed): (usize, Key<'_>, Keyed),
        object: &Object,
        now: Now,
        write: impl FnOnce(&mut Editor<'_, T>, T::View<'_>),
    ) {
        let (Some(link), Some(state)) = (T::REPLICATE, T::of(object)) else {
            return self.refuse(key, Refused::NO_MERGE);
        };
        // A refused operation must change nothing.
        let known = match self.dbs[db].live(key, now, &mut self.env) {
            Some(found) => self.dbs[db].shape_of(found.handle).0,
            None => self.dbs[db].graves.tag_of(key.bytes).or(Some(link.tag)),
        };
        if known != Some(link.tag) {
            return self.refuse(key, OTHER_TYPE);
        }
        self.remove_replica(db, key, keyed, now);
        let done = self.update_replica::<T, _>(db, key, keyed, now, |editor| {
            write(editor, T::view(state));
        });
        debug_assert!(done.is_ok(), "the type was looked at");
    }

    /// [`Shard::update`] of a replicated key: operations are translated to those of the type that replicates `T`.
    pub(super) fn update_replica<T: Registered, R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
    ) -> Result<R, WrongType> {
        let Some(link) = T::REPLICATE else {
            self.refuse(key, Refused::NO_MERGE);
            return Err(WrongType);
        };
        let Some(mut writing) = self.env.writing.take() else {
            return Err(WrongType);
        };
        let mut ops = std::mem::take(&mut self.env.ops);
        ops.clear();
        let edit = |object: &mut Object, env: &mut Env| {
            let mut refused = None;
            let writer = &mut writing.writer;
            let mut editor =
                Editor::of_replica(object, writer, &mut refused, &env.tuning, &mut ops);
            let result = change(&mut editor);
            if let Some(why) = refused {
                writing.refuse(key, why);
            }
            result
        };
        let done = self.dbs[db].alter_replica(key, link.tag, now, &mut self.env, edit);
        self.env.writing = Some(writing);
        if !ops.is_empty() {
            self.env.tell_update(db as u8, key, keyed, link.tag, &ops);
        }
        ops.clear();
        self.env.ops = ops;
        done.map_err(|other| {
            // If the key shows a value of another type, the command itself reports that.
            if other == Other::Plain || self.dbs[db].find(key).is_none() {
                self.refuse_other(key, other);
            }
            WrongType
        })
    }
}
