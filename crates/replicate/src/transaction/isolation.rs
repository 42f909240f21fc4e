//! The level of an open transaction: `BEGIN` gives it, or else the keyspaces of the keys that the transaction uses.
//!
//! Without a level it begins at read committed, and rises to item cut with the first key of a keyspace of that level. It
//! writes at once if its first write, and all that it has read before, is on keyspaces of level read uncommitted alone.
//! From then on it cannot write keys of other keyspaces: with one stamp for what is written at once and a later one for
//! what is committed, two transactions could each win on one of two keys, which no level allows.

use rufous_store::level::{Level, item_cut, read_uncommitted};

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    level: Level,
    chosen: Chosen,
}

/// What has chosen the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Begin,
    /// The keys used so far. It may still rise.
    Keys,
    /// Nothing: what was done so far is the same at all levels.
    Nothing,
}

/// A transaction that writes at once, because no level was given, cannot execute a command on keys of other keyspaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtOnce;

impl Isolation {
    /// `BEGIN` has given the level.
    pub fn given(level: Level) -> Self {
        let chosen = Chosen::Begin;
        Self { level, chosen }
    }

    /// `BEGIN` has given none.
    pub fn of_keys() -> Self {
        Self {
            level: Level::READ_COMMITTED,
            chosen: Chosen::Nothing,
        }
    }

    /// The level in force.
    pub fn level(self) -> Level {
        self.level
    }

    /// A command on keys of keyspaces whose levels in transactions ([`Level::in_transactions`]) have these parts together.
    pub fn on_keys(&mut self, writes: bool, level: Level) -> Result<(), AtOnce> {
        match self.chosen {
            Chosen::Begin => {}
            Chosen::Nothing if read_uncommitted::writes_at_once(level) => {
                if writes {
                    (self.level, self.chosen) = (level, Chosen::Keys);
                }
            }
            Chosen::Keys if self.writes_at_once() => {
                let waits = writes && !read_uncommitted::writes_at_once(level);
                if waits || level.has(&item_cut::LEVEL) {
                    return Err(AtOnce);
                }
            }
            Chosen::Nothing | Chosen::Keys => {
                (self.level, self.chosen) = (self.level.and(level), Chosen::Keys);
            }
        }
        Ok(())
    }

    /// It can no longer come to write at once.
    pub fn settle(&mut self) {
        if self.chosen == Chosen::Nothing {
            self.chosen = Chosen::Keys;
        }
    }

    /// Whether writes are applied at once.
    pub fn writes_at_once(self) -> bool {
        read_uncommitted::writes_at_once(self.level)
    }

    /// Whether they are, or may be if the first keys demand it.
    pub fn may_write_at_once(self) -> bool {
        self.writes_at_once() || self.chosen == Chosen::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: bool = true;
    const READ: bool = false;

    fn level(name: &str) -> Level {
        name.parse().expect("a level")
    }

    /// The level after commands on keys of keyspaces of such levels; empty where the last one was refused.
    fn after(mut isolation: Isolation, commands: &[(bool, &str)]) -> String {
        let mut last = Ok(());
        for (writes, names) in commands {
            assert_eq!(last, Ok(()));
            let levels = names.split(' ').map(|name| level(name).in_transactions());
            last = isolation.on_keys(*writes, levels.reduce(Level::and).expect("a key"));
        }
        match last {
            Ok(()) => isolation.level().to_string(),
            Err(AtOnce) => String::new(),
        }
    }

    #[test]
    fn the_keyspaces_give_the_level_that_begin_has_not_given() {
        let (at_once, cut) = ("read-uncommitted", "item-cut");
        let both = "read-uncommitted eventual";
        for (commands, expected) in [
            (&[][..], "read-committed"),
            (&[(WRITE, "eventual")], "read-committed"),
            (&[(WRITE, "causal"), (READ, "pram")], "read-committed"),
            (&[(READ, cut)], cut),
            (&[(READ, "eventual"), (WRITE, cut), (READ, "pram")], cut),
            (&[(READ, at_once)], "read-committed"),
            (&[(READ, at_once), (WRITE, at_once)], at_once),
            // More than read-uncommitted promises.
            (&[(WRITE, both)], "read-committed"),
            (&[(READ, "pram"), (WRITE, at_once)], "read-committed"),
            (&[(READ, at_once), (WRITE, "eventual")], "read-committed"),
            (
                &[(READ, at_once), (WRITE, "item-cut read-uncommitted")],
                cut,
            ),
            // Nothing is kept for COMMIT any more.
            (
                &[(WRITE, at_once), (READ, "eventual"), (WRITE, at_once)],
                at_once,
            ),
            (&[(WRITE, at_once), (WRITE, "eventual")], ""),
            (&[(WRITE, at_once), (WRITE, both)], ""),
            (&[(WRITE, at_once), (READ, cut)], ""),
        ] {
            assert_eq!(
                after(Isolation::of_keys(), commands),
                expected,
                "{commands:?}"
            );
        }
    }

    #[test]
    fn a_given_level_stays() {
        let all = ["read-uncommitted", "read-committed", "item-cut"];
        for given in all {
            let commands = all.map(|used| (WRITE, used));
            let isolation = Isolation::given(level(given));
            assert_eq!(after(isolation, &commands), given);
            assert_eq!(isolation.may_write_at_once(), given == all[0]);
        }
    }

    #[test]
    fn what_is_settled_is_kept_for_commit() {
        let mut isolation = Isolation::of_keys();
        assert!(isolation.may_write_at_once() && !isolation.writes_at_once());
        isolation.settle();
        assert!(!isolation.may_write_at_once());
        let commands = [(WRITE, "read-uncommitted")];
        assert_eq!(after(isolation, &commands), "read-committed");
    }
}
