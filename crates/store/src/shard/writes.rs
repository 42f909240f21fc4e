//! Writes to replicated keys: commands call the same functions as for other keys, which here become operations of
//! replicated types, with stamps.
//!
//! A worker calls [`Shard::begin_lattice`](super::Shard::begin_lattice) to state that the next command may write to
//! such keys, and its writer; [`Shard::end_lattice`](super::Shard::end_lattice) returns the result. Local writes go to
//! the journal, as operations, and to the changeset, for other replicas; what other replicas have sent goes to neither
//! (see `merging`).
//!
//! An operation that would need other replicas changes nothing and is kept as the refusal of the command, whatever
//! reply the command produces.

use super::at::At;
use super::causal;
use super::collection::Editor;
use super::env::Env;
use super::lattice::{CLOCKS_LEAD, Keyed};
use super::replica::Other;
use super::strings::{set_deadline, write_string};
use super::types::{Entry, ExpirySetting, NewValue, OwnedValue, WrongType};
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::{Refused, Writer};
use rufous_datatype::set::{self, Set};
use rufous_datatype::sorted_set::{self, Only, SortedSet, Zone};

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

/// Refuses an operation that depends on the whole value at other replicas.
#[cold]
pub(super) fn refuse_edit<R>(
    at: &mut At<'_>,
    min_len: usize,
    change: impl FnOnce(&mut [u8]) -> R,
) -> R {
    at.refuse(ON_THE_WHOLE);
    causal::note_read(at);
    let mut copy = at.shown_text().unwrap_or_default();
    copy.resize(copy.len().max(min_len), 0);
    change(&mut copy)
}

#[cold]
pub(super) fn refuse_append(at: &mut At<'_>) -> usize {
    at.refuse(ON_THE_WHOLE);
    0
}

/// Writes to the running command's replica of a key: `encode` gets its value and appends operations, which are
/// committed and reported.
pub(super) fn write_replica<R>(
    at: &mut At<'_>,
    (keyed, tag): (Keyed, Tag),
    encode: impl FnOnce(&Object, &Writer, &mut Vec<u8>) -> R,
) -> Option<R> {
    let writer = at.env.lattice.writer()?;
    if at.env.lattice.is_barred() {
        at.refuse(CLOCKS_LEAD);
        return None;
    }
    let mut ops = std::mem::take(&mut at.env.ops);
    ops.clear();
    let change = |object: &mut Object, env: &mut Env| {
        let result = encode(object, &writer, &mut ops);
        let done = object.commit_encoded(&ops, &env.tuning);
        debug_assert!(done.is_ok(), "operations are as their type encodes them");
        result
    };
    let done = at.alter(tag, change);
    if !ops.is_empty() {
        at.env.lattice.step();
        at.tell_update(keyed, tag, &ops);
    }
    at.env.ops = ops;
    match done {
        Ok(result) => Some(result),
        Err(other) => {
            refuse_other(at, other);
            None
        }
    }
}

fn refuse_other(at: &mut At<'_>, other: Other) {
    at.refuse(match other {
        Other::Plain => NOT_YET,
        Other::Replicated(_) => OTHER_TYPE,
    });
}

/// Deletes what the replica shows; concurrent additions at other replicas stay. Returns whether anything was deleted.
pub(super) fn remove(at: &mut At<'_>, keyed: Keyed) -> bool {
    if at.is_plain() {
        return at.remove();
    }
    let Some(tag) = at.tag() else {
        return false;
    };
    if tag == Tag::Siblings {
        return causal::delete(at, keyed);
    }
    let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
        object.encode_delete(writer, ops);
    };
    write_replica(at, (keyed, tag), encode).is_some()
}

/// Gives a replicated key the value that a command has computed elsewhere.
pub(super) fn insert(at: &mut At<'_>, keyed: Keyed, entry: Entry) {
    let expiry = match entry.expire_at {
        Some(at) => ExpirySetting::At(at),
        None => ExpirySetting::Clear,
    };
    match entry.value {
        OwnedValue::Small(bytes) => {
            write_string(at, keyed, &NewValue::Copy(&bytes), expiry);
        }
        OwnedValue::Big(value) => {
            write_string(at, keyed, &NewValue::Shared(value), expiry);
        }
        OwnedValue::Object(_) => at.refuse(NO_STORE),
    }
}

/// Replaces what this replica shows by a collection, element by element.
pub(super) fn restore(at: &mut At<'_>, keyed: Keyed, object: &Object, expire_at: Option<u64>) {
    match object.tag() {
        Tag::Set => restore_as::<Set>(at, keyed, object, |editor, members| {
            members.each(|member, _| editor.commit(&set::Op::Add { member }));
        }),
        Tag::Hash => restore_as::<Hash>(at, keyed, object, |editor, fields| {
            fields.each(|field, value| editor.commit(&hash::Op::Set { field, value }));
        }),
        Tag::SortedSet => restore_as::<SortedSet>(at, keyed, object, |editor, members| {
            members.each(members.span(&Zone::ALL), false, |member, score| {
                let only = Only::default();
                editor.commit(&sorted_set::Op::Add {
                    member,
                    score,
                    only,
                });
            });
        }),
        _ => return at.refuse(Refused::NO_MERGE),
    }
    if expire_at.is_some() {
        set_deadline(at, keyed, expire_at);
    }
}

fn restore_as<T: Registered>(
    at: &mut At<'_>,
    keyed: Keyed,
    object: &Object,
    write: impl FnOnce(&mut Editor<'_, T>, T::View<'_>),
) {
    let (Some(link), Some(state)) = (T::REPLICATE, T::of(object)) else {
        return at.refuse(Refused::NO_MERGE);
    };
    // A refused operation must change nothing.
    let known = match at.live() {
        Some(found) => at.db.records.shape(found.handle).0,
        None => at.db.graves.tag_of(at.key.bytes).or(Some(link.tag)),
    };
    if known != Some(link.tag) {
        return at.refuse(OTHER_TYPE);
    }
    remove(at, keyed);
    let done = update::<T, _>(at, keyed, |editor| {
        write(editor, T::view(state));
    });
    debug_assert!(done.is_ok(), "the type was looked at");
}

/// [`Shard::update`](super::Shard::update) of a replicated key: operations are translated to those of the type that
/// replicates `T`.
pub(super) fn update<T: Registered, R>(
    at: &mut At<'_>,
    keyed: Keyed,
    change: impl FnOnce(&mut Editor<'_, T>) -> R,
) -> Result<R, WrongType> {
    let Some(link) = T::REPLICATE else {
        at.refuse(Refused::NO_MERGE);
        return Err(WrongType);
    };
    if at.env.lattice.is_barred() {
        at.refuse(CLOCKS_LEAD);
        return Err(WrongType);
    }
    let key = at.key;
    let Some(mut writing) = at.env.lattice.take_writing() else {
        return Err(WrongType);
    };
    let mut ops = std::mem::take(&mut at.env.ops);
    ops.clear();
    let edit = |object: &mut Object, env: &mut Env| {
        let mut refused = None;
        let writer = &mut writing.writer;
        let mut editor = Editor::of_replica(object, writer, &mut refused, &env.tuning, &mut ops);
        let result = change(&mut editor);
        if let Some(why) = refused {
            writing.refuse(key, why);
        }
        result
    };
    let done = at.alter(link.tag, edit);
    at.env.lattice.go_on(writing);
    if !ops.is_empty() {
        at.tell_update(keyed, link.tag, &ops);
    }
    ops.clear();
    at.env.ops = ops;
    done.map_err(|other| {
        // If the key shows a value of another type, the command itself reports that.
        if other == Other::Plain || at.db.records.find(key).is_none() {
            refuse_other(at, other);
        }
        WrongType
    })
}
