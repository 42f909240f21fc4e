//! What each worker tells of itself, and the sum over a node.

use super::super::latency::histogram;
use super::super::memory::Usage;
use crate::cluster::figures as peers;
use crate::front::persistence::PersistenceInfo;
use crate::front::shared::Counters;
use rufous_base::limits::DATABASES;
use rufous_kernel::replicate::replicas;
use rufous_kernel::stats::CommandStats;

/// The keys of one database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keyspace {
    pub(crate) keys: usize,
    pub(crate) expires: usize,
    /// Milliseconds; the mean over the keys that expire.
    pub(crate) avg_ttl: u64,
}

/// Everything that `INFO` shows of one worker, or of all.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) clients: usize,
    /// Held back by `CLIENT PAUSE`.
    pub(crate) paused: usize,
    /// Waiting for data, and of those how many not for ever; keys waited for.
    pub(crate) blocked: usize,
    pub(crate) in_time: usize,
    pub(crate) awaited: usize,
    /// Connections that watch keys, and how many they watch.
    pub(crate) watching: usize,
    pub(crate) watched: usize,
    /// Connections that have begun a transaction.
    pub(crate) open_transactions: usize,
    pub(crate) longest_input: usize,
    pub(crate) longest_output: usize,
    pub(crate) memory: Usage,
    pub(crate) counters: Counters,
    pub(crate) commands: Vec<CommandStats>,
    pub(crate) per_second: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    /// Of these, keys of lattice keyspaces.
    pub(crate) retired: u64,
    pub(crate) changes: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) keyspace: [Keyspace; DATABASES],
    pub(crate) persistence: PersistenceInfo,
    pub(crate) replication: replicas::Figures,
    /// Of keys that show nothing and are remembered.
    pub(crate) grave_bytes: usize,
    /// Of sessions with other nodes.
    pub(crate) peers: peers::Figures,
}

impl Figures {
    pub(crate) fn of_all(mut workers: Vec<Figures>) -> Figures {
        let commands = workers
            .iter_mut()
            .map(|w| std::mem::take(&mut w.commands))
            .collect();
        let mut all = Figures {
            commands: histogram::merge(commands),
            ..Figures::default()
        };
        for one in workers {
            all.clients += one.clients;
            all.paused += one.paused;
            all.blocked += one.blocked;
            all.in_time += one.in_time;
            all.awaited += one.awaited;
            all.watching += one.watching;
            all.watched += one.watched;
            all.open_transactions += one.open_transactions;
            all.longest_input = all.longest_input.max(one.longest_input);
            all.longest_output = all.longest_output.max(one.longest_output);
            all.memory.add(one.memory);
            all.counters.merge(&one.counters);
            all.per_second += one.per_second;
            all.expired += one.expired;
            all.evicted += one.evicted;
            all.retired += one.retired;
            all.changes += one.changes;
            all.hits += one.hits;
            all.misses += one.misses;
            all.persistence.merge(&one.persistence);
            all.replication.add(&one.replication);
            all.grave_bytes += one.grave_bytes;
            all.peers.merge(one.peers);
            all.keyspace
                .iter_mut()
                .zip(one.keyspace)
                .for_each(|(sum, db)| sum.add(db));
        }
        all
    }
}

impl Keyspace {
    fn add(&mut self, other: Keyspace) {
        let ttl = |k: Keyspace| u128::from(k.avg_ttl) * k.expires as u128;
        let (total, expires) = (ttl(*self) + ttl(other), self.expires + other.expires);
        self.avg_ttl = total.checked_div(expires as u128).unwrap_or(0) as u64;
        self.keys += other.keys;
        self.expires = expires;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_two_databases_weighs_by_their_keys() {
        let mut sum = Keyspace {
            keys: 5,
            expires: 1,
            avg_ttl: 100,
        };
        sum.add(Keyspace {
            keys: 3,
            expires: 3,
            avg_ttl: 20,
        });
        assert_eq!((sum.keys, sum.expires, sum.avg_ttl), (8, 4, 40));
        let mut none = Keyspace::default();
        none.add(Keyspace::default());
        assert_eq!(none.avg_ttl, 0);
    }
}
