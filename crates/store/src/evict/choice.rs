//! Finding the key that is worth least, by drawing some: the best of them is
//! nearly always among the worst of all, and those that were not taken wait in
//! a pool for the next time, so that few draws suffice.

use crate::shard::{Drawn, Policy, Shard};
use rufous_base::Now;
use rufous_base::rng::Rng;

/// Candidates that wait for the next eviction.
const POOL: usize = 16;

/// For so many evictions keys are drawn at once, as what is looked at together
/// costs little more than one.
const ROUND: usize = 4;

/// By what keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Those that were not used for longest go.
    Recency,
    /// Those that are used least go.
    Frequency,
    Random,
    /// Those that expire soonest go.
    Expiry,
}

/// Which keys may go, and which of them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Only those that expire.
    pub volatile: bool,
    pub by: By,
}

/// The candidates.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// With their scores at the last round; the best comes last.
    candidates: Vec<(u32, Drawn)>,
    /// Reused: what a round draws.
    drawn: Vec<Drawn>,
    /// Evictions that the last round is for, still.
    left: usize,
}

/// How willingly a key is let go. What has expired goes before everything.
fn score(by: By, policy: Policy, drawn: &Drawn, now: Now) -> u32 {
    if drawn.expire_at.is_some_and(|at| at <= now.unix_ms()) {
        return u32::MAX;
    }
    match by {
        By::Frequency => 255 - policy.counter(drawn.access, now),
        By::Recency | By::Random | By::Expiry => policy.idle(drawn.access, now),
    }
}

impl Pool {
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
    }

    /// The next record to go, as it was when it was drawn. `None` where there
    /// is none to draw.
    pub(super) fn best(
        &mut self,
        choice: Choice,
        shard: &Shard,
        samples: usize,
        now: Now,
        rng: &mut Rng,
    ) -> Option<Drawn> {
        match choice.by {
            By::Expiry => return shard.draw_soonest(),
            By::Random => {
                self.drawn.clear();
                shard.draw(choice.volatile, 1, rng, &mut self.drawn);
                return self.drawn.pop();
            }
            By::Recency | By::Frequency => {}
        }
        if self.left == 0 || self.candidates.is_empty() {
            self.draw(choice, shard, samples, now, rng);
        }
        self.left = self.left.saturating_sub(1);
        self.candidates.pop().map(|c| c.1)
    }

    /// Whether the next call of [`Pool::best`] looks at records anew.
    pub(super) fn is_stale(&self) -> bool {
        self.left == 0
    }

    /// Begins a round.
    fn draw(&mut self, choice: Choice, shard: &Shard, samples: usize, now: Now, rng: &mut Rng) {
        self.left = ROUND;
        self.drawn.clear();
        shard.draw(choice.volatile, samples * ROUND, rng, &mut self.drawn);
        let policy = shard.policy();
        // A frequency decays while it waits, and idle times go on.
        for (known, drawn) in &mut self.candidates {
            *known = score(choice.by, policy, drawn, now);
        }
        let known = self.candidates.len();
        let worst = self.candidates.iter().map(|c| c.0).min().unwrap_or(0);
        for drawn in &self.drawn {
            let score = score(choice.by, policy, drawn, now);
            // Nearly all of what is drawn is worth more than what waits.
            if known < POOL || score > worst {
                self.candidates.push((score, *drawn));
            }
        }
        // Among equals no hash shall always be the first to go.
        let salt = rng.next_u64() as u32;
        let of = |c: &(u32, Drawn)| (c.0, c.1.db, c.1.hash ^ salt, c.1.access);
        self.candidates.sort_unstable_by_key(of);
        self.candidates
            .dedup_by_key(|c| (c.1.db, c.1.hash, c.1.access));
        let excess = self.candidates.len().saturating_sub(POOL);
        self.candidates.drain(..excess);
        let next = self.candidates.iter().rev().take(ROUND);
        shard.warm_drawn(next.map(|c| c.1));
    }
}
