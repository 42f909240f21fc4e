//! Commands whose keys refer to others that they read, such as `SORT` with patterns.
//!
//! These keys are known only once the named keys are held. If some of them are not held, the
//! command releases everything and holds the larger set; by then the keys may differ. After some
//! rounds it holds everything of every worker, so that no other command can change them, and
//! fetches them from their owners. A transaction with such a command holds everything from the
//! start: its earlier commands can't be undone.
//!
//! Invariants:
//! 1. Nothing is held while more holds are awaited, so that workers are still visited in ascending
//!    order.
//! 2. Keys are fetched only from workers that are held whole: the entries belong to the same moment
//!    as those that were gathered.
//! 3. Only the command of a transaction that fetched keys reads them: they leave the scratch shard
//!    with it.

use super::held::release_all;
use super::scratch::{discard, load};
use super::{Call, HeldExec, Message, Site, Spanning, gather};
use crate::batch::Header;
use crate::lock::KeyName;
use crate::multi::{Gathered, Multi};
use crate::program::Program;
use rufous_base::{Args, Now, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// The other keys of a held transaction: fetched, or still awaited.
#[derive(Debug, Default)]
pub(super) struct Borrowed {
    /// Their names in the scratch shard.
    names: Vec<KeyName>,
    /// The database in which the command looks for them.
    db: u8,
    /// The number of owners that have not answered.
    awaited: usize,
}

impl HeldExec {
    fn borrow(&mut self, gathered: Vec<Gathered>, now: Now) {
        self.scratch.observers_mut().set_brief_journaling(false);
        for Gathered { key, entry, .. } in gathered {
            let name = (self.borrowed.db, key.1);
            if let Some(mut entry) = entry {
                // An entry that exists now does not expire before it is read.
                entry.expire_at = None;
                let key = self.scratch.key(&name.1);
                self.scratch
                    .insert_entry(usize::from(name.0), key, entry, now);
            }
            self.borrowed.names.push(name);
        }
        self.scratch.observers_mut().set_brief_journaling(true);
    }

    pub(super) fn give_back(&mut self, now: Now) {
        if self.borrowed.names.is_empty() {
            return;
        }
        self.scratch.observers_mut().set_brief_journaling(false);
        for (db, name) in self.borrowed.names.drain(..) {
            let key = self.scratch.key(&name);
            let _ = self.scratch.take_entry(usize::from(db), key, now);
        }
        self.scratch.observers_mut().set_brief_journaling(true);
    }
}

impl Spanning {
    /// Makes a command hold the other keys that it reads. Returns it if it has all of them.
    pub(super) fn with_others<P: Program>(
        &mut self,
        mut multi: Multi,
        site: &mut Site<'_>,
    ) -> Option<Multi> {
        let Some(open) = multi.open else {
            return Some(multi);
        };
        let missing = self.missing::<P>(site.now, &mut multi);
        if missing.is_empty() {
            return Some(multi);
        }
        if open.whole {
            let number = self.next_number();
            let (own, awaited) = fetch(number, multi.touch, missing, site);
            multi.gathered.extend(own);
            if awaited == 0 {
                return Some(multi);
            }
            multi.awaited = awaited;
            self.multis.insert(number, multi);
            return None;
        }
        let placement = site.store.placement;
        let mut keys: Vec<_> = missing
            .into_iter()
            .map(|key| (placement.owner(&key.1), key))
            .collect();
        keys.extend(multi.gathered.into_iter().map(|g| (g.owner, g.key)));
        release_all(multi.held, site);
        let workers = placement.workers();
        let wider = Multi::on_open(multi.batch, keys, open.round + 1, workers);
        site.call(Call::Begin(Box::new(wider)));
        None
    }

    /// The other keys that a command reads and that were not gathered.
    fn missing<P: Program>(&mut self, now: Now, multi: &mut Multi) -> BTreeSet<KeyName> {
        load(&mut self.scratch, &multi.gathered, now);
        let (header, args, _) = multi.batch.parts(0);
        let mut others = P::others(header.command, &mut self.scratch, header.db, &args, now);
        discard(&mut self.scratch, &multi.gathered, now);
        for gathered in &multi.gathered {
            others.remove(&gathered.key);
        }
        others
    }

    /// An owner's entries of such keys.
    pub(in crate::worker) fn on_fetched<P: Program>(
        &mut self,
        number: u64,
        gathered: Vec<Gathered>,
        site: &mut Site<'_>,
    ) {
        if let Some(held) = self.execs.borrowing.get_mut(&number) {
            held.borrow(gathered, site.now);
            held.borrowed.awaited -= 1;
            if held.borrowed.awaited == 0
                && let Some(mut held) = self.execs.borrowing.remove(&number)
            {
                held.resumed = true;
                self.execs.ready.push_back(held);
            }
            return;
        }
        let Some(multi) = self.multis.get_mut(&number) else {
            debug_assert!(false, "keys for a command that is not under way");
            return;
        };
        multi.gathered.extend(gathered);
        multi.awaited -= 1;
        if multi.awaited == 0
            && let Some(multi) = self.multis.remove(&number)
        {
            self.finish::<P>(multi, site);
        }
    }

    /// Fetches the keys that the next command of a transaction, which holds everything, reads
    /// beside the keys that it names. Returns the transaction if there is nothing to wait for;
    /// otherwise [`Spanning::next_held`] returns it.
    pub(in crate::worker) fn on_open_command<P: Program>(
        &mut self,
        mut held: HeldExec,
        header: &Header,
        args: &Args<'_>,
        site: &mut Site<'_>,
    ) -> Option<HeldExec> {
        if !P::is_open(header.command, args) {
            return Some(held);
        }
        let Some(from) = held.origin(header.db) else {
            // The database was emptied: only entries of the scratch shard exist.
            return Some(held);
        };
        let shard = &mut held.scratch;
        let mut others = P::others(header.command, shard, header.db, args, site.now);
        for gathered in &held.multi.gathered {
            others.remove(&gathered.key);
        }
        for name in &held.borrowed.names {
            others.remove(name);
        }
        if others.is_empty() {
            return Some(held);
        }
        held.borrowed.db = header.db;
        let keys = others.into_iter().map(|(_, key)| (from, key)).collect();
        let number = self.next_number();
        let (own, awaited) = fetch(number, held.multi.touch, keys, site);
        held.borrow(own, site.now);
        if awaited == 0 {
            return Some(held);
        }
        held.borrowed.awaited = awaited;
        self.execs.running -= 1;
        self.execs.borrowing.insert(number, held);
        None
    }
}

/// Fetches keys from their owners, all of which are held whole. Returns this worker's entries, and
/// how many other workers will reply to `multi`.
fn fetch(
    multi: u64,
    touch: bool,
    keys: BTreeSet<KeyName>,
    site: &mut Site<'_>,
) -> (Vec<Gathered>, usize) {
    let store = &mut site.store;
    let mut by_owner = BTreeMap::<WorkerId, Vec<KeyName>>::new();
    for key in keys {
        let owner = store.placement.owner(&key.1);
        by_owner.entry(owner).or_default().push(key);
    }
    let own = by_owner.remove(&store.id).unwrap_or_default();
    store.shard.set_touch(touch);
    let own = gather(&own, site.now, store);
    let awaited = by_owner.len();
    for (owner, keys) in by_owner {
        site.out.send(owner, Message::Fetch { multi, touch, keys });
    }
    (own, awaited)
}
