//! Skewed key choice: the zipfian generator of Gray et al. ("Quickly generating billion-record
//! synthetic databases", SIGMOD 1994), which YCSB uses, and YCSB's two variants of it.

use rufous_base::rng::Rng;

/// YCSB's skew.
pub const YCSB_THETA: f64 = 0.99;
/// YCSB's scrambled generator draws ranks from this many items whatever the number of records, so
/// that the popularity of a record does not change when records are added…
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
/// …and this is zeta(SCRAMBLED_ITEMS, 0.99), far too long to add up at start.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Ranks in `0..items`, rank r drawn with probability proportional to 1 / (r + 1)^theta.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta_items: f64,
    zeta_two: f64,
    alpha: f64,
    eta: f64,
}

/// The generalised harmonic number: the sum of 1 / i^theta for i in `from + 1 ..= to`.
fn zeta(from: u64, to: u64, theta: f64) -> f64 {
    (from + 1..=to).map(|i| (i as f64).powf(-theta)).sum()
}

impl Zipfian {
    /// `theta` must lie strictly between 0 and 1 and `items` be at least 1.
    pub fn new(items: u64, theta: f64) -> Self {
        Self::with_zeta(items, theta, zeta(0, items, theta))
    }

    fn with_zeta(items: u64, theta: f64, zeta_items: f64) -> Self {
        assert!(
            items >= 1 && theta > 0.0 && theta < 1.0,
            "zipfian of {items} items, skew {theta}"
        );
        let mut this = Self {
            items,
            theta,
            zeta_items,
            zeta_two: zeta(0, 2, theta),
            alpha: 1.0 / (1.0 - theta),
            eta: 0.0,
        };
        this.refresh();
        this
    }

    fn refresh(&mut self) {
        self.eta = (1.0 - (2.0 / self.items as f64).powf(1.0 - self.theta))
            / (1.0 - self.zeta_two / self.zeta_items);
    }

    /// Extends the range to `items`, adding only the new terms of zeta.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta_items += zeta(self.items, items, self.theta);
            self.items = items;
            self.refresh();
        }
    }

    pub fn items(&self) -> u64 {
        self.items
    }

    pub fn next(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta_items;
        if uz < 1.0 || self.items == 1 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

/// The 64-bit FNV-1a hash of the eight bytes of `value`: how YCSB spreads neighbouring numbers.
pub fn fnv64(value: u64) -> u64 {
    value
        .to_le_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        })
}

/// Zipfian popularity whose hot items are spread over the whole range.
#[derive(Clone, Debug)]
pub struct ScrambledZipfian {
    ranks: Zipfian,
}

impl ScrambledZipfian {
    /// With YCSB's skew of 0.99.
    pub fn ycsb() -> Self {
        Self {
            ranks: Zipfian::with_zeta(SCRAMBLED_ITEMS, YCSB_THETA, SCRAMBLED_ZETA),
        }
    }

    /// With any skew, over the range that `next` will be asked for.
    pub fn new(items: u64, theta: f64) -> Self {
        Self {
            ranks: Zipfian::new(items, theta),
        }
    }

    /// An item in `0..items`.
    pub fn next(&self, rng: &mut Rng, items: u64) -> u64 {
        fnv64(self.ranks.next(rng)) % items
    }
}

/// The newest items are the most popular: distance from the newest is zipfian.
#[derive(Clone, Debug)]
pub struct Latest {
    distance: Zipfian,
}

impl Latest {
    pub fn new(items: u64) -> Self {
        Self {
            distance: Zipfian::new(items, YCSB_THETA),
        }
    }

    /// An item in `0..items`, where `items` never shrinks between calls.
    pub fn next(&mut self, rng: &mut Rng, items: u64) -> u64 {
        self.distance.grow(items);
        items - 1 - self.distance.next(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 400_000;

    fn histogram(items: u64, mut draw: impl FnMut() -> u64) -> Vec<u64> {
        let mut counts = vec![0; items as usize];
        for _ in 0..DRAWS {
            counts[draw() as usize] += 1;
        }
        counts
    }

    /// The first ranks have their exact probability; beyond them the generator approximates the sum
    /// by an integral, so cumulative shares are compared.
    #[test]
    fn zipfian_follows_its_formula() {
        for theta in [0.5, 0.9, YCSB_THETA] {
            let items = 1_000;
            let zipf = Zipfian::new(items, theta);
            let mut rng = Rng::new(3);
            let counts = histogram(items, || zipf.next(&mut rng));
            let total = zeta(0, items, theta);
            for rank in [0, 1] {
                let want = ((rank + 1) as f64).powf(-theta) / total;
                let got = counts[rank] as f64 / DRAWS as f64;
                assert!(
                    (got / want - 1.0).abs() < 0.05,
                    "theta {theta} rank {rank}: {got} {want}"
                );
            }
            for upto in [10usize, 100, 500, 1_000] {
                let want = zeta(0, upto as u64, theta) / total;
                let got = counts[..upto].iter().sum::<u64>() as f64 / DRAWS as f64;
                assert!(
                    (got - want).abs() < 0.03,
                    "theta {theta} first {upto}: {got} {want}"
                );
            }
        }
    }

    #[test]
    fn growing_equals_starting_large() {
        let mut grown = Zipfian::new(100, YCSB_THETA);
        grown.grow(250);
        grown.grow(1_000);
        let fresh = Zipfian::new(1_000, YCSB_THETA);
        assert!((grown.zeta_items - fresh.zeta_items).abs() < 1e-9);
        assert!((grown.eta - fresh.eta).abs() < 1e-9);
        assert_eq!(grown.items(), 1_000);
    }

    #[test]
    fn one_item_is_always_drawn() {
        let zipf = Zipfian::new(1, YCSB_THETA);
        let mut rng = Rng::new(4);
        assert!((0..1_000).all(|_| zipf.next(&mut rng) == 0));
    }

    #[test]
    fn the_published_zeta_fits_the_sum() {
        // zeta(n) for large n by Euler and Maclaurin: the integral from 1,000 on plus half a term.
        let (split, n) = (1_000f64, SCRAMBLED_ITEMS as f64);
        let tail = (n.powf(0.01) - split.powf(0.01)) / 0.01
            + (n.powf(-YCSB_THETA) - split.powf(-YCSB_THETA)) / 2.0;
        let want = zeta(0, 1_000, YCSB_THETA) + tail;
        assert!((want - SCRAMBLED_ZETA).abs() < 1e-3, "{want}");
    }

    #[test]
    fn scrambling_keeps_the_skew_and_spreads_the_hot_items() {
        let zipf = ScrambledZipfian::ycsb();
        let items = 1_000;
        let mut rng = Rng::new(5);
        let counts = histogram(items, || zipf.next(&mut rng, items));
        let hottest = (0..items as usize).max_by_key(|i| counts[*i]).unwrap();
        assert_eq!(hottest as u64, fnv64(0) % items);
        let share = counts[hottest] as f64 / DRAWS as f64;
        // Rank 0 alone has 1 / zeta; colliding lower ranks add about one item's even share.
        let want = 1.0 / SCRAMBLED_ZETA;
        assert!(share > want * 0.95 && share < want + 0.01, "{share} {want}");
        let upper_half: u64 = counts[500..].iter().sum();
        let upper = upper_half as f64 / DRAWS as f64;
        assert!((0.3..0.7).contains(&upper), "{upper}");
    }

    #[test]
    fn latest_prefers_the_newest_and_follows_inserts() {
        let mut latest = Latest::new(1_000);
        let mut rng = Rng::new(6);
        let counts = histogram(1_000, || latest.next(&mut rng, 1_000));
        let newest = counts[999] as f64 / DRAWS as f64;
        let want = 1.0 / zeta(0, 1_000, YCSB_THETA);
        assert!((newest / want - 1.0).abs() < 0.05, "{newest} {want}");
        assert!(counts[999] > counts[998] && counts[998] > counts[900]);
        let grown = histogram(2_000, || latest.next(&mut rng, 2_000));
        let recent: u64 = grown[1_000..].iter().sum();
        assert!(recent > DRAWS * 8 / 10, "{recent}");
        assert!(grown[1_999] > grown[999] * 10);
    }
}
