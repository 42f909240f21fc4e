//! Deadlines of replicated strings have stamps of their own: setting one neither undoes a write of another replica nor
//! loses counts, and one that was forgotten does not restore what had expired.

use super::gone::Pair;
use crate::shard::strings;
use crate::shard::{ExpirySetting, NewValue, Shard};
use rufous_base::Now;

const K: &[u8] = b"k";

/// Far beyond the time of the tests.
const LATER: u64 = 1 << 40;

fn put(value: &[u8], expiry: ExpirySetting, now: Now) -> impl FnOnce(&mut Shard) {
    move |shard| {
        let key = shard.key(K);
        shard.set(0, key, NewValue::Copy(value), expiry, now);
    }
}

fn expire(unix_ms: Option<u64>, now: Now) -> impl FnOnce(&mut Shard) {
    move |shard| {
        let key = shard.key(K);
        shard.set_expire_at(0, key, unix_ms, now);
    }
}

fn count(now: Now) -> impl FnOnce(&mut Shard) {
    move |shard| {
        let key = shard.key(K);
        assert!(strings::increment(&mut shard.at(0, key, now), 1).is_some());
    }
}

impl Pair {
    /// Both exchange what they have.
    fn meet(&mut self) {
        self.tell(0, K);
        self.tell(1, K);
        self.log();
    }

    fn deadlines(&mut self) -> [Option<u64>; 2] {
        let now = self.now;
        let each = self.shards.iter_mut().map(|shard| {
            let key = shard.key(K);
            shard.expire_at(0, key, now).flatten()
        });
        let all: Vec<_> = each.collect();
        [all[0], all[1]]
    }
}

#[test]
fn a_write_is_not_undone_by_a_deadline_that_is_set_where_the_old_value_is_shown() {
    // Short values, and one that fits no record.
    for len in [3, 9_000] {
        let mut pair = Pair::new();
        let now = pair.now;
        for round in 0..60u8 {
            let [old, new] = [vec![round; len], vec![round + 100; len]];
            pair.set(0, K, &old);
            pair.write_untold(0, put(&new, ExpirySetting::Clear, now));
            let at = LATER + u64::from(round);
            pair.write_untold(1, expire(Some(at), now));
            pair.meet();
            pair.check(Some(&new));
            assert_eq!(pair.deadlines(), [Some(at); 2]);
        }
        pair.restart();
        pair.check(Some(&vec![159; len]));
        // A later write without one clears the deadline.
        pair.set(1, K, b"x");
        assert_eq!(pair.deadlines(), [None; 2]);
        // Removing a deadline does not write the value either.
        pair.write_untold(0, put(b"y", ExpirySetting::At(LATER), now));
        pair.write_untold(1, expire(None, now));
        pair.meet();
        pair.check(Some(b"y"));
        assert_eq!(pair.deadlines(), [None; 2]);
    }
}

#[test]
fn a_thousand_increments_each_followed_by_a_deadline_elsewhere_count_a_thousand() {
    let mut pair = Pair::new();
    let now = pair.now;
    for _ in 0..1_000 {
        pair.write_untold(0, count(now));
        pair.write_untold(1, expire(Some(LATER), now));
        pair.meet();
    }
    pair.check(Some(b"1000"));
    pair.restart();
    pair.check(Some(b"1000"));
}

#[test]
fn a_write_that_keeps_the_deadline_keeps_one_that_is_set_at_the_same_time() {
    let mut pair = Pair::new();
    let now = pair.now;
    pair.write(0, K, put(b"old", ExpirySetting::At(LATER), now));
    pair.write_untold(1, expire(Some(LATER + 5), now));
    pair.write_untold(0, put(b"new", ExpirySetting::Keep, now));
    pair.meet();
    pair.check(Some(b"new"));
    assert_eq!(pair.deadlines(), [Some(LATER + 5); 2]);
    pair.restart();
    pair.check(Some(b"new"));
    assert_eq!(pair.deadlines(), [Some(LATER + 5); 2]);
}

#[test]
fn what_is_deleted_is_not_restored_by_a_deadline_that_is_set_elsewhere() {
    let mut pair = Pair::new();
    let now = pair.now;
    for forgetting in [&[][..], &[0], &[1], &[0, 1]] {
        pair.set(0, K, b"7");
        pair.write_untold(0, |shard| {
            let key = shard.key(K);
            assert!(shard.remove(0, key, now));
        });
        pair.write_untold(1, expire(Some(LATER), now));
        pair.meet();
        pair.check(None);
        pair.forget(forgetting);
        // Nor does it apply to what begins after it.
        pair.write(1, K, count(now));
        pair.write(0, K, count(now));
        pair.meet();
        pair.check(Some(b"2"));
        assert_eq!(pair.deadlines(), [None; 2]);
        pair.restart();
        pair.check(Some(b"2"));
    }
}

#[test]
fn a_later_deadline_that_was_set_in_time_shows_what_has_expired_elsewhere() {
    let mut pair = Pair::new();
    let now = pair.now;
    for len in [3, 9_000] {
        let value = vec![b'v'; len];
        let soon = now.unix_ms() + 100;
        pair.now = now;
        pair.write(0, K, put(&value, ExpirySetting::At(soon), now));
        pair.write_untold(1, expire(Some(LATER), now));
        let late = Now {
            unix_us: now.unix_us + 200_000,
            ..now
        };
        let key = pair.shards[0].key(K);
        assert!(pair.shards[0].expire_at(0, key, late).is_none());
        pair.meet();
        pair.check(Some(&value));
    }
}

/// One replica has forgotten what had expired, and counts again from nothing, with a deadline. The other has not, and a startup finds
/// all of it.
#[test]
fn a_deadline_does_not_restore_what_expired_with_an_earlier_one() {
    for who in [&[0][..], &[0, 1]] {
        let mut pair = Pair::new();
        let soon = pair.now.unix_ms() + 100;
        pair.set(0, K, b"41");
        let now = pair.now;
        pair.write(1, K, expire(Some(soon), now));
        pair.now.unix_us += 1_000_000;
        pair.check(None);
        pair.count(1, b"l", 1);
        pair.forget(who);
        assert_eq!(pair.shards[0].graves_len(), 0);
        let now = pair.now;
        pair.write(0, K, count(now));
        pair.write(0, K, expire(Some(LATER), now));
        for _ in 0..3 {
            pair.check(Some(b"1"));
            assert_eq!(pair.deadlines(), [Some(LATER); 2]);
            pair.restart();
        }
        pair.write(1, K, count(now));
        pair.check(Some(b"2"));
    }
}

/// The value of a passed deadline stays in its grave until no replica can extend the deadline any more.
#[test]
fn what_has_expired_is_forgotten_when_all_clocks_have_reached_the_deadline() {
    let mut pair = Pair::new();
    let soon = pair.now.unix_ms() + 100;
    let now = pair.now;
    pair.write(0, K, put(b"v", ExpirySetting::At(soon), now));
    pair.now.unix_us += 200_000;
    pair.check(None);
    pair.forget(&[0, 1]);
    assert!(pair.shards.iter().all(|shard| shard.graves_len() == 1));
    pair.count(1, b"l", 1);
    pair.forget(&[0, 1]);
    assert!(pair.shards.iter().all(|shard| shard.graves_len() == 0));
}

/// A value has kept that it has no deadline. An older write without one is merged, and then the write before that.
#[test]
fn an_older_write_is_later_than_the_deadline_that_a_value_keeps() {
    let mut pair = Pair::new();
    let now = pair.now;
    pair.write(0, K, put(b"one", ExpirySetting::Clear, now));
    pair.write_untold(0, put(b"two", ExpirySetting::At(LATER), now));
    let mut dated = Vec::new();
    let key = pair.shards[0].key(K);
    pair.shards[0].show_replica(0, key, now, &mut |tag, chunk| {
        dated.push((tag, chunk.to_vec()));
    });
    pair.write_untold(0, put(b"too", ExpirySetting::Clear, now));
    pair.write_untold(1, put(b"six", ExpirySetting::Keep, now));
    pair.tell(0, K);
    for (tag, chunk) in dated {
        let key = pair.shards[1].key(K);
        let done = pair.shards[1].merge(0, key, tag, &chunk, now);
        assert!(done.is_ok());
    }
    assert_eq!(pair.deadlines(), [None; 2]);
    pair.meet();
    pair.check(Some(b"six"));
}
