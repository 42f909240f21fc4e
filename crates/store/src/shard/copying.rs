//! Copies of values to and from replicated keys: what a key shows is written to the other one, as by commands on that one alone. The
//! replicated state itself, with its stamps and tombstones, is of one key and never goes to another.

use super::Shard;
use super::causal::note_read;
use super::types::{Any, Entry, Key, OwnedValue, Value};
use rufous_base::Now;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::hash::Hash;
use rufous_datatype::hll;
use rufous_datatype::object::{Object, Registered};
use rufous_datatype::replicated::Refused;
use rufous_datatype::set::Set;
use rufous_datatype::sorted_set::SortedSet;
use std::sync::Arc;

/// Bytes of a value in one part.
const CHUNK: usize = 64 << 10;

const COUNTED: Refused = Refused {
    why: "what is counted in a HyperLogLog cannot be taken away again at other replicas",
    instead: "use PFMERGE, which adds it to what the key counts",
};

/// A key of one of the databases.
#[derive(Clone, Copy, Debug)]
pub struct DbKey<'k> {
    pub db: usize,
    pub key: Key<'k>,
}

impl DbKey<'_> {
    fn is(self, other: DbKey<'_>) -> bool {
        (self.db, self.key.bytes) == (other.db, other.key.bytes)
    }
}

/// Writes what the running command is shown of a key, with its deadline, to another key. A collection becomes what the other
/// key shows by removing and adding elements. Returns whether there was something; see [`super::Lattice::has_refused`].
pub fn copy_shown(shard: &mut Shard, from: DbKey<'_>, to: DbKey<'_>, now: Now) -> bool {
    if shard.lattice().has_session() {
        note_read(&mut shard.at(from.db, from.key, now));
    }
    if shard.lattice().is_undecided() {
        return false;
    }
    let Some(entry) = plain_entry(shard, from, now) else {
        return false;
    };
    if from.is(to) {
        return true;
    }
    let counts = match entry.value.any() {
        Any::String(text) => hll::Sketch::parse(text.bytes()).is_ok(),
        _ => false,
    };
    if counts && shard.lattice().writes(to.key) {
        shard.at(to.db, to.key, now).refuse(COUNTED);
        return true;
    }
    shard.insert_entry(to.db, to.key, entry, now);
    true
}

/// The same, and then deletes the first key, as by a command on that key alone.
pub fn move_shown(shard: &mut Shard, from: DbKey<'_>, to: DbKey<'_>, now: Now) -> bool {
    let is_there = copy_shown(shard, from, to, now);
    if is_there && !from.is(to) && !shard.lattice().has_refused() {
        shard.remove(from.db, from.key, now);
    }
    is_there
}

/// A key's entry as a plain value.
fn plain_entry(shard: &mut Shard, from: DbKey<'_>, now: Now) -> Option<Entry> {
    let DbKey { db, key } = from;
    let mut entry = shard.clone_entry(db, key, now)?;
    // The copy is new.
    entry.access = shard.policy().first_stamp(now);
    if !entry.value.is_replicated() {
        return Some(entry);
    }
    entry.expire_at = shard.expire_at(db, key, now)?;
    let tuning = *shard.tuning();
    entry.value = match shard.look(db, key, now)? {
        Any::String(Value::Big(text)) => OwnedValue::Big(text.clone()),
        Any::String(text) => OwnedValue::Big(Arc::new(text.bytes().to_vec())),
        any => OwnedValue::Object(plain_object(any, &tuning)?),
    };
    Some(entry)
}

fn plain_object(any: Any<'_>, tuning: &Tuning) -> Option<Object> {
    if let Ok(members) = any.of::<Set>() {
        return rebuilt::<Set>(members, tuning);
    }
    if let Ok(fields) = any.of::<Hash>() {
        return rebuilt::<Hash>(fields, tuning);
    }
    rebuilt::<SortedSet>(any.of::<SortedSet>().ok()?, tuning)
}

fn rebuilt<T: Registered>(view: T::View<'_>, tuning: &Tuning) -> Option<Object> {
    let (mut object, mut chunk) = (T::TAG.empty(), Vec::new());
    let mut next = Some(0);
    while let Some(at) = next {
        chunk.clear();
        next = T::chunk(view, at, CHUNK, &mut chunk);
        object.extend(&chunk, tuning).ok()?;
    }
    Some(object)
}
