//! An open transaction, whose commands are answered one by one [HAT §5.1.1].
//!
//! It has copies of keys, on a shard of its own. Its level decides where a command runs: on data like any command; on
//! data, but under the transaction's stamp; or on the copies, which no other client sees. It holds no locks between
//! two commands.

use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_store::level::{Level, item_cut, read_committed, read_uncommitted};
use rufous_store::shard::{Entry, KeyName, Shard};
use std::collections::BTreeSet;

/// Where a command of a transaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// On data, as outside of a transaction.
    AsEver,
    /// On data, at once, under the stamp of the transaction.
    UnderStamp,
    /// On the transaction's copies of its keys; its changes are applied to data when the transaction commits.
    OnCopies,
}

/// See the module's description.
#[derive(Debug)]
pub struct Transaction {
    level: Level,
    began: Now,
    copied: BTreeSet<KeyName>,
    /// Memory of these names.
    names_bytes: usize,
    pub copies: Box<Shard>,
    /// Memory of the empty shard.
    empty_bytes: usize,
}

impl Transaction {
    /// `copies` is an empty shard.
    pub fn new(level: Level, copies: Box<Shard>, now: Now) -> Self {
        Self {
            level,
            began: now,
            copied: BTreeSet::new(),
            names_bytes: 0,
            empty_bytes: copies.memory().total(),
            copies,
        }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// Whether its writes are applied at once and cannot be rolled back.
    pub fn writes_at_once(&self) -> bool {
        !self.level.has(&read_committed::LEVEL)
    }

    /// Where a command on these keys runs.
    pub fn runs(&self, writes: bool, keys: &[KeyName]) -> Runs {
        let is_own = keys.iter().any(|key| self.copied.contains(key));
        let keeps = self.level.has(&item_cut::LEVEL) && !keys.is_empty();
        if keeps || self.level.has(&read_committed::LEVEL) && read_committed::waits(writes, is_own)
        {
            Runs::OnCopies
        } else if self.level.has(&read_uncommitted::LEVEL) && writes {
            Runs::UnderStamp
        } else {
            Runs::AsEver
        }
    }

    /// The keys that have to be copied first.
    pub fn missing(&self, mut keys: Vec<KeyName>) -> Vec<KeyName> {
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| !self.copied.contains(key));
        keys
    }

    /// Whether no keys were copied.
    pub fn is_empty(&self) -> bool {
        self.copied.is_empty()
    }

    /// The time at which commands run on the copies. An item that is read again must not have expired meanwhile.
    pub fn now(&self, now: Now) -> Now {
        match self.level.has(&item_cut::LEVEL) {
            true => self.began,
            false => now,
        }
    }

    /// Copies a key in its current state.
    pub fn copy(&mut self, key: KeyName, entry: Option<Entry>, now: Now) {
        if let Some(entry) = entry {
            let name = self.copies.key(&key.1);
            self.copies
                .insert_entry(usize::from(key.0), name, entry, now);
        }
        self.names_bytes += name_bytes(&key);
        self.copied.insert(key);
    }

    /// The shard with the copies.
    pub fn copies(&mut self) -> &mut Shard {
        &mut self.copies
    }

    /// Ends a command for which `taken` was copied. Copies that were only read are dropped, unless the level keeps
    /// them.
    pub fn end_command(&mut self, taken: Vec<KeyName>, wrote: bool, now: Now) {
        let stays = wrote || self.level.has(&item_cut::LEVEL) && item_cut::keeps();
        if !stays {
            for key in taken {
                self.let_go(&key, now);
                if self.copied.remove(&key) {
                    self.names_bytes -= name_bytes(&key);
                }
            }
        }
        self.copies.changeset().clear();
    }

    fn let_go(&mut self, key: &KeyName, now: Now) {
        let name = self.copies.key(&key.1);
        let _ = self.copies.take_entry(usize::from(key.0), name, now);
    }

    /// Memory of the copies.
    pub fn bytes(&self) -> usize {
        let copies = self.copies.memory().total();
        self.names_bytes + copies.saturating_sub(self.empty_bytes)
    }

    /// Its shard, emptied.
    pub fn into_shard(mut self) -> Box<Shard> {
        for key in std::mem::take(&mut self.copied) {
            self.let_go(&key, self.began);
        }
        self.copies.changeset().clear();
        debug_assert!(
            (0..DATABASES).all(|db| self.copies.is_empty(db)) && self.copies.graves_len() == 0,
            "a command wrote to a key it did not name"
        );
        self.copies
    }
}

fn name_bytes(key: &KeyName) -> usize {
    key.1.len() + 2 * size_of::<KeyName>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_store::shard::{ExpirySetting, NewValue};

    const NOW: Now = Now {
        mono_us: 1_000_000,
        unix_us: 1_700_000_000_000_000,
    };

    fn begin(level: &str) -> Transaction {
        let level = level.parse().expect("a level");
        Transaction::new(level, Box::new(Shard::new(1)), NOW)
    }

    fn key(name: &str) -> KeyName {
        (0, name.as_bytes().into())
    }

    fn entry_of(value: &str) -> Option<Entry> {
        let mut shard = Shard::new(2);
        let key = shard.key(b"any");
        shard.set(
            0,
            key,
            NewValue::Copy(value.as_bytes()),
            ExpirySetting::Clear,
            NOW,
        );
        let key = shard.key(b"any");
        shard.gather_entry(0, key, NOW)
    }

    fn read(transaction: &mut Transaction, name: &str) -> Option<Vec<u8>> {
        let shard = transaction.copies();
        let key = shard.key(name.as_bytes());
        let value = shard.get(0, key, NOW).ok().flatten();
        value.map(|value| value.bytes().to_vec())
    }

    #[test]
    fn each_level_has_commands_run_where_it_says() {
        let (own, other) = ([key("own")], [key("other")]);
        let expected = [
            (
                "read-uncommitted",
                [Runs::UnderStamp, Runs::AsEver, Runs::AsEver],
            ),
            (
                "read-committed",
                [Runs::OnCopies, Runs::OnCopies, Runs::AsEver],
            ),
            ("item-cut", [Runs::OnCopies, Runs::OnCopies, Runs::OnCopies]),
        ];
        for (level, runs) in expected {
            let mut open = begin(level);
            assert_eq!(open.runs(true, &other), runs[0], "{level}");
            if runs[0] == Runs::OnCopies {
                open.copy(key("own"), None, NOW);
                open.end_command(own.to_vec(), true, NOW);
            }
            assert_eq!(open.runs(false, &own), runs[1], "{level}");
            assert_eq!(open.runs(false, &other), runs[2], "{level}");
            assert_eq!(open.runs(false, &[]), Runs::AsEver, "{level}");
        }
    }

    #[test]
    fn what_was_only_read_stays_as_it_was_in_an_item_cut_alone() {
        for (level, stays) in [("read-committed", false), ("item-cut", true)] {
            let mut open = begin(level);
            let missing = open.missing(vec![key("k"), key("k")]);
            assert_eq!(missing, [key("k")]);
            open.copy(key("k"), entry_of("before"), NOW);
            open.end_command(missing, false, NOW);
            assert_eq!(open.is_empty(), !stays, "{level}");
            assert_eq!(read(&mut open, "k").is_some(), stays, "{level}");
        }
    }

    #[test]
    fn what_it_takes_is_counted_and_given_back() {
        let mut open = begin("item-cut");
        assert_eq!(open.bytes(), 0);
        open.copy(key("k"), entry_of(&"x".repeat(100_000)), NOW);
        open.end_command(vec![key("k")], false, NOW);
        assert!(open.bytes() > 100_000, "{}", open.bytes());
        let shard = open.into_shard();
        assert!(shard.is_empty(0));
    }
}
