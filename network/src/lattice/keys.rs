//! Which keys clients work on, and with what. A few at a time, as with registers; the ones
//! before them are still read now and then, and all of them in the end.
//!
//! No element is added twice, and no text is written twice.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Error, Result, bail};
use rufous_sim::engine::random::Random;
use rufous_sim::oracle::lattice::Deed;

use super::acts::What;

/// Keys of each kind in use at a time.
const ACTIVE: u64 = 2;
/// Operations until others take their place.
const TURN: u64 = 1_000;
/// How often an earlier one is read.
const LOOKS_BACK: f64 = 0.05;
/// What a counter is incremented by at most: sums of some are seldom sums of others.
const MOST: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Counter,
    Set,
    Text,
}

const KINDS: [(Kind, &str); 3] = [
    (Kind::Counter, "l:count:"),
    (Kind::Set, "l:set:"),
    (Kind::Text, "l:text:"),
];

/// A key of the lattice keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub kind: Kind,
    pub no: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = KINDS.iter().find(|(kind, _)| *kind == self.kind);
        write!(f, "{}{}", of.map_or("", |(_, prefix)| prefix), self.no)
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        for (kind, prefix) in KINDS {
            if let Some(no) = name.strip_prefix(prefix) {
                let no = no.parse().with_context(|| name.to_owned())?;
                return Ok(Self { kind, no });
            }
        }
        bail!("not a key: {name}")
    }
}

impl Kind {
    pub fn look(self) -> What {
        match self {
            Kind::Counter => What::Deed(Deed::Sum),
            Kind::Set => What::Deed(Deed::Members),
            Kind::Text => What::Get,
        }
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Keys {
    operations: AtomicU64,
    /// Elements and texts.
    made: AtomicU64,
    /// What is in the sets, as far as somebody has seen last.
    visible: Mutex<BTreeMap<Key, Vec<u64>>>,
}

impl Keys {
    pub fn next(&self, random: &mut Random) -> (Key, What) {
        let count = self.operations.fetch_add(1, Ordering::Relaxed);
        let first = count / TURN * ACTIVE;
        let kind = random.pick(&KINDS).0;
        if first > 0 && random.chance(LOOKS_BACK) {
            let no = random.below(first);
            return (Key { kind, no }, kind.look());
        }
        let no = first + random.below(ACTIVE);
        let key = Key { kind, no };
        let what = match (random.below(10), kind) {
            (0..=3, _) => kind.look(),
            (_, Kind::Counter) => What::Deed(Deed::Count(1 + random.below(MOST))),
            (_, Kind::Text) => What::Put(self.make()),
            (4..=6, Kind::Set) => What::Deed(Deed::Add(self.make())),
            (_, Kind::Set) => match self.any_seen(key, random) {
                Some(element) => What::Deed(Deed::Remove(element)),
                None => kind.look(),
            },
        };
        (key, what)
    }

    fn make(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn any_seen(&self, key: Key, random: &mut Random) -> Option<u64> {
        let visible = self.visible.lock();
        let visible = visible.unwrap_or_else(PoisonError::into_inner);
        let all = visible.get(&key).filter(|all| !all.is_empty())?;
        Some(*random.pick(all))
    }

    /// Somebody was shown these.
    pub fn see(&self, key: Key, all: &[u64]) {
        let visible = self.visible.lock();
        let mut visible = visible.unwrap_or_else(PoisonError::into_inner);
        visible.insert(key, all.to_vec());
    }

    /// All that may have been used.
    pub fn used(&self) -> Vec<Key> {
        let turns = self.operations.load(Ordering::Relaxed) / TURN + 1;
        let of = |no| KINDS.iter().map(move |(kind, _)| Key { kind: *kind, no });
        (0..turns * ACTIVE).flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_keys_are_read() {
        for (kind, _) in KINDS {
            let key = Key { kind, no: 12 };
            assert_eq!(key.to_string().parse::<Key>().unwrap(), key);
        }
        for wrong in ["l:12", "l:set:", "l:set:x", "register:1"] {
            assert!(wrong.parse::<Key>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_made_twice_and_only_what_was_seen_is_removed() {
        let (keys, mut random) = (Keys::default(), Random::new(1, "keys"));
        let (mut made, mut removed, mut looked_back) = (BTreeSet::new(), 0, 0);
        let mut seen: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for count in 0..20_000 {
            let first = count / TURN * ACTIVE;
            let (key, what) = keys.next(&mut random);
            assert!(key.no < first + ACTIVE);
            looked_back += u64::from(key.no < first);
            match what {
                What::Deed(Deed::Add(element)) => {
                    assert!(made.insert(element));
                    let all = seen.entry(key).or_default();
                    all.push(element);
                    keys.see(key, all);
                }
                What::Deed(Deed::Remove(element)) => {
                    assert!(seen[&key].contains(&element));
                    removed += 1;
                }
                What::Put(text) => assert!(made.insert(text)),
                What::Deed(Deed::Count(by)) => assert!((1..=MOST).contains(&by)),
                What::Deed(_) | What::Get => {}
            }
        }
        assert!(looked_back > 500 && removed > 1_000);
        assert_eq!(keys.used().len(), 21 * ACTIVE as usize * KINDS.len());
    }
}
