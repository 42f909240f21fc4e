//! Whether typed transactions were strictly serializable: there is an order that keeps to real time, in which they give the
//! replies that they gave, one after the other, and leave the keys that they left.

use super::ops::{self, Op};
use super::world::World;
use rufous_datatype::key::{Key, Reply};
use rufous_linear::{Outcome, Part, Stamp, TxnId};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A transaction as it was applied.
#[derive(Default)]
struct Applied {
    stamp: Stamp,
    parts: Vec<(Part<Op>, Vec<Option<Reply>>)>,
    /// It began after these had ended.
    after: BTreeSet<TxnId>,
}

type Keys = BTreeMap<Box<[u8]>, Key>;

impl World {
    pub(super) fn check_serial(&self) -> Result<(), String> {
        let mut all: BTreeMap<TxnId, Applied> = BTreeMap::new();
        let mut end = Keys::new();
        for (name, key) in self.slots.iter().flat_map(|slot| &slot.keys.all) {
            end.insert(name.clone(), key.typed.clone());
            for done in &key.done {
                let applied = all.entry(done.txn).or_default();
                applied.stamp = done.stamp;
                applied
                    .parts
                    .push((done.part.clone(), done.replies.clone()));
            }
        }
        for (id, applied) in &mut all {
            let Some(client) = self.clients.get(id) else {
                return Err(format!("{id:?} was never submitted"));
            };
            self.check_shown(*id, applied)?;
            let ended = self.clients.iter().filter(|(_, other)| {
                matches!(other.ended, Some((at, Outcome::Committed)) if at < client.began)
            });
            applied.after = ended.map(|(id, _)| *id).collect();
        }
        let start = end.keys().map(|name| (name.clone(), ops::first(name)));
        let mut search = Search {
            all: &all,
            end: &end,
            seen: HashSet::new(),
        };
        if search.finds(start.collect(), &mut BTreeSet::new()) {
            return Ok(());
        }
        Err("not strictly serializable by replies".into())
    }

    /// What was shown before is what was found when it was applied.
    fn check_shown(&self, id: TxnId, applied: &Applied) -> Result<(), String> {
        let Some(client) = self.clients.get(&id) else {
            return Ok(());
        };
        for (part, replies) in &applied.parts {
            let shown = client.shown.get(&part.key);
            if shown.is_some_and(|shown| shown != replies) {
                return Err(format!("{id:?} was shown {shown:?} and found {replies:?}"));
            }
        }
        Ok(())
    }
}

struct Search<'a> {
    all: &'a BTreeMap<TxnId, Applied>,
    end: &'a Keys,
    /// Transactions that were done, with what they left: no order of the others was found.
    seen: HashSet<(Vec<TxnId>, Vec<Vec<u8>>)>,
}

impl Search<'_> {
    /// Tries every order of the transactions that are not done: by stamps first, which is the order that they have.
    fn finds(&mut self, keys: Keys, done: &mut BTreeSet<TxnId>) -> bool {
        if done.len() == self.all.len() {
            return keys == *self.end;
        }
        let left = keys.values().map(Key::canonical).collect();
        if !self.seen.insert((done.iter().copied().collect(), left)) {
            return false;
        }
        let all = self.all;
        let may_come = |(id, applied): &(&TxnId, &Applied)| {
            let open = |before: &TxnId| all.contains_key(before) && !done.contains(before);
            !done.contains(*id) && !applied.after.iter().any(open)
        };
        let mut next: Vec<(&TxnId, &Applied)> = all.iter().filter(may_come).collect();
        next.sort_by_key(|(_, applied)| applied.stamp);
        for (id, applied) in next {
            let mut after = keys.clone();
            let replies_alike = applied.parts.iter().all(|(part, replies)| {
                let key = after.entry(part.key.clone()).or_default();
                ops::execute(key, part) == *replies
            });
            if !replies_alike {
                continue;
            }
            done.insert(*id);
            if self.finds(after, done) {
                return true;
            }
            done.remove(id);
        }
        false
    }
}
