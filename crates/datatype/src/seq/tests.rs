//! A sequence against a vector and a sorted set, with its invariants looked up after each step.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

type Model = Vec<Vec<u8>>;

fn same(seq: &Seq, model: &Model) {
    seq.check();
    assert_eq!(seq.len(), model.len());
    assert!(
        seq.iter().eq(model.iter().map(Vec::as_slice)),
        "items forward"
    );
    assert!(
        seq.iter_back_from(usize::MAX)
            .eq(model.iter().rev().map(Vec::as_slice)),
        "items backward"
    );
}

/// Deterministic numbers for workloads; proptest chooses the seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below.max(1)
    }

    fn item(&mut self) -> Vec<u8> {
        let length = match self.roll(40) {
            0 => 0,
            1 => 1_000 + self.roll(60),
            2 => 100 + self.roll(60),
            3 if self.roll(20) == 0 => 100_000,
            _ => self.roll(24),
        };
        let seed = self.roll(256) as u8;
        (0..length)
            .map(|index| seed.wrapping_add(index as u8))
            .collect()
    }
}

fn step(seq: &mut Seq, model: &mut Model, dice: &mut Dice, growth: usize) {
    let (len, item) = (model.len(), dice.item());
    let (at, other) = (dice.roll(len + 1), dice.roll(len + 1));
    match dice.roll(10 + growth) {
        0 => assert_eq!(seq.pop_back(), model.pop()),
        1 => {
            let first = (!model.is_empty()).then(|| model.remove(0));
            assert_eq!(seq.pop_front(), first);
        }
        2 | 3 => {
            let there = (at < len).then(|| model.remove(at));
            assert_eq!(seq.remove(at), there);
        }
        4 | 5 => {
            assert_eq!(seq.replace(at, &item), at < len);
            if at < len {
                model[at] = item;
            }
        }
        6 if dice.roll(20) == 0 => {
            let (start, end) = (at.min(other), at.max(other));
            let parts = seq.keep(start..end);
            parts.iter().for_each(Seq::check);
            model.truncate(end);
            model.drain(..start);
        }
        7 if dice.roll(4) == 0 => {
            let end = (at + other / 4).min(len);
            let removed = seq.remove_range(at..end);
            let drained: Model = model.drain(at..end).collect();
            assert!(removed.is_empty() || removed.iter().eq(drained.iter().map(Vec::as_slice)));
            removed.check();
        }
        8 if dice.roll(4) == 0 => {
            let tail = seq.split_off(at);
            same(&tail, &model[at..].to_vec());
            let mut head = tail.clone();
            head.append(std::mem::take(seq));
            *seq = head;
            model.rotate_left(at);
        }
        9 if dice.roll(4) == 0 => {
            let mut buf = Vec::new();
            for _ in 0..dice.roll(400) {
                let item = dice.item();
                pack::push(&mut buf, &item);
                model.push(item);
            }
            seq.extend_pack(Pack::checked(&buf).unwrap());
        }
        10..13 => {
            seq.push_front(&item);
            model.insert(0, item);
        }
        13..17 => {
            seq.push_back(&item);
            model.push(item);
        }
        _ => {
            assert!(seq.insert(at, &item));
            model.insert(at, item);
        }
    }
}

fn reads(seq: &Seq, model: &Model, at: usize) {
    assert_eq!(seq.get(at), model.get(at).map(Vec::as_slice));
    assert_eq!(seq.iter_from(at).next(), seq.get(at));
    assert!(
        seq.iter_from(at)
            .take(9)
            .eq(model.iter().skip(at).take(9).map(Vec::as_slice))
    );
    let mut back = seq.iter_back_from(at);
    assert_eq!(back.len(), model.len().min(at + 1));
    assert!(
        back.by_ref()
            .take(9)
            .eq(model.iter().take(at + 1).rev().take(9).map(Vec::as_slice))
    );
    let (chunk, count) = seq.chunk(at);
    assert_eq!(Pack::checked(chunk.0).map(Pack::count), Some(count));
    assert_eq!(count > 0, at < model.len());
    assert!(
        chunk
            .iter()
            .eq(model.iter().skip(at).take(count).map(Vec::as_slice))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_sequence_is_a_vector_and_its_clones_stay_as_they_were(seed in any::<u64>(), growth in 2_usize..30) {
        let mut dice = Dice(seed);
        let (mut seq, mut model) = (Seq::new(), Model::new());
        let mut kept: Vec<(Seq, Model)> = Vec::new();
        for round in 0..1_200 {
            step(&mut seq, &mut model, &mut dice, growth);
            prop_assert_eq!(seq.len(), model.len());
            if round % 16 == 0 {
                seq.check();
            }
            if dice.roll(150) == 0 {
                kept.push((seq.clone(), model.clone()));
            }
            if dice.roll(300) == 0 && !kept.is_empty() {
                // A clone lives on and the other stays aside.
                let (other, items) = kept.swap_remove(dice.roll(kept.len()));
                kept.push((std::mem::replace(&mut seq, other), std::mem::replace(&mut model, items)));
            }
            reads(&seq, &model, dice.roll(model.len() + 1));
        }
        kept.push((seq, model));
        kept.iter().for_each(|(seq, model)| same(seq, model));
    }

    #[test]
    fn a_sorted_sequence_is_a_sorted_set(seed in any::<u64>(), prefix in prop_oneof![Just(0_usize), Just(7), Just(20)], spread in 10_usize..5_000) {
        let mut dice = Dice(seed);
        let (mut seq, mut model) = (Seq::new(), BTreeSet::new());
        for round in 0..4_000 {
            // Items that are prefixes of others, with zeros behind, must not be taken for these.
            let mut item = vec![b'p'; prefix];
            item.extend_from_slice(&dice.roll(spread).to_be_bytes()[5..]);
            item.resize(item.len() + dice.roll(3), 0);
            if dice.roll(200) == 0 {
                item.resize(1_500, 1);
            }
            if dice.roll(100) < 60 {
                prop_assert_eq!(seq.insert_sorted(&item), model.insert(item.clone()));
            } else {
                prop_assert_eq!(seq.remove_sorted(&item), model.remove(&item));
            }
            if round % 64 == 0 {
                seq.check();
                let before = model.range(..item.clone()).count();
                let rank = if model.contains(&item) { Ok(before) } else { Err(before) };
                prop_assert_eq!(seq.rank(&item), rank);
                prop_assert_eq!(seq.partition_point(|other| other < &item[..]), before);
            }
        }
        seq.check();
        prop_assert!(seq.iter().eq(model.iter().map(Vec::as_slice)));
    }

    #[test]
    fn any_cut_joins_again(count in 1_usize..20_000, cut in any::<Index>(), size in 0_usize..40) {
        let model: Model = (0..count).map(|index| [&index.to_be_bytes()[..], &vec![1; size]].concat()).collect();
        let mut seq: Seq = model.iter().map(Vec::as_slice).collect();
        let whole = seq.clone();
        let at = cut.index(count + 1);
        let tail = seq.split_off(at);
        seq.check();
        tail.check();
        prop_assert_eq!((seq.len(), tail.len()), (at, count - at));
        seq.append(tail);
        same(&seq, &model);
        same(&whole, &model);
    }
}

/// Bytes per item beyond the item itself and its length.
fn overhead(seq: &Seq, item: usize) -> f64 {
    seq.bytes() as f64 / seq.len() as f64 - pack::entry_size(item) as f64
}

#[test]
fn what_grows_at_its_ends_has_full_leaves() {
    let item = [7; 20];
    let (mut back, mut front, mut both) = (Seq::new(), Seq::new(), Seq::new());
    for index in 0..100_000 {
        back.push_back(&item);
        front.push_front(&item);
        if index % 2 == 0 {
            both.push_back(&item)
        } else {
            both.push_front(&item)
        }
    }
    for seq in [&back, &front, &both] {
        seq.check();
        assert!(
            overhead(seq, 20) < 2.0,
            "{} bytes per item",
            overhead(seq, 20)
        );
    }
    for seq in [&mut back, &mut front, &mut both] {
        while seq.len() > 10 {
            seq.pop_front_with(|_| ());
            seq.pop_back_with(|_| ());
        }
        seq.check();
        assert!(seq.bytes() < 4_096, "{} bytes for ten items", seq.bytes());
        while seq.pop_back().is_some() {}
        assert_eq!(seq.bytes(), 0);
    }
}

#[test]
fn what_is_emptied_in_random_order_gives_its_memory_back() {
    let mut dice = Dice(5);
    let mut seq = Seq::new();
    for index in 0..60_000_usize {
        seq.insert(dice.roll(index + 1), &[3; 16]);
    }
    seq.check();
    assert!(
        overhead(&seq, 16) < 6.0,
        "{} bytes per item",
        overhead(&seq, 16)
    );
    while seq.len() > 6_000 {
        seq.remove_with(dice.roll(seq.len()), |_| ());
    }
    seq.check();
    assert!(
        overhead(&seq, 16) < 16.0,
        "{} bytes per item",
        overhead(&seq, 16)
    );
}

#[test]
fn small_items_among_large_ones_share_leaves() {
    let mut seq = Seq::new();
    let large = vec![1; 5_000];
    seq.push_back(&large);
    seq.push_back(&large);
    for _ in 0..1_000 {
        seq.insert(1, b"small");
    }
    seq.check();
    assert!(
        seq.bytes() < 2 * 5_100 + 1_000 * 20,
        "{} bytes",
        seq.bytes()
    );
}

#[test]
fn a_large_item_is_copied_with_nothing_else() {
    let mut seq: Seq = (0..300).map(|_| &b"neighbour"[..]).collect();
    let large = vec![9; 100_000];
    seq.insert(150, &large);
    let other = seq.clone();
    let place = seq.get(150).map(<[u8]>::as_ptr);
    seq.replace(149, b"changed");
    seq.remove(151);
    seq.insert(151, b"new");
    seq.check();
    assert_eq!(
        seq.get(150).map(<[u8]>::as_ptr),
        place,
        "the large item was copied"
    );
    assert_eq!(other.get(149), Some(&b"neighbour"[..]));
}

#[test]
fn repeated_cuts_leave_a_tree_of_modest_size() {
    let mut dice = Dice(11);
    let mut seq: Seq = (0..200_000).map(|_| &b"0123456789"[..]).collect();
    for _ in 0..2_000 {
        let at = dice.roll(seq.len() - 20);
        seq.remove_range(at..at + 15 + dice.roll(5));
        let at = dice.roll(seq.len());
        let tail = seq.split_off(at);
        let mut turned = tail;
        turned.append(seq);
        seq = turned;
    }
    seq.check();
    assert!(
        overhead(&seq, 10) < 8.0,
        "{} bytes per item",
        overhead(&seq, 10)
    );
    assert!(seq.root.height() <= 4, "{} levels", seq.root.height());
}

#[test]
fn indices_out_of_range_do_nothing() {
    let mut seq = Seq::new();
    assert_eq!(
        [seq.pop_back(), seq.pop_front(), seq.remove(0)],
        [None, None, None]
    );
    assert_eq!(seq.get(0), None);
    assert!(!seq.insert(1, b"x") && !seq.replace(0, b"x"));
    seq.push_back(b"");
    assert_eq!(seq.get(0), Some(&b""[..]));
    assert!(seq.remove_range(3..9).is_empty());
    let (start, end) = (1, 0);
    assert!(seq.remove_range(start..end).is_empty());
    assert_eq!(seq.len(), 1);
    assert_eq!(seq.keep(5..9).map(|part| part.len()), [1, 0]);
    assert!(seq.is_empty() && seq.bytes() == 0);
}

#[test]
fn a_clone_has_of_its_own_what_was_written_since() {
    let mut seq = Seq::new();
    for index in 0..300_000_usize {
        seq.insert(index, &[3; 16]);
    }
    let near = |a: usize, b: usize| a > b * 9 / 10 && a < b * 11 / 10;
    assert!(near(seq.own_bytes(), seq.bytes()));
    let mut copy = seq.clone();
    assert_eq!((seq.own_bytes(), copy.own_bytes()), (0, 0));
    copy.insert(150_000, b"one");
    let (old, new) = (seq.own_bytes(), copy.own_bytes());
    assert!(old > 2_000 && old < 20_000, "{old}");
    assert!(new > 2_000 && new < 20_000, "{new}");
    for index in 0..150_000 {
        copy.remove_with(index, |_| ());
    }
    let (half, whole) = (seq.own_bytes(), seq.bytes());
    assert!(
        half > whole * 9 / 10,
        "every leaf was touched: {half} of {whole}"
    );
    drop(copy);
    assert!(near(seq.own_bytes(), seq.bytes()));
}
