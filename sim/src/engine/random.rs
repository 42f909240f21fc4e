//! Choices from a seed. Each part of the world has its own stream, so that a
//! change in one part leaves the choices of the others as they were.

use rufous_base::rng::Rng;

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// The stream called `name` of a seed.
    pub fn new(seed: u64, name: &str) -> Self {
        let named = name
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        let mut rng = Rng::new(named);
        // The first numbers of neighbouring seeds are alike; the next are not.
        rng.next_u64();
        Self(rng)
    }

    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.0.below(bound) }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number in `low..=high` whose logarithm is uniform: mostly small, now
    /// and then large.
    pub fn skewed(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1) as f64, high.max(1) as f64);
        (low * (high / low).powf(self.0.unit())) as u64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// So many of the values, each time any; none if there are none.
    pub fn picks<T: Copy>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let count = if of.is_empty() { 0 } else { count };
        (0..count).map(|_| *self.pick(of)).collect()
    }

    /// One of the values, as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, of: &[(u32, T)]) -> T {
        let total: u32 = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(u64::from(total)) as u32;
        for &(weight, value) in of {
            if at < weight {
                return value;
            }
            at -= weight;
        }
        of[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let mut a = Random::new(1, "disk");
        let mut b = Random::new(1, "disk");
        let mut other = Random::new(1, "network");
        let draws: Vec<_> = (0..20).map(|_| a.word()).collect();
        assert!(draws.iter().all(|d| *d == b.word()));
        assert!(draws.iter().all(|d| *d != other.word()));
    }

    #[test]
    fn bounds_and_weights_are_kept() {
        let mut random = Random::new(3, "x");
        for _ in 0..1000 {
            assert!((5..=9).contains(&random.between(5, 9)));
            assert!((10..=1000).contains(&random.skewed(10, 1000)));
            assert!(random.weighted(&[(0, 'a'), (1, 'b')]) == 'b');
        }
        assert_eq!(random.below(0), 0);
    }
}
