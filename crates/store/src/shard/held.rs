//! Counts that the startup holds back until it has read all files.
//!
//! An addition to an element without any earlier write has no stamp of its own. If the element had been removed, and
//! all nodes had forgotten that, the removal may still be in a file, even in that of another worker, and would hide
//! what was added later. So a worker notes in its log, and at the start of its snapshot, up to which time of stamps
//! it has forgotten (see [`Shard::tell_horizon`]). When an addition to nothing follows such a note, all stamps up to
//! that time had been forgotten before it.
//!
//! The startup does not merge such counts with the rest, but holds them back. When the workers have exchanged the
//! contents of their files, each worker with a replica of the key restores them ([`bring_back`]): state that
//! is not newer than a count's note is dropped in favour of the count; newer state has removed the count.
//!
//! It also keeps apart the notes in files of what has gone for good (see `gone`), and what such keys had later as
//! values of other types.
//!
//! Of one file, the last addition to an element is kept, as it contains the earlier ones, and the last that was
//! received from other nodes, which is in the file as well. Counts of several files that no stamp has removed belong
//! to one lifetime of the element, and merge. So the memory is bounded by the keys of the files.

use super::Shard;
use super::at::At;
use super::gone::{noted_in, settle, tell_all};
use super::merging::merge_ops;
use super::noted::{ENTRY_BYTES, Note, Noted};
use crate::effect::NotAnEffect;
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::says_all;
use rufous_lattice::Stamp;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Database, key.
pub(super) type Place = (u8, Box<[u8]>);

/// Database, key, type, element.
type Name = (u8, Box<[u8]>, Tag, Box<[u8]>);

/// An addition, as operations of its type, and the horizon up to which its writer had forgotten.
#[derive(Clone, Debug)]
pub(super) struct Count {
    pub(super) horizon: u64,
    /// It was received from another node.
    told: bool,
    pub(super) ops: Vec<u8>,
}

/// See the module's description; one partition's.
#[derive(Debug, Default)]
pub struct Held {
    /// Number of workers of the node that wrote these files.
    pub(super) workers: usize,
    horizon: u64,
    /// The time up to which its worker had reported to other nodes that it had sent everything.
    reported: u64,
    counts: BTreeMap<Name, Vec<Count>>,
    /// Keys with notes, see `gone`.
    noted: BTreeMap<Place, Noted>,
    /// Approximate heap bytes of all that.
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
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers,
            ..Self::default()
        }
    }

    /// The time up to which its worker had forgotten.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Recomputes the bytes after a change of many keys.
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

    pub(super) fn note_report(&mut self, time: u64) {
        self.reported = self.reported.max(time);
    }

    /// The time up to which its worker had reported that it had sent everything.
    pub fn reported(&self) -> u64 {
        self.reported
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

    pub(super) fn noted(&self) -> &BTreeMap<Place, Noted> {
        &self.noted
    }

    /// Keeps apart what was done to a key behind a note, as a value of any type. Earlier values of the key in the
    /// file may be of a type that would win a merge, and so may a grave in any file. Returns whether it was kept
    /// apart.
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

    /// Whether it has neither a horizon nor notes for the other workers.
    pub fn says_nothing(&self) -> bool {
        self.horizon == 0 && self.noted.is_empty()
    }

    /// Takes those of the operations that add to nothing, and returns the others.
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
            // Additions received from other nodes do not contain the local ones.
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

    /// Forgets what is held of a key that was replaced or removed.
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

    /// The time of the last stamp in it, and of the last report: later stamps must be above it, as above everything
    /// that was replayed.
    pub fn latest(&self) -> u64 {
        let noted = self.noted.values().map(Noted::latest);
        noted.fold(self.horizon.max(self.reported), u64::max)
    }

    /// Whether counts are to be held back.
    pub(super) fn holds(&self) -> bool {
        self.horizon > 0 && !planted::is(Planted::CountsNotHeld)
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

/// Drops what has gone according to the notes of all files, adds what they kept apart, and restores the held counts,
/// for keys that satisfy `is_here`; returns the number of counts. All other state of those keys in these files must
/// have been merged before.
pub fn bring_back(
    shard: &mut Shard,
    files: &[impl AsRef<Held>],
    is_here: impl Fn(&[u8]) -> bool,
    now: Now,
) -> u64 {
    let data = &mut shard.data;
    let noted = noted_in(files, &is_here);
    tell_all(data, files, &noted);
    let all = files.iter().flat_map(|held| &held.as_ref().counts);
    let mut some: Vec<_> = all
        .filter(|((_, key, ..), _)| is_here(key))
        .flat_map(|(name, counts)| counts.iter().map(move |count| (count.horizon, name, count)))
        .collect();
    // By horizon: the state that removes an earlier count must not be dropped before that count is seen.
    some.sort_by_key(|&(horizon, name, _)| (horizon, name));
    let mut apart = BTreeMap::<_, Vec<_>>::new();
    for &(_, (db, key, tag, _), count) in &some {
        let at = (*db, &**key);
        if noted.contains_key(&at) {
            apart.entry(at).or_default().push((*tag, count));
        } else {
            let key = data.key(key);
            restore(&mut data.at(usize::from(*db), key, now), *tag, count);
        }
    }
    settle(data, files, (&noted, &apart), now);
    some.len() as u64
}

/// Restores a count that was held back.
pub(super) fn restore(at: &mut At<'_>, tag: Tag, count: &Count) {
    // Deadlines up to that time had passed.
    let time = Stamp {
        time: count.horizon,
        ..Stamp::ZERO
    };
    let now = Now {
        unix_us: at.now.unix_us.max(time.unix_us()),
        ..at.now
    };
    let before = std::mem::replace(&mut at.now, now);
    if make_way(at, tag, count) {
        let horizon = at.env.horizons.replace(count.horizon);
        let done = merge_ops(at, tag, &count.ops);
        debug_assert!(
            done.is_ok(),
            "operations were looked at when they were held"
        );
        at.env.horizons.replace(horizon);
    }
    at.now = before;
}

/// Drops state that is older than the count. Returns whether the count may be added.
fn make_way(at: &mut At<'_>, tag: Tag, count: &Count) -> bool {
    let known = match at.live() {
        Some(found) => {
            let value = at.db.records.value(found.handle);
            let Some(tag) = value.tag().filter(|tag| tag.is_replicated()) else {
                // The key has become a plain one.
                return false;
            };
            if tag == Tag::Register && value.only_counts() {
                // The removal below these counts was not yet forgotten by their writer: both add up, or these are
                // older.
                return true;
            }
            Some((tag, value.newest()))
        }
        None => at.db.graves.known(at.key.bytes),
    };
    // Collections drop older state element by element.
    let is_whole = |of: Tag| of != tag || matches!(tag, Tag::Register | Tag::Siblings);
    if let Some((of, newest)) = known
        && is_whole(of)
        && (1..=count.horizon).contains(&newest.time)
    {
        at.replica().drop_all();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use crate::shard::tests::replicas::All;
    use proptest::prelude::*;
    use rufous_datatype::replicated::Writer;
    use rufous_datatype::set::{Op, Set};
    use std::sync::Arc;

    /// Operations that add a member to a replicated set.
    fn addition(member: &[u8], time: u64) -> Vec<u8> {
        let mut shard = Shard::new(1);
        shard.lattice_mut().set_keying(Some(Arc::new(All)));
        shard.observers_mut().set_journaling(true);
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
