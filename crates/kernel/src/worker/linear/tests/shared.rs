//! Transactions with common keys: those that are independent are open at the same time. Others wait, and so do
//! requests.

use super::*;

const SET_1: (&[u8], &[u8]) = (b"SET", b"1");
const SET_2: (&[u8], &[u8]) = (b"SET", b"2");
const MARK_1: (&[u8], &[u8]) = (b"MARK", b"1");
const MARK_2: (&[u8], &[u8]) = (b"MARK", b"2");

fn outcomes(pair: &Pair) -> Vec<Option<bool>> {
    let ended = pair.ended.iter();
    ended.map(|ended| ended.is_committed).collect()
}

#[test]
fn independent_transactions_are_open_at_the_same_time() {
    for swaps in [false, true] {
        let mut pair = Pair::new();
        pair.begin_with(MARK_1, None);
        pair.begin_with(MARK_2, None);
        assert_eq!(pair.books(), 2, "both are prepared");
        assert_eq!(pair.workers[0].linear_figures().shared, 1);
        if swaps {
            pair.letters.swap(0, 1);
        }
        pair.deliver_all();
        assert_eq!(outcomes(&pair), [Some(true), Some(true)]);
        assert_eq!(pair.books(), 0);
    }
}

/// The key has what the one that waited has done.
#[test]
fn others_wait_for_one_another() {
    for (first, second) in [(SET_1, SET_2), (SET_1, MARK_2), (MARK_1, SET_2)] {
        let mut pair = Pair::new();
        pair.begin_with(first, None);
        pair.begin_with(second, None);
        assert_eq!(pair.books(), 1, "{first:?} {second:?}");
        pair.deliver_all();
        assert_eq!(outcomes(&pair), [Some(true), Some(true)]);
        assert_eq!(pair.get(0, FIRST), Some(b"2".to_vec()));
        assert_eq!(pair.get(1, LAST), Some(b"2".to_vec()));
        assert_eq!(pair.workers[0].linear_figures().shared, 0);
    }
}

/// What a condition has seen must not change.
#[test]
fn one_with_a_condition_waits_for_what_would_be_independent() {
    let mut pair = Pair::new();
    pair.begin_with(MARK_1, None);
    pair.begin_with(MARK_2, Some(Deed::Missing));
    pair.deliver_all();
    assert_eq!(outcomes(&pair), [Some(true), Some(false)]);
    assert_eq!(pair.get(0, FIRST), Some(b"1".to_vec()));
    assert_eq!(pair.get(1, LAST), Some(b"1".to_vec()));
}

#[test]
fn a_request_has_a_key_before_transactions_that_come_later() {
    for (first, second) in [(MARK_1, MARK_2), (SET_1, SET_2)] {
        let mut pair = Pair::new();
        pair.begin_with(first, None);
        assert_eq!(pair.read(FIRST), Submitted::Barrier);
        pair.begin_with(second, None);
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
}

/// It makes of the book that several have the key.
#[test]
fn another_head_applies_both() {
    let mut pair = Pair::new();
    pair.begin_with(MARK_1, None);
    pair.begin_with(MARK_2, None);
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
    for _ in 0..4 {
        pair.wait(2 * AGAIN_LAST_US);
        pair.deliver_all();
    }
    assert!(pair.has(1, FIRST) && pair.has(1, LAST));
    assert_eq!(pair.books(), 0);
}
