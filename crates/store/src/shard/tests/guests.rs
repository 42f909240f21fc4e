//! Keys of slots that another node answers for.

use crate::shard::{ExpirySetting, NewValue, Shard};
use rufous_base::Now;
use rufous_base::slot::slot_of;

const DEADLINE_MS: u64 = 5_000;

fn at(unix_ms: u64) -> Now {
    Now {
        unix_us: unix_ms * 1000,
        mono_us: 0,
    }
}

/// The node that answers for the slot of a key, and another one with a copy.
struct Pair {
    head: Shard,
    copy: Shard,
}

impl Pair {
    fn new() -> Self {
        let node = || {
            let mut shard = Shard::new(1);
            shard.invite_all();
            shard.observers_mut().set_journaling(true);
            shard
        };
        let (mut head, copy) = (node(), node());
        head.set_guest(slot_of(b"k"), false);
        Self { head, copy }
    }

    /// Sets the key at the head, with the deadline.
    fn set(&mut self, now: Now, setting: ExpirySetting) {
        let key = self.head.key(b"k");
        self.head.set(0, key, NewValue::Copy(b"v"), setting, now);
    }

    /// The head's changes go along the chain.
    fn pass(&mut self) {
        let effects = std::mem::take(self.head.journal());
        self.head.observers_mut().empty_journal();
        let done = self.copy.do_in_slot(slot_of(b"k"), &effects, at(0));
        done.expect("effects of this slot");
        self.copy.observers_mut().empty_journal();
    }
}

fn has(shard: &mut Shard, now: Now) -> bool {
    let key = shard.key(b"k");
    let has = shard.contains(0, key, now);
    assert_eq!(shard.look(0, key, now).is_some(), has);
    shard.check();
    has
}

#[test]
fn the_head_decides_when_a_key_expires_and_a_copy_shows_it_until_then() {
    let mut pair = Pair::new();
    pair.set(at(0), ExpirySetting::At(DEADLINE_MS));
    pair.pass();
    // The copy's clock is ahead, by more than the key has to live.
    assert!(has(&mut pair.head, at(DEADLINE_MS - 1)));
    assert!(has(&mut pair.copy, at(DEADLINE_MS + 600_000)));
    assert!(!pair.copy.expire_step(at(DEADLINE_MS + 600_000), 100));
    assert!(has(&mut pair.copy, at(DEADLINE_MS + 600_000)));
    // The head's clock passes the deadline: what it replies must wait for the copy, which has the key still.
    assert!(!has(&mut pair.head, at(DEADLINE_MS)));
    assert!(pair.head.observers().journal_tells());
    assert!(has(&mut pair.copy, at(0)));
    pair.pass();
    assert!(!has(&mut pair.copy, at(0)));
}

#[test]
fn removals_in_the_order_of_deadlines_are_waited_for_too() {
    let mut pair = Pair::new();
    pair.set(at(0), ExpirySetting::At(DEADLINE_MS));
    pair.pass();
    pair.head.expire_step(at(DEADLINE_MS), 100);
    assert!(pair.head.observers().journal_tells());
    pair.pass();
    assert!(!has(&mut pair.copy, at(0)));
}

#[test]
fn a_write_after_the_deadline_begins_anew_at_every_copy() {
    for setting in [ExpirySetting::Keep, ExpirySetting::Clear] {
        let mut pair = Pair::new();
        pair.set(at(0), ExpirySetting::At(DEADLINE_MS));
        pair.pass();
        pair.set(at(DEADLINE_MS), setting);
        pair.pass();
        for shard in [&mut pair.head, &mut pair.copy] {
            let key = shard.key(b"k");
            assert_eq!(shard.expire_at(0, key, at(DEADLINE_MS)), Some(None));
        }
    }
}

#[test]
fn a_copy_that_becomes_the_head_decides_by_its_own_clock() {
    let mut pair = Pair::new();
    pair.set(at(0), ExpirySetting::At(DEADLINE_MS));
    pair.pass();
    assert!(has(&mut pair.copy, at(DEADLINE_MS)));
    pair.copy.set_guest(slot_of(b"k"), false);
    assert!(!has(&mut pair.copy, at(DEADLINE_MS)));
    assert!(pair.copy.observers().journal_tells());
}

/// A node alone starts again with the deadlines, which have passed: nothing waits for these removals.
#[test]
fn without_copies_no_reply_waits_for_an_expiry() {
    let mut shard = Shard::new(1);
    shard.observers_mut().set_journaling(true);
    let key = shard.key(b"k");
    let setting = ExpirySetting::At(DEADLINE_MS);
    shard.set(0, key, NewValue::Copy(b"v"), setting, at(0));
    shard.observers_mut().empty_journal();
    assert!(!has(&mut shard, at(DEADLINE_MS)));
    assert!(!shard.observers().journal_tells() && !shard.journal().is_empty());
}
