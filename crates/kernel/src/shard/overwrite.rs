//! The shortest way of a write to a replicated string: over a plain write of the
//! same length, in its record. A hot key is written so millions of times a
//! second, so nothing here is called that need not be, and what happens seldom
//! is kept out of the way.

use super::Shard;
use super::lattice::Keyed;
use super::record::{self, PACKED};
use super::types::Key;
use rufous_base::Now;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_datatype::replicated::register;
use rufous_lattice::Stamp;

impl Shard {
    /// Writes a string at one replica, with a stamp that is above all that its
    /// worker has given: what SET does, without the ways around it. Where it
    /// `is_shared`, other replicas have to hear of it.
    #[inline(always)]
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
        if !self.overwrite_register((db, key), keyed, stamp, value, now) {
            self.put_register_anew((db, key), keyed, stamp, value, now);
        }
    }

    #[inline(never)]
    fn put_register_anew(
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

    /// A plain write over a plain write of the same length, in its record.
    #[inline(always)]
    pub(super) fn overwrite_register(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) -> bool {
        let at = &mut self.dbs[db];
        let probe = at.index.probe(key.hash);
        if probe.handle == 0 {
            return false;
        }
        let Some(head) = at.matching(probe.handle, key.bytes) else {
            return false;
        };
        if head.kind() != PACKED || head.has_expiry() || self.env.snapshot.capturing {
            return false;
        }
        let slot = at.arena.get_mut(probe.handle);
        let Some((&mut tag, packed)) = head.value_part_mut(slot).split_first_mut() else {
            return false;
        };
        if tag != Tag::Register as u8 || !register::overwrite_in_place(packed, stamp, value) {
            return false;
        }
        record::put_stamp(slot, self.env.next_stamp(record::stamp(slot), now));
        self.tell_overwritten(db as u8, key, keyed, stamp, value);
        true
    }

    #[inline]
    fn tell_overwritten(&mut self, db: u8, key: Key<'_>, keyed: Keyed, stamp: Stamp, value: &[u8]) {
        if self.env.observed {
            return self.tell_observed((db, key), keyed, stamp, value);
        }
        self.env.counters.changes += 1;
        if keyed.is_shared {
            self.env.changes.touch(db, key);
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
