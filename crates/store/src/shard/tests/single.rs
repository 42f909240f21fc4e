//! Single properties that the model does not see.

use crate::shard::{Entry, ExpirySetting, NewValue, OwnedValue, Shard};
use rufous_base::Now;

#[test]
fn a_value_still_being_read_is_not_changed_under_its_reader() {
    let mut shard = Shard::new(1);
    let now = Now::default();
    let key = shard.key(b"k");
    shard.set(
        0,
        key,
        NewValue::Own(vec![1; 10_000]),
        ExpirySetting::Clear,
        now,
    );
    let entry = shard.clone_entry(0, key, now).expect("just set");
    shard.append(0, key, b"more", now);
    shard.edit((0, key), 0, Some(0..1), now, |bytes| bytes[0] = 9);
    assert_eq!(
        entry.value.any().string().expect("a string").bytes(),
        [1; 10_000]
    );
    let changed = shard
        .get(0, key, now)
        .expect("a string")
        .expect("there")
        .bytes();
    assert_eq!((changed.len(), changed[0], changed[1]), (10_004, 9, 1));
    shard.check();
}

#[test]
fn what_is_large_is_handed_out_rather_than_dropped() {
    let mut shard = Shard::new(1);
    let now = Now::default();
    let key = shard.key(b"k");
    let entry = Entry {
        value: OwnedValue::Big(vec![1; 1 << 20].into()),
        expire_at: None,
        access: 0,
    };
    shard.insert_entry(0, key, entry.clone(), now);
    assert!(shard.take_garbage().is_empty());
    shard.set(0, key, NewValue::Copy(b"small"), ExpirySetting::Clear, now);
    assert_eq!(shard.take_garbage().len(), 1);
    shard.insert_entry(0, key, entry, now);
    shard.flush(0);
    assert_eq!((shard.take_garbage().len(), shard.len(0)), (1, 0));
    assert_eq!(shard.memory().big_bytes, 0);
}

#[test]
fn a_key_is_gone_at_its_time_and_not_before() {
    let mut shard = Shard::new(1);
    let at = |ms: u64| Now {
        mono_us: 0,
        unix_us: ms * 1000,
    };
    let key = shard.key(b"k");
    shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::At(50), at(1));
    assert!(shard.get(0, key, at(49)).expect("a string").is_some());
    assert_eq!(shard.avg_ttl(0, at(40)), 10);
    assert!(shard.get(0, key, at(50)).expect("a string").is_none());
    assert_eq!((shard.len(0), shard.counters().expired), (0, 1));
    shard.check();
}

#[test]
fn reads_leave_a_stamp_unless_told_not_to() {
    let mut shard = Shard::new(1);
    let at = |s: u64| Now {
        mono_us: s * 1_000_000,
        unix_us: 0,
    };
    let key = shard.key(b"k");
    shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::Clear, at(10));
    let idle = |shard: &mut Shard, s: u64| {
        let stamp = shard.access(0, key, at(s)).expect("there");
        shard.policy().idle_s(stamp, at(s))
    };
    shard.peek(0, key, at(20)).expect("a string");
    assert_eq!(idle(&mut shard, 25), 15);
    shard.get(0, key, at(20)).expect("a string");
    assert_eq!(idle(&mut shard, 25), 5);
    shard.set_touch(false);
    shard.get(0, key, at(24)).expect("a string");
    assert_eq!(idle(&mut shard, 25), 5);
    let mut entry = shard.clone_entry(0, key, at(25)).expect("there");
    entry.access = shard.policy().idle_stamp(3, at(25));
    shard.insert_entry(0, key, entry, at(25));
    assert_eq!(idle(&mut shard, 25), 3);
}
