//! The fast path of a write to a replicated string: it overwrites a plain write of the same length in its record. A
//! hot key is written so millions of times a second, so nothing is called here that can be avoided, and rare cases
//! are kept out of line.

use super::db::Db;
use super::lattice::Keyed;
use super::recent::Place;
use super::record::{self, Head, PACKED};
use super::types::Key;
use super::{Env, Shard};
use rufous_base::Now;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_datatype::replicated::register;
use rufous_lattice::Stamp;
use std::ops::Range;

/// Overwrites a plain write by a plain write in the value part of a packed record.
#[inline(always)]
fn overwrite(slot: &mut [u8], part: Range<usize>, stamp: Stamp, value: &[u8]) -> bool {
    let Some((&mut tag, packed)) = slot.get_mut(part).and_then(<[u8]>::split_first_mut) else {
        return false;
    };
    tag == Tag::Register as u8 && register::overwrite_in_place(packed, stamp, value)
}

impl Db {
    /// The position of the value part in the slot of the key's record, if the record is still at the noted handle.
    #[inline(always)]
    fn noted(&self, place: Place, key: Key<'_>) -> Option<Range<usize>> {
        if !place.may_be(key) {
            return None;
        }
        place.value_in(self.arena.slot(place.handle)?, key.bytes)
    }

    /// The handle of the key's record, if it may be noted or overwritten in place, and the position of the value part
    /// in its slot.
    #[inline(always)]
    fn plain_record(&self, key: Key<'_>, env: &Env) -> Option<(u32, Range<usize>)> {
        if env.snapshot.is_running() {
            return None;
        }
        let probe = self.index.probe(key.hash);
        let at_home = match probe.handle {
            0 if !probe.further => return None,
            0 => None,
            handle => self.matching(handle, key.bytes),
        };
        let (handle, head) = match at_home {
            Some(head) => (probe.handle, head),
            None => {
                let handle = self.find_further(key)?.handle;
                (handle, Head::of(self.arena.get(handle)))
            }
        };
        let part = head.value_at()..head.value_at() + head.value_len();
        let is_plain = head.kind() == PACKED && !head.has_expiry();
        is_plain.then_some((handle, part))
    }
}

impl Shard {
    /// Writes a string at one replica, with a stamp above all that its worker has given: the effect of SET, with a
    /// fast path.
    #[inline]
    pub fn put_register(
        &mut self,
        db: usize,
        key: Key<'_>,
        (stamp, is_shared): (Stamp, bool),
        value: &[u8],
        now: Now,
    ) {
        let keyed = Keyed {
            strings: Tag::Register,
            is_shared,
        };
        let done = self.overwrite_again((db, key), keyed, stamp, value, now)
            || self.overwrite_register((db, key), keyed, stamp, value, now);
        if !done {
            self.put_register_anew((db, key), keyed, stamp, value, now);
        }
    }

    /// Merges an encoded register from another replica if it and the local value are plain writes of the same length.
    /// Returns whether that changed anything; `None`: it has to be merged by the general path.
    #[inline]
    pub(super) fn merge_plain(
        &mut self,
        (db, key): (usize, Key<'_>),
        chunk: &[u8],
        now: Now,
    ) -> Option<bool> {
        let (stamp, value) = register::plain(chunk)?;
        let (handle, part) = self.dbs[db].plain_record(key, &self.env)?;
        let slot = self.dbs[db].arena.get_mut(handle);
        let (&tag, packed) = slot.get(part.clone())?.split_first()?;
        if tag != Tag::Register as u8 {
            return None;
        }
        let here = register::packed_stamp(packed);
        let changed = overwrite(slot, part, stamp, value);
        // Equal stamps are of the same write, or need the general path.
        if !changed && here <= stamp {
            return None;
        }
        record::put_stamp(slot, self.env.next_stamp(record::stamp(slot), now));
        Some(changed)
    }

    #[inline(never)]
    pub(super) fn put_register_anew(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) {
        self.begin_lattice(Writer { stamp });
        self.write_replica(db, key, (keyed, Tag::Register), now, |_, writer, ops| {
            register::set(writer, value, 0, ops);
        });
        self.end_lattice();
    }

    /// A plain write over a plain write of the same length, if the key was written recently and changes have no
    /// observers other than replicas.
    #[inline(always)]
    fn overwrite_again(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) -> bool {
        let place = self.recent.place(key.hash);
        if !place.may_be(key) || self.env.observers.any() {
            return false;
        }
        let arena = &mut self.dbs[db].arena;
        let Some(slot) = arena.slot_mut(place.handle) else {
            return false;
        };
        let Some(part) = place.value_in(slot, key.bytes) else {
            return false;
        };
        if !overwrite(slot, part, stamp, value) {
            return false;
        }
        record::put_stamp(slot, self.env.next_stamp(record::stamp(slot), now));
        self.tell_overwritten((db as u8, key), keyed, place.entry);
        true
    }

    /// A plain write over a plain write of the same length, in its record.
    #[inline(never)]
    pub(super) fn overwrite_register(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) -> bool {
        if keyed.strings != Tag::Register || self.env.snapshot.is_running() {
            return false;
        }
        let place = self.recent.place(key.hash);
        let noted = self.dbs[db].noted(place, key);
        let entry = noted.as_ref().map(|_| place.entry);
        let found = match noted {
            Some(part) => Some((place.handle, part)),
            None => self.dbs[db].plain_record(key, &self.env),
        };
        let Some((handle, part)) = found else {
            return false;
        };
        let slot = self.dbs[db].arena.get_mut(handle);
        if !overwrite(slot, part, stamp, value) {
            return false;
        }
        record::put_stamp(slot, self.env.next_stamp(record::stamp(slot), now));
        if entry.is_none() {
            self.recent.note(key.hash, handle, slot);
        }
        let entry = entry.unwrap_or(u32::MAX);
        match self.env.observers.listening() {
            true => self.tell_observed((db as u8, key), keyed, stamp, value),
            false => self.tell_overwritten((db as u8, key), keyed, entry),
        }
        true
    }

    #[inline(always)]
    fn tell_overwritten(&mut self, (db, key): (u8, Key<'_>), keyed: Keyed, entry: u32) {
        self.env.counters.changes += 1;
        if keyed.is_shared && !self.env.changes.touch_again(entry, db, key) {
            let entry = self.env.changes.touch(db, key);
            self.recent.note_entry(key.hash, entry);
        }
    }

    #[inline(never)]
    fn tell_observed(
        &mut self,
        (db, key): (u8, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
    ) {
        if !self.env.observers.journal.is_on() {
            self.env.counters.changes += 1;
            self.env.observers.touch(key, db);
            if keyed.is_shared {
                self.env.changes.touch(db, key);
            }
            return;
        }
        let mut ops = std::mem::take(&mut self.env.ops);
        ops.clear();
        register::set(&Writer { stamp }, value, 0, &mut ops);
        self.env.tell_update(db, key, keyed, Tag::Register, &ops);
        self.env.ops = ops;
    }
}
