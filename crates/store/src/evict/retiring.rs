//! Replicated keys that are deleted for the sake of room.
//!
//! The other replicas of a node have a deleted value until they receive the deletion. What will become free there counts as
//! free at once, or many more keys than necessary would be deleted meanwhile. That is bounded, and ends after a time.
//! (The tombstones of deletions count as free by themselves, see [`super`].)

use rufous_base::Now;
use std::collections::VecDeque;

/// A deletion that is not known everywhere after this time counts no longer.
const SLOW_US: u64 = 5_000_000;

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
    /// What the deletion of `chosen` will make free, here and at the other replicas.
    bytes: (usize, usize),
    under_way: VecDeque<UnderWay>,
    /// What all of them will make free.
    credit: usize,
}

impl Retiring {
    /// Bytes that count as free.
    pub(super) fn credit(&self) -> usize {
        self.credit
    }

    /// Chooses a key of which each of `replicas` takes so many bytes here. Returns false if it was chosen before.
    pub(super) fn choose(&mut self, key: Chosen, bytes: usize, replicas: usize) -> bool {
        if self.chosen.contains(&key) {
            return false;
        }
        self.chosen.push(key);
        self.bytes.0 += bytes;
        self.bytes.1 += bytes * replicas.saturating_sub(1);
        self.credit += bytes * replicas.max(1);
        true
    }

    /// The keys to be deleted now; then [`Retiring::on_deleted`] is to be called.
    pub(super) fn take(&mut self) -> Vec<Chosen> {
        std::mem::take(&mut self.chosen)
    }

    /// They were deleted. `until`: no stamp of these deletions has a later time.
    pub(super) fn on_deleted(&mut self, now: Now, until: u64) {
        let (here, bytes) = std::mem::take(&mut self.bytes);
        self.credit -= here;
        self.under_way.push_back(UnderWay {
            until,
            since_us: now.mono_us,
            bytes,
        });
    }

    /// They could not be deleted.
    pub(super) fn on_kept(&mut self) {
        let (here, others) = std::mem::take(&mut self.bytes);
        self.credit -= here + others;
    }

    /// All graves with stamps up to a time were forgotten.
    pub(super) fn settle(&mut self, now: Now, forgotten: u64) {
        let is_over = |first: &UnderWay| {
            first.until <= forgotten || now.mono_us.saturating_sub(first.since_us) >= SLOW_US
        };
        while let Some(first) = self.under_way.pop_front_if(|first| is_over(first)) {
            self.credit -= first.bytes;
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
        assert!(retiring.choose(key("a"), 100, 3));
        assert!(!retiring.choose(key("a"), 100, 3), "once");
        assert!(retiring.choose(key("b"), 400, 2));
        assert_eq!(retiring.credit(), 1100);
        assert_eq!(retiring.take(), [key("a"), key("b")]);
        retiring.on_deleted(at_ms(0), 7);
        assert_eq!(retiring.credit(), 600, "it is free here");
        retiring.settle(at_ms(1), 6);
        assert_eq!(retiring.credit(), 600);
        retiring.settle(at_ms(1), 7);
        assert_eq!(retiring.credit(), 0);
    }

    #[test]
    fn what_takes_too_long_or_cannot_be_deleted_does_not_count() {
        let mut retiring = Retiring::default();
        assert!(retiring.choose(key("a"), 100, 2));
        retiring.take();
        retiring.on_kept();
        assert_eq!(retiring.credit(), 0);
        assert!(retiring.choose(key("a"), 100, 2));
        retiring.take();
        retiring.on_deleted(at_ms(1), 7);
        retiring.settle(at_ms(5_000), 6);
        assert_eq!(retiring.credit(), 100);
        retiring.settle(at_ms(5_001), 6);
        assert_eq!(retiring.credit(), 0);
    }
}
