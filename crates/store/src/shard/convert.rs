//! Conversion of values when the keyspace of their keys changes: plain ones become replicated and replicated ones
//! plain. All of it is written to the journal, so that a replay gives the same.

use super::Shard;
use super::at::At;
use super::causal::shown_expiry;
pub use super::forms::{reshapes, strings};
use super::strings::{merge_sketches, write_string};
use super::types::{Any, Entry, ExpirySetting, Item, Key, NewValue, OwnedValue};
use crate::effect::Effect;
use crate::keyspace::Keyspace;
use rufous_base::Now;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::hll::{self, Registers};
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::siblings::{self, Pick, Siblings};
use rufous_datatype::set::{self, Set};
use rufous_datatype::sorted_set::{self, SortedSet};

/// Why a value cannot be replicated as its keyspace demands.
const NO_FORM: &str = "values of its type do not merge";
const CONCURRENT: &str = "it has concurrent values, of which RESOLVE refuse picks none; \
    join them with CAUSAL.GET and CAUSAL.SET";

/// The registers of a string, if that is a HyperLogLog.
fn registers(text: &[u8]) -> Option<Registers> {
    hll::Sketch::parse(text).ok()?.registers().ok()
}

/// Why a value cannot move from one lattice keyspace, or none, to another.
pub fn refuses(
    item: &Item<'_>,
    (from, to): (Option<&Keyspace>, Option<&Keyspace>),
) -> Option<&'static str> {
    let has_order = to.is_some_and(|to| strings(to) == Tag::Siblings);
    match item.value.tag() {
        None | Some(Tag::Hash | Tag::Set | Tag::SortedSet | Tag::Register) => None,
        Some(Tag::Siblings) => {
            let picks = from.is_none_or(|from| from.resolve.picks());
            (!has_order && !picks && count(item.value) > 1).then_some(CONCURRENT)
        }
        Some(tag) => (!tag.is_replicated()).then_some(NO_FORM),
    }
}

/// Number of concurrent values of a string with causal order.
fn count(value: Any<'_>) -> usize {
    match value {
        Any::Packed(Tag::Siblings, bytes) => siblings::count(bytes),
        Any::Object(Object::Siblings(state)) => siblings::count(Siblings::view(state)),
        _ => 0,
    }
}

/// Approximate size of a value in bytes.
pub fn size_of_value(value: Any<'_>) -> usize {
    match value {
        Any::String(text) => text.bytes().len(),
        Any::Packed(_, bytes) => bytes.len(),
        Any::Object(object) => object.heap_bytes(),
    }
}

/// Turns the plain value of a key into a replicated one, written by the running command.
pub fn make_replicated(shard: &mut Shard, db: usize, key: Key<'_>, now: Now) {
    let (Some(keyed), Some(entry)) = (
        shard.data.env.lattice.replicated(key),
        shard.clone_entry(db, key, now),
    ) else {
        return;
    };
    let value = match &entry.value {
        value if value.is_replicated() => return,
        OwnedValue::Object(_) => {
            shard.at(db, key, now).remove();
            return add_elements(shard, (db, key), &entry, now);
        }
        OwnedValue::Small(bytes) => NewValue::Copy(bytes),
        OwnedValue::Big(value) => NewValue::Shared(value.clone()),
    };
    if let Some(registers) = registers(value.bytes()) {
        shard.at(db, key, now).remove();
        merge_sketches(&mut shard.at(db, key, now), &registers);
        return give_deadline(shard, (db, key), &entry, now);
    }
    let expiry = entry.expire_at.map(ExpirySetting::At);
    let expiry = expiry.unwrap_or(ExpirySetting::Clear);
    write_string(&mut shard.at(db, key, now), keyed, &value, expiry);
}

/// Whether a replicated value has another type in its key's new keyspace: a string with or without causal order.
pub fn rewrites(at: &mut At<'_>, from: &Keyspace, to: &Keyspace) -> bool {
    let tag = at.tag();
    let is_string = matches!(tag, Some(Tag::Register | Tag::Siblings));
    is_string && strings(from) != strings(to)
}

/// Replaces a replica by a new value, without the earlier state, of what it shows: plain or replicated according
/// to the current table. All other replicas are dropped already or will be: none may be merged into it any more.
pub fn write_anew(shard: &mut Shard, db: usize, key: Key<'_>, pick: Pick, now: Now) {
    let entry = shard.clone_entry(db, key, now);
    drop_replicated(shard, db, key, now);
    let Some(entry) = entry else {
        return;
    };
    let Any::String(text) = entry.value.any().shown_by(|| pick) else {
        return add_elements(shard, (db, key), &entry, now);
    };
    let next = entry.expire_at;
    let expiry = next.and_then(|next| shown_expiry(entry.value.any(), pick, next));
    let expiry = expiry.map_or(ExpirySetting::Clear, ExpirySetting::At);
    let text = NewValue::Copy(text.bytes());
    shard.set(db, key, text, expiry, now);
}

/// Drops all state of a key, even if it shows nothing.
pub fn drop_replicated(shard: &mut Shard, db: usize, key: Key<'_>, now: Now) {
    shard.data.env.counters.changes += 1;
    let mut at = shard.at(db, key, now);
    // An expired value is a grave from here on.
    let _ = at.live();
    let effect = Effect::Delete {
        db: db as u8,
        key: key.bytes,
    };
    at.env.observers.tell(key, db as u8, &effect);
    at.replica().drop_all();
}

fn give_deadline(shard: &mut Shard, (db, key): (usize, Key<'_>), entry: &Entry, now: Now) {
    if entry.expire_at.is_some() {
        shard.set_expire_at(db, key, entry.expire_at, now);
    }
}

/// Adds the elements of a collection, plain or replicated, and its deadline.
fn add_elements(shard: &mut Shard, (db, key): (usize, Key<'_>), entry: &Entry, now: Now) {
    let value = entry.value.any();
    let done = if let Ok(view) = value.of::<Set>() {
        shard.update::<Set, _>(db, key, now, |editor| {
            view.each(|member, _| {
                editor.apply(&set::Op::Add { member });
            });
        })
    } else if let Ok(view) = value.of::<Hash>() {
        shard.update::<Hash, _>(db, key, now, |editor| {
            view.each(|field, value| {
                editor.apply(&hash::Op::Set { field, value });
            });
        })
    } else if let Ok(view) = value.of::<SortedSet>() {
        shard.update::<SortedSet, _>(db, key, now, |editor| {
            view.each(0..view.len(), false, |member, score| {
                let only = sorted_set::Only::default();
                editor.apply(&sorted_set::Op::Add {
                    member,
                    score,
                    only,
                });
            });
        })
    } else {
        Ok(())
    };
    debug_assert!(done.is_ok(), "nothing is at the key");
    give_deadline(shard, (db, key), entry, now);
}

/// Sends the whole state of a key to its other replicas and writes it to the journal: the writer of a part of it
/// may no longer know that it was its own.
pub fn spread(shard: &mut Shard, db: usize, key: Key<'_>, now: Now) {
    if let Some(entry) = shard.clone_entry(db, key, now) {
        shard.data.env.observers.tell_entry(key, db as u8, &entry);
    }
    shard.data.env.lattice.changes().touch(db as u8, key);
}
