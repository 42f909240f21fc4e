//! The worker's part in commands that span workers: holding keys for others,
//! and coordinating its own. See [`crate::multi`] for the whole.

use super::{Completions, Message, Work, Worker};
use crate::lock::{Scope, Ticket};
use crate::multi::{Gathered, KeyWrite, Multi, NodeAction};
use crate::program::Program;
use crate::shard::{Entry, Key};
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use std::collections::BTreeMap;

impl<P: Program> Worker<P> {
    pub(super) fn start(&mut self, multi: Multi) {
        let id = self.next_multi;
        self.next_multi += 1;
        self.multis.insert(id, multi);
        let finished = self.visit_next(id);
        debug_assert!(
            !finished,
            "a command that spans workers visits at least one"
        );
    }

    /// Asks the next worker for its hold. True where all have been visited.
    pub(super) fn visit_next(&mut self, id: u64) -> bool {
        let Some(multi) = self.multis.get_mut(&id) else {
            return true;
        };
        let touch = multi.batch.requests.iter().all(|r| !r.header.no_touch);
        let Some((worker, scope)) = multi.next_visit() else {
            return true;
        };
        if worker == self.id {
            self.locks.acquire(
                scope,
                Work::Hold {
                    multi: id,
                    coordinator: self.id,
                    touch,
                },
            );
        } else {
            self.send(
                worker,
                Message::Acquire {
                    multi: id,
                    scope,
                    touch,
                },
            );
        }
        false
    }

    pub(super) fn gather(&mut self, ticket: Ticket, touch: bool, now: Now) -> Vec<Gathered> {
        self.shard.set_touch(touch);
        let Some(Scope::Keys(keys)) = self.locks.scope(ticket) else {
            return Vec::new();
        };
        keys.iter()
            .map(|key| {
                let name = self.shard.key(&key.1);
                let db = usize::from(key.0);
                // Only the access counts here; the entry is copied whole.
                let _ = self.shard.get(db, name, now);
                let entry = self.shard.clone_entry(db, name, now);
                Gathered {
                    owner: self.id,
                    key: key.clone(),
                    entry,
                }
            })
            .collect()
    }

    pub(super) fn on_acquired(
        &mut self,
        now: Now,
        id: u64,
        from: WorkerId,
        ticket: Ticket,
        gathered: Vec<Gathered>,
        completions: &mut impl Completions,
    ) {
        let Some(multi) = self.multis.get_mut(&id) else {
            debug_assert!(false, "a hold for a command that is not under way");
            return;
        };
        multi.held.push((from, ticket));
        multi.gathered.extend(gathered);
        if self.visit_next(id)
            && let Some(multi) = self.multis.remove(&id)
        {
            self.finish(now, multi, completions);
        }
    }

    /// Everything is held: run the command once and send its writes home.
    pub(super) fn finish(&mut self, now: Now, multi: Multi, completions: &mut impl Completions) {
        let Multi {
            batch,
            held,
            gathered,
            action,
            ..
        } = multi;
        self.scratch.set_policy(self.shard.policy());
        for Gathered { key, entry, .. } in &gathered {
            if let Some(entry) = entry {
                let name = self.scratch.key(&key.1);
                self.scratch
                    .insert_entry(usize::from(key.0), name, entry.clone(), now);
            }
        }
        std::mem::swap(&mut self.shard, &mut self.scratch);
        let batch = self.run_batch(now, batch);
        std::mem::swap(&mut self.shard, &mut self.scratch);

        let is_write = batch.requests.iter().any(|r| P::is_write(r.header.command));
        let mut writes: BTreeMap<WorkerId, Vec<KeyWrite>> = BTreeMap::new();
        for Gathered {
            owner,
            key,
            entry: before,
        } in gathered
        {
            let name = self.scratch.key(&key.1);
            let after = self.scratch.take(usize::from(key.0), name, now);
            if is_write && !same_entry(&before, &after) {
                writes.entry(owner).or_default().push((key, after));
            }
        }
        debug_assert!(
            (0..DATABASES).all(|db| self.scratch.is_empty(db)),
            "a command wrote to a key it did not name"
        );
        // References only: the owners still have the values themselves.
        drop(self.scratch.take_garbage());
        for (owner, ticket) in held {
            let writes = writes.remove(&owner).unwrap_or_default();
            if owner == self.id {
                self.on_release(now, ticket, writes, action);
            } else {
                self.send(
                    owner,
                    Message::Release {
                        ticket,
                        writes,
                        action,
                    },
                );
            }
        }
        debug_assert!(writes.is_empty(), "writes only where keys were held");
        self.on_replies(batch, completions);
    }

    pub(super) fn on_release(
        &mut self,
        now: Now,
        ticket: Ticket,
        writes: Vec<KeyWrite>,
        action: Option<NodeAction>,
    ) {
        for ((db, bytes), entry) in writes {
            let key: Key<'_> = self.shard.key(&bytes);
            match entry {
                Some(entry) => self.shard.insert_entry(usize::from(db), key, entry, now),
                None => {
                    self.shard.remove(usize::from(db), key, now);
                }
            }
        }
        match action {
            Some(NodeAction::FlushAll) => {
                (0..DATABASES).for_each(|db| self.shard.flush(db));
            }
            Some(NodeAction::FlushDb(db)) => self.shard.flush(usize::from(db)),
            Some(NodeAction::SwapDb(a, b)) => self.shard.swap(usize::from(a), usize::from(b)),
            None => {}
        }
        self.locks.release(ticket);
    }
}

/// Whether a command left an entry as it was; access statistics do not count.
fn same_entry(before: &Option<Entry>, after: &Option<Entry>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some(a), Some(b)) => a.expire_at == b.expire_at && a.value == b.value,
        _ => false,
    }
}
