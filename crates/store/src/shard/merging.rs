//! Replication of the shard's data: merging received states, producing states to send, and forgetting what all
//! replicas have received.
//!
//! Received data is not trusted: bytes that are not a state of their type are an error. A key has values of one type;
//! if two replicas disagree, the value of the type with the higher tag wins, whole, at all of them: a key is a
//! `Lexicographic` of `Max` of tags and the state of that type, a lattice whatever the stamps are.

use super::at::At;
use super::env::Env;
use super::noted::Note;
use super::overwrite::merge_plain;
use super::remains::ends_of;
use super::replica::Other;
use super::types::{Any, Entry, OwnedValue};
use crate::effect::NotAnEffect;
use crate::planted::{self, Planted};
use rufous_datatype::algebra::{Corrupt, DataType, Tuning};
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::register::Register;
use rufous_datatype::replicated::{chunk_gone, chunk_since};
use rufous_lattice::Stamp;
use std::borrow::Cow;

/// Bytes of a state in one part.
const CHUNK: usize = 64 << 10;

/// Summary of a replica's state of a key.
#[derive(Clone, Copy, Debug)]
pub struct Replica {
    pub tag: Tag,
    /// The newest stamp in it.
    pub newest: Stamp,
    /// Whether there is something to read.
    pub is_shown: bool,
}

/// Merges a part of another replica's state with this one's, and reports that to watchers and waiters, but not to the
/// journal: the writer's own log has it. Returns whether that may have changed anything.
pub fn merge(at: &mut At<'_>, tag: Tag, chunk: &[u8]) -> Result<bool, NotAnEffect> {
    if planted::is(Planted::MergeSkipped) && planted::now_and_then() {
        return Ok(false);
    }
    let plain = match tag {
        Tag::Register => merge_plain(at, chunk),
        _ => None,
    };
    let changed = match plain {
        Some(changed) => changed,
        None => merge_chunk(at, tag, chunk)?,
    };
    if changed {
        at.env.counters.changes += 1;
        at.env.observers.touch(at.key, at.db.number);
    }
    Ok(changed)
}

pub(super) fn merge_chunk(at: &mut At<'_>, tag: Tag, chunk: &[u8]) -> Result<bool, NotAnEffect> {
    let chunk = without_gone(tag, chunk, at.env.horizons.here())?;
    join(at, tag, |object, tuning| object.extend(&chunk, tuning))
}

pub(super) fn merge_ops(at: &mut At<'_>, tag: Tag, ops: &[u8]) -> Result<bool, NotAnEffect> {
    join(at, tag, |object, tuning| object.commit_encoded(ops, tuning))
}

/// Removes what expired with a deadline that all replicas had received, and that the sender has not yet forgotten. If
/// it is forgotten here, nothing here would hide it.
fn without_gone(tag: Tag, chunk: &[u8], horizon: u64) -> Result<Cow<'_, [u8]>, NotAnEffect> {
    match chunk_gone(tag, chunk, horizon) {
        Stamp::ZERO => Ok(Cow::Borrowed(chunk)),
        gone => chunk_since(tag, chunk, gone)
            .map(Cow::Owned)
            .map_err(|_| NotAnEffect),
    }
}

fn join(
    at: &mut At<'_>,
    tag: Tag,
    change: impl Fn(&mut Object, &Tuning) -> Result<(), Corrupt>,
) -> Result<bool, NotAnEffect> {
    if !tag.is_replicated() {
        return Err(NotAnEffect);
    }
    let (db, key) = (at.db.number, at.key);
    let joined = |object: &mut Object, env: &mut Env| {
        // Small values are compared, large ones are assumed to have changed.
        let before = object.packed().map(<[u8]>::to_vec);
        let mut gone = Stamp::ZERO;
        let known = env.horizons.known();
        let forgets = object.may_make_way(known.there);
        if forgets {
            gone = object.gone(known.there);
        }
        if forgets || object.may_be_counted() {
            let mut sent = tag.empty();
            change(&mut sent, &env.tuning).map_err(|_| NotAnEffect)?;
            let last = object.make_way(&sent, known, &env.tuning);
            // No later time, since other code relies on everything up to it being settled.
            env.horizons.forget(last);
        }
        change(object, &env.tuning).map_err(|_| NotAnEffect)?;
        if object.gone(known.there) < gone {
            let note = Note::Gone(tag, gone);
            env.observers.journal.write_notes((db, key), [note]);
        }
        Ok(before.is_none() || before.as_deref() != object.packed())
    };
    make_way(at, tag, &change)?;
    match at.alter(tag, joined) {
        Ok(done) => return done,
        Err(Other::Replicated(other)) if other > tag => return Ok(false),
        Err(other) => count_lost(at, other),
    }
    // Only after the bytes are known to be a valid value.
    let mut object = tag.empty();
    change(&mut object, &at.env.tuning).map_err(|_| NotAnEffect)?;
    at.replica().drop_all();
    let now = at.now;
    at.replica().put(object, now);
    Ok(true)
}

/// A value makes way for one of another type. The replica that showed it counts that: it is where the writer of the lost value
/// looks.
fn count_lost(at: &mut At<'_>, other: Other) {
    let is_lost = other != Other::Plain && at.live().is_some();
    at.env.counters.types_lost += u64::from(is_lost);
}

/// Drops the key's grave if the sender has forgotten it: its horizon covers the grave, but it sent less than the grave
/// holds.
fn make_way(
    at: &mut At<'_>,
    tag: Tag,
    change: &impl Fn(&mut Object, &Tuning) -> Result<(), Corrupt>,
) -> Result<(), NotAnEffect> {
    let Some(grave) = at.db.graves.get(at.key.bytes) else {
        return Ok(());
    };
    let horizon = at.env.horizons.known().there;
    if grave.until() > horizon {
        return Ok(());
    }
    let mut object = tag.empty();
    change(&mut object, &at.env.tuning).map_err(|_| NotAnEffect)?;
    // A chunk of a collection may be a part of it: there, elements make way one by one.
    let is_whole = matches!(tag, Tag::Register | Tag::Siblings);
    // Or it sends another type, which it could not have written otherwise.
    if is_whole && object.newest() < grave.newest() || grave.tag() != tag {
        at.env.horizons.forget(grave.until());
        let ends = ends_of(&grave, horizon);
        let journal = &mut at.env.observers.journal;
        journal.write_notes((at.db.number, at.key), ends);
        at.replica().drop_all();
    }
    Ok(())
}

/// See [`Shard::show_replica`](super::Shard::show_replica).
pub(super) fn show(at: &mut At<'_>, f: &mut dyn FnMut(Tag, &[u8])) -> Option<Replica> {
    let shown = at.with_state(|any, is_shown, env| {
        let tag = any.tag().filter(|tag| tag.is_replicated())?;
        let replica = Replica {
            tag,
            newest: any.newest(),
            is_shown,
        };
        if let Any::Packed(Tag::Register, bytes) = any
            && let Some(delta) = Register::packed_view(bytes).delta()
        {
            f(tag, &delta);
            return Some(replica);
        }
        let mut chunk = std::mem::take(&mut env.packed);
        let mut next = Some(0);
        while let Some(from) = next {
            chunk.clear();
            next = any.chunk(from, CHUNK, &mut chunk);
            f(tag, &chunk);
        }
        env.packed = chunk;
        Some(replica)
    });
    shown.flatten()
}

/// The state of a key that shows nothing, as an entry.
pub(super) fn hidden_entry(at: &At<'_>) -> Option<Entry> {
    let object = at.db.graves.get(at.key.bytes)?;
    Some(Entry {
        value: OwnedValue::Object(object),
        expire_at: None,
        access: at.env.policy.first_stamp(at.now),
    })
}

/// Merges a whole value that was written elsewhere for this worker, and reports it to all observers.
pub(super) fn merge_entry(at: &mut At<'_>, entry: &Entry) {
    let any = entry.value.any();
    let Some(tag) = any.tag() else { return };
    let mut chunk = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        chunk.clear();
        next = any.chunk(from, CHUNK, &mut chunk);
        let done = merge_chunk(at, tag, &chunk);
        debug_assert!(done.is_ok(), "a value's chunks are parts of it");
    }
    at.env.counters.changes += 1;
    let db = at.db.number;
    if at.env.observers.any() {
        at.env.observers.tell_entry(at.key, db, entry);
    }
    if at.env.lattice.is_shared(at.key) {
        at.env.lattice.changes().touch(db, at.key);
    }
}
