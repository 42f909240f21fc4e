//! Counts that a start holds back: see `shard::held`.
//!
//! Whoever has loaded a partition tells all workers what it held of it, before
//! whatever else it tells them of the partition's keys. So when a worker has
//! heard what all others have, it has these, too, and brings back those of
//! which it has a replica. All do the same, and nobody is served before all
//! have.

use super::Worker;
use super::loading::Stage;
use crate::durable::Note;
use crate::placement::Placement;
use crate::program::Program;
use crate::shard::{Held, Memory, bring_back};
use rufous_base::Now;
use rufous_lattice::Stamp;
use std::sync::Arc;

impl<P: Program> Worker<P> {
    /// A partition was loaded.
    pub(super) fn tell_held(&mut self, now: Now, held: Option<Box<Held>>) {
        // Where nothing was forgotten, nothing was held.
        let Some(held) = held.filter(|held| !held.says_nothing()) else {
            return;
        };
        let held = Arc::<Held>::from(held);
        self.tell_all(now, || Note::Held(Arc::clone(&held)));
    }

    /// What its shard takes, and what it holds for the start: of what several
    /// workers know, that which it has told them.
    pub fn memory(&self) -> Memory {
        let mut memory = self.shard.memory();
        let own = self.durable.counts.iter().filter(|(of, _)| *of == self.id);
        memory.held_bytes += own.map(|(_, held)| held.bytes()).sum::<usize>();
        memory
    }

    /// Whether what is held can be brought back now: all that the others have is
    /// here, and all that is here was sent. What makes way for a count must not
    /// be gone before they have heard of it.
    pub(super) fn has_exchanged(&mut self) -> bool {
        if !matches!(self.durable.stage, Stage::Exchanging { told: false }) {
            return false;
        }
        let replicas = &self.lattice.replicas;
        let mut has_all =
            || replicas.has_heard_all() && replicas.has_sent_all(self.shard.changeset());
        !self.placement.has_lattice() || has_all()
    }

    /// All that the files have of the keys which are here was merged.
    pub(super) fn bring_back_counts(
        &mut self,
        now: Now,
        is_here: impl Fn(&Placement, &[u8]) -> bool,
    ) {
        drop(self.shard.take_held());
        let files = std::mem::take(&mut self.durable.counts);
        let files: Vec<_> = files.into_iter().map(|(_, held)| held).collect();
        let placement = &self.placement;
        let count = bring_back(&mut self.shard, &files, |key| is_here(placement, key), now);
        self.lattice.counts_held += count;
        // From here on this worker knows what any had forgotten, or that it is
        // not there any more; later stamps are above that.
        let horizons = files.iter().map(|held| held.horizon());
        self.shard.set_forgotten(horizons.max().unwrap_or(0));
        let latest = files.iter().map(|held| held.latest());
        self.lattice.replicas.observe(Stamp {
            time: latest.max().unwrap_or(0),
            ..Stamp::ZERO
        });
        self.lattice.replicas.keep_all(false);
        self.shard.tell_horizon();
    }
}
