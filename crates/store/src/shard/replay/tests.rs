//! A replay, driven by hand.

use super::*;
use crate::effect::SlotMark;

struct Parts {
    replay: Replay,
    data: Databases,
    marks: Marks,
}

impl Parts {
    fn new() -> Self {
        Self {
            replay: Replay::default(),
            data: Databases::new(1),
            marks: Marks::default(),
        }
    }

    fn apply(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        let mut to = Store {
            data: &mut self.data,
            marks: &mut self.marks,
        };
        self.replay.apply(effect, &mut to)
    }

    fn carry(&mut self, effects: &[Effect<'_>], slot: Option<u16>) -> Result<(), NotAnEffect> {
        let mut bytes = Vec::new();
        effects.iter().for_each(|effect| effect.encode(&mut bytes));
        let mut to = Store {
            data: &mut self.data,
            marks: &mut self.marks,
        };
        self.replay.carry(&bytes, slot, Now::default(), &mut to)
    }

    fn value(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (db, key) = (&self.data.dbs[0], self.data.key(name));
        let found = db.records.find(key)?;
        let string = db.records.value(found.handle).string();
        Some(string.expect("a string").bytes().to_vec())
    }
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Effect<'a> {
    Effect::Set {
        db: 0,
        key,
        value,
        expire_at: Some(0),
    }
}

#[test]
fn nothing_expires_and_no_observer_learns_of_it() {
    let mut parts = Parts::new();
    parts.data.env.observers.set_journaling(true);
    assert_eq!(parts.apply(&set(b"k", b"v")), Ok(()));
    let append = Effect::Append {
        db: 0,
        key: b"k",
        tail: b"w",
    };
    assert_eq!(parts.apply(&append), Ok(()));
    assert_eq!(parts.value(b"k"), Some(b"vw".to_vec()));
    assert!(parts.data.env.observers.journal.bytes().is_empty());
    let (slot, mark) = (3, Some(SlotMark::Part));
    assert_eq!(parts.apply(&Effect::Slot { slot, mark }), Ok(()));
    assert_eq!(parts.marks.slots().len(), 1);
    assert_eq!(parts.apply(&Effect::FlushDb { db: 0 }), Ok(()));
    assert_eq!(parts.value(b"k"), None);
    parts.data.check();
}

#[test]
fn a_value_beyond_the_limit_is_refused() {
    let mut parts = Parts::new();
    let write = Effect::Write {
        db: 0,
        key: b"k",
        at: MAX_BULK,
        bytes: b"v",
    };
    assert_eq!(parts.apply(&write), Err(NotAnEffect));
    assert_eq!(parts.value(b"k"), None);
}

#[test]
fn what_is_carried_is_reported_up_to_an_invalid_effect() {
    let mut parts = Parts::new();
    parts.data.env.observers.set_journaling(true);
    let key = parts.data.key(b"{a}1");
    parts.data.env.observers.await_key(0, key);
    let slot = rufous_base::slot::slot_of(b"{a}");
    let effects = [set(b"{a}1", b"v"), set(b"{b}1", b"v")];
    assert_eq!(parts.carry(&effects, Some(slot)), Err(NotAnEffect));
    assert_eq!(parts.value(b"{a}1"), Some(b"v".to_vec()));
    assert_eq!(parts.value(b"{b}1"), None);
    assert!(parts.data.env.observers.has_touched());
    let mut one = Vec::new();
    effects[0].encode(&mut one);
    assert_eq!(*parts.data.env.observers.journal.bytes(), one);
    assert_eq!(parts.carry(&effects, None), Ok(()));
    assert_eq!(parts.value(b"{b}1"), Some(b"v".to_vec()));
}

#[test]
fn times_are_kept_while_files_are_loaded() {
    let mut parts = Parts::new();
    assert_eq!(parts.apply(&Effect::Horizon { time: 7 }), Ok(()));
    assert!(parts.replay.held().is_none());
    parts.replay.hold_counts(2);
    for time in [9, 8] {
        assert_eq!(parts.apply(&Effect::Horizon { time }), Ok(()));
        assert_eq!(parts.apply(&Effect::Reported { time: time + 1 }), Ok(()));
    }
    let all = parts.replay.take_held().expect("files are loaded");
    assert_eq!((all.horizon(), all.reported(), all.workers), (9, 10, 2));
    assert!(parts.replay.held().is_none());
}
