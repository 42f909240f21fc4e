//! Transactions that write the same keys, and look at nothing before: they are ordered, and none waits for another to be
//! over. Requests do.

use super::*;

const MISSING: Option<Deed> = Some(Deed::Missing);

#[test]
fn transactions_that_write_the_same_keys_are_open_at_the_same_time() {
    let mut pair = Pair::new();
    pair.begin_with(b"1", None);
    pair.begin_with(b"2", None);
    assert_eq!(pair.books(), 2, "both are prepared");
    assert_eq!(pair.workers[0].linear_figures().shared, 1);
    pair.deliver_all();
    let outcomes: Vec<_> = pair.ended.iter().map(|ended| ended.is_committed).collect();
    assert_eq!(outcomes, [Some(true), Some(true)]);
    assert_eq!(pair.get(0, FIRST), pair.get(1, LAST));
    assert_eq!(pair.books(), 0);
}

/// The one that was prepared later comes to the other slot before the other one.
#[test]
fn they_are_applied_in_one_order_whatever_the_order_of_their_letters() {
    for first in 0..2 {
        let mut pair = Pair::new();
        pair.begin_with(b"1", None);
        pair.begin_with(b"2", None);
        pair.letters.swap(0, first);
        pair.deliver_all();
        assert_eq!(pair.ended.len(), 2);
        let value = pair.get(0, FIRST).expect("was set");
        assert_eq!(pair.get(1, LAST), Some(value.clone()));
        let last: &[u8] = if first == 0 { b"2" } else { b"1" };
        assert_eq!(value, last, "the order of the slot that decides");
    }
}

/// What a condition has seen must not change.
#[test]
fn those_with_conditions_wait_for_one_another() {
    let mut pair = Pair::new();
    pair.begin_with(b"1", None);
    pair.begin_with(b"2", MISSING);
    pair.deliver();
    pair.deliver();
    pair.deliver_all();
    let outcomes: Vec<_> = pair.ended.iter().map(|ended| ended.is_committed).collect();
    assert_eq!(outcomes, [Some(true), Some(false)]);
    assert_eq!(pair.get(0, FIRST), Some(b"1".to_vec()));
    assert_eq!(pair.get(1, LAST), Some(b"1".to_vec()));
}

#[test]
fn a_request_has_a_key_before_transactions_that_come_later() {
    let mut pair = Pair::new();
    pair.begin_with(b"1", None);
    assert_eq!(pair.read(FIRST), Submitted::Barrier);
    pair.begin_with(b"2", None);
    assert_eq!(pair.books(), 1, "the second one waits behind the request");
    while pair.replies.is_empty() {
        assert!(pair.deliver(), "the request does not run");
    }
    assert_eq!(pair.get(0, FIRST), Some(b"1".to_vec()));
    pair.deliver_all();
    assert_eq!(pair.ended.len(), 2);
    assert_eq!(pair.get(0, FIRST), Some(b"2".to_vec()));
    assert_eq!(pair.books(), 0);
}

/// It makes of the book that several have the key.
#[test]
fn another_head_applies_both() {
    let mut pair = Pair::new();
    pair.begin_with(b"1", None);
    pair.begin_with(b"2", None);
    let books = pair.workers[0].shard.books();
    let books: Vec<_> = books
        .map(|(slot, id, entry)| (slot, id, entry.to_vec()))
        .collect();
    assert_eq!(books.len(), 2);
    let mut pair = Pair::unmapped();
    for (slot, id, entry) in &books {
        let shard = &mut pair.workers[1].shard;
        shard.set_book(*slot, id, (entry, b""), at(1));
    }
    pair.map(1, &[(FIRST, &[1], None), (LAST, &[1], None)]);
    pair.begin_with(b"3", None);
    for _ in 0..4 {
        pair.wait(2 * AGAIN_LAST_US);
        pair.deliver_all();
    }
    assert!(pair.has(1, FIRST));
    assert_eq!(pair.get(1, FIRST), pair.get(1, LAST));
    assert_eq!((pair.ended.len(), pair.books()), (1, 0));
}
