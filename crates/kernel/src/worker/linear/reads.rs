//! Transactions that only read, as a machine of the worker that they come from. They take no keys, and no slot records
//! them: all workers that head their slots are asked for the values at the same time, and asked again until nothing has
//! changed from one time to the next.
//!
//! Then all values were there at one instant, the one at which the last question began: each worker had answered with the
//! same values before it and has answered after it, and in between they have not changed
//! ([`rufous_linear::Message::Values`]). A key that a transaction has taken is not read, so no part of a transaction is
//! seen without the others.
//!
//! A read that finds no such instant within a few times, or has no answer, becomes a transaction that takes its keys.

use super::keys::MOST_TOLD;
use crate::batch::Header;
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_linear::TxnId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often workers are asked.
const MOST_ROUNDS: u32 = 6;
/// The same of replies that have [`MOST_TOLD`] bytes or more: a transaction that takes its keys has no room for them.
const MOST_LONG_ROUNDS: u32 = 60;
/// The pause before the next question where keys could not be read; twice as long each time,
const PAUSE_US: u64 = 500;
/// so many times.
const LONGER: u32 = 6;
/// How long an answer may take.
const ANSWER_US: u64 = 1_000_000;

/// What one worker is asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) keys: Vec<Arc<[u8]>>,
    /// Its last answer: see [`rufous_linear::Message::Values`].
    seen: Vec<u64>,
    told: Arc<[u8]>,
    is_asked: bool,
}

/// A read that has no reply yet.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) header: Header,
    pub(super) body: Arc<[u8]>,
    /// By the first slot of each worker.
    pub(super) parts: BTreeMap<u16, Part>,
    rounds: u32,
    /// In this round a worker has told something else than before.
    has_changed: bool,
    /// In this round a worker could not read.
    is_busy: bool,
    /// When it goes on if no answer comes.
    due_us: u64,
}

/// A question: the first slot of the worker, its keys, and what it has said before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) slot: u16,
    pub(super) keys: Vec<Arc<[u8]>>,
    pub(super) known: Vec<u64>,
}

/// How a read goes on.
#[derive(Debug)]
pub(super) enum Next {
    Ask(TxnId, Arc<[u8]>, Vec<Question>),
    /// What its slots tell, in the order of workers.
    Done(Header, Arc<[u8]>),
    /// It becomes a transaction that takes its keys.
    Take(Read),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Reads {
    open: BTreeMap<TxnId, Read>,
    due: BTreeSet<(u64, TxnId)>,
}

impl Read {
    fn most_rounds(&self) -> u32 {
        let bytes: usize = self.parts.values().map(|part| part.told.len()).sum();
        if bytes < MOST_TOLD {
            MOST_ROUNDS
        } else {
            MOST_LONG_ROUNDS
        }
    }
}

impl Reads {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        self.due.first().map(|(due_us, _)| *due_us)
    }

    /// A client reads these keys, by the first slot of each worker.
    pub(super) fn on_read(
        &mut self,
        now: Now,
        (id, header): (TxnId, Header),
        keys: BTreeMap<u16, Vec<Arc<[u8]>>>,
        body: Arc<[u8]>,
    ) -> Next {
        let part = |keys| Part {
            keys,
            ..Part::default()
        };
        let parts = keys.into_iter().map(|(slot, keys)| (slot, part(keys)));
        let read = Read {
            header,
            body,
            parts: parts.collect(),
            rounds: 0,
            has_changed: false,
            is_busy: false,
            due_us: 0,
        };
        self.ask(now, id, read)
    }

    fn ask(&mut self, now: Now, id: TxnId, mut read: Read) -> Next {
        (read.has_changed, read.is_busy) = (false, false);
        let questions = read.parts.iter_mut().map(|(slot, part)| {
            part.is_asked = true;
            Question {
                slot: *slot,
                keys: part.keys.clone(),
                known: part.seen.clone(),
            }
        });
        let questions = questions.collect();
        let body = Arc::clone(&read.body);
        self.keep(id, now.mono_us + ANSWER_US, read);
        Next::Ask(id, body, questions)
    }

    fn keep(&mut self, id: TxnId, due_us: u64, mut read: Read) {
        read.due_us = due_us;
        self.due.insert((due_us, id));
        self.open.insert(id, read);
    }

    fn take(&mut self, id: TxnId) -> Option<Read> {
        let read = self.open.remove(&id)?;
        self.due.remove(&(read.due_us, id));
        Some(read)
    }

    /// The worker that heads a slot has answered.
    pub(super) fn on_values(
        &mut self,
        now: Now,
        (id, slot): (TxnId, u16),
        seen: Vec<u64>,
        told: Arc<[u8]>,
    ) -> Option<Next> {
        let read = self.open.get_mut(&id)?;
        let part = read.parts.get_mut(&slot).filter(|part| part.is_asked)?;
        part.is_asked = false;
        if seen.is_empty() {
            read.is_busy = true;
        } else if seen != part.seen {
            (part.seen, part.told) = (seen, told);
            read.has_changed = true;
        }
        if read.parts.values().any(|part| part.is_asked) {
            return None;
        }
        let mut read = self.take(id)?;
        read.rounds += 1;
        // One worker reads all its keys at one instant.
        let is_still = !read.has_changed || read.parts.len() == 1;
        if !read.is_busy && (is_still || planted::is(Planted::ReadOnce)) {
            let told = read.parts.values().flat_map(|part| part.told.iter());
            return Some(Next::Done(read.header, told.copied().collect()));
        }
        if read.rounds >= read.most_rounds() {
            return Some(Next::Take(read));
        }
        if read.is_busy {
            let pause_us = PAUSE_US << read.rounds.min(LONGER);
            self.keep(id, now.mono_us + pause_us, read);
            return None;
        }
        Some(self.ask(now, id, read))
    }

    /// Time has passed.
    pub(super) fn next_due(&mut self, now: Now) -> Option<Next> {
        let (_, id) = *self
            .due
            .first()
            .filter(|(due_us, _)| *due_us <= now.mono_us)?;
        let read = self.take(id)?;
        let has_paused = read.is_busy && read.parts.values().all(|part| !part.is_asked);
        Some(if has_paused {
            self.ask(now, id, read)
        } else {
            Next::Take(read)
        })
    }

    /// Chains have changed: answers may be lost, and workers head other slots.
    pub(super) fn take_all(&mut self) -> Vec<Read> {
        self.due.clear();
        std::mem::take(&mut self.open).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::header;

    const ID: TxnId = TxnId {
        node: 1,
        start: 2,
        number: 3,
    };

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            ..Now::default()
        }
    }

    fn begun(slots: &[u16]) -> Reads {
        let keys = slots.iter().map(|slot| (*slot, vec![b"k"[..].into()]));
        let mut reads = Reads::default();
        let next = reads.on_read(at(0), (ID, header()), keys.collect(), Arc::default());
        assert_eq!(known(Some(next)), vec![Vec::<u64>::new(); slots.len()]);
        reads
    }

    /// What is known of each worker that is asked again.
    fn known(next: Option<Next>) -> Vec<Vec<u64>> {
        match next {
            Some(Next::Ask(ID, _, questions)) => questions.into_iter().map(|one| one.known),
            other => panic!("{other:?}"),
        }
        .collect()
    }

    fn told(next: Option<Next>) -> Vec<u8> {
        match next {
            Some(Next::Done(_, told)) => told.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    fn hear(reads: &mut Reads, slot: u16, seen: u64, told: &str) -> Option<Next> {
        let seen = (seen > 0).then_some(seen).into_iter().collect();
        reads.on_values(at(10), (ID, slot), seen, told.as_bytes().into())
    }

    #[test]
    fn values_that_no_worker_has_changed_in_between_are_the_reply() {
        let mut reads = begun(&[3, 9]);
        assert!(hear(&mut reads, 9, 90, "b").is_none());
        assert!(hear(&mut reads, 9, 91, "twice").is_none(), "once a round");
        assert_eq!(known(hear(&mut reads, 3, 30, "a")), [[30], [90]]);
        assert!(hear(&mut reads, 3, 30, "").is_none());
        // This one has changed, so the other one may have, too.
        assert_eq!(known(hear(&mut reads, 9, 92, "c")), [[30], [92]]);
        assert!(hear(&mut reads, 9, 92, "").is_none());
        assert_eq!(told(hear(&mut reads, 3, 30, "")), b"ac");
        assert!(reads.is_empty() && reads.wake_us().is_none());
    }

    #[test]
    fn one_worker_is_asked_once() {
        let mut reads = begun(&[3]);
        assert_eq!(told(hear(&mut reads, 3, 30, "a")), b"a");
    }

    #[test]
    fn keys_that_cannot_be_read_are_asked_for_after_a_pause() {
        let mut reads = begun(&[3, 9]);
        assert!(hear(&mut reads, 3, 0, "").is_none());
        assert!(hear(&mut reads, 9, 90, "b").is_none());
        let due_us = 10 + (PAUSE_US << 1);
        assert_eq!(reads.wake_us(), Some(due_us));
        assert!(reads.next_due(at(due_us - 1)).is_none());
        assert_eq!(known(reads.next_due(at(due_us))), [vec![], vec![90]]);
        assert!(hear(&mut reads, 9, 90, "").is_none());
        // The first answer of this worker says nothing of the time before.
        assert_eq!(known(hear(&mut reads, 3, 30, "a")), [[30], [90]]);
    }

    #[test]
    fn a_read_that_finds_no_instant_takes_its_keys() {
        let mut reads = begun(&[3, 9]);
        for round in 1..=u64::from(MOST_ROUNDS) {
            assert!(hear(&mut reads, 3, round, "a").is_none());
            let next = hear(&mut reads, 9, 90, "b");
            let is_last = round == u64::from(MOST_ROUNDS);
            assert_eq!(matches!(next, Some(Next::Take(_))), is_last, "{round}");
        }
        assert!(reads.is_empty() && reads.wake_us().is_none());
    }

    #[test]
    fn a_long_read_is_tried_more_often() {
        let mut reads = begun(&[3, 9]);
        let long = "a".repeat(MOST_TOLD);
        for round in 1..=u64::from(MOST_LONG_ROUNDS) {
            assert!(hear(&mut reads, 3, round, &long).is_none());
            let next = hear(&mut reads, 9, 90, "b");
            let is_last = round == u64::from(MOST_LONG_ROUNDS);
            assert_eq!(matches!(next, Some(Next::Take(_))), is_last, "{round}");
        }
    }

    #[test]
    fn a_read_without_an_answer_takes_its_keys() {
        let mut reads = begun(&[3, 9]);
        assert!(hear(&mut reads, 3, 0, "").is_none());
        assert!(reads.next_due(at(ANSWER_US - 1)).is_none());
        let next = reads.next_due(at(ANSWER_US));
        assert!(matches!(next, Some(Next::Take(read)) if read.parts.len() == 2));
        assert!(hear(&mut reads, 9, 90, "late").is_none());
        let mut reads = begun(&[3, 9]);
        assert_eq!(reads.take_all().len(), 1);
        assert!(reads.is_empty() && reads.wake_us().is_none());
    }
}
