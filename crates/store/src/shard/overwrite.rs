//! The fast path of a write to a replicated string: it overwrites a plain write of the same length in its record. A
//! hot key is written so millions of times a second, so nothing is called here that can be avoided, and rare cases
//! are kept out of line.

use super::at::At;
use super::lattice::Keyed;
use super::recent::Place;
use super::record;
use super::records::Records;
use super::types::Key;
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

/// The position of the value part in the slot of the key's record, if the record is still at the noted handle.
#[inline(always)]
fn noted(records: &Records, place: Place, key: Key<'_>) -> Option<Range<usize>> {
    if !place.may_be(key) {
        return None;
    }
    place.value_in(records.guessed(place.handle)?, key.bytes)
}

/// Overwrites a plain write of the same length, with a stamp above all that its worker has given. Returns whether that
/// was possible.
#[inline(always)]
pub(super) fn put_again(at: &mut At<'_>, keyed: Keyed, stamp: Stamp, value: &[u8]) -> bool {
    overwrite_again(at, keyed, stamp, value) || overwrite_register(at, keyed, stamp, value)
}

/// Merges an encoded register from another replica if it and the local value are plain writes of the same length.
/// Returns whether that changed anything; `None`: it has to be merged by the general path.
#[inline]
pub(super) fn merge_plain(at: &mut At<'_>, chunk: &[u8]) -> Option<bool> {
    let (stamp, value) = register::plain(chunk)?;
    if at.env.snapshot.is_running() {
        return None;
    }
    let (handle, part) = at.db.records.plain(at.key)?;
    let slot = at.db.records.slot_mut(handle);
    let (&tag, packed) = slot.get(part.clone())?.split_first()?;
    if tag != Tag::Register as u8 {
        return None;
    }
    let here = register::packed_oldest(packed);
    let changed = overwrite(slot, part, stamp, value);
    // Equal stamps are of the same write, or need the general path.
    if !changed && here <= stamp {
        return None;
    }
    record::put_stamp(slot, at.env.next_stamp(record::stamp(slot), at.now));
    Some(changed)
}

/// A plain write over a plain write of the same length, if the key was written recently and changes have no observers
/// other than replicas.
#[inline(always)]
fn overwrite_again(at: &mut At<'_>, keyed: Keyed, stamp: Stamp, value: &[u8]) -> bool {
    let place = at.recent.place(at.key.hash);
    if !place.may_be(at.key) || at.env.observers.any() {
        return false;
    }
    let Some(slot) = at.db.records.guessed_mut(place.handle) else {
        return false;
    };
    let Some(part) = place.value_in(slot, at.key.bytes) else {
        return false;
    };
    if !overwrite(slot, part, stamp, value) {
        return false;
    }
    record::put_stamp(slot, at.env.next_stamp(record::stamp(slot), at.now));
    tell_overwritten(at, keyed, place.entry);
    true
}

/// A plain write over a plain write of the same length, in its record.
#[inline(never)]
pub(super) fn overwrite_register(
    at: &mut At<'_>,
    keyed: Keyed,
    stamp: Stamp,
    value: &[u8],
) -> bool {
    let is_possible = keyed.strings == Tag::Register && !at.env.snapshot.is_running();
    if !is_possible || at.env.lattice.is_barred() {
        return false;
    }
    let place = at.recent.place(at.key.hash);
    let noted = noted(&at.db.records, place, at.key);
    let entry = noted.as_ref().map(|_| place.entry);
    let found = match noted {
        Some(part) => Some((place.handle, part)),
        None => at.db.records.plain(at.key),
    };
    let Some((handle, part)) = found else {
        return false;
    };
    let slot = at.db.records.slot_mut(handle);
    if !overwrite(slot, part, stamp, value) {
        return false;
    }
    record::put_stamp(slot, at.env.next_stamp(record::stamp(slot), at.now));
    if entry.is_none() {
        at.recent.note(at.key.hash, handle, slot);
    }
    if at.env.observers.listening() {
        tell_observed(at, keyed, stamp, value);
    } else {
        tell_overwritten(at, keyed, entry.unwrap_or(u32::MAX));
    }
    true
}

#[inline(always)]
fn tell_overwritten(at: &mut At<'_>, keyed: Keyed, entry: u32) {
    at.env.counters.changes += 1;
    let (db, changes) = (at.db.number, at.env.lattice.changes());
    if keyed.is_shared && !changes.touch_again(entry, db, at.key) {
        let entry = changes.touch(db, at.key);
        at.recent.note_entry(at.key.hash, entry);
    }
}

#[inline(never)]
fn tell_observed(at: &mut At<'_>, keyed: Keyed, stamp: Stamp, value: &[u8]) {
    if !at.env.observers.journal.is_on() {
        let db = at.db.number;
        at.env.counters.changes += 1;
        at.env.observers.touch(at.key, db);
        if keyed.is_shared {
            at.env.lattice.changes().touch(db, at.key);
        }
        return;
    }
    let mut ops = std::mem::take(&mut at.env.ops);
    ops.clear();
    register::set(&Writer { stamp }, value, 0, &mut ops);
    at.tell_update(keyed, Tag::Register, &ops);
    at.env.ops = ops;
}
