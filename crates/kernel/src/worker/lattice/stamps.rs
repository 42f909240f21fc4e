//! Stamps of commands that write to lattice keyspaces.

use super::Lattices;
use crate::replicate::lead::Excess;
use crate::shard::{CLOCKS_LEAD, Shard};
use rufous_base::Now;
use rufous_base::limits::CLOCK_TRIAL_US;
use rufous_datatype::replicated::{Refused, Writer};
use rufous_lattice::Stamp;

impl Lattices {
    /// All commands until [`Lattices::end_transaction`] write with one time.
    pub(in crate::worker) fn begin_transaction(&mut self, now: Now) {
        if self.table.has_lattice() {
            self.excess = self.replicas.excess(now);
            self.open = Some(self.replicas.stamp(now));
        }
    }

    /// Returns the stamp of its next write, for a later continuation; none where it may not write.
    pub(in crate::worker) fn end_transaction(&mut self) -> Option<Stamp> {
        let open = self.open.take();
        open.filter(|_| self.excess.is_none())
    }

    /// Continues a transaction, or begins it.
    pub(in crate::worker) fn resume_transaction(&mut self, now: Now, stamp: &mut Option<Stamp>) {
        match stamp.take() {
            Some(stamp) => (self.open, self.excess) = (Some(stamp), None),
            None => self.begin_transaction(now),
        }
    }

    /// A command that writes begins.
    pub(in crate::worker) fn begin_writes(&mut self, now: Now, shard: &mut Shard) {
        shard.tell_horizon();
        // Of a transaction all writes are refused or none, also where it learns of stamps that lead.
        if self.open.is_none() {
            self.excess = self.replicas.excess(now);
        }
        let stamp = self.open.unwrap_or_else(|| self.replicas.stamp(now));
        shard.reach(self.replicas.stamp_us());
        shard.begin_lattice(Writer { stamp });
        if self.excess.is_some() {
            shard.bar_lattice();
        }
    }

    /// The command was executed. Returns why it is refused.
    pub(in crate::worker) fn end_writes(&mut self, now: Now, shard: &mut Shard) -> Option<String> {
        let ended = shard.end_lattice()?;
        self.replicas.observe(ended.next);
        if let Some(open) = &mut self.open {
            *open = ended.next;
        }
        self.on_writes(now, shard);
        let refused = ended.refused?;
        if let Some(excess) = self.excess.filter(|_| refused == CLOCKS_LEAD) {
            self.replicas.on_refused();
            return Some(clocks_lead(excess));
        }
        let Refused { why, instead } = refused;
        let keyspace = self.table.lattice(&ended.at);
        let name = keyspace.map_or("", |keyspace| &keyspace.name);
        Some(not_coordination_free(why, name, instead))
    }

    /// Replicas here may have changed.
    #[inline]
    pub(in crate::worker) fn on_writes(&mut self, now: Now, shard: &mut Shard) {
        self.replicas.wrote(now, shard.changeset());
    }

    /// A stamp for all writes of a transaction.
    pub(in crate::worker) fn stamp(&mut self, now: Now) -> Stamp {
        self.replicas.stamp(now)
    }

    /// Promises another worker a time, under a name: the stamps of its writes to keys that it holds
    /// here must be above it.
    pub(in crate::worker) fn promise(&mut self, now: Now, name: u64) -> u64 {
        self.replicas.promise(now, name)
    }

    /// No more writes are made under a promise.
    pub(in crate::worker) fn redeem(&mut self, name: u64) {
        self.replicas.redeem(name);
    }

    /// No stamp issued or observed here has a later time.
    pub(in crate::worker) fn time(&self) -> u64 {
        self.replicas.time()
    }

    /// Another worker has promised this time, or has written to keys here with stamps up to it:
    /// later stamps here are above it.
    pub(in crate::worker) fn on_time(&mut self, time: u64) {
        self.replicas.observe(Stamp {
            time,
            ..Stamp::ZERO
        });
    }
}

/// The refusal of a write while clocks lead too far.
fn clocks_lead(excess: Excess) -> String {
    match excess {
        Excess::Wall(us) => format!(
            "is refused on lattice keys: the wall clock of this node has jumped ahead by {} s. Put \
             it right; if it is right, writes are accepted after {} s, or after a restart",
            us / 1_000_000,
            CLOCK_TRIAL_US / 1_000_000
        ),
        Excess::Stamps(us) => format!(
            "is refused on lattice keys: earlier writes have stamps that lead the wall clock of \
             this node by {} s. Put it right if it is behind; otherwise writes are accepted when it \
             has reached the stamps",
            us / 1_000_000
        ),
    }
}

/// The refusal of a command that would need all replicas together.
pub(super) fn not_coordination_free(why: &str, keyspace: &str, instead: &str) -> String {
    format!(
        "cannot be coordination-free: {why}. \
         Keyspace '{keyspace}' is of regime lattice; {instead}"
    )
}
