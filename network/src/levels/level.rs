//! The ten levels of a keyspace: what each promises, what it allows, and which rules its history has to satisfy.

use super::isolation;
use super::rules::Rules;

/// A level as the demonstration shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub name: &'static str,
    pub promises: &'static str,
    pub allows: &'static str,
    pub kind: Kind,
}

/// What its clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Single operations of sessions.
    Sessions(Rules),
    /// Transactions that `BEGIN` opens without a level.
    Transactions(isolation::Rules),
}

const fn sessions(own_writes: bool, same_reads: bool, in_order: bool, after_reads: bool) -> Kind {
    Kind::Sessions(Rules {
        own_writes,
        same_reads,
        in_order,
        after_reads,
    })
}

const fn transactions(committed: bool, repeatable: bool) -> Kind {
    Kind::Transactions(isolation::Rules {
        committed,
        repeatable,
    })
}

/// All of them, the weakest first.
pub const ALL: [Level; 10] = [
    Level {
        name: "eventual",
        promises: "nothing is lost, and in the end all replicas are equal",
        allows: "every anomaly of delayed changes before that",
        kind: sessions(false, false, false, false),
    },
    Level {
        name: "read-your-writes",
        promises: "a session sees its own writes of each key",
        allows: "that others see them late and in another order",
        kind: sessions(true, false, false, false),
    },
    Level {
        name: "monotonic-reads",
        promises: "a session sees nothing older than it has seen of that key",
        allows: "that it reads of two keys in parts, and that others lag behind it",
        kind: sessions(false, true, false, false),
    },
    Level {
        name: "monotonic-writes",
        promises: "a session's writes are visible in their order, over all keys",
        allows: "that others see them late, or after their own later writes",
        kind: sessions(false, false, true, false),
    },
    Level {
        name: "writes-follow-reads",
        promises: "a write is never visible before what its session had read",
        allows: "that others see both late",
        kind: sessions(false, false, false, true),
    },
    Level {
        name: "pram",
        promises: "read-your-writes, monotonic-reads and monotonic-writes",
        allows: "that an answer is visible before what it answers",
        kind: sessions(true, true, true, false),
    },
    Level {
        name: "causal",
        promises: "all four session guarantees",
        allows: "that concurrent writes are seen late",
        kind: sessions(true, true, true, true),
    },
    Level {
        name: "read-uncommitted",
        promises: "of two transactions the same one wins on every key that both write",
        allows: "that others see writes at once, and writes that are rolled back",
        kind: transactions(false, false),
    },
    Level {
        name: "read-committed",
        promises: "nothing is seen that is not committed or was replaced in its own transaction",
        allows: "that a transaction reads a key twice with two values, and lost updates",
        kind: transactions(true, false),
    },
    Level {
        name: "item-cut",
        promises: "as read-committed, and a key has the same value whenever a transaction reads it",
        allows: "two keys as of two instants, and lost updates",
        kind: transactions(true, true),
    },
];

impl Level {
    pub fn of_name(name: &str) -> Option<&'static Level> {
        ALL.iter().find(|level| level.name == name)
    }
}

/// The keyspaces, one for each level, as a node's configuration file has them.
pub fn configuration() -> String {
    let of = |level: &Level| {
        let name = level.name;
        format!(
            "[[keyspace]]\nname = \"{name}\"\nprefix = \"{name}:\"\nregime = \"lattice\"\nlevel = \"{name}\"\n"
        )
    };
    ALL.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_levels_of_a_keyspace() {
        let mut names: Vec<_> = ALL.iter().map(|level| level.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 10);
        for name in names {
            assert!(rufous_sim::oracle::sessions::Promise::of_level(name).is_ok());
        }
        assert_eq!(configuration().matches("[[keyspace]]").count(), 10);
    }
}
