//! Joined writes of a turn against the same writes made one by one: both have the same result and counters.

use super::replicas::All;
use crate::shard::Shard;
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::replicated::Writer;
use rufous_lattice::Stamp;
use std::sync::Arc;

type Write = (Vec<u8>, Vec<u8>);

struct Pair {
    joined: Shard,
    each: Shard,
    now: Now,
    /// The time of the last stamp.
    time: u64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let shard = || {
            let mut shard = Shard::new(seed);
            shard.lattice_mut().set_keying(Some(Arc::new(All)));
            shard
        };
        Self {
            joined: shard(),
            each: shard(),
            now: Now::default(),
            time: 100,
        }
    }

    fn turn(&mut self, writes: &[Write], shared: bool) {
        let at = |time| Stamp {
            time,
            replica: 1,
            step: 0,
        };
        let keys: Vec<&[u8]> = writes.iter().map(|(key, _)| &key[..]).collect();
        let first = (at(self.time + 1), shared);
        let value = |nth: usize| &writes[nth].1[..];
        self.joined.put_turn(1, &keys, value, first, self.now);
        for (key, value) in writes {
            self.time += 1;
            let key = self.each.key(key);
            let write = (at(self.time), shared);
            self.each.put_register(1, key, write, value, self.now);
        }
        self.now.mono_us += 1_000;
    }

    /// A write of another replica; some are newer than the turns that follow.
    fn merge(&mut self, key: &[u8], ahead: u64) {
        let stamp = Stamp {
            time: self.time + ahead,
            replica: 2,
            step: 0,
        };
        for shard in [&mut self.joined, &mut self.each] {
            let key = shard.key(key);
            shard.begin_lattice(Writer { stamp });
            shard.remove(1, key, self.now);
            shard.end_lattice();
        }
    }

    fn compare(&mut self, keys: &[Vec<u8>]) {
        for name in keys {
            let [joined, each] = [&mut self.joined, &mut self.each].map(|shard| {
                let (key, mut all) = (shard.key(name), Vec::new());
                let known = shard.show_replica(1, key, self.now, &mut |tag, chunk| {
                    all.push((tag, chunk.to_vec()));
                });
                (all, known.map(|known| (known.newest, known.is_shown)))
            });
            assert_eq!(joined, each, "{name:?}");
        }
        let [joined, each] = [&mut self.joined, &mut self.each].map(|shard| {
            shard.check();
            let of = |c: crate::changeset::Changed<'_>| c.key.bytes.to_vec();
            let changes = shard.changeset();
            let mut keys: Vec<Vec<u8>> = changes.iter().map(of).collect();
            keys.sort();
            (keys, changes.updates(), shard.counters().changes)
        });
        assert_eq!(joined, each);
    }
}

#[test]
fn a_turn_leaves_what_its_writes_leave_one_by_one() {
    // Few keys and many, short ones, and some with equal ends.
    let mut keys: Vec<Vec<u8>> = (0..90u8)
        .map(|n| vec![n; 1 + usize::from(n) % 20])
        .collect();
    keys.extend((0..40u8).map(|n| [&[n][..], b"the same end"].concat()));
    keys.push(Vec::new());
    for seed in 0..40 {
        let (mut pair, mut rng) = (Pair::new(seed), Rng::new(seed));
        for _ in 0..20 {
            let some = 1 + rng.below(keys.len() as u64);
            let most = [5, 70, 600][rng.below(3) as usize];
            let count = rng.below(most);
            let writes: Vec<Write> = (0..count)
                .map(|_| {
                    let key = keys[rng.below(some) as usize].clone();
                    let len = [0, 8, 8, 8, 900][rng.below(5) as usize];
                    (key, vec![rng.below(256) as u8; len])
                })
                .collect();
            pair.turn(&writes, rng.below(4) > 0);
            if rng.below(3) == 0 {
                let key = &keys[rng.below(some) as usize];
                pair.merge(key, rng.below(300));
            }
            pair.compare(&keys);
        }
    }
}

#[test]
fn a_key_is_stored_once_in_a_turn() {
    let mut pair = Pair::new(1);
    pair.joined.observers_mut().set_journaling(true);
    let writes = [&b"a"[..], b"b", b"a", b"a", b"b"];
    let writes = writes.map(|key| (key.to_vec(), b"value".to_vec()));
    pair.turn(&writes, true);
    let mut rest = &std::mem::take(pair.joined.journal())[..];
    let mut told = 0;
    while !rest.is_empty() {
        let effect = crate::effect::Effect::decode(&mut rest);
        told += usize::from(effect.is_ok());
        assert!(effect.is_ok());
    }
    assert_eq!(told, 2);
    assert_eq!(pair.joined.changeset().updates(), 5);
}
