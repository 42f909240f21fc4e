//! Values of two types at one key: the one of the higher tag stays at all replicas, in whatever order they hear of them.

use super::replicas::All;
use crate::shard::{ExpirySetting, NewValue, Shard};
use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_datatype::set::{self, Set};
use rufous_lattice::laws::{self, Draw};
use rufous_lattice::{Lattice, Stamp};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOW: Now = Now {
    mono_us: 5_000_000,
    unix_us: 5_000_000,
};

fn shard() -> Shard {
    let mut shard = Shard::new(1);
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    shard
}

/// A replica's state of one key, as others are sent it.
#[derive(Clone, Debug, Default)]
struct State(Vec<(Tag, Vec<u8>)>);

impl State {
    fn of(shard: &mut Shard) -> Self {
        let (key, mut chunks) = (shard.key(b"k"), Vec::new());
        shard.show_replica(0, key, NOW, &mut |tag, chunk| {
            chunks.push((tag, chunk.to_vec()));
        });
        Self(chunks)
    }

    fn give(&self, shard: &mut Shard) {
        let key = shard.key(b"k");
        for (tag, chunk) in &self.0 {
            let done = shard.merge(0, key, *tag, chunk, NOW);
            assert!(done.is_ok(), "a state");
        }
    }

    /// The type, and what is shown: the order of elements in a chunk is that of their arrival.
    fn shown(&self) -> (Option<Tag>, BTreeSet<Vec<u8>>) {
        let mut shard = shard();
        self.give(&mut shard);
        let key = shard.key(b"k");
        let mut all = BTreeSet::new();
        if let Ok(Some(members)) = shard.collection::<Set>(0, key, NOW) {
            members.each(|member, _| {
                all.insert(member.to_vec());
            });
        } else if let Ok(Some(fields)) = shard.collection::<Hash>(0, key, NOW) {
            fields.each(|field, value| {
                all.insert([field, value].concat());
            });
        } else if let Ok(Some(text)) = shard.peek(0, key, NOW) {
            all.insert(text.bytes().to_vec());
        }
        (self.0.first().map(|(tag, _)| *tag), all)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.shown() == other.shown()
    }
}

impl Lattice for State {
    fn merge(&mut self, other: &Self) -> bool {
        let mut shard = shard();
        self.give(&mut shard);
        other.give(&mut shard);
        shard.check();
        let merged = Self::of(&mut shard);
        let has_changed = merged != *self;
        *self = merged;
        has_changed
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Members,
    Fields,
}

/// One write of this kind, under a stamp; `word`: what is written; `None`: the key is deleted.
fn write(shard: &mut Shard, kind: Kind, stamp: Stamp, word: Option<&[u8]>) {
    let key = shard.key(b"k");
    shard.begin_lattice(Writer { stamp });
    match (word, kind) {
        (None, _) => {
            shard.remove(0, key, NOW);
        }
        (Some(word), Kind::Text) => {
            shard.set(0, key, NewValue::Copy(word), ExpirySetting::Clear, NOW);
        }
        (Some(member), Kind::Members) => {
            let op = set::Op::Add { member };
            let done = shard.update::<Set, _>(0, key, NOW, |editor| editor.apply(&op));
            assert!(done.is_ok());
        }
        (Some(field), Kind::Fields) => {
            let op = hash::Op::Set { field, value: b"v" };
            let done = shard.update::<Hash, _>(0, key, NOW, |editor| editor.apply(&op));
            assert!(done.is_ok());
        }
    }
    let ended = shard.end_lattice().expect("begun");
    assert_eq!(ended.refused, None);
}

/// A few writes of one kind. The stamps of all states come from few times and replicas, none of them twice.
fn state(draw: &mut Draw, next: &mut u64) -> State {
    let kinds = [Kind::Text, Kind::Members, Kind::Fields];
    let mut at = draw.below(3) as usize;
    let mut shard = shard();
    for _ in 0..=draw.below(4) {
        *next += 1;
        let stamp = Stamp::new(1_000 + *next, 1 + draw.below(3) as u16);
        let words: [&[u8]; 3] = [b"a", b"b", b"c"];
        let word = words.get(draw.below(4) as usize).copied();
        write(&mut shard, kinds[at], stamp, word);
        if word.is_none() && at < 2 {
            at += draw.below(2) as usize;
        }
    }
    State::of(&mut shard)
}

#[test]
fn a_key_is_a_lattice_whatever_types_are_written_to_it() {
    let mut next = 0;
    laws::check(30, 1, |draw| state(draw, &mut next)).unwrap();
}

#[test]
fn after_a_deletion_a_later_type_is_written_at_once() {
    let (mut here, mut there, mut log) = (shard(), shard(), shard());
    here.observers_mut().set_journaling(true);
    write(&mut here, Kind::Text, Stamp::new(1_001, 1), Some(b"a"));
    State::of(&mut here).give(&mut there);
    write(&mut here, Kind::Text, Stamp::new(1_002, 1), None);
    write(&mut here, Kind::Members, Stamp::new(1_003, 1), Some(b"b"));
    here.check();
    let is = (Some(Tag::SharedSet), BTreeSet::from([b"b".to_vec()]));
    assert_eq!(State::of(&mut here).shown(), is);
    // Neither the earlier string nor a later one changes that elsewhere.
    let late = State::of(&mut there);
    State::of(&mut here).give(&mut there);
    late.give(&mut there);
    write(&mut log, Kind::Text, Stamp::new(1_009, 2), Some(b"c"));
    State::of(&mut log).give(&mut there);
    assert_eq!(State::of(&mut there).shown(), is);
    assert_eq!(there.counters().types_lost, 1);
    // Nor does the log.
    let mut again = shard();
    super::journal::replay(&mut again, &here.journal().clone());
    assert_eq!(State::of(&mut again).shown(), is);
    // An earlier type has to wait.
    write(&mut here, Kind::Members, Stamp::new(1_010, 1), None);
    let key = here.key(b"k");
    here.begin_lattice(Writer {
        stamp: Stamp::new(1_011, 1),
    });
    here.set(0, key, NewValue::Copy(b"d"), ExpirySetting::Clear, NOW);
    let ended = here.end_lattice().expect("begun");
    assert!(ended.refused.is_some());
    here.check();
}

#[test]
fn the_replica_whose_value_makes_way_counts_that() {
    for is_deleted in [false, true] {
        let (mut text, mut members) = (shard(), shard());
        write(&mut text, Kind::Text, Stamp::new(1_009, 1), Some(b"a"));
        if is_deleted {
            write(&mut text, Kind::Text, Stamp::new(1_010, 1), None);
        }
        write(
            &mut members,
            Kind::Members,
            Stamp::new(1_001, 2),
            Some(b"b"),
        );
        let (of_text, of_members) = (State::of(&mut text), State::of(&mut members));
        of_text.give(&mut members);
        // Once more does not count again.
        of_members.give(&mut text);
        of_members.give(&mut text);
        assert_eq!(text.counters().types_lost, u64::from(!is_deleted));
        assert_eq!(members.counters().types_lost, 0);
        assert_eq!(State::of(&mut text), State::of(&mut members));
        assert_eq!(State::of(&mut text).shown().0, Some(Tag::SharedSet));
    }
}
