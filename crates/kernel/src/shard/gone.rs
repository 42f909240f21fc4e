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
//! snapshot leaves out what has gone.

use super::types::{Any, Key};
use super::{Env, Shard};
use crate::durable::effect::Effect;
use rufous_base::Now;
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::{chunk_since, operations_of};
use rufous_lattice::Stamp;

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

impl Any<'_> {
    /// See [`rufous_datatype::object::Object::gone`].
    pub(super) fn gone(self, horizon: u64) -> Stamp {
        match self {
            Any::Packed(tag, bytes) => tag.packed_gone(bytes, horizon),
            Any::Object(object) => object.gone(horizon),
            Any::String(_) => Stamp::ZERO,
        }
    }
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

impl Shard {
    /// Merges all of a value that a start has kept apart.
    pub(super) fn add_other(&mut self, db: usize, name: &[u8], object: &Object, now: Now) {
        let key = self.key(name);
        let any = Any::of_object(object);
        let mut next = Some(0);
        while let Some(from) = next {
            let mut chunk = Vec::new();
            next = any.chunk(from, usize::MAX, &mut chunk);
            if !object.is_empty() {
                let done = self.merge_chunk(db, key, object.tag(), &chunk, now);
                debug_assert!(done.is_ok(), "a value's chunks are parts of it");
            }
        }
    }

    /// Drops what a replica of this type has below the cut. Nobody is told.
    pub(super) fn drop_gone(
        &mut self,
        (db, key): (usize, Key<'_>),
        (tag, cut): (Tag, Stamp),
        now: Now,
    ) {
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
        if any.tag() != Some(tag) || !tag.is_replicated() {
            return;
        }
        let (mut object, mut chunk) = (tag.empty(), Vec::new());
        let mut next = Some(0);
        while let Some(from) = next {
            chunk.clear();
            next = any.chunk(from, usize::MAX, &mut chunk);
            let left = tag.since(&operations_of(tag, &chunk), cut);
            let done = left.and_then(|ops| object.commit_encoded(&ops, &self.env.tuning));
            debug_assert!(done.is_ok(), "a value's chunks are parts of it");
        }
        at.drop_replica(key, &mut self.env);
        if object.newest() < cut || object.is_empty() && object.newest() == cut {
            // A deadline of then, at most.
            return;
        }
        at.put_replica(key, object, now, &mut self.env);
    }
}
