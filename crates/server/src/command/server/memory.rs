//! MEMORY: what memory is used for. (`MEMORY USAGE` is a command on data.)

use crate::command::{SessionCommand, help};
use crate::front::local::Local;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};
use rufous_kernel::shard::Memory;
use std::sync::atomic::Ordering;

pub static COMMANDS: &[&SessionCommand] = &[&MEMORY, &STATS, &DOCTOR, &PURGE, &MALLOC_STATS, &HELP];

/// Below this the doctor has nothing to say.
const SMALL: usize = 5 << 20;

const fn spec(name: &'static str, arity: i32, flags: Flags, summary: &'static str) -> Spec {
    Spec {
        name,
        summary,
        since: "4.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity,
        flags,
        keys: Keys::None,
        syntax: "",
    }
}

pub static MEMORY: SessionCommand = SessionCommand {
    spec: spec(
        "memory",
        -2,
        Flags::CONTAINER,
        "A container for commands on memory.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("memory")),
};

pub static STATS: SessionCommand = SessionCommand {
    spec: spec(
        "memory|stats",
        2,
        Flags::NONE,
        "Returns what memory is used for.",
    ),
    run: stats,
};

pub static DOCTOR: SessionCommand = SessionCommand {
    spec: spec(
        "memory|doctor",
        2,
        Flags::NONE,
        "Reports problems of memory usage.",
    ),
    run: |session, _, reply| {
        ask(session, reply, |local, usage, reply| {
            reply.verbatim(*b"txt", &diagnosis(&usage, rss(local)))
        });
        Ok(())
    },
};

pub static PURGE: SessionCommand = SessionCommand {
    spec: spec(
        "memory|purge",
        2,
        Flags::NONE,
        "No effect of its own: freed memory is given back to the system within two seconds, always.",
    ),
    run: |_, _, reply| {
        reply.ok();
        Ok(())
    },
};

pub static MALLOC_STATS: SessionCommand = SessionCommand {
    spec: spec(
        "memory|malloc-stats",
        2,
        Flags::NONE,
        "Returns the statistics of the allocator: none are available.",
    ),
    run: |_, _, reply| {
        reply.bulk(b"Stats not supported for the current allocator");
        Ok(())
    },
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "memory|help",
        2,
        Flags::LOADING.or(Flags::STALE),
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "memory", reply),
};

/// Memory of the whole node in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) data: Memory,
    /// What of it `maxmemory` counts.
    pub(crate) charged: usize,
    /// Clients with what waits for them.
    pub(crate) clients: usize,
}

impl Usage {
    pub(super) fn add(&mut self, other: Usage) {
        self.data.add(other.data);
        self.charged += other.charged;
        self.clients += other.clients;
    }

    pub(super) fn total(&self) -> usize {
        self.data.total() + self.clients
    }

    /// What is used for other things than keys and values.
    pub(super) fn overhead(&self) -> usize {
        self.total() - self.dataset()
    }

    pub(super) fn dataset(&self) -> usize {
        self.data.record_bytes + self.data.big_bytes
    }
}

pub(super) fn rss(local: &Local<'_>) -> usize {
    local.shared().process.rss_bytes.load(Ordering::Relaxed) as usize
}

/// `part` of `whole` in percent.
pub(super) fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

fn ask(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    finish: impl FnOnce(&mut Local<'_>, Usage, &mut Reply<'_>) + Send + 'static,
) {
    session.ask_all(
        reply,
        |local, _| {
            local.publish_memory();
            local.usage()
        },
        |local, workers, reply| {
            let mut all = Usage::default();
            workers.into_iter().for_each(|usage| all.add(usage));
            finish(local, all, reply);
        },
    );
}

fn stats(session: &mut Session<'_>, _: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ask(session, reply, |local, usage, reply| {
        let total = usage.total();
        let peak = local.shared().memory_peak().max(total);
        let rss = rss(local);
        let whole = [
            ("peak.allocated", peak),
            ("total.allocated", total),
            ("startup.allocated", 0),
            ("replication.backlog", 0),
            ("clients.slaves", 0),
            ("clients.normal", usage.clients),
            ("cluster.links", 0),
            ("aof.buffer", 0),
            ("lua.caches", 0),
            ("functions.caches", 0),
            ("overhead.total", usage.overhead()),
            ("keys.count", usage.data.keys),
            (
                "keys.bytes-per-key",
                usage.data.total().checked_div(usage.data.keys).unwrap_or(0),
            ),
            ("dataset.bytes", usage.dataset()),
            ("index.bytes", usage.data.index_bytes),
            ("records.allocated", usage.data.arena_bytes),
            ("expiry.bytes", usage.data.expiry_bytes),
            ("graves.bytes", usage.data.grave_bytes),
            ("held.at.start.bytes", usage.data.held_bytes),
            ("fragmentation.bytes", rss.saturating_sub(total)),
        ];
        let parts = [
            ("dataset.percentage", percent(usage.dataset(), total)),
            ("peak.percentage", percent(total, peak)),
            (
                "fragmentation",
                if total == 0 {
                    0.0
                } else {
                    rss as f64 / total as f64
                },
            ),
        ];
        reply.map(whole.len() + parts.len());
        for (name, bytes) in whole {
            reply.bulk(name.as_bytes());
            reply.count(bytes);
        }
        for (name, part) in parts {
            reply.bulk(name.as_bytes());
            reply.double(part);
        }
    });
    Ok(())
}

fn diagnosis(usage: &Usage, rss: usize) -> String {
    if usage.total() < SMALL {
        return "The data is too small for a report on memory usage.\n".into();
    }
    let mut text = String::new();
    if rss > usage.total() / 2 * 3 {
        text.push_str("The process holds half as much again as its data needs: memory was freed that the allocator keeps for later.\n");
    }
    if usage.data.arena_bytes > usage.data.record_bytes * 2 {
        text.push_str("Records fill less than half of their pages, as after many deletions; compaction is giving pages back.\n");
    }
    if usage.clients > usage.total() / 4 {
        text.push_str("Requests and replies of clients take more than a quarter of the memory: see qbuf and omem in CLIENT LIST.\n");
    }
    if text.is_empty() {
        text.push_str("Memory is used well.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;

    #[test]
    fn figures_add_up_over_workers() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            for key in ["a", "b", "c", "d"] {
                rig.run(&format!("SET {key} 1"));
            }
            let stats = rig.run("MEMORY STATS");
            assert!(
                stats.starts_with("*46\r\n") && stats.contains("keys.count\r\n:4\r\n"),
                "{stats}"
            );
            assert!(rig.run("HELLO 3").starts_with('%'));
            assert!(
                rig.run("MEMORY STATS")
                    .starts_with("%23\r\n$14\r\npeak.allocated\r\n:")
            );
        }
    }

    #[test]
    fn the_others() {
        let mut rig = Rig::new(1);
        rig.check("MEMORY PURGE", "+OK\r\n");
        assert!(rig.run("MEMORY DOCTOR").contains("too small"));
        assert!(rig.run("MEMORY HELP").contains("+MEMORY <subcommand>"));
        rig.check(
            "MEMORY nosuch",
            "-ERR unknown subcommand 'nosuch'. Try MEMORY HELP.\r\n",
        );
    }

    #[test]
    fn diagnoses() {
        let data = Memory {
            arena_bytes: 100 << 20,
            record_bytes: 90 << 20,
            ..Memory::default()
        };
        let usage = Usage {
            data,
            ..Usage::default()
        };
        assert_eq!(diagnosis(&usage, 110 << 20), "Memory is used well.\n");
        assert!(diagnosis(&usage, 200 << 20).contains("allocator"));
        assert!(
            diagnosis(
                &Usage {
                    clients: 100 << 20,
                    ..usage
                },
                0
            )
            .contains("CLIENT LIST")
        );
    }
}
