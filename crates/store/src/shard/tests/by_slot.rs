//! Counting keys by slots.

use crate::shard::{ExpirySetting, NewValue, Shard};
use rufous_base::Now;
use rufous_base::slot::slot_of;

const NOW: Now = Now {
    unix_us: 1_000_000_000,
    mono_us: 0,
};

#[test]
fn copies_are_not_counted_with_what_is_answered_for() {
    let mut shard = Shard::new(1);
    shard.invite_all();
    let set = |shard: &mut Shard, name: &[u8], expiry| {
        let key = shard.key(name);
        shard.set(0, key, NewValue::Copy(b"v"), expiry, NOW);
    };
    for n in 0..50 {
        set(
            &mut shard,
            format!("{{a}}{n}").as_bytes(),
            ExpirySetting::Clear,
        );
        set(
            &mut shard,
            format!("{{b}}{n}").as_bytes(),
            ExpirySetting::At(9_000_000),
        );
    }
    let (a, b) = (slot_of(b"a"), slot_of(b"b"));
    let counted = |shard: &Shard| {
        shard.check();
        (shard.counted_len(0), shard.counted_expiring_len(0))
    };
    assert_eq!(counted(&shard), (0, 0));
    shard.set_guest(b, false);
    assert_eq!(counted(&shard), (50, 50));
    assert_eq!(
        (shard.own_slot_len(0, a), shard.own_slot_len(0, b)),
        (0, 50)
    );
    shard.set_guest(a, false);
    shard.set_guest(b, true);
    let (one, other) = (shard.key(b"{a}1"), shard.key(b"{b}1"));
    shard.remove(0, one, NOW);
    shard.remove(0, other, NOW);
    assert_eq!(counted(&shard), (49, 0));
    shard.set_guest(b, false);
    assert_eq!(counted(&shard), (98, 49));
    shard.flush(0);
    assert_eq!(counted(&shard), (0, 0));
    set(&mut shard, b"{a}", ExpirySetting::Clear);
    assert_eq!(counted(&shard), (1, 0));
}
