//! Replicated keys that are deleted for the sake of room.
//!
//! A deletion of a replicated key leaves a grave, and the other replicas have the value until they receive the deletion: memory
//! becomes free only when all replicas have it and have forgotten it, a few epochs later. What will become free until then
//! counts as free at once, or many more keys than necessary would be deleted meanwhile. That is bounded, and where it
//! takes too long, because a node is away, it counts no longer.

use rufous_base::Now;
use std::collections::VecDeque;

/// A deletion that is not known everywhere after this time waits for a node that is away.
const SLOW_US: u64 = 5_000_000;

/// So long small values are not deleted after that, unless all replicas know of it before.
const PAUSE_US: u64 = 60_000_000;

/// The memory of a grave of a small value, roughly: while graves stay, keys that take less than twice as much are not worth
/// deleting.
const GRAVE_BYTES: usize = 256;

/// A key to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub db: u8,
    pub key: Box<[u8]>,
}

/// Deletions that some replicas may not know yet.
#[derive(Debug)]
struct UnderWay {
    /// No stamp of them has a later time.
    until: u64,
    since_us: u64,
    bytes: usize,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Retiring {
    chosen: Vec<Chosen>,
    /// What the deletion of `chosen` will make free.
    bytes: usize,
    under_way: VecDeque<UnderWay>,
    /// What all of them will make free.
    credit: usize,
    /// Deletions that took too long: their time, and when that was noticed.
    slow: Option<(u64, u64)>,
}

impl Retiring {
    /// Bytes that count as free.
    pub(super) fn credit(&self) -> usize {
        self.credit
    }

    /// Chooses a key of which each of `replicas` takes so many bytes here, unless more than `most` bytes would count as free, or
    /// it is not worth it. Returns whether it was chosen.
    pub(super) fn choose(
        &mut self,
        key: Chosen,
        (bytes, replicas): (usize, usize),
        most: usize,
    ) -> bool {
        let is_worth_it = self.slow.is_none() || bytes >= 2 * GRAVE_BYTES + key.key.len();
        if !is_worth_it || self.credit >= most || self.chosen.contains(&key) {
            return false;
        }
        self.chosen.push(key);
        self.bytes += bytes * replicas;
        self.credit += bytes * replicas;
        true
    }

    /// The keys to be deleted now; then [`Retiring::on_deleted`] is to be called.
    pub(super) fn take(&mut self) -> Vec<Chosen> {
        std::mem::take(&mut self.chosen)
    }

    /// They were deleted, which made so many bytes free at once. `until`: no stamp of these deletions has a later time.
    pub(super) fn on_deleted(&mut self, now: Now, freed: usize, until: u64) {
        let bytes = std::mem::take(&mut self.bytes);
        let freed = freed.min(bytes);
        self.credit -= freed;
        self.under_way.push_back(UnderWay {
            until,
            since_us: now.mono_us,
            bytes: bytes - freed,
        });
    }

    /// They could not be deleted.
    pub(super) fn on_kept(&mut self) {
        self.credit -= std::mem::take(&mut self.bytes);
    }

    /// All graves with stamps up to a time were forgotten.
    pub(super) fn settle(&mut self, now: Now, forgotten: u64) {
        let lasts = |&(until, since_us): &(u64, u64)| {
            until > forgotten && now.mono_us.saturating_sub(since_us) < PAUSE_US
        };
        self.slow = self.slow.filter(lasts);
        while let Some(first) = self.under_way.front() {
            let is_known = first.until <= forgotten;
            if !is_known && now.mono_us.saturating_sub(first.since_us) < SLOW_US {
                return;
            }
            if !is_known {
                self.slow = Some((first.until, now.mono_us));
            }
            self.credit -= first.bytes;
            self.under_way.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Now {
        Now {
            mono_us: ms * 1000,
            unix_us: 0,
        }
    }

    fn key(name: &str) -> Chosen {
        Chosen {
            db: 0,
            key: name.as_bytes().into(),
        }
    }

    #[test]
    fn what_will_be_free_counts_until_all_replicas_know() {
        let mut retiring = Retiring::default();
        assert!(retiring.choose(key("a"), (100, 2), 1000));
        assert!(!retiring.choose(key("a"), (100, 2), 1000), "once");
        assert!(retiring.choose(key("b"), (400, 2), 1000));
        assert!(
            !retiring.choose(key("c"), (100, 2), 1000),
            "no more than that"
        );
        assert_eq!(retiring.credit(), 1000);
        assert_eq!(retiring.take(), [key("a"), key("b")]);
        retiring.on_deleted(at_ms(0), 300, 7);
        assert_eq!(retiring.credit(), 700);
        retiring.settle(at_ms(1), 6);
        assert_eq!(retiring.credit(), 700);
        retiring.settle(at_ms(1), 7);
        assert_eq!(retiring.credit(), 0);
    }

    #[test]
    fn what_cannot_be_deleted_does_not_count() {
        let mut retiring = Retiring::default();
        assert!(retiring.choose(key("a"), (100, 2), 1000));
        retiring.take();
        retiring.on_kept();
        assert_eq!(retiring.credit(), 0);
    }

    #[test]
    fn while_graves_stay_only_large_values_are_worth_it() {
        let mut retiring = Retiring::default();
        let deleted = |retiring: &mut Retiring, bytes, ms| {
            let is_chosen = retiring.choose(key("a"), (bytes, 1), 10_000);
            if is_chosen {
                retiring.take();
                retiring.on_deleted(at_ms(ms), 0, ms);
            }
            is_chosen
        };
        assert!(deleted(&mut retiring, 100, 1));
        retiring.settle(at_ms(5_001), 0);
        assert_eq!(retiring.credit(), 0, "it stays");
        assert!(!deleted(&mut retiring, 100, 5_001));
        assert!(deleted(&mut retiring, 1_000, 5_001));
        retiring.settle(at_ms(5_002), 1);
        assert!(deleted(&mut retiring, 100, 5_003), "the node is back");
        retiring.settle(at_ms(10_003), 2);
        assert!(!deleted(&mut retiring, 100, 10_003));
        retiring.settle(at_ms(70_003), 2);
        assert!(deleted(&mut retiring, 100, 70_003), "it is tried again");
    }
}
