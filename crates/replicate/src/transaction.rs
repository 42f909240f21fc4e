//! An open transaction, whose commands are answered one by one [HAT §5.1.1].
//!
//! It has copies of keys, on a shard of its own. Its level decides where a command runs: on data like any command; on
//! data, but under the transaction's stamp; or on the copies, which no other client sees. It holds no locks between
//! two commands.
//!
//! A savepoint has the earlier states of the copies that were changed since, as they were at its time: the first change
//! of a key after it keeps the state before.

pub mod isolation;

use isolation::{AtOnce, Isolation};
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_store::level::{Level, item_cut, read_committed, read_uncommitted, serializable};
use rufous_store::shard::{Entry, KeyName, Shard};
use std::collections::{BTreeMap, BTreeSet};

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

/// A reading of the clocks from which deadlines count.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    pub now: Now,
    /// For replicated keys, in Unix milliseconds.
    pub lattice_ms: u64,
}

/// See the module's description.
#[derive(Debug)]
pub struct Transaction {
    isolation: Isolation,
    /// When it began, or when it came to keep what it reads: at level item-cut deadlines of all its copies are judged as of then.
    since: Now,
    copied: BTreeSet<KeyName>,
    /// Memory of these names.
    names_bytes: usize,
    pub copies: Box<Shard>,
    /// Memory of the empty shard.
    empty_bytes: usize,
    /// The latest one last.
    savepoints: Vec<Savepoint>,
}

/// A point of the transaction to which it can go back.
#[derive(Debug)]
struct Savepoint {
    name: Box<[u8]>,
    /// Of the keys that were changed since, until the next savepoint: how they were.
    before: BTreeMap<KeyName, Before>,
    /// Memory of them.
    bytes: usize,
}

/// A copy at the time of a savepoint.
#[derive(Debug)]
enum Before {
    /// There was none, and nothing demands that the next one is equal.
    NotCopied,
    Copied(Option<Entry>),
}

impl Transaction {
    /// `copies` is an empty shard.
    pub fn new(isolation: Isolation, copies: Box<Shard>, since: Instant) -> Self {
        let mut transaction = Self {
            isolation,
            since: since.now,
            copied: BTreeSet::new(),
            names_bytes: 0,
            empty_bytes: copies.memory().total(),
            copies,
            savepoints: Vec::new(),
        };
        if transaction.keeps() {
            transaction.keep_from(since);
        }
        transaction
    }

    /// Whether what it reads stays as it was.
    fn keeps(&self) -> bool {
        self.level().has(&item_cut::LEVEL)
    }

    fn keep_from(&mut self, since: Instant) {
        self.since = since.now;
        self.copies.stop_time(since.now, since.lattice_ms);
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    pub fn level(&self) -> Level {
        self.isolation.level()
    }

    /// A command on keys of keyspaces that have this level together: see [`Isolation::on_keys`].
    pub fn on_keys(&mut self, writes: bool, level: Level, at: Instant) -> Result<(), AtOnce> {
        let kept = self.keeps();
        self.isolation.on_keys(writes, level)?;
        if !kept && self.keeps() {
            self.keep_from(at);
        }
        Ok(())
    }

    /// It can no longer write at once, unless it does already.
    pub fn settle(&mut self) {
        self.isolation.settle();
    }

    /// Whether its writes are applied at once and cannot be rolled back.
    pub fn writes_at_once(&self) -> bool {
        self.isolation.writes_at_once()
    }

    /// Whether keys that it copies are watched: it commits only if none of them was changed.
    pub fn watches(&self) -> bool {
        self.level().has(&serializable::LEVEL)
    }

    /// Where a command on these keys runs.
    pub fn runs(&self, writes: bool, keys: &[KeyName]) -> Runs {
        let is_own = keys.iter().any(|key| self.copied.contains(key));
        let level = self.level();
        let keeps = self.keeps() && !keys.is_empty();
        if keeps || level.has(&read_committed::LEVEL) && read_committed::waits(writes, is_own) {
            Runs::OnCopies
        } else if level.has(&read_uncommitted::LEVEL) && writes {
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

    /// The number of keys that were copied.
    pub fn keys(&self) -> usize {
        self.copied.len()
    }

    /// Whether no keys were copied.
    pub fn is_empty(&self) -> bool {
        self.copied.is_empty()
    }

    /// The time at which commands run on the copies. An item that is read again must not have expired meanwhile.
    pub fn now(&self, now: Now) -> Now {
        if self.keeps() { self.since } else { now }
    }

    /// Copies a key in its current state.
    pub fn copy(&mut self, key: KeyName, entry: Option<Entry>, now: Now) {
        let now = self.now(now);
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
        let stays = wrote || self.keeps() && item_cut::keeps();
        if !stays {
            for key in taken {
                self.forget(&key, now);
            }
        }
        self.copies.changeset().clear();
    }

    fn forget(&mut self, key: &KeyName, now: Now) {
        self.let_go(key, now);
        if self.copied.remove(key) {
            self.names_bytes -= name_bytes(key);
        }
    }

    fn let_go(&mut self, key: &KeyName, now: Now) {
        let name = self.copies.key(&key.1);
        let _ = self.copies.take_entry(usize::from(key.0), name, now);
    }

    /// Memory of the copies.
    pub fn bytes(&self) -> usize {
        let copies = self.copies.memory().total();
        let before: usize = self.savepoints.iter().map(|point| point.bytes).sum();
        self.names_bytes + before + copies.saturating_sub(self.empty_bytes)
    }

    /// Its shard, emptied.
    pub fn into_shard(mut self) -> Box<Shard> {
        for key in std::mem::take(&mut self.copied) {
            self.let_go(&key, self.since);
        }
        self.copies.changeset().clear();
        self.copies.let_time_go();
        debug_assert!(
            (0..DATABASES).all(|db| self.copies.is_empty(db)) && self.copies.graves_len() == 0,
            "a command wrote to a key it did not name"
        );
        self.copies
    }
}

/// Savepoints.
impl Transaction {
    /// Sets a savepoint. One with this name that was set before is found again when this one is gone.
    pub fn save(&mut self, name: &[u8]) {
        self.savepoints.push(Savepoint {
            name: name.into(),
            before: BTreeMap::new(),
            bytes: name.len() + size_of::<Savepoint>(),
        });
    }

    /// The place among savepoints of the latest one with this name.
    pub fn savepoint(&self, name: &[u8]) -> Option<usize> {
        let mut all = self.savepoints.iter();
        all.rposition(|point| &*point.name == name)
    }

    /// The number of savepoints.
    pub fn savepoints(&self) -> usize {
        self.savepoints.len()
    }

    /// A command is about to change copies of these keys, of which `taken` were copied for it.
    pub fn before_change(&mut self, keys: &[KeyName], taken: &[KeyName], now: Now) {
        let (keeps, now) = (self.keeps(), self.now(now));
        let Some(point) = self.savepoints.last_mut() else {
            return;
        };
        for key in keys {
            if point.before.contains_key(key) {
                continue;
            }
            point.bytes += name_bytes(key);
            let was_copied = keeps || !taken.contains(key);
            let before = if was_copied {
                let (db, name) = (usize::from(key.0), self.copies.key(&key.1));
                point.bytes += self.copies.memory_of(db, name, now).unwrap_or_default();
                Before::Copied(self.copies.gather_entry(db, name, now))
            } else {
                Before::NotCopied
            };
            point.before.insert(key.clone(), before);
        }
    }

    /// Makes all copies as they were at a savepoint, which stays; later ones are gone.
    pub fn go_back(&mut self, at: usize, now: Now) {
        let now = self.now(now);
        while let Some(point) = self.savepoints.pop() {
            for (key, before) in point.before {
                self.let_go(&key, now);
                match before {
                    Before::NotCopied => self.forget(&key, now),
                    Before::Copied(None) => {}
                    Before::Copied(Some(entry)) => {
                        let name = self.copies.key(&key.1);
                        let db = usize::from(key.0);
                        self.copies.insert_entry(db, name, entry, now);
                    }
                }
            }
            if self.savepoints.len() == at {
                self.save(&point.name);
                break;
            }
        }
        self.copies.changeset().clear();
    }

    /// Removes a savepoint and all later ones: what was changed since stays changed.
    pub fn release(&mut self, at: usize) {
        let gone = self.savepoints.split_off(at);
        let Some(earlier) = self.savepoints.last_mut() else {
            return;
        };
        for point in gone {
            // The earliest state counts.
            for (key, before) in point.before {
                earlier.before.entry(key).or_insert(before);
            }
            earlier.bytes += point.bytes;
        }
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
        let since = Instant {
            now: NOW,
            lattice_ms: NOW.unix_ms(),
        };
        Transaction::new(Isolation::given(level), Box::new(Shard::new(1)), since)
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

    fn write(transaction: &mut Transaction, name: &str, value: &str) {
        let keys = [key(name)];
        let taken = transaction.missing(keys.to_vec());
        for key in &taken {
            transaction.copy(key.clone(), entry_of("committed"), NOW);
        }
        transaction.before_change(&keys, &taken, NOW);
        let shard = transaction.copies();
        let at = shard.key(name.as_bytes());
        shard.set(
            0,
            at,
            NewValue::Copy(value.as_bytes()),
            ExpirySetting::Clear,
            NOW,
        );
        transaction.end_command(taken, true, NOW);
    }

    #[test]
    fn copies_go_back_to_a_savepoint() {
        for (level, again) in [("read-committed", false), ("item-cut", true)] {
            let mut open = begin(level);
            write(&mut open, "a", "1");
            open.save(b"one");
            write(&mut open, "a", "2");
            open.save(b"two");
            write(&mut open, "a", "3");
            write(&mut open, "b", "3");
            assert_eq!(
                (open.savepoint(b"one"), open.savepoint(b"x")),
                (Some(0), None)
            );
            open.go_back(1, NOW);
            assert_eq!(read(&mut open, "a").as_deref(), Some(&b"2"[..]), "{level}");
            // It was not copied at the savepoint: an item cut has read it since.
            assert_eq!(open.missing(vec![key("b")]).is_empty(), again, "{level}");
            write(&mut open, "a", "4");
            open.go_back(1, NOW);
            assert_eq!(read(&mut open, "a").as_deref(), Some(&b"2"[..]), "{level}");
            open.go_back(0, NOW);
            assert_eq!(read(&mut open, "a").as_deref(), Some(&b"1"[..]), "{level}");
            assert_eq!(open.savepoints(), 1, "{level}");
            drop(open.into_shard());
        }
    }

    #[test]
    fn a_released_savepoint_leaves_its_changes_to_the_one_before() {
        let mut open = begin("item-cut");
        write(&mut open, "a", "1");
        open.save(b"x");
        write(&mut open, "b", "2");
        open.save(b"x");
        write(&mut open, "a", "3");
        write(&mut open, "b", "3");
        assert_eq!(open.savepoint(b"x"), Some(1), "the latest");
        let bytes = open.bytes();
        open.release(1);
        assert_eq!(open.bytes(), bytes);
        assert_eq!(read(&mut open, "a").as_deref(), Some(&b"3"[..]));
        open.go_back(0, NOW);
        assert_eq!(read(&mut open, "a").as_deref(), Some(&b"1"[..]));
        assert_eq!(read(&mut open, "b").as_deref(), Some(&b"committed"[..]));
        open.release(0);
        assert_eq!(open.savepoints(), 0);
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
