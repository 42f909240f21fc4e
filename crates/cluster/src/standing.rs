//! Workers of this node that stand still while its other threads run: a system call hangs, or a command
//! takes that long.
//!
//! Workers tell of their turns, and the thread that announces the node's health looks at that: it
//! keeps the session with the coordinator, and other workers keep sessions with nodes, so nothing else
//! shows it. Only time in which that thread itself has looked counts: a process that was stopped
//! as a whole, and goes on, has no worker that stands still.

use rufous_base::limits::HEARING_US;
use std::collections::BTreeMap;

/// A worker stands still that has taken no turn for this long: as long as nodes may be silent. Its
/// leases have ended by then.
const STILL_US: u64 = HEARING_US;
/// What the time between two looks counts for at most: a little longer than their usual distance.
const STEP_US: u64 = 300_000;
/// Afterwards others do its part for so long, so that slots do not move with each long command.
const REST_US: u64 = 5_000_000;

const _: () = assert!(rufous_base::limits::LEASE_US < STILL_US);

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    workers: BTreeMap<u16, Worker>,
    looked_us: Option<u64>,
    /// How often a worker has begun to stand still.
    times: u64,
}

#[derive(Debug, Default)]
struct Worker {
    turns: u64,
    /// The turns at the last look.
    seen: u64,
    /// For how long it has taken no turn.
    still_us: u64,
    /// For how long others do its part, once it takes turns.
    rest_us: u64,
}

impl Standing {
    /// A worker has taken turns.
    pub(crate) fn on_turn(&mut self, worker: u16) {
        self.workers.entry(worker).or_default().turns += 1;
    }

    /// The thread that announces the node's health looks at all workers.
    pub(crate) fn on_look(&mut self, now_us: u64) {
        let looked_us = self.looked_us.replace(now_us).unwrap_or(now_us);
        let step_us = now_us.saturating_sub(looked_us).min(STEP_US);
        for worker in self.workers.values_mut() {
            if worker.turns == worker.seen {
                worker.still_us += step_us;
            } else {
                worker.still_us = 0;
            }
            worker.seen = worker.turns;
            if worker.still_us >= STILL_US {
                self.times += u64::from(worker.rest_us == 0);
                worker.rest_us = REST_US;
            } else {
                worker.rest_us = worker.rest_us.saturating_sub(step_us);
            }
        }
    }

    /// The first worker of which others have to do the part, and why.
    pub(crate) fn ails(&self) -> Option<(u16, &'static str)> {
        let mut workers = self.workers.iter();
        let (no, worker) = workers.find(|(_, worker)| worker.rest_us > 0)?;
        let why = if worker.still_us >= STILL_US {
            "it stands still, as a system call or a command does not end"
        } else {
            "it stood still and goes on"
        };
        Some((*no, why))
    }

    /// How often a worker has begun to stand still.
    pub(crate) fn times(&self) -> u64 {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_US: u64 = 250_000;

    /// Looks so many times; the workers that take turns meanwhile do so before each look.
    fn look(standing: &mut Standing, now_us: &mut u64, times: u64, turn: &[u16]) -> Option<u16> {
        for _ in 0..times {
            turn.iter().for_each(|worker| standing.on_turn(*worker));
            *now_us += LOOK_US;
            standing.on_look(*now_us);
        }
        standing.ails().map(|(worker, _)| worker)
    }

    #[test]
    fn a_worker_without_a_turn_stands_still_until_it_has_gone_on_for_a_while() {
        let (mut standing, mut now_us) = (Standing::default(), 7);
        assert_eq!(look(&mut standing, &mut now_us, 20, &[0, 1]), None);
        let still = STILL_US / LOOK_US;
        assert_eq!(look(&mut standing, &mut now_us, still - 1, &[0]), None);
        assert_eq!(look(&mut standing, &mut now_us, 1, &[0]), Some(1));
        let why = |standing: &Standing| standing.ails().expect("one").1;
        assert!(why(&standing).contains("stands still"));
        assert_eq!(look(&mut standing, &mut now_us, 100, &[0]), Some(1));
        let rest = REST_US / LOOK_US;
        assert_eq!(look(&mut standing, &mut now_us, rest - 1, &[0, 1]), Some(1));
        assert!(why(&standing).contains("goes on"));
        assert_eq!(look(&mut standing, &mut now_us, 1, &[0, 1]), None);
        assert_eq!(standing.times(), 1);
    }

    #[test]
    fn looks_that_follow_one_another_fast_see_the_same() {
        let (mut standing, mut now_us) = (Standing::default(), 0);
        standing.on_turn(0);
        let mut look = |standing: &mut Standing, until_us: u64| {
            while now_us < until_us {
                now_us += 1_000;
                // Its ticks are further apart.
                if now_us % 100_000 == 0 && until_us <= 4_000_000 {
                    standing.on_turn(0);
                }
                standing.on_look(now_us);
            }
            standing.ails().is_some()
        };
        assert!(!look(&mut standing, 4_000_000));
        assert!(!look(&mut standing, 4_000_000 + STILL_US - 1_000));
        assert!(look(&mut standing, 4_000_000 + STILL_US));
    }

    #[test]
    fn a_process_that_was_stopped_as_a_whole_has_no_such_worker() {
        let (mut standing, mut now_us) = (Standing::default(), 0);
        look(&mut standing, &mut now_us, 3, &[0, 1]);
        now_us += 60_000_000;
        standing.on_look(now_us);
        assert_eq!(standing.ails(), None);
        assert_eq!(look(&mut standing, &mut now_us, 4, &[0, 1]), None);
    }

    #[test]
    fn a_worker_that_has_yet_to_begin_does_not_stand_still() {
        let (mut standing, mut now_us) = (Standing::default(), 0);
        assert_eq!(look(&mut standing, &mut now_us, 100, &[1]), None);
    }
}
