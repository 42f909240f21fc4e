//! A database, driven by hand: its parts agree whatever happens to its records.

use super::*;
use crate::shard::placed::New;
use crate::shard::types::NewValue;

/// Few hashes and times, so that records share the pairs of an order.
fn key(bytes: &[u8]) -> Key<'_> {
    let sum = bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    Key {
        bytes,
        hash: (sum % 10) << 28,
    }
}

fn new(len: u64, expiry: Option<u64>) -> NewRecord<'static> {
    NewRecord {
        value: New::String(NewValue::Own(vec![7; len as usize])),
        expiry,
        stamp: 0,
    }
}

#[test]
fn deadlines_and_counts_follow_the_records() {
    let (mut db, mut garbage, mut rng) = (Db::new(3), GarbageList::default(), Rng::new(1));
    db.census.count_slots(std::iter::empty());
    for _ in 0..3000 {
        let name = [b'a' + rng.below(40) as u8];
        let expiry = (rng.below(3) > 0).then(|| 5 + rng.below(6));
        let len = [3, 90, 5000][rng.below(3) as usize];
        match (db.records.find(key(&name)), rng.below(4)) {
            (None, _) => {
                db.create(key(&name), new(len, expiry));
            }
            (Some(found), 0) => db.replace(found, key(&name), new(len, expiry), &mut garbage),
            (Some(found), 1) => db.remove(found, key(&name).hash, &mut garbage),
            (Some(found), _) => db.set_expiry(found, key(&name), expiry),
        }
        db.check(|bytes| key(bytes).hash);
    }
    let (keys, expiring) = db.counted(&Guests::default());
    assert_eq!((keys, expiring), (db.len(), db.deadlines.len()));
    let mut guests = Guests::default();
    guests.invite_all();
    assert_eq!(db.counted(&guests), (0, 0));
    let empty = db.of_nothing(4);
    assert!(empty.is_void() && empty.charged() == 0 && empty.number == 4);
    empty.check(|bytes| key(bytes).hash);
}

#[test]
fn a_walk_keeps_the_number_of_its_start() {
    let (mut db, mut garbage) = (Db::new(3), GarbageList::default());
    db.begin_walk(9);
    assert!(!db.is_walked(), "it is empty");
    db.create(key(b"a"), new(3, None));
    db.begin_walk(9);
    db.number = 5;
    assert!(db.is_walked());
    assert_eq!((db.cut.number, db.cut.horizon), (3, 9));
    let found = db.records.find(key(b"a")).expect("it was created");
    assert!(db.records.is_ahead(found.handle));
    db.remove(found, key(b"a").hash, &mut garbage);
    db.records.set_walk(None);
    assert!(!db.is_walked() && db.is_void());
}
