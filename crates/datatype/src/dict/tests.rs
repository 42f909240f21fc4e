//! The table against a `HashMap`, under growth, shrink, copies and colliding hashes.

use super::Dict;
use super::hash::{BELOW_POSITION, tag_of};
use super::segment::{MAX_LEN, MOVED};
use proptest::prelude::*;
use rufous_base::rng::Rng;
use std::collections::HashMap;

type Model = HashMap<Vec<u8>, Vec<u8>>;

/// A table whose hashes have no bits but these.
fn masked(seed: u64, mask: u64) -> Dict {
    let mut dict = Dict::new(seed);
    dict.hashing.mask = mask;
    dict
}

fn assert_same(dict: &Dict, model: &Model) {
    dict.check();
    assert_eq!(dict.len(), model.len());
    let shown: Model = dict.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    assert_eq!(&shown, model);
    let pieces = (0..dict.segments()).flat_map(|i| dict.segment(i));
    let walked: Model = pieces.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    assert_eq!(&walked, model);
    assert_eq!(dict.segment(dict.segments()).count(), 0);
    for (key, value) in model {
        assert_eq!(dict.get(key), Some(&value[..]));
    }
}

fn scanned(dict: &Dict, count: usize) -> Vec<Vec<u8>> {
    let (mut cursor, mut keys) = (0, Vec::new());
    loop {
        cursor = dict.scan(cursor, count, &mut |key, _| keys.push(key.to_vec()));
        if cursor == 0 {
            return keys;
        }
    }
}

fn number(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Overwrite(Vec<u8>, u8),
    Keep,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u16..200).prop_map(|n| n.to_string().into_bytes()),
        2 => (0usize..300).prop_map(|n| vec![b'k'; n]),
        1 => (4000usize..4200).prop_map(|n| vec![b'l'; n]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |len| (Just(len), any::<u8>()).prop_map(|(len, byte)| vec![byte; len]);
    prop_oneof![
        4 => Just(Vec::new()),
        8 => (0usize..20).prop_flat_map(bytes),
        4 => (100usize..1000).prop_flat_map(bytes),
        2 => (3900usize..4300).prop_flat_map(bytes),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (key(), value()).prop_map(|(k, v)| Step::Insert(k, v)),
        6 => key().prop_map(Step::Remove),
        3 => (key(), any::<u8>()).prop_map(|(k, byte)| Step::Overwrite(k, byte)),
        1 => Just(Step::Keep),
    ]
}

fn perform(dict: &mut Dict, model: &mut Model, step: Step) {
    match step {
        Step::Insert(key, value) => {
            assert_eq!(dict.insert(&key, &value), !model.contains_key(&key));
            model.insert(key, value);
        }
        Step::Remove(key) => {
            let mut last = None;
            assert_eq!(
                dict.remove_with(&key, |value| last = Some(value.to_vec())),
                model.contains_key(&key)
            );
            assert_eq!(last, model.remove(&key));
        }
        Step::Overwrite(key, byte) => {
            let found = dict.overwrite(&key, |value| value.fill(byte));
            assert_eq!(found, model.contains_key(&key));
            if let Some(value) = model.get_mut(&key) {
                value.fill(byte);
            }
        }
        Step::Keep => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn it_does_what_a_hash_map_does(
        steps in prop::collection::vec(step(), 0..400),
        mask in prop::sample::select(vec![u64::MAX, 0, 7 << 61, 0xFF << 40, 0xFF << 56, 1]),
        seed: u64,
    ) {
        let mut dict = masked(seed, mask);
        let mut model = Model::new();
        let mut kept = Vec::new();
        for step in steps {
            if matches!(step, Step::Keep) {
                kept.push((dict.clone(), model.clone()));
            }
            perform(&mut dict, &mut model, step);
        }
        assert_same(&dict, &model);
        for (dict, model) in kept {
            assert_same(&dict, &model);
        }
    }
}

/// Grows to some size, shrinks, and so on, with copies taken on the way.
#[test]
fn it_grows_and_shrinks_like_a_hash_map() {
    let mut rng = Rng::new(11);
    let mut dict = Dict::new(5);
    let mut model = Model::new();
    let mut kept = Vec::new();
    for (size, steps) in [
        (60_000, 90_000),
        (3_000, 90_000),
        (30_000, 60_000),
        (0, 70_000),
    ] {
        for _ in 0..steps {
            let key = number(rng.below(50_000)).to_vec();
            let value = vec![b'v'; [0, 3, 8, 90][rng.below(4) as usize]];
            let step = if rng.below(60_000) < size {
                Step::Insert(key, value)
            } else if let (Some((key, _)), true) = (dict.random(&mut rng), size < 10_000) {
                Step::Remove(key.to_vec())
            } else {
                Step::Remove(key)
            };
            perform(&mut dict, &mut model, step);
        }
        assert_same(&dict, &model);
        kept.push((dict.clone(), model.clone()));
    }
    for (dict, model) in kept {
        assert_same(&dict, &model);
    }
}

#[test]
fn pages_split_and_unite() {
    let mut dict = Dict::new(3);
    let empty = dict.bytes();
    let count = 400_000;
    for n in 0..count {
        assert!(dict.insert(&number(n), b""));
    }
    dict.check();
    assert!(dict.root.parts().len() > 1, "one page holds it all");
    let segments = dict.segments();
    assert!(count as usize / segments >= 300, "{segments} segments");
    let overhead = dict.bytes() as f64 / count as f64 - 8.0;
    assert!(overhead < 10.0, "{overhead} bytes an element");
    let kept = dict.clone();
    for n in 0..count {
        assert!(dict.remove(&number(n)));
        if n % 50_000 == 0 {
            dict.check();
        }
    }
    dict.check();
    assert_eq!((dict.segments(), dict.root.parts().len()), (1, 1));
    assert!(dict.bytes() < empty + 200, "{} bytes left", dict.bytes());
    kept.check();
    assert_eq!(kept.len(), count as usize);
}

#[test]
fn a_small_table_is_small() {
    let mut dict = Dict::new(1);
    for n in 0..129 {
        dict.insert(&number(n), b"");
    }
    assert!(dict.bytes() < 129 * 18 + 512, "{}", dict.bytes());
}

#[test]
fn empty_and_large_elements() {
    let mut dict = Dict::new(1);
    let mut model = Model::new();
    let large = vec![7; 100_000];
    let mut put = |dict: &mut Dict, key: &[u8], value: &[u8]| {
        perform(dict, &mut model, Step::Insert(key.to_vec(), value.to_vec()));
        assert_same(dict, &model);
    };
    for key in [&b""[..], b"a", &large, &large[1..]] {
        for value in [&b""[..], &large, b"", b"b", &large[..4096], &large] {
            put(&mut dict, key, value);
        }
    }
    let clone = dict.clone();
    let before = clone.get(b"a").map(<[u8]>::as_ptr);
    assert!(dict.insert(b"c", b"") && dict.overwrite(b"", |value| value.fill(8)));
    assert_eq!(
        dict.get(b"a").map(<[u8]>::as_ptr),
        before,
        "copied a large element"
    );
    assert_eq!(clone.get(b""), Some(&large[..]));
    for key in [&b""[..], b"a", b"c", &large, &large[1..]] {
        assert!(dict.remove(key) && !dict.remove(key));
    }
    dict.check();
    assert!(dict.is_empty() && dict.bytes() < 1000);
}

/// Large values make small segments; large ones outside of the heap do not.
#[test]
fn many_large_values() {
    for size in [90, 1500, 4000, 5000] {
        let mut dict = Dict::new(2);
        let value = vec![b'x'; size];
        for n in 0..4000 {
            dict.insert(&number(n), &value);
        }
        dict.check();
        let spare = dict.bytes() as f64 / (4000 * (size + 8)) as f64;
        assert!(spare < 1.25, "{spare} at {size}");
        for n in 0..3900 {
            assert!(dict.remove(&number(n)));
        }
        dict.check();
        assert!(
            dict.bytes() < 250 * (size + 8) + 4000,
            "{} at {size}",
            dict.bytes()
        );
    }
}

/// Segments whose hashes are equal, or equal in their first bits, cannot split and outgrow 16-bit offsets.
#[test]
fn colliding_hashes() {
    for mask in [0, 1, 0xFFFF, 0xFF << 24, 0xFFF << 28, 3 << 62, 0xFF << 56] {
        let mut dict = masked(9, mask);
        let mut model = Model::new();
        for n in 0..3000 {
            let value = vec![n as u8; 60];
            perform(
                &mut dict,
                &mut model,
                Step::Insert(number(n).to_vec(), value),
            );
        }
        assert_same(&dict, &model);
        let mut keys = scanned(&dict, 10);
        keys.sort();
        assert!(
            keys.iter()
                .map(|k| &k[..])
                .eq((0..3000).map(number).collect::<Vec<_>>())
        );
        let kept = dict.clone();
        for n in 0..2990 {
            perform(&mut dict, &mut model, Step::Remove(number(n).to_vec()));
            if n % 500 == 0 {
                dict.check();
            }
        }
        assert_same(&dict, &model);
        assert!(dict.bytes() < 3000, "{}", dict.bytes());
        kept.check();
    }
}

/// Elements in the order of another table of the same seed: what SMEMBERS, DUMP and the like lead to.
#[test]
fn elements_in_the_order_of_hashes_spread_evenly() {
    let mut source = Dict::new(8);
    (0..200_000).for_each(|n| assert!(source.insert(&number(n), b"")));
    let ordered: Vec<&[u8]> = source.iter().map(|(key, _)| key).collect();
    let reversed: Vec<&[u8]> = ordered.iter().rev().copied().collect();
    for keys in [&ordered, &reversed] {
        let mut dict = Dict::new(8);
        for (n, key) in keys.iter().enumerate() {
            MOVED.set(0);
            assert!(dict.insert(key, b""));
            let moved = MOVED.get();
            assert!(moved <= 2 * MAX_LEN, "{moved} moved for number {n}");
            let place = dict.find(dict.hashing.hash(key), key);
            let held = dict.segment_at(place.page, place.segment).len();
            assert!(held <= MAX_LEN, "{held} in one segment at number {n}");
            if n == 10_000 {
                dict.check();
                assert!(dict.segments() < 100, "{} segments", dict.segments());
            }
        }
        dict.check();
        let (ours, theirs) = (dict.segments(), source.segments());
        assert!(ours <= theirs * 5 / 4, "{ours} segments for {theirs}");
        for key in keys {
            assert!(dict.remove(key));
        }
        dict.check();
        assert_eq!((dict.segments(), dict.root.parts().len()), (1, 1));
    }
}

/// Few bits that differ, at different places: segments narrow down to each of them.
#[test]
fn segments_narrow_down_to_the_bits_that_differ() {
    for (mask, most) in [
        (7 << 50, 3000 / 7),
        (0xF << 49 | 1 << 63, 3000 / 24),
        (0x1F << 49, 3000 / 24),
    ] {
        let mut dict = masked(12, mask);
        let mut model = Model::new();
        let mut kept = None;
        for n in 0..3000 {
            let insert = Step::Insert(number(n).to_vec(), b"value".to_vec());
            perform(&mut dict, &mut model, insert);
            if n == 512 {
                kept = Some((dict.clone(), model.clone()));
            }
        }
        assert_same(&dict, &model);
        let pieces = (0..dict.segments()).map(|i| dict.segment(i).count());
        assert!(pieces.max() <= Some(MAX_LEN.max(most)), "{mask:x}");
        let (kept, model) = kept.unwrap();
        assert_same(&kept, &model);
    }
}

/// A cursor between two positions that differ in a bit which the tags of a joined segment no longer have.
#[test]
fn scan_resumes_amid_a_tag_of_a_joined_segment() {
    const FINE: u64 = 1 << 47;
    let mut dict = masked(13, 1 << 63 | FINE);
    (0..600).for_each(|n| assert!(dict.insert(&number(n), b"")));
    assert_eq!(dict.segments(), 2);
    let hash = |dict: &Dict, key: &[u8]| dict.hashing.hash(key);
    let mut shown = Vec::new();
    let cursor = dict.scan(0, 1, &mut |key, _| shown.push(key.to_vec()));
    assert!(shown.iter().all(|key| hash(&dict, key) == 0));
    assert_eq!(cursor << BELOW_POSITION, FINE);
    assert_eq!(tag_of(FINE, 0), 0, "another tag in the joined segment too");
    let mut left = [0; 4];
    for n in 0..600 {
        let hash = hash(&dict, &number(n));
        let class = &mut left[(hash >> 62 | hash >> 47 & 1) as usize];
        *class += 1;
        if *class > 30 {
            assert!(dict.remove(&number(n)));
        }
    }
    assert_eq!((dict.segments(), dict.len()), (1, 120));
    shown.retain(|key| dict.contains(key));
    assert_eq!(shown.len(), 30);
    let mut end = cursor;
    while {
        end = dict.scan(end, 1, &mut |key, _| shown.push(key.to_vec()));
        end != 0
    } {}
    shown.sort();
    assert_eq!(shown.len(), 120, "shown twice, or never");
    shown.dedup();
    assert_eq!(shown.len(), 120);
}

#[test]
fn scan_shows_about_as_many_as_asked_for() {
    let mut dict = Dict::new(4);
    (0..20_000).for_each(|n| assert!(dict.insert(&number(n), b"")));
    for count in [0, 1, 10, 1000, 50_000] {
        let (mut cursor, mut sum) = (0, 0);
        loop {
            let mut shown = 0;
            cursor = dict.scan(cursor, count, &mut |_, _| shown += 1);
            sum += shown;
            assert!(shown <= count.max(1) + 5 && cursor < 1 << 48);
            assert!(shown >= count.max(1) || cursor == 0);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(sum, 20_000);
    }
    assert_eq!(
        dict.scan(u64::MAX, 10, &mut |_, _| panic!("beyond the end")),
        0
    );
}

/// Elements that stay are shown once, while all others grow a hundredfold and are removed again.
#[test]
fn scan_shows_what_stays_exactly_once() {
    // Bits that only the tags of deep segments tell apart: a cursor may lie amid a tag of what they are joined to.
    const FINE: u64 = 0x1F << 59 | 0xF << 43;
    for (seed, mask) in [
        (1, u64::MAX),
        (2, u64::MAX),
        (3, 0x3FF << 54),
        (4, 0xFFF << 30),
        (5, FINE),
    ] {
        let mut rng = Rng::new(seed);
        let mut dict = masked(seed, mask);
        let stay = 700;
        (0..stay).for_each(|n| assert!(dict.insert(&number(n), b"stays")));
        let (mut cursor, mut calls) = (0, 0);
        let mut times: HashMap<Vec<u8>, usize> = HashMap::new();
        loop {
            cursor = dict.scan(cursor, 7, &mut |key, _| {
                *times.entry(key.to_vec()).or_default() += 1;
            });
            if cursor == 0 {
                break;
            }
            calls += 1;
            let more = calls % 20 < 10;
            for _ in 0..400 {
                let other = number(stay + rng.below(4000));
                if more {
                    dict.insert(&other, b"comes");
                } else {
                    dict.remove(&other);
                }
            }
        }
        dict.check();
        for n in 0..stay {
            assert_eq!(times.get(&number(n)[..]), Some(&1), "element {n}");
        }
    }
}

#[test]
fn random_is_uniform() {
    // The last has segments of very different sizes.
    for (count, mask) in [
        (1, u64::MAX),
        (100, u64::MAX),
        (5000, u64::MAX),
        (3000, 0x7 << 60),
    ] {
        let mut dict = masked(6, mask);
        (0..count).for_each(|n| assert!(dict.insert(&number(n), b"")));
        let mut rng = Rng::new(7);
        let mut times: HashMap<Vec<u8>, u32> = HashMap::new();
        let draws = count * 100;
        for _ in 0..draws {
            let (key, _) = dict.random(&mut rng).unwrap();
            *times.entry(key.to_vec()).or_default() += 1;
        }
        let all = (0..count).map(|n| times.get(&number(n)[..]).copied().unwrap_or(0));
        let chi: f64 = all.map(|n| (f64::from(n) - 100.0).powi(2) / 100.0).sum();
        // Six standard deviations of the chi-square distribution.
        let bound = count as f64 + 6.0 * (2.0 * count as f64).sqrt();
        assert!(chi < bound, "{chi} for {count} elements");
    }
    assert!(Dict::new(0).random(&mut Rng::new(0)).is_none());
}

#[test]
fn a_copy_has_of_its_own_what_was_written_since() {
    let mut dict = Dict::new(3);
    for n in 0..500_000 {
        dict.insert(&number(n), b"");
    }
    let near = |a: usize, b: usize| a > b * 9 / 10 && a < b * 11 / 10;
    assert!(near(dict.own_bytes(), dict.bytes()));
    let mut copy = dict.clone();
    assert_eq!(dict.own_bytes(), dict.root.own_bytes());
    copy.insert(b"one", b"");
    let (own, most) = (dict.own_bytes() - dict.root.own_bytes(), 64 << 10);
    assert!(own > 4_000 && own < most, "{own}");
    for n in 0..500_000 {
        copy.insert(&number(n), b"changed");
    }
    assert!(near(dict.own_bytes(), dict.bytes()));
}
