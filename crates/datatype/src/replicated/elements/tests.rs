//! Replicated collections, in practical cases and at random.

use super::*;
use crate::algebra::{DataType, Packing};
use crate::hash::{self, Hash};
use crate::object::{Object, Registered, Tag};
use crate::replicated::shared_hash::SharedHash;
use crate::replicated::shared_set::SharedSet;
use crate::replicated::shared_sorted_set::SharedSortedSet;
use crate::replicated::{Forgotten, Refused, apply};
use crate::set::{self, Set};
use crate::sorted_set::{self, Only, SortedSet, Zone};
use rufous_lattice::{Lattice, laws};

/// A replica: its operations are sent to others unchanged.
pub(super) struct Replica {
    pub(super) object: Object,
    pub(super) writer: Writer,
}

impl Replica {
    pub(super) fn two(tag: Tag) -> [Replica; 2] {
        [1, 2].map(|replica| Replica {
            object: tag.empty(),
            writer: Writer {
                stamp: Stamp::new(1, replica),
            },
        })
    }

    pub(super) fn run<T: DataType>(
        &mut self,
        op: &T::Op<'_>,
    ) -> (Result<T::Reply, Refused>, Vec<u8>) {
        let mut ops = Vec::new();
        let (object, writer) = (&mut self.object, &mut self.writer);
        let reply = apply::<T>(object, op, writer, &Tuning::default(), &mut ops);
        (reply, ops)
    }

    pub(super) fn hear(&mut self, ops: &[u8]) {
        let heard = self.object.commit_encoded(ops, &Tuning::default());
        heard.unwrap();
    }

    pub(super) fn delete(&mut self) -> Vec<u8> {
        let mut ops = Vec::new();
        self.writer.stamp.time += 10;
        self.object.encode_delete(&self.writer, &mut ops);
        self.hear(&ops);
        ops
    }
}

/// Both apply an operation concurrently; then they exchange them.
fn both<T: DataType>(replicas: &mut [Replica; 2], ops: [T::Op<'_>; 2]) {
    let [a, b] = replicas;
    let (at_a, at_b) = (a.run::<T>(&ops[0]), b.run::<T>(&ops[1]));
    assert!(at_a.0.is_ok() && at_b.0.is_ok());
    a.hear(&at_b.1);
    b.hear(&at_a.1);
    b.hear(&at_a.1);
    assert_eq!(a.object, b.object);
}

fn members(replica: &Replica) -> set::Reply {
    let inside = Set::REPLICATE.unwrap().inside;
    Set::execute(inside(&replica.object).unwrap(), &set::Op::Members)
}

#[test]
fn sets_keep_what_is_added_while_it_is_removed() {
    use set::Op::{Add, Remove};
    let mut replicas = Replica::two(Tag::SharedSet);
    let (x, y) = (&b"x"[..], &b"y"[..]);
    both::<Set>(&mut replicas, [Add { member: x }, Add { member: y }]);
    assert_eq!(replicas[0].object.len(), 2);
    both::<Set>(&mut replicas, [Add { member: x }, Remove { member: x }]);
    assert_eq!(replicas[0].object.len(), 2);
    both::<Set>(&mut replicas, [Add { member: y }, Remove { member: x }]);
    let all = set::Reply::Members([y.to_vec()].into());
    assert_eq!(members(&replicas[0]), all);
    assert_eq!(members(&replicas[1]), all);
    let [a, _] = &mut replicas;
    assert_eq!(
        a.run::<Set>(&Add { member: y }).0,
        Ok(set::Reply::Bool(false))
    );
    assert_eq!(
        a.run::<Set>(&Remove { member: x }),
        (Ok(set::Reply::Bool(false)), vec![])
    );
}

#[test]
fn hashes_add_up_increments_and_refuse_conditions() {
    use hash::Op::{Get, Increment, IncrementFloat, Set as Write, SetNew};
    let mut replicas = Replica::two(Tag::SharedHash);
    let field = &b"f"[..];
    both::<Hash>(
        &mut replicas,
        [Increment { field, by: 5 }, Increment { field, by: -2 }],
    );
    let (reply, _) = replicas[0].run::<Hash>(&Increment { field, by: 1 });
    assert_eq!(reply, Ok(hash::Reply::Integer(Ok(4))));
    let mut replicas = Replica::two(Tag::SharedHash);
    both::<Hash>(
        &mut replicas,
        [
            Write { field, value: b"1" },
            Write {
                field,
                value: b"10.5",
            },
        ],
    );
    let float = |by| IncrementFloat { field, by };
    both::<Hash>(&mut replicas, [float(b"0.1"), float(b"1")]);
    for replica in &mut replicas {
        let get = replica.run::<Hash>(&Get { field });
        let value = Some(b"11.6".to_vec());
        assert_eq!(get, (Ok(hash::Reply::Value(value)), vec![]));
        let refused = replica.run::<Hash>(&SetNew { field, value: b"" });
        assert!(refused.0.is_err() && refused.1.is_empty());
        let wrong = replica.run::<Hash>(&Increment { field, by: 1 });
        assert!(matches!(wrong.0, Ok(hash::Reply::Integer(Err(_)))) && wrong.1.is_empty());
    }
}

#[test]
fn two_writes_of_one_field_in_one_command_are_in_order() {
    let mut replicas = Replica::two(Tag::SharedHash);
    let [a, b] = &mut replicas;
    let write = |value| hash::Op::Set { field: b"f", value };
    let (_, first) = a.run::<Hash>(&write(b"9"));
    let (_, second) = a.run::<Hash>(&write(b"1"));
    b.hear(&second);
    b.hear(&first);
    assert_eq!(a.object, b.object);
    let reply = b.run::<Hash>(&hash::Op::Get { field: b"f" }).0;
    assert_eq!(reply, Ok(hash::Reply::Value(Some(b"1".to_vec()))));
}

#[test]
fn sorted_sets_add_up_increments_and_remove_ranges() {
    use sorted_set::Op::{Add, Increment, RemoveRange};
    let mut replicas = Replica::two(Tag::SharedSortedSet);
    let (member, only) = (&b"m"[..], Only::default());
    let add = |score| Add {
        member,
        score,
        only,
    };
    let by = |by| Increment { member, by, only };
    both::<SortedSet>(&mut replicas, [add(1.0), add(2.0)]);
    both::<SortedSet>(&mut replicas, [by(0.5), by(4.0)]);
    let score = |replica: &Replica| {
        let inside = SortedSet::REPLICATE.unwrap().inside;
        inside(&replica.object).unwrap().score(member)
    };
    assert_eq!(score(&replicas[0]), Some(6.5));
    let refused = replicas[0].run::<SortedSet>(&Add {
        member,
        score: 9.0,
        only: Only {
            greater: true,
            ..only
        },
    });
    assert!(refused.0.is_err() && refused.1.is_empty());
    for replica in &mut replicas {
        replica.writer.stamp.time = 5;
    }
    both::<SortedSet>(
        &mut replicas,
        [RemoveRange { zone: Zone::ALL }, by(f64::INFINITY)],
    );
    assert_eq!(score(&replicas[1]), None);
    assert!(replicas[0].object.is_hidden());
}

#[test]
fn tombstones_go_when_all_are_past_them_and_not_before() {
    for tag in [Tag::SharedSet, Tag::SharedHash, Tag::SharedSortedSet] {
        let [mut a, mut b] = Replica::two(tag);
        let mut told = Vec::new();
        for number in 0..300u32 {
            let name = &number.to_be_bytes()[..];
            let (_, ops) = match tag {
                Tag::SharedSet => {
                    let ran = a.run::<Set>(&set::Op::Add { member: name });
                    (ran.0.is_ok(), ran.1)
                }
                Tag::SharedHash => {
                    let ran = a.run::<Hash>(&hash::Op::Increment { field: name, by: 1 });
                    (ran.0.is_ok(), ran.1)
                }
                _ => {
                    let (score, only) = (1.0, Only::default());
                    let ran = a.run::<SortedSet>(&sorted_set::Op::Add {
                        member: name,
                        score,
                        only,
                    });
                    (ran.0.is_ok(), ran.1)
                }
            };
            told.extend(ops);
        }
        b.hear(&told);
        assert_eq!((b.object.len(), b.object.is_hidden()), (300, false));
        assert_eq!(b.object.forget(u64::MAX, 1000), Forgotten::Kept);
        let empty = tag.empty().heap_bytes();
        let gone = b.delete();
        a.hear(&gone);
        assert_eq!(a.object, b.object);
        a.hear(&told);
        assert!(a.object.is_hidden() && !a.object.is_empty());
        let newest = a.object.newest();
        assert_eq!(newest.time, b.writer.stamp.time);
        assert_eq!(a.object.forget(newest.time - 1, 1000), Forgotten::Kept);
        assert_eq!(a.object.forget(newest.time, 200), Forgotten::More);
        assert_eq!(a.object.forget(newest.time, 200), Forgotten::Empty);
        assert!(a.object.is_empty());
        assert!(
            a.object.heap_bytes() < empty + 16_384,
            "{}",
            a.object.heap_bytes()
        );
    }
}

/// Limits of packed states: as many elements as the samples have, or one, or none.
fn few_packed(seed: u64) -> Tuning {
    let entries = [128, 1, 0][seed as usize % 3];
    let packing = Packing { entries, bytes: 64 };
    Tuning {
        hash: packing,
        set: packing,
        sorted_set: packing,
        ..Tuning::default()
    }
}

/// Table, view and tombstones agree after any sequence of merges and forgetting.
fn parts_agree<E: Element>() {
    let check = |state: &mut State<PlainState<E>>| {
        state.change::<E, _>(|inner| inner.check::<E>());
    };
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut state = Elements::<E>::empty();
        let tuning = few_packed(seed);
        for _ in 0..60 {
            let op = Elements::<E>::sample_op(&mut rng);
            Elements::<E>::commit(&mut state, &op, &tuning);
            check(&mut state);
            if rng.below(8) == 0 {
                let (horizon, budget) = (rng.below(4), rng.below(4) as usize);
                let left = state.change::<E, _>(|inner| inner.forget::<E>(horizon, budget));
                check(&mut state);
                let is_empty = Elements::<E>::is_empty(state.view());
                assert_eq!(
                    left == Forgotten::Empty,
                    is_empty && left != Forgotten::More
                );
            }
        }
    }
}

#[test]
fn parts_of_collections_agree() {
    parts_agree::<crate::replicated::shared_set::Member>();
    parts_agree::<crate::replicated::shared_hash::Field>();
    parts_agree::<crate::replicated::shared_sorted_set::Ranked>();
}

/// Operations on a single write without its value have the same result as on values.
fn single_writes_are_as_values<E: Element>() {
    type Single = Option<(Stamp, Vec<u8>)>;
    let of = |stamp, shown: Shown<'_, E>| Some((stamp, E::written(stamp, shown).encoded()));
    let quick = |bytes: &[u8]| -> Single {
        let (stamp, shown) = E::write_of(bytes)?;
        of(stamp, shown)
    };
    let slow = |value: &E::Value| -> Single {
        let stamp = E::single(value)?;
        let shown = E::with_shown(value, |shown| of(stamp, shown))??;
        assert_eq!(shown.1, value.encoded(), "nothing else is in it");
        Some(shown)
    };
    let samples = E::samples();
    let sample = |draw: &mut laws::Draw| {
        let bytes = &samples[draw.below(samples.len() as u64) as usize];
        E::Value::decode(bytes).unwrap()
    };
    laws::check_reading(600, 1, sample, quick, slow).unwrap();
    let writes = || {
        samples
            .iter()
            .filter_map(|bytes| Some((E::write_of(bytes)?.0, bytes)))
    };
    assert!(writes().count() > 2);
    for (old, mine) in writes() {
        for (new, theirs) in writes() {
            let Some(replaces) = E::replaces(old, new) else {
                continue;
            };
            let mut merged = E::Value::decode(mine).unwrap();
            let changed = merged.merge(&E::Value::decode(theirs).unwrap());
            assert_eq!(changed, replaces);
            assert_eq!(&merged.encoded(), if replaces { theirs } else { mine });
        }
    }
}

#[test]
fn single_writes_of_all_collections_are_as_values() {
    single_writes_are_as_values::<crate::replicated::shared_set::Member>();
    single_writes_are_as_values::<crate::replicated::shared_hash::Field>();
    single_writes_are_as_values::<crate::replicated::shared_sorted_set::Ranked>();
}

#[test]
fn what_came_from_elsewhere_is_looked_at() {
    let ops: [&[u8]; 4] = [
        b"\x01a",
        b"\x01a\x01\x07",
        b"\x01a\x00",
        b"\x01a\x02\x00\x00",
    ];
    for bytes in ops {
        assert_eq!(SharedSet::decode(&mut &*bytes).err(), Some(Corrupt));
        assert_eq!(SharedHash::decode(&mut &*bytes).err(), Some(Corrupt));
        assert_eq!(SharedSortedSet::decode(&mut &*bytes).err(), Some(Corrupt));
        let mut state = SharedSet::empty();
        assert!(SharedSet::extend(&mut state, bytes, &Tuning::default()).is_err());
    }
}

/// Whatever is received as a part of a collection, or as operations on it: parts agree, what is read of it is in
/// them, and it can be encoded and decoded. Packed bytes are never received; as a part they are any bytes.
fn any_bytes_keep_parts_in_agreement<E: Element>() {
    let mut draw = laws::Draw::new(7);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let tuning = few_packed(seed);
        let mut state = Elements::<E>::empty();
        for _ in 0..8 {
            let other = Elements::<E>::sample_state(&mut rng);
            let mut bytes = Vec::new();
            match (draw.below(4), Elements::<E>::packed(&other)) {
                (0, Some(packed)) => bytes.extend_from_slice(packed),
                _ => drop(Elements::<E>::chunk(other.view(), 0, 1000, &mut bytes)),
            }
            if draw.below(3) > 0 {
                bytes = laws::spoil(&bytes, &mut draw);
            }
            let _ = Elements::<E>::extend(&mut state, &bytes, &tuning);
            let mut rest = &bytes[..];
            while let Ok(op) = Elements::<E>::decode(&mut rest) {
                Elements::<E>::commit(&mut state, &op, &tuning);
            }
            let horizon = draw.below(6);
            state.change::<E, _>(|inner| inner.forget::<E>(horizon, 3));
            state.change::<E, _>(|inner| inner.check::<E>());
            let mut copy = Elements::<E>::empty();
            let mut at = Some(0);
            while let Some(from) = at {
                let mut chunk = Vec::new();
                at = Elements::<E>::chunk(state.view(), from, 40, &mut chunk);
                Elements::<E>::extend(&mut copy, &chunk, &tuning).unwrap();
            }
            let canonical = |state: &State<_>| Elements::<E>::canonical(state.view());
            assert_eq!(canonical(&copy), canonical(&state));
        }
    }
}

#[test]
fn any_bytes_keep_parts_of_collections_in_agreement() {
    any_bytes_keep_parts_in_agreement::<crate::replicated::shared_set::Member>();
    any_bytes_keep_parts_in_agreement::<crate::replicated::shared_hash::Field>();
    any_bytes_keep_parts_in_agreement::<crate::replicated::shared_sorted_set::Ranked>();
}

/// A member written once needs only its stamp more than a plain one, small or large.
#[test]
fn an_element_takes_its_stamp_and_little_more() {
    for (len, most) in [(20, 13), (100, 13), (5000, 16)] {
        let [mut a, _] = Replica::two(Tag::SharedSet);
        let mut plain = Tag::Set.empty();
        for number in 0..len {
            let member = format!("member{number}");
            let member = member.as_bytes();
            let ran = a.run::<Set>(&set::Op::Add { member });
            assert!(ran.0.is_ok());
            let mut op = Vec::new();
            Set::encode(&set::Op::Add { member }, &mut op);
            plain.commit_encoded(&op, &Tuning::default()).unwrap();
        }
        let bytes = |object: &Object| object.packed().map_or(0, <[u8]>::len) + object.heap_bytes();
        assert_eq!(a.object.packed().is_some(), len < 1000);
        let (shared, plain) = (bytes(&a.object), bytes(&plain));
        assert!(shared < plain + len * most, "{shared}, {plain}");
        // A copy of the shown collection has no stamps.
        let inside = SharedSet::plain(SharedSet::of(&a.object).unwrap());
        let copy = Object::Set(inside.to_table());
        assert!(bytes(&copy) < plain + len * 2, "{}", bytes(&copy));
    }
}

/// A large collection expires and is restored as a whole.
#[test]
fn large_collections_go_and_come_back() {
    fn deadline(replica: &mut Replica, time: u64, at: u64) -> Vec<u8> {
        let mut ops = Vec::new();
        replica.writer.stamp.time = time;
        let writer = replica.writer;
        replica
            .object
            .encode_deadline(at, &writer, &mut ops)
            .unwrap();
        replica.hear(&ops);
        ops
    }
    let [mut a, mut b] = Replica::two(Tag::SharedHash);
    let mut told = Vec::new();
    for number in 0..1000u32 {
        let field = &number.to_be_bytes()[..];
        told.extend(a.run::<Hash>(&hash::Op::Set { field, value: b"v" }).1);
        if number % 8 == 0 {
            told.extend(a.run::<Hash>(&hash::Op::Increment { field: b"n", by: 1 }).1);
        }
        if number % 9 == 0 {
            told.extend(a.run::<Hash>(&hash::Op::Delete { field }).1);
        }
    }
    told.extend(deadline(&mut a, 1 << 30, 1000));
    b.hear(&told);
    let len = a.object.len();
    let extended = deadline(&mut b, 2 << 30, 5000);
    let mut pass = Vec::new();
    a.object.encode_expiry(&mut pass);
    a.hear(&pass);
    assert!(a.object.is_hidden() && !a.object.is_empty());
    // One of them is written again, and another one incremented.
    a.writer.stamp.time = 1 << 50;
    let field = &5u32.to_be_bytes()[..];
    let new = a.run::<Hash>(&hash::Op::Set { field, value: b"w" }).1;
    let mut chunks = (Vec::new(), Some(0));
    while let Some(at) = chunks.1 {
        let mut chunk = Vec::new();
        chunks.1 = a.object.chunk(at, 300, &mut chunk);
        chunks.0.push(chunk);
    }
    let mut copy = Tag::SharedHash.empty();
    for chunk in &chunks.0 {
        copy.extend(chunk, &Tuning::default()).unwrap();
    }
    assert_eq!(copy, a.object);
    assert_eq!((copy.len(), a.object.len()), (1, 1));
    let mut gone = a.object.clone();
    gone.forget(u64::MAX, 10_000);
    assert!((gone.len(), gone.heap_bytes()) == (1, 0), "{gone:?}");
    a.hear(&extended);
    b.hear(&new);
    assert_eq!((a.object.len(), b.object.len()), (len, len));
    assert_eq!(a.object, b.object);
}
