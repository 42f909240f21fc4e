//! Stops: a transaction visits the slots of a worker one after the other, in an order that goes by the mapping.

use super::*;

/// Its slots prepare it in one turn, execute it in one, and forget it: what all of them record is kept at the same time.
#[test]
fn a_node_keeps_what_all_its_slots_record_at_the_same_time() {
    let turns = |count: usize| {
        let mut pair = Pair::unmapped();
        let keys: Vec<Vec<u8>> = (0..count).map(|n| format!("k{n}").into()).collect();
        // Slots of the other node are between them.
        let node = |n: usize| &[[0], [1]][n % 2][..];
        let chains = keys.iter().enumerate();
        let chains = chains.map(|(n, key)| (&key[..], node(n), None));
        pair.map(1, &chains.collect::<Vec<_>>());
        let mut body = body::begin();
        for key in &keys {
            let words = [&b"SET"[..], b"set", key, b"1"];
            let at = (slot_of(key), AT);
            body::put(&mut body, at, Deed::Run { key: 1 }, words.into_iter());
        }
        let written = keys.iter().map(|key| (&key[..], true));
        let begun = pair.workers[0].begin_transacting(Some(&header(0, FIRST)), written, body);
        assert!(begun);
        let mut turns = 0;
        while pair.ended.is_empty() {
            turns += 1;
            assert!(turns < 200, "it does not end");
            pair.turn_once();
            for (from, Posted { to, letter }) in std::mem::take(&mut pair.letters) {
                let from = NodeNo(from as u16);
                let worker = &mut pair.workers[usize::from(to.node.0)];
                worker.on_letter(from, letter);
                worker.settle_peers(pair.now);
            }
        }
        pair.deliver_all();
        for (n, key) in keys.iter().enumerate() {
            assert!(pair.has(n % 2, key));
        }
        let ahead = |no: usize| pair.workers[no].linear_figures().ahead;
        assert_eq!((ahead(0) + ahead(1), pair.books()), (count as u64 - 2, 0));
        turns
    };
    assert_eq!(turns(40), turns(4));
}

/// Two mappings give two orders, in which two transactions could wait for each other. The later one is begun again.
#[test]
fn transactions_of_different_mappings_do_not_wait_for_each_other() {
    let chains: [(&[u8], &[u16], Option<u16>); 2] = [(FIRST, &[0], None), (LAST, &[1], None)];
    let mut pair = Pair::new();
    pair.begin(None);
    assert_eq!(pair.books(), 1);
    pair.map(2, &chains);
    pair.begin(None);
    let begun_again = |pair: &Pair| pair.workers[0].linear_figures().reordered;
    assert_eq!(
        (begun_again(&pair), pair.books(), pair.ended.len()),
        (1, 2, 0)
    );
    let waiting = pair.workers[0].linear_figures().waiting;
    assert_eq!(waiting, 2, "no client has an answer");
    pair.deliver_all();
    assert_eq!(pair.ended.len(), 1);
    pair.wait(REORDER_US);
    pair.deliver_all();
    let ends: Vec<_> = pair.ended.iter().map(|end| end.is_committed).collect();
    assert_eq!(ends, [Some(true), Some(true)]);
    assert_eq!((begun_again(&pair), pair.books()), (1, 0));
}

/// It is not begun again for ever: a slot of the other one may not be served.
#[test]
fn what_was_begun_again_too_often_is_refused() {
    let chains: [(&[u8], &[u16], Option<u16>); 2] = [(FIRST, &[0], None), (LAST, &[1], None)];
    let mut pair = Pair::new();
    pair.begin(None);
    pair.letters.clear();
    pair.map(2, &chains);
    pair.begin(None);
    for _ in 0..2 * REORDERS {
        pair.wait(REORDER_US << 6);
        // Nothing comes to the other slot.
        pair.letters.clear();
    }
    let [ended] = &pair.ended[..] else {
        panic!("{:?}", pair.ended);
    };
    assert_eq!(ended.is_committed, Some(false));
    assert!(ended.told.starts_with(b"-TRYAGAIN"));
    let figures = pair.workers[0].linear_figures();
    assert_eq!(figures.reordered, u64::from(REORDERS));
    assert!(pair.workers[0].linear.again.is_empty());
}

/// What no client waits for, such as the end of watches, has to be done in the end.
#[test]
fn what_no_client_waits_for_is_begun_again_until_it_is_done() {
    let chains: [(&[u8], &[u16], Option<u16>); 2] = [(FIRST, &[0], None), (LAST, &[1], None)];
    let mut pair = Pair::new();
    pair.begin(None);
    pair.letters.clear();
    pair.map(2, &chains);
    let mut body = body::begin();
    let deed = Deed::Unwatch { watcher: 1 };
    body::put(&mut body, (slot_of(FIRST), AT), deed, [FIRST].into_iter());
    assert!(pair.workers[0].begin_transacting(None, [(FIRST, false)], body));
    for _ in 0..2 * REORDERS {
        pair.wait(REORDER_US << 6);
        pair.letters.clear();
    }
    assert_eq!(pair.workers[0].waiting_transactions(), 2);
    for _ in 0..20 {
        pair.wait(AGAIN_LAST_US);
        pair.deliver_all();
    }
    assert_eq!(pair.workers[0].waiting_transactions(), 0);
}

/// A node that ends does not know what becomes of them, as of all that waits.
#[test]
fn what_is_to_begin_again_is_given_up_with_the_rest() {
    let chains: [(&[u8], &[u16], Option<u16>); 2] = [(FIRST, &[0], None), (LAST, &[1], None)];
    let mut pair = Pair::new();
    pair.begin(None);
    pair.map(2, &chains);
    pair.begin(None);
    let given_up = Heads {
        worker: &mut pair.workers[0],
    }
    .give_up();
    assert_eq!(given_up, 2);
    assert!(pair.workers[0].linear.again.is_empty());
}

/// A node has started again, perhaps with fewer workers: what the first slot tells the earlier start goes nowhere.
#[test]
fn outcomes_for_starts_and_workers_that_are_gone_are_not_sent() {
    let mut pair = Pair::new();
    let heads = Heads {
        worker: &mut pair.workers[0],
    };
    let receiver = |node: u16, start: u64, worker: u64| {
        let txn = TxnId {
            node,
            start,
            number: 7 << letter::WORKER_BITS | worker,
        };
        heads.receiver(&Letter {
            from: Place::Slot {
                slot: slot_of(FIRST),
                since: 1,
            },
            to: Place::Origin,
            message: rufous_linear::Message::Heard { txn },
        })
    };
    for node in [0, 1] {
        assert!(receiver(node, 1, 0).is_some());
        assert_eq!(receiver(node, 1, 1), None);
        assert_eq!(receiver(node, 0, 0), None);
    }
}
