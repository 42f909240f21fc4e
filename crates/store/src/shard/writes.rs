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
use rufous_datatype::algebra::DataType;
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
    let done = at.rewrite(tag, change);
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
        OwnedValue::Object(object) => store(at, keyed, &object, entry.expire_at),
    }
}

/// Replaces what this replica shows by a collection, element by element: a deletion, and then additions.
pub(super) fn restore(at: &mut At<'_>, keyed: Keyed, object: &Object, expire_at: Option<u64>) {
    if !fits(at, object) {
        return;
    }
    remove(at, keyed);
    put_elements(at, keyed, object);
    if expire_at.is_some() {
        set_deadline(at, keyed, expire_at);
    }
}

/// Makes a key what a command has computed: of what this replica shows, the elements that are not in it are removed, and all of
/// its elements are added, each as by a command on it alone. Elements that others add at the same time stay.
fn store(at: &mut At<'_>, keyed: Keyed, object: &Object, expire_at: Option<u64>) {
    if !fits(at, object) {
        return;
    }
    put_elements(at, keyed, object);
    if expire_at.is_some() || causal::expire_at(at).flatten().is_some() {
        set_deadline(at, keyed, expire_at);
    }
}

/// Whether a collection can be written to the key; if not, that is the refusal of the command, which must change nothing.
fn fits(at: &mut At<'_>, object: &Object) -> bool {
    let tag = match object.tag() {
        Tag::Set => Set::REPLICATE.map(|link| link.tag),
        Tag::Hash => Hash::REPLICATE.map(|link| link.tag),
        Tag::SortedSet => SortedSet::REPLICATE.map(|link| link.tag),
        _ => None,
    };
    let Some(tag) = tag else {
        at.refuse(Refused::NO_MERGE);
        return false;
    };
    let known = match at.live() {
        Some(found) => at.db.records.shape(found.handle).0,
        None => {
            let known = at.db.graves.tag_of(at.key.bytes);
            known.map(|old| old.max(tag)).or(Some(tag))
        }
    };
    if known != Some(tag) {
        at.refuse(OTHER_TYPE);
    }
    known == Some(tag)
}

/// Removes what is shown and not in this collection, and adds its elements.
fn put_elements(at: &mut At<'_>, keyed: Keyed, object: &Object) {
    match object.tag() {
        Tag::Set => put_as::<Set>(at, keyed, object, |editor, members| {
            let mut others = Vec::new();
            editor.view().each(|member, _| {
                if !members.contains(member) {
                    others.push(member.to_vec());
                }
            });
            for member in &others {
                editor.commit(&set::Op::Remove { member });
            }
            members.each(|member, _| editor.commit(&set::Op::Add { member }));
        }),
        Tag::Hash => put_as::<Hash>(at, keyed, object, |editor, fields| {
            let mut others = Vec::new();
            editor.view().each(|field, _| {
                if fields.get(field).is_none() {
                    others.push(field.to_vec());
                }
            });
            for field in &others {
                editor.commit(&hash::Op::Delete { field });
            }
            fields.each(|field, value| editor.commit(&hash::Op::Set { field, value }));
        }),
        Tag::SortedSet => put_as::<SortedSet>(at, keyed, object, |editor, members| {
            let (shown, mut others) = (editor.view(), Vec::new());
            shown.each(shown.span(&Zone::ALL), false, |member, _| {
                if members.score(member).is_none() {
                    others.push(member.to_vec());
                }
            });
            for member in &others {
                editor.commit(&sorted_set::Op::Remove { member });
            }
            members.each(members.span(&Zone::ALL), false, |member, score| {
                let only = Only::default();
                editor.commit(&sorted_set::Op::Add {
                    member,
                    score,
                    only,
                });
            });
        }),
        _ => at.refuse(Refused::NO_MERGE),
    }
}

fn put_as<T: Registered>(
    at: &mut At<'_>,
    keyed: Keyed,
    object: &Object,
    write: impl FnOnce(&mut Editor<'_, T>, T::View<'_>),
) {
    let Some(state) = T::of(object) else {
        return at.refuse(Refused::NO_MERGE);
    };
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
    let done = at.rewrite(link.tag, edit);
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
