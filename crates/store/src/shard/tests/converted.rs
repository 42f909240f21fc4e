//! A startup reads a log in which the table of keyspaces changes.

use super::journal::replay;
use super::replicas::All;
use crate::effect::Effect;
use crate::keyspace::{Keyspace, Keyspaces, Regime};
use crate::shard::{ExpirySetting, NewValue, Shard};
use rufous_base::Now;
use rufous_datatype::replicated::Writer;
use rufous_lattice::Clock;
use std::sync::Arc;

const NOW: Now = Now {
    mono_us: 5_000_000,
    unix_us: 5_000_000,
};

fn table_effect(table: &Keyspaces) -> Vec<u8> {
    let (mut bytes, mut effect) = (Vec::new(), Vec::new());
    table.encode(&mut bytes);
    Effect::Keyspaces { bytes: &bytes }.encode(&mut effect);
    effect
}

/// The log's effects of strings that were written to replicas.
fn writes(names: &[&str]) -> Vec<u8> {
    let mut shard = Shard::new(1);
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    shard.observers_mut().set_journaling(true);
    let stamp = Clock::new(1).tick(NOW.unix_us);
    shard.begin_lattice(Writer { stamp });
    for name in names {
        let key = shard.key(name.as_bytes());
        shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::Clear, NOW);
    }
    let ended = shard.end_lattice().expect("it had begun");
    assert_eq!(ended.refused, None);
    shard.journal().clone()
}

/// A removal that another worker made is not in this one's log. Once it is forgotten here, the change of the table
/// does not mention the key, and no file may restore it.
#[test]
fn what_a_log_has_of_replicas_before_they_were_converted_is_dropped() {
    let keyspace = |threads, prefix: &[u8]| Keyspace {
        regime: Regime::Lattice,
        threads,
        ..Keyspace::new(if prefix == b"a:" { "a" } else { "b" }, prefix)
    };
    let before = Keyspaces::default();
    let before = before.with(keyspace(2, b"a:")).expect("new");
    let before = before.with(keyspace(2, b"b:")).expect("new");
    let fewer = before.altered(keyspace(1, b"a:")).expect("known");
    let strict = before.without("a").expect("known");
    for after in [&fewer, &strict] {
        // On a node of two workers each key had two replicas; on one of one worker it had one.
        for (workers, stays) in [(2, false), (1, *after == fewer)] {
            let mut log = table_effect(&before);
            log.extend(writes(&["a:gone", "a:kept", "b:other"]));
            log.extend(table_effect(after));
            match *after == fewer {
                true => log.extend(writes(&["a:kept"])),
                false => Effect::Set {
                    db: 0,
                    key: b"a:kept",
                    value: b"v",
                    expire_at: None,
                }
                .encode(&mut log),
            }
            let mut shard = Shard::new(2);
            shard.hold_counts(workers);
            replay(&mut shard, &log);
            let mut has = |name: &str| {
                let key = shard.key(name.as_bytes());
                shard.contains(0, key, Now::default())
            };
            assert_eq!(has("a:gone"), stays, "{workers} workers");
            assert!(has("a:kept") && has("b:other"));
            shard.check();
        }
    }
}

/// A repeated or older table changes nothing.
#[test]
fn a_table_that_is_known_drops_nothing() {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        ..Keyspace::new("a", b"a:")
    };
    let older = Keyspaces::default().with(keyspace).expect("new");
    let table = older.without("a").expect("known").with(Keyspace {
        regime: Regime::Lattice,
        ..Keyspace::new("a", b"a:")
    });
    let table = table.expect("new");
    let mut log = table_effect(&table);
    log.extend(writes(&["a:kept"]));
    log.extend(table_effect(&table));
    log.extend(table_effect(&older));
    let mut shard = Shard::new(2);
    shard.hold_counts(2);
    replay(&mut shard, &log);
    let key = shard.key(b"a:kept");
    assert!(shard.contains(0, key, Now::default()));
}
