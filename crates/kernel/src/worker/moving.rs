//! Loading what another number of workers had: keys go to their owners, who
//! then save them under the new layout.

use super::Worker;
use super::loading::Stage;
use crate::durable::{DataFile, Note, SlotMark, ids, manifest};
use crate::program::Program;
use crate::shard::Shard;
use rufous_base::disk::{DiskOp, DiskRequest, FileInfo, FileName, Lane};
use rufous_base::limits::DATABASES;
use rufous_base::slot::worker_of_slot;
use rufous_base::{Now, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that travel to their owners in one message.
const KEYS_PER_MESSAGE: usize = 1024;

impl<P: Program> Worker<P> {
    /// Sends the keys of a partition to their owners.
    pub(super) fn move_keys(&mut self, now: Now, mut staging: Box<Shard>) {
        // Nothing is due at the beginning of time.
        let never = Now::default();
        for db in 0..DATABASES {
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let mut names = Vec::new();
                cursor = staging.scan(db, at, KEYS_PER_MESSAGE, never, &mut |item| {
                    names.push(item.key.into());
                });
                self.move_some(now, &mut staging, db, names);
            }
            // What is known of deleted keys goes along.
            let mut from = Some(Box::<[u8]>::default());
            while let Some(at) = from {
                let (names, next) = staging.graves(db, &at, KEYS_PER_MESSAGE);
                let names = names.iter().map(|name| Box::from(&**name)).collect();
                self.move_some(now, &mut staging, db, names);
                from = next;
            }
        }
    }

    /// A replicated key goes to its primary: the other replicas hear of it
    /// before anybody is served.
    fn move_some(&mut self, now: Now, staging: &mut Shard, db: usize, names: Vec<Box<[u8]>>) {
        let mut by_owner = BTreeMap::<WorkerId, Vec<_>>::new();
        for name in names {
            let key = staging.key(&name);
            if let Some(entry) = staging.gather_entry(db, key, Now::default()) {
                let owner = self.placement.primary(&name);
                by_owner
                    .entry(owner)
                    .or_default()
                    .push(((db as u8, name), entry));
            }
        }
        for (owner, keys) in by_owner {
            self.tell(now, owner, Note::Keys(keys));
        }
    }

    /// Sends what is known of slots to who has them.
    pub(super) fn tell_marks(&mut self, now: Now, staging: &Shard) {
        if !staging.slot_marks().is_empty() {
            let marks = Arc::new(staging.slot_marks().clone());
            self.tell_all(now, || Note::Marks(Arc::clone(&marks)));
        }
    }

    pub(super) fn on_marks(&mut self, marks: &BTreeMap<u16, SlotMark>) {
        let workers = self.placement.workers();
        let is_own = |slot: u16| worker_of_slot(slot, workers) == self.id;
        let own = marks.iter().filter(|(slot, _)| is_own(**slot));
        self.shard.add_marks(own.map(|(slot, mark)| (*slot, *mark)));
    }

    pub(super) fn on_keys(&mut self, keys: Vec<(crate::lock::KeyName, crate::shard::Entry)>) {
        for ((db, name), entry) in keys {
            let key = self.shard.key(&name);
            self.shard
                .insert_entry(usize::from(db), key, entry, Now::default());
        }
    }

    /// One that counts for nothing.
    pub(super) fn remove_file(&mut self, file: FileName) {
        self.durable.requests.push(DiskRequest {
            id: ids::SAVE | 3 << 40,
            lane: Lane::Bulk,
            op: DiskOp::Remove { file },
        });
    }

    /// A worker has sent all keys that are not its own.
    pub(super) fn on_no_more_keys(&mut self) {
        let Stage::Moving {
            generation,
            senders,
        } = &mut self.durable.stage
        else {
            // It was faster than this one.
            self.durable.early_ends += 1;
            return;
        };
        *senders -= 1;
        if *senders > 0 {
            return;
        }
        let generation = *generation;
        self.durable.stage = Stage::Waiting;
        // All that there is of a key is at its primary now.
        self.bring_back_counts(Now::default(), |placement, key| placement.is_primary(key));
        self.start_log(generation, 0, 0, None);
        self.begin_snapshot(generation);
    }
}

/// Of all files that are there, whether they count or not.
pub(super) fn highest_generation(files: &[FileInfo]) -> u64 {
    let generation = |f: &FileInfo| match DataFile::parse(&f.file) {
        Some(file) => Some(file.generation()),
        None => manifest::kept_generation(&f.file),
    };
    let generations = files.iter().filter_map(generation);
    generations.max().unwrap_or(0)
}
