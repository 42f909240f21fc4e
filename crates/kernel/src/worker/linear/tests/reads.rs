//! Transactions that only read.

use super::*;
use rufous_linear::Message;

impl Pair {
    /// A client of node 0 asks whether there are these keys.
    fn begin_read(&mut self, keys: &[&[u8]]) {
        let mut body = body::begin();
        for key in keys {
            let words = [&b"HAS"[..], b"has", key];
            let at = (slot_of(key), AT);
            body::put(&mut body, at, Deed::Run { key: 1 }, words.into_iter());
        }
        let keys = keys.iter().copied();
        let begun = self.workers[0].begin_reading(self.now, &header(1, FIRST), keys, body);
        assert!(begun);
        self.turn();
    }

    /// The question to node 1, and its answer.
    fn round(&mut self) {
        assert!(self.deliver());
        assert!(self.deliver());
    }

    /// What the reader was told of its keys, in their order.
    fn read_values(&self) -> Vec<u8> {
        let [ended] = &self.ended[..] else {
            panic!("{:?}", self.ended);
        };
        assert_eq!(ended.is_committed, Some(true));
        let told = body::told(&ended.told).expect("replies");
        let replies = told.iter().flat_map(|one| one.replies.iter());
        replies.map(|reply| reply[1]).collect()
    }

    /// Those that took no keys, and the rounds of all.
    fn reads(&self) -> (u64, u64) {
        let figures = self.workers[0].linear_figures();
        (figures.read, figures.read_rounds)
    }
}

#[test]
fn two_nodes_are_asked_twice_and_record_nothing() {
    let mut pair = Pair::new();
    pair.set(1, LAST, b"1");
    pair.begin_read(&[FIRST, LAST]);
    pair.round();
    assert!(pair.ended.is_empty());
    assert_eq!(pair.read(FIRST), Submitted::Done, "it is not taken");
    pair.round();
    assert_eq!(pair.read_values(), b"01");
    assert_eq!((pair.reads(), pair.books()), ((1, 2), 0));
    pair.workers[1].account(1);
    let calls = pair.workers[1].stats()[1].calls;
    assert_eq!(calls, 1, "what has not changed is not executed again");
    assert!(pair.letters.is_empty());
    let figures = pair.workers[0].linear_figures();
    assert_eq!((figures.begun, figures.committed), (1, 1));
}

#[test]
fn keys_of_one_worker_are_read_once() {
    let mut pair = Pair::new();
    pair.set(1, LAST, b"1");
    pair.begin_read(&[LAST]);
    pair.round();
    assert_eq!((pair.read_values(), pair.reads()), (b"1".to_vec(), (1, 1)));
}

#[test]
fn a_key_that_changes_in_between_is_read_again() {
    let mut pair = Pair::new();
    pair.begin_read(&[FIRST, LAST]);
    pair.round();
    pair.set(1, LAST, b"1");
    pair.round();
    assert!(pair.ended.is_empty());
    pair.round();
    assert_eq!((pair.read_values(), pair.reads()), (b"01".to_vec(), (1, 3)));
}

#[test]
fn a_key_that_changes_and_changes_back_is_read_again() {
    let mut pair = Pair::new();
    pair.begin_read(&[FIRST, LAST]);
    pair.round();
    pair.set(1, LAST, b"1");
    let shard = &mut pair.workers[1].shard;
    let key = shard.key(LAST);
    assert!(shard.remove(0, key, pair.now));
    pair.round();
    assert!(pair.ended.is_empty(), "other keys may have changed with it");
    pair.round();
    assert_eq!((pair.read_values(), pair.reads()), (b"00".to_vec(), (1, 3)));
}

#[test]
fn a_key_that_expires_in_between_is_read_again() {
    let mut pair = Pair::new();
    let shard = &mut pair.workers[1].shard;
    let (key, until) = (shard.key(LAST), pair.now.unix_us / 1000 + 5);
    let value = NewValue::Own(b"1".to_vec());
    shard.set(0, key, value, ExpirySetting::At(until), pair.now);
    pair.begin_read(&[FIRST, LAST]);
    pair.round();
    pair.now.unix_us += 5000;
    pair.round();
    assert!(pair.ended.is_empty(), "it was there, and is not any more");
    pair.round();
    assert_eq!((pair.read_values(), pair.reads()), (b"00".to_vec(), (1, 3)));
}

#[test]
fn a_key_that_a_transaction_has_is_read_when_it_is_over() {
    let mut pair = Pair::new();
    pair.begin(None);
    pair.begin_read(&[FIRST, LAST]);
    pair.deliver_all();
    assert_eq!((pair.ended.len(), pair.books()), (1, 0), "the writer");
    pair.ended.clear();
    pair.wait(2_000);
    pair.deliver_all();
    assert_eq!(pair.read_values(), b"11");
    assert_eq!(pair.reads().0, 1);
}

#[test]
fn a_read_of_keys_that_are_taken_for_long_waits_for_them() {
    let mut pair = Pair::new();
    pair.begin(None);
    let held = pair.letters.remove(0);
    pair.begin_read(&[FIRST, LAST]);
    for _ in 0..10 {
        pair.deliver_all();
        pair.wait(18_000);
    }
    assert!(pair.ended.is_empty() && pair.reads().0 == 0);
    assert!(pair.workers[0].linear.reads.is_empty(), "it waits in line");
    pair.letters.push(held);
    pair.deliver_all();
    assert_eq!((pair.ended.len(), pair.books()), (2, 0));
    pair.ended.remove(0);
    assert_eq!(pair.read_values(), b"11");
}

/// Whichever letter is lost, and where chains change, keys are taken.
#[test]
fn a_read_without_an_answer_takes_its_keys() {
    for lost in 0..5 {
        let mut pair = Pair::new();
        pair.begin_read(&[FIRST, LAST]);
        for _ in 0..lost {
            pair.deliver();
        }
        if lost == 4 {
            assert_eq!(pair.reads(), (1, 2));
            continue;
        }
        pair.letters.clear();
        pair.wait(999_000);
        assert!(pair.letters.is_empty() && pair.ended.is_empty());
        pair.wait(1_000);
        pair.deliver_all();
        assert_eq!((pair.read_values(), pair.reads().0), (b"00".to_vec(), 0));
        assert_eq!(pair.books(), 0);
    }
    let mut pair = Pair::new();
    pair.begin_read(&[FIRST, LAST]);
    pair.map(2, &[(FIRST, &[0], None), (LAST, &[1], None)]);
    assert!(pair.workers[0].linear.reads.is_empty());
    for _ in 0..4 {
        pair.deliver_all();
        pair.wait(1_000_000);
    }
    assert_eq!((pair.read_values(), pair.reads().0), (b"00".to_vec(), 0));
}

/// What another node asks for is no permission to write, or to read what is not there.
#[test]
fn a_question_changes_nothing() {
    let mut pair = Pair::new();
    let (slot, other) = (slot_of(LAST), slot_of(FIRST));
    let ask = |pair: &mut Pair, name: &[u8], of: u16, key: &[u8]| {
        let mut body = body::begin();
        let words = [name, b"x", LAST, b"1"];
        body::put(&mut body, (of, AT), Deed::Run { key: 1 }, words.into_iter());
        pair.begin_read(&[LAST]);
        let mut letter = pair.letters.remove(0);
        if let Message::Read { body: of, keys, .. } = &mut letter.1.letter.message {
            (*of, *keys) = (body.into(), vec![key.into()]);
        }
        pair.letters.push(letter);
        assert!(pair.deliver());
        match &pair.letters[..] {
            [(1, posted)] => match &posted.letter.message {
                Message::Values { seen, told, .. } => (seen.len(), told.len()),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let mut pair_of = |name: &[u8], of, key: &[u8]| {
        pair.letters.clear();
        let told = ask(&mut pair, name, of, key);
        assert!(!pair.has(1, LAST));
        told
    };
    assert_eq!(pair_of(b"SET", slot, LAST), (0, 0), "it would write");
    assert_eq!(pair_of(b"HAS", slot, FIRST), (0, 0), "of the other node");
    assert_eq!(pair_of(b"NONE", slot, LAST), (0, 0), "no command");
    let (seen, told) = pair_of(b"HAS", slot, LAST);
    assert!(seen > 0 && told > 4);
    let nothing = pair_of(b"HAS", other, LAST);
    assert!(nothing.1 < told, "nothing is told of a slot without a key");
}
