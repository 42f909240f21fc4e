//! State that two workers have forgotten is not restored from their logs.

use super::replicas::All;
use crate::effect::Effect;
use crate::shard::strings;
use crate::shard::{ExpirySetting, NewValue, Shard, SnapshotProgress, bring_back};
use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::replicated::Writer;
use rufous_datatype::set::{Op, Set};
use rufous_lattice::stamp::COUNTER_BITS;
use rufous_lattice::{Clock, Stamp};
use std::sync::Arc;

const NOW: Now = Now {
    mono_us: 5_000_000,
    unix_us: 5_000_000,
};

/// Two replicas, their logs, and their time.
pub(super) struct Pair {
    pub(super) shards: [Shard; 2],
    logs: [Vec<u8>; 2],
    stamp: Stamp,
    pub(super) now: Now,
}

/// Number of keys in a snapshot.
fn keys_of(mut snapshot: &[u8]) -> u64 {
    let mut keys = 0;
    while !snapshot.is_empty() {
        let effect = Effect::decode(&mut snapshot).expect("an effect");
        keys += u64::from(!matches!(effect, Effect::More { .. }));
    }
    keys
}

impl Pair {
    pub(super) fn new() -> Self {
        let shards = [1, 2].map(|seed| {
            let mut shard = Shard::new(seed);
            shard.lattice_mut().set_keying(Some(Arc::new(All)));
            shard.observers_mut().set_journaling(true);
            shard
        });
        Self {
            shards,
            logs: [Vec::new(), Vec::new()],
            stamp: Clock::new(1).tick(NOW.unix_us),
            now: NOW,
        }
    }

    pub(super) fn log(&mut self) {
        for (shard, log) in self.shards.iter_mut().zip(&mut self.logs) {
            shard.tell_horizon();
            log.append(shard.journal());
            shard.observers_mut().empty_journal();
        }
    }

    /// A write at one of them, which the other receives.
    pub(super) fn write(&mut self, at: usize, name: &[u8], write: impl FnOnce(&mut Shard)) {
        assert!(self.try_write(at, name, write), "it is not refused");
    }

    /// A write that may be refused; returns whether it was done.
    pub(super) fn try_write(
        &mut self,
        at: usize,
        name: &[u8],
        write: impl FnOnce(&mut Shard),
    ) -> bool {
        let done = self.write_untold(at, write);
        self.tell(at, name);
        self.log();
        done
    }

    /// A write that the other does not receive yet.
    pub(super) fn write_untold(&mut self, at: usize, write: impl FnOnce(&mut Shard)) -> bool {
        let time = self.now.unix_us << COUNTER_BITS;
        self.stamp.time = time.max(self.stamp.time + 1);
        let stamp = Stamp {
            replica: at as u16,
            ..self.stamp
        };
        self.shards[at].begin_lattice(Writer { stamp });
        write(&mut self.shards[at]);
        let ended = self.shards[at].end_lattice().expect("it had begun");
        self.stamp.time = self.stamp.time.max(ended.next.time);
        ended.refused.is_none()
    }

    /// Snapshots of both at one instant; later their logs are empty.
    pub(super) fn cut(&mut self) {
        for (shard, log) in self.shards.iter_mut().zip(&mut self.logs) {
            log.clear();
            shard.begin_snapshot();
            shard.horizons().encode(log);
            let head = log.len();
            while shard.snapshot_step(200, log) {}
            // The end of a file states this number, or the file counts as damaged.
            let SnapshotProgress { written, expected } = shard.snapshot().progress();
            assert_eq!(written, keys_of(&log[head..]));
            assert_eq!(written, expected);
        }
    }

    pub(super) fn tell(&mut self, at: usize, name: &[u8]) {
        let (mut chunks, now) = (Vec::new(), self.now);
        let key = self.shards[at].key(name);
        self.shards[at].show_replica(0, key, now, &mut |tag, chunk| {
            chunks.push((tag, chunk.to_vec()));
        });
        let other = &mut self.shards[1 - at];
        for (tag, chunk) in chunks {
            let key = other.key(name);
            other.merge(0, key, tag, &chunk, now).expect("a state");
        }
    }

    pub(super) fn set(&mut self, at: usize, name: &[u8], value: &[u8]) {
        self.write(at, name, |shard| {
            let (key, value) = (shard.key(name), NewValue::Copy(value));
            shard.set(0, key, value, ExpirySetting::Clear, NOW);
        });
    }

    pub(super) fn add(&mut self, at: usize, name: &[u8], member: &[u8]) {
        self.write(at, name, |shard| {
            let key = shard.key(name);
            let done = shard.update::<Set, _>(0, key, NOW, |editor| {
                editor.apply(&Op::Add { member });
            });
            assert!(done.is_ok());
        });
    }

    pub(super) fn remove(&mut self, at: usize, name: &[u8]) {
        self.write(at, name, |shard| {
            let key = shard.key(name);
            assert!(shard.remove(0, key, NOW));
        });
    }

    /// Both have received everything, and the named ones forget what that allows.
    pub(super) fn forget(&mut self, who: &[usize]) {
        for shard in &mut self.shards {
            shard.horizons_mut().raise(self.stamp.time);
        }
        for &at in who {
            while self.shards[at].forget_step(self.stamp.time, 9) {}
        }
        self.log();
    }

    pub(super) fn restart(&mut self) {
        self.restart_with([0, 1]);
    }

    /// The time of the last stamp that is shown.
    fn newest(&mut self) -> u64 {
        let mut newest = 0;
        for shard in &mut self.shards {
            for name in [b"k", b"l"] {
                let key = shard.key(name);
                let shown = shard.show_replica(0, key, Now::default(), &mut |_, _| {});
                newest = newest.max(shown.map_or(0, |replica| replica.newest.time));
            }
        }
        newest
    }

    /// Each starts with the file of the given worker. Returns the time above which a startup's clock is.
    pub(super) fn restart_with(&mut self, files_of: [usize; 2]) -> u64 {
        let logs = std::mem::take(&mut self.logs);
        self.logs = files_of.map(|of| logs[of].clone());
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
            shard.lattice_mut().set_keying(Some(Arc::new(All)));
            shard.observers_mut().set_journaling(true);
        }
        let latest = files.iter().map(|held| held.latest());
        let latest = latest.fold(self.newest(), u64::max);
        for name in [b"k", b"l"] {
            self.tell(0, name);
            self.tell(1, name);
        }
        for shard in &mut self.shards {
            bring_back(shard, &files, |_| true, self.now);
            let horizons = files.iter().map(|held| held.horizon());
            shard.horizons_mut().forget(horizons.max().unwrap_or(0));
            shard.check();
        }
        // Before the next command.
        self.log();
        latest
    }

    fn text(&mut self, at: usize) -> Option<Vec<u8>> {
        let key = self.shards[at].key(b"k");
        let text = self.shards[at].peek(0, key, self.now).expect("a string");
        text.map(|text| text.bytes().to_vec())
    }

    pub(super) fn check(&mut self, value: Option<&[u8]>) {
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
        // A replica that has not forgotten it accepts the write as well.
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

#[test]
fn stamps_go_on_above_what_a_start_keeps_apart() {
    let mut pair = Pair::new();
    pair.add(0, b"k", b"x");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    pair.add(0, b"k", b"y");
    let newest = pair.newest();
    assert!(newest > 0 && pair.restart_with([0, 1]) >= newest);
}

/// A set that was created again has nothing of its earlier state.
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

/// A worker without state in memory may have state in its log, which the log of another one removes, until that one
/// is flushed.
#[test]
fn a_flush_of_nothing_is_in_the_log() {
    let mut pair = Pair::new();
    pair.set(0, b"k", b"text");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    // The other has state of another key.
    pair.set(1, b"l", b"text");
    let key = pair.shards[0].key(b"l");
    assert!(pair.shards[0].take_entry(0, key, NOW).is_some());
    assert_eq!(pair.shards[0].graves_len() + pair.shards[0].len(0), 0);
    pair.shards.iter_mut().for_each(|shard| shard.flush(0));
    pair.log();
    pair.restart();
    pair.check(None);
}

/// The file of one worker notes that a set is forgotten; it is in a snapshot of the other, which then increments a
/// count; and there is another startup.
#[test]
fn what_one_file_says_has_gone_is_said_in_those_that_still_have_it() {
    let mut pair = Pair::new();
    pair.add(1, b"k", b"x");
    pair.remove(1, b"k");
    pair.cut();
    pair.forget(&[1]);
    pair.restart();
    pair.set(1, b"k", b"100");
    pair.write(0, b"k", |shard| {
        let key = shard.key(b"k");
        assert!(strings::increment(&mut shard.at(0, key, NOW), 4).is_some());
    });
    for _ in 0..3 {
        pair.restart();
        pair.check(Some(b"104"));
    }
}

impl Pair {
    pub(super) fn count(&mut self, at: usize, name: &[u8], by: i64) {
        let now = self.now;
        self.write(at, name, |shard| {
            let key = shard.key(name);
            assert!(strings::increment(&mut shard.at(0, key, now), by).is_some());
        });
    }

    fn set_field(&mut self, at: usize, name: &[u8]) {
        let now = self.now;
        self.write(at, name, |shard| {
            let key = shard.key(name);
            let (field, value) = (&b"f"[..], &b"v"[..]);
            let done = shard.update::<Hash, _>(0, key, now, |editor| {
                editor.apply(&hash::Op::Set { field, value });
            });
            assert!(done.is_ok());
        });
    }

    fn check_member(&mut self) {
        for shard in &mut self.shards {
            let key = shard.key(b"k");
            let view = shard.collection::<Set>(0, key, self.now).expect("a set");
            assert!(view.is_some_and(|view| view.len() == 1 && view.contains(b"y")));
        }
    }
}

/// A string's removal that all have forgotten is in the file in which the string is kept apart, as the key had a set
/// before. The count has no stamp.
#[test]
fn a_count_where_a_string_and_a_set_were_is_there_after_a_start() {
    let mut pair = Pair::new();
    pair.add(0, b"k", b"x");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    pair.set(1, b"k", b"7");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    pair.count(1, b"k", 5);
    for _ in 0..2 {
        pair.restart();
        pair.check(Some(b"5"));
    }
}

/// A file has an earlier hash, whose type has the higher tag, a set that is noted to have gone, and then a set again.
#[test]
fn a_set_behind_a_note_is_kept_apart_from_what_was_before() {
    let mut pair = Pair::new();
    pair.set_field(1, b"k");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    pair.add(1, b"k", b"x");
    pair.remove(1, b"k");
    pair.forget(&[0, 1]);
    pair.add(1, b"k", b"y");
    for _ in 0..3 {
        pair.restart();
        pair.check_member();
    }
}

/// One worker forgot a set before the snapshots, and its files have no note of that; the other has its grave, which
/// all have received.
#[test]
fn a_grave_of_which_all_have_heard_is_in_no_snapshot() {
    let mut pair = Pair::new();
    pair.add(0, b"k", b"x");
    pair.remove(0, b"k");
    pair.forget(&[1]);
    pair.cut();
    pair.set(1, b"k", b"text");
    for _ in 0..2 {
        pair.restart();
        pair.check(Some(b"text"));
    }
}

/// One file notes that a hash has gone, the other has the hash behind a note of its own.
#[test]
fn what_one_file_says_has_gone_is_said_where_it_is_kept_apart() {
    let mut pair = Pair::new();
    pair.add(0, b"k", b"x");
    pair.remove(0, b"k");
    pair.forget(&[0, 1]);
    pair.set_field(0, b"k");
    pair.remove(0, b"k");
    pair.forget(&[1]);
    pair.restart();
    pair.set(0, b"k", b"7");
    for _ in 0..2 {
        pair.restart();
        pair.check(Some(b"7"));
    }
}

/// One has forgotten the string's removal, and the other increments it at the same time.
#[test]
fn counts_with_and_without_the_removal_add_up_also_after_a_start() {
    for cuts in [false, true] {
        let mut pair = Pair::new();
        pair.set(0, b"k", b"7");
        pair.remove(1, b"k");
        pair.forget(&[0]);
        for (at, by) in [(0, 5), (1, 30)] {
            let now = pair.now;
            pair.write_untold(at, |shard| {
                let key = shard.key(b"k");
                assert!(strings::increment(&mut shard.at(0, key, now), by).is_some());
            });
        }
        pair.log();
        pair.tell(0, b"k");
        pair.tell(1, b"k");
        pair.check(Some(b"35"));
        if cuts {
            pair.cut();
        }
        pair.count(0, b"k", 100);
        for _ in 0..2 {
            pair.restart();
            pair.check(Some(b"135"));
        }
    }
}
