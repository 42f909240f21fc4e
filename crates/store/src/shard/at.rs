//! A key of a database, with what an operation on it needs of the shard.

use super::Env;
use super::db::Db;
use super::lattice::Keyed;
use super::recent::Recent;
use super::records::Found;
use super::replica::{LocalReplica, Other};
use super::types::{Any, Key};
use rufous_base::Now;
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::Refused;

pub struct At<'a> {
    pub(super) db: &'a mut Db,
    pub(super) env: &'a mut Env,
    pub(super) recent: &'a mut Recent,
    pub(super) key: Key<'a>,
    pub(super) now: Now,
}

impl At<'_> {
    pub(super) fn live(&mut self) -> Option<Found> {
        self.db.live(self.key, self.now, self.env)
    }

    /// How the key is replicated, if the running command may write to it as a replica.
    #[inline]
    pub(super) fn replicated(&self) -> Option<Keyed> {
        self.env.lattice.replicated(self.key)
    }

    /// The type of the value that the key shows.
    pub(super) fn tag(&mut self) -> Option<Tag> {
        let found = self.live()?;
        let tag = self.db.records.shape(found.handle).0;
        // A plain string from before the key had replicas is rewritten as a replicated one.
        Some(tag.unwrap_or(Tag::Register))
    }

    /// Whether the key shows a replicated value.
    pub fn is_replica(&mut self) -> bool {
        let found = self.live();
        found.is_some_and(|found| self.db.records.is_replicated(found.handle))
    }

    /// Whether the key has a plain value, from before it had replicas.
    pub(super) fn is_plain(&mut self) -> bool {
        let found = self.live();
        found.is_some_and(|found| !self.db.records.is_replicated(found.handle))
    }

    /// The string that the key shows; `None` if it has a value of another type, or none.
    pub(super) fn text(&mut self) -> Option<Vec<u8>> {
        let value = self.db.get(self.key, false, self.now, self.env)?;
        Some(value.string().ok()?.bytes().to_vec())
    }

    /// Calls `f` with the key's state, even if that shows nothing, and whether it shows something.
    pub(super) fn with_state<R>(
        &mut self,
        f: impl FnOnce(Any<'_>, bool, &mut Env) -> R,
    ) -> Option<R> {
        // An expired value is a grave from now on.
        match self.live() {
            Some(found) => Some(f(self.db.records.value(found.handle), true, self.env)),
            None => {
                let grave = self.db.graves.get(self.key.bytes)?;
                Some(f(Any::of_object(&grave), false, self.env))
            }
        }
    }

    /// This worker's replica of the key.
    pub(super) fn replica(&mut self) -> LocalReplica<'_> {
        LocalReplica::new(self.db, self.env, self.key)
    }

    /// See [`LocalReplica::alter`].
    pub(super) fn alter<R>(
        &mut self,
        tag: Tag,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        let now = self.now;
        self.replica().alter(tag, now, change)
    }

    /// The key's record, whose removal is reported.
    pub(super) fn find_to_remove(&mut self) -> Option<Found> {
        let found = self.live()?;
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.env.tell_removal(self.db, found.handle, self.key.hash);
        }
        Some(found)
    }

    /// Removes the key's record. Returns whether it had one.
    pub(super) fn remove(&mut self) -> bool {
        let Some(found) = self.find_to_remove() else {
            return false;
        };
        self.db.remove(found, self.key.hash, &mut self.env.garbage);
        true
    }

    #[cold]
    pub(super) fn refuse(&mut self, refused: Refused) {
        self.env.lattice.refuse(self.key, refused);
    }

    /// Reports a local change of a replica.
    pub(super) fn tell_update(&mut self, keyed: Keyed, tag: Tag, ops: &[u8]) {
        self.env
            .tell_update((self.db.number, self.key), keyed, tag, ops);
    }
}
