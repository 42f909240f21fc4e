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
        self.drawn.clear();
        if self.left == 0 || self.candidates.is_empty() {
            shard.draw(choice.volatile, samples * ROUND, rng, &mut self.drawn);
            self.left = ROUND;
        }
        self.left -= 1;
        let policy = shard.policy();
        // A frequency decays while it waits, and idle times go on.
        for (known, drawn) in &mut self.candidates {
            *known = score(choice.by, policy, drawn, now);
        }
        for at in 0..self.drawn.len() {
            let drawn = self.drawn[at];
            self.offer(score(choice.by, policy, &drawn, now), drawn);
        }
        let best = (0..self.candidates.len()).max_by_key(|&at| self.candidates[at].0)?;
        Some(self.candidates.swap_remove(best).1)
    }

    /// Takes a candidate where it is better than one that waits, or where
    /// there is room.
    fn offer(&mut self, score: u32, drawn: Drawn) {
        let same = |c: &(u32, Drawn)| (c.1.db, c.1.hash) == (drawn.db, drawn.hash);
        if let Some(known) = self.candidates.iter_mut().find(|c| same(c)) {
            *known = (score, drawn);
            return;
        }
        if self.candidates.len() < POOL {
            self.candidates.push((score, drawn));
            return;
        }
        let worst = self.candidates.iter_mut().min_by_key(|c| c.0);
        if let Some(worst) = worst.filter(|worst| worst.0 < score) {
            *worst = (score, drawn);
        }
    }
}
