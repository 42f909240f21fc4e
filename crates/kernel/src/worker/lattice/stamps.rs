//! Stamps of commands that write to lattice keyspaces.

use super::Lattices;
use crate::evict::Chosen;
use crate::replicate::lead::Excess;
use crate::shard::{CLOCKS_LEAD, Contexts, Shard};
use rufous_base::Now;
use rufous_datatype::replicated::{Refused, Writer};
use rufous_lattice::Stamp;

/// Why a command is refused that was to write lattice keys.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::worker) enum Why {
    /// Replicas cannot execute it each by itself; the text continues after its name.
    Order(String),
    Clocks(Excess),
}

impl Lattices {
    /// All commands until [`Lattices::end_transaction`] write with one time.
    pub(in crate::worker) fn begin_transaction(&mut self, now: Now) {
        if self.table.has_lattice() {
            self.open = Some(self.replicas.stamp(now));
        }
    }

    /// Returns the stamp of its next write, for a later continuation.
    pub(in crate::worker) fn end_transaction(&mut self) -> Option<Stamp> {
        self.is_admitted = false;
        self.open.take()
    }

    /// Continues a transaction, or begins it.
    pub(in crate::worker) fn resume_transaction(&mut self, now: Now, stamp: &mut Option<Stamp>) {
        match stamp.take() {
            Some(stamp) => self.open = Some(stamp),
            None => self.begin_transaction(now),
        }
    }

    /// The clocks were judged when the running transaction began: a part of it is never refused.
    pub(in crate::worker) fn admit_transaction(&mut self) {
        self.is_admitted = true;
    }

    /// Why lattice keys may not be written now.
    pub(in crate::worker) fn excess(&mut self, now: Now) -> Option<Excess> {
        self.replicas.excess(now)
    }

    /// Tells a shard the time of the stamps, from which deadlines count.
    #[inline]
    pub(in crate::worker) fn tell_time(&self, shard: &mut Shard) {
        shard.reach(self.replicas.stamp_us());
    }

    /// The time in Unix milliseconds from which deadlines of this worker's replicas count.
    pub(in crate::worker) fn deadlines_ms(&self, shard: &Shard, now: Now) -> u64 {
        let time = shard.lattice_time_ms(now);
        if time == 0 {
            0
        } else {
            time.max(self.replicas.stamp_us() / 1000)
        }
    }

    /// The clocks are read: keys do not expire by a wall clock that is not followed.
    #[inline]
    pub(in crate::worker) fn look_at_clock(&mut self, now: Now, shard: &mut Shard) {
        shard.set_clock_ahead(self.replicas.ahead_ms(now));
    }

    /// A request is refused for that.
    pub(in crate::worker) fn on_refused(&mut self) {
        self.replicas.on_refused();
    }

    /// A command that writes begins.
    pub(in crate::worker) fn begin_writes(&mut self, now: Now, shard: &mut Shard) {
        shard.tell_horizon();
        let excess = self.replicas.excess(now);
        self.excess = excess.filter(|_| !self.is_admitted);
        let stamp = self.open.unwrap_or_else(|| self.replicas.stamp(now));
        self.tell_time(shard);
        shard.begin_lattice(Writer { stamp });
        if self.excess.is_some() {
            shard.bar_lattice();
        }
    }

    /// Deletes keys, as the command of a client that has seen their values. Clocks do not lead.
    pub(in crate::worker) fn delete(&mut self, now: Now, keys: &[Chosen], shard: &mut Shard) {
        self.begin_writes(now, shard);
        for Chosen { db, key } in keys {
            // At `LEVEL causal` a session deletes what it has seen, or else what is shown.
            shard.lattice_mut().begin_session(0, Contexts::default());
            let key = shard.key(key);
            shard.remove(usize::from(*db), key, now);
            shard.lattice_mut().end_session();
        }
        let refused = self.end_writes(now, shard);
        debug_assert!(refused.is_none(), "a deletion needs no other replica");
    }

    /// Why the running command may not write lattice keys.
    #[inline]
    pub(in crate::worker) fn bar(&self) -> Option<Excess> {
        self.excess
    }

    /// The command names lattice keys to write: it is not executed, so that it does not write
    /// only its strict keys.
    pub(in crate::worker) fn refuse_begun(&mut self, shard: &mut Shard) {
        shard.end_lattice();
        self.replicas.on_refused();
    }

    /// The command was executed. Returns why it is refused.
    pub(in crate::worker) fn end_writes(&mut self, now: Now, shard: &mut Shard) -> Option<Why> {
        let ended = shard.end_lattice()?;
        self.replicas.observe(ended.next);
        if let Some(open) = &mut self.open {
            *open = ended.next;
        }
        self.on_writes(now, shard);
        let refused = ended.refused?;
        if let Some(excess) = self.excess.filter(|_| refused == CLOCKS_LEAD) {
            self.replicas.on_refused();
            return Some(Why::Clocks(excess));
        }
        let Refused { why, instead } = refused;
        let keyspace = self.table.lattice(&ended.at);
        let name = keyspace.map_or("", |keyspace| &keyspace.name);
        Some(Why::Order(not_coordination_free(why, name, instead)))
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

    /// The time of stamps up to which this worker has forgotten all graves.
    pub(in crate::worker) fn forgotten(&self) -> u64 {
        self.replicas.forgotten()
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

/// The refusal of a command that would need all replicas together.
pub(super) fn not_coordination_free(why: &str, keyspace: &str, instead: &str) -> String {
    format!(
        "cannot be coordination-free: {why}. \
         Keyspace '{keyspace}' is of regime lattice; {instead}"
    )
}
