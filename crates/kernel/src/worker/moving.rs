//! Loading what another number of workers had: keys go to their owners, who
//! then save them under the new layout.

use super::loading::Stage;
use super::{Completions, Worker};
use crate::durable::Note;
use crate::program::Program;
use crate::shard::Shard;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use std::collections::BTreeMap;

/// Keys that travel to their owners in one message.
const KEYS_PER_MESSAGE: usize = 1024;

impl<P: Program> Worker<P> {
    /// Sends the keys of a partition to their owners.
    pub(super) fn move_keys(
        &mut self,
        now: Now,
        mut staging: Box<Shard>,
        completions: &mut impl Completions,
    ) {
        // Nothing is due at the beginning of time.
        let never = Now::default();
        for db in 0..DATABASES {
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let mut names = Vec::new();
                cursor = staging.scan(db, at, KEYS_PER_MESSAGE, never, &mut |item| {
                    names.push(item.key.to_vec());
                });
                let mut by_owner = BTreeMap::<WorkerId, Vec<_>>::new();
                for name in names {
                    let key = staging.key(&name);
                    if let Some(entry) = staging.clone_entry(db, key, never) {
                        let owner = self.placement.owner(&name);
                        let name = (db as u8, name.into_boxed_slice());
                        by_owner.entry(owner).or_default().push((name, entry));
                    }
                }
                for (owner, keys) in by_owner {
                    self.tell(now, owner, Note::Keys(keys), completions);
                }
            }
        }
    }

    pub(super) fn on_keys(&mut self, keys: Vec<(crate::lock::KeyName, crate::shard::Entry)>) {
        for ((db, name), entry) in keys {
            let key = self.shard.key(&name);
            self.shard
                .insert_entry(usize::from(db), key, entry, Now::default());
        }
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
        self.start_log(generation, 0, 0, None);
        self.begin_snapshot(generation);
    }
}
