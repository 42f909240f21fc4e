//! Sketches against values that redis-server 7.0.15 made, and the laws of a lattice.

use super::*;
use proptest::prelude::*;

fn sketch_of(elements: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut editor = Editor::new(empty(), DEFAULT_SPARSE_MAX_BYTES).unwrap();
    for element in elements {
        if editor.raise(Observation::of(&element)) {
            editor.mark_stale();
        }
    }
    editor.into_value()
}

fn numbers(range: Range<u32>) -> impl Iterator<Item = Vec<u8>> {
    range.map(|n| n.to_string().into_bytes())
}

fn count(value: &[u8]) -> u64 {
    Sketch::parse(value).unwrap().count().unwrap()
}

#[test]
fn a_new_sketch_is_the_one_of_redis() {
    assert_eq!(empty(), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    assert_eq!(Sketch::parse(&empty()).unwrap().cached(), Some(0));
    assert_eq!(count(&empty()), 0);
}

#[test]
fn small_sketches_are_the_bytes_of_redis() {
    let value = sketch_of([b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]);
    assert_eq!(
        value,
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x60\xf3\x80\x50\xb1\x84\x4b\xfb\x80\x42\x5a"
    );
    let runs = Sketch::parse(&value).unwrap().describe_runs().unwrap();
    assert_eq!(
        runs.unwrap(),
        "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
    );
    assert_eq!(count(&value), 3);
    assert_eq!(sketch_of([Vec::new()]).len(), 21);
}

#[test]
fn counts_are_those_of_redis() {
    let check = |n: u32, encoding, counted| {
        let value = sketch_of(numbers(0..n));
        let sketch = Sketch::parse(&value).unwrap();
        assert_eq!((sketch.encoding(), count(&value)), (encoding, counted));
        assert_eq!(sketch.registers().unwrap().count(), counted);
    };
    check(10, Encoding::Sparse, 10);
    check(100, Encoding::Sparse, 100);
    check(1000, Encoding::Sparse, 1001);
    check(10_000, Encoding::Dense, 9_987);
    check(100_000, Encoding::Dense, 99_565);
}

#[test]
fn both_encodings_hold_the_same_registers() {
    let sparse = sketch_of(numbers(0..300));
    let mut dense = Editor::new(sparse.clone(), DEFAULT_SPARSE_MAX_BYTES).unwrap();
    assert!(dense.make_dense());
    assert!(!dense.make_dense());
    let dense = dense.into_value();
    assert_eq!(dense.len(), DENSE_LEN);
    let [sparse, dense] = [&sparse, &dense].map(|v| Sketch::parse(v).unwrap());
    assert_eq!(sparse.registers(), dense.registers());
    assert_eq!(sparse.count(), dense.count());
    assert_eq!(dense.describe_runs(), Ok(None));
}

#[test]
fn a_rank_that_no_run_can_have_makes_the_value_dense() {
    let raise = |rank| {
        let mut editor = Editor::new(empty(), DEFAULT_SPARSE_MAX_BYTES).unwrap();
        assert!(editor.raise(Observation { index: 7, rank }));
        assert!(!editor.raise(Observation { index: 7, rank }));
        let value = editor.into_value();
        Sketch::parse(&value).unwrap().encoding()
    };
    assert_eq!(raise(32), Encoding::Sparse);
    assert_eq!(raise(33), Encoding::Dense);
    assert_eq!(raise(MAX_RANK), Encoding::Dense);
}

#[test]
fn the_cached_cardinality_is_kept_until_marked_stale() {
    let mut value = sketch_of(numbers(0..5));
    assert_eq!(Sketch::parse(&value).unwrap().cached(), None);
    value[cardinality_range()].copy_from_slice(&cardinality_bytes(5));
    assert_eq!(Sketch::parse(&value).unwrap().cached(), Some(5));
    mark_stale(&mut value);
    assert_eq!(Sketch::parse(&value).unwrap().cached(), None);
}

#[test]
fn what_is_no_sketch_is_refused() {
    let refused = |bytes: &[u8]| Sketch::parse(bytes).unwrap_err();
    assert_eq!(refused(b""), HllError::NotASketch);
    assert_eq!(refused(b"HYLL"), HllError::NotASketch);
    assert_eq!(refused(&[b'x'; DENSE_LEN]), HllError::NotASketch);
    let mut value = empty();
    value[ENCODING_AT] = 2;
    assert_eq!(refused(&value), HllError::NotASketch);
    value[ENCODING_AT] = 0;
    assert_eq!(refused(&value), HllError::NotASketch);
}

#[test]
fn broken_runs_are_found() {
    let broken = |runs: &[u8]| {
        let mut value = empty();
        value.truncate(HEADER_LEN);
        value.extend_from_slice(runs);
        let sketch = Sketch::parse(&value).unwrap();
        assert_eq!(sketch.count(), Err(HllError::Corrupted));
        assert_eq!(sketch.registers(), Err(HllError::Corrupted));
        assert_eq!(sketch.describe_runs(), Err(HllError::Corrupted));
        let editor = Editor::new(value, DEFAULT_SPARSE_MAX_BYTES);
        assert_eq!(editor.unwrap_err(), HllError::Corrupted);
    };
    broken(b"");
    broken(b"\x7f");
    broken(b"\x7f\xfe");
    broken(b"\x7f\xff\0");
    broken(b"\x7f\xff\x40");
    broken(b"\x7f\xfe\x81");
}

#[test]
fn dense_ranges_cover_what_raising_changes() {
    for index in [0, 1, 2, 3, 4, 5, 16_382, 16_383] {
        let mut editor = Editor::new(empty(), 0).unwrap();
        editor.make_dense();
        let before = editor.value.clone();
        let seen = Observation { index, rank: 63 };
        assert!(Sketch::parse(&before).unwrap().is_raised_by(seen));
        let mut after = before.clone();
        assert!(raise_dense(&mut after, seen));
        assert!(!Sketch::parse(&after).unwrap().is_raised_by(seen));
        let range = seen.dense_range();
        for (at, (a, b)) in before.iter().zip(&after).enumerate() {
            assert!(a == b || range.contains(&at), "{index}: {at}");
        }
        assert!(range.end <= DENSE_LEN);
    }
}

fn registers() -> impl Strategy<Value = Registers> {
    prop::collection::vec((0..REGISTERS, 1..=MAX_RANK), 0..60).prop_map(|all| {
        let mut registers = Registers::default();
        for (index, rank) in all {
            registers.raise(Observation { index, rank });
        }
        registers
    })
}

fn joined(a: &Registers, b: &Registers) -> Registers {
    let mut all = a.clone();
    let changed = all.merge(b);
    assert_eq!(changed, all != *a, "merge says whether anything changed");
    all
}

proptest! {
    #[test]
    fn registers_are_a_lattice(a in registers(), b in registers(), c in registers()) {
        prop_assert_eq!(joined(&a, &b), joined(&b, &a));
        prop_assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)));
        prop_assert_eq!(&joined(&a, &a), &a);
        prop_assert_eq!(&joined(&a, &Registers::default()), &a);
    }

    /// Whatever is observed in whichever order, both encodings hold the highest rank of each
    /// register, and the limit on sparse values is kept.
    #[test]
    fn editors_agree_with_plain_registers(
        seen in prop::collection::vec((0..200usize, 1..40u8), 0..300),
        max in 0usize..600,
    ) {
        let mut plain = Registers::default();
        let mut editor = Editor::new(empty(), max).unwrap();
        for (index, rank) in seen {
            let seen = Observation { index, rank };
            prop_assert_eq!(editor.raise(seen), plain.raise(seen));
        }
        let value = editor.into_value();
        let sketch = Sketch::parse(&value).unwrap();
        prop_assert!(sketch.encoding() == Encoding::Dense || value.len() <= max.max(18));
        prop_assert_eq!(sketch.registers().unwrap(), plain);
    }

    #[test]
    fn observing_a_union_is_merging(a in 0..2000u32, b in 0..2000u32) {
        let union = sketch_of(numbers(0..a).chain(numbers(1000..1000 + b)));
        let parts = [sketch_of(numbers(0..a)), sketch_of(numbers(1000..1000 + b))];
        let mut merged = Registers::default();
        for part in &parts {
            Sketch::parse(part).unwrap().merge_into(&mut merged).unwrap();
        }
        prop_assert_eq!(Sketch::parse(&union).unwrap().registers().unwrap(), merged);
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut value = empty();
        value.truncate(HEADER_LEN);
        value.extend(body);
        let sketch = Sketch::parse(&value).unwrap();
        prop_assert_eq!(sketch.count().is_ok(), sketch.registers().is_ok());
    }
}

#[test]
fn the_self_test_passes() {
    assert_eq!(self_test(), Ok(()));
}
