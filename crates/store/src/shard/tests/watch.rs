//! Which changes make which watchers dirty.

use crate::shard::{ExpirySetting, NewValue, Shard, WatchId};
use rufous_base::Now;

const A: WatchId = WatchId(1);
const B: WatchId = WatchId(2);

fn at(ms: u64) -> Now {
    Now {
        mono_us: 0,
        unix_us: ms * 1000,
    }
}

fn set(shard: &mut Shard, db: usize, name: &[u8], expiry: ExpirySetting) {
    let key = shard.key(name);
    shard.set(db, key, NewValue::Copy(b"v"), expiry, at(1));
}

/// Whether `change` touches the key `k` of database 0, which exists if `there`.
fn touches<R>(there: bool, change: impl FnOnce(&mut Shard) -> R) -> bool {
    let mut shard = Shard::new(1);
    let key = shard.key(b"k");
    if there {
        set(&mut shard, 0, b"k", ExpirySetting::At(100));
    }
    shard.watch(0, key, A, at(1));
    change(&mut shard);
    let dirty = shard.observers().watches().is_dirty(A);
    assert!(!shard.observers().watches().is_dirty(B));
    shard.observers_mut().unwatch(A);
    assert!(!shard.observers().watches().is_dirty(A), "forgotten");
    dirty
}

#[test]
fn every_change_of_a_key_touches_it_and_nothing_else_does() {
    let key = |shard: &Shard| shard.key(b"k");
    let other = |shard: &Shard| shard.key(b"other");
    let value = || NewValue::Copy(b"v");
    for there in [false, true] {
        assert!(touches(there, |s| {
            s.set(0, key(s), value(), ExpirySetting::Clear, at(1));
        }));
        assert!(touches(there, |s| {
            s.set(0, key(s), value(), ExpirySetting::Keep, at(1));
        }));
        assert!(touches(there, |s| {
            s.append(0, key(s), b"", at(1));
        }));
        assert!(touches(there, |s| s.edit(
            (0, key(s)),
            0,
            Some(0..0),
            at(1),
            |_| ()
        )));
        assert_eq!(touches(there, |s| s.remove(0, key(s), at(1))), there);
        assert_eq!(
            touches(there, |s| {
                let key = key(s);
                s.at(0, key, at(1)).take()
            }),
            there
        );
        assert_eq!(
            touches(there, |s| s.set_expire_at(0, key(s), None, at(1))),
            there
        );
        assert_eq!(touches(there, |s| s.contains(0, key(s), at(100))), there);
        assert_eq!(touches(there, |s| s.expire_step(at(100), 9)), there);
        assert_eq!(touches(there, |s| s.flush(0)), there);
        assert_eq!(touches(there, |s| s.swap(0, 3)), there);
        assert!(touches(there, |s| {
            set(s, 3, b"k", ExpirySetting::Clear);
            s.swap(3, 0);
        }));
        assert!(touches(there, |s| {
            set(s, 0, b"other", ExpirySetting::Clear);
            let entry = {
                let key = other(s);
                s.at(0, key, at(1)).take()
            }
            .expect("there");
            s.insert_entry(0, key(s), entry, at(1));
        }));
        assert!(!touches(there, |s| {
            set(s, 0, b"other", ExpirySetting::Clear);
            set(s, 1, b"k", ExpirySetting::Clear);
            s.read(0, key(s), at(2));
            s.remove(0, other(s), at(2));
            s.flush(1);
            s.swap(1, 2);
        }));
    }
    // Neither database has the watched key.
    assert!(!touches(false, |s| {
        set(s, 0, b"other", ExpirySetting::Clear);
        s.swap(0, 1);
        s.flush(1);
    }));
}

#[test]
fn an_expired_key_is_not_there_when_it_is_watched() {
    let mut shard = Shard::new(1);
    set(&mut shard, 0, b"k", ExpirySetting::At(10));
    let key = shard.key(b"k");
    shard.watch(0, key, A, at(10));
    assert_eq!(shard.len(0), 0);
    shard.expire_step(at(20), 10);
    assert!(!shard.observers().watches().is_dirty(A));
    set(&mut shard, 0, b"k", ExpirySetting::Clear);
    assert!(shard.observers().watches().is_dirty(A));
}

#[test]
fn watchers_come_and_go_apart_from_each_other() {
    let mut shard = Shard::new(1);
    let keys = [&b"a"[..], b"b", b"c"];
    for name in keys {
        let key = shard.key(name);
        shard.watch(0, key, A, at(1));
        shard.watch(0, key, A, at(1));
    }
    let key = shard.key(b"b");
    shard.watch(0, key, B, at(1));
    set(&mut shard, 0, b"a", ExpirySetting::Clear);
    assert!(shard.observers().watches().is_dirty(A) && !shard.observers().watches().is_dirty(B));
    shard.observers_mut().unwatch(A);
    // Watching again starts clean, and a removed watcher does not affect others.
    shard.watch(0, key, A, at(1));
    set(&mut shard, 0, b"a", ExpirySetting::Clear);
    assert!(!shard.observers().watches().is_dirty(A) && !shard.observers().watches().is_dirty(B));
    set(&mut shard, 0, b"b", ExpirySetting::Clear);
    assert!(shard.observers().watches().is_dirty(A) && shard.observers().watches().is_dirty(B));
    shard.observers_mut().unwatch(B);
    assert!(shard.observers().watches().is_dirty(A));
    shard.watch(0, shard.key(b"c"), A, at(1));
    assert!(
        shard.observers().watches().is_dirty(A),
        "what was touched stays touched"
    );
    shard.observers_mut().unwatch(A);
    shard.observers_mut().unwatch(A);
    assert!(!shard.data.env.observers.any());
    assert_eq!(shard.observers().watches().watchers(), 0);
}
