//! Both shapes of a table against a map.

use super::*;
use proptest::prelude::{any, prop, proptest};
use std::collections::BTreeMap;

const SMALL: Shape = Shape {
    packing: Packing {
        entries: 6,
        bytes: 20,
    },
    seed: 1,
};

fn follows<const WIDTH: usize>(steps: &[(bool, u8, Vec<u8>)]) {
    let mut table = Table::<WIDTH>::default();
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (put, name, value) in steps {
        let name = vec![*name; usize::from(*name) % 5];
        let value = if WIDTH == 1 {
            Vec::new()
        } else {
            value.clone()
        };
        if *put {
            let old = model.insert(name.clone(), value.clone());
            let expected = match old {
                None => Put::New,
                Some(old) if old == value => Put::Same,
                Some(_) => Put::Replaced,
            };
            assert_eq!(table.put(&name, &value, &SMALL), expected);
        } else {
            assert_eq!(table.remove(&name), model.remove(&name).is_some());
        }
        let view = table.view();
        assert_eq!(view.len(), model.len());
        assert_eq!(view.is_empty(), model.is_empty());
        assert_eq!(view.get(&name), model.get(&name).map(Vec::as_slice));
        assert_eq!(view.contains(&name), model.contains_key(&name));
        let mut all: Vec<_> = view.iter().collect();
        all.sort_unstable();
        assert!(
            all.into_iter()
                .eq(model.iter().map(|(n, v)| (&n[..], &v[..])))
        );
    }
}

proptest! {
    #[test]
    fn it_does_what_a_map_does(steps in prop::collection::vec((prop::bool::weighted(0.7), 0u8..30, prop::collection::vec(any::<u8>(), 0..24)), 0..60)) {
        follows::<1>(&steps);
        follows::<2>(&steps);
    }
}

#[test]
fn packed_up_to_its_limits_and_large_for_good_after_them() {
    let mut table = Table::<2>::default();
    for name in [b"a", b"b", b"c", b"d", b"e", b"f"] {
        assert_eq!(table.put(name, &[7; 20], &SMALL), Put::New);
        assert!(table.packed().is_some());
    }
    let mut longer = table.clone();
    assert_eq!(longer.put(b"a", &[7; 21], &SMALL), Put::Replaced);
    assert!(longer.packed().is_none());
    assert_eq!(longer.view().get(b"a"), Some(&[7; 21][..]));
    table.put(b"g", b"", &SMALL);
    assert!(table.packed().is_none() && table.heap_bytes() > 0);
    for name in [b"a", b"b", b"c", b"d", b"e", b"f", b"g"] {
        assert!(table.remove(name));
    }
    assert!(table.packed().is_none() && table.view().is_empty());
    let wide = Shape {
        packing: Packing {
            entries: 1_000_000,
            bytes: 1_000_000,
        },
        seed: 1,
    };
    let mut table = Table::<1>::default();
    (0..4000u32).for_each(|n| assert_eq!(table.put(&n.to_le_bytes(), b"", &wide), Put::New));
    assert!(table.packed().is_none());
}

#[test]
fn elements_in_the_order_of_another_table_spread_evenly() {
    let segments = |table: &Table<1>| match table.view() {
        View::Packed(_) => 0,
        View::Large(dict) => dict.segments(),
    };
    let (mut one, mut other) = (Table::<1>::default(), Table::<1>::default());
    (0..40_000u32).for_each(|n| assert_eq!(one.put(&n.to_le_bytes(), b"", &SMALL), Put::New));
    for (name, _) in one.view().iter().take(10_000) {
        other.put(name, b"", &SMALL);
    }
    let (whole, quarter) = (segments(&one), segments(&other));
    assert!(quarter > whole / 8, "{quarter} of {whole} segments");
}

#[test]
fn a_chunk_is_taken_as_it_stands_only_where_it_is_a_packed_value() {
    let packed = |entries: &[&[u8]]| {
        let mut bytes = Vec::new();
        entries
            .iter()
            .for_each(|entry| pack::push(&mut bytes, entry));
        bytes
    };
    let is = Table::<2>::is_packed;
    let two = packed(&[b"a", b"1", b"b", b"1"]);
    assert!(is(&two, &SMALL));
    let mut table = Table::<2>::default();
    table.extend(&two, &SMALL).unwrap();
    assert_eq!(table.packed(), Some(&two[..]));
    // Nothing, half an element, bytes that are left over, one name twice,
    // a length that is written too long.
    assert!(!is(b"", &SMALL) && !is(&packed(&[b"a", b"1", b"b"]), &SMALL));
    assert!(!is(&two[..two.len() - 1], &SMALL));
    assert!(!is(&packed(&[b"a", b"1", b"a", b"2"]), &SMALL));
    assert!(!is(&[0x81, 0, b'a', 1, b'b'], &SMALL));
    // Longer names, longer values, more elements than packed ones may have.
    assert!(!is(&packed(&[&[7; 21], b"1"]), &SMALL));
    assert!(!is(&packed(&[b"a", &[7; 21]]), &SMALL));
    let names: Vec<[u8; 1]> = (0..7).map(|n| [n]).collect();
    let names: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
    assert!(Table::<1>::is_packed(&packed(&names[..6]), &SMALL));
    assert!(!Table::<1>::is_packed(&packed(&names), &SMALL));
    // What is not taken whole is as good as it can be, or refused.
    table
        .extend(&packed(&[b"c", b"1", b"c", b"2"]), &SMALL)
        .unwrap();
    assert_eq!(
        (table.view().len(), table.view().get(b"c")),
        (3, Some(&b"2"[..]))
    );
    let bad = Table::<2>::default().extend(&packed(&[b"a", b"1", b"b"]), &SMALL);
    assert!(bad.is_err());
}

#[test]
fn any_element_has_the_same_chance() {
    let mut rng = Rng::new(3);
    assert!(Table::<1>::default().view().random(&mut rng).is_none());
    let mut table = Table::<2>::default();
    (0..5u8).for_each(|n| assert_eq!(table.put(&[n], &[n, n], &SMALL), Put::New));
    let mut times = [0; 5];
    for _ in 0..5000 {
        let (name, value) = table.view().random(&mut rng).expect("five");
        assert_eq!(value, [name[0], name[0]]);
        times[usize::from(name[0])] += 1;
    }
    assert!(times.iter().all(|n| (800..1200).contains(n)), "{times:?}");
}
