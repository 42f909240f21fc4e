//! The deadlines of a database's records: the order in which they expire, how many do, and the sum of their times.

use super::expiry::Expiry;
use rufous_base::rng::Rng;

/// See the module's description. Invariant: `order` has exactly the (time, hash) pairs of the records that expire.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    order: Expiry,
    /// Number of records that expire, and the sum of their times.
    records: usize,
    sum: u128,
}

impl Deadlines {
    /// Number of records that expire.
    pub(super) fn len(&self) -> usize {
        self.records
    }

    /// Number of different pairs of time and hash.
    pub(super) fn pairs(&self) -> usize {
        self.order.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.order.bytes()
    }

    /// Mean time to live of the records that expire, in milliseconds.
    pub(super) fn avg_ttl(&self, now_ms: u64) -> u64 {
        if self.records == 0 {
            return 0;
        }
        let mean = (self.sum / self.records as u128) as u64;
        mean.saturating_sub(now_ms)
    }

    /// A record has got another deadline, or lost it. `is_shared` says whether another record has its hash and this
    /// time, and needs the pair.
    pub(super) fn change(
        &mut self,
        hash: u32,
        old: Option<u64>,
        new: Option<u64>,
        is_shared: impl FnOnce(u64) -> bool,
    ) {
        if let Some(unix_ms) = old {
            self.records -= 1;
            self.sum -= u128::from(unix_ms);
            if !is_shared(unix_ms) {
                self.order.remove(unix_ms, hash);
            }
        }
        if let Some(unix_ms) = new {
            self.records += 1;
            self.sum += u128::from(unix_ms);
            self.order.insert(unix_ms, hash);
        }
    }

    /// The soonest: Unix milliseconds and hash.
    pub(super) fn first(&self) -> Option<(u64, u32)> {
        self.order.first()
    }

    /// The pair after this one.
    pub(super) fn after(&self, unix_ms: u64, hash: u32) -> Option<(u64, u32)> {
        self.order.after(unix_ms, hash)
    }

    /// This pair, or the next one after it.
    pub(super) fn from(&self, unix_ms: u64, hash: u32) -> Option<(u64, u32)> {
        self.order.from(unix_ms, hash)
    }

    /// A random pair; all have the same probability.
    pub(super) fn random(&self, rng: &mut Rng) -> Option<(u64, u32)> {
        self.order.random(rng)
    }

    /// Asserts that these are the deadlines of `records`, given by time and hash.
    pub(super) fn check(&self, mut records: Vec<(u64, u32)>) {
        self.order.check();
        let sum = records.iter().map(|&(at, _)| u128::from(at)).sum::<u128>();
        assert_eq!((self.records, self.sum), (records.len(), sum));
        records.sort_unstable();
        records.dedup();
        assert_eq!(records.len(), self.order.len());
        for (at, hash) in records {
            assert!(self.order.contains(at, hash));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records' hashes and deadlines, with the deadlines kept of them.
    struct Model {
        records: Vec<(u32, Option<u64>)>,
        kept: Deadlines,
    }

    impl Model {
        fn change(&mut self, at: usize, new: Option<u64>) {
            let (hash, old) = self.records[at];
            self.records[at].1 = new;
            let others = &self.records;
            let is_shared = |time| {
                let mut others = others.iter().enumerate();
                others.any(|(i, other)| i != at && *other == (hash, Some(time)))
            };
            self.kept.change(hash, old, new, is_shared);
        }

        fn check(&self) {
            let all = self.records.iter();
            let all = all.filter_map(|(hash, at)| at.map(|at| (at, *hash)));
            self.kept.check(all.collect());
        }
    }

    #[test]
    fn records_with_one_hash_and_time_share_a_pair() {
        let mut rng = Rng::new(5);
        let mut model = Model {
            records: (0..60).map(|i| (i % 7, None)).collect(),
            kept: Deadlines::default(),
        };
        for _ in 0..3000 {
            let at = rng.below(60) as usize;
            let new = (rng.below(3) > 0).then(|| 10 + rng.below(9));
            model.change(at, new);
            model.check();
        }
        (0..60).for_each(|at| model.change(at, None));
        assert_eq!((model.kept.len(), model.kept.pairs()), (0, 0));
        assert_eq!(model.kept.first(), None);
    }

    #[test]
    fn the_mean_is_of_all_records() {
        let mut kept = Deadlines::default();
        assert_eq!(kept.avg_ttl(5), 0);
        kept.change(1, None, Some(100), |_| false);
        kept.change(1, None, Some(100), |_| false);
        kept.change(2, None, Some(400), |_| false);
        assert_eq!((kept.avg_ttl(50), kept.avg_ttl(900)), (150, 0));
        assert_eq!((kept.first(), kept.pairs()), (Some((100, 1)), 2));
        assert_eq!(kept.after(100, 1), Some((400, 2)));
    }
}
