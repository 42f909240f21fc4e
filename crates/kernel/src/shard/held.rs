//! Counts that a start holds back until it knows all files.
//!
//! What is added where nothing was ever written has no stamp of its own. Where
//! something had been removed and everybody had forgotten that, the removal may
//! still be in a file, also in that of another worker, and would hide what was
//! added since. So a worker notes in its log, and at the start of its snapshot,
//! up to which time of stamps it has forgotten (see [`Shard::tell_horizon`]).
//! Of what is added to nothing after such a note its writer knew: whatever
//! stamps there were up to that time, they were forgotten before.
//!
//! A start does not merge such counts with the rest, but holds them back. When
//! the workers have told one another what their files have, whoever has a
//! replica of the key brings them back ([`Shard::bring_back`]): what is not
//! newer than a count's note makes way for it, what is newer has taken it away.
//!
//! Of one file the last of what was added to an element counts, as it says all.
//! Of several files all that no stamp has taken away is of one life of the
//! element, and merges. So it is bounded by what the files' keys have.

use super::Shard;
use super::types::Key;
use crate::durable::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::says_all;
use rufous_lattice::Stamp;
use std::collections::BTreeMap;

/// Database, key, type, element.
type Name = (u8, Box<[u8]>, Tag, Box<[u8]>);

/// What was added, as operations of its type, and what its writer had forgotten.
#[derive(Clone, Debug)]
struct Count {
    horizon: u64,
    ops: Vec<u8>,
}

/// See the module's description; of one partition.
#[derive(Debug, Default)]
pub struct Held {
    /// How many workers the node had that wrote these files.
    pub(super) workers: usize,
    horizon: u64,
    counts: BTreeMap<Name, Vec<Count>>,
}

impl Held {
    /// Up to which time its worker had forgotten.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    pub(super) fn note(&mut self, horizon: u64) {
        self.horizon = self.horizon.max(horizon);
    }

    /// Takes of these operations those that add to nothing; the others are left.
    pub(super) fn take(
        &mut self,
        (db, key): (u8, &[u8]),
        tag: Tag,
        ops: &[u8],
    ) -> Result<Vec<u8>, NotAnEffect> {
        let mut rest = Vec::new();
        let mut some = Vec::new();
        let mut each = |element: Option<&[u8]>, op: &[u8]| match element {
            Some(element) => some.push((Box::<[u8]>::from(element), op.to_vec())),
            None => rest.extend_from_slice(op),
        };
        let done = tag.each_operation(ops, &mut each);
        done.map_err(|_| NotAnEffect)?;
        for (element, ops) in some {
            let name = (db, key.into(), tag, element);
            self.add(name, ops);
        }
        Ok(rest)
    }

    fn add(&mut self, name: Name, mut ops: Vec<u8>) {
        let (horizon, tag) = (self.horizon, name.2);
        let counts = self.counts.entry(name).or_default();
        if says_all(tag) {
            counts.clear();
        }
        match counts.last_mut() {
            Some(last) if last.horizon == horizon => last.ops.append(&mut ops),
            _ => counts.push(Count { horizon, ops }),
        }
    }

    /// The key is another, or none.
    #[cold]
    pub(super) fn forget_key(&mut self, db: u8, key: &[u8]) {
        let of = |name: &Name| name.0 == db && *name.1 == *key;
        let from: Name = (db, key.into(), Tag::Hash, Box::default());
        let names = self.counts.range(from..).map(|(name, _)| name);
        let names: Vec<_> = names.take_while(|name| of(name)).cloned().collect();
        for name in names {
            self.counts.remove(&name);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub(super) fn forget_db(&mut self, db: u8) {
        self.counts.retain(|(of, ..), _| *of != db);
    }

    pub(super) fn swap_dbs(&mut self, a: u8, b: u8) {
        let all = std::mem::take(&mut self.counts).into_iter();
        let moved = all.map(|((db, key, tag, element), counts)| {
            let db = match db {
                db if db == a => b,
                db if db == b => a,
                db => db,
            };
            ((db, key, tag, element), counts)
        });
        self.counts = moved.collect();
    }
}

/// Brings back what files held whose keys are here; returns how many counts.
/// All that these files have of those keys has been merged before.
pub(crate) fn bring_back(
    shard: &mut Shard,
    files: &[impl AsRef<Held>],
    is_here: impl Fn(&[u8]) -> bool,
    now: Now,
) -> u64 {
    let all = files.iter().flat_map(|held| &held.as_ref().counts);
    let mut some: Vec<_> = all
        .filter(|((_, key, ..), _)| is_here(key))
        .flat_map(|(name, counts)| counts.iter().map(move |count| (count.horizon, name, count)))
        .collect();
    // What an earlier one is taken away by is not gone before it is looked at.
    some.sort_by_key(|&(horizon, name, _)| (horizon, name));
    for &(_, (db, key, tag, _), count) in &some {
        let key = shard.key(key);
        shard.bring_back((usize::from(*db), key), *tag, count, now);
    }
    some.len() as u64
}

impl Shard {
    /// What is applied from now on is of files of a node with so many workers.
    pub fn hold_counts(&mut self, workers: usize) {
        self.held = Some(Box::new(Held {
            workers,
            ..Held::default()
        }));
    }

    /// One for the data of files that are another's.
    pub(crate) fn of_files(seed: u64, workers: usize) -> Box<Self> {
        let mut shard = Box::new(Self::new(seed));
        shard.hold_counts(workers);
        shard
    }

    /// Ends that.
    pub fn take_held(&mut self) -> Option<Box<Held>> {
        self.held.take()
    }

    /// All that was here with a stamp up to this time was known here, and is
    /// forgotten where nothing is known any more.
    pub fn set_forgotten(&mut self, horizon: u64) {
        self.env.forgotten = self.env.forgotten.max(horizon);
    }

    /// Has the journal say up to where this shard has forgotten, if that has
    /// changed. To be called before what runs next, and not within a command:
    /// one that is not whole in all logs does not count.
    #[inline]
    pub fn tell_horizon(&mut self) {
        let env = &mut self.env;
        if env.forgotten > env.forgotten_told && env.journaling {
            env.forgotten_told = env.forgotten;
            let time = env.forgotten;
            let before = env.journal.len();
            Effect::Horizon { time }.encode(&mut env.journal);
            // Nobody waits for it: what counts on it comes behind.
            env.journaled_asides += env.journal.len() - before;
        }
    }

    /// For the start of a snapshot.
    pub fn horizon_effect(&self, out: &mut Vec<u8>) {
        if self.env.forgotten > 0 {
            let time = self.env.forgotten;
            Effect::Horizon { time }.encode(out);
        }
    }

    /// What is held of a key is not its any more.
    #[inline]
    pub(super) fn forget_held(&mut self, db: u8, key: &[u8]) {
        if let Some(held) = self.held.as_mut().filter(|held| !held.is_empty()) {
            held.forget_key(db, key);
        }
    }

    /// Whether something is held, or would be.
    pub(super) fn holds(&self) -> bool {
        let horizon = self.held.as_ref().map_or(0, |held| held.horizon);
        horizon > 0 && !planted::is(Planted::CountsNotHeld)
    }

    fn bring_back(&mut self, (db, key): (usize, Key<'_>), tag: Tag, count: &Count, now: Now) {
        // Deadlines up to there had come.
        let time = Stamp {
            time: count.horizon,
            ..Stamp::ZERO
        };
        let now = Now {
            unix_us: now.unix_us.max(time.unix_us()),
            ..now
        };
        let at = &mut self.dbs[db];
        let known = match at.live(key, now, &mut self.env) {
            Some(found) => {
                let value = at.value(found.handle);
                let Some(tag) = value.tag().filter(|tag| tag.is_replicated()) else {
                    // It is a plain one since.
                    return;
                };
                Some((tag, value.newest()))
            }
            None => at.graves.known(key.bytes),
        };
        // Collections make way element by element.
        let is_whole = |of: Tag| of != tag || matches!(tag, Tag::Register | Tag::Siblings);
        if let Some((of, newest)) = known
            && is_whole(of)
            && (1..=count.horizon).contains(&newest.time)
        {
            at.drop_replica(key, &mut self.env);
        }
        self.add_back((db, key), tag, count, now);
    }

    fn add_back(&mut self, (db, key): (usize, Key<'_>), tag: Tag, count: &Count, now: Now) {
        let horizon = std::mem::replace(&mut self.env.horizon, count.horizon);
        let done = self.merge_ops(db, key, tag, &count.ops, now);
        debug_assert!(
            done.is_ok(),
            "operations were looked at when they were held"
        );
        self.env.horizon = horizon;
    }
}
