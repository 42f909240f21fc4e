//! How heads begin: of slots that this node has come to answer for, and whose books are not empty.

use super::running::Heads;
use crate::program::Program;
use rufous_base::Now;
use std::collections::BTreeMap;

/// How many heads begin in one turn: others wait for the worker meanwhile.
const MOST: usize = 256;

/// More slots than this that wait, of which most may not begin yet, are looked at once in so many microseconds: that may take
/// longer than all else in a turn, and there is one after each message.
const FEW: usize = 64;
const PAUSE_US: u64 = 10_000;

/// When slots whose heads have not begun are looked at.
#[derive(Debug, Default)]
pub(super) struct Looks {
    from_us: u64,
    /// It was tried before.
    is_due: bool,
}

impl Looks {
    /// Whether it is time.
    fn begin(&mut self, now: Now, waiting: usize) -> bool {
        self.is_due = now.mono_us < self.from_us && waiting > 0;
        !self.is_due && waiting > 0
    }

    fn end(&mut self, now: Now, waiting: usize, due: usize) {
        if waiting > FEW && due < MOST {
            self.from_us = now.mono_us + PAUSE_US;
        }
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        self.is_due.then_some(self.from_us)
    }
}

/// A worker whose heads begin.
pub(in crate::worker) struct Starts<'w, P: Program>(pub(in crate::worker) Heads<'w, P>);

impl<P: Program> Starts<'_, P> {
    /// Lets heads begin whose slots this node answers for by now.
    pub(in crate::worker) fn start(&mut self, now: Now) {
        let linear = &mut self.0.worker.linear;
        let waiting = linear.pending.len();
        if !linear.looks.begin(now, waiting) {
            return;
        }
        let due = self.due(now);
        self.0.worker.linear.looks.end(now, waiting, due.len());
        if due.is_empty() {
            return;
        }
        let slots: Vec<u16> = due.keys().copied().collect();
        self.load(now, due);
        for slot in slots {
            self.0.at_seat(now, slot, |_, _, _| {});
        }
        self.0.worker.run_parked_for(now);
        self.0.read_letters(now);
    }

    /// Makes the head of this slot, which is unchanged since then, and those of others that are to begin: these take no walk of their own.
    /// What others have told is no part of a book: where that is needed, heads are made when they begin.
    pub(super) fn make(&mut self, now: Now, slot: u16, since: u64) {
        let mut due = self.due(now);
        due.retain(|slot, _| !self.0.worker.linear.lossy.contains(slot));
        due.insert(slot, since);
        self.load(now, due);
    }

    /// Some of the slots whose heads may begin, each with the epoch since which its chain is unchanged.
    fn due(&self, now: Now) -> BTreeMap<u16, u64> {
        let worker = &self.0.worker;
        let pending = worker.linear.pending.iter().copied();
        let since = |slot| worker.chains.as_ref()?.takes_since(now, slot);
        let due = pending.filter_map(|slot| Some((slot, since(slot)?)));
        due.take(MOST).collect()
    }

    /// Makes the heads of these slots of their books, where there are none yet.
    fn load(&mut self, now: Now, mut slots: BTreeMap<u16, u64>) {
        let worker = &mut self.0.worker;
        let (linear, shard) = (&mut worker.linear, &worker.shard);
        slots.retain(|slot, _| !linear.seats.contains_key(slot));
        if !slots.is_empty() {
            linear.load::<P>(now, &slots, shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_may_not_begin_are_looked_at_now_and_then() {
        let mut looks = Looks::default();
        let at = |mono_us| Now {
            mono_us,
            ..Now::default()
        };
        assert!(!looks.begin(at(1), 0), "there are none");
        for (waiting, due) in [(FEW, 0), (FEW + MOST, MOST)] {
            assert!(looks.begin(at(1), waiting));
            looks.end(at(1), waiting, due);
        }
        assert!(looks.begin(at(2), FEW + 1));
        looks.end(at(2), FEW + 1, 1);
        assert_eq!(looks.wake_us(), None, "only if there is a reason");
        assert!(!looks.begin(at(3), FEW + 1));
        assert_eq!(looks.wake_us(), Some(2 + PAUSE_US));
        assert!(looks.begin(at(2 + PAUSE_US), FEW + 1));
        assert_eq!(looks.wake_us(), None);
    }
}
