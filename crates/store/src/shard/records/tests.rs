//! Records against a map, and the walk of a snapshot over them.

use super::*;
use crate::shard::beside::Outside;
use crate::shard::placed::New;
use crate::shard::types::{NewValue, OwnedValue};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// Few hashes, so that keys collide.
fn key(bytes: &[u8]) -> Key<'_> {
    let sum = bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    Key {
        bytes,
        hash: (sum % 40) << 26,
    }
}

fn name(n: u64) -> Vec<u8> {
    match n % 5 {
        0 => [&b"long"[..], &[n as u8; 600]].concat(),
        _ => n.to_le_bytes().to_vec(),
    }
}

fn string(bytes: &[u8], expiry: Option<u64>) -> NewRecord<'_> {
    NewRecord {
        value: New::String(NewValue::Copy(bytes)),
        expiry,
        stamp: 3,
    }
}

fn head(records: &Records, found: Found) -> Head {
    Head::of(records.slot(found.handle))
}

fn check(records: &Records, model: &Model) {
    let mut found = 0;
    records.check(|bytes| key(bytes).hash, |_, _| found += 1);
    assert_eq!((found, records.len()), (model.len(), model.len()));
    for (name, (value, expiry)) in model {
        let found = records.find(key(name)).expect("it was added");
        let entry = records.entry(found.handle);
        let bytes = entry.value.any().string().expect("a string").bytes();
        assert_eq!((bytes, entry.expire_at), (&value[..], *expiry));
        assert_eq!(records.key(found.handle), name);
    }
}

#[test]
fn records_are_as_they_were_written() {
    let (mut records, mut model, mut rng) = (Records::default(), Model::new(), Rng::new(1));
    for round in 0..4000u64 {
        let (name, n) = (name(rng.below(60)), rng.below(30));
        let bytes = vec![round as u8; [5, 80, 700, 5000][n as usize % 4]];
        let expiry = (n % 3 == 0).then_some(round + 1);
        match (records.find(key(&name)), n) {
            (None, 10..) => {
                records.add(key(&name), string(&bytes, expiry));
                model.insert(name, (bytes, expiry));
            }
            (None, _) => assert!(!model.contains_key(&name)),
            (Some(found), 0..4) => {
                let old = model.remove(&name).expect("a record has a key").0;
                let head = head(&records, found);
                let outside = records.remove((found, head), key(&name).hash);
                assert_eq!(outside.is_some(), old.len() > 4000);
            }
            (Some(found), 4..12) => {
                let head = head(&records, found);
                let old = records.replace((found, head), key(&name), string(&bytes, expiry));
                let before = model
                    .insert(name, (bytes, expiry))
                    .expect("a record has a key");
                match old {
                    Some(Outside::Big(value)) => assert_eq!(*value, before.0),
                    Some(Outside::Object(_)) => panic!("there are only strings"),
                    None => assert!(before.0.len() < 4096),
                }
            }
            (Some(found), 12..20) => {
                let of = model.get_mut(&name).expect("a record has a key");
                of.0.extend_from_slice(&bytes[..9.min(bytes.len())]);
                let tail = &bytes[..9.min(bytes.len())];
                assert_eq!(records.append(found, key(&name), tail), of.0.len());
            }
            (Some(found), 20..26) => {
                records.put_expiry(found, key(&name), expiry);
                model.get_mut(&name).expect("a record has a key").1 = expiry;
            }
            (Some(found), _) => {
                let of = model.get_mut(&name).expect("a record has a key");
                let len = of.0.len() + bytes.len();
                let handle = records.extend(found, key(&name), len);
                of.0.resize(len, 0);
                records.string_mut(handle)[len - 1] = 7;
                of.0[len - 1] = 7;
            }
        }
        if round % 50 == 0 {
            check(&records, &model);
            while records.compact(|bytes| key(bytes).hash, &mut 1000, &mut 0) {}
            check(&records, &model);
        }
    }
}

#[test]
fn a_walk_visits_the_records_of_its_start() {
    let mut records = Records::default();
    for n in 1..100 {
        records.add(key(&name(n)), string(b"before", None));
    }
    records.begin_walk();
    for n in 100..150 {
        records.add(key(&name(n)), string(b"after", None));
    }
    let (mut entries, mut visited) = (Vec::new(), 0);
    while let Some(cursor) = records.walk() {
        let next = records.collect(cursor, 10, &mut entries);
        for &(_, handle) in &entries {
            if records.is_ahead(handle) {
                let OwnedValue::Small(value) = records.entry(handle).value else {
                    panic!("these are small");
                };
                assert_eq!(&*value, b"before");
                visited += 1;
                records.set_visited(handle);
            }
        }
        records.set_walk(next);
        records.check(|bytes| key(bytes).hash, |_, _| {});
    }
    assert_eq!(visited, 99);
    let mut empty = records.of_nothing();
    let handle = empty.add(key(b"new"), string(b"value", None));
    assert!(!empty.is_ahead(handle) && empty.walk().is_none());
}
