//! The observers of a shard's changes: the journal, watchers, commands that wait for data, and whether a snapshot or a
//! command on replicas needs to know of changes before they are made.
//!
//! That there is any observer is kept as a flag: the only check on the common path.

use super::awaited::Awaited;
use super::journal::Journal;
use super::types::{Entry, Key, Value};
use super::versions::Versions;
use super::watch::{WatchId, Watches};
use crate::effect::Effect;
use crate::marks::{self, Mark};
use crate::planted::{self, Planted};

/// Bytes of a collection in one effect.
pub(super) const PUT_CHUNK: usize = 64 << 10;

/// Chunks end with the element that makes them this long.
pub(super) fn note_length(chunk: &[u8]) {
    if chunk.len() >= PUT_CHUNK {
        marks::hit(Mark::FullChunk);
    }
}

#[derive(Debug, Default)]
pub struct Observers {
    /// Whether changes have any observer.
    any: bool,
    /// Whether changes have an observer besides the running command's own writes to replicas.
    listening: bool,
    /// Whether a snapshot is under way.
    capturing: bool,
    /// Whether the running command writes to replicas.
    writing: bool,
    pub(super) journal: Journal,
    pub(super) watches: Watches,
    awaited: Awaited,
    versions: Versions,
}

impl Observers {
    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.any
    }

    #[inline(always)]
    pub(super) fn listening(&self) -> bool {
        self.listening
    }

    fn update(&mut self) {
        self.listening = self.journal.is_on()
            || self.capturing
            || !self.watches.is_empty()
            || !self.awaited.is_empty()
            || self.versions.are_on();
        self.any = self.listening || self.writing;
    }

    pub(super) fn set_capturing(&mut self, capturing: bool) {
        self.capturing = capturing;
        self.update();
    }

    #[inline]
    pub(super) fn set_writing(&mut self, writing: bool) {
        self.writing = writing;
        self.any = self.listening || writing;
    }

    /// Whether changes are written to the journal; initially they are not.
    pub fn set_journaling(&mut self, on: bool) {
        self.journal.turn(on);
        self.update();
    }

    /// Turns on journaling of a scratch shard: the journal records that collections are put, but not their elements.
    pub fn set_brief_journaling(&mut self, on: bool) {
        self.journal.set_brief(on);
        self.set_journaling(on);
    }

    /// Whether the journal holds more than expiries and what was forgotten. Replaying the earlier effects makes
    /// expiries known by the time alone.
    #[inline]
    pub fn journal_tells(&self) -> bool {
        self.journal.tells()
    }

    pub fn empty_journal(&mut self) {
        self.journal.clear();
    }

    /// Reports a change of a key to all observers.
    pub(super) fn tell(&mut self, key: Key<'_>, db: u8, effect: &Effect<'_>) {
        self.journal.write(effect);
        self.touch(key, db);
    }

    /// Reports that a key has got this value.
    pub(super) fn tell_entry(&mut self, key: Key<'_>, db: u8, entry: &Entry) {
        let bytes = key.bytes;
        let expire_at = entry.expire_at;
        let any = entry.value.any();
        let Some(tag) = any.tag() else {
            let effect = Effect::Set {
                db,
                key: bytes,
                value: any.string().map_or(b"", Value::bytes),
                expire_at,
            };
            return self.tell(key, db, &effect);
        };
        let mut chunk = Vec::new();
        let mut next = None;
        if !self.journal.is_brief() {
            next = any.chunk(0, PUT_CHUNK, &mut chunk);
            note_length(&chunk);
        }
        let effect = Effect::Put {
            db,
            key: bytes,
            tag,
            chunk: &chunk,
            expire_at,
        };
        self.tell(key, db, &effect);
        while let Some(at) = next
            && !planted::is(Planted::LogLosesChunk)
        {
            chunk.clear();
            next = any.chunk(at, PUT_CHUNK, &mut chunk);
            let effect = Effect::More {
                db,
                key: bytes,
                tag,
                chunk: &chunk,
            };
            self.journal.write(&effect);
        }
    }

    /// Reports a change of a key to all observers but the journal.
    pub(super) fn touch(&mut self, key: Key<'_>, db: u8) {
        if !self.watches.is_empty() {
            self.watches.touch((db, key.hash), key.bytes);
        }
        if !self.awaited.is_empty() {
            self.awaited.touch((db, key.hash), key.bytes);
        }
        self.versions.touch(key.hash);
    }

    /// Reports to the counts of changes that any key may have changed.
    pub(super) fn touch_all_versions(&mut self) {
        self.versions.touch_all();
    }

    /// The count of changes of a key: two that are equal say that it has not changed between them. Changes are counted
    /// from the first call on.
    pub fn version(&mut self, key: Key<'_>) -> u64 {
        self.versions.turn_on();
        self.update();
        self.versions.of(key.hash)
    }

    /// Reports a change of all keys of a database to the commands that wait.
    pub(super) fn touch_awaited_in(&mut self, db: usize) {
        self.awaited.touch_all(db);
    }

    pub(super) fn watch(&mut self, db: u8, key: Key<'_>, id: WatchId) {
        self.watches.add((db, key.hash), key.bytes, id);
        self.update();
    }

    /// Removes the watcher, and its dirty flag.
    pub fn unwatch(&mut self, id: WatchId) {
        self.watches.forget(id);
        self.update();
    }

    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    /// From now on, every change of the key makes [`Observers::next_touched`] return it.
    pub fn await_key(&mut self, db: u8, key: Key<'_>) {
        self.awaited.add((db, key.hash), key.bytes);
        self.update();
    }

    /// Undoes one [`Observers::await_key`].
    pub fn forget_key(&mut self, db: u8, key: Key<'_>) {
        self.awaited.forget((db, key.hash), key.bytes);
        self.update();
    }

    /// Puts an awaited key on the list as if it had been changed.
    pub fn touch_awaited(&mut self, db: u8, key: Key<'_>) {
        self.awaited.touch((db, key.hash), key.bytes);
    }

    /// Whether any awaited keys were changed.
    #[inline]
    pub fn has_touched(&self) -> bool {
        self.awaited.has_touched()
    }

    /// Takes the awaited key that was changed first.
    pub fn next_touched(&mut self) -> Option<(u8, Box<[u8]>)> {
        self.awaited.next_touched()
    }

    /// Number of awaited keys.
    pub fn awaited_keys(&self) -> usize {
        self.awaited.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_observed_while_there_is_an_observer() {
        let mut observers = Observers::default();
        let key = Key {
            bytes: b"k",
            hash: 1,
        };
        type Step = (fn(&mut Observers, Key<'_>), bool, bool);
        let steps: [Step; 10] = [
            (|o, _| o.set_journaling(true), true, true),
            (|o, _| o.set_journaling(false), false, false),
            (|o, _| o.set_capturing(true), true, true),
            (|o, key| o.watch(0, key, WatchId(1)), true, true),
            (|o, _| o.set_capturing(false), true, true),
            (|o, _| o.set_writing(true), true, true),
            (|o, _| o.unwatch(WatchId(1)), true, false),
            (|o, key| o.await_key(0, key), true, true),
            (|o, _| o.set_writing(false), true, true),
            (|o, key| o.forget_key(0, key), false, false),
        ];
        for (at, (step, any, listening)) in steps.into_iter().enumerate() {
            step(&mut observers, key);
            assert_eq!(
                (observers.any(), observers.listening()),
                (any, listening),
                "{at}"
            );
        }
    }

    #[test]
    fn a_change_reaches_watchers_and_waiters_once() {
        let mut observers = Observers::default();
        let key = Key {
            bytes: b"k",
            hash: 1,
        };
        let other = Key {
            bytes: b"other",
            hash: 1,
        };
        observers.watch(0, key, WatchId(1));
        observers.await_key(0, key);
        observers.touch(other, 0);
        observers.touch(key, 1);
        assert!(!observers.watches().is_dirty(WatchId(1)) && !observers.has_touched());
        observers.touch(key, 0);
        observers.touch(key, 0);
        assert!(observers.watches().is_dirty(WatchId(1)));
        assert_eq!(observers.next_touched(), Some((0, b"k"[..].into())));
        assert_eq!(observers.next_touched(), None);
        observers.touch_awaited_in(0);
        assert_eq!(observers.next_touched(), Some((0, b"k"[..].into())));
    }
}
