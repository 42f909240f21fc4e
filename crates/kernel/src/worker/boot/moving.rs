//! Loading data that another number of workers had: keys move to their owners, which then save them
//! in the new layout. And restoring counters that a start holds back.

use super::{Boot, Stage};
use crate::durable::{Note, SlotMark};
use crate::lock::KeyName;
use crate::placement::Placement;
use crate::shard::{Entry, Held, Shard, bring_back};
use crate::worker::out::{Call, LogStart, Out};
use crate::worker::store::Store;
use rufous_base::limits::ALL_DATABASES;
use rufous_base::slot::worker_of_slot;
use rufous_base::{Now, WorkerId};
use rufous_lattice::Stamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that are sent to their owners in one message.
const KEYS_PER_MESSAGE: usize = 1024;

/// Sends the keys of a partition to their owners.
pub(super) fn move_keys(mut staging: Box<Shard>, placement: &Placement, out: &mut Out) {
    // Nothing is due at the beginning of time.
    let never = Now::default();
    for db in 0..ALL_DATABASES {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let mut names = Vec::new();
            cursor = staging.scan(db, at, KEYS_PER_MESSAGE, never, &mut |item| {
                names.push(item.key.into());
            });
            move_some(&mut staging, (db, names), placement, out);
        }
        // State of deleted keys is sent too.
        let mut from = Some(Box::<[u8]>::default());
        while let Some(at) = from {
            let (names, next) = staging.graves(db, &at, KEYS_PER_MESSAGE);
            let names = names.iter().map(|name| Box::from(&**name)).collect();
            move_some(&mut staging, (db, names), placement, out);
            from = next;
        }
    }
}

/// A replicated key is sent to its primary, which sends it to the other replicas before the node
/// serves.
fn move_some(
    staging: &mut Shard,
    (db, names): (usize, Vec<Box<[u8]>>),
    placement: &Placement,
    out: &mut Out,
) {
    let mut by_owner = BTreeMap::<WorkerId, Vec<_>>::new();
    for name in names {
        let key = staging.key(&name);
        if let Some(entry) = staging.gather_entry(db, key, Now::default()) {
            let owner = placement.primary(&name);
            by_owner
                .entry(owner)
                .or_default()
                .push(((db as u8, name), entry));
        }
    }
    for (owner, keys) in by_owner {
        out.tell(owner, Note::Keys(keys));
    }
}

impl Boot {
    /// Marks of slots that a partition had.
    pub(in crate::worker) fn on_marks(
        &mut self,
        marks: &BTreeMap<u16, SlotMark>,
        store: &mut Store<'_>,
    ) {
        let (workers, own) = (store.workers(), store.id);
        let is_own = |slot: u16| worker_of_slot(slot, workers) == own;
        let own = marks.iter().filter(|(slot, _)| is_own(**slot));
        store
            .shard
            .marks_mut()
            .add(own.map(|(slot, mark)| (*slot, *mark)));
    }

    /// Keys of this worker that another one has loaded.
    pub(in crate::worker) fn on_keys(
        &mut self,
        keys: Vec<(KeyName, Entry)>,
        store: &mut Store<'_>,
    ) {
        for ((db, name), entry) in keys {
            let key = store.shard.key(&name);
            store
                .shard
                .insert_entry(usize::from(db), key, entry, Now::default());
        }
    }

    /// A worker has sent all keys that are not its own.
    pub(in crate::worker) fn on_no_more_keys(&mut self, store: &mut Store<'_>, out: &mut Out) {
        let Stage::Moving {
            generation,
            senders,
        } = &mut self.stage
        else {
            // The sender has finished before this worker.
            self.early_ends += 1;
            return;
        };
        *senders -= 1;
        if *senders > 0 {
            return;
        }
        let generation = *generation;
        self.stage = Stage::Waiting;
        // All states of a key are merged at its primary now.
        let is_here = |placement: &Placement, key: &[u8]| placement.is_primary(key);
        self.restore_counts(Now::default(), is_here, store, out);
        out.call(Call::StartLog(LogStart::of(generation)));
        out.call(Call::Snapshot { generation });
    }

    /// Counters of a partition that were held back.
    pub(in crate::worker) fn on_held(&mut self, from: WorkerId, held: Arc<Held>) {
        self.counts.push((from, held));
    }

    /// Replicas here have received all state that the others kept, and all state here was sent:
    /// data that a counter replaces must not be dropped before the others have received it.
    pub(in crate::worker) fn on_replicas_equal(
        &mut self,
        now: Now,
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        let own = store.id;
        let is_here =
            move |placement: &Placement, key: &[u8]| placement.owners(key).any(|at| at == own);
        self.restore_counts(now, is_here, store, out);
        out.tell(WorkerId(0), Note::Exchanged);
    }

    /// All states in the files for the keys here were merged.
    fn restore_counts(
        &mut self,
        now: Now,
        is_here: impl Fn(&Placement, &[u8]) -> bool,
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        drop(store.shard.take_held());
        let files = std::mem::take(&mut self.counts);
        let files: Vec<_> = files.into_iter().map(|(_, held)| held).collect();
        let placement = store.placement;
        let is_here = |key: &[u8]| is_here(placement, key);
        let count = bring_back(store.shard, &files, is_here, now);
        // From now on this worker knows what any worker had forgotten, or that it no longer exists;
        // later stamps are above that.
        let horizons = files.iter().map(|held| held.horizon());
        let reported = files.iter().map(|held| held.reported());
        let here = store.shard.horizons_mut();
        here.forget(horizons.max().unwrap_or(0));
        // A snapshot that begins before the next report has it, too.
        here.had_reported(reported.max().unwrap_or(0));
        let latest = files.iter().map(|held| held.latest());
        let latest = Stamp {
            time: latest.max().unwrap_or(0),
            ..Stamp::ZERO
        };
        out.call(Call::CountsRestored { count, latest });
        store.shard.tell_horizon();
    }
}
