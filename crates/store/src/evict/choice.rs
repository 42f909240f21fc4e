//! Finds a key of little value by sampling: the best of the sample is nearly always among the worst of all keys.
//! Candidates that were not evicted stay in a pool for the next round, so that small samples suffice.

use crate::shard::{Drawn, Policy, Sample, Shard};
use rufous_base::Now;
use rufous_base::rng::Rng;

/// Candidates kept for the next eviction.
const POOL: usize = 16;

/// Keys are drawn for this many evictions together, as examining several records at once costs little more than
/// examining one.
const ROUND: usize = 4;

/// The criterion by which keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The least recently used keys go first.
    Recency,
    /// The least frequently used keys go first.
    Frequency,
    Random,
    /// The keys that expire soonest go first.
    Expiry,
}

/// Which keys may be evicted, and which of them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Only keys with an expiry.
    pub volatile: bool,
    pub by: By,
}

/// What is drawn for an eviction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawing {
    pub(super) choice: Choice,
    /// Keys that are compared.
    pub(super) samples: usize,
}

/// Whether a key may be evicted. Others are no candidates: those of least value would soon be all that there are.
pub(super) type IsGood<'a> = &'a mut dyn FnMut(u8, &[u8]) -> bool;

/// Keys that are looked at, at most, for one that may be evicted.
const MOST_DRAWN: usize = 512;

/// The candidates.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// With their scores at the last round; the best candidate is last.
    candidates: Vec<(u32, Drawn)>,
    /// Reused: the records drawn in a round.
    drawn: Vec<Drawn>,
    /// Evictions left in the current round.
    left: usize,
    some_stay: bool,
}

/// How suitable a key is for eviction. Expired keys have the highest score.
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

    /// Whether some records that were returned stay, so that the first ones in an order are not always worth a try.
    pub(super) fn set_some_stay(&mut self, some_stay: bool) {
        self.some_stay = some_stay;
    }

    /// The next record to evict, as it was when it was drawn. `None` if there is none to draw.
    pub(super) fn best(
        &mut self,
        drawing: Drawing,
        shard: &Shard,
        now: Now,
        rng: &mut Rng,
        is_good: IsGood<'_>,
    ) -> Option<Drawn> {
        let by = drawing.choice.by;
        if by == By::Expiry && !self.some_stay {
            return shard.draws().soonest();
        }
        if by == By::Random || by == By::Expiry {
            let samples = if by == By::Random { 1 } else { drawing.samples };
            self.take_some(drawing.choice.volatile, samples, (shard, rng), is_good);
            let best = self.drawn.iter().min_by_key(|drawn| match by {
                By::Expiry => drawn.expire_at,
                _ => None,
            });
            return best.copied();
        }
        if self.left == 0 || self.candidates.is_empty() {
            self.draw(drawing, shard, now, rng, is_good);
        }
        self.left = self.left.saturating_sub(1);
        self.candidates.pop().map(|c| c.1)
    }

    /// Draws some keys that may be evicted.
    fn take_some(
        &mut self,
        volatile: bool,
        count: usize,
        (shard, rng): (&Shard, &mut Rng),
        is_good: IsGood<'_>,
    ) {
        self.drawn.clear();
        for _ in 0..MOST_DRAWN.div_ceil(count) {
            let draws = shard.draws();
            draws.draw(Sample { volatile, count }, rng, is_good, &mut self.drawn);
            if !self.drawn.is_empty() {
                return;
            }
        }
    }

    /// Whether the next call of [`Pool::best`] draws new records.
    pub(super) fn is_stale(&self) -> bool {
        self.left == 0
    }

    /// Starts a round.
    fn draw(
        &mut self,
        drawing: Drawing,
        shard: &Shard,
        now: Now,
        rng: &mut Rng,
        is_good: IsGood<'_>,
    ) {
        let Drawing { choice, samples } = drawing;
        self.left = ROUND;
        self.take_some(
            choice.volatile,
            samples * ROUND,
            (shard, &mut *rng),
            is_good,
        );
        let policy = shard.policy();
        // While a candidate waits, its frequency decays and its idle time grows.
        for (known, drawn) in &mut self.candidates {
            *known = score(choice.by, policy, drawn, now);
        }
        let known = self.candidates.len();
        let worst = self.candidates.iter().map(|c| c.0).min().unwrap_or(0);
        for drawn in &self.drawn {
            let score = score(choice.by, policy, drawn, now);
            // Nearly all records drawn are worth more than the candidates.
            if known < POOL || score > worst {
                self.candidates.push((score, *drawn));
            }
        }
        // Among equal scores, no hash may always be the first to go.
        let salt = rng.next_u64() as u32;
        let of = |c: &(u32, Drawn)| (c.0, c.1.db, c.1.hash ^ salt, c.1.access);
        self.candidates.sort_unstable_by_key(of);
        self.candidates
            .dedup_by_key(|c| (c.1.db, c.1.hash, c.1.access));
        let excess = self.candidates.len().saturating_sub(POOL);
        self.candidates.drain(..excess);
        let next = self.candidates.iter().rev().take(ROUND);
        shard.draws().warm(next.map(|c| c.1));
    }
}
