//! Fast paths of writes and merges against the general ones: whatever happens in between, two shards have and report
//! the same.

use super::replicas::All;
use crate::shard::lattice::Keyed;
use crate::shard::merging;
use crate::shard::strings;
use crate::shard::{ExpirySetting, Key, NewValue, Policy, Shard, WatchId};
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_lattice::{Coded, Register, Stamp};
use std::sync::Arc;

/// Few lengths, so that records are overwritten and slots reused.
const LENGTHS: [usize; 5] = [0, 6, 7, 300, 1024];

struct Pair {
    quick: Shard,
    slow: Shard,
    rng: Rng,
    now: Now,
    keys: Vec<Vec<u8>>,
    snapshots: [Vec<u8>; 2],
    /// Writes that took the fast path.
    short: u64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let shard = || {
            let mut shard = Shard::new(seed);
            shard.lattice_mut().set_keying(Some(Arc::new(All)));
            shard.set_policy(Policy {
                lfu: seed.is_multiple_of(3),
                ..Policy::default()
            });
            shard
        };
        let mut keys: Vec<Vec<u8>> = (0..6).map(|n| vec![b'a' + n; 1 + n as usize * 7]).collect();
        keys.extend([vec![], vec![b'x'; 130], vec![b'y'; 600]]);
        Self {
            quick: shard(),
            slow: shard(),
            rng: Rng::new(seed),
            now: Now {
                mono_us: 5_000_000,
                unix_us: 5_000_000_000,
            },
            keys,
            snapshots: Default::default(),
            short: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn stamp(&mut self) -> Stamp {
        let back = if self.below(8) == 0 { 20 } else { 0 };
        Stamp {
            time: (self.now.unix_us << 12) - (back << 12),
            replica: self.below(3) as u16,
            step: 0,
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = LENGTHS[self.below(LENGTHS.len())];
        vec![b'0' + self.below(10) as u8; len]
    }

    fn both(&mut self, f: impl Fn(&mut Shard)) {
        f(&mut self.quick);
        f(&mut self.slow);
    }

    /// A command, as a worker runs it.
    fn command(&mut self, f: impl Fn(&mut Shard)) {
        let stamp = self.stamp();
        self.both(|shard| {
            shard.begin_lattice(Writer { stamp });
            f(shard);
            shard.end_lattice();
        });
    }

    fn put(&mut self, db: usize, name: &[u8]) {
        let now = self.now;
        let (key, is_shared) = (self.quick.key(name), self.below(9) > 0);
        let mut writes = vec![(self.stamp(), self.value())];
        while self.below(3) > 0 {
            let (mut stamp, value) = writes[0].clone();
            stamp.time += writes.len() as u64;
            let other = self.below(4) == 0;
            writes.push((stamp, if other { self.value() } else { value }));
        }
        let known = self.quick.data.recent.knows(key.hash) && !self.quick.data.env.observers.any();
        if self.below(2) == 0 {
            self.set_each(db, key, &writes);
            return;
        }
        let keyed = Keyed {
            strings: Tag::Register,
            is_shared,
        };
        for (stamp, value) in &writes {
            self.quick
                .put_register(db, key, (*stamp, is_shared), value, now);
            self.slow
                .data
                .put_register_anew((db, key), keyed, *stamp, value, now);
        }
        self.short += u64::from(known && self.quick.data.recent.knows(key.hash));
    }

    /// Like commands, one of which finds no remembered places.
    fn set_each(&mut self, db: usize, key: Key<'_>, writes: &[(Stamp, Vec<u8>)]) {
        for &(stamp, ref value) in writes {
            self.slow.data.recent = Default::default();
            for shard in [&mut self.quick, &mut self.slow] {
                shard.begin_lattice(Writer { stamp });
                let value = NewValue::Copy(value);
                shard.set(db, key, value, ExpirySetting::Clear, self.now);
                shard.end_lattice();
            }
        }
    }

    fn merge(&mut self, db: usize, name: &[u8]) {
        let (stamp, value, now) = (self.stamp(), self.value(), self.now);
        let deadline = now.unix_ms() + self.rng.below(20);
        let register = match self.below(10) {
            0 => Register::deleted(stamp),
            1 => Register::written(stamp, value, deadline),
            _ => Register::written(stamp, value, 0),
        };
        let mut chunk = register.encoded();
        if self.below(20) == 0 {
            chunk[1..1 + Stamp::SIZE].fill(0);
        }
        if self.below(20) == 0 {
            let len = self.below(chunk.len() + 1);
            chunk.truncate(len);
        }
        let key = self.quick.key(name);
        let quick = self.quick.merge(db, key, Tag::Register, &chunk, now);
        let slow = merging::merge_chunk(&mut self.slow.at(db, key, now), Tag::Register, &chunk);
        if slow == Ok(true) {
            self.slow.data.env.counters.changes += 1;
            self.slow.data.env.observers.touch(key, db as u8);
        }
        assert_eq!(quick, slow, "{chunk:?}");
    }

    fn something_else(&mut self, db: usize, name: &[u8]) {
        let (now, value) = (self.now, self.value());
        let key = self.quick.key(name);
        match self.below(17) {
            16 => self.command(|shard| {
                strings::add_to_sketch(
                    &mut shard.at(db, key, now),
                    [&b"a"[..], &value].into_iter(),
                );
            }),
            0 => self.command(|shard| {
                shard.remove(db, key, now);
            }),
            1 => self.command(|shard| {
                shard.set_expire_at(db, key, Some(now.unix_ms() + 9), now);
            }),
            2 => self.command(|shard| {
                let _ = strings::increment(&mut shard.at(db, key, now), 5);
            }),
            3 => self.command(|shard| {
                shard.set(db, key, NewValue::Copy(&value), ExpirySetting::Clear, now);
            }),
            // Plain keys are added and removed, and their slots reused.
            4 => self.both(|shard| {
                shard.set(db, key, NewValue::Copy(&value), ExpirySetting::Clear, now);
            }),
            5 => self.both(|shard| {
                shard.remove(db, key, now);
            }),
            6 => self.both(|shard| shard.flush(db)),
            7 => self.both(|shard| shard.swap(0, 1)),
            8 => self.both(|shard| while shard.maintain_step(64) {}),
            9 => self.both(|shard| while shard.expire_step(now, 64) {}),
            10 => self.both(|shard| shard.changeset().clear()),
            11 => self.both(|shard| shard.changeset().forget_db(db as u8)),
            12 => {
                let on = self.below(2) == 0;
                self.both(|shard| shard.observers_mut().set_journaling(on));
            }
            13 => self.both(|shard| shard.watch(db, key, WatchId(1), now)),
            14 => self.both(|shard| shard.observers_mut().unwatch(WatchId(1))),
            _ => self.both(|shard| {
                if !shard.snapshot().is_running() && !shard.is_unwinding() {
                    shard.begin_snapshot();
                }
            }),
        }
    }

    fn step(&mut self) {
        let at = self.below(self.keys.len());
        let (db, name) = (self.below(2), self.keys[at].clone());
        self.now.mono_us += 3_000;
        self.now.unix_us += 1 + self.rng.below(3_000);
        match self.below(10) {
            0..5 => self.put(db, &name),
            5..8 => self.merge(db, &name),
            _ => self.something_else(db, &name),
        }
        for (shard, out) in [&mut self.quick, &mut self.slow]
            .into_iter()
            .zip(&mut self.snapshots)
        {
            if shard.snapshot().is_running() || shard.is_unwinding() {
                shard.snapshot_step(200, out);
            }
        }
    }

    fn compare(&mut self) {
        assert_eq!(self.quick.journal(), self.slow.journal());
        assert_eq!(self.snapshots[0], self.snapshots[1]);
        assert_eq!(self.quick.counters(), self.slow.counters());
        let dirty =
            [&self.quick, &self.slow].map(|shard| shard.observers().watches().is_dirty(WatchId(1)));
        assert_eq!(dirty[0], dirty[1]);
        let [quick, slow] = [&mut self.quick, &mut self.slow].map(|shard| {
            let changes = shard.changeset();
            let of = |c: crate::changeset::Changed<'_>| (c.db, c.key.bytes.to_vec());
            (
                changes.iter().map(of).collect::<Vec<_>>(),
                changes.updates(),
            )
        });
        assert_eq!(quick, slow);
        for (db, name) in (0..2).flat_map(|db| self.keys.iter().map(move |name| (db, name))) {
            let [quick, slow] = [&mut self.quick, &mut self.slow].map(|shard| {
                let key = shard.key(name);
                let mut all = Vec::new();
                let known = shard.show_replica(db, key, self.now, &mut |tag, chunk| {
                    all.push((tag, chunk.to_vec()));
                });
                let value = shard.peek(db, key, self.now).unwrap();
                let value = value.map(|value| value.bytes().to_vec());
                let expiry = shard.expire_at(db, key, self.now);
                let access = shard.access(db, key, self.now);
                let newest = known.map(|known| (known.newest, known.is_shown));
                (all, value, expiry, access, newest)
            });
            assert_eq!(quick, slow, "{db} {name:?}");
        }
    }
}

#[test]
fn the_short_ways_do_and_tell_what_the_long_ones_do() {
    let mut short = 0;
    for seed in 0..60 {
        let mut pair = Pair::new(seed);
        for _ in 0..300 {
            pair.step();
            pair.compare();
        }
        pair.quick.check();
        pair.slow.check();
        short += pair.short;
    }
    assert!(short > 1000, "{short} short ways taken");
}

#[test]
fn commands_find_the_place_of_a_key_that_was_written_lately() {
    let mut shard = Shard::new(1);
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    let now = Now::default();
    let key = shard.key(b"hot");
    let first = shard.key(b"first");
    shard.changeset().touch(0, first);
    for time in 1..5 {
        let stamp = Stamp {
            time,
            ..Stamp::ZERO
        };
        shard.begin_lattice(Writer { stamp });
        let value = NewValue::Copy(b"value");
        shard.set(0, key, value, ExpirySetting::Clear, now);
        shard.end_lattice();
        // The first write over another is the first that is noted.
        if time > 1 {
            let place = shard.data.recent.place(key.hash);
            assert!(place.may_be(key));
            assert_eq!(place.entry, 1, "it was not looked up anew");
        }
    }
    assert_eq!(shard.changeset().updates(), 5);
}

#[test]
fn keys_of_one_hash_are_not_taken_for_one_another() {
    let mut shard = Shard::new(1);
    let now = Now::default();
    let names: [&[u8]; 3] = [b"ka", b"kb", b"kc"];
    let hash = shard.key(names[0]).hash;
    for round in 1..4 {
        for (n, &bytes) in names.iter().enumerate() {
            let stamp = Stamp {
                time: round,
                ..Stamp::ZERO
            };
            let value = [round as u8, n as u8];
            shard.put_register(0, Key { bytes, hash }, (stamp, true), &value, now);
        }
        for (n, &bytes) in names.iter().enumerate() {
            let value = shard.peek(0, Key { bytes, hash }, now).unwrap();
            let value = value.map(|value| value.bytes().to_vec());
            assert_eq!(value, Some(vec![round as u8, n as u8]));
        }
        assert_eq!(shard.changeset().len(), 3);
    }
}
