//! Walks over all lattice keys of a worker: to compute checksums by slot, and to send slots again.

use rufous_base::Now;
use rufous_base::limits::{DATABASES, SLOTS};
use rufous_base::slot::slot_of;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::told;
use rufous_store::shard::{Item, Shard};
use std::sync::Arc;

/// Keys that one step examines.
const KEYS: usize = 512;

/// A key with its database.
pub(super) type Name = (u8, Box<[u8]>);

/// The passes of a walk over a database, in order. While the walk is at the records, a key may leave its grave and
/// return to it: hence two passes over graves.
#[derive(Clone, Debug)]
enum Stage {
    Graves { from: Box<[u8]>, again: bool },
    Records(u32),
}

/// The position of a walk over all databases.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    db: usize,
    stage: Stage,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            db: 0,
            stage: Stage::first(),
        }
    }
}

impl Stage {
    fn first() -> Self {
        Stage::Graves {
            from: Box::default(),
            again: false,
        }
    }
}

impl Walk {
    /// Appends some keys; false at the end.
    pub(super) fn step(
        &mut self,
        shard: &mut Shard,
        placement: &Placement,
        out: &mut Vec<Name>,
    ) -> bool {
        if self.db >= DATABASES {
            return false;
        }
        let (db, number) = (self.db, self.db as u8);
        let is_lattice = |key: &[u8]| placement.lattice(key).is_some();
        let next = match &self.stage {
            Stage::Graves { from, again } => {
                let (keys, next) = shard.graves(db, from, KEYS);
                let some = keys.iter().filter(|key| is_lattice(key));
                out.extend(some.map(|key| (number, Box::from(&**key))));
                match next {
                    Some(from) => Some(Stage::Graves {
                        from,
                        again: *again,
                    }),
                    None if *again => None,
                    None => Some(Stage::Records(0)),
                }
            }
            Stage::Records(at) => {
                // An expired value becomes a grave when its state is produced.
                let never = Now::default();
                let mut take = |item: Item<'_>| {
                    if is_lattice(item.key) {
                        out.push((number, item.key.into()));
                    }
                };
                let next = shard.scan(db, *at, KEYS, never, &mut take);
                Some(match next {
                    Some(at) => Stage::Records(at),
                    None => Stage::Graves {
                        from: Box::default(),
                        again: true,
                    },
                })
            }
        };
        match next {
            Some(stage) => self.stage = stage,
            None => (self.db, self.stage) = (self.db + 1, Stage::first()),
        }
        self.db < DATABASES
    }

    /// Whether keys are visited a second time.
    fn is_again(&self) -> bool {
        matches!(self.stage, Stage::Graves { again: true, .. })
    }
}

/// Checksums being computed.
#[derive(Debug)]
pub(super) struct Pass {
    walk: Walk,
    sums: Vec<u64>,
}

impl Default for Pass {
    fn default() -> Self {
        Self {
            walk: Walk::default(),
            sums: vec![0; SLOTS],
        }
    }
}

impl Pass {
    /// Returns true if there is more to do.
    pub(super) fn step(&mut self, now: Now, shard: &mut Shard, placement: &Placement) -> bool {
        let mut names = Vec::new();
        let again = self.walk.is_again();
        let more = self.walk.step(shard, placement, &mut names);
        // Each key counts once; one that is moved meanwhile only makes its slot differ.
        if !again {
            for (db, name) in names {
                let key = shard.key(&name);
                if let Some(sum) = told::sum(&mut shard.at(usize::from(db), key, now)) {
                    let slot = &mut self.sums[usize::from(slot_of(&name))];
                    *slot = slot.wrapping_add(sum);
                }
            }
        }
        more
    }

    pub(super) fn into_sums(self) -> Arc<[u64]> {
        self.sums.into()
    }
}

/// One bit per slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differ(Box<[u64]>);

impl Differ {
    const WORDS: usize = SLOTS / 64;

    /// The slots whose checksums differ; missing ones count as different.
    pub(super) fn of(own: &[u64], theirs: &[u64]) -> Self {
        let mut words = vec![0; Self::WORDS];
        for slot in 0..SLOTS {
            if own.get(slot) != theirs.get(slot) && !planted::is(Planted::NotCompared) {
                words[slot / 64] |= 1 << (slot % 64);
            }
        }
        Self(words.into())
    }

    pub(super) fn has(&self, slot: u16) -> bool {
        let (word, bit) = (usize::from(slot) / 64, slot % 64);
        self.0.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// Number of slots in it.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// For a message between nodes.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// `None` if the words are not one bit for each slot.
    pub fn from_words(words: Vec<u64>) -> Option<Self> {
        (words.len() == Self::WORDS).then(|| Self(words.into()))
    }
}
