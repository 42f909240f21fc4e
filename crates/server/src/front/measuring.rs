//! What a worker tells of itself: to `INFO`, and to readers outside the protocol.

use super::connection::{Connection, Suspended};
use super::figures::{CommandFigures, WorkerFigures};
use super::local::Local;
use crate::cluster::jobs::is_job;
use crate::command::server::info::figures::{Figures as Info, Keyspace};
use crate::command::server::memory::Usage;
use rufous_base::Now;

impl Local<'_> {
    /// What `INFO` shows of the worker.
    pub(crate) fn info(&self, now: Now) -> Info {
        let front = &*self.front;
        front.shared.publish_memory(&front.kernel);
        let here = front.kernel.waiting_clients().in_time();
        let here = here.filter(|conn| !is_job(*conn)).count();
        let in_time = here + front.peers.forwarding.in_time();
        let shard = &front.kernel.shard;
        let counted = shard.counters();
        Info {
            clients: front.connections.clients().count(),
            paused: front
                .connections
                .clients()
                .filter(|c| c.suspended == Some(Suspended::Paused))
                .count(),
            blocked: front.connections.blocked(),
            in_time,
            awaited: shard.observers().awaited_keys(),
            watching: front
                .connections
                .clients()
                .filter(|c| !c.transaction.watched.is_empty())
                .count(),
            watched: front
                .connections
                .clients()
                .map(|c| c.transaction.watched.len())
                .sum(),
            open_transactions: front.connections.begun(),
            longest_input: front
                .connections
                .clients()
                .map(|c| c.held.len())
                .max()
                .unwrap_or(0),
            longest_output: front
                .connections
                .clients()
                .map(|c| c.replies.late_bytes())
                .max()
                .unwrap_or(0),
            memory: self.usage(),
            counters: front.counters.clone(),
            commands: self.command_stats(),
            per_second: front.cron.per_second(),
            expired: counted.expired - front.base.shard.expired,
            evicted: front.kernel.evictions().evicted - front.base.evictions.evicted,
            retired: front.kernel.evictions().retired - front.base.evictions.retired,
            changes: counted.changes,
            hits: counted.hits - front.base.shard.hits,
            misses: counted.misses - front.base.shard.misses,
            keyspace: std::array::from_fn(|db| Keyspace {
                keys: shard.counted_len(db),
                expires: shard.counted_expiring_len(db),
                avg_ttl: shard.avg_ttl(db, now),
            }),
            persistence: front.durability.info(&front.kernel),
            replication: front.kernel.replication_figures(),
            grave_bytes: shard.memory().grave_bytes,
            peers: self.peer_figures(),
        }
    }

    /// The memory that the worker uses.
    pub(crate) fn usage(&self) -> Usage {
        let front = &*self.front;
        let per_client =
            |c: &Connection| size_of::<Connection>() + c.held.capacity() + c.replies.capacity();
        Usage {
            data: front.kernel.memory(),
            charged: front.kernel.shard.charged(),
            clients: front.connections().map(per_client).sum(),
        }
    }

    /// All counters of the worker.
    pub(super) fn figures(&self) -> WorkerFigures {
        let front = &*self.front;
        let shard = &front.kernel.shard;
        let commands =
            front
                .table
                .specs()
                .zip(front.kernel.stats())
                .filter_map(|((_, spec), stats)| {
                    let noted = stats.calls + stats.rejected + stats.failed > 0;
                    noted.then(|| CommandFigures {
                        name: spec.name,
                        calls: stats.calls,
                        usec: stats.usec(),
                        rejected: stats.rejected,
                        failed: stats.failed,
                    })
                });
        WorkerFigures {
            commands: commands.collect(),
            counters: front.counters.clone(),
            shard: shard.counters(),
            evictions: front.kernel.evictions(),
            memory: front.kernel.memory(),
            keys: std::array::from_fn(|db| shard.counted_len(db)),
            expiring: std::array::from_fn(|db| shard.counted_expiring_len(db)),
            clients: front.connections.clients().count(),
            blocked: front.connections.blocked(),
            open_transactions: front.connections.begun(),
            persistence: front.durability.info(&front.kernel),
            replication: front.kernel.replication_figures(),
            peers: front.peer_figures(),
        }
    }
}
