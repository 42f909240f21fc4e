//! Writes to replicated keys, and changes from other replicas, one by one.

use super::replicas::All;
use crate::effect::Effect;
use crate::shard::strings;
use crate::shard::{
    Editor, Entry, ExpirySetting, Key, Keyed, Keying, NewValue, OwnedValue, Shard, WatchId,
    WrongType,
};
use rufous_base::Now;
use rufous_datatype::list::List;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_datatype::set::{Op, Set};
use rufous_lattice::Clock;
use std::sync::Arc;

const NOW: Now = Now {
    mono_us: 5_000_000,
    unix_us: 5_000_000,
};

fn writer(step: u64) -> Writer {
    let stamp = Clock::new(1).tick(NOW.unix_us + step);
    Writer { stamp }
}

fn shard() -> Shard {
    let mut shard = Shard::new(1);
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    shard
}

#[test]
fn what_needs_other_replicas_is_refused_and_changes_nothing() {
    let mut shard = shard();
    let key = shard.key(b"k");
    shard.begin_lattice(writer(0));
    shard.set(0, key, NewValue::Copy(b"abc"), ExpirySetting::Clear, NOW);
    assert_eq!(shard.end_lattice().and_then(|e| e.refused), None);
    type Try = fn(&mut Shard, Key<'_>);
    let tries: [Try; 4] = [
        |shard, key| {
            shard.append(0, key, b"d", NOW);
        },
        |shard, key| shard.edit((0, key), 5, Some(4..5), NOW, |bytes| bytes[4] = b'e'),
        |shard, key| {
            let pushed = shard.update::<List, _>(0, key, NOW, |_| ());
            assert_eq!(pushed, Err(WrongType));
        },
        |shard, key| {
            let value = OwnedValue::Object(Tag::Set.empty());
            let entry = Entry {
                value,
                expire_at: None,
                access: 0,
            };
            shard.insert_entry(0, key, entry, NOW);
        },
    ];
    for (step, attempt) in tries.into_iter().enumerate() {
        shard.begin_lattice(writer(1 + step as u64));
        attempt(&mut shard, key);
        let ended = shard.end_lattice().expect("it had begun");
        assert!(ended.refused.is_some(), "number {step}");
        let value = shard.peek(0, key, NOW).expect("a string");
        assert_eq!(value.map(|v| v.bytes().to_vec()), Some(b"abc".to_vec()));
        shard.check();
    }
    assert!(!shard.data.env.observers.any());
}

#[test]
fn a_write_in_place_is_told_like_any_other() {
    let (mut quick, mut slow) = (shard(), shard());
    for shard in [&mut quick, &mut slow] {
        shard.observers_mut().set_journaling(true);
    }
    for n in 0..20u64 {
        // Two lengths, so that some are overwritten in place; some arrive late.
        let stamp = writer(if n % 5 == 4 { n - 2 } else { n }).stamp;
        let value = vec![b'a' + n as u8; 8 + (n as usize / 4 % 2)];
        let key = quick.key(b"k");
        quick.put_register(0, key, (stamp, true), &value, NOW);
        slow.begin_lattice(Writer { stamp });
        slow.set(0, key, NewValue::Copy(&value), ExpirySetting::Clear, NOW);
        slow.end_lattice();
    }
    assert_eq!(quick.journal(), slow.journal());
    assert_eq!(quick.changeset().len(), 1);
    let key = quick.key(b"k");
    let mut states = Vec::new();
    for shard in [&mut quick, &mut slow] {
        shard.show_replica(0, key, NOW, &mut |tag, chunk| {
            states.push((tag, chunk.to_vec()))
        });
        shard.check();
    }
    assert_eq!(states[0], states[1]);
    assert!(states[0].1.ends_with(b"tttttttt") || states[0].1.ends_with(b"ssssssss"));
}

#[test]
fn a_collection_is_told_as_it_is_behind_a_replicated_string() {
    // The second write is in place.
    for writes in 1..3 {
        let mut shard = shard();
        shard.observers_mut().set_journaling(true);
        for step in 0..writes {
            shard.begin_lattice(writer(step));
            let key = shard.key(b"k");
            shard.set(0, key, NewValue::Copy(b"abc"), ExpirySetting::Clear, NOW);
            shard.end_lattice();
        }
        let key = shard.key(b"s");
        let add = Op::Add { member: b"m" };
        let done = shard.update::<Set, _>(0, key, NOW, |editor| editor.apply(&add));
        assert!(done.is_ok());
        let journal = std::mem::take(shard.journal());
        let (mut rest, mut last) = (&journal[..], None);
        while !rest.is_empty() {
            last = Some(Effect::decode(&mut rest).expect("an effect"));
        }
        let Some(Effect::Update { tag, ops, .. }) = last else {
            panic!("{last:?}");
        };
        assert_eq!((tag, tag.are_operations(ops)), (Tag::Set, true));
    }
}

#[test]
fn hostile_chunks_are_errors_and_change_nothing() {
    let mut shard = shard();
    let key = shard.key(b"k");
    shard.put_register(0, key, (writer(0).stamp, true), b"value", NOW);
    let mut good = Vec::new();
    shard.show_replica(0, key, NOW, &mut |_, chunk| good = chunk.to_vec());
    assert_eq!(shard.merge(0, key, Tag::Register, &good, NOW), Ok(false));
    for cut in 0..13 {
        assert!(
            shard
                .merge(0, key, Tag::Register, &good[..cut], NOW)
                .is_err()
        );
    }
    assert!(
        shard.merge(0, key, Tag::Set, b"\x01a", NOW).is_err(),
        "no replicated type"
    );
    let value = shard.peek(0, key, NOW).expect("a string");
    assert_eq!(value.map(|v| v.bytes().to_vec()), Some(b"value".to_vec()));
    shard.check();
}

#[test]
fn who_watches_or_waits_hears_of_what_others_wrote() {
    let (mut here, mut there) = (shard(), shard());
    let key = there.key(b"k");
    there.put_register(0, key, (writer(0).stamp, true), b"value", NOW);
    let mut chunk = Vec::new();
    there.show_replica(0, key, NOW, &mut |_, bytes| chunk = bytes.to_vec());
    here.watch(0, key, WatchId(1), NOW);
    here.observers_mut().await_key(0, key);
    assert_eq!(here.merge(0, key, Tag::Register, &chunk, NOW), Ok(true));
    assert!(here.observers().watches().is_dirty(WatchId(1)) && here.observers().has_touched());
}

#[test]
fn a_strict_change_of_bytes_makes_a_plain_string() {
    let mut shard = shard();
    for long in [3, 5000] {
        let key = shard.key(b"k");
        let value = vec![b'x'; long];
        shard.put_register(0, key, (writer(long as u64).stamp, true), &value, NOW);
        assert_eq!(shard.append(0, key, b"yz", NOW), long + 2);
        let bytes = shard.peek(0, key, NOW).expect("a string");
        assert_eq!(bytes.map(|v| v.bytes().len()), Some(long + 2));
        shard.check();
        assert!(shard.remove(0, key, NOW));
    }
}

#[test]
fn values_from_before_there_were_replicas_are_taken_over_or_refused() {
    let mut shard = shard();
    let (text, number, set) = (shard.key(b"text"), shard.key(b"number"), shard.key(b"set"));
    shard.set(0, text, NewValue::Copy(b"old"), ExpirySetting::Clear, NOW);
    shard.set(0, number, NewValue::Copy(b"7"), ExpirySetting::Clear, NOW);
    let add = |editor: &mut Editor<'_, Set>| editor.apply(&Op::Add { member: b"m" });
    shard.update::<Set, _>(0, set, NOW, add).expect("a set");
    shard.observers_mut().set_journaling(true);
    shard.begin_lattice(writer(0));
    assert!(shard.set(0, text, NewValue::Copy(b"new"), ExpirySetting::Clear, NOW));
    assert!(matches!(
        strings::increment(&mut shard.at(0, number, NOW), 5),
        Some(Ok(12))
    ));
    assert_eq!(shard.end_lattice().and_then(|ended| ended.refused), None);
    shard.begin_lattice(writer(9));
    assert!(shard.update::<Set, _>(0, set, NOW, add).is_err());
    assert!(
        shard
            .end_lattice()
            .is_some_and(|ended| ended.refused.is_some())
    );
    shard.begin_lattice(writer(10));
    assert!(shard.remove(0, set, NOW));
    assert!(shard.update::<Set, _>(0, set, NOW, add).is_ok());
    assert_eq!(shard.end_lattice().and_then(|ended| ended.refused), None);
    assert_eq!(shard.changeset().len(), 3);
    shard.check();
    for key in [text, number, set] {
        assert!(
            shard
                .show_replica(0, key, NOW, &mut |_, _| ())
                .is_some_and(|r| r.is_shown)
        );
    }
}

#[test]
fn what_was_done_to_a_copy_comes_home_as_operations() {
    let (mut home, mut copy) = (shard(), Shard::new(2));
    copy.lattice_mut().set_keying(Some(Arc::new(All)));
    let write = |shard: &mut Shard, step, member: &[u8], there| {
        let key = shard.key(b"k");
        shard.begin_lattice(writer(step));
        let done = shard.update::<Set, _>(0, key, NOW, |editor| match there {
            true => editor.apply(&Op::Add { member }),
            false => editor.apply(&Op::Remove { member }),
        });
        assert!(done.is_ok());
        assert_eq!(shard.end_lattice().and_then(|ended| ended.refused), None);
    };
    write(&mut home, 0, b"x", true);
    write(&mut home, 1, b"x", false);
    home.changeset().clear();
    let key = home.key(b"k");
    let entry = home.gather_entry(0, key, NOW).expect("it has a grave");
    copy.insert_entry(0, copy.key(b"k"), entry, NOW);
    assert_eq!(copy.graves_len(), 1);
    copy.observers_mut().set_brief_journaling(true);
    write(&mut copy, 2, b"y", true);
    write(&mut copy, 3, b"z", true);
    write(&mut copy, 4, b"y", false);
    home.observers_mut().set_journaling(true);
    let effects = std::mem::take(copy.journal());
    home.carry_out(&effects, NOW);
    assert_eq!(*home.journal(), effects);
    assert_eq!((home.changeset().len(), home.graves_len()), (1, 0));
    let view = home.collection::<Set>(0, key, NOW).expect("a set");
    assert!(view.is_some_and(|view| view.len() == 1 && view.contains(b"z")));
    home.check();
    assert!(copy.take_entry(0, copy.key(b"k"), NOW).is_some() && copy.is_empty(0));
}

#[test]
fn graves_go_with_their_database() {
    let mut shard = shard();
    let key = shard.key(b"k");
    for step in 0..2 {
        shard.put_register(3, key, (writer(2 * step).stamp, true), b"value", NOW);
        shard.begin_lattice(writer(2 * step + 1));
        assert!(shard.remove(3, key, NOW));
        shard.end_lattice();
        assert_eq!((shard.len(3), shard.graves_len()), (0, 1));
        assert!(shard.charged() > 0);
        shard.swap(3, 4);
        assert_eq!(shard.graves(4, b"", 9).0.len(), 1);
        shard.check();
        shard.flush(4);
        assert_eq!((shard.graves_len(), shard.charged()), (0, 0));
    }
}

/// Keys that begin with `s` are strict.
#[derive(Debug)]
struct NotStrict;

impl Keying for NotStrict {
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        All.of(key).filter(|_| !key.starts_with(b"s"))
    }
}

#[test]
fn the_journal_of_a_strict_key_has_nothing_of_a_replicas_write() {
    let mut shard = Shard::new(1);
    shard.lattice_mut().set_keying(Some(Arc::new(NotStrict)));
    shard.observers_mut().set_journaling(true);
    let (key, strict) = (shard.key(b"k"), shard.key(b"strict"));
    // Rewritten, and in place.
    for step in 0..2 {
        shard.begin_lattice(writer(step));
        shard.set(0, key, NewValue::Copy(b"abc"), ExpirySetting::Clear, NOW);
        shard.end_lattice();
        let member = [b'0' + step as u8];
        let op = Op::Add { member: &member };
        let done = shard.update::<Set, _>(0, strict, NOW, |set| set.apply(&op).is_true());
        assert_eq!(done, Ok(true));
    }
    let mut copy = Shard::new(2);
    super::journal::replay(&mut copy, &shard.journal().clone());
    let strict = copy.key(b"strict");
    let set = copy.read(0, strict, NOW).expect("it was made");
    assert_eq!(set.of::<Set>().expect("a set").len(), 2);
}

/// A wall clock that leads is not followed, even in a database that is flushed meanwhile.
#[test]
fn a_flushed_database_does_not_follow_a_clock_that_leads() {
    let mut shard = shard();
    let at = |seconds: u64| Now {
        mono_us: 0,
        unix_us: seconds * 1_000_000,
    };
    shard.set_clock_ahead(60_000);
    shard.flush(0);
    shard.begin_lattice(writer(0));
    let (key, expiry) = (shard.key(b"k"), ExpirySetting::At(130_000));
    shard.set(0, key, NewValue::Copy(b"v"), expiry, at(100));
    shard.end_lattice();
    assert!(shard.contains(0, key, at(150)));
    assert!(!shard.contains(0, key, at(200)));
}
