//! Replicated collections: an addition to a set wins over a removal that has not seen it; of fields and scores the
//! last write is read.

use super::replicas::{Model, Write, run};
use crate::shard::{Key, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::object::Registered;
use rufous_datatype::set::{self, Set};
use rufous_datatype::sorted_set::{self, Only, SortedSet};
use rufous_lattice::Stamp;
use rufous_lattice::stamp::COUNTER_BITS;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&[u8]; 4] = [b"a", b"b", b"", b"a longer name"];

/// The state of an element: additions, and which of them a removal has seen; the last write.
#[derive(Clone, Debug, Default)]
struct Element {
    added: BTreeSet<Stamp>,
    removed: BTreeSet<Stamp>,
    last: (Stamp, Option<u64>),
}

impl Element {
    /// Additions that no removal has seen; a removal that has seen a later addition of a replica removes its earlier
    /// ones, too.
    fn live(&self) -> BTreeSet<Stamp> {
        let seen = |s: &Stamp| {
            let mut removed = self.removed.iter();
            removed.any(|r| r.replica == s.replica && r >= s)
        };
        self.added.iter().filter(|s| !seen(s)).copied().collect()
    }
}

/// When a key expires: of several deadlines, the last one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Deadline {
    set: Stamp,
    /// Everything written below it has gone.
    cut: Stamp,
    unix_ms: u64,
}

impl Deadline {
    fn pass(&mut self) {
        if self.unix_ms > 0 {
            let time = (self.unix_ms * 1000) << COUNTER_BITS;
            self.set = self.set.expired();
            self.cut = self.set.max(Stamp {
                time,
                ..Stamp::ZERO
            });
            self.unix_ms = 0;
        }
    }
}

/// A key's elements, all of one of three types, and its deadline.
#[derive(Clone, Debug, Default)]
struct Members(BTreeMap<Vec<u8>, Element>, Deadline);

impl Members {
    fn has(&self, name: &[u8]) -> bool {
        let live = self.0.get(name).map(Element::live).unwrap_or_default();
        live.iter().any(|&stamp| stamp >= self.1.cut)
    }

    fn value(&self, name: &[u8]) -> Option<u64> {
        let (stamp, value) = self.0.get(name)?.last;
        value.filter(|_| stamp >= self.1.cut)
    }

    /// The delta of an element's removal, if the element is present.
    fn removal(&self, key: Key<'_>, name: &[u8], stamp: Stamp) -> Element {
        match (key.bytes, self.0.get(name)) {
            (b"a", Some(element)) if self.has(name) => {
                // Earlier removals are not sent again.
                let live = element.live();
                Element {
                    added: live.clone(),
                    removed: live,
                    ..Element::default()
                }
            }
            (b"b" | b"c", Some(_)) if self.value(name).is_some() => Element {
                last: (stamp, None),
                ..Element::default()
            },
            _ => Element::default(),
        }
    }
}

fn text(value: u64) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// An operation on the key's collection; returns its reply.
fn apply<T: Registered>(shard: &mut Shard, key: Key<'_>, op: &T::Op<'_>, now: Now) -> T::Reply {
    let reply = shard.update::<T, _>(0, key, now, |editor| editor.apply(op));
    reply.expect("keys keep to their types")
}

fn put(shard: &mut Shard, key: Key<'_>, name: &[u8], value: u64, now: Now) {
    match key.bytes {
        b"a" => {
            apply::<Set>(shard, key, &set::Op::Add { member: name }, now);
        }
        b"b" => {
            let value = &text(value);
            apply::<Hash>(shard, key, &hash::Op::Set { field: name, value }, now);
        }
        _ => {
            let op = sorted_set::Op::Add {
                member: name,
                score: value as f64,
                only: Only::default(),
            };
            apply::<SortedSet>(shard, key, &op, now);
        }
    }
}

fn take(shard: &mut Shard, key: Key<'_>, member: &[u8], now: Now) {
    match key.bytes {
        b"a" => {
            apply::<Set>(shard, key, &set::Op::Remove { member }, now);
        }
        b"b" => {
            apply::<Hash>(shard, key, &hash::Op::Delete { field: member }, now);
        }
        _ => {
            apply::<SortedSet>(shard, key, &sorted_set::Op::Remove { member }, now);
        }
    }
}

impl Model for Members {
    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self {
        let Write { stamp, now, rng } = write;
        let name = NAMES[rng.below(4) as usize];
        let mut told = Members::default();
        let was_there = self.shows(key);
        match rng.below(11) {
            0 => {
                assert_eq!(shard.remove(0, key, now), was_there);
                for name in NAMES {
                    told.0.insert(name.to_vec(), self.removal(key, name, stamp));
                }
            }
            1..4 => {
                take(shard, key, name, now);
                told.0.insert(name.to_vec(), self.removal(key, name, stamp));
            }
            4..6 => {
                let at = match rng.below(3) {
                    0 => None,
                    _ => Some(now.unix_ms() + rng.below(30)),
                };
                assert_eq!(shard.set_expire_at(0, key, at, now), was_there);
                if was_there {
                    told.1 = self.set(stamp, at.unwrap_or(0));
                }
            }
            _ => {
                let value = rng.below(1000);
                put(shard, key, name, value, now);
                let element = Element {
                    added: BTreeSet::from([stamp]),
                    removed: BTreeSet::new(),
                    last: (stamp, Some(value)),
                };
                told.0.insert(name.to_vec(), element);
            }
        }
        self.merge(&told, 0);
        // A key that was removed has no deadline when it is created again.
        if self.1.unix_ms > 0 && told.1 == Deadline::default() {
            let is_new = !was_there && self.shows(key);
            if is_new || was_there && !self.shows(key) {
                told.1 = self.set(stamp, 0);
                self.merge(&told, 0);
            }
        }
        told
    }

    fn merge(&mut self, other: &Self, _: u64) {
        if other.1 > self.1 {
            self.1 = other.1;
        }
        for (name, theirs) in &other.0 {
            let mine = self.0.entry(name.clone()).or_default();
            mine.added.extend(&theirs.added);
            mine.removed.extend(&theirs.removed);
            mine.last = mine.last.max(theirs.last);
        }
    }

    fn expire(&mut self, now: Now) {
        if (1..=now.unix_ms()).contains(&self.1.unix_ms) {
            self.1.pass();
        }
    }

    /// Stamps are unique: what is forgotten here cannot arrive again.
    fn forget(&mut self, _: u64) {}

    fn shown(&self) -> String {
        let all = NAMES.map(|name| (self.has(name), self.value(name)));
        format!("{all:?}")
    }

    fn check(&self, shard: &mut Shard, key: Key<'_>, now: Now) {
        let mut seen = BTreeSet::new();
        for name in NAMES {
            let value = match key.bytes {
                b"a" => {
                    let view = shard.collection::<Set>(0, key, now).expect("a set");
                    let is_there = view.is_some_and(|view| view.contains(name));
                    assert_eq!(is_there, self.has(name), "{self:?}");
                    is_there.then_some(0)
                }
                b"b" => {
                    let view = shard.collection::<Hash>(0, key, now).expect("a hash");
                    let value = view.and_then(|view| view.get(name).map(<[u8]>::to_vec));
                    assert_eq!(value, self.value(name).map(text), "{self:?}");
                    value.map(|_| 0)
                }
                _ => {
                    let view = shard.collection::<SortedSet>(0, key, now);
                    let score = view
                        .expect("a sorted set")
                        .and_then(|view| view.score(name));
                    assert_eq!(score, self.value(name).map(|v| v as f64), "{self:?}");
                    score.map(|_| 0)
                }
            };
            seen.extend(value.map(|_| name));
        }
        let len = shard.look(0, key, now).map_or(0, |any| any.len());
        assert_eq!(len, seen.len());
        let at = shard.expire_at(0, key, now);
        let expected = Some(self.1.unix_ms).filter(|&at| at > 0);
        assert_eq!(at, (len > 0).then_some(expected), "{self:?}");
    }
}

impl Members {
    fn set(&self, stamp: Stamp, unix_ms: u64) -> Deadline {
        Deadline {
            set: stamp,
            unix_ms,
            ..self.1
        }
    }

    fn shows(&self, key: Key<'_>) -> bool {
        NAMES.iter().any(|name| match key.bytes {
            b"a" => self.has(name),
            _ => self.value(name).is_some(),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn replicas_show_what_they_have_heard_and_converge(seed in any::<u64>(), steps in 1usize..400) {
        run::<Members>(seed, steps);
    }
}

/// A replica that has not yet forgotten what has gone with a deadline sends all its state to one that has, and has
/// set another deadline.
#[test]
fn what_has_gone_is_not_taken_from_who_has_not_forgotten_it() {
    run::<Members>(18128277331115119272, 102);
    run::<Members>(12047141830199472562, 128);
}

/// A second deadline has passed after one whose cut all have received, and one replica has forgotten that and sets a
/// third: what had gone with the first is not restored.
#[test]
fn what_has_gone_with_an_earlier_deadline_stays_away() {
    run::<Members>(10001142019466114815, 154);
    run::<Members>(13176918093400430367, 150);
}

/// A collection's deadline has passed and is forgotten, with what has gone with it; the key is created again and
/// given another deadline; then there is a power failure. Logs have the earlier elements, and the later deadline,
/// which wins, has no cut.
#[test]
fn deadlines_that_are_forgotten_stay_so_over_a_restart() {
    for (seed, steps) in [(9743594270989885084, 250), (10708029176082708658, 133)] {
        run::<Members>(seed, steps);
    }
}

/// Removals from a small set are in its record, until all replicas have received them.
#[test]
fn small_sets_forget_what_was_removed() {
    let mut shard = Shard::new(1);
    shard
        .lattice_mut()
        .set_keying(Some(std::sync::Arc::new(super::replicas::All)));
    let now = Now {
        mono_us: 1,
        unix_us: 1,
    };
    let key = shard.key(b"s");
    let mut clock = rufous_lattice::Clock::new(1);
    let stamp = clock.tick(1);
    shard.begin_lattice(rufous_datatype::replicated::Writer { stamp });
    let edit = shard.update::<Set, _>(0, key, now, |editor| {
        for member in [&b"a"[..], b"b", b"c"] {
            editor.apply(&set::Op::Add { member });
        }
        editor.apply(&set::Op::Remove { member: b"b" });
    });
    assert!(edit.is_ok() && shard.end_lattice().is_some());
    let known = |shard: &mut Shard| {
        let mut bytes = Vec::new();
        shard.show_replica(0, key, now, &mut |_, chunk| bytes.extend_from_slice(chunk));
        bytes.windows(2).filter(|entry| entry == b"\x01b").count()
    };
    assert_eq!(shard.memory().big_bytes, 0, "it lies in its record");
    shard.forget_step(stamp.time - 1, 10);
    assert_eq!(known(&mut shard), 1);
    shard.forget_step(stamp.time, 10);
    assert_eq!(known(&mut shard), 0);
    assert!(!shard.forget_step(stamp.time, 10) && shard.memory().graves == 0);
    shard.check();
}

/// A worker asks in every turn; no database is looked at once there was nothing, until one gets something.
#[test]
fn what_is_to_be_forgotten_is_found_again_after_there_was_nothing() {
    let (mut shard, now) = (Shard::new(7), Now::default());
    shard
        .lattice_mut()
        .set_keying(Some(std::sync::Arc::new(super::replicas::All)));
    let mut clock = rufous_lattice::Clock::new(1);
    assert!(!shard.has_to_forget());
    for (db, name) in [(0, b"a"), (3, b"b"), (0, b"c")] {
        let stamp = clock.tick(1);
        let key = shard.key(name);
        shard.begin_lattice(rufous_datatype::replicated::Writer { stamp });
        let edit = shard.update::<Set, _>(db, key, now, |editor| {
            editor.apply(&set::Op::Add { member: b"m" });
            editor.apply(&set::Op::Remove { member: b"m" });
        });
        assert!(edit.is_ok() && shard.end_lattice().is_some());
        shard.check();
        assert!(shard.has_to_forget(), "database {db}");
        while shard.forget_step(clock.last(), 1) {}
        assert!(!shard.has_to_forget());
        shard.check();
    }
}
