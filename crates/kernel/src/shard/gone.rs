//! What has gone with a deadline of a key, or with its type, and is forgotten.
//!
//! That a deadline has come is in no log: every replica finds it by itself, and
//! so does a start. But of two deadlines the one that was set last holds, and
//! where an earlier one is forgotten, with all that went with it, the next one
//! knows nothing of it: it has no cut, and a start would find everything again
//! that had gone. So whoever forgets a deadline that has come notes in its log
//! up to which stamp what was written to the key has gone. It has gone for
//! good: everybody had heard of all up to there, so that no extension can bring
//! it back, and whatever was written to the key since has higher stamps.
//!
//! A start keeps these notes apart (see `held`), and when all that the files
//! have is merged, drops what lies below them. Counts, which may have no stamp,
//! have the horizon of their file instead: who counted in what has gone since
//! cannot have had a horizon as late.
//!
//! A grave that is no string's is noted likewise. The key may have a string
//! then, which it would hide, as the type with the higher tag stays.
//!
//! A snapshot does not say what was forgotten before. Another replica may not
//! have forgotten it by its own cut; but by then it has heard of all, and so its
//! snapshot leaves out what has gone, and graves that may hide another type. What
//! a start finds in one file to have gone, it notes in the logs of all that do not
//! say so: their files may have something of another type, behind which later writes
//! would not count. What a file has of a key behind such a note is kept apart,
//! of whatever type, and so are its counts on nothing.

use super::held::Held;
use super::types::{Any, Key};
use super::{Env, Shard};
use crate::durable::effect::Effect;
use rufous_base::Now;
use rufous_datatype::algebra::{Algebra, DataType, Tuning};
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::register::Register;
use rufous_datatype::replicated::{chunk_since, operations_of};
use rufous_lattice::Stamp;
use std::collections::BTreeMap;

impl Env {
    /// What was written below the cut is forgotten here from now on.
    pub(super) fn tell_gone(&mut self, (db, key): (u8, Key<'_>), tag: Tag, cut: Stamp) {
        if cut == Stamp::ZERO || !self.journaling {
            return;
        }
        let before = self.journal.len();
        let key = key.bytes;
        Effect::Gone { db, key, tag, cut }.encode(&mut self.journal);
        // Nobody waits for it: what counts on it comes behind.
        self.journaled_asides += self.journal.len() - before;
    }
}

/// The last that a grave which is forgotten had. Counts that began on it have its
/// stamp, and stay. Where strings lie there is nothing to say: a later string
/// says more, and other types take their place.
pub(super) fn end_of(object: &Object, horizon: u64) -> Stamp {
    match object.tag() {
        Tag::Register => Stamp::ZERO,
        _ => object.newest().max(object.gone(horizon)),
    }
}

/// Whether a grave may hide what the key has as another type, and all have heard of
/// what it holds.
pub(super) fn is_over(object: &Object, horizon: u64) -> bool {
    object.tag() != Tag::Register && object.until() <= horizon
}

impl Held {
    /// The time of the last stamp in it: later ones are to be above it, as of all
    /// that was replayed.
    pub fn latest(&self) -> u64 {
        let others = self.others.values().map(|object| object.newest().time);
        let gone = self.gone.values().map(|(_, cut)| cut.time);
        others.chain(gone).fold(self.horizon(), u64::max)
    }
}

impl Any<'_> {
    /// See [`rufous_datatype::object::Object::gone`].
    pub(super) fn gone(self, horizon: u64) -> Stamp {
        match self {
            Any::Packed(tag, bytes) => tag.packed_gone(bytes, horizon),
            Any::Object(object) => object.gone(horizon),
            Any::String(_) => Stamp::ZERO,
        }
    }

    /// Whether a replicated string is what was added to nothing, or to a removal.
    pub(super) fn only_counts(self) -> bool {
        match self {
            Any::Packed(Tag::Register, bytes) => Register::packed_view(bytes).only_counts(),
            Any::Object(object) => {
                Register::of(object).is_some_and(|state| Register::view(state).only_counts())
            }
            _ => false,
        }
    }
}

/// What is left of a replica of any type without what is below the cut, if anything
/// is. A deadline of then, or a removal, is nothing.
pub(super) fn since(any: Any<'_>, cut: Stamp, tuning: &Tuning) -> Option<Object> {
    let tag = any.tag()?;
    let (mut object, mut chunk) = (tag.empty(), Vec::new());
    let mut next = Some(0);
    while let Some(from) = next {
        chunk.clear();
        next = any.chunk(from, usize::MAX, &mut chunk);
        let left = tag.since(&operations_of(tag, &chunk), cut);
        let done = left.and_then(|ops| object.commit_encoded(&ops, tuning));
        debug_assert!(done.is_ok(), "a value's chunks are parts of it");
    }
    let newest = object.newest();
    (newest > cut || newest == cut && !object.is_hidden()).then_some(object)
}

/// A part of a snapshot without what has gone.
pub(super) fn leave_out(tag: Tag, gone: Stamp, chunk: &mut Vec<u8>) {
    if gone > Stamp::ZERO {
        let left = chunk_since(tag, chunk, gone);
        debug_assert!(left.is_ok(), "a value's chunks are parts of it");
        if let Ok(left) = left {
            *chunk = left;
        }
    }
}

/// Drops what has gone as any of the files says, of keys that are here. Answers below
/// which stamp, and the type of which that was said.
pub(super) fn drop_all_gone<'a>(
    shard: &mut Shard,
    files: &'a [impl AsRef<Held>],
    is_here: &impl Fn(&[u8]) -> bool,
    now: Now,
) -> BTreeMap<(u8, &'a [u8]), (Tag, Stamp)> {
    let mut gone = BTreeMap::<(u8, &[u8]), (Tag, Stamp)>::new();
    for ((db, key), &(tag, cut)) in files.iter().flat_map(|held| &held.as_ref().gone) {
        if is_here(key) {
            let last = gone.entry((*db, key)).or_insert((tag, cut));
            if cut > last.1 {
                *last = (tag, cut);
            }
        }
    }
    for (&(db, bytes), &(tag, cut)) in &gone {
        let key = shard.key(bytes);
        shard.drop_gone((usize::from(db), key), cut, now);
        let name = (db, Box::from(bytes));
        let says = |held: &Held| held.gone.get(&name).is_some_and(|(_, of)| *of >= cut);
        if !files.iter().all(|held| says(held.as_ref())) {
            // The file of this worker may have it still, and what is written from
            // now on comes behind it there.
            shard.env.tell_gone((db, key), tag, cut);
        }
    }
    gone
}

impl Shard {
    /// Merges what a start has kept apart of a value, without what has gone since
    /// below the cut, as another file says.
    pub(super) fn add_other(
        &mut self,
        (db, name): (usize, &[u8]),
        object: &Object,
        cut: Stamp,
        now: Now,
    ) {
        let Some(object) = since(Any::of_object(object), cut, &self.env.tuning) else {
            return;
        };
        let (key, any) = (self.key(name), Any::of_object(&object));
        let mut next = Some(0);
        while let Some(from) = next {
            let mut chunk = Vec::new();
            next = any.chunk(from, usize::MAX, &mut chunk);
            let done = self.merge_chunk(db, key, object.tag(), &chunk, now);
            debug_assert!(done.is_ok(), "a value's chunks are parts of it");
        }
    }

    /// Drops what a replica of any type has below the cut: a key may have had
    /// others before that of which the note is. Nobody is told.
    pub(super) fn drop_gone(&mut self, (db, key): (usize, Key<'_>), cut: Stamp, now: Now) {
        let at = &mut self.dbs[db];
        let grave;
        let any = match at.find(key) {
            Some(found) => at.value(found.handle),
            None => {
                let Some(object) = at.graves.get(key.bytes) else {
                    return;
                };
                grave = object;
                Any::of_object(&grave)
            }
        };
        if !any.tag().is_some_and(Tag::is_replicated) {
            return;
        }
        let left = since(any, cut, &self.env.tuning);
        at.drop_replica(key, &mut self.env);
        if let Some(object) = left {
            at.put_replica(key, object, now, &mut self.env);
        }
    }
}
