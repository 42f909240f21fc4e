//! Writes to replicated keys: commands call what they call for other keys, and
//! here it becomes operations of replicated types, with stamps.
//!
//! A worker says with [`Shard::begin_lattice`] that the command which runs next
//! may write to such keys, and who writes; [`Shard::end_lattice`] says what
//! came of it. Own writes are told to the journal, as operations, and to the
//! changeset, for other replicas; what other replicas have sent is neither
//! (see `merging`).
//!
//! What cannot be done without asking other replicas changes nothing and is
//! kept as the refusal of the command, whatever the command makes of it.

use super::collection::Editor;
use super::record::{self, PACKED};
use super::replica::Other;
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue, WrongType};
use super::{Env, Shard};
use crate::durable::effect::Effect;
use crate::replicate::changeset::Changeset;
use rufous_base::Now;
use rufous_datatype::ValueError;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::register::{self, Register};
use rufous_datatype::replicated::{Refused, Writer};
use rufous_lattice::Stamp;
use std::fmt::Debug;
use std::sync::Arc;

/// Which keys are replicated, and how.
pub trait Keying: Debug + Send + Sync {
    fn of(&self, key: &[u8]) -> Option<Keyed>;
}

/// How a key is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// The type of its strings.
    pub strings: Tag,
    /// Whether there are replicas elsewhere, which have to hear of changes.
    pub is_shared: bool,
}

/// What came of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The stamp after those of its writes, to be shown to the clock.
    pub next: Stamp,
    /// The reply is to be an error that says this.
    pub refused: Option<Refused>,
}

/// Of the command that runs.
#[derive(Debug)]
pub(super) struct Writing {
    writer: Writer,
    refused: Option<Refused>,
}

const OTHER_TYPE: Refused = Refused {
    why: "the key holds a value of another type, or did not long ago",
    instead: "use another key, or delete this one and wait until all replicas know",
};

const ON_THE_WHOLE: Refused = Refused {
    why: "it depends on what the value is at other replicas",
    instead: "write the whole value",
};

const NO_DEADLINE: Refused = Refused {
    why: "elements that are added at the same time would have to be forgotten, too",
    instead: "remove the elements, or delete the key",
};

const NO_STORE: Refused = Refused {
    why: "it replaces what other replicas may be adding to",
    instead: "store to a key of regime strict, or add the elements",
};

impl Env {
    /// An own change of a replica.
    fn tell_update(&mut self, db: u8, key: Key<'_>, keyed: Keyed, tag: Tag, ops: &[u8]) {
        self.counters.changes += 1;
        let effect = Effect::Update {
            db,
            key: key.bytes,
            tag,
            ops,
        };
        self.tell(key, db, &effect);
        if keyed.is_shared {
            self.note_change(db, key, tag, ops);
        }
    }

    pub(super) fn note_change(&mut self, db: u8, key: Key<'_>, tag: Tag, ops: &[u8]) {
        if is_small(tag) {
            return self.changes.touch(db, key);
        }
        let done = self.changes.add(db, key, tag, ops, &self.tuning);
        debug_assert!(done.is_ok(), "operations are as their type encodes them");
    }
}

/// Of small types replicas send whole states.
pub(super) fn is_small(tag: Tag) -> bool {
    tag == Tag::Register
}

impl Shard {
    /// Which keys are replicated from now on. A value that is in the store is
    /// not changed by that.
    pub fn set_keying(&mut self, keying: Option<Arc<dyn Keying>>) {
        self.env.keying = keying;
    }

    /// The command that runs next may write to replicated keys.
    #[inline]
    pub fn begin_lattice(&mut self, writer: Writer) {
        self.env.writing = Some(Writing {
            writer,
            refused: None,
        });
        self.env.observed = true;
    }

    /// That command has run.
    #[inline]
    pub fn end_lattice(&mut self) -> Option<Ended> {
        let writing = self.env.writing.take()?;
        self.env.update_observed();
        Some(Ended {
            next: writing.writer.stamp,
            refused: writing.refused,
        })
    }

    /// What was changed here since this was last cleared, for other replicas.
    pub fn changeset(&mut self) -> &mut Changeset {
        &mut self.env.changes
    }

    /// How the key is replicated, if the running command may write to it so.
    #[inline]
    pub(super) fn replicated(&self, key: Key<'_>) -> Option<Keyed> {
        self.env.writing.as_ref()?;
        self.env.keying.as_ref()?.of(key.bytes)
    }

    #[cold]
    pub(super) fn refuse(&mut self, refused: Refused) {
        if let Some(writing) = &mut self.env.writing {
            writing.refused.get_or_insert(refused);
        }
    }

    /// What depends on the bytes that other replicas have.
    #[cold]
    pub(super) fn refuse_edit<R>(
        &mut self,
        (db, key): (usize, Key<'_>),
        min_len: usize,
        now: Now,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        self.refuse(ON_THE_WHOLE);
        let old = self.peek(db, key, now).ok().flatten();
        let mut copy = old.map_or_else(Vec::new, |value| value.bytes().to_vec());
        copy.resize(copy.len().max(min_len), 0);
        change(&mut copy)
    }

    #[cold]
    pub(super) fn refuse_append(&mut self) -> usize {
        self.refuse(ON_THE_WHOLE);
        0
    }

    /// Writes to the running command's replica of a key: `encode` is given its
    /// value and appends operations, which are committed and told.
    fn write_replica<R>(
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
            Err(Other::Plain | Other::Replicated(_)) => {
                self.refuse(OTHER_TYPE);
                None
            }
        }
    }

    fn step(&mut self) {
        if let Some(writing) = &mut self.env.writing {
            writing.writer.stamp = writing.writer.stamp.next();
        }
    }

    /// Sets a string; returns whether the key was there before.
    pub(super) fn write_string(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        value: &NewValue<'_>,
        expiry: ExpirySetting,
        now: Now,
    ) -> bool {
        let (bytes, tag) = (value.bytes(), keyed.strings);
        if expiry == ExpirySetting::Clear
            && let Some(writing) = &self.env.writing
        {
            let stamp = writing.writer.stamp;
            if self.overwrite_register((db, key), keyed, stamp, bytes, now) {
                self.step();
                return true;
            }
        }
        let at = self.expire_at(db, key, now);
        let deadline = match expiry {
            ExpirySetting::Clear => 0,
            ExpirySetting::At(unix_ms) => unix_ms.max(1),
            ExpirySetting::Keep => at.flatten().unwrap_or(0),
        };
        self.write_replica(db, key, (keyed, tag), now, |_, writer, ops| {
            register::set(writer, bytes, deadline, ops);
        });
        at.is_some()
    }

    /// Writes a string at one replica, with a stamp that is above all that its
    /// worker has given: what SET does, without the ways around it.
    #[inline]
    pub fn put_register(&mut self, db: usize, key: Key<'_>, stamp: Stamp, value: &[u8], now: Now) {
        let keyed = Keyed {
            strings: Tag::Register,
            is_shared: true,
        };
        if !self.overwrite_register((db, key), keyed, stamp, value, now) {
            self.begin_lattice(Writer { stamp });
            self.write_replica(db, key, (keyed, Tag::Register), now, |_, writer, ops| {
                register::set(writer, value, 0, ops);
            });
            self.end_lattice();
        }
    }

    /// A plain write over a plain write of the same length, in its record.
    #[inline]
    fn overwrite_register(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) -> bool {
        let at = &mut self.dbs[db];
        let probe = at.index.probe(key.hash);
        if probe.handle == 0 {
            return false;
        }
        let Some(head) = at.matching(probe.handle, key.bytes) else {
            return false;
        };
        if head.kind() != PACKED || head.has_expiry() || self.env.snapshot.capturing {
            return false;
        }
        let slot = at.arena.get_mut(probe.handle);
        let Some((&mut tag, packed)) = head.value_part_mut(slot).split_first_mut() else {
            return false;
        };
        if tag != Tag::Register as u8 || !register::overwrite_in_place(packed, stamp, value) {
            return false;
        }
        record::put_stamp(slot, self.env.next_stamp(record::stamp(slot), now));
        self.tell_overwritten(db as u8, key, keyed, stamp, value);
        true
    }

    #[inline]
    fn tell_overwritten(&mut self, db: u8, key: Key<'_>, keyed: Keyed, stamp: Stamp, value: &[u8]) {
        if self.env.journaling {
            let mut ops = std::mem::take(&mut self.env.ops);
            ops.clear();
            register::set(&Writer { stamp }, value, 0, &mut ops);
            self.env.tell_update(db, key, keyed, Tag::Register, &ops);
            self.env.ops = ops;
            return;
        }
        self.env.counters.changes += 1;
        self.env.touch(key, db);
        if keyed.is_shared {
            self.env.changes.touch(db, key);
        }
    }

    /// Adds to a number kept as text, where the key is replicated: additions
    /// at different replicas add up.
    pub fn increment(
        &mut self,
        db: usize,
        key: Key<'_>,
        by: i64,
        now: Now,
    ) -> Option<Result<i64, ValueError>> {
        let keyed = self.replicated(key)?;
        let done = self.count(db, key, keyed, now, |view, writer, ops| {
            register::increment(view, by, writer, ops)
        });
        Some(done.unwrap_or(Ok(0)))
    }

    /// Likewise of a floating-point number; `by` is one as text.
    pub fn increment_float(
        &mut self,
        db: usize,
        key: Key<'_>,
        by: &[u8],
        now: Now,
    ) -> Option<Result<Vec<u8>, ValueError>> {
        let keyed = self.replicated(key)?;
        let done = self.count(db, key, keyed, now, |view, writer, ops| {
            register::increment_float(view, by, writer, ops)
        });
        Some(done.unwrap_or_else(|| Ok(Vec::new())))
    }

    fn count<R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
        add: impl FnOnce(register::View<'_>, &Writer, &mut Vec<u8>) -> R,
    ) -> Option<R> {
        let tag = keyed.strings;
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            Register::of(object).map(|state| add(Register::view(state), writer, ops))
        };
        self.write_replica(db, key, (keyed, tag), now, encode)?
    }

    /// Deletes what the replica shows; what is added elsewhere at the same
    /// time stays. Returns whether there was anything.
    pub(super) fn remove_replica(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
    ) -> bool {
        let Some(tag) = self.tag_at(db, key, now) else {
            return false;
        };
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            object.encode_delete(writer, ops);
        };
        self.write_replica(db, key, (keyed, tag), now, encode)
            .is_some()
    }

    /// The type of what the key shows.
    fn tag_at(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Tag> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        let tag = self.dbs[db].shape_of(found.handle).0;
        // What is not replicated is refused as of another type.
        Some(tag.unwrap_or(Tag::Register))
    }

    /// The value seen, written again with another deadline. Returns whether
    /// the key is there.
    pub(super) fn set_deadline(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        unix_ms: Option<u64>,
        now: Now,
    ) -> bool {
        match self.tag_at(db, key, now) {
            None => return false,
            Some(Tag::Register) => {}
            Some(_) => {
                self.refuse(NO_DEADLINE);
                return false;
            }
        }
        let deadline = unix_ms.map_or(0, |at| at.max(1));
        let done = self.count(db, key, keyed, now, |view, writer, ops| {
            register::expire_at(view, deadline, writer, ops)
        });
        done.unwrap_or(false)
    }

    /// Gives a replicated key what a command has made elsewhere.
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
            OwnedValue::Object(_) => self.refuse(NO_STORE),
        }
    }

    /// [`Shard::update`] of a replicated key: operations are translated to
    /// those of the type that replicates `T`.
    pub(super) fn update_replica<T: Registered, R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
    ) -> Result<R, WrongType> {
        const NO_LATTICE: Refused = Refused {
            why: "values of this type do not merge",
            instead: "use a keyspace of regime strict for them",
        };
        let Some(link) = T::REPLICATE else {
            self.refuse(NO_LATTICE);
            return Err(WrongType);
        };
        let Some(mut writing) = self.env.writing.take() else {
            return Err(WrongType);
        };
        let mut ops = std::mem::take(&mut self.env.ops);
        ops.clear();
        let edit = |object: &mut Object, env: &mut Env| {
            let (writer, refused) = (&mut writing.writer, &mut writing.refused);
            let mut editor = Editor::of_replica(object, writer, refused, &env.tuning, &mut ops);
            change(&mut editor)
        };
        let done = self.dbs[db].alter_replica(key, link.tag, now, &mut self.env, edit);
        self.env.writing = Some(writing);
        if !ops.is_empty() {
            self.env.tell_update(db as u8, key, keyed, link.tag, &ops);
        }
        ops.clear();
        self.env.ops = ops;
        done.map_err(|other| {
            if self.dbs[db].find(key).is_none() || other == Other::Plain {
                self.refuse(OTHER_TYPE);
            }
            WrongType
        })
    }
}
