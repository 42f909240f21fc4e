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
//! Apart from that it keeps what files say of what is gone for good (see
//! `gone`), and what such keys had later as values of other types.
//!
//! Of one file the last of what was added to an element counts, as it says all;
//! and the last of what other nodes have told of it, which the file has, too.
//! Of several files all that no stamp has taken away is of one life of the
//! element, and merges. So it is bounded by what the files' keys have.

use super::Shard;
use super::gone::{noted_in, settle, tell_all};
use super::noted::{ENTRY_BYTES, Note, Noted};
use super::types::Key;
use crate::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::says_all;
use rufous_lattice::Stamp;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Database, key.
pub(super) type At = (u8, Box<[u8]>);

/// Database, key, type, element.
type Name = (u8, Box<[u8]>, Tag, Box<[u8]>);

/// What was added, as operations of its type, and what its writer had forgotten.
#[derive(Clone, Debug)]
pub(super) struct Count {
    pub(super) horizon: u64,
    /// Another node had added it.
    told: bool,
    ops: Vec<u8>,
}

/// See the module's description; of one partition.
#[derive(Debug, Default)]
pub struct Held {
    /// How many workers the node had that wrote these files.
    pub(super) workers: usize,
    horizon: u64,
    counts: BTreeMap<Name, Vec<Count>>,
    /// Keys of which something has gone.
    noted: BTreeMap<At, Noted>,
    /// What all that takes on the heap, about.
    bytes: usize,
}

fn bytes_of_name(name: &Name) -> usize {
    ENTRY_BYTES + name.1.len() + name.3.len()
}

fn bytes_of_counts(counts: &[Count]) -> usize {
    let bytes = |count: &Count| size_of::<Count>() + count.ops.capacity();
    counts.iter().map(bytes).sum()
}

impl Held {
    /// Up to which time its worker had forgotten.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counted anew, where much has changed.
    fn recount(&mut self) {
        let counts = self.counts.iter();
        let counts = counts.map(|(name, counts)| bytes_of_name(name) + bytes_of_counts(counts));
        let noted = self.noted.iter();
        let noted = noted.map(|((_, key), noted)| key.len() + noted.bytes());
        self.bytes = counts.chain(noted).sum();
    }

    pub(super) fn note(&mut self, horizon: u64) {
        self.horizon = self.horizon.max(horizon);
    }

    pub(super) fn note_of(&mut self, (db, key): (u8, &[u8]), note: Note, tuning: &Tuning) {
        let noted = match self.noted.entry((db, key.into())) {
            Entry::Occupied(noted) => {
                let noted = noted.into_mut();
                self.bytes = self.bytes.saturating_sub(noted.bytes());
                noted
            }
            Entry::Vacant(noted) => {
                self.bytes += key.len();
                noted.insert(Noted::default())
            }
        };
        noted.note(note, tuning);
        self.bytes += noted.bytes();
    }

    pub(super) fn has_notes(&self) -> bool {
        !self.noted.is_empty()
    }

    pub(super) fn noted(&self) -> &BTreeMap<At, Noted> {
        &self.noted
    }

    /// Keeps what was done to a key after something of it had gone, of any type.
    /// What the file had of it before may be of a type that would stay, and so may a
    /// grave in any file. Says whether it did.
    pub(super) fn take_other(
        &mut self,
        (db, key): (u8, &[u8]),
        tag: Tag,
        ops: &[u8],
        tuning: &Tuning,
    ) -> Result<bool, NotAnEffect> {
        if self.noted.is_empty() {
            return Ok(false);
        }
        let Some(noted) = self.noted.get_mut(&(db, Box::from(key))) else {
            return Ok(false);
        };
        let before = noted.bytes();
        noted.take(tag, ops, tuning)?;
        self.bytes = (self.bytes + noted.bytes()).saturating_sub(before);
        Ok(true)
    }

    /// Whether the others have nothing to learn from it.
    pub fn says_nothing(&self) -> bool {
        self.horizon == 0 && self.noted.is_empty()
    }

    /// Takes of these operations those that add to nothing; the others are left.
    pub(super) fn take(
        &mut self,
        (db, key): (u8, &[u8]),
        (tag, told): (Tag, bool),
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
            self.add(name, told, ops);
        }
        Ok(rest)
    }

    fn add(&mut self, name: Name, told: bool, mut ops: Vec<u8>) {
        let (horizon, tag) = (self.horizon, name.2);
        if !self.counts.contains_key(&name) {
            self.bytes += bytes_of_name(&name);
        }
        let counts = self.counts.entry(name).or_default();
        let before = bytes_of_counts(counts);
        if says_all(tag) {
            // What others have added says nothing of what was added here.
            counts.retain(|count| count.told != told);
        }
        match counts.last_mut() {
            Some(last) if (last.horizon, last.told) == (horizon, told) => {
                last.ops.append(&mut ops);
            }
            _ => counts.push(Count { horizon, told, ops }),
        }
        self.bytes = (self.bytes + bytes_of_counts(counts)).saturating_sub(before);
    }

    /// The key is another, or none.
    #[cold]
    pub(super) fn forget_key(&mut self, db: u8, key: &[u8]) {
        let of = |name: &Name| name.0 == db && *name.1 == *key;
        let from: Name = (db, key.into(), Tag::Hash, Box::default());
        let names = self.counts.range(from..).map(|(name, _)| name);
        let names: Vec<_> = names.take_while(|name| of(name)).cloned().collect();
        for name in names {
            if let Some(counts) = self.counts.remove(&name) {
                let bytes = bytes_of_name(&name) + bytes_of_counts(&counts);
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
        let name = (db, Box::from(key));
        if let Some(noted) = self.noted.remove(&name) {
            let bytes = key.len() + noted.bytes();
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.noted.is_empty()
    }

    pub(super) fn forget_db(&mut self, db: u8) {
        self.counts.retain(|(of, ..), _| *of != db);
        self.noted.retain(|(of, _), _| *of != db);
        self.recount();
    }

    pub(super) fn swap_dbs(&mut self, a: u8, b: u8) {
        let other = |db| match db {
            db if db == a => b,
            db if db == b => a,
            db => db,
        };
        let all = std::mem::take(&mut self.counts).into_iter();
        let moved =
            all.map(|((db, key, tag, element), counts)| ((other(db), key, tag, element), counts));
        self.counts = moved.collect();
        let all = std::mem::take(&mut self.noted).into_iter();
        let moved = all.map(|((db, key), noted)| ((other(db), key), noted));
        self.noted = moved.collect();
    }
}

/// Drops what has gone as files say, adds what they kept apart, and brings back what they held, of keys
/// that are here; returns how many counts.
/// All that these files have of those keys has been merged before.
pub fn bring_back(
    shard: &mut Shard,
    files: &[impl AsRef<Held>],
    is_here: impl Fn(&[u8]) -> bool,
    now: Now,
) -> u64 {
    let noted = noted_in(files, &is_here);
    tell_all(shard, files, &noted);
    let all = files.iter().flat_map(|held| &held.as_ref().counts);
    let mut some: Vec<_> = all
        .filter(|((_, key, ..), _)| is_here(key))
        .flat_map(|(name, counts)| counts.iter().map(move |count| (count.horizon, name, count)))
        .collect();
    // What an earlier one is taken away by is not gone before it is looked at.
    some.sort_by_key(|&(horizon, name, _)| (horizon, name));
    let mut apart = BTreeMap::<_, Vec<_>>::new();
    for &(_, (db, key, tag, _), count) in &some {
        let at = (*db, &**key);
        if noted.contains_key(&at) {
            apart.entry(at).or_default().push((*tag, count));
        } else {
            let key = shard.key(key);
            shard.bring_back((usize::from(*db), key), *tag, count, now);
        }
    }
    settle(shard, files, (&noted, &apart), now);
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
    pub fn of_files(seed: u64, workers: usize) -> Box<Self> {
        let mut shard = Box::new(Self::new(seed));
        shard.hold_counts(workers);
        shard
    }

    /// What a start holds here, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes())
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

    pub(super) fn bring_back(
        &mut self,
        (db, key): (usize, Key<'_>),
        tag: Tag,
        count: &Count,
        now: Now,
    ) {
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
                if tag == Tag::Register && value.only_counts() {
                    // Whoever counted them had not forgotten the removal below them
                    // yet: they add up with these, or these are older.
                    return self.add_back((db, key), tag, count, now);
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::replicas::All;
    use proptest::prelude::*;
    use rufous_datatype::replicated::Writer;
    use rufous_datatype::set::{Op, Set};
    use std::sync::Arc;

    /// Operations that add a member to a replicated set.
    fn addition(member: &[u8], time: u64) -> Vec<u8> {
        let mut shard = Shard::new(1);
        shard.set_keying(Some(Arc::new(All)));
        shard.set_journaling(true);
        let stamp = Stamp {
            time,
            ..Stamp::ZERO
        };
        shard.begin_lattice(Writer { stamp });
        let key = shard.key(b"k");
        let done = shard.update::<Set, _>(0, key, Now::default(), |editor| {
            editor.apply(&Op::Add { member });
        });
        assert!(done.is_ok());
        shard.end_lattice();
        match Effect::decode(&mut &shard.journal()[..]) {
            Ok(Effect::Update { ops, .. }) => ops.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn its_bytes_are_what_it_has(
            steps in prop::collection::vec((0u8..8, 0u8..4, 1u64..6), 0..80),
        ) {
            let mut held = Held::default();
            for (what, key, n) in steps {
                let (db, key) = (key % 2, vec![b'k'; usize::from(key) * 40]);
                let cut = Stamp { time: n, ..Stamp::ZERO };
                match what {
                    0 | 1 => {
                        let tag = [Tag::SharedHash, Tag::Sketch][usize::from(what)];
                        let name = (db, key.into(), tag, Box::from([n as u8]));
                        held.add(name, false, vec![7; n as usize * 10]);
                    }
                    2 => held.note(n),
                    3 => {
                        let tag = [Tag::SharedSet, Tag::SharedHash][n as usize % 2];
                        let note = match n < 4 {
                            true => Note::Gone(tag, cut),
                            false => Note::Ended(tag, cut),
                        };
                        held.note_of((db, &key), note, &Tuning::default());
                    }
                    4 => {
                        let ops = addition(&vec![b'm'; n as usize * 50], n);
                        let taken = held.take_other((db, &key), Tag::SharedSet, &ops, &Tuning::default());
                        prop_assert!(taken.is_ok());
                    }
                    5 => held.forget_key(db, &key),
                    6 => held.swap_dbs(0, 1),
                    _ if n == 1 => held.forget_db(db),
                    _ => {}
                }
                let bytes = held.bytes();
                held.recount();
                prop_assert_eq!(bytes, held.bytes());
                prop_assert_eq!(bytes == 0, held.is_empty());
            }
        }
    }
}
