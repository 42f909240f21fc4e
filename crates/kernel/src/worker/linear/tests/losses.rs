//! Slots that may have lost the ends of their logs.

use super::*;
use crate::worker::linear::entries::{mark_loss, read_entry, unmark_loss};
use rufous_linear::{Found, Message};
use rufous_mapping::{Chain, Chains};

const CHAINS: [(&[u8], &[u16], Option<u16>); 2] = [(FIRST, &[0], None), (LAST, &[1], None)];

impl Pair {
    /// Node 0 goes on with the slot of the first key, of which everything was lost.
    fn lose_first(&mut self) {
        self.lose_first_by(&CHAINS);
    }

    fn lose_first_by(&mut self, chains: &[(&[u8], &[u16], Option<u16>)]) {
        self.letters.clear();
        let now = self.now;
        let shard = &mut self.workers[0].shard;
        let slot = slot_of(FIRST);
        let all: Vec<_> = shard.books().map(|(at, id, _)| (at, id)).collect();
        for (at, id) in all.into_iter().filter(|(at, _)| *at == slot) {
            shard.remove_book(at, &id, now);
        }
        let key = shard.key(FIRST);
        shard.remove(0, key, now);
        mark_loss(slot, shard, now);
        self.workers[0].linear.seats.remove(&slot);
        self.map(2, chains);
    }

    fn is_closed(&mut self) -> bool {
        self.workers[0].linear.takes(FIRST)
    }

    /// Looks again, for so many times.
    fn look(&mut self, times: usize) {
        for _ in 0..times {
            self.wait(AGAIN_LAST_US);
            self.deliver_all();
        }
    }
}

/// The last slot has applied it, so it was applied at the first one, too, or would have been.
#[test]
fn what_a_later_slot_has_applied_is_applied_again() {
    let mut pair = Pair::new();
    pair.begin(None);
    assert!(pair.deliver());
    assert!(pair.has(1, LAST));
    pair.lose_first();
    assert!(pair.is_closed() && !pair.has(0, FIRST));
    assert_eq!(pair.workers[0].linear_figures().recovering, 1);
    // All answers of the first survey are lost, and one letter after the other later on.
    pair.wait(AGAIN_US);
    pair.letters.clear();
    assert!(pair.is_closed());
    pair.look(9);
    assert!(pair.has(0, FIRST) && pair.has(1, LAST));
    assert_eq!((pair.books(), pair.is_closed()), (0, false));
    assert_eq!(pair.workers[0].linear_figures().recovering, 0);
    let ends: Vec<_> = pair.ended.iter().map(|end| end.is_committed).collect();
    assert_eq!(ends, [Some(true)], "the client's node has run throughout");
}

#[test]
fn letters_that_are_lost_while_it_asks_are_sent_again() {
    for lost in 0..6 {
        let mut pair = Pair::new();
        pair.begin(None);
        pair.deliver();
        pair.lose_first();
        pair.wait(AGAIN_US);
        for _ in 0..lost {
            pair.deliver();
        }
        pair.letters.truncate(pair.letters.len().saturating_sub(1));
        pair.look(12);
        assert!(pair.has(0, FIRST) && pair.has(1, LAST), "{lost}");
        assert_eq!((pair.books(), pair.is_closed()), (0, false), "{lost}");
    }
}

/// It has lost nothing, as it turns out.
#[test]
fn a_slot_of_which_no_other_has_anything_is_open_after_the_survey() {
    let mut pair = Pair::new();
    pair.lose_first();
    assert!(pair.is_closed());
    pair.wait(AGAIN_US);
    pair.deliver_all();
    assert!(!pair.is_closed());
    assert_eq!(pair.books(), 0);
    assert!(pair.workers[0].linear.is_idle());
}

/// A book in which the slot is still marked was opened by no other head meanwhile.
#[test]
fn a_survey_goes_on_where_the_own_chain_has_changed() {
    let mut pair = Pair::new();
    pair.begin(None);
    pair.deliver();
    pair.lose_first();
    pair.wait(AGAIN_US);
    let (round, ..) = pair.workers[0].linear.survey.question();
    // The answer is on its way, to the chain before.
    assert!(pair.deliver());
    let answers = pair.letters.clone();
    assert_eq!(answers.len(), 1);
    pair.map(3, &CHAINS);
    pair.letters = answers;
    pair.deliver_all();
    assert!(pair.is_closed() && !pair.workers[0].linear.survey.is_over());
    pair.look(9);
    assert!(pair.has(0, FIRST) && !pair.is_closed());
    assert_eq!(pair.workers[0].linear.survey.question().0, round);
}

/// Mappings change nothing for a slot whose own chain stays, until another one has lost something.
#[test]
fn a_survey_goes_on_until_another_slot_has_lost_something() {
    // The slot's own chain is the same throughout.
    let chains: [(&[u8], &[u16], Option<u16>); 1] = [(LAST, &[1], None)];
    let mut pair = Pair::unmapped();
    pair.map(1, &chains);
    pair.begin(None);
    pair.deliver();
    pair.lose_first_by(&chains);
    pair.wait(AGAIN_US);
    let (round, ..) = pair.workers[0].linear.survey.question();
    pair.map(3, &chains);
    assert!(!pair.workers[0].linear.survey.is_over());
    let mut mapping = Mapping::clone(&mapping(4, &chains));
    let ranges = mapping.chains.ranges().map(|(slots, chain)| {
        let lost = if chain.since == 4 { 4 } else { 0 };
        (slots, Chain { lost, ..*chain })
    });
    mapping.chains = Chains::of_ranges(ranges).expect("all slots");
    let mapping = Arc::new(mapping);
    for (no, worker) in pair.workers.iter_mut().enumerate() {
        worker.on_mapping(pair.now, &mapping, Some(NodeNo(no as u16)));
    }
    pair.turn();
    assert!(pair.workers[0].linear.survey.is_over() && pair.is_closed());
    pair.look(12);
    assert!(pair.workers[0].linear.survey.question().0 > round);
    assert!(pair.has(0, FIRST) && !pair.is_closed());
}

/// A worker that knows less of mappings, or of losses, answers later.
#[test]
fn questions_are_answered_by_mappings_that_are_not_older() {
    let mut pair = Pair::new();
    pair.begin(None);
    pair.deliver();
    pair.lose_first();
    let (first, last) = (slot_of(FIRST), slot_of(LAST));
    let place = |slot| Place::Slot { slot, since: 2 };
    for (epoch, lost, is_answered) in [(2, 0, true), (1, 0, true), (3, 0, false), (2, 1, false)] {
        pair.letters.clear();
        let message = Message::Survey {
            round: 1,
            epoch,
            lost,
            slots: vec![first],
        };
        let letter = Letter {
            from: place(first),
            to: place(last),
            message,
        };
        pair.workers[1].linear.on_letter(NodeNo(0), letter);
        pair.turn();
        let mut posted = pair.letters.iter();
        let is = |message: &Message<_>| matches!(message, Message::Surveyed { .. });
        let any = posted.any(|(_, posted)| is(&posted.letter.message));
        assert_eq!(any, is_answered, "{epoch} {lost}");
    }
}

/// What is left is asked for again.
#[test]
fn a_worker_tells_so_many_bytes_at_a_time() {
    for (bytes, told) in [(5 << 20, 1), (1, 3)] {
        let mut pair = Pair::new();
        pair.begin_with((b"SET", &vec![b'x'; bytes]), None);
        pair.deliver();
        let slot = slot_of(LAST);
        let txn = {
            let mut all = pair.workers[1].shard.books();
            all.find_map(|(_, id, bytes)| Some(read_entry(&id, bytes)?.0))
        };
        let one = Found {
            txn: txn.expect("it has it"),
            of: Vec::new(),
            at: vec![slot],
        };
        let message = Message::Recall {
            round: 1,
            epoch: 1,
            lost: 0,
            found: vec![one; 3],
        };
        let place = |slot| Place::Slot { slot, since: 1 };
        let letter = Letter {
            from: place(slot_of(FIRST)),
            to: place(slot),
            message,
        };
        pair.letters.clear();
        pair.workers[1].linear.on_letter(NodeNo(0), letter);
        pair.turn();
        let is = |message: &Message<_>| matches!(message, Message::Recalled { .. });
        let answers = pair.letters.iter();
        let answers = answers.filter(|(_, posted)| is(&posted.letter.message));
        assert_eq!(answers.count(), told, "{bytes}");
    }
}

/// Only its head asks: at a copy there is nothing to do.
#[test]
fn a_copy_of_a_slot_that_has_lost_something_is_closed_and_rests() {
    let mut pair = Pair::new();
    let slot = slot_of(LAST);
    let now = pair.now;
    mark_loss(slot, &mut pair.workers[0].shard, now);
    pair.map(2, &CHAINS);
    let Worker { linear, shard, .. } = &mut pair.workers[0];
    assert!(linear.takes(LAST));
    assert_eq!(linear.figures().recovering, 0);
    assert_eq!(linear.wake_us(), None);
    unmark_loss(slot, shard, now);
    linear.on_copied(slot, false, shard);
    assert!(linear.is_idle() && !linear.takes(LAST));
}

/// Status and readiness say so.
#[test]
fn slots_that_ask_are_not_served() {
    let mut pair = Pair::new();
    assert_eq!(pair.workers[0].unserved_slots(pair.now), 0);
    pair.lose_first();
    assert_eq!(pair.workers[0].unserved_slots(pair.now), 1);
    pair.wait(AGAIN_US);
    pair.deliver_all();
    assert_eq!(pair.workers[0].unserved_slots(pair.now), 0);
}

#[test]
fn letters_about_slots_that_there_are_not_are_none() {
    let place = Place::Slot { slot: 1, since: 1 };
    let found = |of: u16, at: u16| {
        vec![Found {
            txn: TxnId::default(),
            of: vec![of],
            at: vec![at],
        }]
    };
    let survey = |slot| Message::Survey {
        round: 1,
        epoch: 1,
        lost: 1,
        slots: vec![slot],
    };
    let surveyed = |of, at| Message::Surveyed {
        round: 1,
        covers: vec![of],
        found: found(of, at),
    };
    let recalled = |slot| Message::Recalled {
        round: 1,
        id: TxnId::default(),
        txn: None,
        at: vec![rufous_linear::At { slot, stage: None }],
    };
    let last = 16_383;
    for (message, is_sound) in [
        (survey(last), true),
        (survey(last + 1), false),
        (surveyed(last, last), true),
        (surveyed(last + 1, 0), false),
        (surveyed(0, last + 1), false),
        (recalled(last), true),
        (recalled(last + 1), false),
    ] {
        let letter = Letter {
            from: place,
            to: place,
            message,
        };
        let read = Letter::read(place, place, &letter.write());
        assert_eq!(read.is_some(), is_sound, "{letter:?}");
    }
}
