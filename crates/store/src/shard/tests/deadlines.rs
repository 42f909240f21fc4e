//! A key that was removed and created again does not have its earlier deadline, even if a startup finds the removal
//! behind a note that it is forgotten, and the deadline in another file.

use super::gone::Pair;
use super::replicas::Strings;
use crate::shard::Shard;
use crate::shard::strings;
use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::object::Tag;
use rufous_datatype::set::{self, Set};
use std::sync::Arc;

const K: &[u8] = b"k";

type Write = fn(&mut Shard, Now);

fn add(shard: &mut Shard, now: Now) {
    let key = shard.key(K);
    let done = shard.update::<Set, _>(0, key, now, |editor| {
        editor.apply(&set::Op::Add { member: b"x" });
    });
    assert!(done.is_ok());
}

fn put(shard: &mut Shard, now: Now) {
    let key = shard.key(K);
    let (field, value) = (&b"f"[..], &b"v"[..]);
    let done = shard.update::<Hash, _>(0, key, now, |editor| {
        editor.apply(&hash::Op::Set { field, value });
    });
    assert!(done.is_ok());
}

fn sketch(shard: &mut Shard, now: Now) {
    shard
        .lattice_mut()
        .set_keying(Some(Arc::new(Strings(Tag::Sketch))));
    let key = shard.key(K);
    let done = strings::add_to_sketch(&mut shard.at(0, key, now), [&b"x"[..]].into_iter());
    assert_eq!(done, Some(true));
}

/// In one worker's file, the key's state lies behind a note that its earlier state has gone. The removal removes the
/// deadline, and the other worker, which set that, has not forgotten it.
#[test]
fn a_deadline_goes_with_what_is_removed_also_after_a_start() {
    let kinds: [(Write, Write); 3] = [(put, add), (add, put), (add, sketch)];
    for (number, (before, write)) in kinds.into_iter().enumerate() {
        let mut pair = Pair::new();
        let now = pair.now;
        pair.write(0, K, |shard| before(shard, now));
        pair.remove(1, K);
        pair.forget(&[0, 1]);
        pair.write(0, K, |shard| write(shard, now));
        pair.write(0, K, |shard| {
            let key = shard.key(K);
            assert!(shard.set_expire_at(0, key, Some(now.unix_ms() + 1_000), now));
        });
        pair.remove(1, K);
        pair.forget(&[1]);
        pair.write(0, K, |shard| write(shard, now));
        for starts in 0..3 {
            for shard in &mut pair.shards {
                let key = shard.key(K);
                let at = shard.expire_at(0, key, now);
                assert_eq!(at, Some(None), "{number} after {starts} starts");
            }
            pair.restart();
        }
    }
}
