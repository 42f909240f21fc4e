//! Heads of slots whose books were there before.

use super::*;
use crate::worker::linear::{Heads, Starts};

/// They are made together, in one walk over all books, and begin when it is their turn: also by a later mapping.
#[test]
fn heads_that_are_made_beside_another_begin_later() {
    // Node 0 has all other slots, whose chains stay.
    let chains: [(&[u8], &[u16], Option<u16>); 1] = [(LAST, &[1], None)];
    let mut pair = Pair::unmapped();
    pair.map(1, &chains);
    let (now, slots) = (pair.now, [slot_of(FIRST), slot_of(b"another")]);
    let worker = &mut pair.workers[0];
    for slot in slots {
        // Of a later program: it is left out.
        worker
            .shard
            .set_book(slot, &[7; 18], (b"", b"unknown"), now);
    }
    Heads { worker }.on_mapping(&mapping(2, &chains), NodeNo(0));
    assert!(
        slots
            .iter()
            .all(|slot| worker.linear.pending.contains(slot))
    );
    let chains_of = worker.chains.as_ref().expect("it is in a cluster");
    let since = chains_of.takes_since(now, slots[0]).expect("it serves it");
    Starts(Heads { worker }).make(now, slots[0], since);
    for epoch in [2, 3] {
        Heads { worker }.on_mapping(&mapping(epoch, &chains), NodeNo(0));
        assert!(worker.linear.open.is_empty(), "all are made");
        let waits = |slot: &u16| {
            let seat = worker.linear.seats.get(slot);
            seat.is_some_and(|seat| !seat.is_started) && worker.linear.pending.contains(slot)
        };
        assert!(slots.iter().all(waits), "{epoch}");
    }
    pair.wait(1);
    let linear = &pair.workers[0].linear;
    assert!(linear.pending.is_empty() && linear.seats.is_empty());
}
