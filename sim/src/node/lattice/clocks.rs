//! Wall clocks that jump. Stamps never go back, and deadlines count from the later of the wall clock and the clock of the
//! stamps; while a clock has jumped ahead too far, nothing is written.

use super::act::Act;
use crate::engine::clock::Clock;
use std::collections::BTreeMap;

/// A jump ahead by so many microseconds is followed, and one by more than the other is not: the limit, and what readings may differ.
const FOLLOWED_US: i64 = 9_000_000;
const REFUSED_US: i64 = 11_000_000;

/// Within this time all workers read their clocks.
const READ_US: u64 = 500_000;

/// A jump that lasts as long as this may be followed: less than the limit.
const TRIAL_US: u64 = 55_000_000;

/// What acknowledged writes show of the clocks of workers.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// By life and worker: when a write was acknowledged, and a reading of the wall clock that its stamp had reached, in
    /// milliseconds. Both rise.
    reached: BTreeMap<(usize, usize), Vec<(u64, i64)>>,
}

impl Clocks {
    pub(super) fn note(&mut self, act: &Act, now_us: u64, reading_ms: i64) {
        let reached = self.reached.entry((act.life, act.worker)).or_default();
        let before = reached.last().map_or(i64::MIN, |(_, reading)| *reading);
        reached.push((now_us, reading_ms.max(before)));
    }

    /// When the worker of that act had certainly read the clock for the first time.
    fn since(&self, act: &Act) -> Option<u64> {
        let reached = self.reached.get(&(act.life, act.worker))?;
        reached.first().map(|(at, _)| *at)
    }

    /// A reading that the stamps of the worker had reached before that act.
    pub(super) fn reached_before(&self, act: &Act) -> Option<i64> {
        let reached = self.reached.get(&(act.life, act.worker))?;
        let before = reached.partition_point(|(at, _)| *at <= act.asked_us);
        Some(reached[before.checked_sub(1)?].1)
    }

    /// By how much the clock has jumped ahead, if a worker that has served since then may not follow it.
    pub(super) fn jumped(&self, act: &Act, clock: &Clock, now_us: u64) -> Option<i64> {
        let (since_us, asked_us) = (self.since(act)?, act.asked_us);
        // The clock now, when it was last followed, and the highest that was, against the one at first.
        let (mut now_at, mut followed, mut highest) = (0, 0, highest_before(clock, since_us));
        let (mut ahead_us, mut since_jump_us) = (0, None);
        let mut read_us = since_us;
        let jumps = clock.jumps();
        for (at, by_us) in jumps.filter(|(at, _)| *at > since_us && *at <= now_us) {
            if at < read_us {
                return None;
            }
            read_us = at + READ_US;
            now_at += by_us;
            // One that went back, and is put right, is followed.
            ahead_us = (now_at - followed).min(now_at - highest);
            match ahead_us {
                ..=FOLLOWED_US => {
                    (followed, highest) = (now_at, highest.max(now_at));
                    (ahead_us, since_jump_us) = (0, None);
                }
                REFUSED_US.. => _ = since_jump_us.get_or_insert(at),
                _ => return None,
            }
        }
        // A request that arrives after the last jump is executed after a reading.
        let is_refused = asked_us > read_us - READ_US && now_us < since_jump_us? + TRIAL_US;
        is_refused.then_some(ahead_us)
    }
}

/// By how much the highest clock until then was ahead of the one then.
fn highest_before(clock: &Clock, until_us: u64) -> i64 {
    let (mut then, mut highest) = (0, 0);
    for (_, by_us) in clock.jumps().filter(|(at, _)| *at <= until_us) {
        then += by_us;
        highest = highest.max(then);
    }
    highest - then
}
