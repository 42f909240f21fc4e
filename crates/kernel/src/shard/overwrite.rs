//! The shortest way of a write to a replicated string: over a plain write of the
//! same length, in its record. A hot key is written so millions of times a
//! second, so nothing here is called that need not be, and what happens seldom
//! is kept out of the way.

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

/// A plain write over a plain write in the value part of a packed record.
#[inline(always)]
fn overwrite(slot: &mut [u8], part: Range<usize>, stamp: Stamp, value: &[u8]) -> bool {
    let Some((&mut tag, packed)) = slot.get_mut(part).and_then(<[u8]>::split_first_mut) else {
        return false;
    };
    tag == Tag::Register as u8 && register::overwrite_in_place(packed, stamp, value)
}

impl Db {
    /// Where in its slot the value part of the key's record lies, if the record is
    /// where it was noted.
    #[inline(always)]
    fn noted(&self, place: Place, key: Key<'_>) -> Option<Range<usize>> {
        if !place.may_be(key) {
            return None;
        }
        place.value_in(self.arena.slot(place.handle)?, key.bytes)
    }

    /// The key's record, if it may have been noted or overwritten so, and where
    /// in its slot the value part is.
    #[inline(always)]
    fn plain_record(&self, key: Key<'_>, env: &Env) -> Option<(u32, Range<usize>)> {
        if env.snapshot.capturing {
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
    /// Writes a string at one replica some times in a row, with stamps that are
    /// above all that its worker has given: what as many SETs do, without the
    /// ways around them. Where it `is_shared`, other replicas have to hear of it.
    #[inline(always)]
    pub fn put_registers<'v>(
        &mut self,
        (db, key): (usize, Key<'_>),
        is_shared: bool,
        mut writes: impl Iterator<Item = (Stamp, &'v [u8])>,
        now: Now,
    ) {
        let keyed = Keyed {
            strings: Tag::Register,
            is_shared,
        };
        let mut next = writes.next();
        while let Some((stamp, value)) = next {
            next = self.overwrite_again((db, key), keyed, (stamp, value), &mut writes, now);
            if let Some((stamp, value)) = next {
                if !self.overwrite_register((db, key), keyed, stamp, value, now) {
                    self.put_register_anew((db, key), keyed, stamp, value, now);
                }
                next = writes.next();
            }
        }
    }

    /// [`Shard::put_registers`] of one write.
    #[inline]
    pub fn put_register(
        &mut self,
        db: usize,
        key: Key<'_>,
        (stamp, is_shared): (Stamp, bool),
        value: &[u8],
        now: Now,
    ) {
        let write = std::iter::once((stamp, value));
        self.put_registers((db, key), is_shared, write, now);
    }

    /// Merges what another replica wrote, an encoded register, where it is a
    /// plain write and so is what is here, of the same length. Says whether
    /// that changed anything; `None`: it is to be merged as anything is.
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
        // Equal stamps are of one write, or something is to be looked at.
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

    /// Plain writes over plain writes of the same length, where the key was
    /// written last and nobody observes it but other replicas. Returns the
    /// first that cannot be done so.
    #[inline(always)]
    fn overwrite_again<'v>(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        first: (Stamp, &'v [u8]),
        more: &mut impl Iterator<Item = (Stamp, &'v [u8])>,
        now: Now,
    ) -> Option<(Stamp, &'v [u8])> {
        let place = self.recent.place(key.hash);
        if !place.may_be(key) || self.env.observed {
            return Some(first);
        }
        let arena = &mut self.dbs[db].arena;
        let Some(slot) = arena.slot_mut(place.handle) else {
            return Some(first);
        };
        let part = place.value_in(slot, key.bytes);
        let Some((_, packed)) = part
            .and_then(|part| slot.get_mut(part))
            .and_then(<[u8]>::split_first_mut)
            .filter(|(tag, _)| **tag == Tag::Register as u8)
        else {
            return Some(first);
        };
        let mut next = Some(first);
        let times = register::overwrite_each(packed, &mut next, more);
        if times > 0 {
            let mut access = record::stamp(slot);
            for _ in 0..if self.env.policy.lfu { times } else { 1 } {
                access = self.env.next_stamp(access, now);
            }
            record::put_stamp(slot, access);
            self.tell_overwritten((db as u8, key), keyed, place.entry, times);
        }
        next
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
        if keyed.strings != Tag::Register || self.env.snapshot.capturing {
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
        match self.env.has_listeners {
            true => self.tell_observed((db as u8, key), keyed, stamp, value),
            false => self.tell_overwritten((db as u8, key), keyed, entry, 1),
        }
        true
    }

    #[inline(always)]
    fn tell_overwritten(&mut self, (db, key): (u8, Key<'_>), keyed: Keyed, entry: u32, times: u64) {
        self.env.counters.changes += times;
        if keyed.is_shared && !self.env.changes.touch_again(entry, db, key, times) {
            let entry = self.env.changes.touch(db, key);
            self.env.changes.touch_again(entry, db, key, times - 1);
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
        if !self.env.journaling {
            self.env.counters.changes += 1;
            self.env.touch(key, db);
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
