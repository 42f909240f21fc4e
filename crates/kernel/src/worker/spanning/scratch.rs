//! Execution of a command over several workers on a shard of its own, which has copies of all its
//! keys (references to large values); and the changes of each key.
//!
//! The changes are sent to the owners as effects, so that a change of one element of a large
//! collection stays small in messages and logs. If the value of a key was replaced, the new value
//! is sent.

use super::commits::Writes;
use super::names_only;
use crate::durable::effect::Effect;
use crate::lock::KeyName;
use crate::multi::{Change, Gathered, KeyWrite};
use crate::planted::{self, Planted};
use crate::shard::Shard;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use std::collections::BTreeMap;

/// Inserts gathered entries in a scratch shard, which keeps a journal from then on.
pub(super) fn load(scratch: &mut Shard, gathered: &[Gathered], now: Now) {
    for Gathered { key, entry, .. } in gathered {
        if let Some(entry) = entry {
            let name = scratch.key(&key.1);
            scratch.insert_entry(usize::from(key.0), name, entry.clone(), now);
        }
    }
    begin(scratch);
}

/// A scratch shard has what commands need: they may run.
pub(in crate::worker) fn begin(scratch: &mut Shard) {
    scratch.observers_mut().set_brief_journaling(true);
}

/// Empties a scratch shard with these keys on which commands have run: returns the changes.
pub(in crate::worker) fn end(scratch: &mut Shard, keys: &[KeyName], now: Now) -> Vec<KeyWrite> {
    // As if they were of one owner.
    let gathered = names_only(keys, WorkerId(0));
    let writes = unload(scratch, gathered, false, now);
    writes.into_values().flatten().collect()
}

/// A change as effects. `scratch`: an empty shard.
pub(in crate::worker) fn effects_of(
    scratch: &mut Shard,
    ((db, key), change): &KeyWrite,
    now: Now,
) -> Vec<u8> {
    match change {
        Change::Effects(effects) => effects.clone(),
        Change::Whole(Some(entry)) => {
            let (at, name) = (usize::from(*db), scratch.key(key));
            scratch.observers_mut().set_journaling(true);
            scratch.insert_entry(at, name, entry.clone(), now);
            let effects = std::mem::take(scratch.journal());
            scratch.observers_mut().set_journaling(false);
            let _ = scratch.take_entry(at, name, now);
            drop(scratch.take_garbage());
            effects
        }
        Change::Whole(None) => {
            let mut effects = Vec::new();
            Effect::Delete { db: *db, key }.encode(&mut effects);
            effects
        }
    }
}

/// Empties a scratch shard: returns the changes of each key, or with `all` its new contents, by
/// owner.
pub(super) fn unload(scratch: &mut Shard, gathered: Vec<Gathered>, all: bool, now: Now) -> Writes {
    scratch.observers_mut().set_brief_journaling(false);
    let mut changes = changes(&std::mem::take(scratch.journal()));
    let mut writes = Writes::new();
    for Gathered { owner, key, .. } in gathered {
        let name = scratch.key(&key.1);
        let after = scratch.take_entry(usize::from(key.0), name, now);
        let change = match changes.remove(&key) {
            _ if all => Change::Whole(after),
            Some(None) => Change::Whole(after),
            Some(Some(effects))
                if planted::is(Planted::DroppedEffect) && effects.len() % 4 == 0 =>
            {
                continue;
            }
            Some(Some(_))
                if planted::is(Planted::DroppedReplicaEffect)
                    && after.is_some_and(|entry| entry.value.is_replicated())
                    && planted::now_and_then() =>
            {
                continue;
            }
            Some(Some(effects)) => Change::Effects(effects),
            None => continue,
        };
        writes.entry(owner).or_default().push((key, change));
    }
    debug_assert!(
        all || changes.is_empty(),
        "it changed a key it did not name"
    );
    tidy(scratch);
    writes
}

/// Carries out changes of a scratch shard at the owner of the keys.
pub(in crate::worker) fn put_back(shard: &mut Shard, writes: Vec<KeyWrite>, now: Now) {
    for ((db, bytes), change) in writes {
        let (db, key) = (usize::from(db), shard.key(&bytes));
        match change {
            Change::Whole(Some(entry)) => shard.insert_entry(db, key, entry, now),
            Change::Whole(None) => {
                shard.remove(db, key, now);
            }
            Change::Effects(effects) => shard.carry_out(&effects, now),
        }
    }
}

/// Empties a scratch shard to which nothing was written.
pub(super) fn discard(scratch: &mut Shard, gathered: &[Gathered], now: Now) -> Writes {
    scratch.observers_mut().set_brief_journaling(false);
    scratch.journal().clear();
    for Gathered { key, .. } in gathered {
        let name = scratch.key(&key.1);
        let _ = scratch.take_entry(usize::from(key.0), name, now);
    }
    tidy(scratch);
    Writes::new()
}

/// The effects on each key; `None` where they do not determine its contents.
fn changes(journal: &[u8]) -> BTreeMap<KeyName, Option<Vec<u8>>> {
    let mut all = BTreeMap::<KeyName, Option<Vec<u8>>>::new();
    let mut rest = journal;
    while !rest.is_empty() {
        let before = rest;
        let Ok(effect) = Effect::decode(&mut rest) else {
            debug_assert!(false, "a journal consists of effects");
            break;
        };
        let is_whole = match effect {
            Effect::Put { .. } | Effect::More { .. } | Effect::Move { .. } => true,
            Effect::Copy { .. } => true,
            Effect::Set { value, .. } | Effect::SetKeep { value, .. } => value.len() > LARGE,
            _ => false,
        };
        let bytes = &before[..before.len() - rest.len()];
        for (db, key) in effect.keys() {
            let change = all
                .entry((db, key.into()))
                .or_insert_with(|| Some(Vec::new()));
            match change {
                Some(effects) if !is_whole => effects.extend_from_slice(bytes),
                _ => *change = None,
            }
        }
    }
    all
}

/// A string of more bytes is sent by reference.
const LARGE: usize = 4 << 10;

fn tidy(scratch: &mut Shard) {
    debug_assert!(
        (0..DATABASES).all(|db| scratch.is_empty(db)),
        "a command wrote to a key it did not name"
    );
    // The workers that own the replicas note their changes.
    scratch.changeset().clear();
    debug_assert_eq!(scratch.graves_len(), 0);
    // References only: the owners still have the values themselves.
    drop(scratch.take_garbage());
}
