//! A removal removes the counts that it names, even if all that is left of it is a note in a log.

use super::gone::Pair;
use rufous_datatype::hash::{self, Hash};

impl Pair {
    fn in_hash(&mut self, at: usize, op: hash::Op<'_>) {
        let now = self.now;
        self.write(at, b"k", |shard| {
            let key = shard.key(b"k");
            let done = shard.update::<Hash, _>(0, key, now, |editor| {
                editor.apply(&op);
            });
            assert!(done.is_ok());
        });
    }

    fn fields(&mut self, names: &[&[u8]]) -> [Vec<Option<Vec<u8>>>; 2] {
        let now = self.now;
        self.shards.each_mut().map(|shard| {
            let key = shard.key(b"k");
            let view = shard.collection::<Hash>(0, key, now).expect("a hash");
            let field = |name: &&[u8]| view.and_then(|view| view.get(name).map(<[u8]>::to_vec));
            names.iter().map(field).collect()
        })
    }
}

const F: &[u8] = b"f";
const G: &[u8] = b"g";
const NEW: &[u8] = b"new";

fn increment(field: &[u8]) -> hash::Op<'_> {
    hash::Op::Increment { field, by: 1 }
}

/// A field that was removed before the others, and one that never was, both incremented by a replica that has not
/// forgotten the hash; a field that was incremented before is gone.
#[test]
fn a_removal_takes_only_the_counts_that_it_names() {
    for (cuts, counts_first) in [(false, false), (true, false), (false, true)] {
        let mut pair = Pair::new();
        pair.in_hash(0, increment(F));
        pair.in_hash(0, increment(G));
        pair.in_hash(1, hash::Op::Delete { field: F });
        pair.remove(1, b"k");
        if counts_first {
            pair.in_hash(0, increment(F));
            pair.in_hash(0, increment(NEW));
            pair.forget(&[1]);
        } else {
            pair.forget(&[1]);
            pair.in_hash(0, increment(F));
            pair.in_hash(0, increment(NEW));
        }
        if cuts {
            pair.cut();
        }
        pair.in_hash(1, increment(NEW));
        let (one, two) = (Some(b"1".to_vec()), Some(b"2".to_vec()));
        for _ in 0..3 {
            let seen = vec![one.clone(), None, two.clone()];
            assert_eq!(pair.fields(&[F, G, NEW]), [seen.clone(), seen]);
            pair.restart();
        }
        // It removes what it names, also after a startup.
        pair.in_hash(0, hash::Op::Delete { field: NEW });
        for _ in 0..2 {
            let seen = vec![one.clone(), None, None];
            assert_eq!(pair.fields(&[F, G, NEW]), [seen.clone(), seen]);
            pair.restart();
        }
    }
}

/// A count on the first hash is in one file, and its removal behind a note in the other.
#[test]
fn a_count_of_before_does_not_come_back_where_its_removal_is_kept_apart() {
    let mut pair = Pair::new();
    for at in [0, 1] {
        pair.add(at, b"k", b"x");
        pair.remove(1, b"k");
        pair.forget(&[0, 1]);
        pair.in_hash(0, increment(F));
        pair.remove(1, b"k");
        pair.forget(&[0, 1]);
    }
    pair.in_hash(0, increment(NEW));
    for _ in 0..3 {
        let seen = vec![None, Some(b"1".to_vec())];
        assert_eq!(pair.fields(&[F, NEW]), [seen.clone(), seen]);
        pair.restart();
    }
    pair.remove(0, b"k");
    pair.forget(&[0, 1]);
    pair.set(1, b"k", b"7");
    for _ in 0..2 {
        pair.check(Some(b"7"));
        pair.restart();
    }
}

/// Nothing that a deadline has removed is named, and all of it has gone.
#[test]
fn a_deadline_takes_counts_along_also_where_one_has_not_forgotten_it() {
    for who in [&[0][..], &[1], &[0, 1]] {
        let mut pair = Pair::new();
        pair.in_hash(0, increment(F));
        let at = pair.now.unix_us / 1000 + 1;
        let now = pair.now;
        pair.write(1, b"k", |shard| {
            let key = shard.key(b"k");
            assert!(shard.set_expire_at(0, key, Some(at), now));
        });
        pair.now.unix_us += 1_000_000;
        pair.in_hash(1, increment(NEW));
        pair.forget(&[]);
        pair.remove(0, b"k");
        pair.forget(who);
        pair.in_hash(0, increment(G));
        for _ in 0..3 {
            let seen = vec![None, None, Some(b"1".to_vec())];
            assert_eq!(pair.fields(&[F, NEW, G]), [seen.clone(), seen]);
            pair.restart();
        }
    }
}
