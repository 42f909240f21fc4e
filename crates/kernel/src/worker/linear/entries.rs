//! What the shard has of books: entries, and marks of slots that may have lost the ends of their logs.

use super::typing::KeyOp;
use crate::planted::{self, Planted};
use crate::shard::Shard;
use rufous_base::Now;
use rufous_base::limits::SLOTS;
use rufous_linear::codec::Coded;
use rufous_linear::stored::entry_of;
use rufous_linear::{Entry, TxnId};

/// The name of the mark, which stands among a slot's entries: so its copies, logs and snapshots have it. It is that of no
/// transaction.
const LOSS: [u8; 18] = [0xff; 18];

/// The end of the slot's log may be missing: its next head has to ask other slots.
pub(in crate::worker) fn mark_loss(slot: u16, shard: &mut Shard, now: Now) {
    if !planted::is(Planted::LossNotMarked) {
        shard.set_book(slot, &LOSS, (b"", b"\0"), now);
    }
}

pub(super) fn is_marked(slot: u16, shard: &Shard) -> bool {
    shard.book(slot, &LOSS).is_some()
}

/// All that was missing is here again.
pub(super) fn unmark_loss(slot: u16, shard: &mut Shard, now: Now) {
    shard.remove_book(slot, &LOSS, now);
}

/// An entry of a book, as the shard has it. One that cannot be read is left out: a copy of a later version has written
/// it.
pub(super) fn read_entry(id: &[u8; 18], bytes: &[u8]) -> Option<(TxnId, Entry<KeyOp>)> {
    if *id == LOSS {
        return None;
    }
    let id = TxnId::decode(&mut &id[..])?;
    let entry: Entry<KeyOp> = entry_of(bytes)?;
    let mut slots = entry.txn().slots().iter();
    let is_sound = slots.all(|slot| usize::from(*slot) < SLOTS);
    is_sound.then_some((id, entry))
}

/// The name of an entry.
pub(super) fn name_of(id: TxnId) -> [u8; 18] {
    let mut name = Vec::new();
    id.encode(&mut name);
    let mut fixed = [0; 18];
    let len = name.len().min(18);
    fixed[..len].copy_from_slice(&name[..len]);
    fixed
}
