//! What two workers have forgotten does not come back with their logs.

use super::replicas::All;
use crate::durable::effect::Effect;
use crate::shard::{ExpirySetting, NewValue, Shard, bring_back};
use rufous_base::Now;
use rufous_datatype::replicated::Writer;
use rufous_datatype::set::{Op, Set};
use rufous_lattice::{Clock, Stamp};
use std::sync::Arc;

const NOW: Now = Now {
    mono_us: 5_000_000,
    unix_us: 5_000_000,
};

/// Two replicas, what they have logged, and their time.
struct Pair {
    shards: [Shard; 2],
    logs: [Vec<u8>; 2],
    stamp: Stamp,
}

impl Pair {
    fn new() -> Self {
        let shards = [1, 2].map(|seed| {
            let mut shard = Shard::new(seed);
            shard.set_keying(Some(Arc::new(All)));
            shard.set_journaling(true);
            shard
        });
        Self {
            shards,
            logs: [Vec::new(), Vec::new()],
            stamp: Clock::new(1).tick(NOW.unix_us),
        }
    }

    fn log(&mut self) {
        for (shard, log) in self.shards.iter_mut().zip(&mut self.logs) {
            shard.tell_horizon();
            log.append(shard.journal());
            shard.empty_journal();
        }
    }

    /// A write at one of them, of which the other hears.
    fn write(&mut self, at: usize, name: &[u8], write: impl FnOnce(&mut Shard)) {
        self.stamp.time += 1;
        let stamp = Stamp {
            replica: at as u16,
            ..self.stamp
        };
        self.shards[at].begin_lattice(Writer { stamp });
        write(&mut self.shards[at]);
        let ended = self.shards[at].end_lattice().expect("it had begun");
        assert_eq!(ended.refused, None);
        self.tell(at, name);
        self.log();
    }

    fn tell(&mut self, at: usize, name: &[u8]) {
        let mut chunks = Vec::new();
        let key = self.shards[at].key(name);
        self.shards[at].show_replica(0, key, NOW, &mut |tag, chunk| {
            chunks.push((tag, chunk.to_vec()));
        });
        let other = &mut self.shards[1 - at];
        for (tag, chunk) in chunks {
            let key = other.key(name);
            other.merge(0, key, tag, &chunk, NOW).expect("a state");
        }
    }

    fn set(&mut self, at: usize, name: &[u8], value: &[u8]) {
        self.write(at, name, |shard| {
            let (key, value) = (shard.key(name), NewValue::Copy(value));
            shard.set(0, key, value, ExpirySetting::Clear, NOW);
        });
    }

    fn add(&mut self, at: usize, name: &[u8], member: &[u8]) {
        self.write(at, name, |shard| {
            let key = shard.key(name);
            let done = shard.update::<Set, _>(0, key, NOW, |editor| {
                editor.apply(&Op::Add { member });
            });
            assert!(done.is_ok());
        });
    }

    fn remove(&mut self, at: usize, name: &[u8]) {
        self.write(at, name, |shard| {
            let key = shard.key(name);
            assert!(shard.remove(0, key, NOW));
        });
    }

    /// Both have heard of everything, and these forget what that allows.
    fn forget(&mut self, who: &[usize]) {
        for shard in &mut self.shards {
            shard.set_horizon(self.stamp.time);
        }
        for &at in who {
            while self.shards[at].forget_step(self.stamp.time, 9) {}
        }
        self.log();
    }

    fn restart(&mut self) {
        let mut files = Vec::new();
        for (shard, log) in self.shards.iter_mut().zip(&self.logs) {
            *shard = Shard::new(7);
            shard.hold_counts(2);
            let mut rest = &log[..];
            while !rest.is_empty() {
                let effect = Effect::decode(&mut rest).expect("an effect");
                shard.apply(&effect).expect("it can be done again");
            }
            files.extend(shard.take_held());
            shard.set_keying(Some(Arc::new(All)));
            shard.set_journaling(true);
        }
        for name in [b"k", b"l"] {
            self.tell(0, name);
            self.tell(1, name);
        }
        for shard in &mut self.shards {
            bring_back(shard, &files, |_| true, NOW);
            shard.check();
        }
    }

    fn text(&mut self, at: usize) -> Option<Vec<u8>> {
        let key = self.shards[at].key(b"k");
        let text = self.shards[at].peek(0, key, NOW).expect("a string");
        text.map(|text| text.bytes().to_vec())
    }

    fn check(&mut self, value: Option<&[u8]>) {
        for at in [0, 1] {
            assert_eq!(self.text(at).as_deref(), value, "{at}");
        }
    }
}

/// The set's removal is in the log of one worker, its member in the other's.
#[test]
fn a_string_where_a_set_was_is_there_after_a_start() {
    for who in [&[0, 1][..], &[1]] {
        let mut pair = Pair::new();
        pair.add(0, b"k", b"x");
        pair.remove(1, b"k");
        pair.forget(who);
        // Who has not forgotten yet takes it as well.
        pair.set(1, b"k", b"first");
        pair.set(1, b"k", b"text");
        pair.check(Some(b"text"));
        for _ in 0..2 {
            pair.restart();
            pair.check(Some(b"text"));
        }
        pair.set(0, b"k", b"more");
        pair.remove(1, b"k");
        pair.restart();
        pair.check(None);
    }
}

/// What is a set again has nothing of before.
#[test]
fn types_that_change_to_and_fro_are_those_of_the_last_after_a_start() {
    let mut pair = Pair::new();
    for n in 0..2 {
        pair.add(0, b"k", b"x");
        pair.remove(1, b"k");
        pair.forget(&[0, 1]);
        pair.set(n, b"k", b"text");
        pair.remove(1, b"k");
        pair.forget(&[0, 1]);
    }
    pair.add(0, b"k", b"y");
    pair.restart();
    for shard in &mut pair.shards {
        let key = shard.key(b"k");
        let view = shard.collection::<Set>(0, key, NOW).expect("a set");
        assert!(view.is_some_and(|view| view.len() == 1 && view.contains(b"y")));
    }
}

/// A worker that has nothing in memory may have something in its log, which the
/// log of another takes away, until that one is flushed.
#[test]
fn a_flush_of_nothing_is_in_the_log() {
    let mut pair = Pair::new();
    pair.set(0, b"k", b"text");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    // The other has something else.
    pair.set(1, b"l", b"text");
    let key = pair.shards[0].key(b"l");
    assert!(pair.shards[0].take_entry(0, key, NOW).is_some());
    assert_eq!(pair.shards[0].graves_len() + pair.shards[0].len(0), 0);
    pair.shards.iter_mut().for_each(|shard| shard.flush(0));
    pair.log();
    pair.restart();
    pair.check(None);
}
