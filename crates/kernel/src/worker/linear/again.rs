//! When messages are sent again: slots and clients' transactions that make no progress, after a pause that doubles.
//!
//! Most often nothing was lost, and nodes are busy: then what is sent again is load on top of load. So there is a limit for
//! each look, and what has waited longest comes first. Without it a few thousand transactions that waited for a node which
//! hung kept the others busy with repetitions long after it went on.

use rufous_base::Now;
use rufous_linear::TxnId;
use std::collections::{BTreeMap, BTreeSet};

/// After so long messages are sent again of transactions that make no progress; then after twice as long each time, up
/// to the second.
pub(super) const AGAIN_US: u64 = 200_000;
pub(super) const AGAIN_LAST_US: u64 = 3_200_000;

/// How many slots and transactions send again at one look.
const MOST: usize = 256;

/// What sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum At {
    /// The head of a slot.
    Slot(u16),
    /// The origin of a client's transaction.
    Client(TxnId),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Again {
    look_us: u64,
    /// What was under way at the last look.
    before: BTreeSet<(At, TxnId)>,
    /// What was under way for longer: when it sends again, and the pause before that.
    pauses: BTreeMap<At, (u64, u64)>,
}

impl Again {
    /// When it is time to look.
    pub(super) fn look_us(&self) -> u64 {
        self.look_us
    }

    /// Whether it is time to look. The next time is later.
    pub(super) fn is_due(&mut self, now: Now) -> bool {
        self.is_due_after(now, AGAIN_US)
    }

    /// The same, with this pause.
    pub(super) fn is_due_after(&mut self, now: Now, pause_us: u64) -> bool {
        if now.mono_us < self.look_us {
            return false;
        }
        self.look_us = now.mono_us + pause_us;
        true
    }

    /// Chains or sessions have changed: something may be lost.
    pub(super) fn on_change(&mut self) {
        self.pauses.clear();
    }

    /// What is to send again, of what is under way. `is_large`: of messages whose copies would keep nodes from the
    /// messages themselves; they are sent again later.
    pub(super) fn due(
        &mut self,
        now: Now,
        open: BTreeSet<(At, TxnId)>,
        is_large: impl Fn(At) -> bool,
    ) -> Vec<At> {
        let stuck: BTreeSet<At> = open.intersection(&self.before).map(|(at, _)| *at).collect();
        self.before = open;
        self.pauses.retain(|at, _| stuck.contains(at));
        let mut due = Vec::new();
        for at in stuck {
            let (next_us, _) = *self.pauses.entry(at).or_insert_with(|| {
                if is_large(at) {
                    return (now.mono_us + AGAIN_LAST_US, AGAIN_LAST_US);
                }
                (now.mono_us, AGAIN_US)
            });
            if now.mono_us >= next_us {
                due.push((next_us, at));
            }
        }
        due.sort_unstable();
        due.truncate(MOST);
        for (_, at) in &due {
            if let Some((next_us, pause_us)) = self.pauses.get_mut(at) {
                *next_us = now.mono_us + *pause_us;
                *pause_us = (*pause_us * 2).min(AGAIN_LAST_US);
            }
        }
        due.into_iter().map(|(_, at)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> TxnId {
        TxnId {
            number,
            ..TxnId::default()
        }
    }

    fn open(count: u64) -> BTreeSet<(At, TxnId)> {
        (0..count)
            .map(|n| match n % 2 {
                0 => (At::Slot(n as u16), id(n)),
                _ => (At::Client(id(n)), id(n)),
            })
            .collect()
    }

    /// The looks of so many seconds.
    fn looks(again: &mut Again, seconds: u64, count: u64) -> Vec<Vec<At>> {
        let mut looks = Vec::new();
        let from = again.look_us();
        for step in 0..seconds * 100 {
            let now = Now {
                mono_us: from + step * 10_000,
                unix_us: 0,
            };
            if again.is_due(now) {
                looks.push(again.due(now, open(count), |_| false));
            }
        }
        looks
    }

    #[test]
    fn what_makes_no_progress_is_sent_again_with_growing_pauses() {
        let mut again = Again::default();
        let looks = looks(&mut again, 12, 1);
        let times = looks.iter().enumerate().filter(|(_, due)| !due.is_empty());
        let times: Vec<usize> = times.map(|(look, _)| look).collect();
        assert_eq!(times, [1, 2, 4, 8, 16, 32, 48]);
        again.on_change();
        let now = Now {
            mono_us: again.look_us(),
            unix_us: 0,
        };
        assert_eq!(again.due(now, open(1), |_| false), [At::Slot(0)]);
        assert!(again.due(now, BTreeSet::new(), |_| false).is_empty());
    }

    /// However many there are, each gets its turn.
    #[test]
    fn a_look_sends_a_part_of_many() {
        let mut again = Again::default();
        let looks = looks(&mut again, 4, 4000);
        assert!(looks.iter().all(|due| due.len() <= MOST));
        let first: Vec<At> = looks.iter().flatten().take(4000).copied().collect();
        let all: BTreeSet<At> = first.iter().copied().collect();
        assert_eq!(all.len(), 4000, "none twice before all once");
    }

    #[test]
    fn large_messages_are_sent_again_late() {
        let mut again = Again::default();
        let mut sent = Vec::new();
        for look in 0..40 {
            let now = Now {
                mono_us: look * AGAIN_US,
                unix_us: 0,
            };
            if !again.due(now, open(1), |_| true).is_empty() {
                sent.push(look);
            }
        }
        assert_eq!(sent, [17, 33]);
    }
}
